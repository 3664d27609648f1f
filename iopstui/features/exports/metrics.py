"""The metrics of a session, made of its events, and the two text formats that Prometheus reads.

node_exporter's textfile collector reads the text format 0.0.4 (prometheus.io, "Exposition
formats"). A scrape gets OpenMetrics 1.0 (RFC draft, "OpenMetrics, a cloud-native, highly scalable
metrics protocol"), or the text format.

A counter grows from the program's start, over all its runs and targets. Gauges show the newest
frame, and vanish when the session is over. A histogram has few buckets. None of fio's bins crosses
one of their bounds, so counts stay exact. But a latency that is exactly on a bound is counted above
it, although Prometheus means below, because fio's bins do not distinguish it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from iopstui import __version__
from iopstui.events import (
    RUN,
    Event,
    ExpectationChecked,
    FindingReported,
    FrameReady,
    StepFinished,
    StepStarted,
)
from iopstui.model.block.target import Target
from iopstui.model.cgroups import group_name
from iopstui.model.figures.figure import TOTAL, Figure
from iopstui.model.findings.finding import HEADLINES
from iopstui.model.fio.interval import NOTHING, FioInterval
from iopstui.model.metrics.aws import LIMITS
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import BY_NAME, UNIT_BYTES, counter_growth
from iopstui.model.metrics.probe import ProbeInterval
from iopstui.model.samples import MIXED, READ, TRIM, WRITE, DriveReading
from iopstui.model.sources import SOURCES
from iopstui.text import printable

COUNTER, GAUGE, HISTOGRAM, INFO = "counter", "gauge", "histogram", "info"
TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
UNITS = ("seconds", "bytes", "ratio")
INFINITE = "+Inf"

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """A line: the ``suffix`` after the family's name ("_bucket"), the labels, and the value."""

    suffix: str
    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name, in base units (seconds, bytes, ratios from 0 to 1). The name does
    not include ``_total`` or ``_info``."""

    name: str
    kind: str
    help: str
    samples: list[Sample] = field(default_factory=list)

    @property
    def unit(self) -> str:
        """The unit with which the name ends; "" for plain counts."""
        last = self.name.rpartition("_")[2]
        return last if last in UNITS else ""


def labels(**pairs: str) -> Labels:
    """Labels in the order of the arguments."""
    return tuple(pairs.items())


def histogram_samples(
    counts: Mapping[float, int], total: int, sum_of: float, labels_: Labels
) -> Iterator[Sample]:
    """The lines of one classic histogram. ``counts`` has the cumulative number of values up to each
    bound, in the order of the bounds. ``total`` counts all values."""
    for bound, count in counts.items():
        yield Sample("_bucket", (*labels_, ("le", number(bound))), count)
    yield Sample("_bucket", (*labels_, ("le", INFINITE)), total)
    yield Sample("_count", labels_, total)
    yield Sample("_sum", labels_, sum_of)


def text_format(families: Iterable[Family]) -> str:
    """The families in the text format 0.0.4, which has no info metrics: they become gauges."""
    return "".join(_lines(family, False) for family in families if family.samples)


def openmetrics(families: Iterable[Family]) -> str:
    """The families in OpenMetrics 1.0, with the end mark."""
    lines = "".join(_lines(family, True) for family in families if family.samples)
    return lines + "# EOF\n"


def _lines(family: Family, modern: bool) -> str:
    suffix = {COUNTER: "_total", INFO: "_info"}.get(family.kind, "")
    name = family.name if modern else family.name + suffix
    kind = GAUGE if family.kind == INFO and not modern else family.kind
    lines = [f"# HELP {name} {_help(family.help, modern)}", f"# TYPE {name} {kind}"]
    if modern and family.unit:
        lines.append(f"# UNIT {name} {family.unit}")
    for sample in family.samples:
        lines.append(
            f"{family.name}{suffix}{sample.suffix}{_braces(sample.labels)} {number(sample.value)}"
        )
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """A finite value as text; whole numbers have no decimal point."""
    is_whole = isinstance(value, int) or (value.is_integer() and abs(value) < 1 << 53)
    return str(int(value)) if is_whole else repr(value)


def _braces(labels_: Labels) -> str:
    if not labels_:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels_) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _help(text: str, modern: bool) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if modern else escaped


# from 8 µs to 1 s, the range of disks, two bounds for each power of two; a few beyond it
BOUNDS_NS = (
    1 << 11, 1 << 12,
    *(bound for power in range(13, 30) for bound in (1 << power, 3 << (power - 1))),
    1 << 30, 1 << 32, 1 << 34,
)  # fmt: skip


class Buckets:
    """A histogram that only grows. ``add`` gets the bins of one interval, by their midpoints in
    ns."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_NS) + 1)
        self._sum_ns = 0.0

    def add(self, bins: Mapping[int, int], mean_ns: float | None) -> None:
        """Count the values in ``bins``; ``mean_ns`` is their exact mean (``None``: compute it from
        the bins)."""
        for key, count in bins.items():
            self._counts[bisect_right(BOUNDS_NS, key)] += count
        if mean_ns is None:
            self._sum_ns += sum(key * count for key, count in bins.items())
        else:
            self._sum_ns += mean_ns * sum(bins.values())

    def samples(self, own: Labels) -> list[Sample]:
        """Return its lines, in seconds."""
        *below, total = accumulate(self._counts)
        counts = {bound / 1e9: count for bound, count in zip(BOUNDS_NS, below, strict=True)}
        return list(histogram_samples(counts, total, self._sum_ns / 1e9, own))


PREFIX = "iopstui_"


def _row(name: str, meaning: str, part: Any = "", scale: float = 1.0) -> Figure:
    return Figure(name, "", meaning, part, scale=scale)


def _ms(name: str, meaning: str, part: str) -> Figure:
    return _row(name, meaning, part, 1000)


def _grown(name: str, meaning: str, counters: Sequence[str], factor: int = 1) -> Figure:
    """A figure that sums the growth of these counters of a drive."""

    def read(reading: DriveReading) -> int | None:
        more = [counter_growth(reading, counter, factor) for counter in counters]
        known = [part for part in more if part is not None]
        return sum(known) if len(known) == len(more) else None

    return _row(name, meaning, read)


def _share(name: str, meaning: str, part: Any) -> Figure:
    """A gauge with a ratio, from a percentage."""
    return _row(name, meaning, part, 100)


OWN = (
    _row("frames", "measured intervals"),
    _row("runs", "started fio runs"),
    _row("runs_failed", "failed fio runs"),
    _row("findings", "findings, by rule"),
    _row("own_cpu_seconds", "CPU time of iopstui itself"),
)
FIO = (
    _row("fio_ios", "I/Os that fio completed, its ramp included", "ios"),
    _row("fio_bytes", "bytes that fio completed, its ramp included", "bytes"),
)
DISK = (
    _row("disk_reads", "read requests completed, after merging", "reads"),
    _row("disk_writes", "write requests completed, after merging", "writes"),
    _row("disk_discards", "discard requests completed, after merging", "discards"),
    _row("disk_read_bytes", "bytes read", "read_bytes"),
    _row("disk_written_bytes", "bytes written", "write_bytes"),
    _row("disk_discarded_bytes", "bytes discarded", "discard_bytes"),
    _ms("disk_read_time_seconds", "total time of all read requests, queueing included", "read_ms"),
    _ms("disk_write_time_seconds", "total time of all write requests, queueing included",
        "write_ms"),
    _ms("disk_io_time_seconds", "time with at least one request in flight", "io_ms"),
    _ms("disk_io_time_weighted_seconds", "time with requests in flight, multiplied by their number",
        "weighted_ms"),
)  # fmt: skip
NFS = (
    _row("nfs_operations", "finished NFS operations of the target's mount", "ops"),
    _row("nfs_bytes", "bytes sent and received by NFS operations, headers included", "bytes"),
    _row("nfs_retransmissions", "retransmitted NFS operations", "retransmissions"),
    _row("nfs_errors", "NFS operations answered with an error", "errors"),
    _ms("nfs_queue_time_seconds", "total time of NFS operations in the client's queue", "queue_ms"),
    _ms("nfs_rtt_seconds", "total time of NFS operations from sending to the answer", "rtt_ms"),
)
EXECUTION = _ms("nfs_execution_time_seconds",
                "total time of NFS operations from the request to its end", "exe_ms")  # fmt: skip
SMB = (
    _row("smb_operations", "SMB operations sent for the target's shares", "ops"),
    _row("smb_bytes", "data that SMB reads and writes have transferred", "bytes"),
    _row("smb_errors", "SMB operations answered with an error", "errors"),
    _row("smb_answers", "SMB operations answered on the connections of the target's shares",
         "answers"),
    _ms("smb_answer_time_seconds", "total time of smb_answers, from the request to its end",
        "answers_ms"),
)  # fmt: skip
DRIVE = (
    _grown("nvme_read_bytes", "bytes read by hosts, counted by the drive in steps of 512,000",
           ("units_read",), UNIT_BYTES),
    _grown("nvme_written_bytes", "bytes written by hosts, counted by the drive in steps of 512,000",
           ("units_written",), UNIT_BYTES),
    _grown("nvme_media_errors", "media and data integrity errors, counted by the drive",
           ("media_errors",)),
    _grown("nvme_throttled", "times that the drive began to throttle itself, lightly or heavily",
           ("thermal_1", "thermal_2")),
    _grown("nvme_throttled_seconds", "time that the drive throttled itself",
           ("thermal_1_s", "thermal_2_s")),
)  # fmt: skip
VOLUME_LIMIT = _row(
    "aws_limit_exceeded_seconds",
    "time in which the demand exceeded a limit, as the AWS volume counts it",
)
COUNTERS = (*OWN, *FIO, *DISK, *NFS, *SMB, *DRIVE, VOLUME_LIMIT, EXECUTION)
HISTOGRAMS = {
    "fio_latency_seconds": "fio's latencies: clat from submission to completion, lat including "
    "the submission",
    "device_latency_seconds": "requests from issue to completion, counted in the kernel (--probe)",
}
DRIVE_GAUGES = (
    _row("nvme_temperature_celsius", "composite temperature of the drive, as read last",
         BY_NAME["temperature"].part),
    _share("nvme_spare_ratio", "spare blocks that are left, as read last", BY_NAME["spare"].part),
    _share("nvme_endurance_used_ratio", "rated endurance used so far; may exceed 1",
           BY_NAME["used"].part),
    _row("nvme_critical_warning", "bits of the drive's critical warning; 0: none",
         BY_NAME["critical_warning"].part),
)  # fmt: skip


def _percentiles(frame: Frame) -> dict[Labels, float]:
    parts = {TOTAL: frame.fio.total, **frame.fio.directions} if frame.fio is not None else {}
    return {
        labels(direction=direction, latency=part.bins_of, percentile=name): value / 1e9
        for direction, part in parts.items()
        for name, value in part.percentiles.items()
    }


def _cgroup_latencies(frame: Frame) -> dict[Labels, float]:
    return {
        labels(cgroup=group.group, name=group_name(group.group).text, device=group.disk,
               percentile=name): ns / 1e9
        for group in (frame.probe.groups if frame.probe is not None else ()) if group.group
        for name, ns in (("p50", group.p50_ns), ("p99", group.p99_ns)) if ns is not None
    }  # fmt: skip


FRAME_GAUGES = (
    _row("fio_percentile_seconds", "percentiles of fio's latencies in the newest interval",
         _percentiles),
    _row("cgroup_latency_seconds", "device's p50 and p99 of the requests that a cgroup is charged "
         "with, in the newest interval (kernel probe)", _cgroup_latencies),
    _row("fio_progress_ratio", "progress of the run, as reported by fio", "fio/progress"),
    _row("fio_failed_rows", "rows of fio's report that have an error", "fio/errors"),
    _row("disk_in_flight", "requests in flight at the end of the newest interval",
         lambda frame: {labels(device=name): d.in_flight for name, d in frame.disks.items()}),
    _share("throttled_ratio", "share of the time in which a cgroup's CPU limit stopped iopstui and "
           "fio", "throttled"),
)  # fmt: skip
"""Rows of gauges: one value, or several with labels."""
_SUFFIX = {"%": "_ratio", "W": "_watts"}
"""The endings of gauges' names, by the unit of the field."""


class Metrics:
    """Makes metrics of the events of all sessions of a program."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._target = ""
        self._totals: dict[str, dict[Labels, float]] = {row.name: {} for row in COUNTERS}
        # these begin at 0: Prometheus would not count the first value of a counter that appears
        # later as an increase
        for name in ("frames", "runs", "runs_failed"):
            self._count(name, 0)
        for rule in HEADLINES:
            self._count("findings", 0, labels(rule=rule))
        self._buckets: dict[str, dict[Labels, Buckets]] = {name: {} for name in HISTOGRAMS}
        self._expectations: dict[Labels, float] = {}
        self._drives: dict[str, DriveReading] = {}
        self._latest_frame: Frame | None = None
        self._has_ended = False

    def watches(self, target: Target) -> None:
        """Use this target for the following events."""
        self._target = target.path
        self._latest_frame = None
        self._drives = {}

    def handle(self, event: Event) -> None:
        match event:
            case FrameReady():
                self._frame(event.frame)
            case StepStarted() if event.phase == RUN:
                self._begin(event)
            case StepFinished() if event.error:
                self._count("runs_failed")
            case FindingReported():
                self._count("findings", 1, labels(rule=event.finding.rule))
            case ExpectationChecked() if event.passed is not None:
                expectation = printable(event.expectation)
                self._expectations[labels(expectation=expectation)] = float(event.passed)

    def end(self) -> None:
        """End the session: drop the gauges of the last interval."""
        self._has_ended = True

    def families(self) -> Iterator[Family]:
        """All families, in a fixed order."""
        about = labels(version=__version__, host=self._host, target=printable(self._target))
        yield Family("iopstui", INFO, "what is measured, and the version",
                     [Sample("", about, 1)])  # fmt: skip
        yield _gauge("up", "1 while it measures", {(): float(not self._has_ended)})
        if self._latest_frame is not None:
            yield _gauge("last_sample_timestamp_seconds", "when the newest interval ended",
                         {(): round(self._latest_frame.wall_ms / 1000, 3)})  # fmt: skip
        for row in COUNTERS:
            yield _family(row, COUNTER, self._totals[row.name])
        for name, meaning in HISTOGRAMS.items():
            samples = [
                sample
                for bucket_labels, b in self._buckets[name].items()
                for sample in b.samples(bucket_labels)
            ]
            yield Family(PREFIX + name, HISTOGRAM, meaning, samples)
        yield _gauge("expectation_met", "1 if the last run met the expectation", self._expectations)
        if self._latest_frame is not None and not self._has_ended:
            yield from _gauges(self._latest_frame, self._drives)

    def _count(self, name: str, by: float | None = 1, series: Labels = ()) -> None:
        if by is not None:
            values = self._totals[name]
            values[series] = values.get(series, 0) + by

    def _add(self, rows: Sequence[Figure], counted: object, **series: str) -> None:
        for row in rows:
            self._count(row.name, row.shown(counted), labels(**series))

    def _begin(self, run: StepStarted) -> None:
        self._count("runs")
        # begin at 0, so that a rate includes the first interval
        for direction in _directions(run):
            self._add(FIO, NOTHING, direction=direction)

    def _frame(self, frame: Frame) -> None:
        self._latest_frame = frame
        self._count("frames")
        if frame.own_cpu is not None:
            self._count("own_cpu_seconds", frame.own_cpu / 100 * (frame.seconds or 0.0))
        for name, disk in frame.disks.items():
            self._add(DISK, disk, device=name)
        if frame.share is not None:
            rows = SMB if frame.share.smb else (*NFS, EXECUTION)
            for name, operation in frame.share.operations.items():
                self._add(rows, operation, operation=name)
        for name, reading in frame.nvme.items():
            self._drive(name, reading)
        for name, volume in (frame.aws or {}).items():
            for limit in LIMITS:
                us = getattr(volume, limit)
                series = labels(device=name, limit=limit)
                self._count(VOLUME_LIMIT.name, None if us is None else us / 1e6, series)
        if frame.fio is not None:
            self._fio(frame.fio)
        if frame.probe is not None:
            self._probe(frame.probe)

    def _drive(self, name: str, reading: DriveReading) -> None:
        before, self._drives[name] = self._drives.get(name), reading
        began = reading.began if before is None or before.problem else before.counts
        self._add(DRIVE, replace(reading, began=began), drive=name)

    def _fio(self, fio: FioInterval) -> None:
        for direction, part in fio.directions.items():
            self._add(FIO, part, direction=direction)
            if part.bins:
                mean = part.clat_ns if part.bins_of == "clat" else part.lat_ns
                series = labels(direction=direction, latency=part.bins_of)
                self._buckets_for("fio_latency_seconds", series).add(part.bins, mean)

    def _probe(self, probe: ProbeInterval) -> None:
        for disk, kinds in probe.disks.items():
            for kind, stats in kinds.items():
                series = labels(device=disk, direction=kind)
                self._buckets_for("device_latency_seconds", series).add(stats.device.bins, None)

    def _buckets_for(self, name: str, series: Labels) -> Buckets:
        return self._buckets[name].setdefault(series, Buckets())


def _directions(run: StepStarted) -> Sequence[str]:
    """The directions that fio will count, as far as the options that apply to all jobs say."""
    unified = run.options.get("unified_rw_reporting", "none")
    if unified in ("1", "mixed"):
        return (MIXED,)
    more = (MIXED,) if unified in ("2", "both") else ()
    kind = run.options.get("rw", run.options.get("readwrite", "")).partition(":")[0]
    if "trim" in kind:
        return (TRIM, WRITE, *more) if "write" in kind else (TRIM, *more)
    return (READ, *more) if run.read_only else (READ, WRITE, *more)


def _family(row: Figure, kind: str, values: Mapping[Labels, float | None]) -> Family:
    samples = [Sample("", series, value) for series, value in values.items() if value is not None]
    return Family(PREFIX + row.name, kind, row.meaning, samples)


def _gauge(name: str, meaning: str, values: Mapping[Labels, float | None]) -> Family:
    return _family(_row(name, meaning), GAUGE, values)


def _gauges(frame: Frame, drives: Mapping[str, DriveReading]) -> Iterator[Family]:
    """The gauges of the newest interval, and of the drives' last readings."""
    for row in FRAME_GAUGES:
        value = row.shown(frame)
        yield _family(row, GAUGE, value if isinstance(value, Mapping) else {(): value})
    for source in SOURCES:
        for figure in source.figures:
            name = re.sub(r"[^a-z0-9]+", "_", f"{source.name}_{figure.name}".lower())
            scale = 100 if figure.unit == "%" else 1.0
            row = _row(name + _SUFFIX.get(figure.unit, ""), figure.meaning,
                       f"more/{source.name}/{figure.name}", scale)  # fmt: skip
            yield _family(row, GAUGE, {(): row.shown(frame)})
    for row in DRIVE_GAUGES:
        values = {labels(drive=drive): row.shown(reading) for drive, reading in drives.items()}
        yield _family(row, GAUGE, values)
