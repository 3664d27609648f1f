"""Disks watched without a job: no finding may blame a job, whichever program uses them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import loads
from devices import delayed, ext4, linear, loop, loop_on, mirror, null, resume, sh, suspend
from proofs import rate
from scenario import HERE, LAB, Absent, Bench, Beside, Recipe, Scenario
from settings import queue

from scenarios.accounts import WRITER, freeze, shell, thaw

NO_JOB = ("job", "fio does")
BUSY = frozenset({"busy", "answer-queue"})
READER = "while :; do dd if=$PLACE/big of=/dev/null bs=1M; echo 1 > /proc/sys/vm/drop_caches; done"
LOGGER = "while :; do dd if=/dev/zero of=$PLACE/log bs=4k count=1 conv=fsync; sleep 0.5; done"
BURSTS = "while :; do dd if=$PLACE of=/dev/null bs=64k count=500 iflag=direct; sleep 4; done"

IN_IO_URING = """\
import ctypes, mmap, os, struct
libc = ctypes.CDLL(None, use_errno=True)
params = ctypes.create_string_buffer(120)
ring = libc.syscall(425, 4, params)
# struct io_sqring_offsets: head, tail, mask, entries, flags, dropped, array
offsets = struct.unpack_from("<7I", params, 40)
tail, array = offsets[1], offsets[6]
queue = mmap.mmap(ring, array + 16, offset=0)
requests = mmap.mmap(ring, 256, offset=0x10000000)
reader, _ = os.pipe()
# IORING_OP_POLL_ADD of a pipe that nobody writes to
requests[:64] = struct.pack("<BBHiQQIIQ24x", 6, 0, 0, reader, 0, 0, 0, 1, 0)
queue[array : array + 4] = bytes(4)
queue[tail : tail + 4] = struct.pack("<I", 1)
libc.syscall(426, ring, 1, 1, 1, None, 0)
"""


def sleeping_in_io_uring() -> Beside:
    """A program that waits in io_uring for a pipe."""

    def begin(bench: Bench) -> None:
        process = subprocess.Popen(["python3", "-c", IN_IO_URING])
        bench.stack.callback(process.wait)
        bench.stack.callback(process.kill)

    return begin


def with_file(below: Recipe, mib: int) -> Recipe:
    """A file system with a file of ``mib`` MiB."""

    def make(bench: Bench) -> str:
        place = ext4(below)(bench)
        sh("dd", "if=/dev/zero", f"of={place}/big", "bs=1M", f"count={mib}", "conv=fsync")
        return place

    return make


def swap(below: Recipe) -> Recipe:
    """A device that the machine swaps to first."""

    def make(bench: Bench) -> str:
        node = below(bench)
        sh("mkswap", node)
        if subprocess.run(["swapon", "-p", "100", node], capture_output=True).returncode:
            raise Absent("this machine can't swap to a loop device")
        bench.stack.callback(sh, "swapoff", node)
        return node

    return make


def swapping(mib: int = 96) -> Beside:
    """A program that uses ``mib`` MiB again and again, more than its group may have."""
    code = (
        "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "held = [bytearray(os.urandom(4096) * 256) for _ in range(int(sys.argv[2]))]\n"
        "parent = os.getppid()\n"
        "while os.getppid() == parent:\n"
        "    for block in held:\n"
        "        for at in range(0, len(block), 4096): block[at] ^= 1\n"
    )

    def begin(bench: Bench) -> None:
        group = Path("/sys/fs/cgroup/memory/iopstui-scoreboard-swap")
        if not group.parent.is_dir():
            raise Absent("no memory cgroup (v1) limits a group here")
        group.mkdir(exist_ok=True)
        bench.stack.callback(group.rmdir)
        (group / "memory.limit_in_bytes").write_text(str(mib // 2 << 20))
        process = subprocess.Popen(["python3", "-c", code, str(group / "cgroup.procs"), str(mib)])
        bench.stack.callback(process.wait)
        bench.stack.callback(process.kill)

    return begin


SCENARIOS = (
    Scenario("watch-reads", HERE, "another program's deep queue of large reads, without a job",
             loop(), None, allowed=BUSY, never=NO_JOB, seconds=10,
             beside=(loads.fio(bs="1m", iodepth=16),), proof=rate(100, "reads")),
    Scenario("watch-writes", HERE, "another program's 2,000 writes/s, without a job", loop(), None,
             never=NO_JOB, seconds=9,
             beside=(loads.fio(rw="randwrite", rate_iops=2000, iodepth=4),),
             proof=rate(500, "writes")),
    Scenario("watch-discards", HERE, "another program's 1,000 discards/s, without a job", loop(),
             None, allowed=BUSY, never=NO_JOB, seconds=9,
             beside=(loads.fio(rw="randtrim", rate_iops=1000, iodepth=4),),
             proof=rate(300, "discards")),
    Scenario("watch-syncs", HERE, "a program that writes 4 KiB and syncs twice a second",
             ext4(loop()), None, never=NO_JOB, seconds=10, beside=(shell(LOGGER),),
             proof=rate(0.5, "flushes")),
    Scenario("watch-write-back", HERE, "another program's buffered writes, without a job",
             ext4(loop(1300)), None, allowed=BUSY, never=NO_JOB, seconds=12,
             beside=(shell(WRITER),), proof=rate(50, "writes")),
    Scenario("watch-read-ahead", HERE, "another program's buffered reads, without a job",
             with_file(loop(600), 300), None, allowed=BUSY, never=NO_JOB, seconds=10,
             beside=(shell(READER),), proof=rate(50, "reads")),
    Scenario("watch-swap", HERE, "a disk that the machine swaps to", swap(loop(600)), None,
             allowed=BUSY | {"memory", "answer-memory"}, never=(*NO_JOB, "mq-deadline"), seconds=12,
             beside=(swapping(),), proof=rate(50, "writes")),
    Scenario("watch-bursts", HERE, "a burst of reads every 4 s, without a job", loop(), None,
             never=NO_JOB, seconds=14, beside=(shell(BURSTS),), proof=rate(20, "reads")),
    Scenario("watch-limited", HERE, "a disk whose queue holds 4 requests, used by another program",
             queue(loop(), nr_requests=4), None, allowed=BUSY, never=NO_JOB, seconds=10,
             beside=(loads.fio(bs="256k", iodepth=16),), proof=rate(50, "reads")),
    Scenario("watch-hogs", HERE, "an idle disk on a machine whose CPUs are full", loop(), None,
             never=NO_JOB, seconds=9, beside=(loads.hogs(0, 1),),
             proof=rate(0, "reads", "writes", most=1)),
    Scenario("watch-ring", HERE, "an idle disk, and a program that sleeps in io_uring", loop(),
             None, {"ring": ("sleeps in io_uring",)}, never=NO_JOB, seconds=12,
             beside=(sleeping_in_io_uring(),), proof=rate(0, "reads", "writes", most=1)),
    Scenario("watch-frozen", HERE, "a frozen file system that somebody writes to, without a job",
             ext4(loop()), None, allowed=frozenset({"stalled"}), never=("was removed",),
             seconds=14, beside=(shell(LOGGER),), during=((3.0, freeze), (9.0, thaw)),
             proof=rate(0.1, "writes")),
    Scenario("watch-on-loop", HERE, "a loop device on a loop device, used by another program",
             loop_on(loop()), None, allowed=BUSY, never=NO_JOB, seconds=9,
             beside=(loads.fio(iodepth=8, rate_iops=1500),), proof=rate(300, "reads")),
    Scenario("watch-delay", LAB, "dm-delay of 10 ms under another program, without a job",
             delayed(null(), 10), None, allowed=BUSY, never=NO_JOB, seconds=10,
             beside=(loads.fio(iodepth=2),), proof=rate(20, "reads")),
    Scenario("watch-suspended", LAB, "a volume that is suspended for 6 s while others use it",
             linear(null(completion_nsec=2_000_000)), None,
             {"answer-suspended": ("is suspended: nothing passes",)},
             allowed=frozenset({"stalled"}), never=("was removed", *NO_JOB), seconds=16,
             beside=(loads.fio(iodepth=2),), during=((4.0, suspend), (10.0, resume)),
             proof=rate(20, "reads")),
    Scenario("watch-resync", LAB, "a mirror that is being copied, without a job",
             mirror(resync=True), None, {"array": ()}, never=NO_JOB, seconds=10,
             proof=rate(0, "reads")),
    Scenario("watch-two", HERE, "two programs, one reads and one writes, without a job", loop(),
             None, never=NO_JOB, seconds=9,
             beside=(loads.fio(rate_iops=500), loads.fio(rw="randwrite", rate_iops=500)),
             proof=rate(100, "writes")),
)  # fmt: skip
