"""Part `rate`: azalea beside `ffmpeg` at equal settings, size, frame rate and bytes.

How it is made fair: azalea chooses size, rate and sound for a limit. `ffmpeg` then gets the same x264 options, the same
size, frame rate, key interval and scaler, the sound copied or encoded as azalea did, and the bit rate at which its video
has as many bytes; where it misses them by more than a hundredth, the rate is corrected once and only the corrected runs
count. Costs are those of whole jobs, sound and container included: one azalea process beside both `ffmpeg` processes.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import azalea
import ffmpeg
import vmaf
from azalea import Refused
from clips import Clip
from ffmpeg import Target
from measure import Cost, alternate, median_cost
from settings import Settings
from store import Store
from tools import Tools

Encode = Callable[[float, Path], Cost]
Way = Callable[[Path, Clip, Target, float, int, Path], Cost]
# Beyond this share off the wanted bytes, the rate of `ffmpeg` is corrected.
CLOSE = 0.01


def run(settings: Settings, tools: Tools, store: Store, clips: list[Clip]) -> None:
    """Measures what is not yet in the store."""
    folder = tools.work / "out" / "rate"
    folder.mkdir(parents=True, exist_ok=True)
    for clip in clips:
        for fraction in settings.fractions:
            for preset in settings.presets:
                key = {"clip": clip.name, "fraction": fraction, "preset": preset, "threads": settings.threads}
                if settings.again or store.find("rate", **key) is None:
                    print(f"rate: {clip.name}, {preset}, {fraction} of the source", file=sys.stderr)
                    store.add("rate", **key, **_measure(settings, tools, clip, fraction, preset, folder))


def _measure(settings: Settings, tools: Tools, clip: Clip, fraction: float, preset: str, folder: Path) -> dict[str, object]:
    limit = int(clip.bytes * fraction) // 1024 * 1024
    ours = folder / f"{clip.name}-{preset}-azalea.mp4"
    first = azalea.fit(tools, clip.path, limit, preset, ours)
    values: dict[str, object] = {"seconds": clip.seconds, "limit": limit}
    if isinstance(first, Refused):
        return values | {"refused": first.message}
    if first.report.get("action") != "transcode":
        return values | {"refused": f"nothing to encode: {first.report.get('action')}"}
    aim = ffmpeg.target(tools, clip, first, preset)
    encodes = _encodes(settings, tools, clip, aim)
    rates, paths = {}, {}
    for name, encode in encodes.items():
        paths[name] = folder / f"{clip.name}-{preset}-{name}.mp4"
        rates[name] = _calibrate(tools, aim, encode, paths[name])

    def again() -> Cost:
        made = azalea.fit(tools, clip.path, limit, preset, ours)
        if isinstance(made, Refused):
            raise RuntimeError(f"{clip.name} fitted once and was then refused: {made.message}")
        return made.cost

    sides = [again, *(_side(encode, rates[name], paths[name]) for name, encode in encodes.items())]
    costs = alternate(settings.repeats_for(clip.seconds), sides)
    fitted = azalea.Fitted(ours, first.report, costs[0][0])
    values |= {
        "bytes": fitted.bytes, "fill": fitted.bytes / limit, "redone": fitted.redone, "ceiling": fitted.at_ceiling,
        "crf": first.report.get("crf"), "width": aim.width, "height": aim.height, "fps": float(aim.rate),
        "sides": {"azalea": _told(settings, tools, clip, aim, ours, costs[0])},
    }
    sides_told = values["sides"]
    assert isinstance(sides_told, dict)
    for name, side_costs in zip(encodes, costs[1:], strict=True):
        sides_told[name] = _told(settings, tools, clip, aim, paths[name], side_costs)
    for path in (ours, *paths.values()):
        path.unlink()
    return values


def _encodes(settings: Settings, tools: Tools, clip: Clip, aim: Target) -> dict[str, Encode]:
    """The encodes of `ffmpeg` that azalea is put beside."""
    programs = {"": tools.ffmpeg} | ({" (current)": tools.current} if settings.current else {})
    ways = {"two-pass": ffmpeg.two_pass} | ({"one-pass": ffmpeg.one_pass} if settings.one_pass else {})
    encodes: dict[str, Encode] = {}
    for suffix, program in programs.items():
        for name, way in ways.items():
            encodes[name + suffix] = partial(_encode, way, program, clip, aim, settings.threads)
    return encodes


def _encode(way: Way, program: Path, clip: Clip, aim: Target, threads: int, rate: float, out: Path) -> Cost:
    return way(program, clip, aim, rate, threads, out)


def _side(encode: Encode, rate: float, path: Path) -> Callable[[], Cost]:
    return lambda: encode(rate, path)


def _calibrate(tools: Tools, aim: Target, encode: Encode, path: Path) -> float:
    """The bit rate that brings the wanted bytes."""
    encode(aim.bit_rate, path)
    share = ffmpeg.stream_bytes(tools, path, "v:0") / aim.video_bytes
    return aim.bit_rate if abs(share - 1) <= CLOSE else aim.bit_rate / share


def _told(settings: Settings, tools: Tools, clip: Clip, aim: Target, path: Path, costs: list[Cost]) -> dict[str, object]:
    told: dict[str, object] = {
        "video_bytes": ffmpeg.stream_bytes(tools, path, "v:0"), "bytes": path.stat().st_size,
        **asdict(median_cost(costs)), "cpus": [round(cost.cpu, 3) for cost in costs],
    }
    if settings.vmaf:
        view = vmaf.View(aim.width, aim.height, aim.step)
        told["vmaf"] = vmaf.score(tools, path, clip.path, view, path.with_suffix(".json")).as_record()
    return told
