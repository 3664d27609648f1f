"""Figures over several frames, for the rules: means, and where their I/Os wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.evidence import ENOUGH_SECONDS, Evidence
from iopstui.model.metrics.frame import NO_LATENCY, SOME_LATENCY, WRONG_LATENCY, Frame
from iopstui.model.metrics.waits import MeanWaits, Waits
from iopstui.model.rates import fmean, pstdev

FULL_UTIL = 85.0
"""Percent of the time. A device that is in use for more has hardly any time left."""
SAME_SHARE = 0.05
"""Two runs that differ by at most this share count as equal."""


def ios_in_flight(frames: Sequence[Frame]) -> float | None:
    """I/Os that fio has in flight on average, by Little's law: N = X·R (``None``: no latency is
    known, or not that of all I/Os)."""
    latency = fio_latency_ns(frames)
    if latency is None or any({NO_LATENCY, SOME_LATENCY, WRONG_LATENCY} & f.flags for f in frames):
        return None
    return fio_iops(frames) * latency / 1e9


def iops_spread(frames: Sequence[Frame]) -> float | None:
    """Standard deviation of the seconds' IOPS over their mean; ``None`` for fewer than two."""
    iops = [f.fio.total.iops for f in frames if f.fio and f.fio.total.iops]
    return pstdev(iops) / fmean(iops) if len(iops) > 1 else None


def fio_iops(frames: Sequence[Frame]) -> float:
    """fio's completions per second over these frames."""
    intervals = [f.fio for f in frames if f.fio]
    seconds = sum([interval.seconds or 0.0 for interval in intervals])
    return sum([interval.total.ios for interval in intervals]) / seconds if seconds else 0.0


def fio_bytes_s(frames: Sequence[Frame]) -> float:
    """fio's bytes per second over these frames."""
    seconds = sum(f.fio.seconds or 0.0 for f in frames if f.fio)
    return sum(f.fio.total.bytes for f in frames if f.fio) / seconds if seconds else 0.0


def fio_latency_ns(frames: Sequence[Frame]) -> float | None:
    """Mean latency (lat, else clat) in ns, weighted by the I/Os."""
    weighted, count = 0.0, 0
    for frame in frames:
        total = frame.fio.total if frame.fio and WRONG_LATENCY not in frame.flags else None
        mean = None if total is None else total.lat_ns or total.clat_ns
        if total is not None and mean is not None:
            weighted += mean * total.ios
            count += total.ios
    return weighted / count if count else None


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """Devices together over some frames: each field is the mean of the field of ``DiskRates`` with
    the same name. ``data_ios_s`` are the I/Os without empty flushes. Linux counts those among a
    disk's writes, some of them twice (O_SYNC on a disk without FUA), so this is a lower bound."""

    r_s: float
    w_s: float
    ios_s: float
    bytes_s: float
    merges_s: float
    f_s: float = 0.0
    aqu_sz: float | None = None
    r_bytes_s: float = 0.0

    @property
    def data_ios_s(self) -> float:
        """A lower bound of the I/Os per second that carry data."""
        return max(0.0, self.ios_s - self.f_s)


def device_figures(
    frames: Sequence[Frame], devices: Sequence[BlockDevice], least: int = ENOUGH_SECONDS
) -> DeviceFigures | None:
    """Means over the frames that measured all the devices; ``None`` if fewer than ``least``
    did."""
    least = max(least, 1)
    # cached: a dozen rules use this each second
    if not devices or len(frames) < least:
        return None
    names = [device.name for device in devices]
    combined = [frame.combined(names) for frame in frames]
    disks = [d for d in combined if d is not None and d.r_s is not None and d.w_s is not None]
    count = len(disks)
    if count < least:
        return None
    return DeviceFigures(
        r_s=fsum([d.r_s or 0.0 for d in disks]) / count,
        w_s=fsum([d.w_s or 0.0 for d in disks]) / count,
        ios_s=fsum([d.ios_s or 0.0 for d in disks]) / count,
        bytes_s=fsum([d.bytes_s or 0.0 for d in disks]) / count,
        merges_s=fsum([d.merges_s or 0.0 for d in disks]) / count,
        f_s=fsum([d.f_s or 0.0 for d in disks]) / count,
        aqu_sz=mean_of_all([d.aqu_sz for d in disks]),
        r_bytes_s=fsum([d.r_bytes_s or 0.0 for d in disks]) / count,
    )


def always_writes(frames: Sequence[Frame], devices: Sequence[BlockDevice]) -> bool:
    """Whether the devices write, and are about fully used, in each of these frames."""
    disks = [frame.combined([device.name for device in devices]) for frame in frames]
    return all(d is not None and bool(d.w_s) and (d.util or 0.0) >= FULL_UTIL for d in disks)


def mean_of_all(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return fmean(present) if present and len(present) == len(values) else None


def iops_by_second(
    frames: Sequence[Frame], devices: Sequence[BlockDevice]
) -> list[tuple[float, float, float]]:
    """fio's IOPS, and the fewest and the most data I/Os per second that the devices' counters
    allow, for each frame that has both."""
    rows = []
    for frame in frames:
        fio_s, device_io = fio_iops([frame]), device_figures([frame], devices, 1)
        if fio_s and device_io is not None:
            rows.append((fio_s, device_io.data_ios_s, device_io.ios_s))
    return rows


def flush_await_ms(frames: Sequence[Frame], devices: Sequence[BlockDevice]) -> float | None:
    """Mean time of a flush in these frames, in ms; ``None`` if there was none."""
    waited = count = 0.0
    names = [device.name for device in devices]
    for frame in frames:
        if not any(frame.disks[name].flushes for name in names if name in frame.disks):
            continue
        disk = frame.combined(names)
        if disk is not None and disk.f_s and disk.f_await is not None:
            waited += disk.f_s * disk.f_await
            count += disk.f_s
    return waited / count if count else None


def is_about_equal(first: float, second: float) -> bool:
    """Whether two figures of different runs differ by no more than ``SAME_SHARE``, and aren't 0."""
    return 0 < max(first, second) <= (1 + SAME_SHARE) * min(first, second)


def is_latency_from_depth(deeper: float, then_ns: float, now_ns: float) -> bool:
    """Whether latency grew by at least half of the growth that Little's law gives for a queue that
    is ``deeper`` times as deep and gains no IOPS."""
    return now_ns >= then_ns * (1 + 0.5 * (deeper - 1))


def frame_waits(frames: Sequence[Frame]) -> list[Waits]:
    """The waits of each frame; empty if some frame has no waits, or no I/O completed in it."""
    waits = [frame.waits for frame in frames if frame.waits is not None]
    return waits if len(waits) == len(frames) and not any(w.stalled for w in waits) else []


def mean_waits(frames: Sequence[Frame]) -> Waits | None:
    """The mean of ``frame_waits``; ``None`` if that is empty."""
    total = MeanWaits()
    for frame, waits in zip(frames, frame_waits(frames), strict=False):
        total.add(waits, frame.seconds or 1.0)
    return total.value


def devices_below(name: str, evidence: Evidence) -> tuple[str, ...]:
    return next((link.below for link in evidence.links if link.name == name), ())


def devices_above(name: str, evidence: Evidence) -> tuple[str, ...]:
    return tuple(link.name for link in evidence.links if name in link.below)


def layers_down_from(name: str, evidence: Evidence) -> set[str]:
    """The names of a layer and of all devices below it; of a whole disk also its partitions."""
    layers: set[str] = set()
    parts = (device.name for device in evidence.tree if device.disk == name)
    waiting = [name, *parts]
    while waiting:
        layer = waiting.pop()
        if layer not in layers:
            layers.add(layer)
            waiting += devices_below(layer, evidence)
    return layers


def ios_above(waits: Waits, names: set[str], writes: bool) -> float:
    """I/Os that may wait above these layers: without those in the layers, those that wait for a
    CPU, and those in an unknown place. I/Os in the page cache count if the job ``writes``."""
    inside = sum(ios for name, ios in waits.layers.items() if name in names)
    elsewhere = (waits.cpu or 0.0) + waits.unsent + waits.unknown
    return waits.ios - inside - elsewhere - (0.0 if writes else waits.cache)
