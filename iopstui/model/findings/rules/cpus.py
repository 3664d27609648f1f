"""Rules on CPUs: who takes them away from jobs, which of them complete I/O, and where interrupts
go."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as units
from iopstui.model.block.device import BlockDevice, IrqVector
from iopstui.model.block.tunable import why_rq_affinity_cannot_matter
from iopstui.model.findings.advice import NO_ADVICE, Advice, advise
from iopstui.model.findings.cpu_accounts import (
    busiest_cpu,
    cpu_loads,
    cpu_wait_percent,
    job_cpus,
    mean_by_cpu,
)
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    Evidence,
    frame_start_s,
    recent_frames,
    recent_job_frames,
)
from iopstui.model.findings.figures import device_figures
from iopstui.model.findings.finding import Finding, cpus_text, device_names_text
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.request_path import crossing_share
from iopstui.model.rates import fmean

SHARE_ON_ONE_CPU = 0.8
MANY_COMPLETIONS_PER_S = 100.0
STEAL_PERCENT = 5.0
INTERRUPTED_PERCENT = 70.0
CROSSING_SHARE = 0.3
CPU_WAIT_PERCENT = 25.0


def cpu_throttled(evidence: Evidence) -> Finding | None:
    """A cgroup takes the CPU away from iopstui and fio."""
    frames = recent_job_frames(evidence)
    percents = [f.throttled for f in frames if f.throttled is not None]
    if not frames or len(percents) < ENOUGH_SECONDS or min(percents) < 1.0:
        return None
    # the kernel adds up the waiting of every CPU: it may be more than the time that passed
    return Finding(
        "throttled",
        f"a cgroup limit (cpu.max) stops fio and iopstui {fmean(percents):.0f} % of the time, "
        "added up over CPUs: latency includes that, not only the disk",
        advise("cpu-max", evidence.conditions.cpu_limit_text),
    )


def cpu_steal(evidence: Evidence) -> Finding | None:
    """The hypervisor runs something else on a CPU that jobs (without a job: anything) need."""
    frames = recent_frames(evidence)
    cpus = job_cpus(frames) if frames and frames[0].fio else set(evidence.online)
    percents: dict[int, list[float]] = {cpu: [] for cpu in cpus}
    for frame in reversed(frames):
        # there may be hundreds of CPUs: leave out those that lost little in one second
        loads = {cpu: frame.cpus[cpu].load for cpu in percents if cpu in frame.cpus}
        steal = {cpu: load.steal for cpu, load in loads.items() if load is not None}
        percents = {
            cpu: [*later, steal[cpu]] if cpu in steal else later
            for cpu, later in percents.items() if steal.get(cpu, STEAL_PERCENT) >= STEAL_PERCENT
        }  # fmt: skip
    stolen = {cpu: fmean(each) for cpu, each in percents.items() if len(each) >= ENOUGH_SECONDS}
    if not stolen:
        return None
    cpu, most = busiest_cpu(stolen)
    where = " on which a job runs" if frames[0].fio else ""
    return Finding(
        "steal",
        f"the hypervisor takes {most:.0f} % of CPU {cpu}{where} away (steal): latency "
        "includes waiting for a CPU, not only the disk",
        advise("operator"),
    )


def interrupts_fill_a_cpu(evidence: Evidence) -> Finding | None:
    """A CPU without a job is fully busy with completing this device's I/O."""
    frames = recent_frames(evidence)
    jobs = job_cpus(frames)
    for cpu, count in sorted(mean_by_cpu(frames, "irq_s").items(), key=lambda item: -item[1]):
        shares = [load.irq + load.soft for load in cpu_loads(frames, cpu)]
        if (
            count < MANY_COMPLETIONS_PER_S
            or cpu in jobs
            or len(shares) < ENOUGH_SECONDS
            or min(shares) < INTERRUPTED_PERCENT
        ):
            continue
        names = device_names_text(evidence.devices)
        advice, key = _rq_affinity_advice(evidence.devices, sorted(frames[-1].cpus))
        return Finding(
            "softirq-cpu",
            f"CPU {cpu} spends {fmean(shares):.0f} % of its time in interrupts and softirqs, with "
            f"{units.number(count)} of {names}'s interrupts a second, and no job runs there: "
            "completions may be the limit, not the disk",
            advice,
            key,
        )
    return None


def _rq_affinity_advice(devices: Sequence[BlockDevice], cpus: Sequence[int]) -> tuple[Advice, str]:
    """Advice on rq_affinity for completions that one CPU runs: (advice, key)."""
    affinities = {device.queue.rq_affinity if device.queue else None for device in devices}
    # all CPUs of the machine: a completion may also move to one that fio does not use
    reasons = [why_rq_affinity_cannot_matter(device, cpus) for device in devices]
    cannot = "; ".join(dict.fromkeys(filter(None, reasons)))
    if None not in reasons or None in affinities:
        return advise("rq-affinity-cannot", cannot) if cannot else NO_ADVICE, ""
    if affinities == {2}:
        return advise("other-cpu"), ""
    return advise("rq-affinity", ", ".join(sorted(map(str, affinities)))), "a"


def one_cpu_completes(evidence: Evidence) -> Finding | None:
    """One CPU runs most completions while several submit."""
    devices, frames = evidence.devices, recent_job_frames(evidence)
    if not devices or not frames or evidence.shape.polls:
        return None
    # where jobs and kernel threads wait for CPUs, completions run on whatever CPU is free
    if fmean(cpu_wait_percent(frame) or 0.0 for frame in frames) >= CPU_WAIT_PERCENT:
        return None
    completions = _completions_by_cpu(frames, evidence)
    submitters = set.intersection(*({j.cpu for j in f.jobs if (j.busy or 0) > 2} for f in frames))
    if completions is None or len(submitters) < 2:
        return None
    kind, by_cpu = completions
    total = sum(by_cpu.values())
    cpu, most = busiest_cpu(by_cpu)
    if total < 500 or most < SHARE_ON_ONE_CPU * total or _complete_at_submitters(devices):
        return None
    text = (
        f"CPU {cpu} runs {100 * most / total:.0f} % of the {kind} ({units.number(most)} of "
        f"{units.number(total)}/s) that complete {device_names_text(devices)}'s I/O, while jobs "
        f"submit from {len(submitters)} CPUs"
    )
    return Finding("one-cpu", text, *_rq_affinity_advice(devices, sorted(frames[-1].cpus)))


def _complete_at_submitters(devices: Sequence[BlockDevice]) -> bool:
    return {d.queue.rq_affinity if d.queue else None for d in devices} == {2}


def _completions_by_cpu(
    frames: Sequence[Frame], evidence: Evidence
) -> tuple[str, dict[int, float]] | None:
    """Which CPUs ran the completions; ``None`` if unknown. A device with several queues completes
    inside its hard interrupts, so its interrupts are counted. With one queue, BLOCK softirqs are
    counted; they come from all disks, so they must not exceed the device's I/Os and must run where
    its interrupt arrives."""
    block, irq = mean_by_cpu(frames, "block_s"), mean_by_cpu(frames, "irq_s")
    softirqs, interrupts = sum(block.values()), sum(irq.values())
    several = any(len(device.hctxs) > 1 for device in evidence.devices)
    if interrupts and (several or softirqs < 0.1 * interrupts):
        # rq_affinity may have passed completions on to submitters
        elsewhere = softirqs - block.get(busiest_cpu(irq)[0], 0.0)
        return None if elsewhere > 0.5 * interrupts else ("interrupts", irq)
    figures = device_figures(frames, evidence.devices)
    if not block or figures is None or softirqs > 1.5 * figures.ios_s:
        return None
    if interrupts and busiest_cpu(block)[0] != busiest_cpu(irq)[0]:
        return None
    return "BLOCK softirqs", block


def interrupt_outside(evidence: Evidence) -> Finding | None:
    """An interrupt that no CPU of its queue serves."""
    frames = recent_frames(evidence)
    for device, vector, counts in _interrupts_by_cpu(frames, evidence):
        cpus = next((h.cpus for h in device.hctxs if h.index == vector.hctx), ())
        cpu, most = busiest_cpu(counts)
        usable = set(cpus) & set(frames[-1].cpus)
        if (
            not usable
            or cpu in usable
            or most < max(MANY_COMPLETIONS_PER_S, SHARE_ON_ONE_CPU * sum(counts.values()))
        ):
            continue
        return Finding(
            "irq-outside",
            f"interrupt {vector.irq} ({vector.name}) of {device.name}'s queue {vector.hctx} is "
            f"served on CPU {cpu} ({units.number(most)}/s), but the queue belongs to "
            f"{cpus_text(sorted(usable))}: each completion may have to leave its cache",
            advise("irq", min(usable), vector.irq),
        )
    return None


def interrupt_moved(evidence: Evidence) -> Finding | None:
    """An interrupt that went to one CPU and now goes to another."""
    frames = evidence.measured[-2 * ENOUGH_SECONDS :]
    if len(frames) < 2 * ENOUGH_SECONDS:
        return None
    earlier = dict(
        (vector.irq, counts)
        for _, vector, counts in _interrupts_by_cpu(frames[:ENOUGH_SECONDS], evidence)
    )
    for device, vector, now in _interrupts_by_cpu(frames[-ENOUGH_SECONDS:], evidence):
        then = earlier.get(vector.irq)
        if then is None or min(sum(then.values()), sum(now.values())) < MANY_COMPLETIONS_PER_S:
            continue
        (old, most_then), (new, most_now) = busiest_cpu(then), busiest_cpu(now)
        is_alone = most_then >= SHARE_ON_ONE_CPU * sum(
            then.values()
        ) and most_now >= SHARE_ON_ONE_CPU * sum(now.values())
        if old != new and is_alone:
            return Finding(
                "irq-moved",
                f"interrupt {vector.irq} ({vector.name}) of {device.name} moved from CPU {old} to "
                f"CPU {new} during the run: do not compare the seconds before with those after",
                advise("irqbalance"),
                since=frame_start_s(frames[0]),
            )
    return None


def _interrupts_by_cpu(
    frames: Sequence[Frame], evidence: Evidence
) -> list[tuple[BlockDevice, IrqVector, dict[int, float]]]:
    """Each device's interrupts, with their count per second on each CPU that served them."""
    interrupts = []
    for device in evidence.devices:
        for vector in device.irqs:
            counts: dict[int, float] = {}
            rates_by_frame = [
                frame.irqs[vector.irq] for frame in frames if vector.irq in frame.irqs
            ]
            for rates in rates_by_frame:
                for cpu, rate in rates.items():
                    counts[cpu] = counts.get(cpu, 0.0) + rate / len(rates_by_frame)
            if counts and any(counts.values()):
                interrupts.append((device, vector, counts))
    return interrupts


def remote_numa_node(evidence: Evidence) -> Finding | None:
    """Jobs run on one NUMA node, the disk is attached to another."""
    nodes, frames = evidence.conditions.nodes, recent_job_frames(evidence)
    if len(set(nodes.values())) < 2 or not frames:
        return None
    for device in evidence.devices:
        theirs = [{nodes.get(job.cpu) for job in frame.jobs} for frame in frames]
        home = device.numa_node
        if home is None or home not in nodes.values() or not all(theirs):
            continue
        if any(None in nodes_of_jobs or home in nodes_of_jobs for nodes_of_jobs in theirs):
            continue
        local_cpus = sorted(cpu for cpu, node in nodes.items() if node == home)
        job_nodes = sorted(node for node in set.union(*theirs) if node is not None)
        away = " and ".join(map(str, job_nodes))
        return Finding(
            "numa-remote",
            f"all jobs run on NUMA node {away}, {device.name} is on node {home}: data and "
            "completions cross between the nodes, which may cost latency",
            advise("cpus", units.ranges(local_cpus)),
            test=(("cpus_allowed", units.ranges(local_cpus)),),
        )
    return None


def cross_node_completions(evidence: Evidence) -> Finding | None:
    """The probe sees requests completed on another NUMA node than they were allocated on."""
    nodes, frames = evidence.conditions.nodes, recent_frames(evidence)
    if len(set(nodes.values())) < 2:
        return None
    shares = [crossing_share(f.probe.matrix, nodes) for f in frames if f.probe and f.probe.matrix]
    measured = [share for share in shares if share is not None]
    if len(measured) < ENOUGH_SECONDS or min(measured) < CROSSING_SHARE:
        return None
    advice, key = _rq_affinity_advice(evidence.devices, sorted(frames[-1].cpus))
    return Finding(
        "crossing",
        f"{100 * fmean(measured):.0f} % of the requests are completed on another NUMA node than "
        "the one that submitted them (probe): the requests cross between the nodes once more",
        advice,
        key,
    )
