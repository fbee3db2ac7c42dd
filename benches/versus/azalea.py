"""Calls the program under test and reads its reports."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from measure import Cost, Failed, run
from tools import Tools
from x264 import CEILING_CRF


@dataclass(frozen=True)
class Refused:
    """The program said that it cannot."""

    kind: str
    message: str


@dataclass(frozen=True)
class Fitted:
    """A result with its report."""

    path: Path
    report: dict[str, Any]
    cost: Cost

    @property
    def bytes(self) -> int:
        """Size of the file, as the disk has it."""
        return self.path.stat().st_size

    @property
    def redone(self) -> float:
        """Frames that were encoded more than once, as a share of all."""
        frames = self.report.get("frames") or 0
        return (self.report.get("frames_redone") or 0) / frames if frames else 0.0

    @property
    def at_ceiling(self) -> bool:
        """Whether the program stopped at the quality that nobody can tell from the source."""
        crf = self.report.get("crf")
        return crf is not None and crf <= CEILING_CRF


def fit(tools: Tools, source: Path, limit: int, preset: str, out: Path, *more: str) -> Fitted | Refused:
    """Makes one file fit. A refusal is an answer; any other failure raises."""
    out.unlink(missing_ok=True)
    ended = run([tools.azalea, "fit", source, "--limit", str(limit), "--preset", preset, "--json", "-o", out, *more],
                check=False)
    answer = _answers(ended.out)
    report = answer[0] if answer else {}
    if ended.code == 0:
        return Fitted(out, report, ended.cost)
    error = report.get("error", {})
    if ended.code != 4:
        raise Failed(f"azalea ended with {ended.code} for {source.name} within {limit}: {error or ended.err[-500:]}")
    return Refused(error.get("kind", "?"), error.get("message", ended.err.strip()))


def fit_many(tools: Tools, many: Path | None, sources: list[Path], limit: int, preset: str, folder: Path,
             at_once: int) -> tuple[Cost, list[dict[str, Any]]]:
    """Makes many files fit in one process. Without `many`, `azalea fit` chooses how many run at once."""
    folder.mkdir(parents=True, exist_ok=True)
    words: list[str | Path] = [tools.azalea, "fit"] if many is None else [many, "--threads", str(at_once)]
    ended = run([*words, *sources, "--limit", str(limit), "--preset", preset, "--json", "-o", folder])
    return ended.cost, _answers(ended.out)


def probe(tools: Tools, path: Path) -> dict[str, Any]:
    """What the program says about a file."""
    answer: dict[str, Any] = json.loads(run([tools.azalea, "probe", path, "--json"]).out)
    return answer


def frame_rate(probed: dict[str, Any]) -> Fraction:
    """Frames a second of a probed video."""
    return Fraction(probed["video"]["frame_rate"])


def _answers(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
