"""Unusual jobs on healthy disks; neighbours and faults that look like something else."""

from __future__ import annotations

from dataclasses import replace

import loads
from devices import encrypted, ext4, failing_for, linear, loop, loop_on, null
from proofs import PSI, delayed, every, queued, rate, worked
from quiet import TRUTHS
from scenario import HERE, LAB, Scenario
from settings import blkio, queue

from scenarios.accounts import CPU, shell
from scenarios.without_job import READER, with_file

OTHERS = CPU | {"disagree", "neighbour", "background"}
SMALL_QUEUE = CPU | {"saturated"}

HEALTHY = (
    Scenario("late-start", HERE, "a job that begins 5 s after fio", loop(),
             {"rate_iops": 300, "startdelay": "5s"}, allowed=CPU, seconds=10,
             proof=rate(50, "reads")),
    Scenario("long-pauses", HERE, "a job that waits 4 s after every 200 I/Os", loop(),
             {"ioengine": "psync", "thinktime": "4s", "thinktime_blocks": 200, "rate_iops": 400},
             allowed=CPU, seconds=16, proof=rate(20, "reads")),
    Scenario("zipf", HERE, "reads of a few blocks again and again", loop(),
             {"random_distribution": "zipf:1.3", "norandommap": 1, "rate_iops": 500, "iodepth": 4},
             allowed=CPU, proof=worked(300)),
    Scenario("eight-slow-jobs", HERE, "eight jobs of 50 IOPS each", loop(),
             {"ioengine": "psync", "numjobs": 8, "rate_iops": 50}, allowed=CPU, seconds=9,
             proof=worked(250)),
    Scenario("verified-writes", HERE, "writes that are read back and verified", loop(),
             {"rw": "randwrite", "verify": "crc32c", "verify_backlog": 16, "rate_iops": 200,
              "iodepth": 4}, allowed=CPU, seconds=9, proof=rate(50, "writes")),
    Scenario("mmap-reads", HERE, "reads through a mapping of a file", ext4(loop()),
             {"ioengine": "mmap", "direct": 0, "rate_iops": 300},
             allowed=CPU | {"disagree"}, never=("another program",), seconds=9, size="32m",
             proof=worked(100)),
    Scenario("rare-huge-reads", HERE, "five reads of 4 MiB a second", loop(),
             {"bs": "4m", "rate_iops": 5, "ioengine": "psync"}, allowed=CPU | {"disagree"},
             never=("another program",), seconds=10, proof=rate(5, "reads")),
    Scenario("trims-and-writes", HERE, "discards and writes in turn", loop(),
             {"rw": "trimwrite", "bs": "64k", "rate_iops": 100, "ioengine": "psync"},
             allowed=CPU | {"disagree"}, never=("another program", "file system"), seconds=9,
             proof=rate(20, "discards")),
    Scenario("nearly-all-reads", HERE, "one write in a hundred", loop(),
             {"rw": "randrw", "rwmixread": 99, "rate_iops": "400,4", "iodepth": 4}, allowed=CPU,
             seconds=9, proof=rate(200, "reads")),
    Scenario("sync-now-and-then", HERE, "writes of a file with an fsync every 2 s", ext4(loop()),
             {"rw": "randwrite", "ioengine": "psync", "rate_iops": 50, "fsync": 100},
             allowed=CPU | {"disagree"}, never=("another program",), seconds=11, size="16m",
             proof=rate(20, "writes")),
    Scenario("fixed-buffers", HERE, "io_uring with registered buffers, 500 a second", loop(),
             {"ioengine": "io_uring", "fixedbufs": 1, "rate_iops": 500, "iodepth": 8},
             allowed=CPU, seconds=9, proof=worked(300)),
    Scenario("growing-file", HERE, "a file that grows by 50 writes a second", ext4(loop()),
             {"rw": "write", "ioengine": "psync", "rate_iops": 50, "bs": "16k",
              "fallocate": "none", "file_append": 1},
             allowed=CPU | {"disagree"}, never=("another program",), seconds=10, size="64m",
             proof=rate(20, "writes")),
)  # fmt: skip

OTHER = (
    Scenario("others-flush", HERE, "another program syncs while the job reads 500 a second", loop(),
             {"rate_iops": 500, "iodepth": 2}, allowed=OTHERS | {"flush"},
             never=("the job syncs",), seconds=12,
             beside=(loads.fio(rw="randwrite", ioengine="psync", fsync=1),),
             proof=rate(100, "flushes")),
    Scenario("others-read-ahead", HERE, "another program's buffered reads beside the job",
             with_file(loop(600), 300), {"rate_iops": 300, "iodepth": 2}, allowed=OTHERS,
             never=("the job syncs", "never written"), seconds=12, size="32m",
             beside=(shell(READER),), proof=rate(100, "reads")),
    Scenario("others-few", HERE, "another program's 20 reads a second beside 500 of the job",
             loop(), {"rate_iops": 500, "iodepth": 2}, allowed=CPU, seconds=10,
             beside=(loads.fio(rate_iops=20),), proof=rate(400, "reads")),
    Scenario("both-limited", HERE, "four tags, and a limit that is not reached",
             queue(blkio(loop(), "read_iops", "1000000"), nr_requests=4),
             {"iodepth": 16, "bs": "64k"}, {"tags": ()}, SMALL_QUEUE, never=("io.max", "blkio"),
             seconds=10, proof=every(worked(100), queued(2))),
    Scenario("limited-beside-others", HERE, "300 reads/s for the job, beside another program",
             blkio(loop(), "read_iops", "300"), {"iodepth": 8}, {"above": ("300",)},
             OTHERS | {"cap"}, seconds=11, beside=(loads.fio(rate_iops=100),),
             proof=worked(200, 350)),
    Scenario("deep-beside-hogs", HERE, "32 I/Os of a job that waits for a CPU most of the time",
             loop(), {"iodepth": 32, "nice": 5}, allowed=SMALL_QUEUE, never=("submission blocks",),
             seconds=14, beside=(loads.hogs(0, 1, 0, 1),), proof=delayed(0.3)),
    Scenario("deep-files-beside-hogs", HERE, "the same with writes that fill a file",
             ext4(loop()), {"rw": "randwrite", "iodepth": 32, "nice": 5, "overwrite": 1},
             allowed=SMALL_QUEUE | {"disagree"}, never=("submission blocks",), seconds=14,
             size="32m", beside=(loads.hogs(0, 1, 0, 1),), proof=delayed(0.3)),
    Scenario("one-tag", HERE, "a queue of 4 requests for a job that wants one at a time",
             queue(loop(), nr_requests=4), {"ioengine": "psync", "rate_iops": 500}, allowed=CPU,
             proof=worked(300)),
    Scenario("loop-on-loop", HERE, "a loop device on a loop device at 400 reads/s",
             loop_on(loop()), {"rate_iops": 400, "iodepth": 4}, allowed=CPU, seconds=9,
             proof=worked(300)),
    Scenario("fails-for-4-s", LAB, "a volume that errs for 4 s of 12 and goes on",
             linear(null(completion_nsec=2_000_000)),
             {"iodepth": 2, "continue_on_error": "all"}, {"io-errors": ()}, CPU | {"burst"},
             never=("was removed", "has failed"), seconds=12, during=failing_for(4.0, 8.0),
             proof=rate(20, "reads"), fails=True),
    Scenario("crypt-at-rest", LAB, "dm-crypt at 200 reads/s",
             encrypted(null(completion_nsec=2_000_000)), {"rate_iops": 200, "iodepth": 2},
             allowed=CPU, proof=every(worked(150, 250))),
)  # fmt: skip
# memory may be short on a machine that others use as well
SCENARIOS = tuple(replace(one, watch=(PSI,), truths=TRUTHS) for one in (*HEALTHY, *OTHER))
