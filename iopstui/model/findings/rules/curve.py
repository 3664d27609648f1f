"""Rules on how IOPS and latency change with depth, block size and time. One reading cannot
distinguish a configured limit from the disk's own limit; two readings can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import lt

from iopstui import format as units
from iopstui.model.findings.accounts import others_share
from iopstui.model.findings.advice import Advice, advise
from iopstui.model.findings.cpu_accounts import (
    cpus_have_time,
    jobs_wait_for_cpus,
    lost_cpu_or_memory,
    saturated_jobs,
)
from iopstui.model.findings.evidence import Evidence, SteadyRun, frame_start_s, recent_job_frames
from iopstui.model.findings.figures import (
    fio_bytes_s,
    fio_iops,
    fio_latency_ns,
    iops_spread,
    ios_in_flight,
    is_about_equal,
    is_latency_from_depth,
    mean_waits,
)
from iopstui.model.findings.finding import Finding
from iopstui.model.findings.limits import limit_reached
from iopstui.model.metrics.aws import LIMITS, most_exceeded
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import fmean, pstdev
from iopstui.model.sizes import size_text

FLAT_DEVIATION = 0.06
"""Standard deviation of five seconds over their mean; 500 IOPS of a token bucket vary by 4 %."""
MIN_IN_FLIGHT = 4.0
"""With fewer I/Os in flight, latency may set the rate, which is then near a limit by chance."""
OTHERS_SHARE = 0.15
"""A larger part of a device's I/Os, bytes or queue matters."""


def saturated_queue(evidence: Evidence) -> Finding | None:
    """A deeper queue brought latency, not IOPS."""
    frames, now = recent_job_frames(evidence), evidence.shape
    latency, inside = fio_latency_ns(frames), ios_in_flight(frames)
    if latency is None or inside is None or now.paced:
        return None
    iops = fio_iops(frames)
    shallower = [
        run
        for run in evidence.earlier_runs
        if now.depth >= 1.5 * run.shape.depth and run.shape.block_size == now.block_size
    ]
    # a queue that is not filled says nothing about its depth
    if not shallower or inside < 0.7 * now.depth:
        return None
    earlier = shallower[-1]
    deeper = now.depth / earlier.shape.depth
    # some slow seconds don't undo the depth's gain over the run
    most = max(iops, fio_iops(evidence.measured))
    if most > earlier.iops * 1.1 or not is_latency_from_depth(deeper, earlier.lat_ns, latency):
        return None
    return Finding(
        "saturated",
        f"depth {earlier.shape.depth} → {now.depth}: IOPS {units.number(earlier.iops)} → "
        f"{units.number(iops)}, latency {units.latency(earlier.lat_ns)} → "
        f"{units.latency(latency)}; the additional I/Os only wait (Little's law: N = X·R = "
        f"{units.number(iops)}/s × {units.latency(latency)} = {inside:.1f})",
        advise("depth", earlier.shape.depth),
        "[",
    )


def throughput_limit(evidence: Evidence) -> Finding | None:
    """The same IOPS or bandwidth at two depths or block sizes, while the queue is full and the CPUs
    have time: a limit."""
    frames = recent_job_frames(evidence, 5)
    spread, inside = iops_spread(frames), ios_in_flight(frames)
    if inside is None or spread is None or spread > FLAT_DEVIATION or evidence.shape.paced:
        return None
    if (
        inside < 0.7 * evidence.shape.depth
        or saturated_jobs(frames)[1]
        or not cpus_have_time(evidence)
    ):
        return None
    now = SteadyRun(evidence.shape, fio_iops(frames), fio_latency_ns(frames) or 0.0,
                 fio_bytes_s(frames), spread)  # fmt: skip
    for earlier in reversed(evidence.earlier_runs):
        if (
            earlier.spread is not None
            and earlier.spread <= FLAT_DEVIATION
            and (finding := _deeper_without_gain(earlier, now, evidence))
        ):
            return replace(finding, since=frame_start_s(frames[0]))
    return _bought_limit_reached(now, evidence, inside)


def _bought_limit_reached(now: SteadyRun, evidence: Evidence, inside: float) -> Finding | None:
    """The rate is at a known limit of the volume that the user named, so one reading is enough."""
    limit = _limit_text(evidence, now, _counted_limits(evidence))
    if not limit or inside < MIN_IN_FLIGHT:
        return None
    return Finding(
        "cap",
        f"IOPS stay at {units.number(now.iops)} ({units.size(now.bytes_s)}/s){limit}, with "
        f"{inside:.1f} I/Os in flight and idle CPUs: the limit that was bought is reached",
        advise("bought"),
    )


def _deeper_without_gain(earlier: SteadyRun, now: SteadyRun, evidence: Evidence) -> Finding | None:
    deeper = now.shape.depth / earlier.shape.depth
    one_size = earlier.shape.block_size == now.shape.block_size
    figure = f"{units.number(now.iops)} IOPS"
    if one_size and deeper >= 1.5:
        waits_longer = is_latency_from_depth(deeper, earlier.lat_ns, now.lat_ns)
        if not is_about_equal(earlier.iops, now.iops) or not waits_longer:
            return None
        change = f"depth {earlier.shape.depth} → {now.shape.depth}"
        result = f"stays at {figure} ({units.size(now.bytes_s)}/s)"
        advice = advise("twice")
        test = _double_block_size(now)
    elif not one_size and deeper == 1 and now.shape.block_size and earlier.shape.block_size:
        sizes = f"bs {size_text(earlier.shape.block_size)} → {size_text(now.shape.block_size)}"
        change, advice, test = sizes, advise("limits"), ()
        if is_about_equal(earlier.bytes_s, now.bytes_s) and not is_about_equal(
            earlier.iops, now.iops
        ):
            result = f"stays at {units.size(now.bytes_s)}/s: the limit is in bandwidth, not IOPS"
        elif is_about_equal(earlier.iops, now.iops) and not is_about_equal(
            earlier.bytes_s, now.bytes_s
        ):
            result = f"stays at {figure}: the limit is in IOPS, not bandwidth"
        else:
            return None
    else:
        return None
    counted = _counted_limits(evidence)
    limit = _limit_text(evidence, now, counted)
    return Finding(
        "cap",
        f"{change}: {result}{limit}, latency {units.latency(earlier.lat_ns)} → "
        f"{units.latency(now.lat_ns)}, with idle CPUs: {_reached_text(counted)}",
        advice, test=test,
    )  # fmt: skip


def _counted_limits(evidence: Evidence) -> list[str] | None:
    """The limits exceeded in each of these seconds by an AWS volume's own count
    (model/metrics/aws.py); ``None``: not counted."""
    frames = recent_job_frames(evidence, 5)
    if not frames or not all(frame.aws for frame in frames):
        return None
    disks = [dict(frame.aws or {}) for frame in frames]
    found = [most_exceeded([volumes[disk] for volumes in disks])
             for disk in disks[0] if all(disk in volumes for volumes in disks)]  # fmt: skip
    return [limit for limit in LIMITS if any(limit in each for each in found)] if found else None


def _reached_text(counted: Sequence[str] | None) -> str:
    if counted is None:
        return "a limit is reached, the disk's own or a configured one"
    if not counted:
        return "a limit is reached, none of those that the volume itself counts"
    names = " and ".join(f"the {LIMITS[limit]}" for limit in counted)
    return f"the demand exceeds {names}, as the volume itself counts"


def _limit_text(evidence: Evidence, now: SteadyRun, counted: Sequence[str] | None) -> str:
    """Name the limit of the bought volume that the figure has reached; "" if it has reached none,
    or if the volume's own count (``counted``) names another limit."""
    volume, size = evidence.volume, now.shape.block_size
    if volume is None or not size:
        return ""
    from iopstui.model.volumes.gauge import fitting_limit
    from iopstui.model.volumes.promised import COUNTED_LIMITS

    direction, count = "write" if now.shape.writes else "read", max(1, len(evidence.devices))
    others = [(run.shape.block_size, run.iops) for run in evidence.earlier_runs
              if run.shape.block_size and run.shape.writes == now.shape.writes]  # fmt: skip
    for burst, more in ((False, ""), (True, " in a burst")):
        limit = fitting_limit(volume, direction, size, now.iops, burst, count, others)
        if limit is not None and counted is not None and limit.name not in [
            COUNTED_LIMITS[name] for name in counted
        ]:  # fmt: skip
            continue
        if limit is not None and limit.name.startswith("instance") and volume.instance is not None:
            suffix = " to all volumes together" if count > 1 else ""
            return f", which is what {volume.instance.id} allows{suffix} ({limit.name}{more})"
        if limit is not None:
            prefix = f"{count} volumes of " if count > 1 else ""
            return f", which is what {prefix}{volume.volume.id} allow{'' if prefix else 's'} " + (
                f"({limit.name}{more})")  # fmt: skip
    return ""


def _double_block_size(now: SteadyRun) -> tuple[tuple[str, str], ...]:
    size = now.shape.block_size
    return (("bs", size_text(2 * size)),) if size else ()


def end_of_burst(evidence: Evidence) -> Finding | None:
    """A step down at constant load, caused by the device: a credit is used up, or a cache full."""
    shape, frames = evidence.shape, evidence.measured
    if shape.paced or shape.direct is not True or len(frames) < 2 * SECONDS_PER_SIDE:
        return None
    place = step_down_index(frames)
    if place is None:
        return None
    before, after = frames[:place], frames[place:]
    was, now = fio_iops(before), fio_iops(after)
    if saturated_jobs(after)[1] or _is_used_by_others(evidence, after):
        return None
    # leave out the second of the step: it belongs to both sides
    late = after[1:]
    if not is_same_workload(before, late):
        return None
    if jobs_wait_for_cpus(late) or lost_cpu_or_memory(before, late):
        return None
    if not _device_took_longer(before, late):
        return None
    if limit_reached(after[-SECONDS_PER_SIDE:], evidence) is not None:
        return None
    credits = _credit_text(evidence, late)
    return Finding(
        "burst",
        f"at an unchanged load IOPS fell from {units.number(was)} to {units.number(now)} at "
        f"{units.clock(after[0].t)} and have stayed there for {len(after)} s: "
        + (credits[0] if credits else "a burst credit may be used up, or a cache full"),
        credits[1] if credits else advise("idle"),
        since=frame_start_s(before[0]),
    )


def _credit_text(evidence: Evidence, late: Sequence[Frame]) -> tuple[str, Advice] | None:
    """Headline and advice if the rate fell to the baseline of a credit bucket of the bought volume;
    else ``None``."""
    volume = evidence.volume
    disks = [disk for f in late if (disk := f.combined([d.name for d in evidence.devices]))]
    if volume is None or not disks:
        return None
    from iopstui.model.volumes.gauge import gauges

    for gauge in gauges(volume):
        bucket, rates = gauge.bucket, [rate for d in disks if (rate := gauge.used(d)) is not None]
        if bucket is None or not rates or not is_about_equal(fmean(rates), bucket.refill):
            continue
        back = units.duration(bucket.refills_s() or 0.0)
        return (
            f"the {gauge.noun} of {volume.volume.id} are used up, and only its baseline is left",
            advise("refill", back),
        )
    return None


def _device_took_longer(before: Sequence[Frame], after: Sequence[Frame]) -> bool:
    """Whether at least half of the added latency is in the devices; True if the places of the I/Os
    are unknown."""
    sides = [(mean_waits(frames), fio_iops(frames)) for frames in (before, after)]
    (earlier, was), (now, is_now) = sides
    if earlier is None or now is None or not was or not is_now:
        return True
    longer = now.ios / is_now - earlier.ios / was
    inside = sum(now.layers.values()) / is_now - sum(earlier.layers.values()) / was
    return inside >= 0.5 * longer


def _is_used_by_others(evidence: Evidence, after: Sequence[Frame]) -> bool:
    """Whether others use a good part of a device of the stack; True also if this is unknown."""
    share = others_share(evidence, after)
    return share is None or share.most >= OTHERS_SHARE


# whether the same load goes on, and where its rate steps down


MAX_STEP_SHARE = 0.75
# standard deviations of the seconds on either side
MIN_STEP_DEVIATIONS = 4.0
SECONDS_PER_SIDE = 4


def step_down_index(frames: Sequence[Frame]) -> int | None:
    """Index that splits the seconds so that the later part is lower by far more than either part
    varies; ``None`` if there is none."""
    iops = [fio_iops([frame]) for frame in frames]
    if not all(iops) or not _has_step_down(iops):
        return None
    fits = []
    for place in range(SECONDS_PER_SIDE, len(iops) - SECONDS_PER_SIDE + 1):
        before, right = iops[:place], iops[place:]
        variance = pstdev(before) ** 2 * len(before) + pstdev(right) ** 2 * len(right)
        fits.append((variance, place))
    place = min(fits)[1]
    before, right = iops[:place], iops[place:]
    low, high = fmean(right), fmean(before)
    clear = high - low >= MIN_STEP_DEVIATIONS * max(pstdev(before), pstdev(right))
    return place if clear and low <= MAX_STEP_SHARE * high and max(right) < min(before) else None


def _has_step_down(iops: Sequence[float]) -> bool:
    """Whether from some index on all seconds are lower than all seconds before it. A quick check,
    which nearly always fails for a load without a step."""
    least = [*accumulate(iops, min)][SECONDS_PER_SIDE - 1 :]
    most = [*accumulate(reversed(iops), max)][SECONDS_PER_SIDE - 1 :]
    # compare the seconds before the first split with those after it, and so on
    return any(map(lt, most[-1 - SECONDS_PER_SIDE :: -1], least))


def is_same_workload(before: Sequence[Frame], after: Sequence[Frame]) -> bool:
    """Whether the same jobs do the same I/O: same processes, active sections, size, share of reads,
    and devices, also those below. A job that reaches another disk of a linear volume, or changes
    its own phase, does not."""
    pids = [{job.pid for job in f.jobs if job.pid is not None} for f in (*before, *after) if f.jobs]
    if any(process_ids != pids[0] for process_ids in pids[1:]):
        return False
    earlier, now = _Workload.from_frames(before), _Workload.from_frames(after)
    return earlier.is_similar(now)


@dataclass(frozen=True, slots=True)
class _Workload:
    """I/O of some seconds: the rows of fio with I/O, the mean size, and the shares (0..1) of reads
    and of each device."""

    rows: frozenset[int]
    mean_size: float
    read_share: float
    device_shares: Mapping[str, float]

    @classmethod
    def from_frames(cls, frames: Sequence[Frame]) -> _Workload:
        fios = [f.fio for f in frames if f.fio is not None]
        ios = sum(fio.total.ios for fio in fios)
        reads = sum(fio.directions["read"].ios for fio in fios if "read" in fio.directions)
        rows = frozenset(job.index for fio in fios for job in fio.jobs if job.ios)
        names = {name for f in frames for name in (*f.opened, *(f.waits.layers if f.waits else ()))}
        ios_s = {name: sum((f.disks[name].ios_s or 0.0) for f in frames if name in f.disks)
                for name in names}  # fmt: skip
        total_ios_s = sum(ios_s.values())
        moved = sum(fio.total.bytes for fio in fios)
        return cls(
            rows, moved / ios if ios else 0.0, reads / ios if ios else 0.0,
            {name: rate / total_ios_s for name, rate in ios_s.items()} if total_ios_s else {},
        )  # fmt: skip

    def is_similar(self, other: _Workload) -> bool:
        """Whether no figure differs by more than chance."""
        sizes = sorted((self.mean_size, other.mean_size))
        names = {*self.device_shares, *other.device_shares}
        return (
            self.rows == other.rows
            and sizes[1] <= 1.15 * sizes[0]
            and abs(self.read_share - other.read_share) <= 0.1
            and all(
                abs(self.device_shares.get(n, 0.0) - other.device_shares.get(n, 0.0)) <= 0.2
                for n in names
            )
        )
