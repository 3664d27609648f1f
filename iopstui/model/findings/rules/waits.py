"""Rules on where I/Os wait: for a CPU, in a layer of the stack, in a device that completes nothing,
or behind another program's I/O."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.accounts import (
    READS,
    WRITES,
    Flows,
    kinds_text,
    shared_device,
)
from iopstui.model.findings.advice import NO_ADVICE, Advice, advise
from iopstui.model.findings.conditions import ProcessLoad
from iopstui.model.findings.cpu_accounts import (
    cpu_loads,
    cpu_wait_percent,
    cpu_wait_share,
    cpus_have_time,
    idle_percents,
    job_cpus,
    job_percent,
    jobs_fill_cpus,
    jobs_have_cpu_time,
    used_percent,
)
from iopstui.model.findings.evidence import (
    BLOCKED,
    ENOUGH_SECONDS,
    Evidence,
    frame_start_s,
    newest_frames_while,
    recent_job_frames,
)
from iopstui.model.findings.figures import devices_below, frame_waits
from iopstui.model.findings.finding import Finding, cpus_text, device_names_text
from iopstui.model.findings.limits import no_limit_binds
from iopstui.model.findings.rules.counts import FIND_PROGRAM
from iopstui.model.findings.rules.job import fewer_jobs
from iopstui.model.metrics.frame import FINAL, RAMP, Frame
from iopstui.model.metrics.waits import CACHED, PARITY_RAID
from iopstui.model.rates import fmean

# least share of all I/Os in flight, and least percentage of the time for each job
CPU_WAIT_SHARE = 0.15
CPU_WAIT_PERCENT = 20.0
BUSY_WHILE_WAITING = 120.0
"""The percentage of time that a job waits for its CPU and the idle percentage of that CPU add up to
at most this: 100, and some more because the readings are of different moments."""
# least share of I/Os that are in one layer and not below it
MIN_LAYER_IOS = 2.0
MIN_LAYER_SHARE = 0.5
# bytes that a process moves, relative to others' bytes on the device
MIN_RATE_SHARE, MAX_RATE_FACTOR = 0.3, 3.0
MAX_NAMED = 2
UNKNOWN_PROCESS = "; of the processes seen, none does that much I/O with all its files on {}"
# seconds after which a disturbing process is reported even if its name is not known
NAMELESS_AFTER_SECONDS = 10

FEW_IOS = 0.05
"""With fewer I/Os in flight, the text would show 0.0."""
IDLE_POLICY = 5
ADVICE_BY_KIND = {"dm": "table", "md": "array", "loop": "loop"}


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
    why, advice = _cpu_wait_cause(frames, evidence)
    # fast I/Os are hardly ever in flight
    prefix = (
        f"{waiting:.1f} of {ios:.1f} I/Os in flight wait for a CPU: " if waiting >= FEW_IOS else ""
    )
    return Finding(
        "cpu-wait",
        f"{prefix}jobs were ready to run {fmean(waited):.0f} % of the time and had no CPU; {why}",
        advice,
    )


def _cpu_wait_cause(frames: Sequence[Frame], evidence: Evidence) -> tuple[str, Advice]:
    """Why jobs get no CPU, and what to do."""
    jobs = [job for frame in frames for job in frame.jobs]
    cpus = sorted(job_cpus(frames))
    own_percent = job_percent(frames)
    other_percent = max(0.0, used_percent(frames, cpus) - own_percent)
    # completions, kblockd and a layer's threads do work for the job as well
    others = "other programs or threads of the kernel"
    usage = f"{others} use {other_percent:.0f} % of a CPU on {cpus_text(cpus)}"
    if any(job.policy == IDLE_POLICY for job in jobs):
        return f"the job has policy SCHED_IDLE, and {usage}", advise("priority", "chrt --idle")
    nice = max((job.nice or 0 for job in jobs), default=0)
    if nice > 0:
        return f"the job runs at nice {nice}, and {usage}", advise("priority", "nice")
    waited = fmean([cpu_wait_percent(frame) or 0.0 for frame in frames])
    loads = [load for cpu in cpus for load in cpu_loads(frames, cpu)]
    idle = fmean([load.idle + load.iowait for load in loads]) if loads else 0.0
    if waited + idle > BUSY_WHILE_WAITING:
        return (
            f"{cpus_text(cpus)} had {idle:.0f} % left: a limit of their cgroup may stop them",
            advise("cpu-max", evidence.conditions.cpu_limit_text),
        )
    if own_percent >= 2 * other_percent and evidence.shape.jobs > 1:
        return "its own jobs share the CPUs", fewer_jobs("fewer jobs", evidence)
    if jobs and all(job.pinned for job in jobs):
        return f"it is pinned, and {usage}", advise("pin")
    crypt = next((one.name for one in evidence.tree if one.layer == "dm-crypt"), "")
    if crypt:
        return f"{usage}, which may be the encryption of {crypt}", advise("encryption")
    return usage, advise("cpu-users")


def waits_in_layer(evidence: Evidence) -> Finding | None:
    """Most I/Os are in one layer of the stack and not below it."""
    frames = recent_job_frames(evidence)
    waits_by_frame = frame_waits(frames)
    if not waits_by_frame or not no_limit_binds(frames, evidence):
        return None
    if not jobs_have_cpu_time(frames) and (cpus_have_time(evidence) or jobs_fill_cpus(evidence)):
        return None
    for name in waits_by_frame[-1].layers:
        lower = [
            layer for layer in devices_below(name, evidence) if layer in waits_by_frame[-1].layers
        ]
        held_ios = [waits.layers.get(name, 0.0) for waits in waits_by_frame]
        pairs = zip(held_ios, waits_by_frame, strict=True)
        if not lower or any(h < max(MIN_LAYER_IOS, MIN_LAYER_SHARE * w.ios) for h, w in pairs):
            continue
        device = evidence.device(name)
        if device is not None and device.layer in PARITY_RAID:
            continue
        layer = f" ({device.layer})" if device is not None and device.layer else ""
        why, advice = _layer_cause(device, lower, frames, evidence)
        return Finding(
            "layer",
            f"{fmean(held_ios):.1f} of {fmean(w.ios for w in waits_by_frame):.1f} I/Os in flight "
            f"are in {name}{layer} and not in {' or '.join(lower)} below it: {why}",
            advice,
        )
    return None


def _layer_cause(
    device: BlockDevice | None, lower: Sequence[str], frames: Sequence[Frame], evidence: Evidence
) -> tuple[str, Advice]:
    """Why a layer holds I/Os, as far as that is known, and what to do."""
    if not cpus_have_time(evidence):
        why = (
            f"the CPUs are {100 - fmean(idle_percents(evidence) or [0.0]):.0f} % busy (the jobs "
            f"use {job_percent(frames):.0f} % of one), and its own work may need or wait for them"
        )
        if device is not None and device.layer == "dm-crypt":
            return f"{why}: encryption", advise("encryption")
        return why, advise("cpu-users")
    if device is None:
        return "it holds them back", NO_ADVICE
    # reads that are answered by the page cache of the loop device's file would be slower with
    # direct I/O
    cached = device.kind == "loop" and not all(
        _passes_all_on(frame, device.name, lower) for frame in frames
    )
    kind = None if cached else ADVICE_BY_KIND.get(device.kind)
    return "it holds them back", advise(kind, device.path) if kind else NO_ADVICE


def _passes_all_on(frame: Frame, name: str, lower: Sequence[str]) -> bool:
    """Whether the devices below move about as many bytes as the layer."""
    below = [frame.disks[layer].bytes_s or 0.0 for layer in lower if layer in frame.disks]
    return name in frame.disks and sum(below) >= CACHED * (frame.disks[name].bytes_s or 0.0)


def no_completions(evidence: Evidence) -> Finding | None:
    """During a run nothing has completed for some seconds, though I/Os are waiting."""
    suspended = [name for name, state in evidence.conditions.devices.items() if state.suspended]
    quiet = newest_frames_while(
        evidence, lambda frame: _is_idle(evidence, frame) and (
            bool(suspended) or _in_flight(evidence, frame) > 0 or _is_blocked(evidence, frame)
        )
    )  # fmt: skip
    seconds = sum(frame.seconds or 0.0 for frame in quiet)
    if len(quiet) < ENOUGH_SECONDS or seconds < ENOUGH_SECONDS - 0.5:
        return None
    in_flight = _in_flight(evidence, quiet[-1])
    names = device_names_text(evidence.devices) or "the target"
    text = f"no completions for {seconds:.0f} s, {in_flight} requests in flight in {names}"
    if suspended:
        why, advice = (
            f"{suspended[0]} is suspended (dmsetup)",
            advise("resume", f"/dev/{suspended[0]}"),
        )
    elif in_flight:
        why, advice = "it does not answer", advise("log")
    else:
        limited = any(state.limits for state in evidence.conditions.devices.values())
        why = (
            "the job waits in the kernel (state D) before its I/O reaches a device; "
            + ("a cgroup's limit may hold it, or " * limited)
            + "a file system may be frozen (fsfreeze), or its journal may be stuck"
        )
        advice = advise("thaw")
    return Finding(
        "stalled", f"{text}: {why}", advice, since=frame_start_s(quiet[0]), until=quiet[-1].t
    )


def _is_idle(evidence: Evidence, frame: Frame) -> bool:
    if {FINAL, RAMP} & frame.flags:
        return False
    if frame.fio is not None and (frame.fio.total.ios or frame.fio.total.bytes):
        return False
    disks = [frame.disks[d.name] for d in evidence.devices if d.name in frame.disks]
    return bool(disks) and all(disk.ios_s == 0 and not disk.f_s for disk in disks)


def _in_flight(evidence: Evidence, frame: Frame) -> int:
    """Requests in the job's devices at the end of a frame."""
    disks = (frame.disks.get(device.name) for device in evidence.devices)
    return sum(disk.in_flight or 0 for disk in disks if disk is not None)


def _is_blocked(evidence: Evidence, frame: Frame) -> bool:
    """Whether every job waits in the kernel. A job that pauses itself or is stopped does not, and a
    job that has not done any I/O yet may still open its files."""
    has_begun = any(one.fio is not None and one.fio.total.ios for one in evidence.frames)
    return has_begun and bool(frame.jobs) and all(job.state == BLOCKED for job in frame.jobs)


def other_program(evidence: Evidence) -> Finding | None:
    """Another program's I/O on a device that the job's I/Os wait in."""
    shared = shared_device(evidence)
    if shared is None:
        return None
    processes = evidence.conditions.processes
    if processes is None and len(evidence.measured) < NAMELESS_AFTER_SECONDS:
        return None
    account = shared.mean
    others, whole = account.all_others, account.whole
    text = (
        f"{units.number(others.ios_s)} of {units.number(whole.ios_s)} I/Os/s are not this job's, "
        f"on {shared.name} ({kinds_text(account.others)}; "
        f"{units.size(others.bytes_s)}/s of {units.size(whole.bytes_s)}/s): on average they are "
        f"{others.queue:.1f} of the {whole.queue:.1f} requests in it"
    )
    named = _processes_on(shared.name, processes or (), account.others)
    if not named:
        unknown = "" if processes is None else UNKNOWN_PROCESS.format(shared.name)
        written = account.others[WRITES].bytes_s >= others.bytes_s / 2 > 0
        cached = " (the kernel writes back what programs wrote into the page cache)"
        return Finding("neighbour", text + unknown + cached * written, FIND_PROGRAM, "u")
    loads = " and ".join(_load_text(load, whole.bytes_s) for load in named)
    names = " and ".join(f"{load.comm}, PID {load.pid}" for load in named)
    return Finding(
        "neighbour",
        f"{text}; it may be {loads}, with all open files on {shared.name}",
        advise("stop-others", "them" if len(named) > 1 else "it", names),
    )


def _load_text(load: ProcessLoad, most: float) -> str:
    """A process with its rates. The rates are left out if they exceed ``most``, the bytes/s that
    the device does now."""
    group = f" in {load.group}" * bool(load.group)
    rates = (f": {units.size(load.read_bytes_s)}/s read, {units.size(load.write_bytes_s)}/s "
             "written")  # fmt: skip
    shown = load.read_bytes_s + load.write_bytes_s <= most
    return f"{load.comm} (PID {load.pid}{group}{rates * shown})"


def needs_process_readings(evidence: Evidence) -> bool:
    """Whether the evidence makes it worth reading which processes do I/O."""
    return shared_device(evidence) is not None


def _processes_on(name: str, processes: Sequence[ProcessLoad], others: Flows) -> list[ProcessLoad]:
    """The processes that do a good part of others' reads or writes on this device, the busiest
    first. /proc/PID/io adds up all disks, so only a process whose files are all on this device
    counts, unless it moves far more than others do there."""
    moved = others[READS].bytes_s, others[WRITES].bytes_s
    fitting = []
    for process in processes:
        rates = process.read_bytes_s, process.write_bytes_s
        places = process.reads_on or (), process.writes_on or ()
        for rate, theirs, place in zip(rates, moved, places, strict=True):
            share = rate / theirs if theirs >= MIN_RATE_SHARE * sum(moved) > 0 else 0.0
            if name in place and MIN_RATE_SHARE <= share <= MAX_RATE_FACTOR:
                fitting.append((-rate, process))
                break
    return [process for _, process in sorted(fitting, key=lambda pair: pair[0])[:MAX_NAMED]]
