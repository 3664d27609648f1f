"""What the evidence shows, in one sentence with its numbers, and what to try next.

Each rule is a pure function from ``Evidence`` to a ``Finding`` or ``None``. A rule fires only
on what all of the last ``ENOUGH`` measured seconds show, and says the numbers it fired on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from iopstui.model.device import BlockDevice
from iopstui.model.frame import NO_LATENCY, PARTIAL, RAMP, RESET, Frame
from iopstui.model.tunable import why_rq_affinity_cannot_matter

ENOUGH = 3
LONG_ENOUGH = 10

_SYNCHRONOUS = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})


@dataclass(frozen=True, slots=True)
class JobShape:
    """What the running job asks for: ``jobs`` in all, each with up to ``iodepth`` I/Os.

    ``direct`` and ``engine`` are ``None`` where the sections differ; ``rate_iops`` is the
    job's own limit, summed over its jobs.
    """

    jobs: int = 1
    iodepth: int = 1
    engine: str | None = None
    direct: bool | None = None
    rate_iops: int | None = None

    @property
    def depth(self) -> int:
        """I/Os in flight at most: N of Little's law."""
        return self.jobs * self.iodepth


@dataclass(frozen=True, slots=True)
class Steady:
    """An earlier run of this session with the same job: its shape and steady figures."""

    shape: JobShape
    iops: float
    lat_ns: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the rules look at. ``frames`` are the running step's, oldest first; ``before`` those
    of the quiet time right before it; ``online`` the CPUs that can be used.
    """

    frames: Sequence[Frame]
    before: Sequence[Frame] = ()
    device: BlockDevice | None = None
    shape: JobShape = JobShape()
    online: tuple[int, ...] = ()
    earlier: Sequence[Steady] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """``rule`` names what fired, ``text`` is the sentence, ``advice`` what to try ("" if
    nothing helps), ``key`` the key that does it ("" if none).
    """

    rule: str
    text: str
    advice: str = ""
    key: str = ""


Rule = Callable[[Evidence], "Finding | None"]


def diagnose(evidence: Evidence) -> list[Finding]:
    """What all rules find, the most telling first."""
    return [found for rule in RULES if (found := rule(evidence)) is not None]


def measured(frames: Iterable[Frame]) -> list[Frame]:
    """Frames whose figures stand for a whole interval."""
    unfit = {RAMP, PARTIAL, RESET}
    return [f for f in frames if f.fio is not None and f.fio.seconds and not unfit & f.flags]


def recent(evidence: Evidence, count: int = ENOUGH) -> list[Frame]:
    """The last ``count`` measured frames; empty if there are fewer."""
    found = measured(evidence.frames)
    return found[-count:] if len(found) >= count else []


def fio_iops(frames: Sequence[Frame]) -> float:
    """fio's completions per second over these frames."""
    seconds = sum(f.fio.seconds or 0.0 for f in frames if f.fio)
    return sum(f.fio.total.ios for f in frames if f.fio) / seconds if seconds else 0.0


def fio_bytes(frames: Sequence[Frame]) -> float:
    """fio's bytes per second over these frames."""
    seconds = sum(f.fio.seconds or 0.0 for f in frames if f.fio)
    return sum(f.fio.total.bytes for f in frames if f.fio) / seconds if seconds else 0.0


def fio_latency(frames: Sequence[Frame]) -> float | None:
    """Mean latency (lat, else clat) in ns, weighted by the I/Os."""
    weighted, count = 0.0, 0
    for frame in frames:
        total = frame.fio.total if frame.fio else None
        mean = None if total is None else total.lat_ns or total.clat_ns
        if total is not None and mean is not None:
            weighted += mean * total.ios
            count += total.ios
    return weighted / count if count else None


# -- the rules


def no_iostats(evidence: Evidence) -> Finding | None:
    """The kernel does not count: its zeros are no measurement."""
    device = evidence.device
    if device is None or device.queue is None or device.queue.iostats is not False:
        return None
    return Finding(
        "iostats",
        f"{device.name} has iostats=0: the kernel does not count its I/Os, so its figures are "
        "no measurement",
        "turn it on: --knob iostats=1",
    )


def cpu_throttled(evidence: Evidence) -> Finding | None:
    """A cgroup takes the CPU away from iopstui and fio."""
    frames = recent(evidence)
    taken = [f.throttled for f in frames if f.throttled is not None]
    if not frames or len(taken) < ENOUGH or min(taken) < 1.0:
        return None
    return Finding(
        "throttled",
        f"a cgroup limit stopped these processes {fmean(taken):.0f} % of the time (cpu.max): "
        "IOPS and latency show the CPU limit, not the disk",
        "raise cpu.max of the cgroup, or run outside of it",
    )


def background(evidence: Evidence) -> Finding | None:
    """Somebody else used the disk before the run began."""
    device = evidence.device
    quiet = _device_rates(evidence.before[-LONG_ENOUGH:], device)
    if device is None or len(quiet) < ENOUGH:
        return None
    reads, writes = fmean(r for r, _, _ in quiet), fmean(w for _, w, _ in quiet)
    frames = recent(evidence, 1)
    own = fio_iops(frames)
    if not frames or reads + writes < max(20.0, 0.02 * own):
        return None
    return Finding(
        "background",
        f"{device.name} was not idle before this run: {_count(reads)} r/s and "
        f"{_count(writes)} w/s by other programs",
        "find them with: iotop, or pidstat -d 1",
    )


def one_cpu_completes(evidence: Evidence) -> Finding | None:
    """One CPU runs most completions while several submit."""
    device, frames = evidence.device, recent(evidence)
    if device is None or not frames:
        return None
    what, by_cpu = _completions(frames)
    total = sum(by_cpu.values())
    submitters = set.intersection(*({j.cpu for j in f.jobs if (j.busy or 0) > 2} for f in frames))
    if total < 500 or len(submitters) < 2:
        return None
    cpu, most = max(by_cpu.items(), key=lambda pair: pair[1])
    affinity = device.queue.rq_affinity if device.queue else None
    if most < 0.8 * total or affinity == 2:
        return None
    text = (
        f"CPU {cpu} completes {100 * most / total:.0f} % of {device.name}'s I/O "
        f"({_count(most)} of {_count(total)} {what}/s) while jobs submit from "
        f"{len(submitters)} CPUs"
    )
    cannot = why_rq_affinity_cannot_matter(device, evidence.online)
    if cannot is not None or affinity is None:
        return Finding("one-cpu", text, f"rq_affinity can't move it: {cannot}" if cannot else "")
    return Finding(
        "one-cpu", text, f"try rq_affinity 2 (now {affinity}): each completion goes to the CPU "
        "that submitted it", "a",
    )  # fmt: skip


def job_saturated(evidence: Evidence) -> Finding | None:
    """A job's CPU has nothing left, so the job is the limit."""
    frames = recent(evidence)
    if not frames:
        return None
    busy: dict[int, list[float]] = {}
    for frame in frames:
        for job in frame.jobs:
            if job.busy is not None:
                busy.setdefault(job.index, []).append(job.busy)
    full = {n: fmean(b) for n, b in busy.items() if len(b) >= ENOUGH and min(b) >= 93.0}
    if not full:
        return None
    each = fio_iops(frames) / max(len(busy), 1)
    who = f"job {next(iter(full))} is" if len(full) == 1 else f"{len(full)} of {len(busy)} jobs are"
    return Finding(
        "job-cpu",
        f"{who} busy {min(max(full.values()), 100.0):.0f} % of a CPU at {_count(each)} IOPS a "
        "job: the CPU, not the disk, is the limit",
        "try more jobs (numjobs) or a cheaper engine (ioengine=io_uring)",
        "}",
    )


def more_jobs_than_cpus(evidence: Evidence) -> Finding | None:
    """Jobs wait for a CPU."""
    frames = recent(evidence)
    cpus = len(evidence.online)
    if not frames or not cpus or evidence.shape.jobs <= cpus:
        return None
    idle = [
        fmean(c.load.idle + c.load.iowait for c in f.cpus.values() if c.load)
        for f in frames
        if any(c.load for c in f.cpus.values())
    ]
    if len(idle) < ENOUGH or max(idle) > 10.0:
        return None
    return Finding(
        "more-jobs-than-cpus",
        f"{evidence.shape.jobs} jobs share {cpus} CPUs that are {100 - fmean(idle):.0f} % busy: "
        "jobs wait for a CPU, and that counts as latency",
        f"try {cpus} jobs with a deeper queue",
        "{",
    )


def saturated(evidence: Evidence) -> Finding | None:
    """A deeper queue brought latency, not IOPS."""
    frames = recent(evidence)
    latency = fio_latency(frames)
    if not frames or latency is None or any(NO_LATENCY in f.flags for f in frames):
        return None
    now = evidence.shape
    for earlier in reversed(evidence.earlier):
        then = earlier.shape
        deeper = now.depth / then.depth
        same = (now.engine, now.direct) == (then.engine, then.direct)
        if deeper < 1.5 or not same:
            continue
        iops = fio_iops(frames)
        if iops > earlier.iops * 1.1 or latency < earlier.lat_ns * (1 + 0.5 * (deeper - 1)):
            return None
        inside = iops * latency / 1e9
        return Finding(
            "saturated",
            f"depth {then.depth} → {now.depth}: IOPS {_count(earlier.iops)} → {_count(iops)}, "
            f"latency {_time(earlier.lat_ns)} → {_time(latency)}; the queue only waits longer "
            f"(Little's law: N = X·R = {_count(iops)}/s × {_time(latency)} = {inside:.1f})",
            f"depth {then.depth} gives the same IOPS at a lower latency",
            "[",
        )
    return None


def depth_not_reached(evidence: Evidence) -> Finding | None:
    """The job asks for more I/Os at once than it gets."""
    frames, shape = recent(evidence), evidence.shape
    if not frames or shape.iodepth < 2:
        return None
    if shape.engine in _SYNCHRONOUS:
        return Finding(
            "depth",
            f"iodepth={shape.iodepth} has no effect: ioengine={shape.engine} is synchronous, one "
            "I/O at a time and job",
            "try ioengine=libaio or io_uring with direct=1, or more jobs",
        )
    shallow = [_share_below(f.fio.iodepth_level, shape.iodepth) for f in frames if f.fio]
    if min(shallow) < 50.0:
        return _buffered(evidence, frames)
    return Finding(
        "depth",
        f"iodepth={shape.iodepth} is not reached: {fmean(shallow):.0f} % of the I/Os were issued "
        f"at a depth of {_half(shape.iodepth)} or less",
        "the submitter is slower than the disk, or I/O is buffered; try direct=1 or more jobs",
    )


def _buffered(evidence: Evidence, frames: Sequence[Frame]) -> Finding | None:
    """libaio with buffered I/O submits synchronously: its slat is the whole latency."""
    shape = evidence.shape
    if shape.engine != "libaio" or shape.direct is not False:
        return None
    total = [f.fio.total for f in frames if f.fio]
    slat = [t.slat_ns for t in total if t.slat_ns is not None]
    clat = [t.clat_ns for t in total if t.clat_ns is not None]
    if not slat or not clat or fmean(slat) < fmean(clat):
        return None
    return Finding(
        "depth",
        f"iodepth={shape.iodepth} has no effect: buffered libaio submits one I/O at a time "
        f"(slat {_time(fmean(slat))}, clat {_time(fmean(clat))})",
        "try direct=1",
    )


def disagreement(evidence: Evidence) -> Finding | None:
    """fio and the device count differently; diskstats shows why."""
    device, frames = evidence.device, recent(evidence)
    rates = _device_rates(frames, device)
    if device is None or len(rates) < ENOUGH:
        return None
    if device.queue and device.queue.iostats is False:
        return None
    own = fio_iops(frames)
    theirs = fmean(r + w for r, w, _ in rates)
    if own < 100 or 0.9 <= theirs / own <= 1.1:
        return None
    head = f"fio does {_count(own)} IOPS, {device.name} {_count(theirs)}"
    if theirs < own:
        return _device_does_less(evidence, frames, head, own - theirs)
    return _device_does_more(evidence, frames, head, own)


def _device_does_less(
    evidence: Evidence, frames: Sequence[Frame], head: str, gap: float
) -> Finding:
    assert evidence.device is not None
    name = evidence.device.name
    merges = fmean(
        (f.disks[name].rrqm_s or 0) + (f.disks[name].wrqm_s or 0) for f in frames if name in f.disks
    )
    if merges >= 0.5 * gap:
        return Finding(
            "disagree",
            f"{head}: {_count(merges)}/s were merged into larger requests (rrqm/s, wrqm/s)",
            "nomerges=2 shows the device without merging",
        )
    if evidence.shape.direct is False:
        return Finding(
            "disagree",
            f"{head}: the page cache answers the rest, because the I/O is buffered (direct=0)",
            "try direct=1 to measure the disk",
        )
    return Finding("disagree", f"{head}: the rest never reached this device")


def _device_does_more(
    evidence: Evidence, frames: Sequence[Frame], head: str, own: float
) -> Finding:
    assert evidence.device is not None
    name = evidence.device.name
    disks = [f.disks[name] for f in frames if name in f.disks]
    moved = fmean((d.r_bytes_s or 0) + (d.w_bytes_s or 0) for d in disks)
    theirs = fmean((d.r_s or 0) + (d.w_s or 0) for d in disks)
    expected = fio_bytes(frames)
    if expected and abs(moved - expected) <= 0.1 * expected and theirs:
        return Finding(
            "disagree",
            f"{head} with the same bytes: requests are split ({expected / own / 1024:.0f} KiB "
            f"became {moved / theirs / 1024:.0f} KiB each)",
            "max_sectors_kb is the largest request",
        )
    return Finding(
        "disagree",
        f"{head}: another program uses the disk too ({_count(max(theirs - own, 0))} I/Os per "
        "second more)",
        "find it with: iotop, or pidstat -d 1",
    )


def small_queue(evidence: Evidence) -> Finding | None:
    """The device's queues hold fewer requests than the job wants in flight."""
    device, shape = evidence.device, evidence.shape
    if device is None or device.queue is None or not device.hctxs or not recent(evidence, 1):
        return None
    each = device.queue.nr_requests
    if each is None or shape.engine in _SYNCHRONOUS:
        return None
    room = each * len(device.hctxs)
    if shape.depth <= room:
        return None
    queues = f"{len(device.hctxs)} × {each}" if len(device.hctxs) > 1 else str(each)
    return Finding(
        "nr_requests",
        f"the job wants {shape.depth} I/Os in flight, but {device.name} holds {queues} requests "
        "(nr_requests): the rest waits before the queue",
        "raise nr_requests, or use a smaller depth",
    )


def provisioned(evidence: Evidence) -> Finding | None:
    """A flat line at a round figure, with a latency that follows the depth, is a set limit."""
    frames = recent(evidence, LONG_ENOUGH)
    latency = fio_latency(frames)
    if not frames or latency is None or evidence.shape.rate_iops:
        return None
    each = [f.fio.total.iops for f in frames if f.fio and f.fio.total.iops]
    if len(each) < LONG_ENOUGH or fmean(each) < 100:
        return None
    mean = fmean(each)
    target = round_figure(mean)
    flat = pstdev(each) / mean
    inside = mean * latency / 1e9
    if flat > 0.01 or abs(mean - target) > 0.01 * target:
        return None
    if evidence.shape.depth < 2 or abs(inside - evidence.shape.depth) > 0.2 * evidence.shape.depth:
        return None
    return Finding(
        "provisioned",
        f"IOPS stand at {_count(mean)} (±{100 * flat:.1f} % over {len(each)} s), a round figure, "
        f"and latency is depth / IOPS = {evidence.shape.depth} / {_count(mean)} = "
        f"{_time(latency)}: this looks like a set limit, not the disk's own",
        "compare with what was ordered; a deeper queue gives latency only",
    )


def round_figure(value: float) -> int:
    """The nearest number with at most two digits that are not 0 (16000, 500), above 100."""
    step: int = 10 ** max(len(str(int(value))) - 2, 0)
    return max(round(value / step) * step, 1)


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


# -- helpers


def _device_rates(
    frames: Sequence[Frame], device: BlockDevice | None
) -> list[tuple[float, float, float]]:
    """(r/s, w/s, seconds) of the device in each frame that has them."""
    if device is None:
        return []
    found = []
    for frame in frames:
        disk = frame.disks.get(device.name)
        if disk is not None and disk.r_s is not None and disk.w_s is not None:
            found.append((disk.r_s, disk.w_s, disk.seconds))
    return found


def _completions(frames: Sequence[Frame]) -> tuple[str, dict[int, float]]:
    """Where completions ran: BLOCK softirqs per CPU, or the device's interrupts where it
    completes inside the hard interrupt and raises none."""
    block: dict[int, float] = {}
    irq: dict[int, float] = {}
    for frame in frames:
        for cpu, counts in frame.cpus.items():
            block[cpu] = block.get(cpu, 0.0) + (counts.block_s or 0.0) / len(frames)
            irq[cpu] = irq.get(cpu, 0.0) + (counts.irq_s or 0.0) / len(frames)
    if sum(block.values()) >= 0.1 * sum(irq.values()):
        return "BLOCK softirqs", block
    return "interrupts", irq


def _half(depth: int) -> int:
    """The largest of fio's depth buckets that is at most half of ``depth``."""
    bucket = 1
    while bucket * 2 <= depth // 2:
        bucket *= 2
    return bucket


def _share_below(levels: Mapping[str, float], depth: int) -> float:
    """Percent of I/Os issued at half the configured depth or less (fio's buckets 1, 2, 4 ...)."""
    limit = _half(depth)
    return sum(share for name, share in levels.items() if name.isdigit() and int(name) <= limit)


def _count(value: float) -> str:
    for limit, suffix in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            scaled = value / limit
            return f"{scaled:.0f}{suffix}" if scaled >= 100 else f"{scaled:.3g}{suffix}"
    return f"{value:.0f}"


def _time(nanoseconds: float) -> str:
    for limit, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= limit:
            return f"{nanoseconds / limit:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"
