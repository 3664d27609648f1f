"""Rules on where I/Os wait: above the device, or for one of the device's tags."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.advice import Advice, advise
from iopstui.model.findings.conditions import READ_BYTES, WRITE_BYTES, IoLimit
from iopstui.model.findings.cpu_accounts import has_spare_cpus, jobs_wait_for_cpus
from iopstui.model.findings.evidence import (
    BLOCKED,
    LONG_ENOUGH,
    NO_CONDITIONS,
    SYNCHRONOUS,
    Evidence,
    device_state,
    frame_start_s,
    newest_frames_while,
    recent_job_frames,
)
from iopstui.model.findings.figures import (
    device_figures,
    devices_above,
    fio_iops,
    frame_waits,
    ios_above,
    ios_in_flight,
    layers_down_from,
    mean_waits,
)
from iopstui.model.findings.finding import Finding, device_names_text
from iopstui.model.findings.limits import (
    ReachedLimit,
    binding_limit,
    limit_reached,
    nearly_full,
    reached_tags,
)
from iopstui.model.findings.rules.waits import other_program
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.waits import Waits
from iopstui.model.rates import fmean

HALF_FULL, NEARLY_FULL = 0.6, 0.85
"""Shares of the tags that a job can reach."""
# least number of I/Os waiting above the device, and their least share of all in flight
MIN_WAITING = 1.0
MIN_WAITING_SHARE = 0.3
MANY_WAITING = 4.0
MANY_WAITING_SHARE = 0.5
"""Most I/Os wait if they are at least ``MANY_WAITING`` and this share of those in flight."""
BLOCKED_PERCENT = 30.0
"""Jobs that wait in io_submit for this percentage of the time submit as if they were
synchronous."""
BLOCKED_SHARE = 0.2
"""Jobs count as blocked if at least this share of the states read shows it."""
OVER_LIMIT = 1.1
GAIN_FACTOR = 1.15


def waits_above_device(evidence: Evidence) -> Finding | None:
    """I/Os wait above the device, or above the layer that a cgroup's limit is on."""
    frames = recent_job_frames(evidence)
    waits_by_frame = frame_waits(frames)
    if not waits_by_frame or evidence.uncounted_targets:
        return None
    limit = binding_limit(frames, evidence)
    if limit is not None:
        return _waits_for_limit(limit, waits_by_frame, evidence)
    waiting = [waits.above or 0.0 for waits in waits_by_frame]
    parts = [
        part / waits.ios if waits.ios else 0.0
        for part, waits in zip(waiting, waits_by_frame, strict=True)
    ]
    if (
        evidence.shape.direct is not True
        or min(waiting) < MIN_WAITING
        or min(parts) < MIN_WAITING_SHARE
    ):
        return None
    most_wait = min(waiting) >= MANY_WAITING and min(parts) >= MANY_WAITING_SHARE
    why = _iocost_cause(evidence)
    if why is None and most_wait:
        why = _blocked_submission(evidence, frames) or _possible_cause(evidence, frames)
    if why is None:
        return None
    names = device_names_text(evidence.devices)
    inside = fmean(waiting), fmean(waits.ios for waits in waits_by_frame)
    return Finding(
        "above", f"{inside[0]:.1f} of {inside[1]:.1f} I/Os in flight wait above {names}{why[0]}",
        why[1],
    )  # fmt: skip


def _waits_for_limit(
    limit: ReachedLimit, waits_by_frame: Sequence[Waits], evidence: Evidence
) -> Finding | None:
    """I/Os wait above a device because of a cgroup's limit that is reached. A known limit leaves no
    doubt, even at depth 1."""
    name, io_limit, rate = limit
    inside = layers_down_from(name, evidence)
    waiting = [ios_above(waits, inside, evidence.shape.writes) for waits in waits_by_frame]
    pairs = zip(waiting, waits_by_frame, strict=True)
    if any(part < max(MIN_WAITING / 2, MIN_WAITING_SHARE * waits.ios) for part, waits in pairs):
        return None
    upper = [upper for upper in devices_above(name, evidence) if upper in waits_by_frame[-1].layers]
    location = f"in {' and '.join(upper)}, above {name}" if upper else f"above {name}"
    return Finding(
        "above",
        f"{fmean(waiting):.1f} of {fmean(waits.ios for waits in waits_by_frame):.1f} I/Os in "
        f"flight wait {location}: {io_limit.file} of the cgroup {io_limit.group} allows "
        f"{io_limit.kind}={io_limit.value} on {name} ({_now_text(io_limit, rate)})",
        _advice_to_lift(name, io_limit, evidence),
    )


def _advice_to_lift(name: str, limit: IoLimit, evidence: Evidence) -> Advice:
    """How to lift a limit; as a command if the device's number is known."""
    device = evidence.device(name)
    if device is None or device.disk:
        return advise("limit", f"{limit.file} {limit.kind}", f"the cgroup {limit.group}")
    number = f"{device.major}:{device.minor}"
    # the names of systemd's units have backslashes
    group = shlex.quote(limit.group.rstrip("/"))
    if limit.file == "io.max":
        return advise("lift-io-max", number, limit.kind, f"/sys/fs/cgroup{group}/io.max")
    return advise("lift-blkio", number, f"/sys/fs/cgroup/blkio{group}/{limit.file}")


def _iocost_cause(evidence: Evidence) -> tuple[str, Advice] | None:
    """The end of the sentence and the advice, if iocost's counter shows that iocost is the
    cause."""
    waited = _cost_wait_percent(evidence)
    if waited is None:
        return None
    return (
        f", because iocost makes this cgroup wait ({waited:.0f} % of the time; cost.wait of "
        "io.stat)",
        advise("iocost"),
    )


def _blocked_submission(evidence: Evidence, frames: Sequence[Frame]) -> tuple[str, Advice] | None:
    """As ``_iocost_cause``, for jobs that wait inside the system call that submits I/O."""
    shape = evidence.shape
    totals = [frame.fio.total for frame in frames if frame.fio is not None]
    slat_s = [t.iops * t.slat_ns / 1e9 for t in totals if t.iops and t.slat_ns is not None]
    used = [(job.busy or 0.0) + (job.cpu_wait or 0.0) for f in frames for job in f.jobs]
    if len(slat_s) < len(frames) or not used or shape.engine in SYNCHRONOUS:
        return None
    inside, on_cpu = 100 * min(fmean(slat_s) / shape.jobs, 1.0), fmean(used)
    if inside - on_cpu < BLOCKED_PERCENT or not _seen_blocked(evidence):
        return None
    # iocost makes the submitting call wait; its own counter shows how long
    if tag_shortage(evidence) is not None or _costed_devices(evidence):
        return None
    on_file = _on_file(evidence)
    return (
        f": their submission blocks; each job is in the call that submits {inside:.0f} % of the "
        f"time (slat {units.latency(1e9 * fmean(slat_s) / fio_iops(frames))}), and uses or waits "
        f"for a CPU {on_cpu:.0f} %"
        + (", as for writes that extend a file or fill its holes" if on_file else ""),
        advise("overwrite" if on_file else "submitters"),
    )


def _seen_blocked(evidence: Evidence) -> bool:
    """Whether asynchronous jobs were found blocked at the ends of enough seconds. (A job that was
    interrupted in a system call is ready to run; a job that waits for completions sleeps.)
    Recordings without states prove nothing about jobs that wait for a CPU."""
    frames = evidence.measured[-LONG_ENOUGH:]
    if all(job.state is None for frame in frames for job in frame.jobs):
        return not jobs_wait_for_cpus(frames)
    return _is_often_blocked(evidence)


def _is_often_blocked(evidence: Evidence) -> bool:
    frames = evidence.measured[-LONG_ENOUGH:]
    states = [job.state for frame in frames for job in frame.jobs if job.state is not None]
    return states.count(BLOCKED) >= max(2, BLOCKED_SHARE * len(states))


def _on_file(evidence: Evidence) -> bool:
    """Whether submission may wait for a file system, too."""
    return evidence.shape.writes and any(device.mounts for device in evidence.devices)


def _possible_cause(evidence: Evidence, frames: Sequence[Frame]) -> tuple[str, Advice] | None:
    """As ``_iocost_cause``, if no counter shows the cause; ``None`` if something else may be the
    cause."""
    # I/Os that wait for the job's own fsync wait inside fio
    if evidence.shape.syncs or tag_shortage(evidence) is not None:
        return None
    if not has_spare_cpus(evidence, frames) or jobs_wait_for_cpus(frames):
        return None
    if _near_limit(frames, evidence) or nearly_full(frames, evidence):
        return None
    if costed := _costed_devices(evidence):
        return (
            f": iocost is active on {', '.join(costed)} (io.cost.qos) and may make this cgroup "
            "wait",
            advise("iocost"),
        )
    if not _limits_are_known(evidence):
        return None
    if not any(device.mounts for device in evidence.devices):
        # io.latency delays one group in favour of another
        other = other_program(evidence)
        return (
            ": a cgroup's limit that can't be seen from here may hold them"
            + (f"; {other.text}" if other is not None else ""),
            advise("held"),
        )
    return (
        ": it may be a file system's lock or journal, or a limit that can't be seen from here",
        advise("only-reading"),
    )


def _limits_are_known(evidence: Evidence) -> bool:
    """Whether the limits of cgroups were read after I/Os began to wait: a limit may be new."""
    waiting = newest_frames_while(evidence, _most_wait_above)
    conditions = evidence.conditions
    return conditions is NO_CONDITIONS or conditions.t >= frame_start_s(waiting[0])


def _most_wait_above(frame: Frame) -> bool:
    waits = frame.waits
    least = 0.0 if waits is None else max(MANY_WAITING, MANY_WAITING_SHARE * waits.ios)
    return waits is not None and (waits.above or 0.0) >= least


def _near_limit(frames: Sequence[Frame], evidence: Evidence) -> bool:
    """Whether in some second the limit was nearly reached: it may then be the cause, so that no
    other cause is named."""
    return any(limit_reached([frame], evidence) is not None for frame in frames)


def _now_text(limit: IoLimit, rate: float) -> str:
    """The device's current rate, in words. If it exceeds the limit, others do I/O as well."""
    of_bytes = limit.kind in (READ_BYTES, WRITE_BYTES)
    text = f"{units.size(rate) if of_bytes else units.number(rate)}/s now"
    return f"{text}, with other programs'" if rate > OVER_LIMIT * limit.value else text


def _costed_devices(evidence: Evidence) -> list[str]:
    states = evidence.conditions.devices
    return [name for name, state in states.items() if state.has_iocost and not state.passes_iocost]


def _cost_wait_percent(evidence: Evidence) -> float | None:
    """Percent of the time since the run began that iocost made this group wait; ``None`` if it is
    less than a tenth of the time."""
    seconds = evidence.conditions.t - evidence.start_conditions.t
    most = 0.0
    for name, state in evidence.conditions.devices.items():
        before = evidence.start_conditions.devices.get(name)
        if before is None or before.iocost_wait_us is None or state.iocost_wait_us is None:
            continue
        most = max(most, state.iocost_wait_us - before.iocost_wait_us)
    share = most / (seconds * 1e4) if seconds > 0 else 0.0
    return share if share >= 10.0 else None


def tag_shortage(evidence: Evidence) -> Finding | None:
    """The queues that the jobs reach hold fewer requests than the job wants in flight."""
    frames, shape, devices = recent_job_frames(evidence), evidence.shape, evidence.devices
    device_io = device_figures(frames, devices)
    if (
        device_io is None
        or device_io.aqu_sz is None
        or evidence.uncounted_targets
        or shape.direct is False
    ):
        return None
    if len(devices) == 1 and (
        finding := _queue_depth_exceeded(devices[0], device_io.aqu_sz, evidence, frames)
    ):
        return finding
    expected = ios_in_flight(frames) or (0.0 if shape.paced else float(shape.depth))
    rooms = [reached_tags(device, frames) for device in devices]
    reachable = [tags for tags in rooms if tags is not None]
    capacity = sum(tags.capacity for tags in reachable)
    # a job without a CPU can't keep a queue full, and neither can one that sleeps until a tag is
    # free
    sleeps = _is_often_blocked(evidence) and not _on_file(evidence)
    sleeps = sleeps and shape.engine not in SYNCHRONOUS
    least = HALF_FULL if sleeps or jobs_wait_for_cpus(frames) else NEARLY_FULL
    if (
        len(reachable) < len(rooms)
        or expected < GAIN_FACTOR * capacity
        or device_io.aqu_sz < least * capacity
    ):
        return None
    pairs = zip(reachable, devices, strict=True)
    waits = mean_waits(frames)
    waiting = "" if waits is None or waits.above is None else f" ({waits.above:.1f})"
    beside = any(tags.queue_count < len(device.hctxs) for tags, device in pairs)
    return Finding(
        "tags",
        f"the job wants {shape.depth} I/Os in flight and has {device_io.aqu_sz:.1f} (aqu-sz): "
        f"{'; '.join(tags.text for tags in reachable)}; the rest{waiting} waits for a tag",
        advise("other-queues" if beside else "nr-requests"),
    )


def _queue_depth_exceeded(
    device: BlockDevice, aqu: float, evidence: Evidence, frames: Sequence[Frame]
) -> Finding | None:
    """Finding: a SCSI disk's queue depth is below the number of requests queued for it."""
    depth = device_state(device, evidence).queue_depth
    if depth is None or aqu < GAIN_FACTOR * depth + 0.5:
        return None
    waits = mean_waits(frames)
    above = (waits.above or 0.0) if waits is not None else 0.0
    return Finding(
        "tags",
        f"{device.name} accepts {units.counted(depth, 'request')} at once (device/queue_depth), "
        f"and {aqu:.1f} are in its queue (aqu-sz): {aqu - depth:.1f} wait in it"
        + f", and {above:.1f} before it"
        * (above >= MIN_WAITING),
        advise("scsi-depth", device.name),
    )
