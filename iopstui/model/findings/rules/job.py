"""Rules on what the job asks for, and what its CPUs can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iopstui import format as units
from iopstui.model.findings.accounts import FLUSHES, device_accounts
from iopstui.model.findings.advice import Advice, advise
from iopstui.model.findings.cpu_accounts import (
    FOLLOWED_JOBS,
    MUCH_CPU_WAIT_PERCENT,
    MUCH_IDLE,
    cpu_loads,
    cpu_wait_percent,
    cpus_have_time,
    idle_percents,
    jobs_fill_cpus,
    jobs_wait_for_cpus,
    saturated_jobs,
)
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    SYNCHRONOUS,
    Evidence,
    device_state,
    recent_frames,
    recent_job_frames,
)
from iopstui.model.findings.figures import (
    DeviceFigures,
    always_writes,
    device_figures,
    fio_bytes_s,
    fio_iops,
    fio_latency_ns,
    flush_await_ms,
    mean_waits,
)
from iopstui.model.findings.finding import Finding, device_names_text
from iopstui.model.findings.rules.counts import FIND_PROGRAM
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.waits import SENT_SHARE
from iopstui.model.rates import fmean
from iopstui.model.sizes import size_text

FULL_QUEUE_SHARE = 0.9
DEEP = 32
"""At this iodepth and above, a deeper queue hardly helps."""
# the deepest C-state counts if leaving it takes this part of the latency
WAKE_UP_SHARE = 0.2
SLOW_CLOCK_SHARE = 0.6
# without a job: flushes per second, and their total waiting time in ms per second
MANY_FLUSHES_S = 20
MIN_FLUSHING_MS = 100.0


def cpu_bound_jobs(evidence: Evidence) -> Finding | None:
    """A job uses all of its CPU, so it is a limit."""
    frames = recent_job_frames(evidence)
    if not frames or evidence.shape.polls or evidence.shape.paced:
        return None
    busy, full = saturated_jobs(frames)
    # a job whose I/Os fail at once uses its CPU for that
    if not full or any(frame.fio.failed for frame in frames if frame.fio is not None):
        return None
    jobs = max(len(busy), evidence.shape.jobs if len(busy) >= FOLLOWED_JOBS else 1)
    if _is_queue_full(evidence, frames) or _is_writing_back(evidence, frames):
        return None
    iops_per_job = fio_iops(frames) / jobs
    unsent, advice = _not_sent(evidence, frames), _advice_to_full_jobs(evidence, frames)
    if unsent:
        advice = advise("never-written" if evidence.shape.direct else "direct"), ""
        unsent += "; "
    subject = f"job {next(iter(full))} is" if len(full) == 1 else f"{len(full)} of {jobs} jobs are"
    return Finding(
        "job-cpu",
        # comes first, because a short line leaves out the end
        f"{unsent}{subject} busy {min(fmean(full.values()), 100.0):.0f} % of a CPU at "
        f"{units.number(iops_per_job)} IOPS per job: the CPU is the limit, not the disk",
        *advice,
    )


def _not_sent(evidence: Evidence, frames: Sequence[Frame]) -> str:
    """Say that hardly any I/O of the job reaches a disk, and why; "" if it does."""
    upper = {link.name for link in evidence.links if link.below}
    lowest = [device for device in evidence.tree if device.name not in upper] or evidence.devices
    disks = device_figures(frames, lowest)
    iops = fio_iops(frames)
    if disks is None or not iops or evidence.uncounted_targets:
        return ""
    # a job that reads need not wait for the write-back of earlier writes
    requests_s, bytes_s = disks.ios_s, disks.bytes_s
    if not evidence.shape.writes:
        requests_s, bytes_s = disks.r_s, disks.r_bytes_s
    if bytes_s > SENT_SHARE * fio_bytes_s(frames):
        return ""
    if evidence.shape.direct is not True:
        what = "the page cache takes them" if evidence.shape.writes else "the page cache has them"
    elif evidence.shape.writes:
        return ""
    else:
        what = ("blocks that were never written (of a sparse file) need no read, and some file "
                "systems cache in spite of direct=1")  # fmt: skip
    return (
        f"hardly any of its I/Os reach {device_names_text(lowest)} ({units.number(requests_s)} "
        f"of {units.number(iops)}/s): {what}"
    )


def _not_sent_end(evidence: Evidence, frames: Sequence[Frame]) -> str:
    unsent = _not_sent(evidence, frames)
    return f"; {unsent}" if unsent else ""


def _advice_to_full_jobs(evidence: Evidence, frames: Sequence[Frame]) -> tuple[Advice, str]:
    """Advice to add jobs, as (advice, key): they help only on CPUs that have time, which pinned
    jobs don't reach."""
    is_pinned = all(job.pinned for job in frames[-1].jobs)
    if is_pinned or not cpus_have_time(evidence):
        return advise("larger-blocks"), ""
    return advise("more-jobs"), "}"


def _is_queue_full(evidence: Evidence, frames: Sequence[Frame]) -> bool:
    """Whether the device holds all the job's I/Os: then it is the limit as well."""
    device_io = device_figures(frames, evidence.devices)
    if device_io is None or device_io.aqu_sz is None or evidence.shape.depth < 2:
        return False
    return device_io.aqu_sz >= FULL_QUEUE_SHARE * evidence.shape.depth


def _is_writing_back(evidence: Evidence, frames: Sequence[Frame]) -> bool:
    """Whether the job fills the page cache faster than a fully used device can write it back: soon
    the device will be the limit, even if the job's CPU is busy now."""
    buffered = evidence.shape.direct is False and evidence.shape.writes
    return buffered and always_writes(frames, evidence.devices)


def more_jobs_than_cpus(evidence: Evidence) -> Finding | None:
    """Jobs wait for a CPU that other jobs of the same run use."""
    frames = recent_job_frames(evidence)
    cpus = len(evidence.online)
    if not frames or not cpus or evidence.shape.jobs <= cpus:
        return None
    idle = idle_percents(evidence)
    if len(idle) < ENOUGH_SECONDS or max(idle) > MUCH_IDLE or not jobs_fill_cpus(evidence):
        return None
    waited = [wait for frame in frames if (wait := cpu_wait_percent(frame)) is not None]
    if waited and min(waited) < MUCH_CPU_WAIT_PERCENT:
        return None
    some = f", each {fmean(waited):.0f} % of the time" if waited else ""
    return Finding(
        "more-jobs-than-cpus",
        f"{evidence.shape.jobs} jobs share {cpus} CPU{'s' if cpus > 1 else ''}, "
        f"{100 - fmean(idle):.0f} % busy: jobs wait for a CPU{some}, and that counts as latency",
        fewer_jobs(units.counted(cpus, "job"), evidence),
        "{",
    )


def fewer_jobs(jobs: str, evidence: Evidence) -> Advice:
    """Advice to use ``jobs`` in place of more, with an engine that has a queue."""
    is_synchronous = evidence.shape.engine in SYNCHRONOUS and not evidence.shape.offloads
    if is_synchronous:
        return advise("fewer-jobs", f"{jobs} of ioengine=io_uring")
    depth = evidence.shape.iodepth or 1
    return advise("fewer-jobs", jobs) if depth < DEEP else advise("only-fewer", jobs, depth)


def depth_not_reached(evidence: Evidence) -> Finding | None:
    """The job asks for more I/Os at once than it gets."""
    frames, shape = recent_job_frames(evidence), evidence.shape
    depth = shape.iodepth
    if not frames or depth is None or depth < 2:
        return None
    if shape.engine in SYNCHRONOUS and not shape.offloads:
        end = _not_sent_end(evidence, frames)
        return Finding(
            "depth",
            f"iodepth={depth} has no effect: ioengine={shape.engine} is synchronous, one I/O at "
            f"a time per job{end}",
            advise("engine"),
        )
    shallow = [_percent_below(f.fio.iodepth_level, depth) for f in frames if f.fio]
    if shape.paced:
        return None
    if not shallow or min(shallow) < 50.0:
        return _buffered_libaio(depth, evidence, frames)
    # a job that waits for a CPU submits late, also with more jobs
    if jobs_wait_for_cpus(frames):
        return None
    return Finding(
        "depth",
        f"iodepth={depth} is not reached: {fmean(shallow):.0f} % of the I/Os were issued "
        f"at a depth of {_half_depth_bucket(depth)} or less",
        advise("direct" if shape.direct is False else "numjobs"),
    )


def _buffered_libaio(depth: int, evidence: Evidence, frames: Sequence[Frame]) -> Finding | None:
    """libaio with buffered I/O is synchronous: its slat is the whole latency."""
    shape = evidence.shape
    if shape.engine != "libaio" or shape.direct is not False:
        return None
    total = [f.fio.total for f in frames if f.fio]
    slat = [t.slat_ns for t in total if t.slat_ns is not None]
    clat = [t.clat_ns for t in total if t.clat_ns is not None]
    # the calls of one batch wait for each other in clat: slat × depth at most
    if not slat or not clat or fmean(slat) * depth < fmean(clat) or fmean(slat) < 2000:
        return None
    end = _not_sent_end(evidence, frames)
    return Finding(
        "depth",
        f"iodepth={depth} has no effect: buffered libaio submits one I/O at a time, and its "
        f"time is in the submission (slat {units.latency(fmean(slat))}, clat "
        f"{units.latency(fmean(clat))}){end}",
        advise("direct"),
    )


def sync_cost(evidence: Evidence) -> Finding | None:
    """Flushes of the device's cache, which fsync, fdatasync and O_SYNC cost."""
    frames = recent_frames(evidence)
    await_ms = flush_await_ms(frames, evidence.devices)
    device_io = None if await_ms is None else device_figures(frames, evidence.devices)
    if (
        device_io is None
        or await_ms is None
        or not _has_many_flushes(evidence, frames, device_io, await_ms)
    ):
        return None
    names, several = device_names_text(evidence.devices), len(evidence.devices) > 1
    accounts = next(device_accounts(evidence, frames), None)
    others_s = accounts.mean.others[FLUSHES].ios_s if accounts is not None else 0.0
    caches = {d.queue.write_cache for d in evidence.devices if d.queue and d.queue.write_cache}
    because = f" (write_cache {', '.join(sorted(caches))})" if caches else ""
    if frames[0].fio is not None and others_s >= device_io.f_s / 2:
        return Finding(
            "flush",
            f"{units.number(device_io.f_s)} flushes a second of {names}'s write cache{because}, "
            f"{units.latency(await_ms * 1e6)} each (f_await); at least {units.number(others_s)} "
            "of them are not this job's: another program syncs",
            FIND_PROGRAM,
            "u",
        )
    step = FIND_PROGRAM, "u"
    if frames[0].fio is not None:
        step = advise("fsync", max(32, 2 * (evidence.shape.sync_interval or 1))), ""
    return Finding(
        "flush",
        f"{units.number(device_io.f_s)} flushes a second of {names}'s write cache{because}, "
        f"{units.latency(await_ms * 1e6)} each (f_await): a synced write waits for "
        f"{'them' if several else 'one'}, and w/s counts them, too",
        *step,
    )


def _has_many_flushes(
    evidence: Evidence, frames: Sequence[Frame], device_io: DeviceFigures, each_ms: float
) -> bool:
    waiting = device_io.f_s * each_ms
    if frames[0].fio is None or not evidence.shape.syncs:
        return device_io.f_s >= MANY_FLUSHES_S and waiting >= 2 * MIN_FLUSHING_MS
    return evidence.shape.syncs and device_io.f_s >= 1 and (
        waiting >= MIN_FLUSHING_MS or device_io.f_s >= 0.3 * device_io.w_s
    )  # fmt: skip


def misaligned_writes(evidence: Evidence) -> Finding | None:
    """Writes that are smaller than the disk's physical blocks, or not aligned to them."""
    shape, frames = evidence.shape, recent_job_frames(evidence)
    if not frames or not shape.writes or shape.direct is not True:
        return None
    for device in evidence.devices:
        block = device.queue.physical_block_size if device.queue else None
        size = shape.block_size
        if block and size and size % block:
            return Finding(
                "misaligned",
                f"the job writes {size} B at a time, {device.name}'s physical block is {block} B: "
                "the disk may have to read, modify and write a whole block for each",
                advise("block-size", size_text(block)),
                test=(("bs", size_text(block)),),
            )
        if block and shape.alignment and shape.alignment % block:
            return Finding(
                "misaligned",
                f"the job's writes begin at multiples of {shape.alignment} B, {device.name}'s "
                f"physical block is {block} B: each may cross a block boundary",
                advise("offset", size_text(block)),
            )
        away = device_state(device, evidence).alignment_offset
        if away:
            return Finding(
                "misaligned",
                f"{device.name} begins {away} B away from a physical block (alignment_offset): "
                "each write may touch one block more than it fills",
                advise("partition"),
            )
    return None


def cpu_sleeps(evidence: Evidence) -> Finding | None:
    """At depth 1 a CPU that sleeps deeply, or runs slowly, adds to every latency."""
    frames, shape = recent_job_frames(evidence), evidence.shape
    latency = fio_latency_ns(frames)
    if latency is None or shape.depth != 1 or shape.polls or not frames[-1].jobs:
        return None
    waits = mean_waits(frames)
    if waits is not None and waits.in_devices < waits.ios / 2:
        return None  # the page cache answers without an interrupt: no CPU is woken up
    cpu = frames[-1].jobs[0].cpu
    state = evidence.conditions.cpus.get(cpu)
    idle = [load.idle + load.iowait for load in cpu_loads(frames, cpu)]
    if state is None or len(idle) < ENOUGH_SECONDS:
        return None
    if state.wake_us and min(idle) >= 20 and state.wake_us * 1e3 >= WAKE_UP_SHARE * latency:
        return Finding(
            "cpu-sleep",
            f"at depth 1 CPU {cpu} sleeps between I/Os ({fmean(idle):.0f} % idle); leaving its "
            f"deepest C-state takes up to {state.wake_us} µs, and the latency is "
            f"{units.latency(latency)}: the CPU may be a large part of it",
            advise("c-states", cpu),
        )
    if state.khz and state.max_khz and state.khz < SLOW_CLOCK_SHARE * state.max_khz:
        return Finding(
            "cpu-sleep",
            f"at depth 1 CPU {cpu} runs at {state.khz / 1e6:.1f} of {state.max_khz / 1e6:.1f} GHz "
            f"(governor {state.governor or 'unknown'}): it may be a part of the "
            f"{units.latency(latency)} that each I/O takes",
            advise("governor", cpu),
        )
    return None


def scheduler_cost(evidence: Evidence) -> Finding | None:
    """Jobs or CPUs that are full, on a fast disk that has a scheduler."""
    frames = recent_job_frames(evidence)
    if not frames or evidence.shape.polls:
        return None
    if not saturated_jobs(frames)[1] and cpus_have_time(evidence):
        return None
    for device in evidence.devices:
        queue = device.queue
        if queue is None or len(device.hctxs) < 2 or queue.rotational is not False:
            continue
        if queue.scheduler not in (None, "none"):
            return Finding(
                "scheduler",
                f"{device.name} has {len(device.hctxs)} hardware queues and the scheduler "
                f"{queue.scheduler}, and no CPU time is left: the scheduler may use a part of it",
                advise("scheduler"),
                "k",
            )
    return None


def _half_depth_bucket(depth: int) -> int:
    """The largest of fio's depth buckets that is at most half of ``depth``."""
    bucket = 1
    while bucket * 2 <= depth // 2:
        bucket *= 2
    return bucket


def _percent_below(levels: Mapping[str, float], depth: int) -> float:
    """Percent of I/Os issued at half the configured depth or less (fio's buckets 1, 2, 4 ...)."""
    limit = min(_half_depth_bucket(depth), 32)
    return sum(share for name, share in levels.items() if name.isdigit() and int(name) <= limit)
