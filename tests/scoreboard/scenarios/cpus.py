"""CPUs: which one completes, which one submits, and jobs that get no CPU time."""

from __future__ import annotations

from collections.abc import Mapping

import loads
from devices import disk, encrypted, loop, null
from proofs import (
    PSI,
    busy,
    delayed,
    every,
    memory_pressure,
    on_cpus,
    on_one_cpu,
    serves,
    spread,
    steps_down,
    worked,
)
from scenario import HERE, LAB, SHARED_VECTORS, SOCKETS, THREADIRQS, Scenario
from settings import cpu_weight, idle_policy, irq_on, move_irq, one_cpu, queue

MS = 1_000_000
SPLIT: Mapping[str, object] = {"cpus_allowed": "0-3", "cpus_allowed_policy": "split"}
# one at a time, so that each completion is an interrupt
FOUR: Mapping[str, object] = {"numjobs": 4, "rate_iops": 400, **SPLIT}
CPU_BOUND = frozenset({"above", "job-cpu"})
AT_ONCE = null(irqmode=0)
# a job that would use all of CPU 1, which others use as well
HUNGRY: Mapping[str, object] = {"ioengine": "psync", "cpus_allowed": "1"}
STARVES = {"cpu-wait": ()}

SCENARIOS = (
    Scenario("one-queue", LAB, "four jobs on four CPUs, a virtio disk of one queue",
             disk("VBLK1Q"), FOUR, {"one-cpu": ("rq_affinity",)}, proof=on_one_cpu()),
    Scenario("one-queue-one-job", LAB, "one job on the same disk", disk("VBLK1Q"),
             {"iodepth": 4, "rate_iops": 1000}, proof=worked(500)),
    Scenario("four-queues", LAB, "four jobs, a virtio disk of four queues", disk("VBLK4Q"), FOUR,
             proof=on_cpus(3, "req.")),
    Scenario("shared-vectors", SHARED_VECTORS, "four queues whose interrupts are one",
             disk("VSHARED4Q"), FOUR, {"one-cpu": ("rq_affinity",)}, frozenset({"irq-outside"}),
             never=("can't move",), proof=worked(1000)),
    Scenario("shared-vectors-one-job", SHARED_VECTORS, "the same with one job",
             disk("VSHARED4Q"), {"iodepth": 4, "rate_iops": 1000},
             allowed=frozenset({"irq-outside"}), proof=worked(500)),
    Scenario("threadirqs", THREADIRQS, "one queue, its interrupt served by a thread",
             disk("VBLK1Q"), FOUR, {"one-cpu": ()}, never=("try rq_affinity",),
             proof=worked(1000)),
    Scenario("irq-moved", LAB, "an AHCI disk's interrupt moved to another CPU in mid run",
             irq_on(disk("SATA1Q"), 1), {"iodepth": 4, "rate_iops": 800, "cpus_allowed": "0"},
             {"irq-moved": ()}, seconds=12, during=((5.0, move_irq(3)),),
             proof=on_cpus(2, "ahci")),
    Scenario("irq-stays", LAB, "the same disk, its interrupt where it was",
             irq_on(disk("SATA1Q"), 1), {"iodepth": 4, "rate_iops": 800, "cpus_allowed": "0"},
             proof=on_one_cpu(200, "ahci")),
    Scenario("softirq-cpu", LAB, "one CPU completes and decrypts what three others submit",
             encrypted(queue(disk("VBLK1Q"), rq_affinity=0)),
             {"numjobs": 3, "iodepth": 8, "bs": "64k", "cpus_allowed": "0-2",
              "cpus_allowed_policy": "split"},
             {"softirq-cpu": ()}, CPU_BOUND | {"one-cpu", "saturated"}, proof=serves(0.8)),
    Scenario("job-cpu", LAB, "one job on null_blk that answers at once",
             null(irqmode=0), {"ioengine": "psync"}, {"job-cpu": ()}, frozenset({"above"}),
             proof=worked(1000)),
    Scenario("many-jobs", LAB, "8 jobs on the only CPU", one_cpu(null(irqmode=0)),
             {"ioengine": "psync", "numjobs": 8}, {"more-jobs-than-cpus": ()},
             frozenset({"above", "softirq-cpu"}), proof=busy(0.9)),
    Scenario("many-jobs-waiting", LAB, "16 jobs on 4 CPUs that wait for the disk",
             null(completion_nsec=40 * MS), {"ioengine": "psync", "numjobs": 16},
             proof=worked(150, 410)),
    Scenario("many-jobs-here", HERE, "16 jobs at depth 16 that share this machine's CPUs", loop(),
             {"iodepth": 16, "numjobs": 16, "cpus_allowed": "0-1"},
             {"more-jobs-than-cpus": ()},
             CPU_BOUND | {"one-cpu", "softirq-cpu", "depth", "saturated", "tags"},
             proof=busy(0.9)),
    Scenario("scheduler", LAB, "bfq under four jobs on null_blk that answers at once",
             queue(null(irqmode=0), scheduler="bfq"),
             {"numjobs": 4, "iodepth": 8, **SPLIT}, {"scheduler": ("bfq",)},
             CPU_BOUND | {"one-cpu", "depth", "saturated", "softirq-cpu"}, proof=worked(1000)),
    Scenario("pinned-beside-hog", LAB, "a job pinned to the CPU that another program fills",
             AT_ONCE, HUNGRY, {"cpu-wait": ("pinned",)}, beside=(loads.hogs(1),),
             proof=delayed(0.2)),
    Scenario("pinned-beside-hog-here", HERE, "the same on this machine", loop(),
             HUNGRY, {"cpu-wait": ("pinned",)}, beside=(loads.hogs(1),), proof=delayed(0.2)),
    Scenario("nice", LAB, "a job at nice 19 beside a hog", AT_ONCE, {**HUNGRY, "nice": 19},
             {"cpu-wait": ("nice 19",)}, beside=(loads.hogs(1),), proof=delayed(0.3)),
    Scenario("nice-here", HERE, "the same on this machine", loop(), {**HUNGRY, "nice": 19},
             {"cpu-wait": ("nice 19",)}, beside=(loads.hogs(1),), proof=delayed(0.4)),
    Scenario("idle-policy-here", HERE, "a job with SCHED_IDLE beside a hog", loop(), HUNGRY,
             {"cpu-wait": ("SCHED_IDLE",)}, frozenset({"burst", "job-cpu"}), seconds=10,
             beside=(loads.hogs(1),), during=((0.5, idle_policy),), proof=delayed(0.4)),
    Scenario("cpu-weight", LAB, "a job in a group with cpu.weight 10 beside a hog",
             cpu_weight(AT_ONCE, 10), HUNGRY, STARVES, beside=(loads.hogs(1),),
             proof=delayed(0.4)),
    Scenario("cpu-shares-here", HERE, "a job in a group with few cpu.shares beside a hog",
             cpu_weight(loop(), 100), HUNGRY, STARVES, beside=(loads.hogs(1),),
             proof=delayed(0.4)),
    Scenario("hogs-join", LAB, "hogs that join in mid run", AT_ONCE, HUNGRY, STARVES,
             frozenset({"job-cpu"}), seconds=16, during=((7.0, loads.start_hogs(1, 1, 1)),),
             proof=every(delayed(0.3), steps_down)),
    Scenario("hogs-join-here", HERE, "the same on this machine", loop(), HUNGRY, STARVES,
             frozenset({"job-cpu"}), seconds=16, during=((7.0, loads.start_hogs(1, 1, 1)),),
             proof=delayed(0.3)),
    Scenario("idle-jobs-beside-hogs", HERE, "8 jobs of 5 I/Os a second beside two hogs", loop(),
             {"ioengine": "psync", "numjobs": 8, "rate_iops": 5}, allowed=frozenset({"cpu-wait"}),
             beside=(loads.hogs(0, 1),), proof=every(busy(0.9), worked(20, 45))),
    Scenario("memory", LAB, "another program that waits for memory", null(completion_nsec=5 * MS),
             {"iodepth": 4}, {"memory": ()}, seconds=10, beside=(loads.short_of_memory(),),
             watch=(PSI,), proof=memory_pressure),
    Scenario("numa-remote", SOCKETS, "jobs on one node, the disk on the other",
             disk("VNODE1"), {"iodepth": 4, "rate_iops": 1000, "cpus_allowed": "0-1"},
             {"numa-remote": ()}, proof=worked(500)),
    Scenario("numa-local", SOCKETS, "jobs on the disk's node", disk("VNODE1"),
             {"iodepth": 4, "rate_iops": 1000, "cpus_allowed": "2-3"},
             proof=worked(500)),
    Scenario("one-queue-sockets", SOCKETS, "one queue, jobs on both sockets: rq_affinity=1 "
             "completes each on its own", disk("VBLK1Q"), FOUR, proof=spread),
)  # fmt: skip
