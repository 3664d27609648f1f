"""What the evidence shows, in one sentence with its numbers, and what to try next.

Each rule is a pure function from ``Evidence`` to a ``Finding`` or ``None``. A rule fires only
on what all of the last ``ENOUGH`` measured seconds show, and says the numbers it fired on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.tunable import why_rq_affinity_cannot_matter
from iopstui.model.findings import evidence as e
from iopstui.model.findings.evidence import (
    ENOUGH,
    LONG_ENOUGH,
    SYNCHRONOUS,
    DeviceFigures,
    Evidence,
    Finding,
    recent,
)
from iopstui.model.metrics.frame import NO_LATENCY, SUBMITTED, Frame

MOST = 0.8
SATURATED_BUSY = 93.0
FOLLOWED_JOBS = 64

Rule = Callable[[Evidence], "Finding | None"]


def diagnose(evidence: Evidence) -> list[Finding]:
    """The findings of all rules, the most telling first."""
    return [found for rule in RULES if (found := rule(evidence)) is not None]


def no_iostats(evidence: Evidence) -> Finding | None:
    """The kernel does not count I/Os: its zeros are not measurements."""
    silent = [
        device
        for device in evidence.devices
        if device.queue is not None
        and device.queue.iostats is False
        and not _counts_all_the_same(device, evidence)
    ]
    if not silent:
        return None
    has, its = ("have", "their") if len(silent) > 1 else ("has", "its")
    return Finding(
        "iostats",
        f"{e.names_words(silent)} {has} iostats=0: the kernel does not count {its} I/Os, so "
        f"{its} figures mean nothing",
        "turn it on: --knob iostats=1",
    )


def _counts_all_the_same(device: BlockDevice, evidence: Evidence) -> bool:
    """Bio-based devices may."""
    figures = e.device_figures(recent(evidence, 1), [device], 1)
    return figures is not None and figures.ios_s > 0


def cpu_throttled(evidence: Evidence) -> Finding | None:
    """A cgroup takes the CPU away from iopstui and fio."""
    frames = recent(evidence)
    taken = [f.throttled for f in frames if f.throttled is not None]
    if not frames or len(taken) < ENOUGH or min(taken) < 1.0:
        return None
    # the kernel adds up the waiting of every CPU: it may be more than the time that passed
    return Finding(
        "throttled",
        f"a cgroup limit (cpu.max) takes {fmean(taken):.0f} % of a CPU away from these "
        "processes: IOPS and latency show the CPU limit, not the disk",
        "raise cpu.max of the cgroup, or run outside of it",
    )


def background(evidence: Evidence) -> Finding | None:
    """The disk was in use before the run began."""
    devices = evidence.devices
    quiet = e.device_figures(evidence.before[-LONG_ENOUGH:], devices)
    frames = recent(evidence, 1)
    if quiet is None or not frames:
        return None
    if quiet.r_s + quiet.w_s < max(20.0, 0.02 * e.fio_iops(frames)):
        return None
    return Finding(
        "background",
        f"{e.names_words(devices)} {_was(devices)} not idle before this run: "
        f"{units.number(quiet.r_s)} r/s and "
        f"{units.number(quiet.w_s)} w/s that are not this job's",
        "find out who does it: iotop, or pidstat -d 1",
    )


def _was(devices: Sequence[BlockDevice]) -> str:
    return "were" if len(devices) > 1 else "was"


def one_cpu_completes(evidence: Evidence) -> Finding | None:
    """One CPU runs most completions while several submit."""
    devices, frames = evidence.devices, recent(evidence)
    if not devices or not frames:
        return None
    found = _completions(frames, evidence)
    submitters = set.intersection(*({j.cpu for j in f.jobs if (j.busy or 0) > 2} for f in frames))
    if found is None or len(submitters) < 2:
        return None
    what, by_cpu = found
    total = sum(by_cpu.values())
    cpu, most = e.largest(by_cpu)
    affinities = {device.queue.rq_affinity if device.queue else None for device in devices}
    if total < 500 or most < MOST * total or affinities == {2}:
        return None
    text = (
        f"CPU {cpu} runs {100 * most / total:.0f} % of the {what} ({units.number(most)} of "
        f"{units.number(total)}/s) that complete {e.names_words(devices)}'s I/O, while jobs submit "
        f"from {len(submitters)} CPUs"
    )
    # the CPUs of the machine: a completion may be moved to one that fio does not use, too
    reasons = [why_rq_affinity_cannot_matter(d, sorted(frames[-1].cpus)) for d in devices]
    cannot = "; ".join(dict.fromkeys(filter(None, reasons)))
    if None not in reasons or None in affinities:
        return Finding("one-cpu", text, f"rq_affinity can't move it: {cannot}" if cannot else "")
    now = ", ".join(sorted(map(str, affinities)))
    return Finding(
        "one-cpu", text, f"try rq_affinity 2 (now {now}): each completion goes to the CPU "
        "that submitted it, which moves work and may or may not give IOPS", "a",
    )  # fmt: skip


def _completions(
    frames: Sequence[Frame], evidence: Evidence
) -> tuple[str, dict[int, float]] | None:
    """Where completions ran: BLOCK softirqs per CPU, or the device's interrupts where it
    completes inside the hard interrupt and raises none. ``None`` if other disks' softirqs,
    which are counted with them, are too many to tell."""
    block, irq = e.per_cpu(frames, "block_s"), e.per_cpu(frames, "irq_s")
    total = sum(block.values())
    if total < 0.1 * sum(irq.values()):
        return "interrupts", irq
    figures = e.device_figures(frames, evidence.devices)
    if not block or figures is None or total > 1.5 * figures.ios_s:
        return None
    return "BLOCK softirqs", block


def job_saturated(evidence: Evidence) -> Finding | None:
    """A job's CPU has nothing left, so the job is a limit."""
    frames = recent(evidence)
    if not frames or evidence.shape.polls:
        return None
    busy, full = _full_jobs(frames)
    if not full:
        return None
    jobs = max(len(busy), evidence.shape.jobs if len(busy) >= FOLLOWED_JOBS else 1)
    each = e.fio_iops(frames) / jobs
    who = f"job {next(iter(full))} is" if len(full) == 1 else f"{len(full)} of {jobs} jobs are"
    return Finding(
        "job-cpu",
        f"{who} busy {min(fmean(full.values()), 100.0):.0f} % of a CPU at {units.number(each)} "
        "IOPS a job: the CPU is the limit before the disk is",
        "try more jobs (numjobs) or a cheaper engine (ioengine=io_uring)",
        "}",
    )


def _full_jobs(frames: Sequence[Frame]) -> tuple[dict[int, list[float]], dict[int, float]]:
    """(busy percents of all jobs, mean of those that had nothing left all the time)."""
    busy = e.job_busy(frames)
    full = {n: fmean(b) for n, b in busy.items() if len(b) >= ENOUGH and min(b) >= SATURATED_BUSY}
    return busy, full


def more_jobs_than_cpus(evidence: Evidence) -> Finding | None:
    """Jobs wait for a CPU."""
    frames = recent(evidence)
    cpus = len(evidence.online)
    if not frames or not cpus or evidence.shape.jobs <= cpus:
        return None
    loads = [[f.cpus[c].load for c in evidence.online if c in f.cpus] for f in frames]
    idle = [fmean(one.idle + one.iowait for one in row if one) for row in loads if any(row)]
    if len(idle) < ENOUGH or max(idle) > 10.0:
        return None
    return Finding(
        "more-jobs-than-cpus",
        f"{evidence.shape.jobs} jobs share {cpus} CPU{'s' if cpus > 1 else ''}, "
        f"{100 - fmean(idle):.0f} % busy: jobs wait for a CPU, and that counts as latency",
        f"try {cpus} job{'s' if cpus > 1 else ''} with a deeper queue",
        "{",
    )


def saturated(evidence: Evidence) -> Finding | None:
    """A deeper queue brought latency, not IOPS."""
    frames, now = recent(evidence), evidence.shape
    latency = e.fio_latency(frames)
    if not frames or latency is None or now.paced or any(NO_LATENCY in f.flags for f in frames):
        return None
    iops = e.fio_iops(frames)
    inside = iops * latency / 1e9
    shallower = [one for one in evidence.earlier if now.depth >= 1.5 * one.shape.depth]
    # a queue that is not filled says nothing about its depth
    if not shallower or inside < 0.7 * now.depth:
        return None
    then = shallower[-1]
    deeper = now.depth / then.shape.depth
    if iops > then.iops * 1.1 or latency < then.lat_ns * (1 + 0.5 * (deeper - 1)):
        return None
    return Finding(
        "saturated",
        f"depth {then.shape.depth} → {now.depth}: IOPS {units.number(then.iops)} → "
        f"{units.number(iops)}, latency {units.latency(then.lat_ns)} → "
        f"{units.latency(latency)}; more only wait (Little's law: N = X·R = "
        f"{units.number(iops)}/s × {units.latency(latency)} = {inside:.1f})",
        f"depth {then.shape.depth} did the same at a lower latency",
        "[",
    )


def depth_not_reached(evidence: Evidence) -> Finding | None:
    """The job asks for more I/Os at once than it gets."""
    frames, shape = recent(evidence), evidence.shape
    depth = shape.iodepth
    if not frames or depth is None or depth < 2:
        return None
    if shape.engine in SYNCHRONOUS:
        return Finding(
            "depth",
            f"iodepth={depth} has no effect: ioengine={shape.engine} is synchronous, one I/O at "
            "a time and job",
            "try ioengine=libaio or io_uring with direct=1, or more jobs",
        )
    shallow = [_share_below(f.fio.iodepth_level, depth) for f in frames if f.fio]
    if shape.paced:
        return None
    if not shallow or min(shallow) < 50.0:
        return _buffered(depth, evidence, frames)
    return Finding(
        "depth",
        f"iodepth={depth} is not reached: {fmean(shallow):.0f} % of the I/Os were issued "
        f"at a depth of {_half(depth)} or less",
        "the submitter is slower than the disk, or I/O is buffered; try direct=1 or more jobs",
    )


def _buffered(depth: int, evidence: Evidence, frames: Sequence[Frame]) -> Finding | None:
    """libaio with buffered I/O submits synchronously: its slat is the whole latency."""
    shape = evidence.shape
    if shape.engine != "libaio" or shape.direct is not False:
        return None
    total = [f.fio.total for f in frames if f.fio]
    slat = [t.slat_ns for t in total if t.slat_ns is not None]
    clat = [t.clat_ns for t in total if t.clat_ns is not None]
    # the calls of one batch wait for each other in clat: slat × depth at most
    if not slat or not clat or fmean(slat) * depth < fmean(clat) or fmean(slat) < 2000:
        return None
    return Finding(
        "depth",
        f"iodepth={depth} has no effect: buffered libaio submits one I/O at a time, and the "
        f"waiting is in the submission (slat {units.latency(fmean(slat))}, clat "
        f"{units.latency(fmean(clat))})",
        "try direct=1",
    )


def disagreement(evidence: Evidence) -> Finding | None:
    """fio and the device count differently; diskstats shows why."""
    devices, frames = evidence.devices, recent(evidence)
    theirs = e.device_figures(frames, devices)
    if theirs is None or any(SUBMITTED in f.flags for f in frames):
        return None
    if any(device.queue and device.queue.iostats is False for device in devices):
        return None
    own = e.fio_iops(frames)
    ratios = [device_s / fio_s for fio_s, device_s in e.each_second(frames, devices)]
    # fio and the kernel are read at slightly different moments: one second proves nothing
    if own < 100 or len(ratios) < ENOUGH or not (max(ratios) < 0.9 or min(ratios) > 1.1):
        return None
    sums = " together" if len(devices) > 1 else ""
    names = e.names_words(devices)
    head = f"fio does {units.number(own)} IOPS, {names}{sums} {units.number(theirs.ios_s)}"
    if theirs.ios_s < own:
        return _device_does_less(evidence, theirs, head, own, e.fio_bytes(frames))
    return _device_does_more(evidence, theirs, head, own, e.fio_bytes(frames))


def _device_does_less(
    evidence: Evidence, theirs: DeviceFigures, head: str, own: float, own_bytes: float
) -> Finding:
    if theirs.merges_s >= 0.5 * (own - theirs.ios_s):
        return Finding(
            "disagree",
            f"{head}: {units.number(theirs.merges_s)}/s were merged into larger requests "
            "(rrqm/s, wrqm/s)",
            "nomerges=2 shows the device without merging",
        )
    if theirs.ios_s and own_bytes and theirs.bytes_s >= 0.9 * own_bytes:
        return Finding(
            "disagree",
            f"{head} with no fewer bytes: read-ahead, write-back or batches make larger requests "
            f"({units.size(own_bytes / own)} became "
            f"{units.size(theirs.bytes_s / theirs.ios_s)} each)",
            "try direct=1" if evidence.shape.direct is False else "",
        )
    if evidence.shape.direct is False:
        return Finding(
            "disagree",
            f"{head}: the page cache answers the rest, because the I/O is buffered (direct=0)",
            "try direct=1 to measure the disk",
        )
    if evidence.unseen:
        return Finding(
            "disagree",
            f"{head}: the rest is where no block device counts it ({'; '.join(evidence.unseen)})",
        )
    them = "them" if len(evidence.devices) > 1 else "it"
    return Finding(
        "disagree",
        f"{head}: the rest never reached {them} (blocks of a file that were never written are "
        "answered by the file system)",
    )


def _device_does_more(
    evidence: Evidence, theirs: DeviceFigures, head: str, own: float, own_bytes: float
) -> Finding:
    if own_bytes and abs(theirs.bytes_s - own_bytes) <= 0.1 * own_bytes:
        return Finding(
            "disagree",
            f"{head} with the same bytes: requests are split ({units.size(own_bytes / own)} became "
            f"{units.size(theirs.bytes_s / theirs.ios_s)} each)",
            "max_sectors_kb is the largest request",
        )
    more = f"{units.number(theirs.ios_s - own)} I/Os per second more"
    if evidence.shape.syncs:
        return Finding("disagree", f"{head}: {more}, because the job syncs, which makes the "
                       "file system or the disk write on its own")  # fmt: skip
    return Finding(
        "disagree",
        f"{head}: {more}, by another program or by the file system",
        "find it with: iotop, or pidstat -d 1",
    )


def small_queue(evidence: Evidence) -> Finding | None:
    """The device's queues hold fewer requests than the job wants in flight."""
    devices, shape = evidence.devices, evidence.shape
    if not devices or shape.paced or shape.direct is False or not recent(evidence, 1):
        return None
    # a place without a device, or one without a queue, may hold any number
    rooms = [_room(device) for device in devices]
    if evidence.unseen or None in rooms or shape.depth <= sum(r for r, _ in filter(None, rooms)):
        return None
    holds = "hold" if len(devices) > 1 else "holds"
    queues = " + ".join(words for _, words in filter(None, rooms))
    return Finding(
        "nr_requests",
        f"the job wants {shape.depth} I/Os in flight, but {e.names_words(devices)} {holds} "
        f"{queues} requests (nr_requests): the rest waits before the queue",
        "raise nr_requests if the device has the tags, or use a smaller depth",
    )


def _room(device: BlockDevice) -> tuple[int, str] | None:
    """How many requests its queues hold, and that in words; ``None`` if it has none to tell."""
    each = device.queue.nr_requests if device.queue is not None else None
    if each is None or not device.hctxs:
        return None
    count = len(device.hctxs)
    return each * count, f"{count} × {each}" if count > 1 else str(each)


def provisioned(evidence: Evidence) -> Finding | None:
    """A flat line at a round figure, while the CPUs have time and the queue is full, looks like
    an imposed limit."""
    frames, shape = recent(evidence, LONG_ENOUGH), evidence.shape
    latency = e.fio_latency(frames)
    each = [f.fio.total.iops for f in frames if f.fio and f.fio.total.iops]
    if latency is None or shape.paced or len(each) < LONG_ENOUGH or fmean(each) < 100:
        return None
    mean = fmean(each)
    flat = pstdev(each) / mean
    inside = mean * latency / 1e9
    # Little's law holds for every full queue; it says that the queue is full, no more
    if flat > 0.01 or not is_round(mean) or shape.depth < 2 or inside < 0.8 * shape.depth:
        return None
    if _full_jobs(frames[-ENOUGH:])[1] or inside > 1.2 * shape.depth:
        return None
    return Finding(
        "provisioned",
        f"IOPS stand at {units.number(mean)} (±{100 * flat:.1f} % over {len(each)} s), near the "
        f"round {round_figure(mean):,}, with a full queue and idle CPU; latency is depth / IOPS "
        f"= {shape.depth} / {units.number(mean)} ≈ {units.latency(latency)}: this looks like "
        "an imposed limit, not the disk's own",
        "compare with what was ordered; a deeper queue only adds latency",
    )


def round_figure(value: float) -> int:
    """The nearest figure that limits are set at: 1.0, 1.1 ... 2.0, 2.5, 3.0 ... 9.5 times a
    power of ten."""
    unit: int = 10 ** max(len(str(int(value))) - 2, 0)
    step = unit if value < 20 * unit else 5 * unit
    return max(round(value / step) * step, 1)


def is_round(value: float) -> bool:
    """Whether ``value`` is within 0.5 % below and 1.5 % above a round figure: limiters let a
    little more through, counted from the first I/O."""
    away = value / round_figure(value) - 1
    return -0.005 <= away <= 0.015


RULES: tuple[Rule, ...] = (
    no_iostats,
    cpu_throttled,
    one_cpu_completes,
    depth_not_reached,
    disagreement,
    small_queue,
    job_saturated,
    more_jobs_than_cpus,
    saturated,
    provisioned,
    background,
)


def _half(depth: int) -> int:
    """The largest of fio's depth buckets that is at most half of ``depth``."""
    bucket = 1
    while bucket * 2 <= depth // 2:
        bucket *= 2
    return bucket


def _share_below(levels: Mapping[str, float], depth: int) -> float:
    """Percent of I/Os issued at half the configured depth or less (fio's buckets 1, 2, 4 ...)."""
    limit = min(_half(depth), 32)
    return sum(share for name, share in levels.items() if name.isdigit() and int(name) <= limit)
