"""Something stands in the way: a cgroup's limit, the disk's own, or a step in between."""

from __future__ import annotations

import loads
from devices import disk, linear, loop, null, slow_down
from proofs import every, outside, rate, stands, steps_down, throttled, worked
from scenario import HERE, LAB, Scenario
from settings import CPU_STAT, blkio, cost, cpu_group, cpu_limit, io_max, set_limit

MS = 1_000_000
FAST = null(completion_nsec=1 * MS)
DEPTHS = {"iodepth": "8"}, {"iodepth": "32"}
# not while the session begins and ends: that would take minutes
LIMITED = (0.2, cpu_limit(30)), (10.0, cpu_limit(0))
ALSO = frozenset({"saturated", "cap"})
IO_MAX = {"above": ("io.max",)}
BLKIO = {"above": ("blkio.throttle",)}

SCENARIOS = (
    Scenario("io-max", LAB, "io.max riops=1000 at depth 8, then 32", io_max(FAST, "riops=1000"),
             {}, IO_MAX, ALSO, runs=DEPTHS, proof=every(outside, stands)),
    Scenario("io-max-once", LAB, "io.max riops=400 at one depth", io_max(FAST, "riops=400"),
             {"iodepth": 8}, IO_MAX, proof=outside),
    Scenario("io-max-bytes", LAB, "io.max wbps=4 MiB/s, writes of 64 KiB",
             io_max(FAST, "wbps=4194304"), {"rw": "randwrite", "bs": "64k", "iodepth": 8}, IO_MAX,
             proof=outside),
    Scenario("io-max-ancestor", LAB, "io.max of the group above the session's",
             io_max(FAST, "riops=600", above=True), {"iodepth": 8}, IO_MAX, proof=outside),
    Scenario("io-max-unused", LAB, "io.max far above what the job does",
             io_max(null(completion_nsec=5 * MS), "riops=50000"), {"iodepth": 8},
             proof=worked(500, 1700)),
    Scenario("io-max-other-side", LAB, "io.max on writes, and a job that reads",
             io_max(null(completion_nsec=5 * MS), "wiops=100"), {"iodepth": 8},
             proof=worked(500, 1700)),
    Scenario("iocost", LAB, "iocost with a model of 500 IOPS", cost(FAST, 500), {"iodepth": 16},
             {"above": ("cost",)}, proof=outside),
    Scenario("blkio", HERE, "blkio.throttle at 500 reads/s, depth 8, then 32",
             blkio(loop(), "read_iops", "500"), {}, BLKIO, ALSO, runs=DEPTHS,
             proof=every(outside, stands)),
    Scenario("blkio-bytes", HERE, "blkio.throttle at 8 MiB/s, writes of 64 KiB",
             blkio(loop(), "write_bps", "8388608"), {"rw": "randwrite", "bs": "64k", "iodepth": 8},
             BLKIO, proof=outside),
    Scenario("slow-disk", LAB, "a disk of 500 IOPS at depth 8, then 32", disk("VSLOW4Q"), {},
             {"cap": ()}, frozenset({"saturated"}), never=("io.max",), runs=DEPTHS, proof=stands),
    Scenario("slow-disk-writes", LAB, "the same disk with writes of 64 KiB", disk("VSLOW4Q"),
             {"rw": "randwrite", "bs": "64k"}, {"cap": ()}, frozenset({"saturated"}),
             never=("io.max",), runs=DEPTHS, proof=stands),
    Scenario("null-mbps", LAB, "null_blk that does 4 MiB/s, at depth 8, then 32",
             null(completion_nsec=1 * MS, mbps=4), {}, {"cap": ()}, frozenset({"saturated"}),
             never=("io.max",), runs=DEPTHS, proof=stands),
    Scenario("limit-in-mid-run", LAB, "io.max set to a quarter in mid run", io_max(FAST),
             {"iodepth": 4}, IO_MAX, seconds=16, during=((7.0, set_limit("riops=500")),),
             proof=steps_down),
    Scenario("limit-in-mid-run-here", HERE, "blkio.throttle set in mid run",
             blkio(loop(), "read_iops"), {"iodepth": 1, "bs": "256k"}, BLKIO, seconds=16,
             during=((7.0, set_limit("200")),), proof=steps_down),
    Scenario("step-down", LAB, "a disk that takes 8 ms more for each I/O from the middle on",
             linear(null(completion_nsec=2 * MS)), {"iodepth": 4}, {"burst": ()}, seconds=16,
             during=((7.0, slow_down(8)),), proof=steps_down),
    Scenario("cpu-max", LAB, "cpu.max of 30 % of a CPU", cpu_group(FAST),
             {"iodepth": 4, "numjobs": 2}, {"throttled": ()}, frozenset({"above", "depth"}),
             seconds=12, during=LIMITED, watch=CPU_STAT, proof=throttled),
    Scenario("cpu-max-here", HERE, "a CPU quota of 30 %", cpu_group(loop()),
             {"ioengine": "psync", "numjobs": 2}, {"throttled": ()},
             frozenset({"above", "one-cpu"}), seconds=12, during=LIMITED, watch=CPU_STAT,
             proof=throttled),
    Scenario("background", LAB, "another program's load before and during the run", FAST,
             {"iodepth": 8}, {"background": ()}, frozenset({"disagree"}), quiet=6,
             beside=(loads.fio(rate_iops=300),), proof=rate(500, "reads")),
    Scenario("background-here", HERE, "another program writes to the disk before and during",
             loop(), {"rate_iops": 500}, {"background": ("w/s",)}, frozenset({"disagree"}),
             quiet=6, beside=(loads.fio(rw="randwrite", rate_iops=300),),
             proof=rate(200, "writes")),
    Scenario("busy", LAB, "another program fills the disk, without a job",
             null(completion_nsec=9_500_000), None, {"busy": ()}, seconds=9,
             beside=(loads.fio(iodepth=32),), proof=rate(500, "reads")),
    Scenario("busy-slow-disk", LAB, "another program fills a disk of 500 IOPS, without a job",
             disk("VSLOW4Q"), None, {"busy": ()}, seconds=9,
             beside=(loads.fio(iodepth=16, rw="randwrite"),), proof=rate(300, "writes")),
)  # fmt: skip
