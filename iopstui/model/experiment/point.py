"""Steady-state measurements of one run of an experiment: one value per figure, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from iopstui.model import histogram
from iopstui.model.experiment.disturbance import Disturbance, DisturbanceMeter
from iopstui.model.metrics.figures import Meter, RunWaits
from iopstui.model.metrics.frame import FINAL, PARTIAL, UNCOUNTED, Frame
from iopstui.model.metrics.load_series import LoadSeries, overall
from iopstui.model.metrics.paths import TOTAL
from iopstui.model.metrics.waits import CACHE, UNSENT
from iopstui.model.rates import ratio
from iopstui.model.sources import POWER

LITTLE_TOLERANCE = 0.10
SOFTIRQS, INTERRUPTS = "BLOCK softirqs", "interrupts"
_DISK_FIGURES = ("ios/s", "bytes/s", "merges/s", "aqu-sz", "util")


@dataclass(frozen=True, slots=True)
class Point:
    """Figures of one run. Rates per second, latencies in ns, of reads and writes together.
    ``latency_ns`` is the mean of ``latency_of`` ("lat", or "clat" where fio has no lat, or "await"
    where fio took none: the kernel's); percentiles are of ``bins_of``. ``device_iops``, ``aqu_sz``
    and ``util`` are the target device's, of several devices their sum (``util`` is unknown then).
    ``cpu_us`` is CPU time of the whole machine for each I/O. ``busy`` maps a CPU to its load in
    percent, ``completions`` to its share (0..1) of ``completions_of``. ``steady`` says whether
    SNIA's rule calls these seconds steady. ``iops_low`` and ``iops_high`` are its worst and best
    whole interval; ``slower`` the share (0..1) of I/Os slower than their mean. ``device_bw``
    (bytes/s), ``merges`` (requests/s), ``request_bytes`` (mean size) and ``await_ns`` are the
    device's. ``fio_cpu`` is percent of one CPU, ``ctx_s`` fio's context switches per second.
    ``device_p50_ns``, ``device_p99_ns`` and ``stayed`` (the share, 0..1, of the requests that were
    completed on the CPU that allocated them) are the probe's. ``wait_cpu``, ``wait_above``,
    ``wait_devices``, ``wait_cache``, ``wait_unsent`` and ``wait_unknown`` divide the I/Os in flight
    by the place where they wait (model/metrics/waits.py), ``wait_layers`` the third by device.
    ``watts`` is the mean power of the CPU packages. ``runs`` is of how many runs this is the
    mean (model/experiment/repeated_points.py), ``iops_within`` and ``latency_within`` (ns) are
    then 95 % intervals of it. ``others`` is the share (0..1) of the device's I/O that was not the
    job's, ``disturbed`` are sentences on what spoiled the figures, ``irq_cpus`` has the CPU that
    served each of the device's interrupts (model/experiment/disturbance.py). Unknown is
    ``None``."""

    seconds: float
    ios: int
    iops: float
    bw: float
    read_iops: float | None = None
    write_iops: float | None = None
    latency_ns: float | None = None
    latency_of: str = ""
    p50_ns: float | None = None
    p99_ns: float | None = None
    p999_ns: float | None = None
    bins_of: str = "clat"
    device_iops: float | None = None
    aqu_sz: float | None = None
    util: float | None = None
    cpu_us: float | None = None
    busy: Mapping[int, float] = field(default_factory=dict)
    completions: Mapping[int, float] = field(default_factory=dict)
    completions_of: str = ""
    steady: bool | None = None
    iops_low: float | None = None
    iops_high: float | None = None
    slat_ns: float | None = None
    clat_ns: float | None = None
    max_ns: float | None = None
    slower: float | None = None
    device_bw: float | None = None
    merges: float | None = None
    request_bytes: float | None = None
    await_ns: float | None = None
    fio_cpu: float | None = None
    ctx_s: float | None = None
    device_p50_ns: float | None = None
    device_p99_ns: float | None = None
    stayed: float | None = None
    wait_cpu: float | None = None
    wait_above: float | None = None
    wait_devices: float | None = None
    wait_unknown: float | None = None
    wait_cache: float | None = None
    wait_unsent: float | None = None
    wait_layers: Mapping[str, float] = field(default_factory=dict)
    watts: float | None = None
    runs: int = 1
    iops_within: tuple[float, float] | None = None
    latency_within: tuple[float, float] | None = None
    others: float | None = None
    disturbed: tuple[str, ...] = ()
    irq_cpus: Mapping[str, int] = field(default_factory=dict)

    @property
    def in_flight(self) -> float | None:
        """N = X * R (Little's law): how many I/Os were under way on average."""
        return None if self.latency_ns is None else self.iops * self.latency_ns / 1e9

    @property
    def write_bw(self) -> float | None:
        """Bytes written per second, if reads and writes are of one size; ``None``: not known."""
        if self.write_iops is None or not self.iops:
            return None
        return self.bw * self.write_iops / self.iops

    @property
    def ios_per_joule(self) -> float | None:
        """I/Os for each joule that the CPU packages used, idle power included."""
        return ratio(self.iops, self.watts)

    @property
    def most_waits(self) -> tuple[str, float] | None:
        """The place where most I/Os wait, and how many; ``None`` where that is not known."""
        places = {
            "CPU": self.wait_cpu, "above": self.wait_above, CACHE: self.wait_cache,
            UNSENT: self.wait_unsent, **self.wait_layers, "unknown": self.wait_unknown,
        }  # fmt: skip
        waits = [(name, value) for name, value in places.items() if value]
        return max(waits, key=lambda entry: entry[1], default=None)

    @property
    def most_completions(self) -> float | None:
        """The share of the CPU that completed most."""
        return max(self.completions.values(), default=None)


def point_json(point: Point) -> dict[str, Any]:
    """Return a point as JSON can carry it; ``point_from_json`` gives the same again."""
    return asdict(point)


def point_from_json(data: Mapping[str, Any]) -> Point:
    """The point of a JSON object. KeyError, TypeError or ValueError if it is not one."""
    names = {field.name for field in fields(Point)}
    values = {name: value for name, value in data.items() if name in names}
    for name in ("busy", "completions"):
        values[name] = {int(cpu): float(share) for cpu, share in values.get(name, {}).items()}
    for name in ("seconds", "ios", "iops", "bw"):
        values[name] = values[name] + 0
    values["disturbed"] = tuple(map(str, values.get("disturbed", ())))
    return Point(**values)


def run_length_s(settle_s: float, measure_s: float, interval_s: float) -> float:
    """How long a run has to be for ``measure_s`` seconds to be measured in it: the interval in
    which the settling ends is lost."""
    return settle_s + measure_s + (interval_s if settle_s else 0.0)


class SettlingFilter:
    """Selects the frames of one run to measure: those after fio's first ``settle_s`` seconds and
    its ramp, up to ``measure_s`` in total (``None``: all), each to within a tenth of an
    interval."""

    def __init__(self, settle_s: float, measure_s: float | None = None) -> None:
        self._settle_s = settle_s
        self._measure_s = measure_s
        self.elapsed = self.measured = 0.0

    def counts(self, frame: Frame) -> bool:
        """Count one frame; True if it is measured."""
        if frame.fio is None or not frame.fio.seconds or UNCOUNTED & frame.flags:
            return False
        began, self.elapsed = self.elapsed, self.elapsed + frame.fio.seconds
        tolerance = 0.1 * min(frame.fio.seconds, 1.0)
        if began < self._settle_s - tolerance:
            return False
        if self._measure_s is not None and self.measured >= self._measure_s - tolerance:
            return False
        self.measured += frame.fio.seconds
        return True


class PointMeter:
    """Measures one run from its frames; ignores frames before settling ends and after the
    measured seconds. ``devices`` are those of the job. Without ``disturbances`` nothing is known
    of what else went on."""

    def __init__(
        self,
        settle_s: float,
        devices: Sequence[str],
        measure_s: float | None = None,
        disturbances: DisturbanceMeter | None = None,
    ) -> None:
        self._settling = SettlingFilter(settle_s, measure_s)
        self._devices = tuple(devices)
        self._ios = 0
        self._seconds = 0.0
        self._load = LoadSeries()
        self._whole: list[float] = []
        self._bins: dict[int, int] = {}
        self._bins_of = "clat"
        self._max_ns: int | None = None
        self._wait_ms, self._requests = 0.0, 0
        self._device_bins: dict[int, int] = {}
        self._moved = self._stayed = 0.0
        self._waits = RunWaits()
        self._disturbances = disturbances
        self._block: dict[int, float] = {}
        self._irq: dict[int, float] = {}
        paths = [
            ("fio", "total", "iops"), ("fio", "total", "bw"), ("fio", "total", "lat", "mean"),
            ("fio", "total", "clat", "mean"), ("fio", "read", "iops"), ("fio", "write", "iops"),
            ("fio", "total", "slat", "mean"), ("fio", "usr_cpu"), ("fio", "sys_cpu"),
            ("fio", "ctx/s"), ("kernel", POWER, "package"),
        ]  # fmt: skip
        scope = ("disks", *devices) if len(devices) == 1 else (TOTAL,)
        paths += [("kernel", *scope, name) for name in _DISK_FIGURES if devices]
        self._meters = {path[1:] if path[0] == "fio" else path[-1:]: Meter(path) for path in paths}
        self._cpus: dict[int, list[Meter]] = {}

    def add(self, frame: Frame) -> None:
        """Count one frame."""
        counts = self._settling.counts(frame)
        is_after_end = bool(self._requests) and {FINAL, PARTIAL} <= frame.flags
        if self._disturbances is not None:
            self._disturbances.add(frame, counts and not is_after_end)
        if not counts or frame.fio is None or not frame.fio.seconds:
            return
        self._ios += frame.fio.total.ios
        self._seconds += frame.fio.seconds
        self._load.add(frame)
        if PARTIAL not in frame.flags:
            self._whole.append(frame.fio.total.ios / frame.fio.seconds)
        self._bins = histogram.merge((self._bins, frame.fio.total.bins))
        self._bins_of = frame.fio.total.bins_of
        if frame.fio.total.max_ns is not None:
            self._max_ns = max(self._max_ns or 0, frame.fio.total.max_ns)
        for meter in self._meters.values():
            meter.add(frame)
        self._waits.add(frame)
        if not is_after_end:
            self._add_kernel(frame)
            self._add_probe(frame)

    def _add_kernel(self, frame: Frame) -> None:
        disk = frame.combined(self._devices)
        if disk is not None:
            waited = disk.waited_ms
            if waited is not None:
                self._wait_ms += waited
                self._requests += disk.ios or 0
        for number, cpu in frame.cpus.items():
            if number not in self._cpus:
                path = ("kernel", "cpus", str(number))
                names = ("usr", "sys", "irq", "soft")
                self._cpus[number] = [Meter((*path, name)) for name in names]
            for meter in self._cpus[number]:
                meter.add(frame)
            for total, rate in ((self._block, cpu.block_s), (self._irq, cpu.irq_s)):
                if rate is not None and frame.seconds:
                    total[number] = total.get(number, 0.0) + rate * frame.seconds

    def _add_probe(self, frame: Frame) -> None:
        if frame.probe is None:
            return
        combined = frame.probe.combined(self._devices)
        if combined is not None:
            self._device_bins = histogram.merge((self._device_bins, combined.device.bins))
        for submitter, row in frame.probe.matrix.items():
            for completer, rate in row.items():
                self._moved += rate * frame.probe.seconds
                self._stayed += rate * frame.probe.seconds if submitter == completer else 0.0

    def point(self) -> Point | None:
        """The figures so far; ``None`` if nothing was measured."""
        seconds = self._seconds
        iops = self._value("total", "iops")
        if not seconds or iops is None:
            return None
        latency, of = self._latency()
        percentiles = histogram.percentiles(self._bins, (50.0, 99.0, 99.9))
        completions, completions_of = self._completions()
        loads = {number: self._busy(meters) for number, meters in sorted(self._cpus.items())}
        busy = {number: load for number, load in loads.items() if load is not None}
        point = Point(
            seconds=seconds,
            ios=self._ios,
            iops=iops,
            bw=self._value("total", "bw") or 0.0,
            read_iops=self._value("read", "iops"),
            write_iops=self._value("write", "iops"),
            latency_ns=latency,
            latency_of=of,
            p50_ns=percentiles.get(50.0),
            p99_ns=percentiles.get(99.0),
            p999_ns=percentiles.get(99.9),
            bins_of=self._bins_of,
            cpu_us=1e4 * sum(busy.values()) / iops if busy and iops else None,
            busy=busy,
            completions=completions,
            completions_of=completions_of,
            steady=overall(self._load.stages()).steady,
            iops_low=min(self._whole, default=None),
            iops_high=max(self._whole, default=None),
            slat_ns=self._value("total", "slat", "mean"),
            clat_ns=self._value("total", "clat", "mean"),
            max_ns=self._max_ns,
            slower=self._share_above_mean(),
            fio_cpu=self._sum("usr_cpu", "sys_cpu"),
            ctx_s=self._value("ctx/s"),
        )
        return self._with_device(point)

    def _with_device(self, point: Point) -> Point:
        """The point with the figures of the kernel and of the probe."""
        device = histogram.percentiles(self._device_bins, (50.0, 99.0))
        requests, moved = self._value("ios/s"), self._value("bytes/s")
        waits = self._waits.value
        found = self._disturbances.result() if self._disturbances is not None else Disturbance()
        return replace(
            point,
            device_iops=requests,
            aqu_sz=self._value("aqu-sz"),
            util=self._value("util"),
            device_bw=moved,
            merges=self._value("merges/s"),
            request_bytes=ratio(moved, requests),
            await_ns=self._wait_ms * 1e6 / self._requests if self._requests else None,
            device_p50_ns=device.get(50.0),
            device_p99_ns=device.get(99.0),
            stayed=self._stayed / self._moved if self._moved else None,
            wait_cpu=waits.cpu if waits else None,
            wait_above=waits.above if waits else None,
            wait_devices=waits.in_devices if waits and waits.layers else None,
            wait_unknown=waits.unknown if waits else None,
            wait_cache=waits.cache if waits else None,
            wait_unsent=waits.unsent if waits else None,
            wait_layers=waits.layers if waits else {},
            watts=self._value("package"),
            others=found.others,
            disturbed=found.reasons,
            irq_cpus=found.irq_cpus,
        )

    def _sum(self, *names: str) -> float | None:
        values = [value for name in names if (value := self._value(name)) is not None]
        return sum(values) if values else None

    def _share_above_mean(self) -> float | None:
        """The share of I/Os in buckets above the mean of the same latency."""
        mean, total = self._value("total", self._bins_of, "mean"), sum(self._bins.values())
        if mean is None or not total:
            return None
        return sum(count for key, count in self._bins.items() if key > mean) / total

    def _value(self, *path: str) -> float | None:
        meter = self._meters.get(path)
        return meter.value if meter else None

    def _latency(self) -> tuple[float | None, str]:
        for kind in ("lat", "clat"):
            mean = self._value("total", kind, "mean")
            if mean is not None:
                return mean, kind
        if self._requests:
            return self._wait_ms * 1e6 / self._requests, "await"
        return None, ""

    def _busy(self, meters: list[Meter]) -> float | None:
        values = [value for meter in meters if (value := meter.value) is not None]
        return sum(values) if values else None

    def _completions(self) -> tuple[dict[int, float], str]:
        """CPUs that ran the completions. Without softirqs (the interrupt's CPU did the rest itself)
        the device's own interrupts tell. Both come once for many I/Os, so they are held against
        each other: completions that are passed on raise about a softirq an interrupt, other disks
        few."""
        block, irq = sum(self._block.values()), sum(self._irq.values())
        if block and block >= 0.5 * irq:
            return {cpu: n / block for cpu, n in sorted(self._block.items())}, SOFTIRQS
        if irq:
            return {cpu: n / irq for cpu, n in sorted(self._irq.items())}, INTERRUPTS
        return {}, ""


@dataclass(frozen=True, slots=True)
class LittlesLaw:
    """Little's law applied to one run: ``asked`` I/Os by the job (depth x jobs), ``seen`` = IOPS
    x mean latency; ``holds`` if they agree within ``LITTLE_TOLERANCE``, otherwise ``why`` gives
    the reason."""

    asked: int | None
    seen: float | None
    holds: bool | None
    why: str = ""


def littles_law(
    point: Point, requested: int | None, paced: bool, synchronous: bool = False
) -> LittlesLaw:
    """Check N = X * R. ``paced``: the job holds I/Os back by itself (rate, thinktime)."""
    measured = point.in_flight
    if measured is None:
        return LittlesLaw(requested, None, None, "no latency measured")
    if requested is None:
        return LittlesLaw(None, measured, None, "the job's queue depth is unknown")
    if abs(measured - requested) <= LITTLE_TOLERANCE * requested:
        return LittlesLaw(requested, measured, True)
    of = "kernel latency (fio measured none)" if point.latency_of == "await" else point.latency_of
    if measured > requested:
        why = f"more than requested: the latency, {of}, includes other I/Os"
    elif paced:
        why = "the job paces itself (rate or thinktime), so its queue is not full"
    elif point.latency_of == "await":
        why = "the rest waits in fio or above the device, where the kernel does not measure"
    elif synchronous:
        why = "fio's jobs spend the rest of the time outside I/O"
    else:
        why = "fio's jobs do not keep their queue full: they wait for a CPU or block between I/Os"
    return LittlesLaw(requested, measured, False, why)
