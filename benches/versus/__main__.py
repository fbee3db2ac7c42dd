"""Compares azalea with the `ffmpeg` command line and with tools that people use: `python3 benches/versus --help`."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True

import clips as sources  # noqa: E402
import jobs  # noqa: E402
import limits  # noqa: E402
import peer  # noqa: E402
import rate  # noqa: E402
import settings as command_line  # noqa: E402
import shape  # noqa: E402
import table  # noqa: E402
import tools as programs  # noqa: E402
from store import Store, build_of  # noqa: E402

RUN = {
    "rate": rate.run, "limits": limits.run, "peer": peer.run, "jobs": jobs.run, "overhead": shape.overhead,
    "memory": shape.memory, "linear": shape.linear,
}
BEGIN, END = "<!-- versus: begin -->", "<!-- versus: end -->"


def main() -> None:
    """Makes clips, measures, and writes the tables."""
    settings = command_line.read()
    settings.work.mkdir(parents=True, exist_ok=True)
    tools = programs.find(settings.work, settings.azalea)
    store = Store(settings.work / "results.jsonl", build_of(tools.azalea))
    if settings.measure:
        clips = sources.make(tools, settings.clips)
        if not clips:
            raise SystemExit("no clip could be made")
        for part in settings.parts:
            RUN[part](settings, tools, store, clips)
    text = table.full(store, tools)
    (settings.work / "results.md").write_text(text)
    print(text)
    if settings.readme is not None:
        _write_between(settings.readme, table.summary(store, tools))


def _write_between(path: Path, text: str) -> None:
    """Replaces what stands between the marks."""
    old = path.read_text()
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path.name} lacks the marks {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{text.rstrip()}\n{END}{after}")


if __name__ == "__main__":
    main()
