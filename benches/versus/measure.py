"""Runs a program and tells what it cost; medians and geometric means."""

import math
import os
import selectors
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """What one process and all that it waited for took."""

    wall: float  # seconds
    cpu: float  # user and system seconds
    peak: int  # bytes: the largest resident set of one process among them

    def __add__(self, other: "Cost") -> "Cost":
        """One after the other."""
        return Cost(self.wall + other.wall, self.cpu + other.cpu, max(self.peak, other.peak))


@dataclass(frozen=True)
class Run:
    """An ended process."""

    cost: Cost
    code: int
    out: str
    err: str


class Failed(RuntimeError):
    """A program that should have worked did not."""


def run(command: Sequence[str | Path], check: bool = True, cwd: Path | None = None, **variables: str) -> Run:
    """Runs `command` to its end. With `check`, any exit code but 0 raises `Failed` with the end of its errors.

    `variables` are added to the environment. The CPU time is that of the process and of the children that it waited
    for, from the kernel's own account, so runs side by side do not mix.
    """
    words = [str(word) for word in command]
    start = time.perf_counter()
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
        env=os.environ | variables,
    ) as process:
        # communicate() would reap the child itself and lose its account: read both pipes, then wait4.
        out, err = _drain(process)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    cost = Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
    if check and process.returncode != 0:
        raise Failed(f"{words[0]} ended with {process.returncode}: {err[-2000:]}\ncommand: {' '.join(words)}")
    return Run(cost, process.returncode, out, err)


def _drain(process: "subprocess.Popen[bytes]") -> tuple[str, str]:
    """Reads both pipes to their ends without waiting for the process."""
    assert process.stdout is not None and process.stderr is not None
    parts: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    with selectors.DefaultSelector() as selector:
        for descriptor in parts:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                piece = os.read(key.fd, 1 << 16)
                if piece:
                    parts[key.fd].append(piece)
                else:
                    selector.unregister(key.fd)
    out, err = (b"".join(pieces).decode(errors="replace") for pieces in parts.values())
    return out, err


def alternate(repeats: int, sides: Sequence[Callable[[], Cost]]) -> list[list[Cost]]:
    """Measures each side `repeats` times in turn, A B A B, so that a change of the machine's load meets all alike."""
    costs: list[list[Cost]] = [[] for _ in sides]
    for _ in range(repeats):
        for side, own in zip(sides, costs, strict=True):
            own.append(side())
    return costs


def median_cost(costs: Iterable[Cost]) -> Cost:
    """The medians of wall and CPU, each on its own, and the largest peak."""
    costs = list(costs)
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        max(cost.peak for cost in costs),
    )


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of positive values; not a number for none."""
    values = list(values)
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else math.nan
