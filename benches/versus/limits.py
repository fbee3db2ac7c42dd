"""Part `limits`: many limits, azalea alone: is any file above its limit, how full is it, what was encoded again?"""

import sys

import azalea
from azalea import Refused
from clips import Clip
from settings import Settings
from store import Store
from tools import Tools


def run(settings: Settings, tools: Tools, store: Store, clips: list[Clip]) -> None:
    """Measures what is not yet in the store."""
    folder = tools.work / "out" / "limits"
    folder.mkdir(parents=True, exist_ok=True)
    for clip in clips:
        for fraction in settings.limit_fractions:
            for preset in settings.presets:
                key = {"clip": clip.name, "fraction": fraction, "preset": preset}
                if not settings.again and store.find("limits", **key) is not None:
                    continue
                print(f"limits: {clip.name}, {preset}, {fraction} of the source", file=sys.stderr)
                limit = int(clip.bytes * fraction) // 1024 * 1024
                out = folder / f"{clip.name}.mp4"
                made = azalea.fit(tools, clip.path, limit, preset, out)
                if isinstance(made, Refused):
                    store.add("limits", **key, limit=limit, outcome="refused", message=made.message)
                    continue
                report = made.report
                store.add(
                    "limits", **key, limit=limit, outcome=_outcome(made), bytes=made.bytes, fill=made.bytes / limit,
                    redone=made.redone, crf=report.get("crf"), width=report.get("width"), height=report.get("height"),
                    fps=report.get("fps"), cpu=made.cost.cpu,
                )
                out.unlink()


def _outcome(made: azalea.Fitted) -> str:
    """`steered` when the limit decided the size; else why the file may be smaller."""
    if made.report.get("action") != "transcode":
        return "kept"
    return "ceiling" if made.at_ceiling else "steered"
