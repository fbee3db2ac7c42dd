"""The `ffmpeg` command line at the settings of a result that azalea made."""

import json
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import azalea
import x264
from azalea import Fitted
from clips import Clip
from measure import Cost, run
from tools import Tools


@dataclass(frozen=True)
class Target:
    """All that two encodes must share to be compared."""

    width: int
    height: int
    # Every how many-th frame is kept.
    step: int
    rate: Fraction
    preset: str
    seconds: float
    # Bytes of the video packets that azalea made.
    video_bytes: int
    # Words for the sound.
    sound: tuple[str, ...]

    def filters(self) -> str:
        """Frames and size, scaled as the engine does."""
        drop = f"framestep={self.step}," if self.step > 1 else ""
        return f"{drop}scale={self.width}:{self.height}:flags=bicubic"

    @property
    def bit_rate(self) -> float:
        """Bits a second that give the same bytes."""
        return self.video_bytes * 8 / self.seconds


def target(tools: Tools, clip: Clip, fitted: Fitted, preset: str) -> Target:
    """Reads from a result what `ffmpeg` must be asked for."""
    source, result = azalea.probe(tools, clip.path), azalea.probe(tools, fitted.path)
    source_rate = azalea.frame_rate(source)
    step = max(1, round(float(source_rate) / float(fitted.report["fps"])))
    return Target(
        width=result["video"]["coded"]["width"],
        height=result["video"]["coded"]["height"],
        step=step,
        rate=source_rate / step,
        preset=preset,
        seconds=float(source["video"]["duration"]),
        video_bytes=stream_bytes(tools, fitted.path, "v:0"),
        sound=_sound(tools, clip, fitted),
    )


def stream_bytes(tools: Tools, path: Path, stream: str) -> int:
    """Bytes of all packets of a stream."""
    out = run([tools.ffprobe, "-v", "error", "-select_streams", stream, "-show_entries", "packet=size", "-of", "json",
               path]).out
    return sum(int(packet["size"]) for packet in json.loads(out).get("packets", []))


def _sound(tools: Tools, clip: Clip, fitted: Fitted) -> tuple[str, ...]:
    """Sound is copied where azalea copied it, else encoded at the same rate."""
    result = stream_bytes(tools, fitted.path, "a:0")
    if not clip.sound or result == 0:
        return ("-an",)
    # Edits at the ends take a packet or two.
    if abs(result / stream_bytes(tools, clip.path, "a:0") - 1) < 0.01:
        return ("-map", "0:a:0", "-c:a", "copy")
    kept = azalea.probe(tools, fitted.path)["audio"]
    return ("-map", "0:a:0", "-c:a", "aac", "-b:a", str(kept["bit_rate"]), "-ar", str(kept["sample_rate"]), "-ac",
            str(kept["channels"]))


def two_pass(ffmpeg: Path, clip: Clip, aim: Target, bit_rate: float, threads: int, out: Path) -> Cost:
    """Both passes, one after the other; sound and index as in the result that it is compared with."""
    log = out.with_suffix("")
    first = _head(ffmpeg, clip, aim, bit_rate, threads) + ["-pass", "1", "-passlogfile", str(log), "-an", "-f", "mp4", os.devnull]
    second = _head(ffmpeg, clip, aim, bit_rate, threads) + ["-pass", "2", "-passlogfile", str(log), *_tail(aim, out)]
    cost = run(first).cost + run(second).cost
    for left in out.parent.glob(f"{log.name}-0.log*"):
        left.unlink()
    return cost


def one_pass(ffmpeg: Path, clip: Clip, aim: Target, bit_rate: float, threads: int, out: Path) -> Cost:
    """One pass at a mean rate, with no bound on its peaks."""
    return run(_head(ffmpeg, clip, aim, bit_rate, threads) + _tail(aim, out)).cost


def _head(ffmpeg: Path, clip: Clip, aim: Target, bit_rate: float, threads: int) -> list[str]:
    return [str(ffmpeg), "-nostdin", "-v", "error", "-y", "-i", str(clip.path), "-map", "0:v:0", "-vf", aim.filters(),
            *x264.options(aim.preset, float(aim.rate)), "-b:v", str(round(bit_rate)),
            *(["-threads", str(threads)] if threads else [])]


def _tail(aim: Target, out: Path) -> list[str]:
    return [*aim.sound, "-map_metadata", "-1", "-movflags", "+faststart", "-f", "mp4", str(out)]
