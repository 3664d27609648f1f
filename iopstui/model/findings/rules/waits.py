"""Rules on the places where I/Os are: waiting for a CPU, in a layer of the stack, in a device that
completes nothing, or behind another program's I/O."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import ProcessLoad
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    Evidence,
    frame_start_s,
    newest_frames_while,
    recent_job_frames,
)
from iopstui.model.findings.figures import cpus_have_time
from iopstui.model.findings.finding import Finding, cpus_text, device_names_text
from iopstui.model.findings.rules.counts import FIND_PROGRAM_ADVICE
from iopstui.model.findings.rules.queues import jobs_have_cpu_time, limit_reached
from iopstui.model.findings.wait_figures import (
    cpu_wait_percent,
    cpu_wait_share,
    devices_below,
    frame_waits,
)
from iopstui.model.means import fmean
from iopstui.model.metrics.frame import FINAL, RAMP, Frame
from iopstui.model.metrics.waits import PARITY_RAID

# of all I/Os in flight, and percent of the time for each job
CPU_WAIT_SHARE = 0.15
CPU_WAIT_PERCENT = 20.0
# held by one layer and not below it
MIN_LAYER_IOS = 2.0
MIN_LAYER_SHARE = 0.5
# other programs' requests: of all, a second, and in the device at a time
OTHER_IO_SHARE = 0.3
OTHER_IOPS = 50.0
OTHER_IN_FLIGHT = 1.0
# how many times more or less than others move on the device a process may move in all
MAX_RATE_FACTOR = 3.0
# seconds after which a neighbour is reported without its name
NAMELESS_AFTER_SECONDS = 10

FEW_IOS = 0.05
"""Fewer than these I/Os in flight would be written as 0.0."""
IDLE_POLICY, BATCH_POLICY = 5, 3
ADVICE_BY_KIND = {
    "dm": "dmsetup table {0} shows what that layer does",
    "md": "see /proc/mdstat",
    "loop": "try losetup --direct-io=on {0}: a loop device works for all jobs in a few threads",
}


def waits_for_cpu(evidence: Evidence) -> Finding | None:
    """Jobs are ready to run and have no CPU."""
    frames = recent_job_frames(evidence)
    waits_by_frame = frame_waits(frames)
    waited = [wait for frame in frames if (wait := cpu_wait_percent(frame)) is not None]
    if not waits_by_frame or len(waited) < ENOUGH_SECONDS or min(waited) < CPU_WAIT_PERCENT:
        return None
    if min(map(cpu_wait_share, waits_by_frame)) < CPU_WAIT_SHARE:
        return None
    waiting, ios = fmean(w.cpu or 0.0 for w in waits_by_frame), fmean(w.ios for w in waits_by_frame)
    why, advice = _cpu_wait_cause(frames)
    # fast I/Os are hardly ever in flight
    prefix = (
        f"{waiting:.1f} of {ios:.1f} I/Os in flight wait for a CPU: " if waiting >= FEW_IOS else ""
    )
    return Finding(
        "cpu-wait",
        f"{prefix}jobs were ready to run {fmean(waited):.0f} % of the time and had no CPU; {why}",
        advice,
    )


def _cpu_wait_cause(frames: Sequence[Frame]) -> tuple[str, str]:
    """Why jobs get no CPU, and what to do."""
    jobs = [job for frame in frames for job in frame.jobs]
    cpus = sorted({job.cpu for job in jobs})
    job_percent = fmean(sum(job.busy or 0.0 for job in frame.jobs) for frame in frames)
    other_percent = max(0.0, _cpu_use_percent(frames, cpus) - job_percent)
    usage = f"other programs use {other_percent:.0f} % of a CPU on {cpus_text(cpus)}"
    if any(job.policy == IDLE_POLICY for job in jobs):
        return f"the job has policy SCHED_IDLE, and {usage}", "run the job without chrt --idle"
    nice = max((job.nice or 0 for job in jobs), default=0)
    if nice > 0:
        return f"the job runs at nice {nice}, and {usage}", "run the job without nice"
    if job_percent >= 2 * other_percent:
        return "its own jobs share the CPUs", "try fewer jobs with a deeper queue (iodepth)"
    if jobs and all(job.pinned for job in jobs):
        return f"it is pinned, and {usage}", "pin it to another CPU (cpus_allowed), or to none"
    return usage, "find the other program: top, or pidstat 1"


def _cpu_use_percent(frames: Sequence[Frame], cpus: Sequence[int]) -> float:
    """Percent of one CPU that tasks use on these CPUs together."""
    loads = [f.cpus[cpu].load for f in frames for cpu in cpus if cpu in f.cpus]
    percents = [100 - load.idle - load.iowait - load.steal for load in loads if load is not None]
    return sum(percents) / len(frames)


def waits_in_layer(evidence: Evidence) -> Finding | None:
    """Most I/Os are in one layer of the stack and not below it."""
    frames = recent_job_frames(evidence)
    waits_by_frame = frame_waits(frames)
    if not waits_by_frame or limit_reached(frames, evidence):
        return None
    # a layer's own worker may fill one CPU; where all are full, its I/Os may wait for them
    if not jobs_have_cpu_time(frames) or not cpus_have_time(evidence):
        return None
    for name in waits_by_frame[-1].layers:
        lower = [
            layer for layer in devices_below(name, evidence) if layer in waits_by_frame[-1].layers
        ]
        held_ios = [waits.layers.get(name, 0.0) for waits in waits_by_frame]
        pairs = zip(held_ios, waits_by_frame, strict=True)
        if not lower or any(h < max(MIN_LAYER_IOS, MIN_LAYER_SHARE * w.ios) for h, w in pairs):
            continue
        device = next((device for device in evidence.tree if device.name == name), None)
        if device is not None and device.layer in PARITY_RAID:
            continue
        layer = f" ({device.layer})" if device is not None and device.layer else ""
        kind = device.kind if device is not None else ""
        return Finding(
            "layer",
            f"{fmean(held_ios):.1f} of {fmean(w.ios for w in waits_by_frame):.1f} I/Os in flight "
            f"are in {name}{layer} and not in {' or '.join(lower)} below it: it holds them back",
            ADVICE_BY_KIND.get(kind, "").format(device.path if device is not None else name),
        )
    return None


def no_completions(evidence: Evidence) -> Finding | None:
    """A run in which nothing has completed for some seconds."""
    quiet = newest_frames_while(evidence, partial(_is_idle, evidence))
    seconds = sum(frame.seconds or 0.0 for frame in quiet)
    if len(quiet) < ENOUGH_SECONDS or seconds < ENOUGH_SECONDS - 0.5:
        return None
    disks = [quiet[-1].disks.get(device.name) for device in evidence.devices]
    in_flight = sum(disk.in_flight or 0 for disk in disks if disk is not None)
    suspended = [name for name, state in evidence.conditions.devices.items() if state.suspended]
    # without a request in a device nothing tells a stall from a job that is stopped
    if not in_flight and not suspended:
        return None
    names = device_names_text(evidence.devices) or "the target"
    why, advice = ": it does not answer", "see the kernel's log: dmesg"
    if suspended:
        why = f": {suspended[0]} is suspended (dmsetup)"
        advice = f"dmsetup resume /dev/{suspended[0]}"
    return Finding(
        "stalled",
        f"no completions for {seconds:.0f} s, {in_flight} requests in flight in {names}{why}",
        advice, since=frame_start_s(quiet[0]), until=quiet[-1].t,
    )  # fmt: skip


def _is_idle(evidence: Evidence, frame: Frame) -> bool:
    if {FINAL, RAMP} & frame.flags:
        return False
    if frame.fio is not None and (frame.fio.total.ios or frame.fio.total.bytes):
        return False
    disks = [frame.disks[d.name] for d in evidence.devices if d.name in frame.disks]
    return bool(disks) and all(disk.ios_s == 0 and not disk.f_s for disk in disks)


def other_program(evidence: Evidence) -> Finding | None:
    """Another program's I/O on a device that the job's I/Os wait in."""
    other_io = _other_io(evidence)
    if other_io is None:
        return None
    processes = evidence.conditions.processes
    if processes is None and len(evidence.measured) < NAMELESS_AFTER_SECONDS:
        return None
    name, other_s, all_of_them, in_flight, moved = other_io
    fits = _likely_process(processes or (), moved)
    text = (
        f"{units.number(other_s)} of {units.number(all_of_them)} I/Os a second on {name} are not "
        f"this job's; {in_flight:.1f} of them are in flight on average"
    )
    if fits is None:
        unknown = "" if processes is None else ": no process seen does that much I/O"
        return Finding("neighbour", text + unknown, FIND_PROGRAM_ADVICE, "u")
    location = f" in {fits.group}" if fits.group else ""
    return Finding(
        "neighbour",
        f"{text}: it may be {fits.comm} (PID {fits.pid}{location}: "
        f"{units.size(fits.read_bytes_s)}/s read, {units.size(fits.write_bytes_s)}/s written)",
        f"stop it while you measure: {fits.comm}, PID {fits.pid}",
    )


def needs_process_readings(evidence: Evidence) -> bool:
    """Whether it is worth reading which processes do I/O."""
    return _other_io(evidence) is not None


def _other_io(evidence: Evidence) -> tuple[str, float, float, float, float] | None:
    """(device, others' I/Os per second, all I/Os per second, others' in it at a time, others' bytes
    per second)."""
    frames, shape = recent_job_frames(evidence), evidence.shape
    if not frames or shape.direct is not True or shape.syncs or evidence.uncounted_targets:
        return None
    for name, users in _single_path(evidence):
        rates = [_other_io_in_second(frame, name, users) for frame in frames]
        if None in rates:
            continue
        measured = [rate for rate in rates if rate is not None]
        other_s, total_s, in_flight, moved = (
            fmean(values) for values in zip(*measured, strict=True)
        )
        clear = all(o >= max(OTHER_IOPS, OTHER_IO_SHARE * a) for o, a, _, _ in measured)
        if (
            clear
            and in_flight >= OTHER_IN_FLIGHT
            and min(rate[2] for rate in measured) >= OTHER_IN_FLIGHT / 3
        ):
            return name, other_s, total_s, in_flight, moved
    return None


def _single_path(evidence: Evidence) -> list[tuple[str, tuple[str, ...]]]:
    """Each device that has all the I/Os of those above it, once each, and these; () for a device
    that the job itself works on."""
    if len(evidence.devices) != 1:
        return []
    top = evidence.devices[0]
    path: list[tuple[str, tuple[str, ...]]] = [(top.name, ())]
    current: BlockDevice | None = top
    while current is not None:
        if current.disk:
            path.append((current.disk, (current.name,)))
        lower = devices_below(current.name, evidence)
        simple = current.kind in ("dm", "partition", "loop") or current.disk
        if len(lower) != 1 or not simple:
            break
        path.append((lower[0], (current.name,)))
        current = next((device for device in evidence.tree if device.name == lower[0]), None)
    return path


def _other_io_in_second(
    frame: Frame, name: str, users: Sequence[str]
) -> tuple[float, float, float, float] | None:  # fmt: skip
    """(others' I/Os per second, all, others' in the device, others' bytes) of one second. Split and
    merged requests are not others': bytes have to be more as well."""
    disk, total = frame.disks.get(name), frame.fio.total if frame.fio else None
    uppers = [frame.disks[user] for user in users if user in frame.disks]
    if disk is None or total is None or disk.ios_s is None or len(uppers) < len(users):
        return None
    ios, moved = total.iops or 0.0, total.bw or 0.0
    if users:
        ios = sum(upper.ios_s or 0.0 for upper in uppers)
        moved = sum(upper.bytes_s or 0.0 for upper in uppers)
    theirs = min(disk.ios_s - (disk.f_s or 0.0) - ios, disk.ios_s)
    if not ios or (disk.bytes_s or 0.0) < 1.1 * moved or disk.aqu_sz is None:
        return 0.0, disk.ios_s, 0.0, 0.0
    in_flight = disk.aqu_sz * theirs / disk.ios_s if disk.ios_s else 0.0
    return theirs, disk.ios_s, in_flight, (disk.bytes_s or 0.0) - moved


def _likely_process(processes: Sequence[ProcessLoad], moved: float) -> ProcessLoad | None:
    """The process whose I/O is closest to so many bytes per second. /proc/PID/io adds up all
    disks, so one that moves far more is busy on another."""
    processes_by_rate = [
        (process.read_bytes_s + process.write_bytes_s, process) for process in processes
    ]
    candidates = [
        (max(total, moved) / min(total, moved), process)
        for total, process in processes_by_rate
        if total and moved
    ]
    best = min(candidates, key=lambda pair: pair[0], default=None)
    return best[1] if best is not None and best[0] <= MAX_RATE_FACTOR else None
