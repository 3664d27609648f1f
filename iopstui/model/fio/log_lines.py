"""Parse the lines of fio's logs (write_lat_log= and similar) into seconds, without I/O.

A line is ``time, value, direction, block size, offset, ...`` (fio HOWTO, "Log File Formats"): ms
since the job began; ns (latencies), KiB/s (bw) or I/Os (iops). With log_avg_msec a line stands for
a window that ends at its time, and has no block size; otherwise it is one I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from iopstui.model.histogram import bucket_key, merge, percentile_name, percentiles
from iopstui.model.samples import READ, TRIM, WRITE

KINDS = ("clat", "lat", "slat", "iops", "bw")
"""What is logged; of several logs of single I/Os the first tells the most."""
LATENCIES = KINDS[:3]
_NAME = re.compile(r"(.*?)_?(clat|slat|lat|iops|bw)(?:\.(\d+))?\.log", re.DOTALL)
_DIRECTIONS = {"0": READ, "1": WRITE, "2": TRIM}
_PERCENTILES = (50.0, 95.0, 99.0, 99.9, 99.99)
EPOCH_MS = 10**11
SHORT_SHARE = 0.2
LONGEST_S = 30 * 86400.0


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
    """I/Os of one direction in a second; ``total_ns`` and ``bins`` of a log of latencies alone."""

    count: int = 0
    bytes: int = 0
    total_ns: int = 0
    max_ns: int = 0
    bins: dict[int, int] = field(default_factory=dict)

    def add(self, other: SecondIos) -> None:
        """Add those of another job or second."""
        self.count += other.count
        self.bytes += other.bytes
        self.total_ns += other.total_ns
        self.max_ns = max(self.max_ns, other.max_ns)
        self.bins = merge((self.bins, other.bins))


@dataclass(slots=True)
class FioLog:
    """A parsed log. ``seconds`` holds single I/Os by second and direction, ``windows`` the lines of
    an averaged log: (begin, end, direction, value). ``lines`` were parsed,
    ``unparsed_lines`` not;
    ``epoch``: its times are those of the wall clock (log_unix_epoch), counted from the first."""

    kind: str
    seconds: dict[int, dict[str, SecondIos]] = field(default_factory=dict)
    windows: list[tuple[float, float, str, float]] = field(default_factory=list)
    end: float = 0.0
    lines: int = 0
    unparsed_lines: int = 0
    epoch: bool = False

    @property
    def averaged(self) -> bool:
        """Whether its lines are windows."""
        return bool(self.windows)


@dataclass(frozen=True, slots=True)
class LogRow:
    """An interval that ends at ``t`` (s): ``iops``, ``bw`` (bytes/s) and mean latency (ns), each
    ``None`` where no log says it, and the histogram of its latencies."""

    t: float
    seconds: float
    iops: float | None = None
    bw: float | None = None
    mean_ns: float | None = None
    bins: dict[int, int] = field(default_factory=dict)


def is_log_line(line: str) -> bool:
    """Whether it could be a line of such a log."""
    cells = [cell.strip() for cell in line.split(",")]
    return 4 <= len(cells) <= 8 and all(map(_is_count, cells[:2])) and cells[2] in _DIRECTIONS


def _is_count(cell: str) -> bool:
    return cell.isascii() and cell.isdecimal() and len(cell) <= 19


def read_log(kind: str, lines: Iterable[str]) -> FioLog:
    """Fold a log's lines, in memory that grows with its seconds alone."""
    log = FioLog(kind)
    first, before = 0, dict[str, float]()
    for line in lines:
        if not is_log_line(line):
            log.unparsed_lines += bool(line.strip())
            continue
        cells = [cell.strip() for cell in line.split(",")]
        at, value, direction = int(cells[0]), int(cells[1]), _DIRECTIONS[cells[2]]
        if not log.lines and at > EPOCH_MS:
            first, log.epoch = at, True
        log.lines += 1
        at = max(0, at - first)
        log.end = max(log.end, at / 1000)
        size = int(cells[3]) if _is_count(cells[3]) else 0
        if size:
            second = log.seconds.setdefault(at // 1000, {})
            _add_io(second.setdefault(direction, SecondIos()), kind, value, size)
        else:
            log.windows.append((before.get(direction, 0.0), at / 1000, direction, float(value)))
            before[direction] = at / 1000
    return log


def _add_io(ios: SecondIos, kind: str, value: int, size: int) -> None:
    ios.count += 1
    ios.bytes += size
    if kind in LATENCIES:
        ios.total_ns += value
        ios.max_ns = max(ios.max_ns, value)
        key = bucket_key(value)
        ios.bins[key] = ios.bins.get(key, 0) + 1


class Logs:
    """Logs of one run together: of several jobs, of several kinds."""

    def __init__(self, logs: Sequence[FioLog]) -> None:
        self.logs = tuple(logs)
        self.end = max((log.end for log in logs), default=0.0)
        single = [log for log in logs if log.seconds]
        self.kind = min((log.kind for log in single), key=KINDS.index, default="")
        self._single = [log for log in single if log.kind == self.kind]
        means = [log for log in logs if log.averaged]
        self._windows = {
            kind: [log for log in means if log.kind == kind]
            for kind in KINDS
            if any(log.kind == kind for log in means)
        }

    @property
    def bins_of(self) -> str:
        """The latency that the histograms are of; "" if there are none."""
        return self.kind if self.kind in LATENCIES else ""

    @property
    def mean_of(self) -> str:
        """The latency whose means the averaged logs have; "" if none of them has any."""
        return next((kind for kind in LATENCIES if kind in self._windows), "")

    def rows(self) -> list[LogRow]:
        """Second by second, or in the logs' own windows where these are longer. ValueError for
        logs that claim to be of more than ``LONGEST_S``: a damaged line, rather."""
        if self.end > LONGEST_S:
            raise ValueError(f"a log of {self.end / 86400:.0f} days")
        if self._single:
            return list(self._counted())
        return list(self._averaged())

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

    def _averaged(self) -> Iterator[LogRow]:
        lengths = sorted(end - begin for logs in self._windows.values()
                         for log in logs for begin, end, _, _ in log.windows)  # fmt: skip
        width = max(1.0, lengths[len(lengths) // 2]) if lengths else 1.0
        iops, bw = (
            _mean_by_interval(self._windows.get(kind, ()), width) for kind in ("iops", "bw")
        )
        mean = _mean_by_interval(self._windows.get(self.mean_of, ()), width, joined=True)
        for index in sorted({*iops, *bw, *mean}):
            end = min((index + 1) * width, max(self.end, index * width + 1e-3))
            speed = bw.get(index)
            yield LogRow(end, end - index * width, iops.get(index),
                         None if speed is None else 1024 * speed, mean.get(index))  # fmt: skip

    def directions(self) -> dict[str, dict[str, Any]]:
        """Figures of the whole by direction, named as in ``fio_summary``."""
        if self._single:
            present = {name for log in self._single for d in log.seconds.values() for name in d}
            return {name: self._figures(name) for name in (READ, WRITE, TRIM) if name in present}
        figures = {}
        for name in (READ, WRITE, TRIM):
            means = {
                kind: _mean_by_interval(
                    [_of_direction(log, name) for log in logs],
                    max(self.end, 1e-3),
                    joined=kind in LATENCIES,
                ).get(0)
                for kind, logs in self._windows.items()
            }
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


def _of_direction(log: FioLog, name: str) -> FioLog:
    return FioLog(log.kind, windows=[window for window in log.windows if window[2] == name])


def _mean_by_interval(
    logs: Sequence[FioLog], width: float, joined: bool = False
) -> dict[int, float]:
    """Mean over each interval of ``width`` seconds, by its number: of what a log says of one
    direction over time, and the sum of these; ``joined``: their mean."""
    streams: dict[tuple[int, str], dict[int, list[float]]] = {}
    covered: dict[int, float] = {}
    for number, log in enumerate(logs):
        for begin, end, name, value in log.windows:
            for index, seconds in _intervals_reached(begin, end, width):
                sums = streams.setdefault((number, name), {}).setdefault(index, [0.0, 0.0])
                sums[0] += value * seconds
                sums[1] += seconds
                covered[index] = max(covered.get(index, 0.0), sums[1])
    means = {}
    for index, covered_s in covered.items():
        parts = [stream[index] for stream in streams.values() if index in stream]
        total_s = sum(seconds for _, seconds in parts) if joined else covered_s
        means[index] = sum(value for value, _ in parts) / total_s
    return means


def _intervals_reached(begin: float, end: float, width: float) -> Iterator[tuple[int, float]]:
    """Return the intervals that a window reaches, and for how long."""
    for index in range(int(begin / width), int(end / width) + 1):
        seconds = min(end, (index + 1) * width) - max(begin, index * width)
        if seconds > 1e-9:
            yield index, seconds
