"""Turn two readings of the probe into figures of one interval.

All counts are cumulative, so they are subtracted as fio's are (model/histogram.py). Means and
percentiles of the time in the device are computed from the bins, so they are at most 0.8 % off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import mul
from typing import Any

from iopstui import format as f
from iopstui.model import histogram
from iopstui.model.cgroups import group_name
from iopstui.model.figures.figure import (
    BOOLEAN,
    BY_KEY,
    IN_LIST,
    NUMBER,
    OF,
    SECONDS,
    TEXT,
    TOTAL,
    Figure,
    Part,
    Rows,
    latency_rows,
)
from iopstui.model.histogram import Bins
from iopstui.model.rates import ratio
from iopstui.model.samples import Exemplar, ProbeSample, TaskCounts

READS, WRITES, DISCARDS = "read", "write", "discard"
KINDS = (READS, WRITES, DISCARDS)
SECTOR = 512
# figures with a larger part of unmatched requests are marked
DOUBTFUL_SHARE = 0.01
# this many events may be skipped: the kernel counts skips for all disks together
TOLERATED_SKIPS = 50
# if the probes ran less often than this, their mean run time says little
MIN_COUNTED_IOS = 1000

ByDisk = Mapping[str, Mapping[str, Bins]]


@dataclass(frozen=True, slots=True)
class LatencyStats:
    """Figures of one interval's latency histogram: ``ios`` requests, ``mean_ns``, ``percentiles``
    ("p50" ...) and ``max_ns`` in nanoseconds."""

    ios: int
    mean_ns: float | None
    percentiles: Mapping[str, int]
    max_ns: int | None
    bins: Bins

    @classmethod
    def from_bins(cls, bins: Bins) -> LatencyStats:
        """The figures of a histogram; unknown, not 0, if it is empty."""
        ios = sum(bins.values())
        mean = sum(map(mul, bins.keys(), bins.values())) / ios if ios else None
        values = histogram.percentiles(bins)
        by_name = {histogram.percentile_name(p): value for p, value in values.items()}
        return cls(ios, mean, by_name, histogram.maximum(bins), bins)


@dataclass(frozen=True, slots=True)
class RequestStats:
    """The requests of one disk (or several) in one direction (or all) that were completed in an
    interval of ``seconds``. ``device`` is from issue to completion; ``waiting`` from allocation to
    issue (``None``: not known). ``sizes``: requests by their size in bytes, rounded down to a power
    of two."""

    seconds: float
    device: LatencyStats
    waiting: LatencyStats | None = None
    sizes: Mapping[int, int] = field(default_factory=dict)

    @property
    def iops(self) -> float | None:
        """Completed requests per second."""
        return ratio(self.device.ios, self.seconds)


@dataclass(frozen=True, slots=True)
class TaskIo:
    """I/O of one task on one disk in an interval: the task that allocated the requests, which for
    buffered writes is the kernel's writeback (``kworker``). ``iops`` and ``bw`` (bytes/s) of all
    directions. With ``pid`` 0 and no ``comm`` it is the sum of all tasks of the cgroup
    ``group``."""

    pid: int
    comm: str
    group: str
    disk: str
    iops: float
    read_iops: float
    write_iops: float
    bw: float
    p50_ns: int | None
    p99_ns: int | None
    bins: Bins = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProbeInterval:
    """Counts of the probe in ``seconds`` of its own clock, read ``age_s`` before the frame.
    ``disks`` has the requests by disk and direction. ``matrix`` has completed requests per second
    by the CPU that allocated and the CPU that completed them. ``missed`` is the percentage of
    completions that could not be matched with their beginning, ``skipped`` counts events of any
    disk that were missed because another probe ran on that CPU (an upper limit), ``lost`` events
    the kernel could not pass on, ``full`` maps that had no room. ``busy`` is percent of a CPU for
    reading the maps, ``run_ns`` the probes' own run time for each request, as the kernel counts it.
    ``groups`` has the ``tasks`` summed by cgroup, ``left_out`` the number of requests in neither of
    the two (too many processes). ``exemplars`` are single requests, the slowest first, ``read_ns``
    is when they were read (CLOCK_MONOTONIC)."""

    seconds: float
    age_s: float
    parts: tuple[str, ...]
    disks: Mapping[str, Mapping[str, RequestStats]]
    matrix: Mapping[int, Mapping[int, float]]
    tasks: tuple[TaskIo, ...]
    requeued_s: float | None
    missed: float | None
    skipped: int
    lost: int
    full: int
    busy: float | None
    run_ns: float | None
    exemplars: tuple[Exemplar, ...] = ()
    read_ns: int = 0
    groups: tuple[TaskIo, ...] = ()
    left_out: int = 0

    @property
    def missed_ios(self) -> float:
        """The number of completions that the percentage ``missed`` stands for."""
        if self.missed is None or self.missed >= 100:
            return 0.0
        completed = sum(part.device.ios for kinds in self.disks.values() for part in kinds.values())
        return completed * self.missed / (100 - self.missed)

    @property
    def doubtful(self) -> bool:
        """Whether more than one request in a hundred is missing from the figures."""
        completed = sum(part.device.ios for kinds in self.disks.values() for part in kinds.values())
        skipped = self.skipped > max(TOLERATED_SKIPS, DOUBTFUL_SHARE * completed)
        return (
            (self.missed or 0.0) > 100 * DOUBTFUL_SHARE or skipped or self.lost > 0 or self.full > 0
        )

    def combined(self, names: Sequence[str], kinds: Iterable[str] = KINDS) -> RequestStats | None:
        """Return these disks and directions combined; ``None`` if one of the disks was not
        followed."""
        parts = self._parts(names, kinds)
        if parts is None:
            return None
        if len(parts) == 1:
            return parts[0]
        waits = [p.waiting.bins for p in parts if p.waiting is not None]
        return RequestStats(
            self.seconds,
            LatencyStats.from_bins(histogram.merge(p.device.bins for p in parts)),
            LatencyStats.from_bins(histogram.merge(waits)) if WAY in self.parts else None,
            histogram.merge(p.sizes for p in parts),
        )

    def device_times(self, names: Sequence[str]) -> LatencyStats | None:
        """The ``device`` of these disks ``combined``, without the rest."""
        parts = self._parts(names, KINDS)
        if parts is None:
            return None
        return LatencyStats.from_bins(histogram.merge(p.device.bins for p in parts))

    def _parts(self, names: Sequence[str], kinds: Iterable[str]) -> list[RequestStats] | None:
        if not names or any(name not in self.disks for name in names):
            return None
        chosen = set(kinds)
        return [p for n in names for k, p in self.disks[n].items() if k in chosen]


@dataclass(frozen=True, slots=True)
class ProbedRequests:
    """The probe's figures for the devices ``opened`` by the jobs, in a frame that ends at ``t``:
    the whole interval, and each direction of these devices together."""

    interval: ProbeInterval
    opened: Sequence[str]
    t: float

    def of(self, kind: str) -> RequestStats | None:
        """The requests of one direction, or of all directions, of these devices."""
        return self.interval.combined(self.opened, KINDS if kind == TOTAL else (kind,))

    @property
    def disks(self) -> dict[str, dict[str, RequestStats | None]]:
        """The figures of each direction of each disk, and of all directions together."""
        return {
            name: {**kinds, TOTAL: self.interval.combined((name,))}
            for name, kinds in self.interval.disks.items()
        }

    @property
    def slowest(self) -> list[SlowRequest]:
        """Single requests with the second in which they completed."""
        interval = self.interval
        read = self.t - interval.age_s
        return [
            SlowRequest(each, read - (interval.read_ns - each.completed_ns) / 1e9)
            for each in interval.exemplars
        ]


@dataclass(frozen=True, slots=True)
class SlowRequest:
    """A request that completed at ``t``, seconds of the session."""

    exemplar: Exemplar
    t: float


def _latencies(span: str) -> Rows:
    return (
        Figure("mean", "ns", f"{OF}: mean time {span}", "mean_ns", over="ios", form=f.latency),
        *latency_rows("took at most this", f"{span} (within 0.8 %)", f"longest {span}"),
    )


REQUESTS: Rows = (
    Figure("iops", "1/s", f"{OF}, completed per second", over=SECONDS, title="IOPS"),
    Figure("ios", "", f"{OF}, completed in this interval", "device/ios", title="I/Os"),
    *(
        replace(row, part=f"device/{row.part or row.name}", over=row.over and f"device/{row.over}")
        for row in _latencies("from issue to completion")
        if isinstance(row, Figure)
    ),
    Figure("bins", "", f"{OF}: this interval's histogram, as fio's: requests by bucket midpoint "
           "in ns", "device/bins", keys=1, always=True),
    Part("waiting", _latencies("from allocation to issue")),
    Figure("sizes", "", f"{OF}, completed, by size in bytes rounded down to a power of two",
           keys=1, always=True),
)  # fmt: skip
USE: Rows = (
    Figure("cgroup", "", "cgroup that the requests are charged to; empty where that is not known, "
           "or a process works for several", "group", kind=TEXT),
    Figure("name", "", "the unit, container or pod of that cgroup",
           lambda task: group_name(task.group).text if task.group else "", kind=TEXT),
    Figure("disk", "", "the disk (there is a row for each)", kind=TEXT),
    Figure("iops", "1/s", "completed requests"),
    Figure("read_iops", "1/s", "completed reads", width=7),
    Figure("write_iops", "1/s", "completed writes", width=7),
    Figure("bw", "B/s", "completed bytes", width=7, form=f.mib),
    Figure("p50", "ns", "half of the requests took at most this in the device (within 6 %)",
           "p50_ns", width=8, form=f.latency),
    Figure("p99", "ns", "99 % of the requests took at most this in the device (within 6 %)",
           "p99_ns", width=8, form=f.latency),
)  # fmt: skip
_PROCESS: Rows = (
    Figure("pid", "", "process that allocated the requests; writeback is the kernel's kworker"),
    Figure("comm", "", "name of the process when it was first seen", kind=TEXT),
)


def _exemplar(name: str, unit: str, meaning: str, part: str = "", kind: str = NUMBER) -> Figure:
    forms: dict[str, Callable[[Any], str]] = {"ns": f.latency, "B": f.size}
    return Figure(name, unit, meaning, f"exemplar/{part or name}", kind=kind,
                  form=forms.get(unit, f.or_dash))  # fmt: skip


SLOW_REQUEST: Rows = (
    Figure("t", "s", "when it completed, in seconds of the session", always=True),
    _exemplar("disk", "", "its disk or partition", kind=TEXT),
    _exemplar("direction", "", "read, write, discard or flush", "kind", TEXT),
    _exemplar("slow", "", "one of the 10 slowest of its direction in this interval", "", BOOLEAN),
    _exemplar("sampled", "", "one of a random sample of 10 of its direction", "", BOOLEAN),
    _exemplar("sector", "512 B", "its first sector, of the whole disk"),
    _exemplar("offset", "B", "its place on the disk or partition"),
    _exemplar("size", "B", "its size"),
    _exemplar("rwbs", "", "its flags, as the kernel's tracepoints show them: R, W, D or F, before "
              "it F for a flush first, after it F (FUA), A (readahead), S (sync), M (metadata)",
              "flags", TEXT),
    _exemplar("pid", "", "process that sent it; writeback is the kernel's kworker"),
    _exemplar("tid", "", "its thread"),
    _exemplar("comm", "", "the thread's name", kind=TEXT),
    _exemplar("cgroup", "", "the cgroup that it is charged to; empty where that is not known",
              "group", TEXT),
    _exemplar("cpu", "", "CPU that allocated it"),
    _exemplar("cpu_done", "", "CPU that completed it"),
    _exemplar("hctx", "", "its hardware queue"),
    _exemplar("total", "ns", "from its allocation to its completion", "total_ns"),
    _exemplar("tried", "ns", "from its allocation until the driver last sent it back (busy, or "
              "after a timeout): earlier tries; null if it did not", "tried_ns"),
    _exemplar("plugged", "ns", "from its allocation to its insertion into a scheduler or a queue; "
              "null if it was issued at once or sent back", "plugged_ns"),
    _exemplar("queued", "ns", "from its insertion (if there was none: its allocation) to its issue "
              "to the driver", "queued_ns"),
    _exemplar("device", "ns", "from its issue to its completion", "device_ns"),
    _exemplar("status", "", "the kernel's status of its completion; 0: no error", "error"),
)  # fmt: skip


def _direction_parts(of: str) -> Iterator[Part]:
    for kind in (*KINDS, TOTAL):
        requests = "all requests" if kind == TOTAL else f"{kind} requests"
        yield Part(kind, REQUESTS, partial(_stats, kind), about=f"{requests} of {of}")


def _stats(kind: str, row: ProbedRequests | Mapping[str, RequestStats]) -> RequestStats | None:
    return row.of(kind) if isinstance(row, ProbedRequests) else row.get(kind)


def _own(name: str, unit: str, meaning: str, part: str = "") -> Figure:
    return Figure(name, unit, meaning, f"interval/{part or name}")


PROBE: Rows = (
    _own("seconds", "s", "interval of these rates, by the kernel's clock"),
    _own("age_s", "s", "how long before the frame's end they were read"),
    *_direction_parts("the devices that the jobs work on together"),
    Part("disks", tuple(_direction_parts("this disk")), many=BY_KEY, always=True),
    Figure("matrix", "1/s", "requests allocated on one CPU (first key) and completed on another "
           "(second key)", "interval/matrix", keys=2, always=True),
    Part("tasks", (*_PROCESS, *USE), "interval/tasks", many=IN_LIST, always=True),
    Part("groups", USE, "interval/groups", many=IN_LIST, always=True),
    _own("left_out", "", "requests that are in no row of tasks and groups: there were too many "
         "processes"),
    Part("slowest", SLOW_REQUEST, many=IN_LIST, always=True),
    _own("requeues/s", "1/s", "requests that the driver returned, to be issued again",
         "requeued_s"),
    _own("missed", "%", "share of completions whose start was not seen, or that were not seen at "
         "all"),
    _own("skipped", "", "events, of any disk, at which another probe ran on that CPU: at most "
         "this many requests were not counted"),
    _own("lost", "", "events that the kernel could not pass on"),
    _own("full", "", "maps that had no room left: figures are too low"),
    _own("busy", "% of a CPU", "used for reading its counters"),
    _own("run_ns", "ns", "the probes' own run time for each request, as the kernel counts it"),
)  # fmt: skip


LATENCY, WAY, MATRIX, PROCESSES, SIZES = "latency", "way", "matrix", "processes", "sizes"
PARTS = (LATENCY, WAY, MATRIX, PROCESSES, SIZES)
"""The things that the probe can count; older kernels allow latencies alone."""
REFUSED = "this kernel refuses the programs that count"
"""Beginning of the message that lists what this kernel does not let the probe count."""
COST_US = 0.4
"""CPU time in µs for each I/O, measured (docs/costs.md)."""


class ProbeIntervals:
    """A fold over the probe's readings; ``before`` is the last one, where the next interval
    begins."""

    def __init__(self) -> None:
        self.previous: ProbeSample | None = None

    def feed(self, sample: ProbeSample | None, arrived_ns: int) -> ProbeInterval | None:
        """The interval that ends with this reading; ``None`` if there is none: no reading, the
        first of a probe, or counters that went backwards."""
        if sample is None:
            return None
        before, self.previous = self.previous, sample
        if before is None or before.begun != sample.begun or before.parts != sample.parts:
            return None
        seconds = (sample.time_ns - before.time_ns) / 1e9
        device = _growth(sample.device, before.device)
        if seconds <= 0 or device is None:
            return None
        return _interval(sample, before, seconds, device, (arrived_ns - sample.arrived_ns) / 1e9)


class ProbeTotal:
    """Adds up the probe's counts in a run's frames, by direction, for the devices that the jobs
    work on."""

    def __init__(self) -> None:
        # the first key is "device" or "waiting", the second the direction
        self._bins: dict[tuple[str, str], Bins] = {}
        self.doubtful = False
        self.seconds = 0.0
        self.missed = 0.0

    def add(self, interval: ProbeInterval | None, opened: Sequence[str]) -> None:
        """Count one frame's interval (``None``: a frame without one)."""
        if interval is None:
            return
        self.doubtful = self.doubtful or interval.doubtful
        self.seconds += interval.seconds
        self.missed += interval.missed_ios
        for kind in KINDS:
            part = interval.combined(opened, (kind,))
            if part is not None:
                self._add("device", kind, part.device.bins)
                self._add("waiting", kind, part.waiting.bins if part.waiting is not None else {})

    def join(self, later: ProbeTotal) -> None:
        """Add the counts of another total over the following frames."""
        self.doubtful = self.doubtful or later.doubtful
        self.seconds += later.seconds
        self.missed += later.missed
        for (times, kind), bins in later._bins.items():
            self._add(times, kind, bins)

    def _add(self, times: str, kind: str, bins: Bins) -> None:
        if bins:
            before = self._bins.get((times, kind), {})
            self._bins[times, kind] = histogram.merge((before, bins))

    def parts(self) -> list[tuple[str, LatencyStats, LatencyStats | None]]:
        """Yield (direction, time in the device, waiting) for each direction with requests."""
        stats = {key: LatencyStats.from_bins(bins) for key, bins in self._bins.items()}
        return [(kind, each, stats.get(("waiting", kind)))
                for (times, kind), each in stats.items() if times == "device"]  # fmt: skip


def _interval(
    sample: ProbeSample, before: ProbeSample, seconds: float, device: ByDisk, age_s: float
) -> ProbeInterval:
    counts = {name: n - before.counts.get(name, 0) for name, n in sample.counts.items()}
    waiting = _growth(sample.waiting, before.waiting) or {} if WAY in sample.parts else None
    sizes = _growth(sample.sizes, before.sizes) or {}
    completed = sum(sum(bins.values()) for kinds in device.values() for bins in kinds.values())
    missed = max(0, counts.get("missed", 0))
    grown = _grown_tasks(sample.tasks, before.tasks)
    return ProbeInterval(
        seconds=seconds,
        age_s=max(0.0, age_s),
        parts=sample.parts,
        disks={
            disk: {k: _requests(disk, k, seconds, device, waiting, sizes) for k in kinds}
            for disk, kinds in device.items()
        },
        matrix=_matrix(sample.matrix, before.matrix, seconds),
        tasks=_tasks(grown, seconds, by_group=False),
        requeued_s=_rate(counts, "requeued", seconds),
        missed=100 * missed / (completed + missed) if completed + missed else None,
        skipped=max(0, counts.get("skipped", 0)),
        lost=max(0, counts.get("lost", 0)),
        full=sample.counts.get("full", 0),
        busy=_busy(sample, before),
        run_ns=_run_ns(sample),
        exemplars=sample.exemplars,
        read_ns=sample.time_ns,
        groups=_tasks(grown, seconds, by_group=True),
        left_out=max(0, counts.get("left_out", 0)),
    )


def _requests(
    disk: str, kind: str, seconds: float, device: ByDisk, waiting: ByDisk | None, sizes: ByDisk
) -> RequestStats:
    waits = None if waiting is None else LatencyStats.from_bins(waiting.get(disk, {}).get(kind, {}))
    stats = LatencyStats.from_bins(device[disk][kind])
    return RequestStats(seconds, stats, waits, sizes.get(disk, {}).get(kind, {}))


def _growth(now: ByDisk, before: ByDisk) -> dict[str, dict[str, Bins]] | None:
    """Growth between two counts; ``None`` if a counter began again."""
    growth: dict[str, dict[str, Bins]] = {}
    for disk, kinds in now.items():
        for kind, bins in kinds.items():
            difference = histogram.subtract(bins, before.get(disk, {}).get(kind, {}))
            if difference is None:
                return None
            growth.setdefault(disk, {})[kind] = difference
    return growth


def _matrix(
    now: Mapping[int, Mapping[int, int]], before: Mapping[int, Mapping[int, int]], seconds: float
) -> dict[int, dict[int, float]]:
    matrix: dict[int, dict[int, float]] = {}
    for submitter, row in now.items():
        earlier = before.get(submitter, {})
        rates = {cpu: (n - earlier.get(cpu, 0)) / seconds for cpu, n in row.items()}
        nonzero = {cpu: rate for cpu, rate in rates.items() if rate > 0}
        if nonzero:
            matrix[submitter] = nonzero
    return matrix


def _grown_tasks(now: Iterable[TaskCounts], before: Iterable[TaskCounts]) -> list[TaskCounts]:
    """I/O of each task between two readings, without tasks that did none."""
    earlier = {(task.pid, task.disk, task.group): task for task in before}
    tasks = []
    for row in now:
        last = earlier.get((row.pid, row.disk, row.group))
        bins = {
            kind: histogram.subtract(counts, last.bins.get(kind, {}) if last else {}) or {}
            for kind, counts in row.bins.items()
        }
        if any(bins.values()):
            sectors = max(0, row.sectors - (last.sectors if last else 0))
            tasks.append(replace(row, sectors=sectors, bins=bins))
    return tasks


def _tasks(grown: Iterable[TaskCounts], seconds: float, by_group: bool) -> tuple[TaskIo, ...]:
    """The tasks, the busiest first. A process that did I/O for several cgroups (writeback) is in
    none."""
    parts: dict[tuple[int, str, str], list[TaskCounts]] = {}
    for task in grown:
        key = (0, task.group, task.disk) if by_group else (task.pid, "", task.disk)
        parts.setdefault(key, []).append(task)
    tasks = []
    for (pid, _, disk), rows in parts.items():
        kinds = {k: histogram.merge(row.bins.get(k, {}) for row in rows) for k in (READS, WRITES)}
        bins = histogram.merge(one for row in rows for one in row.bins.values())
        ranks = histogram.percentiles(bins, (50.0, 99.0))
        groups = {row.group for row in rows}
        tasks.append(
            TaskIo(
                pid, "" if by_group else rows[0].comm, groups.pop() if len(groups) == 1 else "",
                disk, sum(bins.values()) / seconds,
                sum(kinds[READS].values()) / seconds, sum(kinds[WRITES].values()) / seconds,
                sum(row.sectors for row in rows) * SECTOR / seconds,
                ranks.get(50.0), ranks.get(99.0), bins,
            )
        )  # fmt: skip
    return tuple(sorted(tasks, key=lambda task: (-task.iops, task.pid, task.group, task.disk)))


def _rate(counts: Mapping[str, int], name: str, seconds: float) -> float | None:
    return max(0, counts[name]) / seconds if name in counts else None


def _busy(sample: ProbeSample, before: ProbeSample) -> float | None:
    if sample.busy_s is None or before.busy_s is None:
        return None
    seconds = (sample.arrived_ns - before.arrived_ns) / 1e9
    return ratio(100 * max(0.0, sample.busy_s - before.busy_s), seconds)


def _run_ns(sample: ProbeSample) -> float | None:
    """Mean run time per request since the probe began, not of this interval: the kernel measures it
    in few seconds only."""
    if sample.run_ns is None or sample.run_ios is None or sample.run_ios < MIN_COUNTED_IOS:
        return None
    return sample.run_ns / sample.run_ios
