"""Depth: what the job asks for, what its engine does, and what queues and tags hold."""

from __future__ import annotations

from collections.abc import Mapping

import loads
from devices import delayed, disk, ext4, loop, null, scsi_debug
from proofs import every, inside, outside, rate, scales, worked
from scenario import HERE, LAB, Scenario
from settings import bfq_weight, dirty_bytes, queue, scsi_depth

MS = 1_000_000
FULL = frozenset({"above", "saturated"})
SPLIT: Mapping[str, object] = {"cpus_allowed": "0-3", "cpus_allowed_policy": "split"}
WRITER = """[writer]
ioengine=libaio
direct=1
rw=randwrite
bs=4k
iodepth=4
time_based=1
runtime=14s
"""

SCENARIOS = (
    Scenario("tags", LAB, "64 I/Os of one job on a queue of 4 tags, of four queues",
             null(hw_queue_depth=4, completion_nsec=4 * MS), {"iodepth": 64, "cpus_allowed": "1"},
             {"tags": ()}, FULL, never=("io.max",), proof=outside),
    Scenario("tags-four", LAB, "four jobs of 16 on four queues of 4 tags",
             null(hw_queue_depth=4, completion_nsec=4 * MS),
             {"iodepth": 16, "numjobs": 4, **SPLIT}, {"tags": ()}, FULL, never=("io.max",),
             proof=outside),
    Scenario("tags-one-hctx", LAB, "64 I/Os of one job on one of four queues of 32 tags",
             null(hw_queue_depth=32, completion_nsec=20 * MS),
             {"iodepth": 64, "cpus_allowed": "1"}, {"tags": ()}, FULL, proof=worked(600, 1700)),
    Scenario("tags-enough", LAB, "48 I/Os of one job on a queue of 64 tags",
             null(submit_queues=1, completion_nsec=20 * MS), {"iodepth": 48}, proof=inside),
    Scenario("tags-spread", LAB, "four jobs of 16 on four queues of 32 tags",
             null(hw_queue_depth=32, completion_nsec=20 * MS),
             {"iodepth": 16, "numjobs": 4, **SPLIT}, proof=inside),
    Scenario("nr-requests", LAB, "nr_requests of 4 under a job of 16, with mq-deadline",
             queue(null(submit_queues=1, completion_nsec=4 * MS), scheduler="mq-deadline",
                   nr_requests=4),
             {"iodepth": 16}, {"tags": ()}, FULL | {"scheduler"}, proof=outside),
    Scenario("scsi-depth", LAB, "a SCSI disk with queue_depth 1, and a job of 8",
             scsi_depth(scsi_debug(ndelay=3 * MS), 1), {"iodepth": 8},
             {"tags": ("queue_depth",)}, FULL, proof=worked(100, 340)),
    Scenario("dm-delay", LAB, "dm-delay of 20 ms at depth 8, then 32", delayed(null(), 20), {},
             {"layer": ("dm-",)}, runs=({"iodepth": "8"}, {"iodepth": "32"}), proof=scales),
    Scenario("starved-writes", LAB, "mq-deadline that lets writes wait behind many reads",
             queue(null(submit_queues=1, hw_queue_depth=4, completion_nsec=4 * MS),
                   **{"scheduler": "mq-deadline", "nr_requests": 64, "iosched/writes_starved": 40,
                      "iosched/write_expire": 60_000}),
             {"iodepth": 32}, {"starved": ("writes",)}, FULL | {"tags", "scheduler"}, seconds=14,
             more=WRITER, proof=every(rate(2, "writes"), worked(50))),
    Scenario("bfq-weight", LAB, "bfq gives another program's group 100 times the job's weight",
             bfq_weight(queue(null(submit_queues=1, hw_queue_depth=4, completion_nsec=4 * MS),
                              scheduler="bfq"), 1),
             {"iodepth": 8}, {"neighbour": ("fio (PID",)},
             FULL | {"tags", "scheduler", "disagree", "background", "busy"},
             seconds=12, beside=(loads.fio(iodepth=32),), proof=rate(200, "reads")),
    Scenario("write-back", LAB, "buffered writes beyond vm.dirty_bytes on a slow disk",
             dirty_bytes(ext4(disk("VSLOW4Q")), 8 << 20),
             {"rw": "randwrite", "ioengine": "psync", "direct": 0, "numjobs": 2},
             {"write-back": ()}, frozenset({"disagree", "above", "misaligned"}), size="64m",
             seconds=14, proof=rate(100, "writes")),
    Scenario("sync-depth", HERE, "iodepth=16 with psync", loop(),
             {"ioengine": "psync", "iodepth": 16, "rate_iops": 200}, {"depth": ("psync",)},
             proof=worked(150)),
    Scenario("buffered-libaio", LAB, "buffered libaio at depth 16",
             null(completion_nsec=3 * MS, size=4096), {"direct": 0, "iodepth": 16},
             {"depth": ("slat",)}, frozenset({"above"}), proof=worked(50, 350)),
    Scenario("not-filled", LAB, "a job of depth 32 that seldom has 8 in flight, as fio thinks",
             null(completion_nsec=100_000), {"iodepth": 32, "rate_iops": 300},
             proof=every(worked(250), inside)),
    Scenario("file-depth", LAB, "direct libaio at depth 8 on a file of ext4",
             ext4(null(completion_nsec=4 * MS, memory_backed=1)), {"iodepth": 8}, size="16m",
             proof=every(worked(300, 2100), inside)),
)  # fmt: skip
