"""Makes the clips once and keeps them: H.264 and AAC in mp4, as a phone or a site would hand them on."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import material
from measure import run
from recipes import RECIPES, Recipe, Sound
from tools import Tools


@dataclass(frozen=True)
class Clip:
    """A source file of the comparisons."""

    name: str
    path: Path
    seconds: float
    width: int
    height: int
    sound: bool

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return self.path.stat().st_size


def make(tools: Tools, names: list[str] | None) -> list[Clip]:
    """The clips of these names, or all, in the order of the recipes. What lacks its material is left out."""
    folder = tools.work / "clips"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [recipe for recipe in RECIPES if names is None or recipe.name in names]
    unknown = set(names or ()) - {recipe.name for recipe in RECIPES}
    if unknown:
        raise SystemExit(f"no such clip: {', '.join(sorted(unknown))}; there are "
                         f"{', '.join(recipe.name for recipe in RECIPES)}")
    if any(not (folder / f"{recipe.name}.mp4").exists() for recipe in chosen):
        _make_missing(chosen, folder, tools)
    return [_clip(recipe, folder) for recipe in chosen if (folder / f"{recipe.name}.mp4").exists()]


def _make_missing(chosen: list[Recipe], folder: Path, tools: Tools) -> None:
    have = material.fetch(tools)
    drawn = folder / "drawn"
    if not (drawn / "pointer.png").exists():
        run([tools.python, Path(__file__).with_name("drawn.py"), drawn])
    by_name = {recipe.name: recipe for recipe in RECIPES}

    def ensure(recipe: Recipe) -> bool:
        path = folder / f"{recipe.name}.mp4"
        if path.exists():
            return True
        missing = recipe.material() - have.keys()
        if missing or not all([ensure(by_name[name]) for name in sorted(recipe.clips())]):
            print(f"clip {recipe.name} is left out: it needs {', '.join(sorted(missing)) or 'other clips'}", file=sys.stderr)
            return False
        print(f"making clip {recipe.name}", file=sys.stderr)
        temporary = path.with_suffix(".part")
        run(command(recipe, tools.current, have, drawn, folder, temporary))
        temporary.rename(path)
        return True

    for recipe in chosen:
        ensure(recipe)


def command(recipe: Recipe, ffmpeg: Path, have: dict[str, Path], drawn: Path, folder: Path, out: Path) -> list[str]:
    """The command that makes a clip. The pinned static `ffmpeg` is used, so that the clips are alike everywhere."""
    words = [str(ffmpeg), "-nostdin", "-v", "error", "-y", "-bitexact"]
    for text in recipe.inputs:
        for word in shlex.split(text):
            if word.startswith("{"):
                word = str(have[word[1:-1]])
            elif word.startswith("@"):
                word = str(drawn / word[1:])
            elif word.startswith("="):
                word = str(folder / f"{word[1:]}.mp4")
            words.append(word)
    graph = recipe.graph
    if recipe.sound is not Sound.NONE:
        source = have["trailer" if recipe.sound is Sound.TRAILER else "box"]
        words += ["-stream_loop", "-1", "-i", str(source)]
        graph += f";[{len(recipe.inputs)}:a]aresample=48000,aformat=channel_layouts=stereo[a]"
    words += ["-filter_complex", graph, "-map", "[v]"]
    if recipe.sound is not Sound.NONE:
        words += ["-map", "[a]", "-c:a", "aac", "-b:a", "128k"]
    numerator, _, denominator = recipe.rate.partition("/")
    frames = round(int(numerator) / int(denominator or 1) * recipe.gop)
    words += [
        "-t", str(recipe.seconds), "-r", recipe.rate, "-c:v", "libx264", "-preset", "medium", "-threads", "2",
        "-b:v", f"{recipe.kbps}k", "-maxrate", f"{recipe.kbps * 3 // 2}k", "-bufsize", f"{recipe.kbps * 2}k",
        "-g", str(frames), "-color_range", "tv", "-colorspace", "bt709", "-color_primaries", "bt709",
        "-color_trc", "bt709", "-movflags", "+faststart", "-f", "mp4", str(out),
    ]
    return words


def _clip(recipe: Recipe, folder: Path) -> Clip:
    return Clip(recipe.name, folder / f"{recipe.name}.mp4", recipe.seconds, recipe.width, recipe.height,
                recipe.sound is not Sound.NONE)
