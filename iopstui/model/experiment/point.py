"""Steady-state measurements of one run of an experiment: one value per figure, as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from iopstui.format import latency, mib, percent
from iopstui.model import histogram
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import Figure, Totals, by_name
from iopstui.model.fio.interval import BW, IOPS
from iopstui.model.metrics.cpus import CPU
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import PARTIAL, UNCOUNTED, Frame
from iopstui.model.metrics.load_series import LoadSeries, overall
from iopstui.model.metrics.run_figures import RunFigures
from iopstui.model.metrics.statistics import CONFIDENCE, t_quantile
from iopstui.model.metrics.waits import CACHE, UNSENT
from iopstui.model.rates import ratio
from iopstui.model.sources import POWER

if TYPE_CHECKING:
    # this module imports everything that detects others' I/O, and only an experiment needs it
    from iopstui.model.experiment.disturbance import DisturbanceMeter

LITTLE_TOLERANCE = 0.10
SOFTIRQS, INTERRUPTS = "BLOCK softirqs", "interrupts"
BUSY = ("usr", "sys", "irq", "soft")
BLOCK, IRQ = "block/s", "irq/s"
OF_CPU = (*BUSY, BLOCK, IRQ)
SCOPES = DISK, BINS, PROBE, WAITS = "disk", "bins", "probe", "waits"
"""First words of paths: figures of the target's device (of several devices, their sum); percentiles
of fio's latencies, or of the latencies in the device; places where I/Os wait
(model/metrics/waits.py). Other paths name a frame's figures."""
FIGURE, JOIN, PATH = "figure", "join", "path"
Joined = Callable[[Sequence[Any]], Any]


def _of_known(join: Joined) -> Joined:
    """Combine the known values with ``join``; ``None`` if all are unknown."""

    def joined(values: Sequence[Any]) -> Any:
        known = [value for value in values if value is not None]
        return join(known) if known else None

    return joined


def _first(values: Sequence[Any]) -> Any:
    return values[0]


def _all(states: Sequence[bool | None]) -> bool | None:
    return False if False in states else None if None in states else True


def _means_by_key(values: Sequence[Mapping[Any, float]]) -> dict[Any, float]:
    """The means by CPU or device; a missing value counts as 0."""
    keys = dict.fromkeys(key for run in values for key in run)
    return {key: sum(run.get(key, 0.0) for run in values) / len(values) for key in keys}


def _means_by_cpu(values: Sequence[Mapping[int, float]]) -> dict[int, float]:
    return dict(sorted(_means_by_key(values).items()))


def _all_texts(values: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for texts in values for text in texts))


_mean = _of_known(lambda known: sum(known) / len(known))
_least, _most = _of_known(min), _of_known(max)


def _cpu_text(microseconds: float | None) -> str:
    return latency(None if microseconds is None else microseconds * 1000)


def _share_text(share: float) -> str:
    return f"{100 * share:.0f} %"


def row(
    unit: str, meaning: str, path: str = "", join: Joined = _mean, default: Any = None, **more: Any
) -> Any:
    """A dataclass field of Point, whose metadata say how to show it (a Figure) and how to get its
    value: ``path`` names the meter that measures it ("": none), ``join`` combines the values of
    repeated runs."""
    figure = partial(Figure, unit=unit, meaning=meaning, **more)
    said = {FIGURE: figure, PATH: path, JOIN: join}
    if default is dict:
        return field(default_factory=dict, metadata=said)
    return field(default=default, metadata=said)


def _time(meaning: str, path: str = "", join: Joined = _mean, **more: Any) -> Any:
    return row("ns", meaning, path, join, width=7, form=latency, **more)


@dataclass(frozen=True, slots=True)
class Point:
    """Figures of one run, for reads and writes together unless the name says otherwise; ``POINT``
    describes each. Unknown is ``None``."""

    seconds: float = row("s", "seconds measured", join=sum, default=MISSING)
    ios: int = row("I/Os", "I/Os counted", join=sum, default=MISSING)
    iops: float = row("1/s", "I/Os per second, reads and writes", default=MISSING,
                       title="IOPS", width=5)  # fmt: skip
    bw: float = row("B/s", "bytes per second", default=MISSING, title="MiB/s",
                     width=5, form=mib, rank=6)  # fmt: skip
    read_iops: float | None = row("1/s", "reads per second", "fio read iops")
    write_iops: float | None = row("1/s", "writes per second", "fio write iops")
    latency_ns: float | None = _time("mean latency as fio sees it", title="mean")
    latency_of: str = row("", "which latency this is: lat, or clat if fio has no lat, or the "
                              "kernel's await if fio has neither",
                           join=_first, default="")  # fmt: skip
    p50_ns: float | None = _time("median of the latency", "bins 50", title="p50", rank=5)
    p99_ns: float | None = _time("99th percentile", "bins 99", title="p99")
    p999_ns: float | None = _time("99.9th percentile", "bins 99.9", title="p99.9", rank=3)
    bins_of: str = row("", "what the percentiles are of", join=_first, default="clat")
    device_iops: float | None = row(
        "1/s", "requests the device completed per second", "disk ios/s")  # fmt: skip
    aqu_sz: float | None = row(
        "", "requests in flight, as the kernel counts them", f"disk {DiskRates.aqu_sz.name}",
        title=DiskRates.aqu_sz.name, rank=4,
    )  # fmt: skip
    util: float | None = row("%", "time in which the device had a request", "disk util",
                              title="util %", form=percent)  # fmt: skip
    cpu_us: float | None = row(
        "us", "CPU time of the machine for each I/O", title="CPU/IO", width=7, form=_cpu_text
    )
    busy: Mapping[int, float] = row("%", "load by CPU", join=_means_by_cpu, default=dict)
    completions: Mapping[int, float] = row(
        "share", "share of the completions by CPU", join=_means_by_cpu, default=dict)  # fmt: skip
    completions_of: str = row(
        "", "what counts a CPU's completions: softirqs or interrupts", join=_first, default=""
    )
    steady: bool | None = row("", "whether SNIA's rule calls these seconds steady", join=_all)
    iops_low: float | None = row("1/s", "IOPS of the run's worst second", join=_least)
    iops_high: float | None = row("1/s", "IOPS of the run's best second", join=_most)
    slat_ns: float | None = _time("mean submission latency", "fio total slat mean")
    clat_ns: float | None = _time("mean completion latency", "fio total clat mean")
    max_ns: float | None = _time("slowest I/O", join=_most)
    slower: float | None = row("share", "share of I/Os slower than the mean")
    device_bw: float | None = row("B/s", "bytes it moved per second", "disk bytes/s")
    merges: float | None = row("1/s", "requests merged into others per second", "disk merges/s")
    request_bytes: float | None = row("B", "mean size of a request at the device")
    await_ns: float | None = _time("mean time of a request in kernel and device")
    fio_cpu: float | None = row("%", "CPU time of fio itself, percent of one CPU")
    ctx_s: float | None = row("1/s", "context switches of fio per second", "fio ctx/s")
    device_p50_ns: float | None = _time("median in the device alone, by the probe", "probe 50")
    device_p99_ns: float | None = _time("99th percentile in the device alone, by the probe",
                                         "probe 99")  # fmt: skip
    stayed: float | None = row(
        "share", "requests completed on the CPU that submitted them, by the probe")  # fmt: skip
    wait_cpu: float | None = row("", "I/Os in flight that wait for a CPU", "waits cpu")
    wait_above: float | None = row("", "I/Os in flight above the device", "waits above")
    wait_devices: float | None = row(
        "", "I/Os in flight in the devices under the target", "waits in_devices"
    )
    wait_unknown: float | None = row(
        "", "I/Os in flight in a place that no counter shows", "waits unknown"
    )
    wait_cache: float | None = row("", "I/Os in flight in the page cache", "waits cache")
    wait_unsent: float | None = row(
        "", "I/Os in flight of an engine that sends nothing to a disk", "waits unsent"
    )
    wait_layers: Mapping[str, float] = row("", "I/Os in flight in each device", "waits layers",
                                            join=_means_by_key, default=dict)  # fmt: skip
    watts: float | None = row("W", "mean power of the CPU packages", f"kernel {POWER} package")
    runs: int = row("", "number of runs whose mean this is", join=len, default=1)
    iops_within: tuple[float, float] | None = row("1/s", "95 % interval of the IOPS", join=_first)
    latency_within: tuple[float, float] | None = row(
        "ns", "95 % interval of the latency", join=_first)  # fmt: skip
    others: float | None = row(
        "share", "share of the device's I/O that was not the job's", join=_most)  # fmt: skip
    others_on: tuple[str, ...] = row(
        "", "the disk where others did that share", join=_all_texts, default=())  # fmt: skip
    disturbed: tuple[str, ...] = row(
        "", "what spoiled them, in sentences", join=_all_texts, default=())  # fmt: skip
    irq_cpus: Mapping[str, int] = row(
        "", "CPU that served each of its interrupts", join=_first, default=dict)  # fmt: skip

    @property
    def in_flight(self) -> float | None:
        """N = X * R (Little's law): how many I/Os were in flight on average."""
        return None if self.latency_ns is None else self.iops * self.latency_ns / 1e9

    @property
    def write_bw(self) -> float | None:
        """Bytes written per second, assuming that reads and writes have the same size; ``None``:
        not known."""
        if self.write_iops is None or not self.iops:
            return None
        return self.bw * self.write_iops / self.iops

    @property
    def ios_per_joule(self) -> float | None:
        """I/Os for each joule that the CPU packages used, idle power included."""
        return ratio(self.iops, self.watts)

    @property
    def most_waits(self) -> tuple[str, float] | None:
        """The place where most I/Os wait, and their number; ``None`` if unknown."""
        places = {
            "CPU": self.wait_cpu, "above": self.wait_above, CACHE: self.wait_cache,
            UNSENT: self.wait_unsent, **self.wait_layers, "unknown": self.wait_unknown,
        }  # fmt: skip
        waits = [(name, value) for name, value in places.items() if value]
        return max(waits, key=lambda entry: entry[1], default=None)

    @property
    def most_completions(self) -> float | None:
        """The share of completions on the CPU that has the most."""
        return max(self.completions.values(), default=None)


POINT: Mapping[str, Figure] = {
    **{one.name: one.metadata[FIGURE](one.name, part=f"point/{one.name}") for one in fields(Point)},
    **{figure.name: figure for figure in (
        Figure("in_flight", "", "I/Os in flight: IOPS x mean latency", "point/in_flight"),
        Figure("ios_per_joule", "1/J", "I/Os for each joule of the CPU packages",
               "point/ios_per_joule"),
        Figure("most_completions", "share", "completions on the CPU that did most",
               "point/most_completions", title="most on", width=12, form=_share_text),
        Figure("seen", "", "I/Os in flight by Little's law", "little/seen", title="N=X*R", width=5,
               rank=1),
        Figure("asked", "", "I/Os that the job keeps in flight", "little/asked", title="of",
               width=4),
    )},
}  # fmt: skip
"""The figures of a finished run (events.PointFinished)."""
PATHS = {one.name: one.metadata[PATH] for one in fields(Point) if one.metadata[PATH]} | {
    "lat_ns": "fio total lat mean", "usr": "fio usr_cpu", "sys": "fio sys_cpu",
}  # fmt: skip
"""The paths of figures that are read from a meter directly."""


@dataclass(frozen=True, slots=True)
class MeanWithInterval:
    """A figure over runs: the geometric mean, and its 95 % interval (Student's t on the logarithms;
    ``None`` for a single run)."""

    value: float
    within: tuple[float, float] | None


def geometric_mean(values: Sequence[float]) -> MeanWithInterval:
    """Mean of one or more figures; the arithmetic mean without an interval if one is not
    positive."""
    count = len(values)
    if any(value <= 0 for value in values):
        return MeanWithInterval(sum(values) / count, None)
    logs = [math.log(value) for value in values]
    middle = sum(logs) / count
    if count < 2:
        return MeanWithInterval(values[0], None)
    variance = sum((log - middle) ** 2 for log in logs) / (count - 1)
    half = t_quantile(0.5 + CONFIDENCE / 2, count - 1) * math.sqrt(variance / count)
    return MeanWithInterval(math.exp(middle), (math.exp(middle - half), math.exp(middle + half)))


def merge_runs(points: Sequence[Point]) -> Point:
    """Merge runs of one point: IOPS and mean latency with their intervals, seconds and I/Os added,
    the worst and best interval of all, and the means of all other figures."""
    if len(points) == 1:
        return points[0]
    merged = {
        one.name: one.metadata[JOIN]([getattr(point, one.name) for point in points])
        for one in fields(points[0])
    }
    iops = geometric_mean([point.iops for point in points])
    latencies = [point.latency_ns for point in points if point.latency_ns is not None]
    latency = geometric_mean(latencies) if len(latencies) == len(points) else None
    return type(points[0])(**merged | {
        "iops": iops.value, "iops_within": iops.within,
        "latency_ns": latency.value if latency else None,
        "latency_within": latency.within if latency else None,
    })  # fmt: skip


def point_json(point: Point) -> dict[str, Any]:
    """Return a point in a form that JSON can carry; ``point_from_json`` restores the same point."""
    return asdict(point)


def point_from_json(data: Mapping[str, Any]) -> Point:
    """The point of a JSON object. KeyError, TypeError or ValueError if the object is no point."""
    names = {field.name for field in fields(Point)}
    values = {name: value for name, value in data.items() if name in names}
    for name in ("busy", "completions"):
        values[name] = {int(cpu): float(share) for cpu, share in values.get(name, {}).items()}
    for name in ("seconds", "ios", "iops", "bw"):
        values[name] = values[name] + 0
    for name in ("disturbed", "others_on"):
        values[name] = tuple(map(str, values.get(name, ())))
    return Point(**values)


def run_length_s(settle_s: float, measure_s: float, interval_s: float) -> float:
    """How long a run must be so that ``measure_s`` seconds are measured: the interval in which
    settling ends is lost."""
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


class _CpuTotal(Totals):
    """The load of a CPU, and the completions that ran on it."""

    FIGURES = tuple(row for row in CPU if isinstance(row, Figure) and row.name in OF_CPU)

    @property
    def busy(self) -> float | None:
        """Busy time in percent; ``None``: not known."""
        return _sum(*(self.mean(row) for row in self.FIGURES if row.name in BUSY))


class PointMeter:
    """Measures one run from its frames; ignores frames before settling ends and after the measured
    seconds. Without ``disturbances`` it does not look for them."""

    def __init__(
        self,
        settle_s: float,
        measure_s: float | None = None,
        disturbances: DisturbanceMeter | None = None,
    ) -> None:
        self._settling = SettlingFilter(settle_s, measure_s)
        self._run = RunFigures()
        self._ios = 0
        self._load = LoadSeries()
        self._whole: list[float] = []
        self._max_ns: int | None = None
        self._device_bins: dict[int, int] = {}
        self._moved = self._stayed = 0.0
        self._disturbances = disturbances
        self._meters = {name: Meter(path.split()) for name, path in PATHS.items()
                        if path.partition(" ")[0] not in SCOPES}  # fmt: skip
        self._cpus: dict[int, _CpuTotal] = {}

    def add(self, frame: Frame) -> None:
        counts = self._settling.counts(frame)
        of_kernel = counts and self._run.add(frame)
        if self._disturbances is not None:
            self._disturbances.add(frame, of_kernel)
        if not counts or frame.fio is None or not frame.fio.seconds:
            return
        self._ios += frame.fio.total.ios
        self._load.add(frame)
        if PARTIAL not in frame.flags:
            self._whole.append(frame.fio.total.ios / frame.fio.seconds)
        if frame.fio.total.max_ns is not None:
            self._max_ns = max(self._max_ns or 0, frame.fio.total.max_ns)
        for meter in self._meters.values():
            meter.add(frame)
        if of_kernel:
            for number, cpu in frame.cpus.items():
                self._cpus.setdefault(number, _CpuTotal()).add(cpu, frame)
            self._add_probe(frame)

    def _add_probe(self, frame: Frame) -> None:
        if frame.probe is None:
            return
        combined = frame.probe.combined(frame.opened)
        if combined is not None:
            self._device_bins = histogram.merge((self._device_bins, combined.device.bins))
        for submitter, row in frame.probe.matrix.items():
            for completer, rate in row.items():
                self._moved += rate * frame.probe.seconds
                self._stayed += rate * frame.probe.seconds if submitter == completer else 0.0

    def point(self) -> Point | None:
        """The figures so far; ``None`` if nothing was measured."""
        values = self._values()
        iops = values["iops"]
        if not self._run.seconds or iops is None:
            return None
        completions, completions_of = self._completions()
        loads = {number: cpu.busy for number, cpu in sorted(self._cpus.items())}
        busy = {number: load for number, load in loads.items() if load is not None}
        await_ms = self._run.device.mean(DiskRates.ios_await)
        await_ns = None if await_ms is None else await_ms * 1e6
        kinds = {"lat": values["lat_ns"], "clat": values["clat_ns"], "await": await_ns}
        of = next((kind for kind, mean in kinds.items() if mean is not None), "")
        return Point(
            **{name: value for name, value in values.items() if name in POINT},
            seconds=self._run.seconds,
            ios=self._ios,
            latency_ns=kinds.get(of),
            latency_of=of,
            bins_of=self._run.bins_of,
            cpu_us=1e4 * sum(busy.values()) / iops if busy and iops else None,
            busy=busy,
            completions=completions,
            completions_of=completions_of,
            steady=overall(self._load.stages()).steady,
            iops_low=min(self._whole, default=None),
            iops_high=max(self._whole, default=None),
            max_ns=self._max_ns,
            slower=self._share_above_mean(),
            request_bytes=ratio(values["device_bw"], values["device_iops"]),
            await_ns=await_ns,
            fio_cpu=_sum(values["usr"], values["sys"]),
            stayed=self._stayed / self._moved if self._moved else None,
            **self._disturbed(),
        )

    def _values(self) -> dict[str, Any]:
        """The figures that meters give directly, by the paths of their rows."""
        values: dict[str, Any] = {name: meter.value for name, meter in self._meters.items()}
        bins = {BINS: self._run.bins, PROBE: self._device_bins}
        waits = self._run.waits.value
        for name, path in PATHS.items():
            scope, of, *_ = path.split()
            if scope in bins:
                values[name] = histogram.percentiles(bins[scope], (float(of),)).get(float(of))
            elif scope == WAITS:
                values[name] = getattr(waits, of, None)
            elif scope == DISK:
                values[name] = self._run.device.mean(by_name(DiskRates)[of])
        if not values["wait_layers"]:
            values |= {"wait_layers": {}, "wait_devices": None}
        return values | {"iops": self._run.mean(IOPS), "bw": self._run.mean(BW) or 0.0}

    def _disturbed(self) -> dict[str, Any]:
        if self._disturbances is None:
            return {}
        found = self._disturbances.result()
        return {
            "others": found.others, "others_on": found.others_on, "disturbed": found.reasons,
            "irq_cpus": found.irq_cpus,
        }  # fmt: skip

    def _share_above_mean(self) -> float | None:
        """The share of I/Os in buckets above the mean of the same latency."""
        bins = self._run.bins
        meter, total = self._meters.get(f"{self._run.bins_of}_ns"), sum(bins.values())
        mean = meter.value if meter is not None else None
        if mean is None or not total:
            return None
        return sum(count for key, count in bins.items() if key > mean) / total

    def _completions(self) -> tuple[dict[int, float], str]:
        """The CPUs that ran the completions, with their shares, and how this is known. BLOCK
        softirqs show it if there are at least half as many as interrupts of the device: completions
        that are passed on to other CPUs raise about one softirq per interrupt. Otherwise the
        interrupt's CPU completes the I/O itself, the few softirqs are of other disks, and the
        device's interrupts are used."""
        counts = [{number: cpu.sums[name][0] for number, cpu in sorted(self._cpus.items())
                   if cpu.sums[name][1]} for name in (BLOCK, IRQ)]  # fmt: skip
        block, irq = (sum(by_cpu.values()) for by_cpu in counts)
        if block and block >= 0.5 * irq:
            return {cpu: n / block for cpu, n in counts[0].items()}, SOFTIRQS
        if irq:
            return {cpu: n / irq for cpu, n in counts[1].items()}, INTERRUPTS
        return {}, ""


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class LittlesLaw:
    """Little's law applied to one run: ``asked``: I/Os that the job requests (depth x jobs),
    ``seen``: IOPS x mean latency; ``holds`` if they agree within ``LITTLE_TOLERANCE``, otherwise
    ``why`` gives the reason."""

    asked: int | None
    seen: float | None
    holds: bool | None
    why: str = ""


def littles_law(
    point: Point, requested: int | None, paced: bool, synchronous: bool = False
) -> LittlesLaw:
    """Check N = X * R. ``paced``: the job limits its I/Os itself (rate, thinktime)."""
    measured = point.in_flight
    if measured is None:
        return LittlesLaw(requested, None, None, "no latency measured")
    if requested is None:
        return LittlesLaw(None, measured, None, "the job's queue depth is unknown")
    if abs(measured - requested) <= LITTLE_TOLERANCE * requested:
        return LittlesLaw(requested, measured, True)
    if measured > requested and point.latency_of == "await":
        why = "more than requested: kernel latency (fio measured none) includes other I/Os"
    elif measured > requested:
        why = "more than requested: I/Os that ended in these seconds began before them"
    elif paced:
        why = "the job paces itself (rate or thinktime), so its queue is not full"
    elif point.latency_of == "await":
        why = "the rest waits in fio or above the device, where the kernel does not measure"
    elif synchronous:
        why = "fio's jobs spend the rest of the time outside I/O"
    else:
        why = "fio's jobs do not keep their queue full: they wait for a CPU or block between I/Os"
    return LittlesLaw(requested, measured, False, why)


def littles_law_of_runs(point: Point, runs: Sequence[LittlesLaw]) -> LittlesLaw:
    """Little's law on the mean of several runs; if it fails, the reason is that of one of them."""
    requested, measured = runs[0].asked, point.in_flight
    if requested is None or measured is None:
        return replace(runs[0], seen=measured)
    if abs(measured - requested) <= LITTLE_TOLERANCE * requested:
        return LittlesLaw(requested, measured, True)
    return LittlesLaw(requested, measured, False, next((run.why for run in runs if run.why), ""))
