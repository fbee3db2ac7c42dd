"""The programs that take part: the one under test, the `ffmpeg` commands, and what stands in a venv."""

import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from measure import Failed, run
from pinned import PACKAGES, PACKAGES_ALONE


@dataclass(frozen=True)
class Tools:
    """Where every program is."""

    work: Path
    azalea: Path
    # The distribution's ffmpeg, with the same libx264 as the engine.
    ffmpeg: Path
    ffprobe: Path
    # A current static build with libvmaf, from PyPI.
    current: Path
    python: Path
    ff4d: Path
    packages: Path

    def versions(self) -> dict[str, str]:
        """One line about each, for the head of the table."""
        return {
            "azalea": _first_line(self.azalea, "--version"),
            "ffmpeg": _first_line(self.ffmpeg, "-version"),
            "current ffmpeg": _first_line(self.current, "-version"),
            "ffmpeg4discord": next(p.split("==")[1] for p in PACKAGES if p.startswith("ffmpeg4discord==")),
            "machine": f"{os.cpu_count()} cores, {_processor()}, {platform.system()}",
        }


def find(work: Path, azalea: Path | None) -> Tools:
    """Finds the programs, and makes the venv in `work` when it is not there yet."""
    venv = work / "venv"
    python = venv / "bin" / "python"
    wanted = "\n".join((*PACKAGES_ALONE, *PACKAGES))
    stamp = venv / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        print("making a venv with the peers", file=sys.stderr)
        run([sys.executable, "-m", "venv", venv])
        pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, *PACKAGES])
        run([*pip, "--no-deps", *PACKAGES_ALONE])
        stamp.write_text(wanted)
    current = run([python, "-c", "import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())"]).out.strip()
    packages = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).out.strip()
    if azalea is None:
        root = Path(__file__).resolve().parents[2]
        azalea = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "release" / "azalea"
    if not azalea.exists():
        raise Failed(f"{azalea} is missing: build it by `cargo build --release --locked`, or name it with --azalea")
    # A copy, so that a build that goes on meanwhile does not change what is measured.
    copy = work / "azalea"
    copy.unlink(missing_ok=True)
    shutil.copy2(azalea, copy)
    return Tools(
        work=work,
        azalea=copy,
        ffmpeg=_program("ffmpeg"),
        ffprobe=_program("ffprobe"),
        current=Path(current),
        python=python,
        ff4d=venv / "bin" / "ff4d",
        packages=Path(packages),
    )


def _program(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise Failed(f"the program {name} is missing: install the package ffmpeg")
    return Path(found)


def _first_line(program: Path, option: str) -> str:
    return next(iter(run([program, option]).out.splitlines()), "").partition(" Copyright")[0].removeprefix("ffmpeg version ")


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.machine()
