"""The tables: all figures for the work folder, and the summary for README.md."""

import datetime
import math

import goals
from figures import Pair, known, overall, pairs, peer_pairs
from markdown import mean, mebibytes, percent, ratio, rows, seconds, signed, size
from store import Record, Store
from tools import Tools

RATE_KEY = ("clip", "fraction", "preset", "threads")


def summary(store: Store, tools: Tools) -> str:
    """What README.md shows: each goal with its figure, and how it was made."""
    return (
        f"{_head(tools)}\n"
        f"{goals.table(store)}\n"
        f"Geometric means over {_clips(store)} clips, medians of runs in turn on the same machine; \"two-pass\" is the "
        "`ffmpeg` command line with the same libx264, options, picture size, frame rate, sound and bytes, both of its "
        "processes counted. VMAF is moved to equal size by 6.2 for a doubling. `python3 benches/versus --write-readme` makes "
        "this table; `benches/README.md` says how.\n"
    )


def full(store: Store, tools: Tools) -> str:
    """Everything that was measured."""
    parts = [f"# Azalea beside other tools\n\n{_head(tools)}", "## Goals\n", goals.table(store)]
    sides = sorted({side for record in store.all("rate") for side in record.get("sides", {}) if side != "azalea"},
                   key=lambda side: (side != "two-pass", side))
    for side in sides:
        parts += [f"## Rate control beside `ffmpeg`, {side}\n", _rate(store, side)]
    for title, text in (
        ("Limits", _limits(store)), ("ffmpeg4discord", _peer(store)), ("Many short jobs", _jobs(store)),
        ("Outside the codecs", _overhead(store)), ("Memory", _memory(store)), ("Length", _linear(store)),
    ):
        if text:
            parts += [f"## {title}\n", text]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _head(tools: Tools) -> str:
    versions = "; ".join(f"{name}: {text}" for name, text in tools.versions().items())
    return f"Measured on {datetime.date.today().isoformat()}. {versions}.\n"


def _clips(store: Store) -> int:
    return len({record["clip"] for part in ("rate", "limits", "peer") for record in store.all(part)})


def _rate(store: Store, side: str) -> str:
    records = store.latest("rate", *RATE_KEY)
    found = pairs(records, side)
    lines = [_rate_row(pair) for pair in found]
    for record in records:
        if "refused" in record:
            lines.append([record["clip"], record["preset"], size(record["limit"]), *["–"] * 9, record["refused"]])
    head = ("clip", "preset", "limit", "size", "fill", "redone", "CRF", "CPU", "wall", "bytes of the other", "VMAF", "p5 / p1",
            "")
    text = rows(head, lines)
    for preset in dict.fromkeys(pair.record["preset"] for pair in found):
        own = [pair for pair in found if pair.record["preset"] == preset]
        text += f"- `{preset}`: {_means(own)}\n"
    return text + (_shortfalls(found) if side.startswith("two-pass") else "")


def _rate_row(pair: Pair) -> list[str]:
    record, ours, theirs = pair.record, pair.record["sides"]["azalea"], pair.record["sides"][pair.side]
    crf = record.get("crf")
    return [
        record["clip"], record["preset"], size(record["limit"]),
        f"{record['width']}x{record['height']} {record['fps']:.3g}", percent(record["fill"]), percent(record["redone"]),
        "–" if crf is None else f"{crf:.1f}", f"{ours['cpu']:.1f} / {theirs['cpu']:.1f} s = {ratio(pair.cpu)}",
        f"{ours['wall']:.1f} / {theirs['wall']:.1f} s = {ratio(pair.wall)}", percent(pair.size),
        "–" if pair.mean is None else f"{ours['vmaf']['mean']:.2f} ({signed(pair.mean)})",
        "–" if pair.p5 is None or pair.p1 is None else f"{signed(pair.p5)} / {signed(pair.p1)}",
        "ceiling" if record["ceiling"] else "",
    ]


def _means(found: list[Pair]) -> str:
    words = []
    for name, group in (("20 s and longer", [pair for pair in found if pair.is_long]),
                        ("shorter", [pair for pair in found if not pair.is_long])):
        if group:
            words.append(f"{name}: CPU {ratio(overall(group, lambda pair: pair.cpu))}, "
                         f"wall {ratio(overall(group, lambda pair: pair.wall))}")
    if vmaf := known(pair.mean for pair in found):
        words.append(f"VMAF at equal size {signed(mean(vmaf))}, p5 {signed(mean(known(pair.p5 for pair in found)))}, "
                     f"p1 {signed(mean(known(pair.p1 for pair in found)))}")
    return "; ".join(words)


def _shortfalls(found: list[Pair]) -> str:
    """The clips that miss a goal by themselves, though the goals are for the means."""
    lines = []
    for pair in found:
        missed = []
        if pair.cpu > (goals.CPU_LONG if pair.is_long else goals.CPU_SHORT):
            missed.append(f"CPU {ratio(pair.cpu)}")
        for name, value, least in (("VMAF", pair.mean, goals.VMAF_MEAN), ("p5", pair.p5, 0.0), ("p1", pair.p1, 0.0)):
            if value is not None and value < least:
                missed.append(f"{name} {signed(value)}")
        if missed:
            lines.append(f"  - {pair.record['clip']}, `{pair.record['preset']}`, {mebibytes(pair.record['limit'], 2)}: "
                         f"{', '.join(missed)}")
    return "- Clips that miss a goal by themselves:\n" + "\n".join(lines) + "\n" if lines else ""


def _limits(store: Store) -> str:
    records = store.latest("limits", "clip", "fraction", "preset")
    lines = []
    for clip in dict.fromkeys(record["clip"] for record in records):
        own = [record for record in records if record["clip"] == clip]
        steered = [record for record in own if record["outcome"] == "steered"]
        lines.append([
            clip, str(len(own)), str(len(goals.above(own))), *(str(sum(record["outcome"] == kind for record in own))
                                                                    for kind in ("steered", "ceiling", "kept", "refused")),
            percent(min((record["fill"] for record in steered), default=math.nan)),
            percent(mean(record["fill"] for record in steered)), percent(mean(record["redone"] for record in steered)),
        ])
    text = rows(("clip", "runs", "above the limit", "steered", "at the ceiling", "kept as is", "refused", "least fill",
                 "mean fill", "redone"), lines)
    low = [record for record in records if record["outcome"] == "steered" and record["fill"] < goals.FILL]
    text += "".join(
        f"- {record['clip']}, `{record['preset']}`, {mebibytes(record['limit'], 2)}: filled {percent(record['fill'])}\n"
        for record in low)
    refused = [record for record in records if record["outcome"] == "refused"]
    return text + "".join(
        f"- {record['clip']}, `{record['preset']}`, {mebibytes(record['limit'], 2)}: {record['message']}\n" for record in refused)


def _peer(store: Store) -> str:
    records = store.latest("peer", "clip", "fraction")
    lines = []
    for pair in peer_pairs(records):
        ours, theirs = pair.record["azalea"], pair.record["peer"]
        lines.append([
            pair.record["clip"], size(pair.record["limit"]),
            f"{ours['wall']:.1f} / {theirs['wall']:.1f} s = {ratio(pair.wall)}",
            f"{percent(ours['bytes'] / pair.record['limit'])} / {percent(theirs['bytes'] / pair.record['limit'])}",
            "–" if pair.mean is None else f"{ours['vmaf']['mean']:.2f} / {theirs['vmaf']['mean']:.2f}",
            "–" if pair.p5 is None or pair.p1 is None else f"{signed(pair.p5)} / {signed(pair.p1)}",
        ])
    failed = "".join(f"- {record['clip']}, {mebibytes(record['limit'], 2)}: {record['refused'].splitlines()[0]}\n"
                     for record in records if "refused" in record)
    return rows(("clip", "limit", "wall", "fill", "VMAF at display size", "p5 / p1"), lines) + failed


def _jobs(store: Store) -> str:
    lines = []
    for record in store.latest("jobs", "size"):
        ours, theirs = record["azalea"], record["ffmpeg"]
        per_minute = (goals.JOBS * 60 / ours["wall"], goals.JOBS * 60 / theirs["wall"])
        lines.append([record["size"], str(record["at_once"]), f"{per_minute[0]:.0f}", f"{per_minute[1]:.0f}",
                      ratio(theirs["wall"] / ours["wall"]), ratio(ours["cpu"] / theirs["cpu"]), str(record["over"])])
    text = rows(("size", "at once", "azalea, jobs a minute", "`ffmpeg` pairs", "ratio", "CPU", "above the limit"), lines)
    for record in store.latest("together", "size"):
        text += (f"- {record['size']}: CPU of each of four jobs, {record['at_once']} of them at once, "
                 f"{ratio(record['together']['cpu'] / record['alone']['cpu'])} of the same jobs alone\n")
    return text


def _overhead(store: Store) -> str:
    return rows(
        ("clip", "probe, whole process", "CPU", "starting the program", "`ffprobe`", "probe within a job",
         "all stages outside the codecs", "around the job"),
        ([record["clip"], seconds(record["probe"]["wall"]), seconds(record["probe"]["cpu"]), seconds(record["start"]),
          seconds(record["ffprobe"]["wall"]), seconds(record.get("stages", {}).get("probe", math.nan)),
          seconds(record.get("outside", math.nan)), seconds(record.get("around", math.nan))]
         for record in store.latest("overhead", "clip")))


def _memory(store: Store) -> str:
    text = rows(("clip", "preset", "height", "result", "peak"),
                ([record["clip"], record["preset"], str(record["height"]), mebibytes(record["result"], 1),
                  mebibytes(record["peak"])] for record in store.latest("memory", "clip", "preset")))
    for clip, peaks in goals.peaks_at_once(store).items():
        told = ", ".join(f"{count}: {mebibytes(peak)}" for count, peak in sorted(peaks.items()))
        text += f"- {clip}, jobs at once and their peak: {told}\n"
    return text


def _linear(store: Store) -> str:
    def line(record: Record) -> list[str]:
        short, long = record["short"], record["long"]
        return [record["clip"], record["preset"], f"{short['cpu']:.1f} / {long['cpu']:.1f} s",
                f"{long['cpu'] / short['cpu']:.2f}×", f"{long['wall'] / short['wall']:.2f}×",
                f"{mebibytes(short['peak'])} / {mebibytes(long['peak'])}", mebibytes(record["result"], 1)]

    return rows(("clip", "preset", "CPU of 30 s / 300 s", "ratio", "wall", "peak", "result of 300 s"),
                (line(record) for record in store.latest("linear", "clip", "preset")))
