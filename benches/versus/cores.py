"""What more cores would bring: a simulation from measured times of segments.

`python3 benches/versus/cores.py AZALEA CLIP LIMIT` runs one job here, takes each segment's time from the program's own log,
where it has one core and so one worker, and hands the segments, in the order in which the planner took them, to as many
workers as an engine of so many threads has: one for every two, sixteen at most, each with two threads. Beside it stands one x264 with as many frame threads over the whole track, by Amdahl's law from
x264's own figure of 1.59 times the speed with two threads (its doc/threads.txt, preset medium).
"""

import os
import re
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

CORES = (8, 32, 64)
# The part of x264's work that frame threads divide: 1 / (1 - p + p / 2) = 1.59.
PARALLEL = 0.742
THREADS_OF_A_WORKER = 2
MOST_WORKERS = 16


def run(azalea: str, clip: str, limit: str) -> list[str]:
    """The log of one job."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.mp4")
        environment = {**os.environ, "AZALEA_LOG": "debug", "NO_COLOR": "1"}
        command = [azalea, "fit", clip, "--limit", limit, "-o", out]
        # On one core the log's lines are of one segment after the other.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stderr).splitlines()


def measure(log: list[str]) -> tuple[float, list[float]]:
    """Seconds before the first segment, and each encode's seconds in order."""
    start: datetime | None = None
    last: datetime | None = None
    before, segments = 0.0, []
    for line in log:
        stamp = re.match(r"(\S+)Z\s", line)
        if not stamp:
            continue
        now = datetime.fromisoformat(stamp[1])
        start = start or now
        if " probed " in line or "encoding size" in line:
            last = now
            before = (now - start).total_seconds()
        elif "a segment is encoded" in line and last:
            segments.append((now - last).total_seconds())
            last = now
    return before, segments


def makespan(segments: list[float], workers: int) -> float:
    """When the last of `workers` is done that take the segments in turn."""
    free = [0.0] * max(1, workers)
    for seconds in segments:
        first = free.index(min(free))
        free[first] += seconds
    return max(free)


def frame_threads(cores: int) -> float:
    """How many times as fast one x264 is with so many frame threads."""
    return 1.0 / (1.0 - PARALLEL + PARALLEL / cores)


def main() -> None:
    """Prints the table."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    before, segments = measure(run(*sys.argv[1:]))
    whole = sum(segments)
    print(f"{len(segments)} encodes of {min(segments):.1f} to {max(segments):.1f} s, {before:.1f} s before them\n")
    print("| cores | workers | azalea | one x264 with frame threads | ratio |\n|---|---|---|---|---|")
    for cores in CORES:
        workers = min(max(1, cores // THREADS_OF_A_WORKER), MOST_WORKERS)
        ours = before + makespan(segments, workers) / frame_threads(THREADS_OF_A_WORKER)
        theirs = whole / frame_threads(cores)
        print(f"| {cores} | {workers} | {ours:.1f} s | {theirs:.1f} s | {theirs / ours:.1f}× |")


if __name__ == "__main__":
    main()
