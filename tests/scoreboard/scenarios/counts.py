"""fio and the disk count differently: merged, split, cached, flushed, misaligned."""

from __future__ import annotations

from collections.abc import Mapping

from devices import disk, ext4, loop, null, scsi_debug
from proofs import every, file_is, rate, request_size, worked
from scenario import HERE, LAB, Scenario
from settings import queue

MS = 1_000_000
BUFFERED: Mapping[str, object] = {"ioengine": "psync", "direct": 0, "rate_iops": 300}
SYNCED = frozenset({"disagree"})
FLUSHES = rate(10, "flushes")

SCENARIOS = (
    Scenario("merges", LAB, "sequential reads, submitted 16 at a time",
             null(submit_queues=1, completion_nsec=4 * MS),
             {"rw": "read", "iodepth": 32, "iodepth_batch_submit": 16,
              "iodepth_batch_complete_min": 16},
             {"disagree": ("merged",)}, proof=rate(100, "read_merges")),
    Scenario("splits", LAB, "reads of 256 KiB where a request holds 64 KiB",
             queue(null(completion_nsec=4 * MS), max_sectors_kb=64),
             {"bs": "256k", "iodepth": 2}, {"disagree": ("split",)},
             proof=every(request_size(65536), worked(50))),
    Scenario("splits-here", HERE, "reads of 512 KiB where a request holds 128 KiB",
             queue(loop(), max_sectors_kb=128), {"bs": "512k", "iodepth": 2, "rate_iops": 200},
             {"disagree": ("split",)}, proof=request_size(131072)),
    Scenario("cached-reads", LAB, "buffered reads that the page cache answers",
             ext4(disk("NVME4Q")), {**BUFFERED, "invalidate": 0},
             {"disagree": ("page cache",)}, size="1m", seconds=9,
             proof=rate(0, "reads", most=100)),
    Scenario("cached-reads-here", HERE, "buffered reads of a file on a loop device",
             ext4(loop()),
             {**BUFFERED, "invalidate": 0}, {"disagree": ("page cache",)}, size="1m", seconds=9,
             proof=rate(0, "reads", most=100)),
    Scenario("buffered-writes", LAB, "buffered writes of a file", ext4(disk("NVME4Q")),
             {**BUFFERED, "rw": "randwrite"}, {"disagree": ("page cache",)}, size="64m",
             proof=rate(0, "writes", most=100)),
    Scenario("fsync", LAB, "fsync after every write, on the disk itself", disk("VBLK4Q"),
             {"rw": "randwrite", "fsync": 1, "ioengine": "psync"}, {"flush": ()}, SYNCED,
             never=("split",), proof=FLUSHES),
    Scenario("fsync-libaio", LAB, "the same by libaio at depth 4", disk("NVME4Q"),
             {"rw": "randwrite", "fsync": 1, "iodepth": 4}, {"flush": ()},
             SYNCED | {"depth"}, never=("split",), proof=FLUSHES),
    Scenario("fdatasync", LAB, "fdatasync after every write of a file", ext4(disk("VBLK4Q")),
             {"rw": "randwrite", "fdatasync": 1, "ioengine": "psync", "direct": 0}, {"flush": ()},
             SYNCED, never=("split",), size="16m", proof=FLUSHES),
    Scenario("sync", LAB, "sync=1: O_SYNC writes", disk("VBLK4Q"),
             {"rw": "randwrite", "sync": 1, "ioengine": "psync"}, {"flush": ()}, SYNCED,
             never=("split",), proof=FLUSHES),
    Scenario("small-writes", LAB, "512-byte writes on a disk with physical blocks of 4 KiB",
             scsi_debug(physblk_exp=3, ndelay=2 * MS),
             {"rw": "randwrite", "bs": "512", "iodepth": 2}, {"misaligned": ()},
             proof=every(request_size(600), file_is("queue/physical_block_size", "4096")),
             watch=("queue/physical_block_size",)),
    Scenario("shifted-writes", LAB, "4 KiB writes that begin inside the physical blocks",
             scsi_debug(physblk_exp=3, ndelay=2 * MS),
             {"rw": "randwrite", "offset": 512, "iodepth": 2}, {"misaligned": ()},
             proof=worked(100)),
    Scenario("iostats", HERE, "iostats=0", queue(loop(), iostats=0), {"rate_iops": 300},
             {"iostats": ()}, proof=rate(0, "reads", most=0)),
    Scenario("iostats-lab", LAB, "iostats=0 under a job of depth 8",
             queue(null(completion_nsec=4 * MS), iostats=0), {"iodepth": 8}, {"iostats": ()},
             proof=rate(0, "reads", most=0)),
)  # fmt: skip
