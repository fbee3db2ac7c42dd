"""What one call of the comparisons is asked to do."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from x264 import PRESETS

PARTS = ("rate", "limits", "peer", "jobs", "overhead", "memory", "linear")
QUICK_CLIPS = ("animation", "handheld", "short")


@dataclass(frozen=True)
class Settings:
    """The command line, checked."""

    work: Path
    azalea: Path | None
    many: Path | None
    parts: tuple[str, ...]
    clips: list[str] | None
    presets: tuple[str, ...]
    # Limits as shares of the source's size.
    fractions: tuple[float, ...]
    limit_fractions: tuple[float, ...]
    repeats: int
    # Codec threads of `ffmpeg`; 0 is its own choice.
    threads: int
    one_pass: bool
    current: bool
    vmaf: bool
    again: bool
    measure: bool
    readme: Path | None

    def repeats_for(self, seconds: float) -> int:
        """How often a clip of this length is measured: half as often from two minutes on, where noise is small."""
        return max(1, self.repeats // 2) if seconds >= 120 else self.repeats


def read() -> Settings:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python3 benches/versus",
        description="Compares azalea with the ffmpeg command line and with tools that people use. Results are kept in "
                    "the work folder, so that a run that was stopped goes on where it was.",
    )
    add = parser.add_argument
    root = Path(__file__).resolve().parents[2]
    add("--work", type=Path, default=root / "target" / "versus", help="folder for clips, peers and results")
    add("--azalea", type=Path, help="the program under test [default: the release build in the target folder]")
    add("--many", type=Path, help="a program that runs many jobs on a pool of a given size, see jobs.py; without it "
                                  "`azalea fit` runs as many at once as there are cores")
    add("--only", default=",".join(PARTS), help=f"parts to run, by commas [default: {','.join(PARTS)}]")
    add("--clips", help="clips to use, by commas [default: all]")
    add("--presets", help=f"presets, by commas [default: {','.join(PRESETS)}]")
    add("--fractions", help="limits of `rate` and `peer` as shares of the source's size [default: 0.35,0.15]")
    add("--limit-fractions", help="limits of `limits` [default: 0.8,0.5,0.3,0.18,0.1,0.05]")
    add("--repeats", type=int, help="times that each side is measured, in turn [default: 2]")
    add("--threads", type=int, default=0, help="codec threads of ffmpeg in `rate` [default: its own choice]")
    add("--one-pass", action="store_true", help="`rate` also by one pass of ffmpeg")
    add("--current", action="store_true", help="`rate` also by the current static ffmpeg")
    add("--no-vmaf", action="store_true", help="leave out the pictures' quality")
    add("--quick", action="store_true", help=f"clips {', '.join(QUICK_CLIPS)}, one preset, one limit, one repeat, unless said")
    add("--again", action="store_true", help="measure again what is there already")
    add("--table", action="store_true", help="make the table from what is there, measure nothing")
    add("--write-readme", action="store_true", help="put the summary between the marks in README.md")
    given = parser.parse_args()
    parts = tuple(given.only.split(","))
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    presets = tuple((given.presets or ("balanced" if given.quick else ",".join(PRESETS))).split(","))
    if unknown := set(presets) - PRESETS.keys():
        parser.error(f"no such preset: {', '.join(sorted(unknown))}")
    clips = given.clips.split(",") if given.clips else list(QUICK_CLIPS) if given.quick else None
    return Settings(
        work=given.work.resolve(),
        azalea=given.azalea,
        many=given.many.resolve() if given.many else None,
        parts=parts,
        clips=clips,
        presets=presets,
        fractions=_numbers(given.fractions or ("0.25" if given.quick else "0.35,0.15")),
        limit_fractions=_numbers(given.limit_fractions or "0.8,0.5,0.3,0.18,0.1,0.05"),
        repeats=given.repeats or (1 if given.quick else 2),
        threads=given.threads,
        one_pass=given.one_pass,
        current=given.current,
        vmaf=not given.no_vmaf,
        again=given.again,
        measure=not given.table,
        readme=root / "README.md" if given.write_readme else None,
    )


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split(","))
