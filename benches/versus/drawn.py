"""Draws what only a screen shows: code, a terminal, a game's display, captions. Runs with the venv's Pillow.

Usage: drawn.py FOLDER. The words come from a seeded generator and the letters from Pillow's own font, so that the
pictures are the same everywhere.
"""

import random
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]

WORDS = (
    "packet frame index segment budget limit probe reader writer offset length queue worker lease token clock delay "
    "header sample track layout bytes stream buffer cursor window column record entry policy counter retry"
).split()
INK: dict[str, Colour] = {
    "key": (198, 120, 221), "name": (97, 175, 239), "text": (171, 178, 191), "number": (209, 154, 102),
    "string": (152, 195, 121), "note": (92, 99, 112),
}


def code(path: Path, width: int, height: int) -> None:
    """An editor's page, taller than the screen, to be scrolled."""
    dice = random.Random(11)
    font = ImageFont.load_default(22)
    picture = Image.new("RGB", (width, height), (40, 44, 52))
    pen = ImageDraw.Draw(picture)
    depth = 0
    for line, y in enumerate(range(8, height - 30, 30), start=1):
        pen.text((24, y), f"{line:4}", (75, 82, 99), font)
        if dice.random() < 0.12:
            depth = 0
            continue
        x = 110 + 44 * depth
        for kind, word in _statement(dice, depth):
            pen.text((x, y), word, INK[kind], font)
            x += int(pen.textlength(word + " ", font))
        depth = max(0, min(4, depth + dice.choice((-1, 0, 0, 1))))
    # A tree of files beside it.
    pen.rectangle((width - 420, 0, width, height), (33, 37, 43))
    for y in range(8, height - 30, 28):
        name = f"{dice.choice(WORDS)}_{dice.choice(WORDS)}.rs"
        pen.text((width - 390 + 24 * dice.randrange(3), y), name, (130, 137, 151), ImageFont.load_default(19))
    picture.save(path)


def _statement(dice: random.Random, depth: int) -> list[tuple[str, str]]:
    a, b, c = (dice.choice(WORDS) for _ in range(3))
    forms: tuple[list[tuple[str, str]], ...] = (
        [("key", "let"), ("name", a), ("text", "="), ("name", f"{b}.{c}()"), ("text", ";")],
        [("key", "if"), ("name", f"{a}.{b}()"), ("text", ">"), ("number", str(dice.randrange(9999))), ("text", "{")],
        [("key", "return"), ("name", f"{a}::{b}"), ("string", f'"{c} {a} {b}"'), ("text", ");")],
        [("note", f"// the {a} keeps its {b} until the {c} has seen the {dice.choice(WORDS)}")],
        [("key", "pub fn"), ("name", f"{a}_{b}"), ("text", f"(&self, {c}: u64) -> Result<{b.title()}> {{")],
    )
    return forms[4] if depth == 0 else dice.choice(forms[:4])


def terminal(path: Path, width: int, height: int) -> None:
    """The output of a long build: short bright lines on black."""
    dice = random.Random(12)
    font = ImageFont.load_default(20)
    picture = Image.new("RGB", (width, height), (12, 12, 14))
    pen = ImageDraw.Draw(picture)
    for y in range(6, height - 28, 27):
        state, ink = dice.choice((("Compiling", (80, 220, 100)), ("Checking", (90, 200, 230)), ("warning:", (230, 200, 80))))
        pen.text((20, y), state, ink, font)
        pen.text((160, y), f"{dice.choice(WORDS)}-{dice.choice(WORDS)} v{dice.randrange(9)}.{dice.randrange(40)}."
                 f"{dice.randrange(9)} ({dice.choice(WORDS)}/{dice.choice(WORDS)})", (210, 210, 210), font)
    picture.save(path)


def display(path: Path, width: int, height: int) -> None:
    """What a game draws over its world: bars, a map, numbers; transparent elsewhere."""
    dice = random.Random(13)
    picture = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    pen = ImageDraw.Draw(picture)
    font = ImageFont.load_default(26)
    pen.rectangle((30, height - 60, 430, height - 30), (20, 20, 20, 200), (230, 230, 230, 255), 3)
    pen.rectangle((34, height - 56, 330, height - 34), (200, 40, 40, 255))
    pen.text((34, height - 96), "HEALTH 74 / 100", (255, 255, 255, 255), font)
    pen.text((width - 240, height - 70), "AMMO 17 | 120", (255, 240, 150, 255), font)
    pen.ellipse((width - 230, 20, width - 20, 230), (20, 40, 30, 190), (230, 230, 230, 255), 3)
    for _ in range(25):
        x, y = dice.randrange(width - 190, width - 60), dice.randrange(60, 190)
        pen.ellipse((x, y, x + 6, y + 6), (240, 80, 60, 255))
    for line in range(4):
        pen.text((30, 30 + 30 * line), f"{dice.choice(WORDS)} > {dice.choice(WORDS)} +{dice.randrange(99)}",
                 (255, 255, 255, 230), ImageFont.load_default(20))
    picture.save(path)


def caption(path: Path, width: int, text: str) -> None:
    """Large words on a bar, as laid over portrait clips."""
    picture = Image.new("RGBA", (width, 130), (0, 0, 0, 0))
    pen = ImageDraw.Draw(picture)
    pen.rounded_rectangle((60, 10, width - 60, 120), 24, (255, 255, 255, 255))
    pen.text((width / 2, 65), text, (20, 20, 20, 255), ImageFont.load_default(56), anchor="mm")
    picture.save(path)


def pointer(path: Path) -> None:
    """A mouse pointer."""
    picture = Image.new("RGBA", (28, 42), (0, 0, 0, 0))
    shape = [(1, 1), (1, 33), (9, 26), (15, 40), (20, 38), (14, 24), (26, 24)]
    ImageDraw.Draw(picture).polygon(shape, (255, 255, 255, 255), (0, 0, 0, 255))
    picture.save(path)


def main() -> None:
    """Draws everything into the folder named on the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    code(folder / "code.png", 1920, 12000)
    terminal(folder / "terminal.png", 1920, 9000)
    display(folder / "display.png", 1280, 720)
    pointer(folder / "pointer.png")
    for number, text in enumerate(("wait for the tram", "he did not expect this", "part 2 tomorrow?"), start=1):
        caption(folder / f"caption{number}.png", 1080, text)


if __name__ == "__main__":
    main()
