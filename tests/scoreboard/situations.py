"""Situations for `iopstui why`, and the right answers (``Situation`` explains the columns).

One request alone takes 0.3 to 3 ms on an emulated disk, and 2 ms on the slow ones, which do 500 a
second. If 16 or more are in flight and take many times that, they wait for each other. A disk
without such a limit is faster than the emulated CPUs, so nothing can wait for it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from pathlib import Path

from answers import MEMORY, Situation, child, fio, pressure, start
from devices import (
    array,
    delayed,
    disk,
    encrypted,
    ext4,
    flakey,
    grows_at_the_end,
    linear,
    load,
    loop_on,
    lost,
    mapped,
    needs,
    null,
    nvme_loop,
    one_by_one,
    partition,
    put,
    scsi_debug,
    settled,
    sh,
    snapshot,
    suspend,
    thin,
    unanswered,
    xfs,
    zram,
)
from effect import Effect
from proofs import every, rate
from scenario import Bench, Beside, Proof, Recipe, no_proof
from scenarios.without_job import IN_IO_URING, swap
from settings import (
    bfq_weight,
    cost,
    cpu_group,
    cpu_limit,
    dirty_bytes,
    group2,
    io_max,
    queue,
)

SLOW, VIRTIO, NVME = disk("VSLOW4Q"), disk("VBLK4Q"), disk("NVME4Q")
USER, OTHER = 65532, 65531
"""User IDs of those who do I/O; another user asks."""


# -- proofs


def held(least: float, ms: float, most: float = float("inf")) -> Proof:
    """On average ``least`` to ``most`` requests are in flight, and each takes at least ``ms``."""

    def proof(effect: Effect) -> str:
        span = effect.last
        fits = least <= span.in_flight <= most and span.wait >= ms
        return "" if fits else f"{span.in_flight:.1f} in flight, {span.wait:.2f} ms each"

    return proof


def quick(ms: float, most: float = float("inf"), least: float = 0.0) -> Proof:
    """Requests take at most ``ms``, at most ``most`` are in flight, and at least ``least`` a second
    complete."""

    def proof(effect: Effect) -> str:
        span = effect.last
        per_s = span.done / span.seconds
        fits = span.wait <= ms and span.in_flight <= most and per_s >= least
        return "" if fits else f"{per_s:.0f}/s, {span.in_flight:.1f} in flight, {span.wait:.2f} ms"

    return proof


def pressed(kind: str, least: float, most: float = 101.0) -> Proof:
    """Tasks wait for ``kind`` for ``least`` to ``most`` percent of the time (PSI)."""

    def proof(effect: Effect) -> str:
        percent = pressure(effect, kind)
        return "" if least <= percent <= most else f"tasks wait for {kind} {percent:.0f} %"

    return proof


def checking(effect: Effect) -> str:
    """An md array is being checked at the beginning and at the end."""
    states = effect.last.before, effect.last.after
    all_say = all("check =" in state.watched["/proc/mdstat"] for state in states)
    return "" if all_say else "no array is checked"


# -- devices and load


def swapped(below: Recipe, mib: int = 48) -> Recipe:
    """The machine swaps to this disk, and a group may use ``mib`` MiB of memory."""

    def make(bench: Bench) -> str:
        node = swap(below)(bench)
        bench.groups.append(group2(bench, "memory", "-memory"))
        (bench.groups[-1] / "memory.max").write_text(str(mib << 20))
        return node

    return make


def short_of_memory(below: Recipe, mib: int = 24) -> Recipe:
    """A group may use ``mib`` MiB of memory, page cache included, without swap."""

    def make(bench: Bench) -> str:
        node = below(bench)
        bench.groups.append(group2(bench, "memory", "-memory"))
        (bench.groups[-1] / "memory.high").write_text(str(mib << 20))
        return node

    return make


def limited_cache(below: Recipe, limit: str) -> Recipe:
    """A group with this limit in io.max, which applies to its write-back, too."""

    def make(bench: Bench) -> str:
        path = io_max(below, limit)(bench)
        group2(bench, "memory")
        return path

    return make


def checked(below: Recipe) -> Recipe:
    """An md array that is checked as fast as it can, again and again."""

    def make(bench: Bench) -> str:
        load("raid1")
        put(bench, Path("/proc/sys/dev/raid/speed_limit_min"), "200000")
        node = below(bench)
        start("while :; do echo check > /sys/block/md127/md/sync_action; sleep 0.5; done")(bench)
        bench.pids.clear()
        return node

    return make


def flushed_early(below: Recipe) -> Recipe:
    """The kernel begins to write back at 1 MiB of dirty pages, without blocking programs."""

    def make(bench: Bench) -> str:
        path = below(bench)
        put(bench, Path("/proc/sys/vm/dirty_background_ratio"), "10")
        Path("/proc/sys/vm/dirty_background_bytes").write_text(str(1 << 20))
        return path

    return make


def file_in(below: Recipe, mib: int = 64) -> Recipe:
    """A file of ``mib`` MiB in this directory."""

    def make(bench: Bench) -> str:
        file = Path(below(bench), "file")
        file.write_bytes(os.urandom(mib << 20))
        os.sync()
        return str(file)

    return make


def stopped(bench: Bench) -> None:
    """A signal stops the first program after its I/O has begun."""
    time.sleep(3)
    os.kill(bench.pids[0], signal.SIGSTOP)
    bench.stack.callback(os.kill, bench.pids[0], signal.SIGCONT)


def frozen_group(bench: Bench) -> None:
    """The group's programs are frozen after their I/O has begun."""
    time.sleep(3)
    put(bench, bench.groups[0] / "cgroup.freeze", "1")


def python(code: str, *arguments: str) -> Beside:
    """A Python program."""
    return start("exec " + shlex.join([sys.executable, "-c", code, *arguments]))


TOUCH = """
import os, random
pages = [bytearray(os.urandom(4096)) for _ in range(24 << 10)]
while True: random.choice(pages)[0] ^= 1
"""
GREEDY = """
import os
while True: held = [bytearray(os.urandom(4096) * 256) for _ in range(192)]
"""
COMMITS = """
import os, sqlite3
one = sqlite3.connect(os.environ["PLACE"] + "/rows")
one.execute("create table rows (a, b)")
while True:
    one.execute("insert into rows values (1, 'some text')")
    one.commit()
"""
MSYNC = """
import mmap, os, random
file = open(os.environ["PLACE"] + "/mapped", "w+b")
file.truncate(16 << 20)
page = mmap.mmap(file.fileno(), 0)
while True:
    at = random.randrange(4096) * 4096
    page[at] = (page[at] + 1) % 256
    page.flush(at, 4096)
"""
THREADS = """
import mmap, os, random, threading, time
for _ in range(29): threading.Thread(target=time.sleep, args=(300,)).start()
def read():
    disk, page = os.open(os.environ["NODE"], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
    while True: os.preadv(disk, [page], random.randrange(100_000) * 4096)
threading.Thread(target=read).start()
"""
READS = (
    "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (n=$i; while :; do n=$(((n + 7919) % 200)); "
    "dd if=$NODE of=/dev/null bs=4k count=300 skip=$((n * 1000)) iflag=direct; done) & done; wait"
)
TREE = ("mkdir $PLACE/t; cd $PLACE/t; head -c 40M /dev/zero | split -a 4 -b 16384; sync; "
        "while :; do echo 3 > /proc/sys/vm/drop_caches; ")  # fmt: skip
SPIN = "for i in 1 2 3 4; do while :; do :; done & done; wait"
FILES = "--directory=$PLACE --size=32m --thread"
BATCH = "--iodepth_batch_complete_min=8"
SINGLE, HALF, DEEP = "--ioengine=psync", f"--iodepth=16 {BATCH}", f"--iodepth=32 {BATCH}"
OWN = (f"exec {sys.executable} -m iopstui run $NODE --job randread-4k --set iodepth=32 "
       "--set runtime=300")  # fmt: skip
PLAIN = ("fio --name=hog --ioengine=libaio --direct=1 --rw=randread --bs=4k --time_based "
         "--runtime=300 --thread --filename=$NODE")  # fmt: skip
BY_PID = r"\(PID\)"
QUEUE = held(20, 25)
ANY = "06 06 06 - -"
ZOMBIE = """
import os, time
if not os.fork(): os._exit(0)
time.sleep(300)
"""


MEMBARRIER = """
import ctypes
call = ctypes.CDLL(None).syscall
while True: call(324, 1, 0, 0)
"""
APPENDS = """
import os
log = os.open(os.environ["PLACE"] + "/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_SYNC)
while True:
    for _ in range(20_000): os.write(log, b"x" * 300)
    os.ftruncate(log, 0)
"""
FAULTS = """
import mmap, os, random
with open(os.environ["PLACE"] + "/cold", "w+b") as file:
    file.write(os.urandom(96 << 20))
    os.fsync(file.fileno())
    pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    pages.madvise(mmap.MADV_RANDOM)
    while True:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        pages.madvise(mmap.MADV_DONTNEED)
        for _ in range(5000): pages[4096 * random.randrange(24 << 10)]
"""


FUSE_READS = """
import os, random
file = os.open(os.environ["PLACE"] + "/file", os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
while True:
    os.pread(file, 4096, random.randrange(16 << 10) * 4096)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
"""


def both_disks(first: Recipe, second: Recipe, mib: int = 256) -> Recipe:
    """A linear volume of ``mib`` MiB of each of two disks; the second is OTHER."""

    def make(bench: Bench) -> str:
        nodes = [first(bench), second(bench)]
        load("dm_mod")
        size = mib * 2048
        table = f"0 {size} linear {nodes[0]} 0\n{size} {size} linear {nodes[1]} 0"
        bench.others.append(nodes[1])
        return mapped(bench, table)

    return make


def lame(first: Recipe, second: Recipe) -> Recipe:
    """An md mirror of two disks; the second is OTHER."""

    def make(bench: Bench) -> str:
        nodes = [first(bench), second(bench)]
        load("raid1")
        bench.others.append(nodes[1])
        sh("mdadm", "--create", "/dev/md127", "--level=1", "--raid-devices=2", "--run",
           "--assume-clean", "--bitmap=none", "--metadata=1.2", *nodes)  # fmt: skip
        bench.stack.callback(sh, "mdadm", "--stop", "/dev/md127")
        bench.node = "/dev/md127"
        return bench.node

    return make


def cached_loop(below: Recipe, mib: int = 24) -> Recipe:
    """A loop device (OTHER) on a file of ext4 on the disk; the file is in the page cache."""

    def make(bench: Bench) -> str:
        top = ext4(below)
        place = Path(top(bench))
        disk = bench.node
        file = place / "image"
        file.write_bytes(os.urandom(mib << 20))
        os.sync()
        node = sh("losetup", "--find", "--show", str(file))
        bench.stack.callback(sh, "losetup", "--detach", node)
        file.read_bytes()
        bench.others.append(node)
        bench.node = disk
        return str(place)

    return make


def read_loop(bench: Bench) -> None:
    """A reader of OTHER at a set rate."""
    fio("--bs=64k --iodepth=4 --rate=4m", f"--filename={bench.others[0]} --thread")(bench)


def ram_disk(bench: Bench) -> str:
    """A RAM disk (brd)."""
    load("brd", "rd_nr=1", "rd_size=131072")
    bench.stack.callback(sh, "modprobe", "-r", "brd")
    bench.node = "/dev/ram0"
    return bench.node


def network_block(below: Recipe) -> Recipe:
    """A network block device; qemu-nbd serves the disk."""

    def make(bench: Bench) -> str:
        node = below(bench)
        load("nbd")
        needs("qemu-nbd")
        sh("qemu-nbd", "--fork", "-f", "raw", "--cache=none", "--aio=native", "-c", "/dev/nbd0",
           node)  # fmt: skip
        bench.stack.callback(sh, "qemu-nbd", "-d", "/dev/nbd0")
        bench.node = "/dev/nbd0"
        return bench.node

    return make


def slow_fuse(below: Recipe) -> Recipe:
    """A directory of a FUSE file system whose server takes 0.1 s for each read, beside a disk."""

    def make(bench: Bench) -> str:
        below(bench)
        load("fuse")
        place = bench.here / "fuse"
        place.mkdir()
        server = Path(__file__).with_name("fuse_server.py")
        start(f"exec {sys.executable} {server} {place} 0.1")(bench)
        bench.pids.clear()
        bench.stack.callback(sh, "umount", "--lazy", str(place))
        settled((place / "file").exists)
        return str(place)

    return make


def frozen(bench: Bench) -> None:
    """Freeze the file system: its writes wait."""
    time.sleep(6)
    bench.stack.callback(sh, "fsfreeze", "-u", bench.path)
    sh("fsfreeze", "-f", bench.path)


SITUATIONS = (
    # -- one program's deep queue, on each kind of disk
    Situation("slow", "32 reads in flight on a disk of 500 IOPS", SLOW, (fio(DEEP),), "4", QUEUE,
              BY_PID),
    Situation("nvme", "32 reads in flight on an NVMe drive that a slow disk serves",
              nvme_loop(SLOW), (fio(DEEP),), "4", QUEUE, BY_PID),
    Situation("scsi", "32 writes in flight on a SCSI disk of 500 IOPS", disk("SSLOW4Q"),
              (fio(f"{DEEP} --rw=randwrite"),), "4", QUEUE, BY_PID),
    Situation("loop", "32 reads in flight on a loop device on a slow disk", loop_on(SLOW),
              (fio(DEEP),), "4", QUEUE, BY_PID),
    Situation("linear", "32 reads in flight on dm-linear on a slow disk", linear(SLOW),
              (fio(DEEP),), "4", QUEUE, BY_PID),
    Situation("partition", "32 reads in flight on a partition of a slow disk", partition(SLOW),
              (fio(DEEP),), "4", QUEUE, BY_PID),
    Situation("raid0", "32 reads in flight on a raid0 of two disks of 500 IOPS", array(0, 2),
              (fio(DEEP),), "4", held(20, 15), BY_PID, says="▲ md127"),
    Situation("raid1", "32 reads and writes in flight on a raid1", array(1, 2),
              (fio(f"{DEEP} --rw=randrw"),), "4", held(3, 6), BY_PID),
    Situation("raid5", "32 writes in flight on a raid5", array(5, 3),
              (fio(f"{DEEP} --rw=randwrite"),), "4", held(20, 30), BY_PID),
    Situation("short-queue", "the same raid0, whose disks take 2 requests at once",
              array(0, 2, slots=2), (fio(DEEP),), "4 46 4 4 46", held(2, 3, 9),
              asleep="blk_mq_get_tag"),
    # -- which program
    Situation("two-users", "two users with 16 reads in flight each", SLOW,
              (fio(HALF, user=USER), fio(HALF, user=OTHER)), "4", QUEUE),
    Situation("group", "a program in a cgroup of its own, as in a container", io_max(SLOW),
              (fio(DEEP, user=USER),), "4", QUEUE, r"\(PID\)|iopstui-scoreboard"),
    Situation("processes", "sixteen processes that read one by one", SLOW,
              (fio(f"{SINGLE} --numjobs=16", "--filename=$NODE"),), "4", held(10, 15), r"fio",
              who=child),
    Situation("reaped", "twelve shells that start dd again and again", SLOW, (start(READS),),
              "4 4 4 46 46", held(6, 10), r"\b(dd|sh)\b", who=child, asleep=r"wait"),
    Situation("threads", "sixteen threads that read one by one", SLOW,
              (fio(f"{SINGLE} --numjobs=16"),), "4", held(10, 15), BY_PID),
    Situation("io-uring", "32 reads in flight by io_uring", SLOW,
              (fio(f"--ioengine=io_uring {DEEP}"),), "4", QUEUE, BY_PID),
    Situation("mmap", "eight threads that read pages of a mapping", SLOW,
              (fio("--ioengine=mmap --numjobs=8"),), "4", held(5, 8), BY_PID),
    Situation("victim", "one that reads one by one beside another's 32 writes", SLOW,
              (fio(f"{DEEP} --rw=randwrite"), fio(SINGLE, user=USER, name="reader")),
              "4", QUEUE, BY_PID,
              who=lambda bench: bench.pids[1]),
    Situation("own-job", "a job of `iopstui run` with 32 reads in flight", SLOW, (start(OWN),),
              "4 4 4 - -", QUEUE, r"fio", settle=20),
    # -- writes
    Situation("fsync", "eight threads that sync each write of their file", ext4(SLOW),
              (fio(f"{SINGLE} --direct=0 --rw=write --fsync=1 --numjobs=8", FILES),),
              "46 46 46 4 46", held(0.9, 2), settle=15),
    Situation("fsync-processes", "eight processes that sync each write of their file", ext4(SLOW),
              (fio(f"{SINGLE} --direct=0 --rw=write --fsync=1 --numjobs=8",
                   "--directory=$PLACE --size=16m"),), "46 46 46 4 46", held(0.9, 2), who=child,
              settle=15),
    Situation("database", "one thread with O_DSYNC", ext4(SLOW),
              (fio(f"{SINGLE} --rw=randwrite --bs=8k --sync=dsync", FILES),), "06 06 06 4 46",
              held(0.5, 1, 2.5), settle=5),
    Situation("flood", "buffered writes, faster than the disk takes them",
              dirty_bytes(ext4(null(memory_backed=1, mbps=20)), 32 << 20),
              (fio(f"{SINGLE} --direct=0 --rw=write --bs=1m --size=200m", "--directory=$PLACE"),),
              "4", every(held(4, 5), pressed("io", 30)), r"fio", who=child),
    Situation("write-back", "buffered writes at 4 MiB/s, which the disk takes easily",
              flushed_early(ext4(null(memory_backed=1, mbps=40))),
              (fio(f"{SINGLE} --direct=0 --rw=write --bs=64k --size=200m --rate=4m",
                   "--directory=$PLACE"),), "0", every(rate(1, "writes"), pressed("io", 0, 8)),
              who=child),
    Situation("journal", "six that sync, on a disk that takes 30 ms", ext4(delayed(VIRTIO, 30)),
              (fio(f"{SINGLE} --direct=0 --rw=write --fsync=1 --numjobs=6", FILES),), "4",
              every(held(0.5, 25), pressed("io", 30)), settle=10),
    Situation("swap", "a group with half the memory that its program uses, and swap",
              swapped(SLOW), (python(TOUCH),), "4 4 4 46 46",
              every(held(0.5, 1.5), pressed("io", 30)), settle=20),
    # -- md
    Situation("check", "an md array is checked, and nobody uses it",
              checked(array(1, 2, 2, 256)), (start("exec sleep 300"),), "0",
              every(checking, pressed("io", 0, 5))),
    Situation("check-slow", "the same on disks that take 8 ms for each request",
              checked(array(1, 2, 8, 128)), (start("exec sleep 300"),), "0",
              every(checking, pressed("io", 0, 5))),
    Situation("check-reader", "one that reads one by one from an array that is checked",
              checked(array(1, 2, 8, 128)), (fio(SINGLE),), "4",
              every(checking, held(0.6, 15), pressed("io", 15))),
    # -- limits
    Situation("io-max", "a cgroup at its limit of 100 reads/s", io_max(VIRTIO, "riops=100"),
              (fio("--iodepth=16"),), "4", quick(20, 2, 50), says=r"io\.max"),
    Situation("io-max-bytes", "a cgroup at its limit of 1 MiB/s", io_max(VIRTIO, "rbps=1048576"),
              (fio("--iodepth=8 --bs=16k"),), "4", quick(20, 2, 30), says=r"io\.max"),
    Situation("io-max-above", "a cgroup whose parent is at its limit",
              io_max(VIRTIO, "riops=100", above=True), (fio("--iodepth=16"),), "4",
              quick(20, 2, 50), says=r"io\.max"),
    Situation("io-cost", "io.cost with a model of 200 IOPS", cost(VIRTIO, 200),
              (fio(f"{SINGLE} --numjobs=8"),), "4 46 4 4 46", quick(20, 4, 20), says=r"io\.cost"),
    Situation("bfq-weight", "bfq: a program of little weight beside 32 reads in flight",
              bfq_weight(queue(SLOW, scheduler="bfq"), 10),
              (fio(SINGLE), fio(DEEP, outside=True)), "46 46 46 4 46", QUEUE),
    # -- devices that are slow or complete nothing
    Situation("delay", "one read after another through dm-delay of 50 ms", delayed(VIRTIO, 50),
              (fio(SINGLE),), "4", held(0.8, 45), BY_PID),
    Situation("flakey", "one read after another, that fail for 2 s in 6", flakey(VIRTIO, 4, 2),
              (fio(f"{SINGLE} --continue_on_error=all --rate_iops=100"),), ANY, rate(20, "reads")),
    Situation("suspended", "a suspended device-mapper device that somebody reads", linear(VIRTIO),
              (fio(SINGLE), suspend), "4", quick(0, 99)),
    Situation("silent", "four reads in flight on a SCSI disk that answers nothing", scsi_debug(),
              (fio("--iodepth=4"), unanswered(55, -1)), "4", quick(60e3, 5)),
    Situation("timeout", "a SCSI disk that leaves one in 50 commands without answer",
              scsi_debug(), (fio("--iodepth=4"), unanswered(4, 50)), "4", held(1, 50)),
    # -- nothing waits
    Situation("idle", "a machine that does nothing, and a process that sleeps", VIRTIO,
              (start("exec sleep 300"),), "0", quick(0, 0)),
    Situation("single", "one read after another on a slow disk", SLOW, (fio(SINGLE),),
              "0 0 0 4 46", held(0.8, 1.5, 1.2)),
    Situation("pair", "two that read one by one on a slow disk", SLOW,
              (fio(f"{SINGLE} --numjobs=2"),), "06 06 06 4 46", held(1.4, 2.5, 2.2)),
    Situation("nvme-four", "four reads in flight on an NVMe drive", NVME, (fio("--iodepth=4"),),
              "0 0 0 - -", every(held(1.5, 0), quick(1.5))),
    Situation("null-quick", "32 reads in flight on a device that takes 0.1 ms for each",
              null(completion_nsec=100_000), (fio(DEEP),), ANY, every(held(4, 0), quick(1.5))),
    Situation("null-parallel", "24 reads in flight on a device that does 64 at once in 1.5 ms each",
              null(completion_nsec=1_500_000), (fio("--iodepth=24"),), ANY, held(12, 1.4)),
    Situation("ring", "a program that waits in io_uring for a pipe", VIRTIO, (python(IN_IO_URING),),
              "0", every(quick(0, 0), pressed("io", 50)), says="io_uring", asleep="io_cqring_wait"),
    Situation("cpu", "full CPUs beside a reader of 50 IOPS", VIRTIO,
              (fio(f"{SINGLE} --rate_iops=50"), start(SPIN)), ANY,
              every(quick(20, 1), pressed("cpu", 40))),
    Situation("memory", "a group short of memory, without swap", short_of_memory(VIRTIO),
              (python(GREEDY),), "0", every(quick(0, 0), pressed("memory", 10)), asleep="."),
    Situation("lock", "a process that waits for another's lock", VIRTIO,
              (start("exec flock lock sleep 300"), start("sleep 1; exec flock lock true")), "0",
              quick(0, 0), who=lambda bench: bench.pids[1], asleep="lock", settle=3),
    Situation("bursts", "a second of 64 reads in flight, every four seconds", SLOW,
              (fio("--iodepth=64 --thinktime=3s --thinktime_blocks=512"),), ANY, held(2, 20, 32)),
    Situation("ended", "a load that has ended before", SLOW,
              (fio(f"{DEEP} --runtime=4", ends=True),), "0 0 0 - -", quick(0, 0)),
    Situation("discard", "blkdiscard of the whole disk again and again", VIRTIO,
              (start("while :; do blkdiscard -f $NODE; done"),), "0 0 0 - -", rate(1, "discards")),
    Situation("cached", "reads of a file that is in the page cache", ext4(VIRTIO),
              (fio(f"{SINGLE} --direct=0 --size=32m --invalidate=0 --pre_read=1",
                   "--directory=$PLACE"),), "0", quick(99, 0.05), who=child, settle=8),
    Situation("find", "find in a tree that is not cached", ext4(SLOW),
              (start(f"{TREE} find . -size +1k; done"),), "0 0 0 - -",
              every(quick(9, 2), rate(1, "reads")), settle=8),
    Situation("tar", "tar of a tree that is not cached", ext4(SLOW),
              (start(f"{TREE} tar cf - . | cat; done"),), "0 0 0 - -",
              every(quick(9, 3), rate(50, "reads")), settle=8),
    Situation("copy", "dd of a disk through the page cache", VIRTIO,
              (start("while :; do dd if=$NODE of=/dev/null bs=1M; echo 3 > "
                     "/proc/sys/vm/drop_caches; done"),), "0 0 0 - -",
              every(quick(5, 3.5), rate(50, "reads"))),
    Situation("lonely", "a read each second on a disk that takes 100 ms", delayed(VIRTIO, 100),
              (fio(f"{SINGLE} --rate_iops=1"),), "0", held(0.05, 90, 0.2)),
    # -- further kinds
    Situation("crypt", "32 reads in flight on dm-crypt on a slow disk", encrypted(SLOW),
              (fio(DEEP),), "4", held(8, 12), BY_PID),
    Situation("raid10", "32 reads in flight on a raid10 of four disks of 500 IOPS", array(10, 4),
              (fio(DEEP),), "4", held(15, 6), BY_PID, says="▲ md127"),
    Situation("loop-file", "32 reads in flight on a loop device on a file on a slow disk",
              loop_on(file_in(ext4(SLOW))), (fio(DEEP),), "4", QUEUE, BY_PID, settle=5),
    Situation("kyber", "32 reads in flight on a slow disk with kyber",
              queue(SLOW, scheduler="kyber"), (fio(DEEP),), "4", QUEUE, BY_PID),
    Situation("sqpoll", "32 reads in flight by io_uring with a polling thread", SLOW,
              (fio(f"--ioengine=io_uring --sqthread_poll=1 {DEEP}"),), "4 4 4 46 046", QUEUE,
              BY_PID, asleep="."),
    Situation("direct-file", "eight threads that read a file directly", ext4(SLOW),
              (fio(f"{SINGLE} --numjobs=8", FILES),), "4", held(5, 10), BY_PID, settle=12),
    Situation("no-counts", "32 reads in flight on a disk that does not count them",
              queue(SLOW, iostats=0), (fio(DEEP),), "46 46 46 - -", quick(0, 0), says="iostats"),
    Situation("stopped", "a program with 32 reads in flight that was stopped by a signal", SLOW,
              (fio(DEEP), stopped), "0", quick(0, 0), asleep=r"^T|, T", settle=6),
    Situation("zombie", "a program that has ended, whose parent did not ask for its exit code",
              VIRTIO, (python(ZOMBIE),), "0", quick(0, 0), who=child),
    Situation("pipe", "a program that waits for another's output", VIRTIO,
              (start("sleep 300 | cat"),), "0", quick(0, 0)),
    Situation("light", "150 reads/s one by one on a disk of 500 IOPS", SLOW,
              (fio(f"{SINGLE} --rate_iops=150"),), "0 0 0 046 046", held(0.2, 1.5, 0.6),
              asleep="."),
    Situation("always-busy", "one read after another on a device that takes 0.2 ms for each",
              null(completion_nsec=200_000), (fio(SINGLE),), "0 0 0 046 046", held(0.2, 0, 1.2),
              asleep="."),
    Situation("names", "a shell that makes and renames files", ext4(VIRTIO),
              (start("cd $PLACE; while :; do for i in 1 2 3 4 5 6 7 8; do echo > $i; mv $i a$i; "
                     "done; sleep 0.01; done"),), "0", quick(50, 1), asleep="."),
    Situation("half-slow", "32 reads in flight on a volume of a quick and a slow disk",
              both_disks(VIRTIO, SLOW), (fio(DEEP),), "4 4 4 046 046", held(8, 10), BY_PID,
              says="OTHER", asleep="."),
    Situation("slow-half", "32 writes in flight on a mirror of a quick and a slow disk",
              lame(VIRTIO, SLOW), (fio(f"{DEEP} --rw=randwrite"),), "4 4 4 046 046", held(8, 15),
              BY_PID, says="OTHER", asleep="."),
    Situation("other-partition", "one that reads one by one from a partition, beside 32 reads of "
              "another partition", partition(SLOW),
              (fio(DEEP, "--thread --filename=${NODE%1}2"), fio(SINGLE, name="reader")), "4",
              held(0.6, 15), BY_PID, who=lambda bench: bench.pids[1]),
    Situation("crawl", "one read after another on a device that takes 4 s for each",
              delayed(VIRTIO, 4000), (start("exec dd if=$NODE of=/dev/null bs=4k iflag=direct"),),
              "4 46 4 4 46", held(0.5, 3000)),
    Situation("frozen-files", "a writer on a file system that is frozen", ext4(VIRTIO),
              (fio(f"{SINGLE} --rw=randwrite --rate_iops=100", FILES), frozen),
              "046 046 046 046 046", quick(50, 1), never="is busy", asleep="."),
    Situation("flood-fsync", "one that syncs small writes beside another's buffered writes",
              dirty_bytes(ext4(null(memory_backed=1, mbps=20)), 32 << 20),
              (fio(f"{SINGLE} --direct=0 --rw=write --bs=1m --size=200m", "--directory=$PLACE"),
               fio(f"{SINGLE} --direct=0 --rw=write --fsync=1", FILES, name="small")),
              "4 46 4 4 46", held(2, 5), r"fio", who=lambda bench: bench.pids[1], settle=6),
    Situation("backup", "a database beside a copy of its disk",
              ext4(null(memory_backed=1, mbps=20)),
              (start("while :; do dd if=$NODE of=/dev/null bs=1M iflag=direct; done"),
               fio(f"{SINGLE} --rw=randwrite --bs=8k --sync=dsync", FILES, name="db")),
              "46 46 46 4 46", held(1.2, 8), r"\bdd\b|PID", who=lambda bench: bench.pids[1],
              settle=12),
    # -- further kinds, third part
    Situation("slow-writes", "writes take 40 ms, and reads are quick", delayed(VIRTIO, 40, 0),
              (fio(f"{SINGLE} --rw=randwrite"), fio(f"{SINGLE} --rate_iops=20", name="reader")),
              "4", held(0.7, 10, 2)),
    Situation("bandwidth", "eight reads of 1 MiB in flight on a disk of 20 MiB/s",
              null(mbps=20), (fio("--iodepth=8 --bs=1m"),), "4", held(4, 100), BY_PID),
    Situation("degraded", "32 reads in flight on a raid5 that has lost a disk", lost(array(5, 3)),
              (fio(DEEP),), "4", held(15, 15), BY_PID, says="degraded"),
    Situation("thin", "32 writes in flight on a thin volume on a slow disk", thin(SLOW),
              (fio(f"{DEEP} --rw=randwrite"),), "4", held(10, 20), BY_PID),
    Situation("snapshot", "32 writes in flight on a snapshot that is kept on a slow disk",
              snapshot(VIRTIO, SLOW, 16), (fio(f"{DEEP} --rw=randwrite"),), "4", held(10, 20)),
    Situation("loop-cached", "8 writes in flight on a loop device through the page cache",
              dirty_bytes(loop_on(file_in(ext4(null(memory_backed=1, mbps=20)), 200),
                                  direct=False), 16 << 20),
              (fio("--iodepth=8 --rw=randwrite --bs=64k"),), "4", held(4, 15), BY_PID, settle=6),
    Situation("dirty-group", "buffered writes in a group with little memory",
              short_of_memory(ext4(null(memory_backed=1, mbps=20)), 48),
              (fio(f"{SINGLE} --direct=0 --rw=write --bs=1m --size=200m", "--directory=$PLACE"),),
              "46", every(held(1, 5), pressed("io", 10)), who=child, settle=8),
    Situation("io-max-buffered", "buffered writes of a group at its limit of 2 MiB/s",
              dirty_bytes(limited_cache(ext4(VIRTIO), "wbps=2097152"), 16 << 20),
              (fio(f"{SINGLE} --direct=0 --rw=write --bs=64k --size=100m", "--directory=$PLACE"),),
              "46", every(quick(90, 3), rate(1, "writes"), pressed("io", 10)), never="is busy",
              who=child, asleep=".", settle=12),
    Situation("zram-swap", "a group short of memory that swaps to zram", swapped(zram(256)),
              (python(TOUCH),), "06", rate(50, "reads", "writes"), asleep=".", settle=15),
    Situation("quota", "a reader whose group may use a fifth of a CPU",
              cpu_group(null(completion_nsec=100_000)), (cpu_limit(20), fio(SINGLE)), "06",
              quick(5, 1, 10), asleep=".", settle=12),
    Situation("frozen-group", "a program with 32 reads in flight whose group is frozen",
              io_max(SLOW), (fio(DEEP), frozen_group), "0", quick(50, 0.1), asleep=".",
              settle=6),
    Situation("trim-reader", "one that reads one by one beside blkdiscard", VIRTIO,
              (fio(f"{SINGLE} --rate_iops=50"), start("while :; do blkdiscard -f $NODE; done")),
              "06 06 06 046 046", rate(1, "discards"), asleep="."),
    Situation("xfs-log", "one that syncs each write, on xfs on a disk that takes 40 ms for each",
              xfs(delayed(VIRTIO, 40, 0)),
              (fio(f"{SINGLE} --direct=0 --rw=randwrite --fsync=1", FILES),), "4 46 4 4 46",
              held(0.6, 30, 2), settle=8),
    Situation("sqlite", "a database program that commits one row after another", ext4(SLOW),
              (python(COMMITS),), "06 06 06 4 46", held(0.4, 1, 3), settle=5),
    Situation("msync", "a program that changes a mapping and syncs it, page by page", ext4(SLOW),
              (python(MSYNC),), "06 06 06 4 46", held(0.3, 1, 3), settle=5),
    Situation("io-thread", "a program of 30 threads of which one reads one by one", SLOW,
              (python(THREADS),), "06 06 06 46 46", held(0.6, 1.5, 1.2)),
    Situation("parent", "a program whose sixteen children read one by one", SLOW,
              (fio(f"{SINGLE} --numjobs=16", "--filename=$NODE"),), "4", held(8, 12), r"fio",
              asleep="."),
    Situation("pid-space", "32 reads in flight of a program in namespaces of its own", SLOW,
              (start(f"exec unshare -p -m -f --mount-proc {PLAIN} {DEEP}"),), "4", held(10, 20),
              r"fio", who=child),
    # -- further kinds, fourth part
    Situation("vfork", "a shell that starts a program again and again, beside 12 readers", SLOW,
              (start("while :; do /bin/true; done"), fio(f"{SINGLE} --numjobs=12", name="noise")),
              "4 4 4 06 06", held(6, 10), asleep="."),
    Situation("rcu", "one blocked in membarrier, not for I/O, beside 12 readers", SLOW,
              (python(MEMBARRIER), fio(f"{SINGLE} --numjobs=12", name="noise")), "4 4 4 06 06",
              held(6, 10), asleep="D "),
    Situation("check-loop", "a check of md beside reads of a loop device that is in the page cache",
              cached_loop(checked(array(1, 2, mib=96))), (read_loop,), "06",
              quick(1000, 1), says="of md127", never=r"loop\d[^\n]*md127", asleep="."),
    Situation("crypt-cpu", "32 writes in flight on dm-crypt, which needs all CPUs",
              encrypted(NVME), (fio("--iodepth=32 --rw=randwrite --bs=64k"),), "4 46 46 46 46",
              held(10, 15), BY_PID, asleep="."),
    Situation("brd", "32 reads in flight on a RAM disk, whose I/Os the kernel does not count",
              ram_disk, (fio("--iodepth=32"),), "06", no_proof, never="ram0 is idle", asleep="."),
    Situation("loop-loop", "32 reads in flight on a loop device on a loop device",
              loop_on(loop_on(SLOW)), (fio(DEEP),), "4", QUEUE, BY_PID),
    Situation("pool-full", "a libaio writer on a full thin pool", thin(NVME, 8),
              (fio("--iodepth=4 --rw=write --bs=64k"), grows_at_the_end), "46 6 46 4 6",
              quick(1000, 1), never="nothing waits", asleep="read_events", settle=8),
    Situation("pool-full-buffered", "a buffered writer on a full thin pool", thin(NVME, 8),
              (start("exec dd if=/dev/zero of=$NODE bs=1M"), grows_at_the_end), "4 46 4 4 46",
              quick(1000, 1), never="nothing waits", settle=8),
    Situation("cold-mapping", "major faults of a cold file, one by one", ext4(SLOW),
              (python(FAULTS),), "06 06 06 046 046", held(0.4, 1, 1.5), BY_PID, asleep=".",
              settle=10),
    Situation("appends", "O_SYNC appends, one by one", ext4(SLOW), (python(APPENDS),),
              "06 06 06 4 46", held(0.3, 1, 3), settle=5),
    Situation("tmpfs", "writes to a file in memory beside an idle disk", SLOW,
              (start(f"while :; do dd if=/dev/zero of={MEMORY}/iopstui-filled bs=1M count=100; "
                     f"rm {MEMORY}/iopstui-filled; done"),), "0 0 0 0 06", quick(1000, 0.1),
              asleep="."),
    Situation("fuse", "a reader of a FUSE file system whose server is slow, beside an idle disk",
              slow_fuse(SLOW), (python(FUSE_READS),), "06 06 06 0 06", quick(1000, 0.1),
              asleep="folio_wait"),
    Situation("nbd", "16 reads in flight on nbd, which a slow disk serves", network_block(SLOW),
              (fio(HALF),), "4", held(8, 15), BY_PID, settle=5),
    # -- two disks
    Situation("both", "two slow disks, each with its program", SLOW,
              (fio(DEEP), fio("--iodepth=16", on=one_by_one())), "4", QUEUE, says="OTHER"),
    Situation("one-of-two", "a reader of 50 IOPS on NVMe beside another's slow disk", NVME,
              (fio(f"{SINGLE} --rate_iops=50"), fio(DEEP, on=SLOW)), "4 4 0 0 06", quick(5, 0.3),
              says="OTHER"),
)  # fmt: skip
