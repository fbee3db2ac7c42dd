"""From records to figures: pairs of azalea and another side, and the goals that they are held against."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from measure import geometric_mean
from store import Record
from vmaf import at_equal_size

# Clips from this length on are told apart from shorter ones.
LONG_SECONDS = 20


@dataclass(frozen=True)
class Pair:
    """One clip, limit and preset: azalea beside another side."""

    record: Record
    side: str
    cpu: float
    wall: float
    # Bytes of the other's video for one of azalea's.
    size: float
    # Azalea less the other, moved to equal size; nothing when VMAF was left out.
    mean: float | None
    p5: float | None
    p1: float | None

    @property
    def is_long(self) -> bool:
        """Whether the clip counts as a long one."""
        return bool(self.record["seconds"] >= LONG_SECONDS)


def pairs(records: Iterable[Record], side: str) -> list[Pair]:
    """The pairs of part `rate` with this side."""
    found = []
    for record in records:
        sides = record.get("sides", {})
        if side in sides:
            ours, theirs = sides["azalea"], sides[side]
            found.append(_pair(record, side, ours, theirs, ours["video_bytes"], theirs["video_bytes"]))
    return found


def peer_pairs(records: Iterable[Record]) -> list[Pair]:
    """The pairs of part `peer`. Files within one limit are not moved to equal size: using the limit is the tools' task."""
    return [_pair(record, "peer", record["azalea"], record["peer"], 1, 1) for record in records if "peer" in record]


def _pair(record: Record, side: str, ours: Record, theirs: Record, our_bytes: float, their_bytes: float) -> Pair:
    def difference(name: str) -> float | None:
        if "vmaf" not in ours or "vmaf" not in theirs:
            return None
        return at_equal_size(ours["vmaf"][name], our_bytes, their_bytes) - float(theirs["vmaf"][name])

    return Pair(record, side, ours["cpu"] / theirs["cpu"], ours["wall"] / theirs["wall"], their_bytes / our_bytes,
                difference("mean"), difference("p5"), difference("p1"))


def known(values: Iterable[float | None]) -> list[float]:
    """Without the unknown ones."""
    return [value for value in values if value is not None]


def overall(found: list[Pair], value: Callable[[Pair], float]) -> float:
    """The geometric mean over pairs, each clip with the same weight however many limits it has."""
    by_clip: dict[str, list[float]] = {}
    for pair in found:
        by_clip.setdefault(pair.record["clip"], []).append(value(pair))
    return geometric_mean(geometric_mean(values) for values in by_clip.values())
