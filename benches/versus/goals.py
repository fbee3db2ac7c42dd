"""The goals that azalea is held against, and the table of what was reached."""

from collections.abc import Callable

from figures import Pair, known, overall, pairs, peer_pairs
from markdown import MIB, mean, mebibytes, percent, ratio, rows, seconds, signed
from store import Record, Store

CPU_LONG, CPU_SHORT = 0.78, 0.95
VMAF_MEAN = -0.15
FILL, FILL_OFTEN, OFTEN = 0.96, 0.98, 0.75
REDONE = 0.06
PEER_WALL = 0.45
JOBS = 20
JOBS_RATIO = {"320x180": 1.8, "720p": 1.3}
TOGETHER = 1.05
OUTSIDE, PROBE = 0.060, 0.005
PEAK, PEAK_MORE = 280 * MIB, 150 * MIB
LINEAR = (9.5, 10.5)

Line = tuple[str, str, str, bool | None]


def table(store: Store) -> str:
    """Each goal, its figure and whether it was reached. What was not measured has no row."""
    lines: list[Line] = []
    for add in (_rate, _limits, _peer, _jobs, _overhead, _memory, _linear):
        add(store, lines)
    return rows(("", "goal", "measured", ""),
                ([what, goal, figure, {True: "reached", False: "**missed**", None: ""}[reached]]
                 for what, goal, figure, reached in lines))


def above(records: list[Record]) -> list[Record]:
    """The results that are larger than their limits."""
    return [record for record in records if record.get("bytes", 0) > record["limit"]]


def peaks_at_once(store: Store) -> dict[str, dict[int, int]]:
    """Peaks by clip and number of jobs at once."""
    peaks: dict[str, dict[int, int]] = {}
    for record in store.latest("memory at once", "clip", "count"):
        peaks.setdefault(record["clip"], {})[record["count"]] = record["peak"]
    return peaks


def _rate(store: Store, lines: list[Line]) -> None:
    records = store.latest("rate", "clip", "fraction", "preset", "threads")
    for preset in dict.fromkeys(record["preset"] for record in records):
        found = pairs((record for record in records if record["preset"] == preset), "two-pass")
        for name, goal, group in ((f"CPU to two-pass, `{preset}`, 20 s and longer", CPU_LONG, [p for p in found if p.is_long]),
                                  (f"CPU to two-pass, `{preset}`, shorter", CPU_SHORT, [p for p in found if not p.is_long])):
            if group:
                figure = overall(group, lambda pair: pair.cpu)
                lines.append((name, f"≤ {goal}×", ratio(figure), figure <= goal))
        values: tuple[tuple[str, float, Callable[[Pair], float | None]], ...] = (
            ("mean", VMAF_MEAN, lambda pair: pair.mean), ("5th percentile", 0.0, lambda pair: pair.p5),
            ("1st percentile", 0.0, lambda pair: pair.p1))
        for name, least, value in values:
            if differences := known(value(pair) for pair in found):
                lines.append((f"VMAF at equal size, `{preset}`, {name}", f"≥ {signed(least)}", signed(mean(differences)),
                              mean(differences) >= least))


def _limits(store: Store, lines: list[Line]) -> None:
    records = store.latest("limits", "clip", "fraction", "preset")
    if not records:
        return
    over = len(above(records))
    lines.append((f"files above the limit, of {len(records)}", "0", str(over), over == 0))
    steered = [record for record in records if record["outcome"] == "steered"]
    if steered:
        least = min(record["fill"] for record in steered)
        often = mean(float(record["fill"] >= FILL_OFTEN) for record in steered)
        redone = mean(record["redone"] for record in steered)
        lines.append(("least fill", f"≥ {percent(FILL, 0)}", percent(least), least >= FILL))
        lines.append((f"files filled to {percent(FILL_OFTEN, 0)}", f"≥ {percent(OFTEN, 0)}", percent(often), often >= OFTEN))
        lines.append(("frames redone, mean", f"≤ {percent(REDONE, 0)}", percent(redone), redone <= REDONE))


def _peer(store: Store, lines: list[Line]) -> None:
    found = peer_pairs(store.latest("peer", "clip", "fraction"))
    if found:
        figure = overall(found, lambda pair: pair.wall)
        lines.append(("wall to ffmpeg4discord", f"≤ {PEER_WALL}×", ratio(figure), figure <= PEER_WALL))
        if differences := known(pair.mean for pair in found):
            lines.append(("VMAF at display size to ffmpeg4discord", "≥ 0", signed(mean(differences)), mean(differences) >= 0))


def _jobs(store: Store, lines: list[Line]) -> None:
    for record in store.latest("jobs", "size"):
        figure, goal = record["ffmpeg"]["wall"] / record["azalea"]["wall"], JOBS_RATIO[record["size"]]
        lines.append((f"{JOBS} short jobs a minute to `ffmpeg` pairs, {record['size']}", f"≥ {goal}×", ratio(figure),
                      figure >= goal))
    for record in store.latest("together", "size"):
        figure = record["together"]["cpu"] / record["alone"]["cpu"]
        lines.append((f"CPU of a job among four, {record['at_once']} at once, to one alone, {record['size']}",
                      f"≤ {TOGETHER}×", ratio(figure), figure <= TOGETHER))


def _overhead(store: Store, lines: list[Line]) -> None:
    records = store.latest("overhead", "clip")
    outside = [record["outside"] + record["around"] for record in records if "outside" in record]
    if outside:
        lines.append(("outside the codecs, a job, most", f"≤ {seconds(OUTSIDE)}", seconds(max(outside)), max(outside) <= OUTSIDE))
    probes = [record["stages"]["probe"] for record in records if "probe" in record.get("stages", {})]
    if probes:
        lines.append(("probe of an indexed mp4, most", f"≤ {seconds(PROBE)}", seconds(max(probes)), max(probes) <= PROBE))


def _memory(store: Store, lines: list[Line]) -> None:
    for preset in dict.fromkeys(record["preset"] for record in store.latest("memory", "clip", "preset")):
        peaks = [record["peak"] for record in store.latest("memory", "clip", "preset") if record["preset"] == preset]
        lines.append((f"peak memory to 720p, `{preset}`, most", f"≤ {mebibytes(PEAK)}", mebibytes(max(peaks)),
                      max(peaks) <= PEAK))
    more = [(peak - peaks[1]) / (count - 1) for peaks in peaks_at_once(store).values() if 1 in peaks
            for count, peak in peaks.items() if count > 1]
    if more:
        lines.append(("each further job at once, most", f"≤ {mebibytes(PEAK_MORE)}", mebibytes(max(more)),
                      max(more) <= PEAK_MORE))


def _linear(store: Store, lines: list[Line]) -> None:
    for record in store.latest("linear", "clip", "preset"):
        figure = record["long"]["cpu"] / record["short"]["cpu"]
        lines.append((f"CPU of ten times the length, `{record['preset']}`", f"{LINEAR[0]} to {LINEAR[1]}×", f"{figure:.2f}×",
                      LINEAR[0] <= figure <= LINEAR[1]))
        growth = record["long"]["peak"] - record["short"]["peak"]
        lines.append((f"memory of ten times the length, `{record['preset']}`", "the result's growth",
                      f"{growth / MIB:+.0f} MiB for {mebibytes(record['result'] * 0.9)} more result", None))
