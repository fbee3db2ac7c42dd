"""Parts `overhead`, `memory` and `linear`: what a job takes besides its codecs, and how costs grow."""

import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import azalea
from azalea import Fitted, Refused
from clips import Clip
from measure import Cost, Failed, alternate, median_cost
from measure import run as run_program
from settings import Settings
from store import Store
from tools import Tools

# Stages of a report that are the codecs' and filters' own work.
CODEC_STAGES = ("decode", "scale", "encode", "audio", "video", "verify")
PROBES = 15
LINEAR_SECONDS = 30


def overhead(settings: Settings, tools: Tools, store: Store, clips: list[Clip]) -> None:
    """Probing, and the stages of a job that are no codec's."""
    for clip in clips:
        if not settings.again and store.find("overhead", clip=clip.name) is not None:
            continue
        print(f"overhead: {clip.name}", file=sys.stderr)
        ours, theirs = alternate(PROBES, [
            _side([tools.azalea, "probe", clip.path, "--json"]),
            _side([tools.ffprobe, "-v", "error", "-show_streams", "-show_format", clip.path]),
        ])
        bare = [run_program([tools.azalea, "--version"]).cost for _ in range(PROBES)]
        limit = int(clip.bytes * settings.fractions[0]) // 1024 * 1024
        made = azalea.fit(tools, clip.path, limit, "fast", _out(tools))
        values: dict[str, object] = {}
        if isinstance(made, Fitted):
            stages = {name: float(value) for name, value in made.report.get("stages", {}).items()}
            values = {
                "stages": stages,
                "outside": sum(value for name, value in stages.items() if name not in CODEC_STAGES),
                # From the start of the process to its end, without the job: what starting the program takes.
                "around": made.cost.wall - float(made.report.get("wall_seconds", made.cost.wall)),
            }
        store.add("overhead", clip=clip.name, probe=asdict(median_cost(ours)), ffprobe=asdict(median_cost(theirs)),
                  probe_best=min(cost.wall for cost in ours), start=statistics.median(cost.wall for cost in bare), **values)


def memory(settings: Settings, tools: Tools, store: Store, clips: list[Clip]) -> None:
    """Peaks of one job and of more at once, at 720p, and over the input's length."""
    wanted = [clip for name in ("fades", "animation") for clip in clips if clip.name == name] or clips[:1]
    for clip in wanted:
        limit = int(clip.bytes * 0.45) // 1024 * 1024
        for preset in settings.presets:
            key = {"clip": clip.name, "preset": preset}
            if settings.again or store.find("memory", **key) is None:
                print(f"memory: {clip.name}, {preset}", file=sys.stderr)
                made = _must(azalea.fit(tools, clip.path, limit, preset, _out(tools), "--height", "720"))
                store.add("memory", **key, peak=made.cost.peak, height=made.report.get("height"), result=made.bytes)
        for count in (1, 2, 4) if settings.many else (1, 2):
            if settings.again or store.find("memory at once", clip=clip.name, count=count) is None:
                print(f"memory: {clip.name}, {count} at once", file=sys.stderr)
                copies = _copies(tools, clip, count)
                cost, reports = azalea.fit_many(tools, settings.many, copies, limit, "balanced",
                                                tools.work / "out" / "memory", count)
                store.add("memory at once", clip=clip.name, count=count, peak=cost.peak,
                          heights=[report.get("height") for report in reports])


def linear(settings: Settings, tools: Tools, store: Store, clips: list[Clip]) -> None:
    """The same content once and ten times over, with a limit in proportion: cost and peak memory."""
    base = next((clip for clip in clips if clip.name == "mixed"), max(clips, key=lambda clip: clip.seconds))
    if base.seconds < LINEAR_SECONDS:
        print(f"linear: left out, no clip of {LINEAR_SECONDS} s", file=sys.stderr)
        return
    short, long = _ten_times(tools, base)
    limit = int(short.stat().st_size * 0.3) // 1024 * 1024

    def fit(path: Path, limit: int, preset: str) -> Callable[[], Cost]:
        return lambda: _must(azalea.fit(tools, path, limit, preset, _out(tools), "--height", "360")).cost

    for preset in settings.presets:
        if not settings.again and store.find("linear", clip=base.name, preset=preset) is not None:
            continue
        print(f"linear: {base.name}, {preset}", file=sys.stderr)
        costs = alternate(settings.repeats, [fit(short, limit, preset), fit(long, limit * 10, preset)])
        store.add("linear", clip=base.name, preset=preset, short=asdict(median_cost(costs[0])),
                  long=asdict(median_cost(costs[1])), result=limit * 10)


def _side(command: list[str | Path]) -> Callable[[], Cost]:
    return lambda: run_program(command).cost


def _ten_times(tools: Tools, clip: Clip) -> tuple[Path, Path]:
    """The clip's beginning, and that ten times, without encoding again."""
    folder = tools.work / "clips"
    short, long = folder / f"linear-{clip.name}-1.mp4", folder / f"linear-{clip.name}-10.mp4"
    if not long.exists():
        start: list[str | Path] = [tools.current, "-nostdin", "-v", "error", "-y"]
        run_program([*start, "-i", clip.path, "-t", str(LINEAR_SECONDS), "-c", "copy", "-movflags", "+faststart", short])
        part = long.with_suffix(".part")
        run_program([*start, "-stream_loop", "9", "-i", short, "-c", "copy", "-movflags", "+faststart", "-f", "mp4", part])
        part.rename(long)
    return short, long


def _copies(tools: Tools, clip: Clip, count: int) -> list[Path]:
    """The clip under several names, since results are named after their inputs."""
    folder = tools.work / "clips" / "copies"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{clip.name}-{number}.mp4" for number in range(count)]
    for path in paths:
        if not path.exists():
            path.hardlink_to(clip.path)
    return paths


def _out(tools: Tools) -> Path:
    (tools.work / "out").mkdir(parents=True, exist_ok=True)
    return tools.work / "out" / "shape.mp4"


def _must(made: Fitted | Refused) -> Fitted:
    if isinstance(made, Refused):
        raise Failed(f"refused: {made.message}")
    return made
