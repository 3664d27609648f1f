"""Figures of AWS volumes (EBS and instance store) in an interval, from their own counters.

The counters are those of NVMe log page D0h (linux/nvme/aws.py), as published. This was not tested
on real hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui import format as f
from iopstui.model.figures.figure import SECONDS, TEXT, Figure, Rows
from iopstui.model.rates import delta

SOURCE = "aws"
"""The name of these counters in a sample (KernelSample.more)."""
AT_NS = "at_ns"
"""When a volume's page was read."""
QUEUE = "queue"
READ_BINS, WRITE_BINS = "read_bins", "write_bins"
"""Names of the counters with the number of bins of a latency histogram; ``bin_name`` names the
counter of each bin."""
EBS, INSTANCE_STORE = "ebs", "instance-store"
LIMITS: Mapping[str, str] = {
    "volume_iops": "volume's IOPS limit",
    "volume_bytes": "volume's throughput limit",
    "instance_iops": "instance's EBS IOPS limit",
    "instance_bytes": "instance's EBS throughput limit",
}
"""Names of the limits, by the counter of the microseconds in which the demand exceeded each."""
MUCH_EXCEEDED_MS = 100.0
"""Shorter bursts within a second are ignored."""
GROWING = ("reads", "writes", "read_bytes", "write_bytes", "read_us", "write_us", *LIMITS)
"""Counters that never shrink while a volume stays attached."""


def _exceeded(limit: str) -> Figure:
    meaning = f"time of a second in which the demand exceeded the {LIMITS[limit]}"
    return Figure(f"{limit}_exceeded", "ms", meaning, limit, SECONDS, per=1e3, most=1e3)


def _percentile(name: str, percent: int, plural: str, bins: str) -> Figure:
    meaning = (f"{percent} % of the {plural} took at most this, by the upper bound of the volume's "
               "own bin")  # fmt: skip
    return Figure(name, "ms", meaning, lambda row: bound_ms(getattr(row, bins), percent),
                  form=f.milliseconds)  # fmt: skip


def bound_ms(bins: Mapping[int, int] | None, percent: int) -> float | None:
    """The upper bound in ms of the bin that contains this percentile; ``None`` without counts."""
    left = -(-percent * sum(bins.values()) // 100) if bins else 0
    for upper, count in sorted((bins or {}).items()):
        left -= count
        if left <= 0 < count:
            return upper / 1e3
    return None


@dataclass(frozen=True, slots=True)
class VolumeGrowth:
    """What a volume's own counters grew by in ``seconds``, the time between the readings of its
    page. Times are in µs; ``queue`` is the queue length at the end. ``kind`` is EBS or
    INSTANCE_STORE, which has no limits of the instance (``None``). ``read_bins`` and ``write_bins``
    count reads and writes by latency: the upper bounds of the volume's bins (``None``: not
    known)."""

    kind: str
    seconds: float
    reads: int
    writes: int
    read_us: int
    write_us: int
    volume_iops: int
    volume_bytes: int
    instance_iops: int | None
    instance_bytes: int | None
    queue: int
    read_bins: Mapping[int, int] | None = None
    write_bins: Mapping[int, int] | None = None

    volume_iops_exceeded = _exceeded("volume_iops")
    volume_bytes_exceeded = _exceeded("volume_bytes")
    instance_iops_exceeded = _exceeded("instance_iops")
    instance_bytes_exceeded = _exceeded("instance_bytes")
    r_await = Figure("r_await", "ms", "mean time of a read, as the volume counts it", "read_us",
                     "reads", per=1e3, form=f.milliseconds)  # fmt: skip
    w_await = Figure("w_await", "ms", "mean time of a write, as the volume counts it", "write_us",
                     "writes", per=1e3, form=f.milliseconds)  # fmt: skip
    r_p50 = _percentile("r_p50", 50, "reads", READ_BINS)
    w_p50 = _percentile("w_p50", 50, "writes", WRITE_BINS)
    r_p99 = _percentile("r_p99", 99, "reads", READ_BINS)
    w_p99 = _percentile("w_p99", 99, "writes", WRITE_BINS)

    @property
    def exceeded_ms(self) -> dict[str, float]:
        """Milliseconds of a second in which the demand exceeded each limit; a limit that is not
        counted is left out."""
        figures = {limit: getattr(self, f"{limit}_exceeded") for limit in LIMITS}
        return {limit: ms for limit, ms in figures.items() if ms is not None}


VOLUME: Rows = (
    Figure("kind", "", "what it is: ebs or instance-store", kind=TEXT),
    VolumeGrowth.volume_iops_exceeded,
    VolumeGrowth.volume_bytes_exceeded,
    VolumeGrowth.instance_iops_exceeded,
    VolumeGrowth.instance_bytes_exceeded,
    Figure("device_queue", "", "the volume's own queue length at the interval's end", QUEUE),
    VolumeGrowth.r_await,
    VolumeGrowth.w_await,
    VolumeGrowth.r_p50,
    VolumeGrowth.w_p50,
    VolumeGrowth.r_p99,
    VolumeGrowth.w_p99,
)  # fmt: skip


def most_exceeded(volumes: Sequence[VolumeGrowth]) -> dict[str, float]:
    """For each limit, how many milliseconds of a second the demand exceeded it, in the second with
    the least; values below MUCH_EXCEEDED_MS are left out."""
    seconds = [volume.exceeded_ms for volume in volumes]
    least = {limit: min(ms[limit] for ms in seconds)
             for limit in LIMITS if seconds and all(limit in ms for ms in seconds)}  # fmt: skip
    return {limit: ms for limit, ms in least.items() if ms >= MUCH_EXCEEDED_MS}


def counter_name(counter: str, kind: str, disk: str) -> str:
    return f"{counter} {kind} {disk}"


def bin_name(histogram: str, upper_us: int) -> str:
    """The name of the counter of a histogram's bin."""
    return f"{histogram}:{upper_us}"


def volume_growths(
    now: Mapping[str, int] | None, before: Mapping[str, int] | None
) -> dict[str, VolumeGrowth] | None:
    """Growth of the counters of each volume, by disk; ``None`` if no page was read twice. A volume
    with a counter that went backwards was attached anew and has no figures in this interval."""
    if not now or not before:
        return None
    volumes: dict[str, VolumeGrowth] = {}
    earlier = _by_volume(before)
    for name, counters in _by_volume(now).items():
        kind, _, disk = name.partition(" ")
        growth = _growth(kind, counters, earlier.get(name, {}))
        if growth is not None:
            volumes[disk] = growth
    return volumes or None


def _by_volume(counters: Mapping[str, int]) -> dict[str, dict[str, int]]:
    volumes: dict[str, dict[str, int]] = {}
    for name, value in counters.items():
        counter, _, volume = name.partition(" ")
        volumes.setdefault(volume, {})[counter] = value
    return volumes


def _growth(kind: str, now: Mapping[str, int], before: Mapping[str, int]) -> VolumeGrowth | None:
    grown = {name: delta(now.get(name), before.get(name)) for name in (AT_NS, *GROWING)}
    known = {name: value for name, value in grown.items() if value is not None}
    if len(known) < len(grown) or not known[AT_NS] or QUEUE not in now:
        return None
    of_instance = kind == EBS
    return VolumeGrowth(
        kind, known[AT_NS] / 1e9,
        known["reads"], known["writes"], known["read_us"], known["write_us"],
        known["volume_iops"], known["volume_bytes"],
        known["instance_iops"] if of_instance else None,
        known["instance_bytes"] if of_instance else None,
        now[QUEUE],
        _bins(READ_BINS, now, before), _bins(WRITE_BINS, now, before),
    )  # fmt: skip


def _bins(
    histogram: str, now: Mapping[str, int], before: Mapping[str, int]
) -> dict[int, int] | None:
    """Growths of the bins (empty ones have no counter); ``None`` if one of the readings lacks the
    histogram, or a count (of 32 bits) went backwards."""
    if histogram not in now or now[histogram] != before.get(histogram):
        return None
    start = f"{histogram}:"
    growths = {
        int(name[len(start) :]): delta(now.get(name, 0), before.get(name, 0))
        for name in dict.fromkeys((*before, *now))
        if name.startswith(start)
    }
    known = {upper: growth for upper, growth in growths.items() if growth is not None}
    return known if len(known) == len(growths) else None
