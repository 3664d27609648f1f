"""The metrics of a session: its events folded into counters, histograms and gauges.

A counter grows from the program's start, over all its runs and targets. Gauges are of the newest
frame, and gone once the session is over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

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
from iopstui.model.cgroups.names import group_name
from iopstui.model.findings.rule_names import RULE_NAMES
from iopstui.model.fio.interval import FioInterval
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import BY_NAME, UNIT_BYTES, counter_growth
from iopstui.model.metrics.paths import TOTAL
from iopstui.model.metrics.probe import ProbeInterval
from iopstui.model.metrics.shares.share import OperationRates
from iopstui.model.samples import MIXED, READ, TRIM, WRITE, DriveReading
from iopstui.model.sources import SOURCES
from iopstui.output.export.buckets import Buckets
from iopstui.output.export.exposition import (
    COUNTER,
    GAUGE,
    HISTOGRAM,
    INFO,
    Family,
    Labels,
    Sample,
    labels,
)
from iopstui.text import printable

PREFIX = "iopstui_"

COUNTERS = {
    "frames": "measured intervals",
    "runs": "started fio runs",
    "runs_failed": "failed fio runs",
    "findings": "findings, by rule",
    "own_cpu_seconds": "CPU time of iopstui itself",
    "fio_ios": "I/Os that fio completed, its ramp included",
    "fio_bytes": "bytes that fio completed, its ramp included",
    "disk_reads": "read requests completed, after merging",
    "disk_writes": "write requests completed, after merging",
    "disk_discards": "discard requests completed, after merging",
    "disk_read_bytes": "bytes read",
    "disk_written_bytes": "bytes written",
    "disk_discarded_bytes": "bytes discarded",
    "disk_read_time_seconds": "total time of all read requests, queueing included",
    "disk_write_time_seconds": "total time of all write requests, queueing included",
    "disk_io_time_seconds": "time with at least one request in flight",
    "disk_io_time_weighted_seconds": "time with requests in flight, times their number",
    "nfs_operations": "finished NFS operations of the target's mount",
    "nfs_bytes": "bytes sent and received by NFS operations, headers included",
    "nfs_retransmissions": "retransmitted NFS operations",
    "nfs_errors": "NFS operations answered with an error",
    "nfs_queue_time_seconds": "total time of NFS operations in the client's queue",
    "nfs_rtt_seconds": "total time of NFS operations from sending to the answer",
    "smb_operations": "SMB operations sent for the target's shares",
    "smb_bytes": "data that SMB reads and writes have transferred",
    "smb_errors": "SMB operations answered with an error",
    "smb_answers": "SMB operations answered on the connections of the target's shares",
    "smb_answer_time_seconds": "total time of smb_answers, from the request to its end",
    "nvme_read_bytes": "bytes read by hosts, counted by the drive in steps of 512,000",
    "nvme_written_bytes": "bytes written by hosts, counted by the drive in steps of 512,000",
    "nvme_media_errors": "media and data integrity errors, counted by the drive",
    "nvme_throttled": "times that the drive began to throttle itself, lightly or heavily",
    "nvme_throttled_seconds": "time that the drive throttled itself",
    "nfs_execution_time_seconds": "total time of NFS operations from the request to its end",
}
HISTOGRAMS = {
    "fio_latency_seconds": "fio's latencies: clat from submission to completion, lat with "
    "submission",
    "device_latency_seconds": "requests from issue to completion, counted in the kernel (--probe)",
}
GAUGES = {
    "fio_percentile_seconds": "percentiles of fio's latencies in the newest interval",
    "cgroup_latency_seconds": "device's p50 and p99 of the requests that a cgroup is charged with, "
    "in the newest interval (kernel probe)",
    "fio_progress_ratio": "progress of the run, as reported by fio",
    "fio_failed_rows": "rows of fio's report that have an error",
    "disk_in_flight": "requests in flight at the end of the newest interval",
    "nvme_temperature_celsius": "composite temperature of the drive, as read last",
    "nvme_spare_ratio": "spare blocks that are left, as read last",
    "nvme_endurance_used_ratio": "rated endurance used so far; may exceed 1",
    "nvme_critical_warning": "bits of the drive's critical warning; 0: none",
    "throttled_ratio": "share of the time in which a cgroup's CPU limit stopped iopstui and fio",
}


def _seconds_of_share(share: float | None, seconds: float, total: float = 1.0) -> float | None:
    return None if share is None else share / total * seconds


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000


DISK: Mapping[str, tuple[str, float]] = {
    "disk_reads": ("reads", 1),
    "disk_writes": ("writes", 1),
    "disk_discards": ("discards", 1),
    "disk_read_bytes": ("read_bytes", 1),
    "disk_written_bytes": ("write_bytes", 1),
    "disk_discarded_bytes": ("discard_bytes", 1),
    "disk_read_time_seconds": ("read_ms", 1000),
    "disk_write_time_seconds": ("write_ms", 1000),
    "disk_io_time_seconds": ("io_ms", 1000),
    "disk_io_time_weighted_seconds": ("weighted_ms", 1000),
}
"""The growth of a disk that a counter adds up, and its divisor."""


OPERATION: Mapping[str, Callable[[OperationRates], float | None]] = {
    "nfs_operations": lambda o: o.ops,
    "nfs_bytes": lambda o: o.bytes,
    "nfs_retransmissions": lambda o: o.retransmissions,
    "nfs_errors": lambda o: o.errors,
    "nfs_queue_time_seconds": lambda o: _seconds(o.queue_ms),
    "nfs_rtt_seconds": lambda o: _seconds(o.rtt_ms),
    "nfs_execution_time_seconds": lambda o: _seconds(o.exe_ms),
}
"""The same of one NFS operation."""
SMB_OPERATION: Mapping[str, Callable[[OperationRates], float | None]] = {
    "smb_operations": lambda o: o.ops,
    "smb_bytes": lambda o: o.bytes,
    "smb_errors": lambda o: o.errors,
    "smb_answers": lambda o: o.answers,
    "smb_answer_time_seconds": lambda o: _seconds(o.answers_ms),
}
"""The same of one SMB operation."""

DRIVE: Mapping[str, tuple[tuple[str, ...], int]] = {
    "nvme_read_bytes": (("units_read",), UNIT_BYTES),
    "nvme_written_bytes": (("units_written",), UNIT_BYTES),
    "nvme_media_errors": (("media_errors",), 1),
    "nvme_throttled": (("thermal_1", "thermal_2"), 1),
    "nvme_throttled_seconds": (("thermal_1_s", "thermal_2_s"), 1),
}
"""The drive's counters that are added up, and the factor to the metric's unit."""
DRIVE_GAUGES = {
    "nvme_temperature_celsius": ("temperature", 1),
    "nvme_spare_ratio": ("spare", 100),
    "nvme_endurance_used_ratio": ("used", 100),
    "nvme_critical_warning": ("critical_warning", 1),
}
"""The drive's figures with their divisors."""


class Metrics:
    """A fold over the events of a program's sessions."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._target = ""
        self._totals: dict[str, dict[Labels, float]] = {name: {} for name in COUNTERS}
        # a counter that begins later than its exporter is taken for one that was never less
        for name in ("frames", "runs", "runs_failed"):
            self._count(name, 0)
        for rule in RULE_NAMES:
            self._count("findings", 0, labels(rule=rule))
        self._buckets: dict[str, dict[Labels, Buckets]] = {name: {} for name in HISTOGRAMS}
        self._expectations: dict[Labels, float] = {}
        self._drives: dict[str, DriveReading] = {}
        self._latest_frame: Frame | None = None
        self._has_ended = False

    def watches(self, target: Target) -> None:
        """Use this target for the events that follow."""
        self._target = target.path
        self._latest_frame = None
        self._drives = {}

    def handle(self, event: Event) -> None:
        """Take one event."""
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
        """End: drop the gauges of the last interval."""
        self._has_ended = True

    def families(self) -> Iterator[Family]:
        """Return all families, in a fixed order."""
        about = labels(version=__version__, host=self._host, target=printable(self._target))
        yield Family("iopstui", INFO, "what is measured, and the version",
                     [Sample("", about, 1)])  # fmt: skip
        yield _gauge("up", "1 while it measures", {(): float(not self._has_ended)})
        if self._latest_frame is not None:
            yield _gauge("last_sample_timestamp_seconds", "when the newest interval ended",
                         {(): round(self._latest_frame.wall_ms / 1000, 3)})  # fmt: skip
        for name, meaning in COUNTERS.items():
            rows = self._totals[name].items()
            yield Family(
                PREFIX + name,
                COUNTER,
                meaning,
                [Sample("", row_labels, n) for row_labels, n in rows],
            )
        for name, meaning in HISTOGRAMS.items():
            samples = [
                sample
                for bucket_labels, b in self._buckets[name].items()
                for sample in b.samples(bucket_labels)
            ]
            yield Family(PREFIX + name, HISTOGRAM, meaning, samples)
        yield _gauge("expectation_met", "1 if the last run met it", self._expectations)
        if self._latest_frame is not None and not self._has_ended:
            yield from _moment(self._latest_frame)
            yield from _drive_gauges(self._drives)

    def _count(self, name: str, by: float | None = 1, series: Labels = ()) -> None:
        if by is not None:
            values = self._totals[name]
            values[series] = values.get(series, 0) + by

    def _begin(self, run: StepStarted) -> None:
        self._count("runs")
        # from 0 on, so that a rate has the first interval, too
        for direction in _directions(run):
            for name in ("fio_ios", "fio_bytes"):
                self._count(name, 0, labels(direction=direction))

    def _frame(self, frame: Frame) -> None:
        self._latest_frame = frame
        self._count("frames")
        self._count("own_cpu_seconds", _seconds_of_share(frame.own_cpu, frame.seconds or 0.0, 100))
        for name, disk in frame.disks.items():
            for key, (growth, divisor) in DISK.items():
                count = getattr(disk, growth)
                more = count if count is None or divisor == 1 else count / divisor
                self._count(key, more, labels(device=name))
        if frame.share is not None:
            for name, operation in frame.share.operations.items():
                for key, count in (SMB_OPERATION if frame.share.smb else OPERATION).items():
                    self._count(key, count(operation), labels(operation=name))
        for name, reading in frame.nvme.items():
            self._drive(name, reading)
        if frame.fio is not None:
            self._fio(frame.fio)
        if frame.probe is not None:
            self._probe(frame.probe)

    def _drive(self, name: str, reading: DriveReading) -> None:
        before, self._drives[name] = self._drives.get(name), reading
        began = reading.began if before is None or before.problem else before.counts
        started = replace(reading, began=began)
        for key, (counters, factor) in DRIVE.items():
            more = [counter_growth(started, counter, factor) for counter in counters]
            parts = [part for part in more if part is not None]
            self._count(key, sum(parts) if len(parts) == len(more) else None, labels(drive=name))

    def _fio(self, fio: FioInterval) -> None:
        for direction, part in fio.directions.items():
            self._count("fio_ios", part.ios, labels(direction=direction))
            self._count("fio_bytes", part.bytes, labels(direction=direction))
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
    """Directions that fio will count, as far as all jobs of the run agree."""
    unified = run.options.get("unified_rw_reporting", "none")
    if unified in ("1", "mixed"):
        return (MIXED,)
    more = (MIXED,) if unified in ("2", "both") else ()
    kind = run.options.get("rw", run.options.get("readwrite", "")).partition(":")[0]
    if "trim" in kind:
        return (TRIM, WRITE, *more) if "write" in kind else (TRIM, *more)
    return (READ, *more) if run.read_only else (READ, WRITE, *more)


def _gauge(name: str, meaning: str, values: Mapping[Labels, float | None]) -> Family:
    samples = [Sample("", series, value) for series, value in values.items() if value is not None]
    return Family(PREFIX + name, GAUGE, meaning, samples)


def _moment(frame: Frame) -> Iterator[Family]:
    """Gauges of the newest interval alone."""
    fio = frame.fio
    values_by_gauge: dict[str, dict[Labels, float | None]] = {name: {} for name in GAUGES}
    if fio is not None:
        values_by_gauge["fio_percentile_seconds"] = dict(_percentiles(fio))
        values_by_gauge["fio_progress_ratio"] = {(): fio.progress}
        values_by_gauge["fio_failed_rows"] = {(): sum(1 for job in fio.jobs if job.error)}
    values_by_gauge["disk_in_flight"] = {
        labels(device=name): disk.in_flight for name, disk in frame.disks.items()
    }
    values_by_gauge["cgroup_latency_seconds"] = {
        labels(cgroup=group.group, name=group_name(group.group).text, device=group.disk,
               percentile=name): ns / 1e9
        for group in (frame.probe.groups if frame.probe is not None else ()) if group.group
        for name, ns in (("p50", group.p50_ns), ("p99", group.p99_ns)) if ns is not None
    }  # fmt: skip
    values_by_gauge["throttled_ratio"] = {(): _seconds_of_share(frame.throttled, 1, 100)}
    for name, meaning in GAUGES.items():
        if name not in DRIVE_GAUGES:
            yield _gauge(name, meaning, values_by_gauge[name])
    for source in SOURCES:
        for figure in source.figures:
            name = re.sub(r"[^a-z0-9]+", "_", f"{source.name}_{figure.name}".lower())
            value = frame.more.get(source.name, {}).get(figure.name)
            share = figure.unit == "%"
            yield _gauge(name + _SUFFIX.get(figure.unit, ""), figure.meaning,
                         {(): _seconds_of_share(value, 1, 100) if share else value})  # fmt: skip


def _drive_gauges(drives: Mapping[str, DriveReading]) -> Iterator[Family]:
    for name, (figure, divisor) in DRIVE_GAUGES.items():
        values = {drive: BY_NAME[figure].read(reading) for drive, reading in drives.items()}
        yield _gauge(name, GAUGES[name], {
            labels(drive=drive): None if value is None else value / divisor
            for drive, value in values.items()
        })  # fmt: skip


_SUFFIX = {"%": "_ratio", "W": "_watts"}
"""How the names of gauges end, by the unit of the field."""


def _percentiles(fio: FioInterval) -> Iterator[tuple[Labels, float]]:
    for direction, part in ((TOTAL, fio.total), *fio.directions.items()):
        for name, value in part.percentiles.items():
            series = labels(direction=direction, latency=part.bins_of, percentile=name)
            yield series, value / 1e9
