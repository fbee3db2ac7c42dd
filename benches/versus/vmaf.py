"""How much a result looks like its source: VMAF by a current ffmpeg with libvmaf."""

import json
import math
import statistics
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

from measure import run
from tools import Tools

# VMAF that a doubling of the video's bytes brings, as measured on mixed material. Sizes that are compared differ by
# little, so an error of this number weighs little.
PER_DOUBLING = 6.2
# Every how many-th frame is judged.
SUBSAMPLE = 3


@dataclass(frozen=True)
class Score:
    """VMAF over the frames."""

    mean: float
    p5: float
    p1: float
    frames: int

    def as_record(self) -> dict[str, float]:
        """For the store."""
        return asdict(self)


@dataclass(frozen=True)
class View:
    """At which size and rate the two are looked at. Without `rate`, frame by frame after every `step`-th."""

    width: int
    height: int
    step: int = 1
    rate: Fraction | None = None


def score(tools: Tools, result: Path, source: Path, view: View, log: Path) -> Score:
    """Compares a result with its source, both scaled bicubic to the view's size."""
    size = f"scale={view.width}:{view.height}:flags=bicubic,format=yuv420p"
    if view.rate is None:
        # Frames are matched by number: time stamps of two muxers differ by rounding.
        ours, theirs = "setpts=N/25/TB", (f"framestep={view.step}," if view.step > 1 else "") + "setpts=N/25/TB"
    else:
        ours = theirs = f"setpts=PTS-STARTPTS,fps={view.rate},setpts=N/25/TB"
    graph = (f"[0:v]{ours},{size},settb=1/25[a];[1:v]{theirs},{size},settb=1/25[b];"
             f"[a][b]libvmaf=n_subsample={SUBSAMPLE}:n_threads=2:log_fmt=json:log_path={log.name}:shortest=1")
    run([tools.current, "-nostdin", "-v", "error", "-i", result, "-i", source, "-lavfi", graph, "-f", "null", "-"],
        cwd=log.parent)
    values = sorted(frame["metrics"]["vmaf"] for frame in json.loads(log.read_text())["frames"])
    log.unlink()
    return Score(statistics.fmean(values), _percentile(values, 0.05), _percentile(values, 0.01), len(values))


def at_equal_size(own: float, own_bytes: float, other_bytes: float) -> float:
    """A score moved to what it would be at the other's size."""
    return own + PER_DOUBLING * math.log2(other_bytes / own_bytes)


def _percentile(ordered: list[float], share: float) -> float:
    """Linear between the two nearest ranks."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
