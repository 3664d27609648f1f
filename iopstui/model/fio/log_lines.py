"""Parse the lines of fio's logs (write_lat_log= and similar) into seconds, without I/O.

A line is ``time, value, direction, block size, offset, ...`` (fio HOWTO, "Log File Formats"): ms
since the job began (with log_unix_epoch since 1970); ns (latencies), KiB/s (bw) or I/Os (iops).
With log_avg_msec a line is for a window that ends at its time, and has no block size; otherwise it
is one I/O. With per_job_logs=0 the jobs' lines follow one another, so the time jumps back."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import sub
from typing import Any

from iopstui.model.histogram import bucket_key, merge, percentile_name, percentiles
from iopstui.model.samples import READ, TRIM, WRITE

KINDS = ("clat", "lat", "slat", "iops", "bw")
"""Kinds of logs. If there are several logs of single I/Os, the first kind of these has the most
information."""
LATENCIES = KINDS[:3]
_NAME = re.compile(r"(.*?)_?(clat|slat|lat|iops|bw)(?:\.(\d{1,9}))?\.log(?:\.gz)?", re.DOTALL)
_DIRECTIONS = {"0": READ, "1": WRITE, "2": TRIM}
_PERCENTILES = (50.0, 95.0, 99.0, 99.9, 99.99)
EPOCH_MS = 10**11
SHORT_SHARE = 0.2
LENGTHS_EXAMINED = 1000
MAX_CUT_SHARE = 1.1
LONGEST_S = 30 * 86400.0
LONGEST_COUNTED_S = 7 * 86400.0
"""Longest span of a log of single I/Os, whose rows are seconds."""
MAX_WINDOWS = 2_000_000
MAX_BUCKETS = 1_000_000
"""Limit for all seconds of a log together."""
MAX_INTERVALS = 4_000_000


@dataclass(frozen=True, slots=True)
class LogName:
    """``PREFIX_KIND.JOB.log``; ``job`` 0: one log of all jobs (per_job_logs=0)."""

    prefix: str
    kind: str
    job: int


def log_name(name: str) -> LogName | None:
    """Parse a log's file name; ``None`` if it is not one."""
    match = _NAME.fullmatch(name)
    return LogName(match[1], match[2], int(match[3] or 0)) if match else None


@dataclass(slots=True)
class SecondIos:
    """I/Os of one direction in a second; only logs of latencies have ``total_ns`` and ``bins``."""

    count: int = 0
    bytes: int = 0
    total_ns: int = 0
    max_ns: int = 0
    bins: dict[int, int] = field(default_factory=dict)

    def add(self, other: SecondIos) -> None:
        """Add the I/Os of another job or second."""
        self.count += other.count
        self.bytes += other.bytes
        self.total_ns += other.total_ns
        self.max_ns = max(self.max_ns, other.max_ns)
        self.bins = merge((self.bins, other.bins))


@dataclass(slots=True)
class Windows:
    """The windows of one job and direction: each begins at the end of the one before. The first
    begins at ``begin``; if that is ``None`` (unknown), it is as long as the others."""

    begin: float | None
    ends: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def until(self, run_end: float) -> Iterator[tuple[float, float, float]]:
        """Yield begin, end and value of each window. fio writes no line for a window cut short by
        the job's end, so the last value counts until the run's end if that is at most a window
        away."""
        begin, last = self.first_begin, self.ends[-1]
        missing = run_end - last
        for end, value in zip(self.ends, self.values, strict=True):
            yield begin, end, value
            begin = end
        if 0 < missing <= MAX_CUT_SHARE * self.length:
            yield last, run_end, self.values[-1]

    @property
    def length(self) -> float:
        """The usual length of a window, in seconds."""
        ends = self.ends[:LENGTHS_EXAMINED]
        lengths: list[float] = sorted(map(sub, ends[1:], ends))
        if lengths:
            return lengths[len(lengths) // 2]
        return 1.0 if self.begin is None else max(0.0, self.ends[0] - self.begin)

    @property
    def first_begin(self) -> float:
        return self.ends[0] - self.length if self.begin is None else self.begin


@dataclass(slots=True)
class FioLog:
    """A parsed log. ``seconds`` holds single I/Os by second and direction, ``windows`` the lines of
    an averaged log by job (one log may have several) and direction. ``lines`` were parsed,
    ``unparsed_lines`` not; ``epoch``: its times are wall-clock times (log_unix_epoch), counted from
    ``base_ms``."""

    kind: str
    seconds: dict[int, dict[str, SecondIos]] = field(default_factory=dict)
    windows: dict[tuple[int, str], Windows] = field(default_factory=dict)
    end: float = 0.0
    lines: int = 0
    unparsed_lines: int = 0
    epoch: bool = False
    base_ms: int = 0

    @property
    def averaged(self) -> bool:
        """Whether the log's lines are averages over windows."""
        return bool(self.windows)


@dataclass(frozen=True, slots=True)
class LogRow:
    """An interval that ends at ``t`` (s): ``iops``, ``bw`` (bytes/s) and mean latency (ns), each
    ``None`` if no log has it, and the histogram of its latencies."""

    t: float
    seconds: float
    iops: float | None = None
    bw: float | None = None
    mean_ns: float | None = None
    bins: dict[int, int] = field(default_factory=dict)


def is_log_line(line: str) -> bool:
    """Whether the line could be a line of such a log."""
    cells = [cell.strip() for cell in line.split(",")]
    return 4 <= len(cells) <= 8 and all(map(_is_count, cells[:2])) and cells[2] in _DIRECTIONS


def _is_count(cell: str) -> bool:
    return cell.isascii() and cell.isdecimal() and len(cell) <= 19


def log_epoch_ms(line: str) -> int | None:
    """The time of a log's first line, if it is a wall-clock time."""
    at = int(line.partition(",")[0]) if is_log_line(line) else 0
    return at if at > EPOCH_MS else None


def read_log(kind: str, lines: Iterable[str], base_ms: int | None = None) -> FioLog:
    """Fold a log's lines; memory grows only with its seconds. Its times count from ``base_ms``
    (``None``: the start of the job, or the time of the first line). ValueError for a log of more
    seconds, windows or different latencies than can be kept."""
    log = FioLog(kind, base_ms=base_ms or 0)
    reader = _Reader(log)
    for line in lines:
        if not is_log_line(line):
            log.unparsed_lines += bool(line.strip())
            continue
        cells = [cell.strip() for cell in line.split(",")]
        at, value, direction = int(cells[0]), int(cells[1]), _DIRECTIONS[cells[2]]
        if not log.lines and at > EPOCH_MS:
            log.epoch = True
            log.base_ms = at if base_ms is None else base_ms
        log.lines += 1
        at = max(0, at - log.base_ms)
        log.end = max(log.end, at / 1000)
        size = int(cells[3]) if _is_count(cells[3]) else 0
        if size:
            reader.add_io(at, direction, value, size)
        else:
            reader.add_window(at, direction, value)
    return log


class _Reader:
    """Sorts the lines of a log into seconds or windows."""

    def __init__(self, log: FioLog) -> None:
        self._log = log
        self._job = self._windows = self._buckets = 0
        self._last: dict[str, int] = {}

    def add_io(self, at: int, direction: str, value: int, size: int) -> None:
        second = self._log.seconds.setdefault(at // 1000, {})
        ios = second.setdefault(direction, SecondIos())
        known = len(ios.bins)
        _add_io(ios, self._log.kind, value, size)
        # count them: a second of a log takes more memory than a bucket
        self._buckets += len(ios.bins) - known + (4 if ios.count == 1 else 0)
        if self._buckets > MAX_BUCKETS:
            raise ValueError(
                f"more than {MAX_BUCKETS:,} counts (one for each latency of each second)"
            )

    def add_window(self, at: int, direction: str, value: int) -> None:
        log = self._log
        if at < self._last.get(direction, at):
            # the lines of the next job begin
            self._job += 1
            self._last.clear()
        self._last[direction] = at
        windows = log.windows.get((self._job, direction))
        if windows is None:
            begin = None if log.epoch else max(0, -log.base_ms) / 1000
            windows = log.windows[self._job, direction] = Windows(begin)
        windows.ends.append(at / 1000)
        windows.values.append(value)
        self._windows += 1
        if self._windows > MAX_WINDOWS:
            raise ValueError(f"more than {MAX_WINDOWS:,} windows")


def _add_io(ios: SecondIos, kind: str, value: int, size: int) -> None:
    ios.count += 1
    ios.bytes += size
    if kind in LATENCIES:
        ios.total_ns += value
        ios.max_ns = max(ios.max_ns, value)
        key = bucket_key(value)
        ios.bins[key] = ios.bins.get(key, 0) + 1


class Logs:
    """The logs of one run together: of several jobs and several kinds. ``maxima``: lines of
    averaged logs are the highest values of their windows (log_max_value), so they give no rate or
    mean."""

    def __init__(self, logs: Sequence[FioLog], maxima: bool = False) -> None:
        self.logs = tuple(logs)
        self.maxima = maxima
        begins = [w.first_begin for log in logs if log.epoch for w in log.windows.values()]
        # how long before the common origin of times the first window began
        self._lead = max(0.0, -min(begins, default=0.0))
        self.end = max((log.end for log in logs), default=0.0) + self._lead
        single = [log for log in logs if log.seconds]
        self.kind = min((log.kind for log in single), key=KINDS.index, default="")
        self._single = [log for log in single if log.kind == self.kind]
        means = [log for log in logs if log.averaged and not maxima]
        self._windows = {
            kind: [log for log in means if log.kind == kind]
            for kind in KINDS
            if any(log.kind == kind for log in means)
        }

    @property
    def bins_of(self) -> str:
        """The kind of latency of the histograms; "" if there are none."""
        return self.kind if self.kind in LATENCIES else ""

    @property
    def mean_of(self) -> str:
        """The kind of latency of the averaged logs' means; "" if there are none."""
        return next((kind for kind in LATENCIES if kind in self._windows), "")

    def rows(self) -> Iterator[LogRow]:
        """Second by second, or in the logs' own windows if these are longer. ValueError for logs
        that span more than ``LONGEST_S`` (of single I/Os: ``LONGEST_COUNTED_S``), which means a
        damaged line."""
        if self.end > (LONGEST_COUNTED_S if self._single else LONGEST_S):
            raise ValueError(f"a log of {self.end / 86400:.0f} days")
        if self._single:
            return self._counted()
        return self._averaged()

    def _counted(self) -> Iterator[LogRow]:
        last = int(self.end) if self.end % 1 >= SHORT_SHARE or self.end < 1 else int(self.end) - 1
        for second in range(last + 1):
            sums = SecondIos()
            following = (second, second + 1) if second == last else (second,)
            for log in self._single:
                for index in following:
                    for ios in log.seconds.get(index, {}).values():
                        sums.add(ios)
            end = max(self.end, second + 1e-3) if second == last else second + 1.0
            length = end - second
            mean = sums.total_ns / sums.count if sums.count and self.bins_of else None
            yield LogRow(end, length, sums.count / length, sums.bytes / length, mean, sums.bins)

    @property
    def began_ms(self) -> float:
        """When the times of the logs begin (ms since 1970); 0 if unknown."""
        bases = [log.base_ms for log in self.logs if log.epoch]
        return min(bases) - 1000 * self._lead if bases else 0.0

    @property
    def _width(self) -> float:
        """The length in seconds of a row of averages."""
        lengths = sorted(windows.length for logs in self._windows.values()
                         for log in logs for windows in log.windows.values())  # fmt: skip
        return max(1.0, lengths[len(lengths) // 2]) if lengths else 1.0

    def _averaged(self) -> Iterator[LogRow]:
        width = self._width
        iops, bw, mean = (
            {index: total / seconds for index, (total, seconds) in sums.items()}
            for sums in (self._sums(kind, width) for kind in ("iops", "bw", self.mean_of))
        )
        for index in sorted({*iops, *bw, *mean}):
            if index and self.end - index * width < SHORT_SHARE * width:
                continue
            end = min((index + 1) * width, max(self.end, index * width + 1e-3))
            speed = bw.get(index)
            yield LogRow(end, end - index * width, iops.get(index),
                         None if speed is None else 1024 * speed, mean.get(index))  # fmt: skip

    def _sums(self, kind: str, width: float, direction: str = "") -> dict[int, tuple[float, float]]:
        """Two values for each interval of ``width`` seconds, by its number: the sum of value times
        seconds over all jobs and directions; and the longest time in seconds that one of these
        covers (for latencies the sum of their times)."""
        totals: dict[int, list[float]] = {}
        covered: dict[int, float] = {}
        reached = 0
        for windows in self._windows_of(kind, direction):
            own: dict[int, float] = {}
            for begin, end, value in windows.until(self.end - self._lead):
                for index, seconds in _intervals_reached(
                    begin + self._lead, end + self._lead, width
                ):
                    sums = totals.setdefault(index, [0.0, 0.0])
                    sums[0] += value * seconds
                    sums[1] += seconds
                    own[index] = own.get(index, 0.0) + seconds
                    reached += 1
                    if reached > MAX_INTERVALS:
                        raise ValueError("some of its windows are far longer than most")
            for index, seconds in own.items():
                covered[index] = max(covered.get(index, 0.0), seconds)
        joined = kind in LATENCIES
        return {
            index: (total, seconds if joined else covered[index])
            for index, (total, seconds) in totals.items()
        }

    def _windows_of(self, kind: str, direction: str) -> Iterator[Windows]:
        for log in self._windows.get(kind, ()):
            for (_, name), windows in log.windows.items():
                if not direction or name == direction:
                    yield windows

    def directions(self) -> dict[str, dict[str, Any]]:
        """The figures of the whole log by direction, named as in ``fio_summary``."""
        if self._single:
            present = {name for log in self._single for d in log.seconds.values() for name in d}
            return {name: self._figures(name) for name in (READ, WRITE, TRIM) if name in present}
        figures = {}
        for name in (READ, WRITE, TRIM):
            means = {kind: _mean(self._sums(kind, self._width, name)) for kind in self._windows}
            if any(value is not None for value in means.values()):
                figures[name] = self._mean_figures(means)
        return figures

    def _figures(self, name: str) -> dict[str, Any]:
        sums = SecondIos()
        for log in self._single:
            for second in log.seconds.values():
                sums.add(second.get(name, SecondIos()))
        length = max(self.end, 1e-3)
        ranked = percentiles(sums.bins, _PERCENTILES)
        return {
            **_EMPTY,
            "iops": sums.count / length,
            "bw_bytes": sums.bytes / length,
            "io_bytes": sums.bytes,
            "total_ios": sums.count,
            "completed": sums.count,
            "runtime_ms": round(1000 * length),
            "clat_mean_ns": sums.total_ns / sums.count if self.bins_of else None,
            "percentiles": {percentile_name(p): value for p, value in ranked.items()},
            "percentiles_of": self.bins_of or "clat",
            "lat_max_ns": sums.max_ns if self.bins_of else None,
        }

    def _mean_figures(self, means: dict[str, float | None]) -> dict[str, Any]:
        speed = means.get("bw")
        return {
            **_EMPTY,
            "iops": means.get("iops"),
            "bw_bytes": None if speed is None else 1024 * speed,
            "clat_mean_ns": means.get(self.mean_of) if self.mean_of else None,
            "runtime_ms": round(1000 * self.end),
        }

    def bins(self) -> dict[str, dict[int, int]]:
        """All latencies by direction."""
        totals: dict[str, dict[int, int]] = {}
        for log in self._single if self.bins_of else ():
            for second in log.seconds.values():
                for name, ios in second.items():
                    totals[name] = merge((totals.get(name, {}), ios.bins))
        return totals


_EMPTY: dict[str, Any] = {
    "iops": None, "bw_bytes": None, "io_bytes": None, "total_ios": None, "completed": None,
    "counted_by": "log", "runtime_ms": 0, "clat_mean_ns": None, "lat_mean_ns": None,
    "percentiles": {}, "percentiles_of": "clat", "lat_max_ns": None,
}  # fmt: skip


def _mean(sums: Mapping[int, tuple[float, float]]) -> float | None:
    seconds = sum(part for _, part in sums.values())
    return sum(total for total, _ in sums.values()) / seconds if seconds else None


def _intervals_reached(begin: float, end: float, width: float) -> Iterator[tuple[int, float]]:
    for index in range(int(begin / width), int(end / width) + 1):
        seconds = min(end, (index + 1) * width) - max(begin, index * width)
        if seconds > 1e-9:
            yield index, seconds
