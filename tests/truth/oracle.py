"""How far each row of a run is from the logs of every I/O. It shares no code with iopstui."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fio_runs import DIRECTIONS, Io, Object, Run

EDGE_S = 0.006
"""Longest time between fio's count of a row's I/Os and its reading of the clock; logs have
milliseconds."""
LATE_S = 0.2
"""iopstui may read the kernel's counters this much later than fio's document."""
SLACK = 2
"""A difference of this many I/Os is no error."""
RACES = tuple(itertools.product((-1, 0, 1), repeat=2))
"""At the beginning and end of a row, fio may count an I/O without its latency, or its latency
without the I/O."""
VARYING = ("bssplit", "bsrange")
COPIED_S = 0.6
"""fio before 3.42 may copy bytes this long before it counts the I/Os. Jobs of ``KINDS`` with such
bytes do an I/O each half second."""
ENOUGH = {50.0: 20, 99.0: 500, 99.9: 10_000}
"""A percentile needs at least this many samples."""
ROUGHLY_S = 0.5
"""Sections that begin or end closer together make no stages."""
NO_MARKS = {"FINAL", "NO_LATENCY", "SOME_LATENCY", "SUBMITTED", "WRONG_LATENCY", "APART"}
"""Flags that don't mark a row's I/Os and bytes as doubtful."""


@dataclass(frozen=True, slots=True)
class Check:
    """A figure that is compared, and the largest allowed error, as a share or in I/Os."""

    bound: float
    what: str


CHECKS = {
    "I/Os": Check(0.02, "a row's IOPS x seconds against the logs of its seconds"),
    "bytes": Check(0.02, "a row's bandwidth x seconds against the logs"),
    "mean": Check(0.02, "a row's mean latency (clat, lat) against the logs"),
    "p50": Check(0.02, "a row's percentile against the logs, nearest rank"),
    "p99": Check(0.02, "the same"),
    "start": Check(0.02, "share of a first row's seconds that was before the first I/O"),
    "section I/Os": Check(0.02, "a section's IOPS in a row against its log"),
    "section bytes": Check(0.02, "a section's bandwidth in a row against its log"),
    "section mean": Check(0.02, "a section's mean latency in a row against its log"),
    "run I/Os": Check(0, "I/Os of all rows against the lines of the logs"),
    "run bytes": Check(0, "bytes of all rows against the logs"),
    "run mean": Check(1e-4, "joined means of all rows against the logs"),
    "steady": Check(0, "whether the run was steady by SNIA's rule, against the rounds of its logs"),
    "run percentile": Check(0.008, "p50, p99, p99.9 of all rows' histograms against the logs"),
}


@dataclass(frozen=True, slots=True)
class Error:
    """The error of one figure, and where it is."""

    figure: str
    error: float
    where: str


class Series:
    """I/Os in the order of their ends."""

    def __init__(self, ios: Sequence[Io]) -> None:
        self.ends = [io.end_s for io in ios]
        self.least = [io.least_s or io.end_s for io in ios]
        self.ns = [io.ns for io in ios]
        self.directions = [io.direction for io in ios]
        self.bytes = list(itertools.accumulate((io.bytes for io in ios), initial=0))
        self.largest = max((io.bytes for io in ios), default=0)
        self.first_s = min((io.end_s - io.ns / 1e9 for io in ios), default=0.0)

    def of(self, direction: str, low: int, high: int) -> list[int]:
        """The latencies of that direction ("": all) from index ``low`` to ``high``."""
        chosen = zip(self.ns[low:high], self.directions[low:high], strict=True)
        return [ns for ns, of in chosen if direction in ("", of)]

    def between(self, begin: float, end: float) -> tuple[int, int]:
        """The indices of the I/Os that ended in these seconds."""
        low = bisect.bisect_right(self.ends, begin)
        return low, max(low, bisect.bisect_right(self.ends, end))

    def counts(self, begin: float, end: float) -> tuple[int, int]:
        """The smallest and the largest number of I/Os that may have ended in these seconds."""
        (low, high), (lowest, highest) = self._limits(begin, end)
        return max(0, high - low), highest - lowest

    def bytes_between(self, begin: float, end: float) -> tuple[int, int]:
        """The smallest and the largest number of bytes."""
        (low, high), (lowest, highest) = self._limits(begin, end)
        return max(0, self.bytes[high] - self.bytes[low]), self.bytes[highest] - self.bytes[lowest]

    def _limits(self, begin: float, end: float) -> tuple[tuple[int, int], tuple[int, int]]:
        """The indices of the I/Os that certainly ended in these seconds, and of those that may
        have."""
        surely = (bisect.bisect_right(self.least, begin + EDGE_S),
                  bisect.bisect_right(self.ends, end - EDGE_S))  # fmt: skip
        perhaps = (bisect.bisect_right(self.ends, begin - EDGE_S),
                   bisect.bisect_right(self.least, end + EDGE_S))  # fmt: skip
        return surely, perhaps


def errors(run: Run) -> Iterator[Error]:
    """Every error of one run."""
    truth = Truth(run)
    for number, (row, begin, end) in enumerate(windows(run.rows, truth.last_s)):
        truth.count(row)
        if end > begin:
            for error in _row_errors(truth, row, begin, end, f"row {number}"):
                if not marked(row, error.figure):
                    yield error
    if run.job.logs and not run.job.ramps:
        yield from _run_errors(run, truth)
        yield from _steadiness(run, truth)


class Truth:
    """A run's logs, by section, direction and kind of latency."""

    def __init__(self, run: Run) -> None:
        self.job = run.job
        self.sections = run.logs
        self.last_s = max(log[-1].end_s for s in run.logs.values() for log in s.values())
        self._series: dict[tuple[str, str, str], Series] = {}
        names = [job["name"] for row in run.rows for job in row["fio"]["jobs"]]
        self.by_section = set(names) == set(run.logs)
        self._places: dict[str, tuple[int, int]] = {}

    def count(self, row: Object) -> None:
        """Go on to the next row: fio logs I/Os in the order in which it counts them, but logs none
        of a ramp."""
        if "RAMP" in row["flags"]:
            return
        counts: dict[str, int] = {}
        for job in row["fio"]["jobs"]:
            name = job["name"] if self.by_section else ""
            counts[name] = counts.get(name, 0) + job["ios"]
        for name, count in counts.items():
            _, before = self._places.get(name, (0, 0))
            self._places[name] = before, before + count

    def latencies(self, kind: str, section: str, direction: str) -> Iterator[list[int]]:
        """The sorted latencies of the row's I/Os, with and without those whose I/O and latency fio
        may have counted in different rows."""
        for low, high in RACES:
            values: list[int] = []
            for name, (begin, end) in self._places.items():
                if section in ("", name):
                    logged = self.series(kind, name)
                    values += logged.of(direction, max(0, begin + low), end + high)
            if values:
                yield sorted(values)

    def series(self, kind: str = "", section: str = "", direction: str = "") -> Series:
        """The I/Os of these logs; "" means all. Every kind of log has all I/Os."""
        key = kind, section, direction
        if key not in self._series:
            logs = [log for name, log in self.sections.items() if section in ("", name)]
            chosen = [log.get(kind) or next(iter(log.values())) for log in logs if log]
            ios = [io for log in chosen for io in log if direction in ("", io.direction)]
            self._series[key] = Series(sorted(ios, key=lambda io: io.end_s))
        return self._series[key]

    def shifts(self, *options: str) -> list[float]:
        """How much earlier than its end a row's figures may have been taken, if these options make
        fio copy them."""
        copied = any(not set(options).isdisjoint(each) for each in self.job.sections.values())
        return [n * COPIED_S / 60 for n in range(61 if copied else 1)]

    def has(self, kind: str) -> bool:
        """Whether all sections logged that kind of latency."""
        return all(kind in kinds for kinds in self.sections.values())


def marked(row: Object, figure: str = "") -> bool:
    """Whether the row itself marks this figure (I/Os, bytes, mean ...), or any, as possibly of
    other seconds."""
    flags = set(row["flags"]) - NO_MARKS
    if figure and not figure.endswith("bytes"):
        flags.discard("APPROX_BW")
    if figure and figure != "start" and not figure.endswith("I/Os"):
        flags.discard("APPROX_IOPS")
    return bool(flags)


def windows(rows: Sequence[Object], last_s: float) -> Iterator[tuple[Object, float, float]]:
    """Every row with its beginning and end by fio's clock. fio prints its last document some time
    after its jobs have ended, so the last row is placed right after the previous one."""
    before = None
    for row in rows:
        seconds = row["fio"]["seconds"] or 0.0
        end = (row["wall_ms"] - (row["skew_ms"] or 0)) / 1000
        if row["skew_ms"] is None and before is not None:
            end = before + seconds
        elif "FINAL" in row["flags"]:
            end = min(end, last_s + EDGE_S if before is None else before + seconds)
        elif before is not None and 0 < before + seconds - end < LATE_S:
            # rows follow one another; ``wall_ms`` may be earlier than the reading from which skew
            # is measured
            end = before + seconds
        yield row, end - seconds, end
        before = end


def could_be_true(rows: Sequence[Object], run: Run) -> list[Object]:
    """The rows that can be true: no section or ramp begins or ends in them, and they are not much
    shorter than the others."""
    changes: list[float] = []
    for kinds in run.logs.values():
        series = Series(next(iter(kinds.values()), []))
        if series.ends:
            changes += [series.first_s, series.ends[-1]]
    last_s = max(changes, default=math.inf)
    return [
        row for row, begin, end in windows(rows, last_s)
        if not {"FINAL", "RAMP", "RESET"} & set(row["flags"])
        and not any(begin + 0.02 < at < end - 0.02 for at in changes)
        and (row["fio"]["seconds"] is None or end - begin >= 0.8 * run.job.interval_s)
    ]  # fmt: skip


def _row_errors(truth: Truth, row: Object, begin: float, end: float, where: str) -> Iterator[Error]:
    fio = row["fio"]
    before = max(0.0, truth.series().first_s - begin)
    yield Error("start", max(0.0, before - EDGE_S) / (end - begin), where)
    for direction in ("total", *DIRECTIONS):
        figures = fio[direction]
        if figures is not None:
            only = "" if direction == "total" else direction
            yield from _figures(
                "", truth, (only, ""), figures, (begin, end), f"{where} {direction}"
            )
    for job in fio["jobs"] if truth.by_section else ():
        name = job["name"]
        yield from _figures("section ", truth, ("", name), job, (begin, end), f"{where} {name}")


def _figures(
    prefix: str, truth: Truth, of: tuple[str, str], figures: Object,
    window: tuple[float, float], where: str,
) -> Iterator[Error]:  # fmt: skip
    direction, section = of
    begin, end = window
    series = truth.series("", section, direction)
    if figures["iops"] is not None:
        ios, shifts = figures["iops"] * (end - begin), truth.shifts("gtod_reduce")
        offs = [_off(ios, series.counts(begin - at, end - at), SLACK) for at in shifts]
        yield Error(f"{prefix}I/Os", min(offs), where)
    if figures["bw"] is not None:
        size, shifts = figures["bw"] * (end - begin), truth.shifts("gtod_reduce", *VARYING)
        slack = SLACK * series.largest
        offs = [_off(size, series.bytes_between(begin - at, end - at), slack) for at in shifts]
        yield Error(f"{prefix}bytes", min(offs), where)
    for kind in ("clat", "lat"):
        stated = figures.get(kind)
        if stated and stated["mean"] and truth.has(kind) and figures["ios"] > SLACK:
            exact = list(truth.latencies(kind, section, direction))
            yield from _latencies(prefix, stated, figures["ios"], exact, where)


def _off(value: float, limits: tuple[float, float], slack: float) -> float:
    low, high = limits
    out = max(low - slack - value, value - high - slack, 0.0)
    return out / max(1.0, high)


def _latencies(
    prefix: str, stated: Object, count: int, exact: Sequence[Sequence[int]], where: str
) -> Iterator[Error]:
    """The smallest error over all that fio may have counted."""
    if not exact:
        return
    means = [sum(values) / len(values) for values in exact]
    yield Error(f"{prefix}mean", min(_relative(stated["mean"], m) for m in means), where)
    for name, p in (("p50", 50.0), ("p99", 99.0)):
        if stated.get(name) is not None and count >= ENOUGH[p] and not prefix:
            offs = [min(_relative(stated[name], v) for v in _ranks(p, values)) for values in exact]
            yield Error(name, min(offs), where)


def _relative(value: float, exact: float) -> float:
    return abs(value - exact) / max(1.0, exact)


def _ranks(p: float, values: Sequence[int]) -> Sequence[int]:
    """The value at the percentile, and its neighbours, because an I/O at an edge moves it by
    one."""
    rank = max(1, math.ceil(round(p / 100 * len(values), 6)))
    return values[max(0, rank - 2) : rank + 1]


def _run_errors(run: Run, truth: Truth) -> Iterator[Error]:
    totals = [row["fio"]["total"] for row in run.rows]
    series = truth.series()
    yield Error("run I/Os", abs(sum(t["ios"] for t in totals) - len(series.ends)), "all rows")
    yield Error("run bytes", abs(sum(t["bytes"] for t in totals) - series.bytes[-1]), "all rows")
    for kind in ("clat", "lat"):
        parts = [(t[kind]["mean"], t[kind]["n"]) for t in totals if t[kind]["n"]]
        if parts and truth.has(kind):
            logged = truth.series(kind)
            mean = sum(mean * n for mean, n in parts) / sum(n for _, n in parts)
            yield Error("run mean", _relative(mean, sum(logged.ns) / len(logged.ns)), kind)
    for direction in (*DIRECTIONS, "mixed"):
        parts_of = [row["fio"][direction] for row in run.rows if row["fio"][direction]]
        if parts_of:
            yield from _run_percentiles(truth, direction, parts_of)


def _steadiness(run: Run, truth: Truth) -> Iterator[Error]:
    """SNIA's rule on the last five rounds of a constant load. A load whose stages are all constant
    must not be called unsteady."""
    said, series = run.steady["steady"], truth.series()
    if said is None:
        return
    parts = [truth.series("", name) for name in run.logs]
    parts = [part for part in parts if len(part.ends) >= 0.05 * len(series.ends)]
    for times in ([part.first_s for part in parts], [part.ends[-1] for part in parts]):
        if max(times) - min(times) > ROUGHLY_S:
            steady = all(_steady(part, part.ends) == {True} for part in parts)
            yield Error("steady", float(said is False and steady), "stages")
            return
    edges = [series.first_s, *(end for _, _, end in windows(run.rows, truth.last_s))]
    # a short stall is visible in the logs but not in the rows
    truths = _steady(series, series.ends) | _steady(series, edges)
    yield Error("steady", float(said not in truths), "five rounds")


def _steady(series: Series, times: Sequence[float]) -> set[bool]:
    """Whether these I/Os were steady, by their counts at these times, interpolated in between. The
    answer may depend on where the rounds begin, so there may be two."""
    found = set()
    for shift in range(10):
        end = series.ends[-1] - 0.1 * shift
        round_s = (end - series.first_s) / 5
        marks = [_interpolated(series, times, end - n * round_s) for n in range(6)]
        rates = [high - low for high, low in itertools.pairwise(marks)]
        mean = max(1e-9, sum(rates) / 5)
        slope = abs(sum((n - 2) * rate for n, rate in enumerate(rates))) / 10 * 4 / mean
        found.add((max(rates) - min(rates)) / mean <= 0.2 and slope <= 0.1)
    return found


def _interpolated(series: Series, times: Sequence[float], at: float) -> float:
    place = bisect.bisect_right(times, at)
    if not 0 < place < len(times):
        return bisect.bisect_right(series.ends, at)
    low, high = times[place - 1 : place + 1]
    before, after = (bisect.bisect_right(series.ends, t) for t in (low, high))
    return before + (after - before) * (at - low) / (high - low)


def _run_percentiles(truth: Truth, direction: str, parts: Sequence[Object]) -> Iterator[Error]:
    kind = parts[-1]["bins_of"]
    bins: dict[int, int] = {}
    for part in parts:
        for key, count in part.get("bins", {}).items():
            bins[int(key)] = bins.get(int(key), 0) + count
    values = sorted(truth.series(kind, "", direction.replace("mixed", "")).ns)
    if not bins or not truth.has(kind) or sum(bins.values()) != len(values):
        return
    for p, least in ENOUGH.items():
        if len(values) >= least:
            offs = [_relative(_bin_at(bins, p), value) for value in _ranks(p, values)]
            yield Error("run percentile", min(offs), f"{direction} p{p:g}")


def _bin_at(bins: Mapping[int, int], p: float) -> int:
    """The bucket of the percentile."""
    rank, seen = math.ceil(round(p / 100 * sum(bins.values()), 6)), 0
    for key in sorted(bins):
        seen += bins[key]
        if seen >= rank:
            return key
    return 0
