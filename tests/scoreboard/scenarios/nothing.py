"""Nothing is wrong: a disk at its normal speed, a job that does what it was asked to, an idle
machine.

Every finding here is false; rules that are too broad would have one."""

from __future__ import annotations

import loads
from devices import disk, ext4, linear, loop, null, scsi_debug, zram
from proofs import every, file_is, inside, rate, scales, softirqs, steps_down, worked
from scenario import HERE, LAB, Scenario
from settings import blkio

MS = 1_000_000
SLOW = null(completion_nsec=9_500_000)
DEPTHS = {"iodepth": "8"}, {"iodepth": "32"}
# jobs run at full speed on this machine: one may have no CPU time left
CPU = frozenset({"job-cpu", "above"})
SECOND = """[second]
ioengine=libaio
direct=1
rw=randread
bs=4k
time_based=1
"""

SCENARIOS = (
    Scenario("latency-8", LAB, "null_blk of 9.5 ms at depth 8", SLOW, {"iodepth": 8},
             proof=every(worked(400, 900), inside)),
    Scenario("latency-32", LAB, "null_blk of 9.5 ms at depth 32", SLOW, {"iodepth": 32},
             proof=every(worked(1500, 3500), inside)),
    Scenario("latency-8-32", LAB, "null_blk of 9.5 ms at depth 8, then 32", SLOW, {},
             runs=DEPTHS, proof=every(scales, inside)),
    Scenario("round-iops", LAB, "null_blk whose latency makes 2,000 IOPS, for 12 s",
             null(completion_nsec=2 * MS), {"iodepth": 4}, seconds=12, proof=worked(1200, 2100)),
    Scenario("slow-disk-once", LAB, "a disk of 500 IOPS, at one depth only", disk("VSLOW4Q"),
             {"iodepth": 8}, seconds=12, proof=every(worked(400, 600), inside)),
    Scenario("dm-linear", LAB, "dm-linear over null_blk", linear(null(completion_nsec=5 * MS)),
             {"iodepth": 8}, proof=worked(500)),
    Scenario("psync", LAB, "one psync job on null_blk of 2 ms", null(completion_nsec=2 * MS),
             {"ioengine": "psync"}, proof=worked(200, 500)),
    Scenario("mixed", LAB, "reads and writes, on four queues", null(completion_nsec=5 * MS),
             {"rw": "randrw", "rwmixread": 70, "iodepth": 4, "numjobs": 2},
             proof=every(rate(100, "reads"), rate(50, "writes"))),
    Scenario("ramp", LAB, "a job with 3 s of ramp_time", null(completion_nsec=5 * MS),
             {"iodepth": 4, "ramp_time": "3s"}, seconds=9, proof=worked(300)),
    Scenario("trims", LAB, "a job of trims",
             null(completion_nsec=2 * MS, discard=1, memory_backed=1),
             {"rw": "randtrim", "ioengine": "psync", "bs": "64k"}, proof=rate(50, "discards")),
    Scenario("polled", LAB, "polled I/O (hipri) on a poll queue", null(poll_queues=1),
             {"ioengine": "io_uring", "hipri": 1, "iodepth": 2}, proof=worked(100)),
    Scenario("sqthread-poll", LAB, "io_uring with a polling thread",
             null(completion_nsec=5 * MS),
             {"ioengine": "io_uring", "sqthread_poll": 1, "iodepth": 4}, proof=worked(100)),
    Scenario("rate", HERE, "a job held at 200 IOPS, at depth 8, then 32", loop(),
             {"rate_iops": 200}, runs=DEPTHS, proof=worked(150, 250)),
    Scenario("stonewall", LAB, "a section with 4 jobs, then one with a single job",
             SLOW, {"iodepth": 8, "numjobs": 4, "runtime": "7s"}, seconds=14,
             more=SECOND + "stonewall\niodepth=1\nruntime=7s\n", proof=steps_down),
    Scenario("stonewall-here", HERE, "a section with 2 ms between its I/Os, then one with 60 ms",
             loop(),
             {"ioengine": "psync", "thinktime": "2ms", "runtime": "7s"}, seconds=14,
             more=SECOND + "ioengine=psync\nstonewall\nthinktime=60ms\nruntime=7s\n",
             proof=steps_down),
    Scenario("section-ends", LAB, "one of two sections ends in mid run", SLOW,
             {"iodepth": 16, "runtime": "7s"}, seconds=14,
             more=SECOND + "iodepth=1\nruntime=14s\n", proof=steps_down),
    Scenario("section-ends-here", HERE, "the same on this machine",
             blkio(loop(), "write_iops", "9000"),
             {"ioengine": "psync", "bs": "256k", "runtime": "7s"}, allowed=CPU, seconds=14,
             more=SECOND + "ioengine=psync\nbs=256k\nthinktime=20ms\nruntime=14s\n",
             proof=steps_down),
    Scenario("latency-target", LAB, "a job with latency_target, which chooses its depth", SLOW,
             {"iodepth": 32, "latency_target": "1s", "latency_window": "500ms",
              "latency_percentile": 90}, seconds=9, proof=worked(100)),
    Scenario("latency-target-here", HERE, "the same with 2 ms on this machine", loop(),
             {"iodepth": 32, "latency_target": "2ms", "latency_window": "500ms",
              "latency_percentile": 90}, allowed=CPU, seconds=9, proof=worked(100)),
    Scenario("zram", LAB, "a zram device, which counts its I/Os though iostats is 0", zram(),
             {"ioengine": "psync", "rate_iops": 300}, watch=("queue/iostats",),
             proof=every(rate(200, "reads"), file_is("queue/iostats", "0"))),
    Scenario("zram-idle", LAB, "an idle zram device, without a job", zram(), None, seconds=8,
             watch=("queue/iostats",), proof=file_is("queue/iostats", "0")),
    Scenario("mixed-here", HERE, "reads and writes at 300 a second", loop(),
             {"rw": "randrw", "rate_iops": "300,300", "iodepth": 4}, proof=rate(100, "writes")),
    Scenario("sequential-here", HERE, "sequential reads of 128 KiB, 100 a second", loop(),
             {"rw": "read", "bs": "128k", "rate_iops": 100}, proof=worked(80, 120)),
    Scenario("sizes-here", HERE, "writes of 4 to 64 KiB, 4 ms apart", loop(),
             {"rw": "randwrite", "bsrange": "4k-64k", "thinktime": "4ms", "ioengine": "psync"},
             proof=worked(20, 250)),
    Scenario("file-here", HERE, "direct reads of a file on ext4, 300 a second", ext4(loop()),
             {"rate_iops": 300, "iodepth": 2}, size="16m", proof=rate(200, "reads")),
    Scenario("rate-12s", LAB, "a job held at 500 IOPS on a virtio disk, for 12 s",
             disk("VBLK4Q"), {"rate_iops": 500, "iodepth": 8}, seconds=12,
             proof=worked(400, 600)),
    Scenario("thinktime", HERE, "a job that waits 20 ms after each I/O", loop(),
             {"thinktime": "20ms", "iodepth": 4}, proof=worked(20, 300)),
    Scenario("tiny", HERE, "5 I/Os a second", loop(), {"rate_iops": 5, "ioengine": "psync"},
             proof=worked(3, 7)),
    Scenario("tmpfs-file", HERE, "a file in memory, which no block device is below",
             lambda bench: str(bench.here),
             {"rate_iops": 500, "ioengine": "psync", "direct": 0}, size="16m",
             proof=worked(400)),
    Scenario("file-reads", LAB, "direct reads of a file on ext4, 300 a second",
             ext4(disk("NVME4Q")), {"rate_iops": 300, "iodepth": 2}, size="16m",
             proof=rate(200, "reads")),
    Scenario("aligned", LAB, "4 KiB writes on a disk with physical blocks of 4 KiB",
             scsi_debug(physblk_exp=3, ndelay=2 * MS), {"rw": "randwrite", "iodepth": 2},
             proof=worked(100)),
    Scenario("idle", HERE, "an idle disk, without a job", loop(), None, seconds=8,
             proof=rate(0, "reads", "writes", most=1)),
    Scenario("idle-lab", LAB, "an idle virtio disk, without a job", disk("VBLK4Q"), None,
             seconds=8, proof=rate(0, "reads", "writes", most=1)),
    Scenario("light-use", LAB, "another program's 10 I/Os a second, without a job",
             null(completion_nsec=2 * MS), None, seconds=8,
             beside=(loads.fio(rate_iops=10),), proof=rate(5, "reads", most=20)),
    Scenario("neighbour", LAB, "another disk's softirqs on one CPU, the job's disk has four queues",
             disk("VBLK4Q"),
             {"numjobs": 4, "rate_iops": 200, "cpus_allowed": "0-3",
              "cpus_allowed_policy": "split"},
             beside=(loads.fio(disk("SATA1Q"), iodepth=8, rate_iops=1500),),
             proof=every(softirqs(500), worked(400))),
)  # fmt: skip
