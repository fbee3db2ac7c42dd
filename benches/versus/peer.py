"""Part `peer`: azalea beside ffmpeg4discord, each at its defaults, for the same limit.

The two choose sizes of their own, so pictures are judged as they are shown: both scaled up to the source's size (at most
1080 lines) and compared with the source there.
"""

import sys
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import azalea
import vmaf
from azalea import Refused
from clips import Clip
from measure import Cost, Failed, alternate, median_cost
from measure import run as run_program
from settings import Settings
from store import Store
from tools import Tools

# Starts the peer without its look for a newer version on the network, which would count as its time.
START = ("import sys, ffmpeg4discord.versioning as versions; versions.get_latest_pypi_version = lambda *_: None; "
         "from ffmpeg4discord.__main__ import main; sys.exit(main())")
MOST_SHORT_SIDE = 1080


def run(settings: Settings, tools: Tools, store: Store, clips: list[Clip]) -> None:
    """Measures what is not yet in the store."""
    folder = tools.work / "out" / "peer"
    folder.mkdir(parents=True, exist_ok=True)
    for clip in clips:
        for fraction in settings.fractions:
            key = {"clip": clip.name, "fraction": fraction}
            if settings.again or store.find("peer", **key) is None:
                print(f"peer: {clip.name}, {fraction} of the source", file=sys.stderr)
                store.add("peer", **key, **_measure(settings, tools, clip, fraction, folder))


def _measure(settings: Settings, tools: Tools, clip: Clip, fraction: float, folder: Path) -> dict[str, object]:
    limit = int(clip.bytes * fraction) // 1024 * 1024
    ours, theirs = folder / f"{clip.name}-azalea.mp4", folder / f"{clip.name}-peer"
    theirs.mkdir(exist_ok=True)

    def azalea_side() -> Cost:
        made = azalea.fit(tools, clip.path, limit, "balanced", ours)
        if isinstance(made, Refused):
            raise Failed(made.message)
        return made.cost

    def peer_side() -> Cost:
        for old in theirs.iterdir():
            old.unlink()
        return run_program([tools.python, "-c", START, clip.path, "-s", f"{limit / 1024**2:.6f}", "-o", theirs,
                            "--no-config"], cwd=folder).cost

    values: dict[str, object] = {"seconds": clip.seconds, "limit": limit}
    try:
        costs = alternate(settings.repeats_for(clip.seconds), [azalea_side, peer_side])
    except Failed as failed:
        return values | {"refused": str(failed)[:500]}
    made = next(theirs.iterdir())
    for name, path, side in (("azalea", ours, costs[0]), ("peer", made, costs[1])):
        told: dict[str, object] = {"bytes": path.stat().st_size, **asdict(median_cost(side))}
        if settings.vmaf:
            told["vmaf"] = vmaf.score(tools, path, clip.path, _view(tools, clip), path.with_suffix(".json")).as_record()
        values[name] = told
        path.unlink()
    return values


def _view(tools: Tools, clip: Clip) -> vmaf.View:
    factor = min(1.0, MOST_SHORT_SIDE / min(clip.width, clip.height))
    rate: Fraction = azalea.frame_rate(azalea.probe(tools, clip.path))
    return vmaf.View(round(clip.width * factor / 2) * 2, round(clip.height * factor / 2) * 2, rate=rate)
