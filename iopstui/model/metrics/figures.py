"""A figure over many frames: a run's IOPS, its p99, a device's await. Means of means are wrong, so
every figure is made of what can be added: counts over seconds, latency sums over samples, histogram
bins. A figure is named by its path in model/metrics/fields.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from iopstui.model import histogram
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import by_name
from iopstui.model.fio.interval import DirectionInterval
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.frame import FINAL, NO_FIO, PARTIAL, UNCOUNTED, Frame
from iopstui.model.metrics.nvme import BY_NAME as DRIVE_FIGURES
from iopstui.model.metrics.nvme import NVME, WORST, combined_figure
from iopstui.model.metrics.paths import DEVICE, TOTAL, WAIT
from iopstui.model.metrics.probe import KINDS, LatencyStats, RequestStats
from iopstui.model.metrics.shares.share import SOURCE as NFS
from iopstui.model.metrics.shares.share import OperationRates, Share
from iopstui.model.metrics.shares.smb import SOURCE as SMB
from iopstui.model.metrics.waits import MeanWaits, Waits
from iopstui.model.sources import BY_NAME

LATENCIES = ("slat", "clat", "lat")
_PERCENTILES = {percentile_name(p): p for p in PERCENTILES}

_WAITS = ("ios", "cpu", "above", "queue", "device", "unknown", "cache", "unsent")

_REQUEST_FIGURES = {"iops", "mean", "max", *_PERCENTILES}

_DISK = by_name(DiskRates)
_CPU = ("usr", "sys", "iowait", "irq", "soft", "idle", "steal")
_CPU_RATES = {"block/s": "block_s", "irq/s": "irq_s", "ipi/s": "ipi_s"}
_FIO_MEANS = {"usr_cpu": "usr_cpu", "sys_cpu": "sys_cpu", "ctx/s": "ctx_s"}


_SHARE: Mapping[str, Callable[[Share], tuple[float | None, float | None]]] = {
    "ops/s": lambda s: (s.ops_s, s.seconds),
    "bklog": lambda s: (s.bklog, s.sends),
}
_OPERATION: Mapping[str, Callable[[OperationRates], tuple[float | None, float | None]]] = {
    "ops/s": lambda o: (o.ops_s, o.seconds),
    "kB/s": lambda o: (o.kb_s, o.seconds),
    "kB/op": lambda o: (o.kb_op, o.ops),
    "retrans%": lambda o: (o.retrans_percent, o.ops),
    "rtt": lambda o: (o.rtt, o.ops),
    "exe": lambda o: (o.exe, o.ops),
    "queue": lambda o: (o.queue, o.ops),
    "errors%": lambda o: (o.errors_percent, o.ops),
}
"""A figure of the NFS mount or of an operation there, and its weight."""
_SMB: Mapping[str, Callable[[Share], tuple[float | None, float | None]]] = {
    "ops/s": lambda s: (s.ops_s, s.seconds),
    "in_flight": lambda s: (s.smb.in_flight if s.smb else None, s.seconds),
}
_SMB_OPERATION: Mapping[str, Callable[[OperationRates], tuple[float | None, float | None]]] = {
    **{name: _OPERATION[name] for name in ("ops/s", "kB/s", "kB/op", "errors%")},
    "latency": lambda o: (o.latency, o.answers),
}
"""The same of an SMB share."""


def is_measurable(path: Sequence[str]) -> bool:
    """True if a whole run has one figure for the field at ``path`` (concrete, no ``*``)."""
    if path and path[0] == DEVICE:
        return len(path) in (3, 5) and path[-1] in _REQUEST_FIGURES
    if path and path[0] == WAIT:
        return len(path) == 3 or path[-1] in _WAITS
    if path[:2] == ("kernel", NFS):
        return path[-1] in (_SHARE if len(path) == 3 else _OPERATION)
    if path[:2] == ("kernel", SMB):
        return path[-1] in (_SMB if len(path) == 3 else _SMB_OPERATION)
    if len(path) == 2 and path[0] == NVME:
        return path[1] in DRIVE_FIGURES
    if len(path) == 3 and path[:2] == ("kernel", TOTAL):
        return path[2] in _DISK
    if len(path) == 3 and path[0] == "fio":
        return path[2] in ("iops", "bw")
    if len(path) == 4 and path[0] == "fio":
        return path[3] in ("mean", "max", *_PERCENTILES)
    if len(path) == 4 and path[:2] == ("kernel", "disks"):
        return path[3] in _DISK
    if len(path) == 4 and path[:2] == ("kernel", "cpus"):
        return path[3] in _CPU or path[3] in _CPU_RATES
    if len(path) == 3 and path[0] == "kernel" and path[1] in BY_NAME:
        return path[2] in {figure.name for figure in BY_NAME[path[1]].figures}
    return tuple(path) in {("fio", name) for name in _FIO_MEANS} | {("own_cpu",), ("throttled",)}


def has_idle_end(frame: Frame) -> bool:
    """The kernel's last interval goes on until fio's last document, when nothing runs any more, and
    while fio writes its logs nothing runs either; only a run without any other is better judged by
    it than by nothing."""
    has_ended = NO_FIO in frame.flags and frame.fio_age_s is not None
    return has_ended or {FINAL, PARTIAL} <= frame.flags


class Meter:
    """Adds frames up to one figure. ``add`` returns the frame's own value of it.

    Frames of fio's ramp and around a handover are left out.
    ``value`` is ``None`` where nothing was measured.
    """

    def __init__(self, path: Sequence[str]) -> None:
        if not is_measurable(path):
            raise ValueError(f"no figure of a whole run: {'.'.join(path)}")
        self.path = tuple(path)
        self._by_bins = _by_bins(path)
        self._sum = 0.0
        self._weight = 0.0
        self._bins: dict[int, int] = {}
        self._max: int | None = None
        self._idle = False

    def add(self, frame: Frame) -> float | None:
        """Count one frame; its own value, ``None`` if it has none."""
        if self.path[0] == NVME:
            return self._add_drives(frame)
        idle = self.path[0] != "fio" and has_idle_end(frame)
        if UNCOUNTED & frame.flags or (idle and self._weight):
            return None
        value = self._count(frame)
        self._idle |= idle and self._weight > 0
        return value

    def _count(self, frame: Frame) -> float | None:
        if self._by_bins:
            return self._add_requests(frame) if self.path[0] == DEVICE else self._add_bins(frame)
        value, weight = self._value_and_weight(frame)
        if value is None or not weight:
            return None
        self._sum += value * weight
        self._weight += weight
        return value

    def join(self, meter: Meter) -> None:
        """Add the counts of another meter of the same figure."""
        self._sum += meter._sum
        self._weight += meter._weight
        self._bins = histogram.merge((self._bins, meter._bins))
        self._max = max(self._max or 0, meter._max or 0) or None

    def follow(self, later: Meter) -> None:
        """Add the counts of another meter of the same figure over the following frames."""
        if self.path[0] == NVME:
            self._use_drive_value(later.value)
            return
        # an idle end counts only where there is nothing else
        if not (later._idle and self._weight):
            self.join(later)

    @property
    def percent(self) -> float | None:
        """99.0 of a p99; ``None`` where the figure is no percentile."""
        return _PERCENTILES.get(self.path[-1]) if self._by_bins else None

    @property
    def bins(self) -> Mapping[int, int]:
        """The histogram that a percentile is of."""
        return self._bins

    @property
    def value(self) -> float | None:
        """The figure over all frames so far, in the unit of its field."""
        if self._by_bins:
            if self.path[-1] == "max":
                return self._max
            percent = _PERCENTILES[self.path[-1]]
            value = histogram.percentiles(self._bins, (percent,)).get(percent)
            return value if value is None or self._max is None else min(value, self._max)
        return self._sum / self._weight if self._weight else None

    def _add_drives(self, frame: Frame) -> float | None:
        """A counter's growth since the run's beginning is in every reading: the last one counts."""
        value = combined_figure(frame.nvme, self.path[1]) if frame.nvme else None
        self._use_drive_value(value)
        return value

    def _use_drive_value(self, value: float | None) -> None:
        if value is not None:
            worst = WORST.get(self.path[1])
            self._sum = worst((self._sum, value)) if worst and self._weight else value
            self._weight = 1.0

    def _add_requests(self, frame: Frame) -> float | None:
        requests = _requests(frame, self.path)
        if requests is None or not requests.device.bins:
            return None
        self._bins = histogram.merge((self._bins, requests.device.bins))
        self._max = max(self._max or 0, requests.device.max_ns or 0) or None
        self._weight += requests.seconds
        return _latency_figure(requests.device, self.path[-1])

    def _add_bins(self, frame: Frame) -> float | None:
        part = _direction(frame, self.path[1])
        if part is None or part.bins_of != self.path[2] or not part.bins:
            return None
        self._bins = histogram.merge((self._bins, part.bins))
        self._max = max(self._max or 0, part.max_ns or 0) or None
        return part.max_ns if self.path[3] == "max" else part.percentiles.get(self.path[3])

    def _value_and_weight(self, frame: Frame) -> tuple[float | None, float | None]:
        """The frame's value and its weight."""
        path = self.path
        if path[0] == DEVICE:
            requests = _requests(frame, path)
            if requests is None:
                return None, None
            if path[-1] == "iops":
                return requests.iops, requests.seconds
            return requests.device.mean_ns, requests.device.ios
        if path[:2] in (("kernel", NFS), ("kernel", SMB)):
            return _share(frame.share, path)
        if path[0] == "kernel" and path[1] in BY_NAME:
            return frame.more.get(path[1], {}).get(path[2]), frame.seconds
        if path[0] == "kernel":
            return _cpu(frame, path) if path[1] == "cpus" else _disk(frame, path)
        if path[0] == WAIT:
            return _wait(frame, path), frame.seconds
        if path[0] != "fio":
            value = frame.own_cpu if path == ("own_cpu",) else frame.throttled
            return value, frame.seconds
        if frame.fio is None:
            return None, None
        if len(path) == 2:
            value = getattr(frame.fio, _FIO_MEANS[path[1]])
            return value, frame.fio.seconds
        part = _direction(frame, path[1])
        if len(path) == 3:
            return _rate(part, path[2], frame.fio.seconds), frame.fio.seconds
        if part is None:
            return None, None
        return getattr(part, f"{path[2]}_ns"), part.samples.get(path[2])


class RunWaits:
    """Waits of a run, as means over the frames of fio that ``Meter`` counts: in the last interval,
    which has no jobs left, nobody knows who waited for a CPU."""

    def __init__(self) -> None:
        self._mean = MeanWaits()
        self._idle = False

    def add(self, frame: Frame) -> None:
        """Count one frame."""
        idle = has_idle_end(frame)
        if frame.fio is None or UNCOUNTED & frame.flags or (idle and not self._mean.empty):
            return
        self._mean.add(frame.waits, frame.whole.seconds)
        self._idle |= idle and not self._mean.empty

    def join(self, later: RunWaits) -> None:
        """Count the frames that follow."""
        if later._idle and not self._mean.empty:
            return
        self._idle |= later._idle
        self._mean.join(later._mean)

    @property
    def value(self) -> Waits | None:
        """The mean so far; ``None`` of nothing."""
        return self._mean.value


def _share(share: Share | None, path: Sequence[str]) -> tuple[float | None, float | None]:
    on_smb = path[1] == SMB
    if share is None or on_smb != (share.smb is not None):
        return None, None
    share_figures, operation_figures = (_SMB, _SMB_OPERATION) if on_smb else (_SHARE, _OPERATION)
    if len(path) == 3:
        return share_figures[path[2]](share)
    if path[2] == "others":
        other = share.others.get(path[3])
        return (None, None) if other is None else operation_figures[path[4]](other)
    operation: OperationRates = getattr(share, path[2])
    return operation_figures[path[3]](operation)


def _by_bins(path: Sequence[str]) -> bool:
    if path[0] == DEVICE:
        return path[-1] not in ("mean", "iops")
    return len(path) == 4 and path[0] == "fio" and path[3] != "mean"


def _requests(frame: Frame, path: Sequence[str]) -> RequestStats | None:
    """Requests of the disk in the path, else of the job's devices."""
    if frame.probe is None:
        return None
    names = (path[2],) if path[1] == "disks" else frame.opened
    kind = path[-2]
    return frame.probe.combined(names, KINDS if kind == TOTAL else (kind,))


def _latency_figure(stats: LatencyStats, name: str) -> float | None:
    return stats.max_ns if name == "max" else stats.percentiles.get(name)


def _rate(part: DirectionInterval | None, name: str, seconds: float | None) -> float | None:
    """Return the rate from the counts: an interval without any I/O of this direction had a rate of
    0."""
    if not seconds:
        return None
    if part is None:
        return 0.0
    if name == "iops" and part.iops is None:
        return None
    return (part.ios if name == "iops" else part.bytes) / seconds


def _direction(frame: Frame, name: str) -> DirectionInterval | None:
    if frame.fio is None:
        return None
    return frame.fio.total if name == TOTAL else frame.fio.directions.get(name)


def _wait(frame: Frame, path: Sequence[str]) -> float | None:
    if frame.waits is None or frame.waits.stalled:
        return None
    if path[1] == "layers":
        return frame.waits.layers.get(path[2])
    value: float | None = getattr(frame.waits, path[1])
    return value


def _disk(frame: Frame, path: Sequence[str]) -> tuple[float | None, float | None]:
    disk = frame.total if path[1] == TOTAL else frame.disks.get(path[2])
    if disk is None:
        return None, None
    figure = _DISK[path[-1]]
    parts = figure.parts(disk)
    return (None, None) if parts is None else (parts[0] / parts[1] / figure.scale, parts[1])


def _cpu(frame: Frame, path: Sequence[str]) -> tuple[float | None, float | None]:
    cpu = frame.cpus.get(int(path[2]))
    if cpu is None:
        return None, None
    if path[3] in _CPU_RATES:
        return getattr(cpu, _CPU_RATES[path[3]]), frame.seconds
    return (getattr(cpu.load, path[3]) if cpu.load else None), frame.seconds
