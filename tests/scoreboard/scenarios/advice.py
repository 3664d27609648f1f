"""Advice that is followed: it has to change what the finding promised."""

from __future__ import annotations

from pathlib import Path

import loads
from devices import disk, ext4, loop, mirror, null, scsi_debug
from proofs import (
    answers_faster,
    falls,
    gains,
    rate,
    recovers,
    spread,
    steps_down,
    steps_up,
)
from scenario import HERE, LAB, Action, Bench, Recipe, Scenario
from settings import (
    blkio,
    cpu_group,
    cpu_limit,
    io_max,
    one_cpu,
    queue,
    scsi_depth,
    set_limit,
    set_queue,
    take_at_once,
)

from scenarios.accounts import CPU, member, shell, striped

MS = 1_000_000
OTHERS = CPU | {"disagree", "neighbour", "background"}
HOG_FOR_8_S = "exec taskset -c 1 timeout 8 sh -c 'while :; do :; done'"

DONE = {
    "direct": "advice-direct",
    "engine": "advice-engine",
    "more-jobs": "advice-more-jobs",
    "fewer-jobs": "advice-fewer-jobs",
    "fsync": "advice-fsync",
    "overwrite": "advice-overwrite",
    "chunks": "advice-chunks",
    "pin": "advice-pin",
    "stop-others": "advice-stop-others",
    "cpu-max": "advice-cpu-max",
    "lift-io-max": "advice-lift-io-max",
    "lift-blkio": "advice-lift-blkio",
    "iostats": "advice-iostats",
    "nomerges": "advice-nomerges",
    "max-sectors": "advice-max-sectors",
    "nr-requests": "advice-nr-requests",
    "scsi-depth": "advice-scsi-depth",
    "other-queues": "advice-other-queues",
    "rq-affinity": "advice-rq-affinity",
    "resume": "suspended",
    "thaw": "frozen",
    "resync": "advice-resync",
}
"""The scenario that follows each kind of advice."""


def resync_at(kib: int) -> Action:
    """From now on, the array resyncs at ``kib`` KiB/s at most, as an answer advises."""

    def act(bench: Bench) -> None:
        Path("/sys/block/md127/md/sync_speed_max").write_text(str(kib))

    return act


def resyncing(kib: int) -> Recipe:
    """The first member of an array that resyncs at ``kib`` KiB/s."""

    def make(bench: Bench) -> str:
        path = member(mirror(256, resync=True))(bench)
        resync_at(kib)(bench)
        return path

    return make


SCENARIOS = (
    Scenario("advice-direct", HERE, "buffered reads that the cache answers, then direct=1",
             ext4(loop()), {"iodepth": 4, "rate_iops": 400, "norandommap": 1, "io_size": "1g"},
             {"disagree": ("direct=1",)}, CPU | {"depth", "write-back"}, seconds=8, size="2m",
             runs=({"direct": "0"}, {"direct": "1"}), proof=rate(200, "reads")),
    Scenario("advice-fsync", HERE, "fsync after every write, then after 32", loop(),
             {"rw": "randwrite", "ioengine": "psync"}, {"flush": ("share one sync", "fsync=32")},
             CPU | {"disagree", "saturated"}, seconds=8,
             runs=({"fsync": "1"}, {"fsync": "32"}), proof=falls("flushes", 0.2)),
    Scenario("advice-nomerges", HERE, "sequential reads that are merged, then nomerges=2",
             queue(loop(), nomerges=0),
             {"rw": "read", "iodepth": 16, "iodepth_batch": 16, "iodepth_batch_complete": 16,
              "rate_iops": 1600}, {"disagree": ("nomerges=2",)}, CPU, seconds=14,
             during=((7.0, set_queue(nomerges=2)),), proof=steps_up(0.5)),
    Scenario("advice-max-sectors", HERE, "reads that are split, then a larger max_sectors_kb",
             queue(loop(), max_sectors_kb=64), {"bs": "256k", "rate_iops": 150, "iodepth": 4},
             {"disagree": ("max_sectors_kb",)}, CPU, seconds=16,
             during=((8.0, set_queue(max_sectors_kb=1280)),), proof=steps_down),
    Scenario("advice-iostats", HERE, "iostats=0, then 1", queue(loop(), iostats=0),
             {"rate_iops": 300, "iodepth": 2}, {"iostats": ("iostats=1",)}, CPU | {"disagree"},
             seconds=12, during=((6.0, set_queue(iostats=1)),), proof=rate(50, "reads")),
    Scenario("advice-cpu-max", HERE, "a CPU quota of 30 %, then none", cpu_group(loop()),
             {"ioengine": "psync", "numjobs": 2}, {"throttled": ("cpu.max",)},
             OTHERS | {"above", "burst"}, seconds=16,
             during=((0.5, cpu_limit(30)), (9.0, cpu_limit(0))), proof=recovers(0.3)),
    Scenario("advice-engine", LAB, "psync with iodepth=16, then libaio",
             null(completion_nsec=2 * MS), {"iodepth": 16}, {"depth": ("libaio",)},
             (CPU | {"saturated"}) - {"depth"}, seconds=8,
             runs=({"ioengine": "psync"}, {"ioengine": "libaio"}), proof=gains(3)),
    Scenario("advice-nr-requests", LAB, "four tags for 16 I/Os, then 64",
             queue(null(completion_nsec=4 * MS, submit_queues=1), nr_requests=4),
             {"iodepth": 16}, {"tags": ("raise nr_requests",)}, CPU, seconds=14,
             during=((7.0, set_queue(nr_requests=64)),), proof=steps_up(0.8)),
    Scenario("advice-stop-others", LAB, "a disk of 500 IOPS, half of it for another program, which "
             "then ends", disk("VSLOW4Q"), {"iodepth": 8}, {"neighbour": ("while you measure",)},
             OTHERS - {"neighbour"}, seconds=16,
             during=((0.1, loads.fio(iodepth=8, runtime=11)),), proof=recovers(0.5)),
    Scenario("advice-pin", HERE, "a job pinned to a CPU that another program fills, then leaves",
             loop(), {"ioengine": "psync", "cpus_allowed": "1"},
             {"cpu-wait": ("another CPU",)}, (OTHERS | {"above"}) - {"cpu-wait"}, seconds=16,
             during=((0.1, shell(HOG_FOR_8_S)),), proof=recovers(0.2)),
    Scenario("advice-overwrite", HERE, "libaio that extends a file, then overwrite=1",
             ext4(loop(2600)), {"rw": "write", "iodepth": 32, "fallocate": "none",
             "size": "1500m"}, {"above": ("overwrite=1",)}, CPU | {"disagree", "saturated"},
             seconds=8, size="1500m",
             runs=({"file_append": "1", "create_on_open": "1"}, {"overwrite": "1"}),
             proof=gains(0.3)),
    Scenario("advice-fewer-jobs", LAB, "8 jobs at depth 16 on the only CPU, then one job",
             one_cpu(null(irqmode=0)), {"ioengine": "libaio"},
             {"more-jobs-than-cpus": ("1 job with a deeper queue",)},
             (CPU | {"above", "saturated", "tags", "softirq-cpu"}) - {"more-jobs-than-cpus"},
             seconds=8,
             runs=({"numjobs": "8", "iodepth": "16"}, {"numjobs": "1", "iodepth": "32"}),
             proof=answers_faster(2)),
    Scenario("advice-chunks", LAB, "16 KiB reads of a RAID 0 of 4 KiB chunks, then 4 KiB",
             striped(4), {"iodepth": 4}, {"disagree": ("use I/Os of up to", "4k")}, CPU, seconds=8,
             runs=({"bs": "16k"}, {"bs": "4k"}), proof=falls("reads", 0.4)),
    Scenario("advice-scsi-depth", LAB, "a SCSI disk that takes one command at once, then 8",
             scsi_depth(scsi_debug(ndelay=3 * MS), 1), {"iodepth": 8},
             {"tags": ("device/queue_depth",)}, CPU | {"above", "saturated"}, seconds=14,
             during=((7.0, take_at_once(8)),), proof=steps_up(0.8)),
    Scenario("advice-other-queues", LAB, "64 I/Os on one of four queues, then 16 on all four",
             null(hw_queue_depth=4, completion_nsec=4 * MS), {},
             {"tags": ("jobs on other CPUs",)}, CPU | {"above", "saturated"}, seconds=8,
             runs=({"iodepth": "64", "cpus_allowed": "1"},
                   {"iodepth": "4", "numjobs": "4", "cpus_allowed": "0-3",
                    "cpus_allowed_policy": "split"}), proof=gains(0.5)),
    Scenario("advice-lift-blkio", HERE, "500 reads/s for the session's group, then no limit",
             blkio(loop(), "read_iops", "500"), {"iodepth": 8}, {"above": ("lift it: echo",)},
             CPU | {"saturated"}, seconds=14, during=((7.0, set_limit("0")),),
             proof=steps_up(0.5)),
    Scenario("advice-lift-io-max", LAB, "io.max riops=200, then riops=max",
             io_max(null(completion_nsec=4 * MS), "riops=200"), {"iodepth": 8},
             {"above": ("lift it: echo",)}, CPU | {"saturated"}, seconds=14,
             during=((7.0, set_limit("riops=max")),), proof=steps_up(0.5)),
    Scenario("advice-more-jobs", LAB, "one job that uses a whole CPU, then two",
             null(irqmode=0), {"ioengine": "psync"}, {"job-cpu": ("more jobs",)},
             (CPU | {"above", "saturated", "softirq-cpu"}) - {"job-cpu"}, seconds=8,
             runs=({"numjobs": "1"}, {"numjobs": "2"}), proof=gains(0.2)),
    Scenario("advice-rq-affinity", LAB, "completions of four jobs on one CPU, then rq_affinity=2",
             queue(disk("VBLK1Q"), rq_affinity=1),
             {"numjobs": 4, "rate_iops": 400, "cpus_allowed": "0-3",
              "cpus_allowed_policy": "split"}, {"one-cpu": ("try rq_affinity 2",)},
             CPU - {"one-cpu"}, seconds=8, runs=({}, {}),
             during=((0.1, set_queue(rq_affinity=2)),), proof=spread),
    Scenario("advice-resync", LAB, "a member of an array that is resyncing, then is slowed down",
             resyncing(16_000), None, {"array": ("is a member",)}, frozenset({"busy"}),
             seconds=16, during=((7.0, resync_at(2000)),), proof=steps_down),
)  # fmt: skip
