"""Part `jobs`: many short jobs through one process and its pool, beside a pair of `ffmpeg` processes for each.

Both sides run as many jobs at once and encode with one codec thread each. `azalea fit` runs as many jobs at once as there
are cores; another number needs a program that is called as

    many --threads N --limit SIZE --preset P --json -o FOLDER INPUT...

starts one engine with N threads, keeps N jobs running, writes each result to FOLDER under the input's name, and prints the
report that `azalea fit --json` prints, a line for each input (`--many` names it).
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import azalea
import ffmpeg
from azalea import Fitted
from clips import Clip
from goals import JOBS
from measure import Cost, alternate, median_cost
from measure import run as run_program
from settings import Settings
from store import Store
from tools import Tools

# Name, picture size, and rate of the sources in kbit/s.
SIZES = (("320x180", 320, 180, 450), ("720p", 1280, 720, 3000))
# The clips that pieces are cut from, in turn.
FROM = ("mixed", "animation", "handheld", "sport", "talking")
AT_ONCE = 2


def run(settings: Settings, tools: Tools, store: Store, clips: list[Clip]) -> None:
    """Measures what is not yet in the store."""
    at_once = AT_ONCE if settings.many else os.cpu_count() or 1
    preset = "balanced"
    for name, width, height, kbps in SIZES:
        if settings.again or store.find("jobs", size=name) is None:
            print(f"jobs: {JOBS} of {name}", file=sys.stderr)
            pieces = _pieces(tools, clips, width, height, kbps)
            store.add("jobs", size=name, preset=preset, at_once=at_once,
                      **_race(settings, tools, pieces, preset, at_once))
        if settings.again or store.find("together", size=name) is None:
            print(f"jobs: four of {name} at once", file=sys.stderr)
            pieces = _pieces(tools, clips, width, height, kbps)[:4]
            store.add("together", size=name, preset=preset, at_once=4 if settings.many else at_once,
                      **_together(settings, tools, pieces, preset))


def _pieces(tools: Tools, clips: list[Clip], width: int, height: int, kbps: int) -> list[Clip]:
    """Twenty pieces of three to five seconds."""
    sources = [clip for name in FROM for clip in clips if clip.name == name] or clips
    folder = tools.work / "clips" / f"pieces-{height}"
    folder.mkdir(parents=True, exist_ok=True)
    pieces = []
    for number in range(JOBS):
        source = sources[number % len(sources)]
        seconds = 3 + (number % 5) * 0.5
        start = (number * 3.7) % max(source.seconds - seconds, 0.1)
        path = folder / f"piece{number:02}-{source.name}.mp4"
        if not path.exists():
            part = path.with_suffix(".part")
            run_program([
                tools.current, "-nostdin", "-v", "error", "-y", "-bitexact", "-ss", f"{start:.2f}", "-i", source.path,
                "-t", str(seconds), "-vf", f"scale={width}:{height}:flags=bicubic,setsar=1", "-c:v", "libx264", "-preset",
                "medium", "-threads", "2", "-b:v", f"{kbps}k", "-g", "60", "-c:a", "aac", "-b:a", "96k", "-movflags",
                "+faststart", "-f", "mp4", part,
            ])
            part.rename(path)
        pieces.append(Clip(path.stem, path, seconds, width, height, source.sound))
    return pieces


def _limit(pieces: list[Clip]) -> int:
    """One limit for all, so that each must be encoded."""
    return int(min(piece.bytes for piece in pieces) * 0.5)


def _race(settings: Settings, tools: Tools, pieces: list[Clip], preset: str, at_once: int) -> dict[str, object]:
    limit, folder = _limit(pieces), tools.work / "out" / "jobs"
    sources = [piece.path for piece in pieces]
    _, reports = azalea.fit_many(tools, settings.many, sources, limit, preset, folder, at_once)
    by_input = {Path(report["input"]).stem: report for report in reports}
    aims = []
    for piece in pieces:
        report = by_input[piece.name]
        fitted = Fitted(Path(report["output"]), report, Cost(0, 0, 0))
        aims.append((piece, ffmpeg.target(tools, piece, fitted, preset)))

    def ours() -> Cost:
        return azalea.fit_many(tools, settings.many, sources, limit, preset, folder, at_once)[0]

    def theirs() -> Cost:
        start = time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            costs = list(pool.map(
                lambda job: ffmpeg.two_pass(tools.ffmpeg, job[0], job[1], job[1].bit_rate, 1,
                                            folder / f"{job[0].name}-ffmpeg.mp4"), aims))
        return Cost(time.perf_counter() - start, sum(cost.cpu for cost in costs), max(cost.peak for cost in costs))

    costs = alternate(settings.repeats, [ours, theirs])
    over = sum(report["bytes"] > limit for report in reports)
    return {"limit": limit, "over": over, "azalea": asdict(median_cost(costs[0])), "ffmpeg": asdict(median_cost(costs[1]))}


def _together(settings: Settings, tools: Tools, pieces: list[Clip], preset: str) -> dict[str, object]:
    """Four jobs at once, and the same four each alone."""
    limit, folder = _limit(pieces), tools.work / "out" / "together"
    sources = [piece.path for piece in pieces]

    def alone() -> Cost:
        cost = Cost(0, 0, 0)
        for source in sources:
            cost += azalea.fit_many(tools, settings.many, [source], limit, preset, folder, 4)[0]
        return cost

    def together() -> Cost:
        return azalea.fit_many(tools, settings.many, sources, limit, preset, folder, 4)[0]

    costs = alternate(settings.repeats, [alone, together])
    return {"limit": limit, "alone": asdict(median_cost(costs[0])), "together": asdict(median_cost(costs[1]))}
