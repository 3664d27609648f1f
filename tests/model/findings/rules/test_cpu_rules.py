from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evidence_frames import device, disk, fio, fired, seconds

from iopstui.model.findings.conditions import Conditions
from iopstui.model.findings.evidence import Evidence, JobShape
from iopstui.model.findings.rules import cpus as cpu_rules
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import CpuLoad

SHAPE = JobShape(jobs=2, iodepth=32, engine="libaio", direct=True)
FOUR = ((0,), (1,), (2,), (3,))


def load(idle: float = 50.0, *, steal: float = 0.0, soft: float = 0.0, irq: float = 0.0) -> CpuLoad:
    return CpuLoad(0.0, 100.0 - idle - steal - soft - irq, 0.0, irq, soft, idle, steal)


def running(
    count: int = 3,
    start: float = 1.0,
    *,
    loads: Mapping[int, CpuLoad] | None = None,
    irq: Mapping[int, float] | None = None,
    irqs: Mapping[int, Mapping[int, float]] | None = None,
    jobs: Sequence[tuple[int, float | None]] = ((0, 50.0), (1, 50.0)),
) -> list[Frame]:
    return seconds(
        count, start, interval=fio(9_000), disks={"vda": disk(9_000)}, loads=loads, irq=irq,
        irqs=irqs, jobs=jobs,
    )  # fmt: skip


def evidence(frames: Sequence[Frame], **more: object) -> Evidence:
    values: dict[str, object] = {
        "devices": [device()], "shape": SHAPE, "online": (0, 1, 2, 3), **more,
    }  # fmt: skip
    return Evidence(tuple(frames), **values)  # type: ignore[arg-type]


# -- steal


def test_a_hypervisor_that_takes_a_job_s_cpu() -> None:
    found = fired(cpu_rules.cpu_steal(evidence(running(loads={1: load(steal=12.0)}))))
    assert "takes 12 % of CPU 1 on which a job runs" in found.text


def test_steal_where_no_job_runs_or_hardly_any_is_nothing() -> None:
    assert cpu_rules.cpu_steal(evidence(running(loads={3: load(steal=40.0)}))) is None
    assert cpu_rules.cpu_steal(evidence(running(loads={1: load(steal=2.0)}))) is None
    frames = running(loads={1: load(steal=12.0)})
    frames[1] = running(1, 2.0)[0]
    assert cpu_rules.cpu_steal(evidence(frames)) is None


def test_steal_is_seen_without_a_job() -> None:
    idle = seconds(3, step=0, loads={2: load(steal=30.0)})
    assert "30 % of CPU 2 away" in fired(cpu_rules.cpu_steal(evidence(idle))).text


# -- interrupts that fill a CPU


def test_a_cpu_full_of_interrupts_that_runs_no_job() -> None:
    frames = running(loads={3: load(5.0, soft=80.0, irq=10.0)}, irq={3: 9_000.0})
    found = fired(cpu_rules.interrupts_fill_a_cpu(evidence(frames)))
    assert "CPU 3 spends 90 % of its time in interrupts and softirqs" in found.text
    assert "9.00k of vda's interrupts" in found.text
    assert found.key == "a" and "rq_affinity 2 (now 1)" in found.advice


def test_softirqs_of_others_and_cpus_of_jobs_are_not_blamed() -> None:
    full = {3: load(5.0, soft=90.0)}
    none_of_ours = running(loads=full, irq={3: 10.0})
    assert cpu_rules.interrupts_fill_a_cpu(evidence(none_of_ours)) is None
    with_job = running(loads=full, irq={3: 9_000.0}, jobs=((3, 5.0),))
    assert cpu_rules.interrupts_fill_a_cpu(evidence(with_job)) is None
    has_time = running(loads={3: load(60.0, soft=35.0)}, irq={3: 9_000.0})
    assert cpu_rules.interrupts_fill_a_cpu(evidence(has_time)) is None


def test_where_rq_affinity_can_t_help_no_key_is_offered() -> None:
    frames = running(loads={3: load(5.0, soft=90.0)}, irq={3: 9_000.0})
    own = fired(cpu_rules.interrupts_fill_a_cpu(evidence(frames, devices=[device(FOUR)])))
    assert "can't move it" in own.advice and own.key == ""
    two = fired(cpu_rules.interrupts_fill_a_cpu(evidence(frames, devices=[device(rq_affinity=2)])))
    assert "2 already" in two.advice and two.key == ""


# -- where interrupts go


def test_an_interrupt_outside_of_its_queue_s_cpus() -> None:
    away = running(irqs={40: {0: 900.0}, 41: {0: 900.0, 1: 10.0}})
    found = fired(cpu_rules.interrupt_outside(evidence(away, devices=[device(FOUR)])))
    assert "interrupt 41 (virtio1-req.1) of vda's queue 1 is served on CPU 0" in found.text
    assert "echo 1 > /proc/irq/41/smp_affinity_list" in found.advice


def test_interrupts_at_home_or_hardly_any_are_fine() -> None:
    home = running(irqs={40: {0: 900.0}, 41: {1: 900.0}})
    assert cpu_rules.interrupt_outside(evidence(home, devices=[device(FOUR)])) is None
    few = running(irqs={41: {0: 50.0}})
    assert cpu_rules.interrupt_outside(evidence(few, devices=[device(FOUR)])) is None
    one_queue = running(irqs={40: {3: 900.0}})
    assert cpu_rules.interrupt_outside(evidence(one_queue)) is None
    # the queue's CPUs are offline: there is nowhere else to go
    offline = evidence(running(irqs={41: {0: 900.0}}), devices=[device(((0,), (9,)))])
    assert cpu_rules.interrupt_outside(offline) is None


def test_an_interrupt_that_moved_during_the_run() -> None:
    frames = running(3, 1.0, irqs={40: {1: 900.0}}) + running(3, 4.0, irqs={40: {3: 900.0}})
    found = fired(cpu_rules.interrupt_moved(evidence(frames)))
    assert "interrupt 40 (virtio1-req.0) of vda moved from CPU 1 to CPU 3" in found.text


def test_an_interrupt_that_stays_or_is_spread_has_not_moved() -> None:
    stays = running(6, irqs={40: {1: 900.0}})
    assert cpu_rules.interrupt_moved(evidence(stays)) is None
    spread = running(3, irqs={40: {1: 500.0, 3: 400.0}}) + running(
        3, 4.0, irqs={40: {1: 400.0, 3: 500.0}}
    )
    assert cpu_rules.interrupt_moved(evidence(spread)) is None
    few = running(3, irqs={40: {1: 9.0}}) + running(3, 4.0, irqs={40: {3: 9.0}})
    assert cpu_rules.interrupt_moved(evidence(few)) is None
    assert cpu_rules.interrupt_moved(evidence(stays[:5])) is None


# -- NUMA


NODES = {0: 0, 1: 0, 2: 1, 3: 1}


def test_jobs_on_another_node_than_the_disk() -> None:
    far = replace(device(), numa_node=1)
    found = fired(
        cpu_rules.remote_numa_node(
            evidence(running(), devices=[far], conditions=Conditions(nodes=NODES))
        )
    )
    assert "all jobs run on NUMA node 0, vda is on node 1" in found.text
    assert found.test == (("cpus_allowed", "2-3"),)


def test_one_job_at_home_or_one_node_is_no_finding() -> None:
    far = replace(device(), numa_node=1)
    mixed = running(jobs=((0, 50.0), (2, 50.0)))
    assert (
        cpu_rules.remote_numa_node(
            evidence(mixed, devices=[far], conditions=Conditions(nodes=NODES))
        )
        is None
    )
    assert cpu_rules.remote_numa_node(evidence(running(), devices=[far])) is None
    one = Conditions(nodes=dict.fromkeys(range(4), 0))
    assert cpu_rules.remote_numa_node(evidence(running(), devices=[far], conditions=one)) is None
    unknown = replace(device(), numa_node=None)
    now = Conditions(nodes=NODES)
    assert (
        cpu_rules.remote_numa_node(evidence(running(), devices=[unknown], conditions=now)) is None
    )
