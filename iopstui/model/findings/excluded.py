"""Other causes of the same effect that each rule excludes before it fires, in words.

docs/guide/findings.md has the same words (a test compares them).
"""

from __future__ import annotations

from collections.abc import Mapping

EXCLUDED: Mapping[str, str] = {
    "above": "jobs or CPUs without time, tags",
    "background": "writes left by an earlier run",
    "burst": "other programs, CPUs, memory, page cache, sections that end or change, jobs "
    "that pause themselves",
    "cap": "single readings; full CPUs; cgroup limits (above)",
    "cpu-sleep": "latencies that are long anyway",
    "cpu-wait": "I/Os that are in a device; cpu.max",
    "crossing": "machines with one node",
    "depth": "jobs that pause themselves or have a latency_target",
    "disagree": "empty flushes, which Linux counts as writes",
    "first-write": "other programs' I/O",
    "flush": "other programs' flushes, unless they are many",
    "iostats": "devices that count all the same (zram)",
    "irq-moved": "interrupts that are spread",
    "irq-outside": "queues whose CPUs are offline",
    "job-cpu": "polling jobs; a device that is full as well, with write-back too",
    "layer": "limits of a cgroup (above), CPUs without time",
    "link": "links with spare capacity",
    "misaligned": "reads, buffered writes",
    "more-jobs-than-cpus": "other programs' load (cpu-wait)",
    "neighbour": "splits, flushes, file systems",
    "numa-remote": "machines with one node",
    "one-cpu": "other disks' softirqs, jobs that wait for a CPU",
    "parity": "arrays that are rebuilt",
    "saturated": "queues that are not filled",
    "scheduler": "spinning disks",
    "scsi-errors": "those before the run",
    "softirq-cpu": "CPUs with jobs, other devices' interrupts",
    "stalled": "stopped jobs, which have no request in a device",
    "starved": "disks without a queue",
    "steal": "CPUs without a job",
    "tags": "queues that the jobs do not reach",
    "write-back": "jobs that use or wait for a CPU",
}
"""By rule; the others exclude nothing."""
