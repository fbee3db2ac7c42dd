"""Small pieces of Markdown."""

import math
from collections.abc import Iterable, Sequence

MIB = 1024 * 1024


def rows(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table and the empty line that ends it; empty text without lines."""
    body = ["| " + " | ".join(line) + " |" for line in lines]
    if not body:
        return ""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *body]) + "\n\n"


def ratio(value: float) -> str:
    """A ratio of two costs."""
    return "–" if math.isnan(value) else f"{value:.2f}×"


def signed(value: float, digits: int = 2) -> str:
    """A difference."""
    return "–" if math.isnan(value) else f"{value:+.{digits}f}"


def percent(share: float, digits: int = 1) -> str:
    """A share."""
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def seconds(value: float) -> str:
    """A duration, in the unit that reads best."""
    return f"{1000 * value:.1f} ms" if value < 0.1 else f"{value:.1f} s"


def mebibytes(value: float, digits: int = 0) -> str:
    """Bytes in MiB."""
    return f"{value / MIB:.{digits}f} MiB"


def size(value: float) -> str:
    """Bytes in the unit that reads best."""
    return mebibytes(value, 2) if value >= MIB else f"{value / 1024:.0f} KiB"


def mean(values: Iterable[float]) -> float:
    """The plain mean; not a number for none."""
    values = list(values)
    return sum(values) / len(values) if values else math.nan
