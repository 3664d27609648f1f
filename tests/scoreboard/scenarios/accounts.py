"""Which program does the I/O, and where it waits: cases that accounts and claims must tell
apart."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from pathlib import Path

import loads
from devices import (
    delayed,
    ext4,
    linear,
    load,
    loop,
    loop_on,
    mirror,
    needs,
    null,
    sectors,
    settled,
    sh,
)
from proofs import every, rate, recovers, request_size, steps_down, worked
from scenario import HERE, LAB, Bench, Beside, Recipe, Scenario
from settings import limited_below, queue

MS = 1_000_000
MIB = 1 << 20
CPU = frozenset({"cpu-wait", "job-cpu", "depth", "one-cpu", "more-jobs-than-cpus"})
OTHERS = CPU | {"disagree", "neighbour"}
NEIGHBOUR, DISAGREE = CPU | {"neighbour"}, CPU | {"disagree"}
PUNCH_HOLE_KEEP_SIZE = 3


def shell(line: str) -> Beside:
    """A shell command that runs until the scenario ends; ``$PLACE`` is the session's path."""

    def begin(bench: Bench) -> None:
        process = subprocess.Popen(
            ["sh", "-c", f"ulimit -t {loads.LONGEST_S}; {line}"], start_new_session=True,
            env={**os.environ, "PLACE": bench.path or str(bench.here / "mounted")},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        bench.stack.callback(end_group, process)

    return begin


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a program and all programs it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    # its children go on writing until their last system call has ended
    settled(lambda: not _has_members(process.pid))


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def journaled(below: Recipe) -> Recipe:
    """A file system that writes all data to its journal first."""

    def make(bench: Bench) -> str:
        place = ext4(below)(bench)
        sh("umount", place)
        sh("mount", "-o", "data=journal", bench.node, place)
        return place

    return make


def fragmented(below: Recipe, mib: int = 32) -> Recipe:
    """A file whose blocks of 4 KiB are not adjacent: the file system was full, and every second
    block was freed again."""

    def make(bench: Bench) -> str:
        place = Path(ext4(below)(bench))
        with open(place / "rest", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(MIB))
            except OSError:
                size = os.fstat(file.fileno()).st_size
            os.fsync(file.fileno())
            libc = ctypes.CDLL(None, use_errno=True)
            for offset in range(0, min(size, 2 * mib * MIB), 8192):
                libc.fallocate(file.fileno(), PUNCH_HOLE_KEEP_SIZE, ctypes.c_long(offset),
                               ctypes.c_long(4096))  # fmt: skip
            os.fsync(file.fileno())
        with open(place / "file", "wb") as file:
            file.write(bytes(mib * MIB - 4 * MIB))
            file.flush()
            os.fsync(file.fileno())
        return str(place / "file")

    return make


def freeze(bench: Bench) -> None:
    """Freeze the file system: writes wait until ``thaw``."""
    bench.stack.callback(subprocess.run, ["fsfreeze", "-u", bench.path], capture_output=True)
    sh("fsfreeze", "-f", bench.path)


def thaw(bench: Bench) -> None:
    """Let the file system write again."""
    sh("fsfreeze", "-u", bench.path)


def two_disks(first: Recipe, second: Recipe) -> Recipe:
    """A linear volume of two disks."""

    def make(bench: Bench) -> str:
        nodes = [first(bench), second(bench)]
        load("dm_mod")
        sizes = [sectors(node) for node in nodes]
        table = f"0 {sizes[0]} linear {nodes[0]} 0\n{sizes[0]} {sizes[1]} linear {nodes[1]} 0"
        sh("dmsetup", "create", "scoreboard", "--noudevsync", "--table", table)
        bench.stack.callback(sh, "dmsetup", "remove", "--noudevsync", "--retry", "scoreboard")
        sh("dmsetup", "mknodes", "scoreboard")
        bench.node = "/dev/mapper/scoreboard"
        return bench.node

    return make


def encrypted_by_workers(below: Recipe) -> Recipe:
    """dm-crypt with its defaults: its workers encrypt on all CPUs."""

    def make(bench: Bench) -> str:
        node = below(bench)
        load("dm_crypt")
        key = "00" * 64
        sh("dmsetup", "create", "scoreboard", "--uuid", "CRYPT-PLAIN-scoreboard", "--noudevsync",
           "--table", f"0 {sectors(node)} crypt aes-xts-plain64 {key} 0 {node} 0")  # fmt: skip
        bench.stack.callback(sh, "dmsetup", "remove", "--noudevsync", "--retry", "scoreboard")
        sh("dmsetup", "mknodes", "scoreboard")
        bench.node = "/dev/mapper/scoreboard"
        return bench.node

    return make


def striped(chunk: int) -> Recipe:
    """An md RAID 0 of two loop devices with chunks of ``chunk`` KiB."""

    def make(bench: Bench) -> str:
        needs("mdadm")
        load("raid0")
        members = [loop(64)(bench) for _ in range(2)]
        sh("mdadm", "--create", "/dev/md127", "--level=0", "--raid-devices=2", "--run",
           f"--chunk={chunk}", "--metadata=1.2", *members)  # fmt: skip
        bench.stack.callback(sh, "mdadm", "--stop", "/dev/md127")
        bench.node = "/dev/md127"
        return bench.node

    return make


def member(array: Recipe) -> Recipe:
    """The first member of an array."""

    def make(bench: Bench) -> str:
        array(bench)
        first = min(path.name for path in Path("/sys/block", bench.disk, "slaves").iterdir())
        bench.node = f"/dev/{first}"
        return bench.node

    return make


WRITER = "while :; do dd if=/dev/zero of=$PLACE/beside bs=1M count=700 conv=fdatasync; done"
READS = {"ioengine": "psync", "rw": "randread", "bs": "64k"}

SCENARIOS = (
    Scenario("shared-write-back", HERE, "reads beside another program's buffered writes",
             ext4(loop(1300)), {"iodepth": 4, "bs": "64k"}, {}, OTHERS | {"background"},
             never=("because the job syncs",), seconds=16, size="64m", beside=(shell(WRITER),),
             proof=rate(100, "writes")),
    Scenario("shared-discards", HERE, "another program's discards", loop(),
             {"iodepth": 2, "rate_iops": 2000}, {"disagree": ("discards/s",)}, NEIGHBOUR,
             seconds=12,
             beside=(loads.fio(rw="randtrim", iodepth=16),), proof=rate(1000, "discards")),
    Scenario("shared-syncs", HERE, "another program reads while the job syncs each write",
             ext4(loop(600)),
             {"rw": "randwrite", "ioengine": "psync", "bs": "8k", "fdatasync": 1}, {},
             OTHERS | {"flush"}, never=("because the job syncs",), seconds=13, size="64m",
             beside=(loads.fio(bs="64k", iodepth=16),), proof=rate(1000, "reads")),
    Scenario("shared-other-way", HERE, "another program reads as much as the job writes", loop(),
             {"rw": "randread", "iodepth": 4, "rate_iops": 3000},
             {"disagree": ("writes/s",)}, NEIGHBOUR, seconds=13,
             beside=(loads.fio(rw="randwrite", iodepth=16),), proof=rate(1000, "writes")),
    Scenario("shared-two", HERE, "two other programs, one of which reads and one writes", loop(),
             {"iodepth": 4, "rate_iops": 1000},
             {"neighbour": ("reads/s", "writes/s")}, DISAGREE, seconds=14,
             beside=(loads.fio(bs="256k", iodepth=8),
                     loads.fio(bs="256k", iodepth=8, rw="randwrite")),
             proof=rate(500, "writes")),
    Scenario("innocent", HERE, "a program on another disk that reads as much as the job's disk is "
             "written by somebody else", ext4(loop(1300)), {"iodepth": 4, "bs": "64k"}, {},
             OTHERS | {"background"}, never=("stop it while you measure: fio",), seconds=15,
             size="64m",
             beside=(shell(WRITER), loads.fio(loop(), bs="256k", iodepth=4)),
             proof=rate(100, "writes")),
    Scenario("own-write-back", HERE, "the job's own buffered writes, alone", ext4(loop(600)),
             {"rw": "randwrite", "ioengine": "psync", "direct": 0}, {},
             frozenset({"disagree", "write-back"}) | CPU, never=("another program",), seconds=14,
             size="128m", proof=rate(1, "writes")),
    Scenario("data-journal", HERE, "direct writes with data=journal", journaled(loop(600)),
             {"rw": "randwrite", "iodepth": 4}, {},
             frozenset({"disagree", "above"}) | CPU, never=("never written", "another program"),
             seconds=12, size="64m", proof=rate(1, "writes")),
    Scenario("frozen", HERE, "a file system that is frozen for 7 s", ext4(loop()),
             {"rw": "randwrite", "ioengine": "psync"}, {"stalled": ("fsfreeze",)},
             CPU | {"disagree", "burst"}, seconds=16, size="32m",
             during=((4.0, freeze), (11.0, thaw)),
             proof=every(worked(100), recovers(0.5))),
    Scenario("appending", HERE, "libaio that appends, so that io_submit blocks", ext4(loop(2600)),
             {"rw": "write", "iodepth": 32, "fallocate": "none", "create_on_open": 1,
              "file_append": 1, "size": "1500m"},
             {"above": ("submission blocks",)}, CPU, seconds=10, size="1500m", proof=worked(500)),
    Scenario("fragmented", HERE, "64 KiB reads of a file of 4 KiB pieces", fragmented(loop(200)),
             {"rw": "read", "bs": "64k", "iodepth": 4, "rate_iops": 500},
             {"disagree": ("fragmented",)}, CPU, never=("max_sectors_kb",), seconds=9,
             proof=request_size(32768)),
    Scenario("tags-and-hogs", HERE, "four tags for 16 I/Os, beside a program that uses a CPU",
             queue(loop(), nr_requests=4), {"iodepth": 16, "bs": "64k"},
             # a job that finds no tag is blocked in the call that submits
             {"tags": ("holds 4 requests",)}, CPU | {"saturated", "above"}, seconds=11,
             beside=(loads.hogs(0),), proof=worked(100)),
    Scenario("cached-loop", HERE, "a loop device whose file is in the page cache",
             loop_on(loop()), {"iodepth": 8}, {}, CPU | {"layer", "above"}, seconds=9,
             proof=worked(100)),
    Scenario("near-limit", LAB, "dm-delay of 40 ms at depth 9 above a limit that is not reached",
             limited_below(delayed(null(), 40), riops=260), {"iodepth": 9}, {"layer": ("dm-",)},
             never=("io.max",), seconds=12, proof=worked(150, 240)),
    Scenario("encryption", LAB, "dm-crypt whose workers fill the CPUs",
             encrypted_by_workers(null(irqmode=0)), {"iodepth": 8, "bs": "64k", "numjobs": 4},
             {"layer": ("dm-crypt", "encryption")}, CPU | {"disagree"}, seconds=12,
             proof=worked(100)),
    Scenario("crossing-disks", LAB, "a sequential job that reaches a slower disk of a volume",
             two_disks(null(completion_nsec=1 * MS, size=20), null(completion_nsec=6 * MS)),
             {"rw": "read"}, seconds=16, proof=steps_down),
    Scenario("chunks", LAB, "16 KiB reads of a RAID 0 of 4 KiB chunks", striped(4),
             {"bs": "16k", "iodepth": 4}, {"disagree": ("chunks of md",)}, CPU,
             never=("max_sectors_kb",), seconds=9, proof=request_size(8192)),
    Scenario("resync-member", LAB, "a member of an array that is resyncing, without a job",
             member(mirror(resync=True)), None, {"array": ("is a member",)}, seconds=16,
             proof=rate(1, "reads", "writes")),
    Scenario("below-a-volume", LAB, "another program on the disk below a volume that the job syncs",
             linear(null(completion_nsec=4 * MS)),
             {"rw": "randwrite", "ioengine": "psync", "fsync": 8}, {"neighbour": ("reads/s",)},
             frozenset({"flush", "disagree"}), seconds=13, beside=(loads.below(iodepth=24),),
             proof=worked(20)),
)  # fmt: skip
