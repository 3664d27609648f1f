"""Advice that is done: it has to change what the finding said it would."""

from __future__ import annotations

import loads
from devices import disk, ext4, loop, null
from proofs import falls, gains, rate, recovers, steps_down, steps_up
from scenario import HERE, LAB, Scenario
from settings import cpu_group, cpu_limit, queue, set_queue

from scenarios.accounts import CPU, shell

MS = 1_000_000
OTHERS = CPU | {"disagree", "neighbour", "background"}
HOG_FOR_8_S = "exec taskset -c 1 timeout 8 sh -c 'while :; do :; done'"

SCENARIOS = (
    Scenario("advice-direct", HERE, "buffered reads that the cache answers, then direct=1",
             ext4(loop()), {"iodepth": 4, "rate_iops": 400, "norandommap": 1, "io_size": "1g"},
             {"disagree": ("direct=1",)}, CPU | {"depth", "write-back"}, seconds=8, size="2m",
             runs=({"direct": "0"}, {"direct": "1"}), proof=rate(200, "reads")),
    Scenario("advice-fsync", HERE, "fsync after every write, then after 32", loop(),
             {"rw": "randwrite", "ioengine": "psync"}, {"flush": ("fsync=32",)},
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
             "then ends", disk("VSLOW4Q"), {"iodepth": 8}, {"neighbour": ("stop",)},
             OTHERS - {"neighbour"}, seconds=16,
             during=((0.1, loads.fio(iodepth=8, runtime=11)),), proof=recovers(0.5)),
    Scenario("advice-pin", HERE, "a job pinned to a CPU that another program fills, then leaves",
             loop(), {"ioengine": "psync", "cpus_allowed": "1"},
             {"cpu-wait": ("another CPU",)}, (OTHERS | {"above"}) - {"cpu-wait"}, seconds=16,
             during=((0.1, shell(HOG_FOR_8_S)),), proof=recovers(0.2)),
)  # fmt: skip
