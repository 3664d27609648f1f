"""Who uses the CPUs: what jobs use and wait for, what others use, and what is idle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iopstui.model.findings.evidence import ENOUGH_SECONDS, Evidence, recent_job_frames
from iopstui.model.metrics.cpus import rate_of
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.waits import Waits
from iopstui.model.rates import CpuLoad, fmean

SATURATED_BUSY = 93.0
"""Percent of a CPU. A job that uses more has no CPU time left."""
MUCH_IDLE = 10.0
"""Percent of all CPUs. More idle time than this counts as much."""
MUCH_CPU_WAIT_PERCENT = 10.0
"""If jobs are ready to run and have no CPU for this percentage of the time, they wait
noticeably."""
BUSY_JOB_PERCENT, SPARE_CPU_PERCENT = 60.0, 20.0
FOLLOWED_JOBS = 64
"""If there are more jobs, only the first ones are followed."""
JOBS_SHARE = 0.5
"""If jobs use more than this share of the used CPU time, it is the jobs that fill the CPUs."""


def mean_by_cpu(frames: Sequence[Frame], name: str) -> dict[int, float]:
    """Each CPU's mean of ``name`` (block_s, irq_s or ipi_s), over the frames that have it."""
    values_by_cpu: dict[int, list[float]] = {}
    for frame in frames:
        for cpu, value in rate_of(frame.cpus, name).items():
            values_by_cpu.setdefault(cpu, []).append(value)
    return {cpu: fmean(values) for cpu, values in values_by_cpu.items()}


def busiest_cpu(counts: Mapping[int, float]) -> tuple[int, float]:
    """The busiest CPU, as (CPU, count); ``counts`` must not be empty."""
    return max(counts.items(), key=lambda pair: (pair[1], -pair[0]))


def busy_by_job(frames: Sequence[Frame]) -> dict[int, list[float]]:
    """Percent of a CPU that each job uses, one value for each frame that has it."""
    busy: dict[int, list[float]] = {}
    for frame in frames:
        for job in frame.jobs:
            if job.busy is not None:
                busy.setdefault(job.index, []).append(job.busy)
    return busy


def saturated_jobs(frames: Sequence[Frame]) -> tuple[dict[int, list[float]], dict[int, float]]:
    """The busy percentages of all jobs, and the mean of each job that used all of its CPU all the
    time."""
    busy = busy_by_job(frames)
    full = {
        n: fmean(b)
        for n, b in busy.items()
        if len(b) >= ENOUGH_SECONDS and min(b) >= SATURATED_BUSY
    }
    return busy, full


def cpus_have_time(evidence: Evidence) -> bool:
    """Whether the CPUs that can be used had idle time in each of the last seconds."""
    idle = idle_percents(evidence)
    return len(idle) >= ENOUGH_SECONDS and min(idle) > MUCH_IDLE


def idle_percents(evidence: Evidence) -> list[float]:
    """Idle percentage of all usable CPUs together, for each of the last seconds that have it."""
    frames = recent_job_frames(evidence)
    loads = [[f.cpus[c].load for c in evidence.online if c in f.cpus] for f in frames]
    return [fmean(load.idle + load.iowait for load in row if load) for row in loads if any(row)]


def cpu_wait_share(waits: Waits) -> float:
    """The part (0..1) of the I/Os in flight that waits for a CPU."""
    return (waits.cpu or 0.0) / waits.ios if waits.ios else 0.0


def cpu_wait_percent(frame: Frame) -> float | None:
    """Percent of the interval in which a job was ready to run and had no CPU: the mean over all
    jobs; ``None`` if the kernel does not say."""
    percents = [job.cpu_wait for job in frame.jobs if job.cpu_wait is not None]
    return sum(percents) / len(percents) if percents else None


def jobs_wait_for_cpus(frames: Sequence[Frame]) -> bool:
    """Whether jobs wait so long for a CPU that it may explain what a device seems to do."""
    return fmean([cpu_wait_percent(frame) or 0.0 for frame in frames]) >= MUCH_CPU_WAIT_PERCENT


def memory_wait_percent(frame: Frame) -> float:
    """Percent of the interval in which some task waited for memory (0 if it is not known)."""
    return frame.more.get("memory", {}).get("some") or 0.0


def has_spare_cpus(evidence: Evidence, frames: Sequence[Frame]) -> bool:
    """Whether all jobs and CPUs have time to spare. An I/O that waits for a CPU counts as in flight
    before the device as well as after it, so submitting and completing CPUs count alike."""
    loads = [cpu.load for frame in frames for cpu in frame.cpus.values()]
    idle = [load.idle + load.iowait for load in loads if load is not None]
    return jobs_have_cpu_time(frames) and bool(idle) and min(idle) >= SPARE_CPU_PERCENT


def jobs_have_cpu_time(frames: Sequence[Frame]) -> bool:
    """Whether no job uses a whole CPU for itself."""
    percents = [value for values in busy_by_job(frames).values() for value in values]
    return bool(percents) and max(percents) < BUSY_JOB_PERCENT


def cpu_loads(frames: Sequence[Frame], cpu: int) -> list[CpuLoad]:
    """The load of a CPU in each of these frames that has it."""
    loads = (frame.cpus[cpu].load for frame in frames if cpu in frame.cpus)
    return [load for load in loads if load is not None]


def job_cpus(frames: Sequence[Frame]) -> set[int]:
    return {job.cpu for frame in frames for job in frame.jobs}


def used_percent(frames: Sequence[Frame], cpus: Sequence[int]) -> float:
    """Percent of one CPU that tasks use on these CPUs together."""
    loads = [load for cpu in cpus for load in cpu_loads(frames, cpu)]
    return sum(100 - load.idle - load.iowait - load.steal for load in loads) / len(frames)


def job_percent(frames: Sequence[Frame]) -> float:
    """Percent of one CPU that all jobs use together, in the frames that have jobs."""
    return fmean([sum(job.busy or 0.0 for job in frame.jobs) for frame in frames if frame.jobs])


def jobs_fill_cpus(evidence: Evidence) -> bool:
    """Whether the jobs use most of the used CPU time; True also if this is unknown."""
    frames = [frame for frame in recent_job_frames(evidence) if frame.jobs]
    if not frames or max(len(frame.jobs) for frame in frames) >= FOLLOWED_JOBS:
        return True
    used = (100 - fmean(idle_percents(evidence) or [0.0])) * len(evidence.online)
    return job_percent(frames) >= JOBS_SHARE * used


def lost_cpu_or_memory(before: Sequence[Frame], after: Sequence[Frame]) -> bool:
    """Whether the job lost CPU time (it waits for a CPU, or a cgroup or the hypervisor takes CPU
    time away), or the machine ran short of memory."""
    for figure, least in (
        (cpu_wait_percent, 8.0), (memory_wait_percent, 5.0), (_steal_percent, 5.0),
        (lambda frame: frame.throttled, 1.0),
    ):  # fmt: skip
        earlier, now = ([figure(frame) or 0.0 for frame in frames] for frames in (before, after))
        if fmean(now) - fmean(earlier) >= least:
            return True
    return False


def _steal_percent(frame: Frame) -> float:
    loads = [load for cpu in {job.cpu for job in frame.jobs} for load in cpu_loads([frame], cpu)]
    return fmean([load.steal for load in loads]) if loads else 0.0
