"""Other causes of the same effect that each rule excludes before it fires, in words.

docs/rules.md has the same words (a test compares them)."""

from __future__ import annotations

from collections.abc import Mapping

EXCLUDED_CAUSES: Mapping[str, str] = {
    "above": "jobs that wait for a CPU, busy CPUs, tags, limits that are near and do not bind, or "
    "were not read since",
    "amplification": "runs that write less than 1 GiB",
    "background": "writes left by an earlier run",
    "burst": "other programs; busy CPUs; memory; page cache; sections that end or change; jobs "
    "that pause themselves",
    "cap": "a single measurement; busy CPUs; cgroup limits (above)",
    "cgroup": "disks with little to do; the kernel's own I/O; runs of a job",
    "cpu-sleep": "latencies far above the wake-up time; I/O that the page cache answers",
    "cpu-wait": "I/Os in a device; a CPU limit (cpu.max)",
    "crossing": "machines with one node",
    "depth": "jobs that pause themselves or have a latency_target",
    "disagree": "empty flushes, which Linux counts as writes",
    "first-write": "other programs' I/O",
    "flush": "flushes that the job's syncs cannot have caused: those are another program's",
    "iostats": "devices that count anyway (zram)",
    "irq-moved": "interrupts spread over several CPUs",
    "irq-outside": "queues whose CPUs are offline",
    "job-cpu": "polling jobs; a device that is full as well, or in write-back",
    "kernel-errors": "errors before the run; operations that a device does not have; errors 30 s "
    "ago",
    "layer": "cgroup limits that bind (above); jobs that use the CPUs themselves",
    "link": "links with spare capacity",
    "media-errors": "errors before the run",
    "misaligned": "reads, buffered writes",
    "more-jobs-than-cpus": "other programs' load (cpu-wait)",
    "ring": "requests in flight on any disk, network file systems, limits, short memory, blocked "
    "programs",
    "neighbour": "splits, syncs, the file system's own writes, read-ahead and write-back of the "
    "job",
    "net-full": "lost packets; a server that does not read",
    "nfs-attributes": "mounts with as many READs and WRITEs as attribute requests",
    "nfs-queue": "a server that takes longer than the queue",
    "nfs-rsize": "buffered I/O",
    "nfs-server": "RPCs that wait in the client longer",
    "nfs-stalled": "jobs that pause themselves, which wait for no answer",
    "numa-remote": "machines with one node",
    "nvme-errors": "errors before the run; a controller's failed commands, which may be no I/O",
    "one-cpu": "other disks' softirqs, jobs that wait for a CPU",
    "parity": "arrays being rebuilt",
    "saturated": "queues that are not filled",
    "scheduler": "spinning disks",
    "scsi-errors": "errors before the run",
    "slow-member": "more, larger or bursty requests; another mix, model, firmware or setting; "
    "pauses of all; fewer than four siblings; arrays that are rebuilt or not striped",
    "siblings": "more, larger or bursty requests; another mix, model, firmware or setting; "
    "pauses of all; fewer than four siblings; spinning and virtual disks",
    "slow-direction": "schedulers that may hold requests; syncs; swapping; I/O that the job does "
    "not wait for",
    "smb-rsize": "buffered I/O",
    "smb-server": "fewer than 10 answers a second: their times in clock ticks give no mean",
    "smb-stalled": "jobs that pause themselves; other servers' requests",
    "softirq-cpu": "CPUs with jobs, other devices' interrupts",
    "stalled": "seconds before the first I/O; stopped jobs, which neither have a request in a "
    "device nor wait in the kernel",
    "starved": "disks without a queue; drivers with free tags, for which mq-deadline holds nothing "
    "back; swapping; I/O that the job does not wait for",
    "steal": "CPUs without a job",
    "tags": "queues that the jobs do not reach",
    "thermal": "throttling before the run",
    "volume-limit": "short bursts: less than 100 ms of a second",
    "write-back": "jobs that use a CPU, or mostly wait for one",
}
"""The causes that each rule excludes, by rule. The other rules exclude none."""
