"""Combine a second of all hosts into one frame for the views of a single host.

Percentiles are computed from the summed histograms. Figures that can't be summed (queue levels,
merges) are unknown; ``util`` is the mean of all hosts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.merging.sums import (
    DeviceSum,
    DirectionSum,
    HostSums,
    KernelSum,
    counted_directions,
)
from iopstui.model import histogram
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import DEVICE, TOTAL, from_object
from iopstui.model.fio.interval import DirectionInterval, FioInterval
from iopstui.model.histogram import Bins, percentile_name
from iopstui.model.metrics import frame as flags
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.probe import KINDS, LATENCY, LatencyStats, ProbeInterval, RequestStats

ALL_DEVICES = "all"
"""The name that stands for all devices together."""
_SHOWN_FLAGS = (
    flags.RAMP,
    flags.NO_LATENCY,
    flags.SUBMITTED,
    flags.SOME_LATENCY,
    flags.WRONG_LATENCY,
    flags.APPROX_IOPS,
    flags.APPROX_BW,
)


def frame_of_second(
    second: MergedInterval,
    t: float,
    step: int,
    own_cpu: float | None = None,
    times: tuple[int, int | None] | None = None,
) -> Frame:
    """A frame of all hosts. ``t`` is its end, in seconds of the screen's session; ``times`` are how
    long the run has taken and will still take (s; ``None``: unknown). Its ``seq`` is the second's
    number."""
    sums = second.sums
    # a flag that only some hosts' frames have does not apply to the totals
    flag_names = {
        name for name in _SHOWN_FLAGS if second.flags.get(name, 0) >= max(1, second.counted)
    }
    if second.counted < second.expected:
        flag_names.add(flags.SOME_HOSTS)
    fio = _fio(sums, second.interval_s, flag_names, times or (0, None)) if sums.fio else None
    if fio is None:
        flag_names.add(flags.LATE if step else flags.NO_FIO)
    disk = disk_rates(sums.kernel, second.interval_s, second.util)
    return Frame(
        seq=second.number,
        step=step,
        t=t,
        wall_ms=second.wall_ms + second.interval_s * 1000,
        seconds=second.interval_s,
        flags=frozenset(flag_names),
        fio=fio,
        fio_age_s=None,
        skew_ms=None,
        disks={} if disk is None else {ALL_DEVICES: disk},
        own_cpu=own_cpu,
        opened=(ALL_DEVICES,),
        probe=_probe(sums.device, second.interval_s),
    )


def _fio(
    sums: HostSums, interval_s: float, flag_names: set[str], times: tuple[int, int | None]
) -> FioInterval:
    elapsed, eta = times
    total = elapsed + (eta or 0)
    bins = histogram.merge(part.main.bins for part in counted_directions(sums.fio))
    row = {
        "seconds": interval_s, "elapsed_s": elapsed, "eta_s": eta,
        "progress": elapsed / total if eta is not None and total else None,
    }  # fmt: skip
    return fio_interval(
        row, flag_names,
        {name: direction_interval(part) for name, part in sums.fio.items()
         if name != TOTAL and part.ios},
        direction_interval(sums.total or DirectionSum(), bins),
    )  # fmt: skip


def fio_interval(
    row: Mapping[str, Any],
    flag_names: Collection[str],
    directions: Mapping[str, DirectionInterval],
    total: DirectionInterval,
) -> FioInterval:
    """fio's part of a frame. ``row`` has everything except the directions, as in JSON lines."""
    return FioInterval(
        seconds=row.get("seconds"),
        directions=directions,
        total=total,
        jobs=(),
        iodepth_level=row.get("iodepth_level") or {},
        usr_cpu=row.get("usr_cpu"),
        sys_cpu=row.get("sys_cpu"),
        ctx_s=row.get("ctx/s"),
        elapsed_s=row.get("elapsed_s"),
        eta_s=row.get("eta_s"),
        progress=row.get("progress"),
        ramp=flags.RAMP in flag_names,
        reset=flags.RESET in flag_names,
        partial=flags.PARTIAL in flag_names,
        measures_latency=flags.NO_LATENCY not in flag_names,
        counts_submissions=flags.SUBMITTED in flag_names,
        times_all=flags.SOME_LATENCY not in flag_names,
        latency_possible=flags.WRONG_LATENCY not in flag_names,
        ios_elsewhere=flags.APPROX_IOPS in flag_names,
        bytes_elsewhere=flags.APPROX_BW in flag_names,
    )


def direction_interval(
    part: DirectionSum, bins: Mapping[int, int] | None = None
) -> DirectionInterval:
    """A DirectionInterval made from a sum. ``bins`` are only given for the total, whose sum has
    none."""
    kind = part.main_kind
    buckets = part.main.bins if bins is None else bins
    ranks = histogram.percentiles(buckets)
    return DirectionInterval(
        ios=part.ios,
        bytes=part.bytes,
        iops=part.iops,
        bw=part.bw,
        slat_ns=part.latency("slat").mean,
        clat_ns=part.latency("clat").mean,
        lat_ns=part.latency("lat").mean,
        percentiles={percentile_name(p): value for p, value in ranks.items()},
        max_ns=histogram.maximum(buckets),
        bins=buckets,
        bins_of=kind,
        samples={kind: latencies.n for kind, latencies in part.latencies.items()},
    )


def _probe(device: DeviceSum, seconds: float) -> ProbeInterval | None:
    if not device.hosts:
        return None
    parts = {kind: device.parts.get(kind, DirectionSum()) for kind in KINDS}
    bins = {kind: part.latency(DEVICE).bins for kind, part in parts.items()}
    return probe_interval(seconds, {ALL_DEVICES: bins}, device.counts, device.missed)


def probe_interval(
    seconds: float,
    disks: Mapping[str, Mapping[str, Bins]],
    counts: Mapping[str, int],
    missed: float | None,
) -> ProbeInterval:
    """A probe interval that contains only latencies, by disk and direction, and the missed share of
    requests (percent)."""
    return ProbeInterval(
        seconds=seconds,
        age_s=0.0,
        parts=(LATENCY,),
        disks={
            disk: {
                kind: RequestStats(seconds, LatencyStats.from_bins(bins))
                for kind, bins in kinds.items()
            }
            for disk, kinds in disks.items()
        },
        matrix={},
        tasks=(),
        requeued_s=None,
        missed=missed,
        skipped=counts.get("skipped", 0),
        lost=counts.get("lost", 0),
        full=counts.get("full", 0),
        busy=None,
        run_ns=None,
    )


def disk_rates(kernel: KernelSum, seconds: float, util: float | None) -> DiskRates | None:
    """The devices' figures for a frame; ``None`` if no device was measured."""
    if not kernel.hosts:
        return None
    row = kernel.as_object() or {}
    return from_object(
        DiskRates, {**row, "util": util, "in-flight": round(row["in-flight"])}, seconds
    )
