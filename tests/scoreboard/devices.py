"""Block devices that may be destroyed: made for one scenario, and removed after it.

The disks of a virtual machine are found by their serial numbers. Only those disks and the devices
made here are written to."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from scenario import Absent, Action, Bench, Recipe

MIB = 1 << 20
CONFIGFS = Path("/sys/kernel/config")
SYS_BLOCK = Path("/sys/block")
RECOVERED, UNANSWERED = "8", "4"  # scsi_debug's opts


def loop(mib: int = 256) -> Recipe:
    """A loop device on a file in memory."""

    def make(bench: Bench) -> str:
        file = bench.here / f"loop-{time.monotonic_ns()}"
        file.write_bytes(b"")
        os.truncate(file, mib * MIB)
        node = sh("losetup", "--find", "--show", str(file))
        # this works at once, or as soon as a mount namespace made meanwhile has ended
        bench.stack.callback(sh, "losetup", "--detach", node)
        bench.node = node
        return node

    return make


def loop_on(below: Recipe, direct: bool = True) -> Recipe:
    """A loop device on another device or a file; if ``direct``, without a page cache in between."""

    def make(bench: Bench) -> str:
        lower = below(bench)
        mode = "on" if direct else "off"
        node = sh("losetup", "--find", "--show", f"--direct-io={mode}", lower)
        bench.stack.callback(sh, "losetup", "--detach", node)
        bench.node = node
        return node

    return make


def zram(mib: int = 64) -> Recipe:
    """A zram device: it counts although its queue/iostats is 0."""

    def make(bench: Bench) -> str:
        load("zram", "num_devices=1")
        bench.stack.callback(sh, "modprobe", "-r", "zram")
        settled(Path("/dev/zram0").exists)
        (SYS_BLOCK / "zram0/disksize").write_text(str(mib * MIB))
        bench.stack.callback((SYS_BLOCK / "zram0/reset").write_text, "1")
        bench.node = "/dev/zram0"
        return bench.node

    return make


def parity(level: int = 5, chunk: int = 64) -> Recipe:
    """An md array with parity of three or four loop devices."""

    def make(bench: Bench) -> str:
        needs("mdadm")
        load("raid456")
        members = [loop(64)(bench) for _ in range(level - 2)]
        node = "/dev/md127"
        sh("mdadm", "--create", node, f"--level={level}", f"--raid-devices={level - 2}", "--run",
           "--assume-clean", f"--chunk={chunk}", "--metadata=1.2", *members)  # fmt: skip
        bench.stack.callback(sh, "mdadm", "--stop", node)
        bench.node = node
        return node

    return make


def snapshot(origin: Recipe, cow: Recipe, chunk: int = 128) -> Recipe:
    """A device-mapper snapshot: the first write of each chunk (in sectors) copies it."""

    def make(bench: Bench) -> str:
        below, store = origin(bench), cow(bench)
        load("dm_snapshot")
        return mapped(bench, f"0 {sectors(below)} snapshot {below} {store} N {chunk}")

    return make


def failing(below: Recipe, part: int = 4) -> Recipe:
    """I/O on the last 1/``part`` of the device fails."""

    def make(bench: Bench) -> str:
        node = below(bench)
        load("dm_mod")
        size = sectors(node)
        good = size - size // part
        return mapped(bench, f"0 {good} linear {node} 0\n{good} {size - good} error")

    return make


def suspend(bench: Bench) -> None:
    """Suspend the device-mapper device: no I/O gets through until ``resume``."""
    bench.stack.callback(resume, bench)
    sh("dmsetup", "suspend", "--noflush", "--nolockfs", "--noudevsync", "scoreboard")


def resume(bench: Bench) -> None:
    """Let I/O through the suspended device again."""
    sh("dmsetup", "resume", "--noudevsync", "scoreboard")


def null(**attributes: int) -> Recipe:
    """A null_blk device (Documentation/block/null_blk.rst): 4 queues of 64, 1 GiB, completion by a
    timer, unless ``attributes`` say otherwise. It only keeps data (for a file system) with
    memory_backed=1."""

    def make(bench: Bench) -> str:
        load("null_blk", "nr_devices=0")
        _mount_configfs("nullb")
        place = CONFIGFS / "nullb" / f"scoreboard{len(list((CONFIGFS / 'nullb').iterdir()))}"
        place.mkdir()
        bench.stack.callback(place.rmdir)
        standard = {"submit_queues": min(4, os.cpu_count() or 1), "poll_queues": 0, "irqmode": 2,
                    "hw_queue_depth": 64, "size": 1024}  # fmt: skip
        for name, value in {**standard, **attributes}.items():
            (place / name).write_text(str(value))
        before = set(os.listdir(SYS_BLOCK))
        (place / "power").write_text("1")
        bench.stack.callback((place / "power").write_text, "0")
        node = _new_node(before)
        bench.node = node
        return node

    return make


def _mount_configfs(name: str) -> None:
    """Mount configfs, unless the directory ``name`` is already there."""
    if not (CONFIGFS / name).is_dir():
        sh("mount", "-t", "configfs", "configfs", str(CONFIGFS))


def _new_node(before: set[str]) -> str:
    settled(lambda: bool(set(os.listdir(SYS_BLOCK)) - before))
    (name,) = set(os.listdir(SYS_BLOCK)) - before
    settled(Path("/dev", name).exists)
    return f"/dev/{name}"


def scsi_debug(errors: int = 0, **parameters: int) -> Recipe:
    """A disk of scsi_debug, 64 MiB, 1 ms; the first of several LUNs if it has them. One in
    ``errors`` commands is answered with a recovered error."""

    def make(bench: Bench) -> str:
        before = set(os.listdir(SYS_BLOCK))
        options = {"dev_size_mb": 64, "ndelay": 1_000_000, **parameters}
        load("scsi_debug", *(f"{name}={value}" for name, value in options.items()))
        bench.stack.callback(_unload, "scsi_debug")
        count = parameters.get("max_luns", 1)
        settled(lambda: len(set(os.listdir(SYS_BLOCK)) - before) >= count)
        new = sorted(set(os.listdir(SYS_BLOCK)) - before)
        settled(Path("/dev", new[-1]).exists)
        bench.node = f"/dev/{new[0]}"
        if errors:
            # not earlier: the kernel's own reads of a new disk would get the errors
            driver = Path("/sys/bus/pseudo/drivers/scsi_debug")
            (driver / "every_nth").write_text(str(errors))
            (driver / "opts").write_text(RECOVERED)
            bench.stack.callback((driver / "opts").write_text, "0")
        return bench.node

    return make


def _unload(module: str) -> None:
    settled(lambda: subprocess.run(["modprobe", "-r", module], capture_output=True).returncode == 0)


def disk(serial: str) -> Recipe:
    """The disk of the virtual machine with this serial number, without any signature."""

    def make(bench: Bench) -> str:
        node = find(serial)
        with open(node, "r+b") as file:
            file.write(bytes(MIB))
            file.seek(-MIB, os.SEEK_END)
            file.write(bytes(MIB))
            os.fsync(file.fileno())
        bench.node = node
        return node

    return make


def find(serial: str) -> str:
    """The node of the disk with this serial number. Raises Absent if there is none."""
    for directory in sorted(SYS_BLOCK.iterdir()):
        for name in ("serial", "device/serial", "device/vpd_pg80"):
            if serial in _words(directory / name):
                return f"/dev/{directory.name}"
    raise Absent(f"no disk {serial}")


def _words(path: Path) -> list[str]:
    try:
        text = path.read_bytes()
    except OSError:
        return []
    printable = bytes(c if 32 < c < 127 else 32 for c in text)
    return printable.decode().split()


def linear(below: Recipe) -> Recipe:
    """A device-mapper device that maps the whole of another device."""
    return _mapped(below, lambda node, size: f"0 {size} linear {node} 0")


def slow_down(ms: int) -> Action:
    """From now on, the device made by ``linear`` delays each I/O by ``ms``."""

    def do(bench: Bench) -> None:
        load("dm_delay")
        old = subprocess.run(["dmsetup", "table", "scoreboard"], check=True, text=True,
                             capture_output=True).stdout.split()  # fmt: skip
        _load_table(f"0 {old[1]} delay {old[3]} 0 {ms}")

    return do


def failing_for(begin_s: float, end_s: float) -> tuple[tuple[float, Action], ...]:
    """The device made by ``linear`` fails every I/O between these two seconds."""
    below: list[str] = []

    def fail(bench: Bench) -> None:
        below.append(sh("dmsetup", "table", "scoreboard"))
        _load_table(f"0 {below[0].split()[1]} error")

    return (begin_s, fail), (end_s, lambda bench: _load_table(below[0]))


def _load_table(table: str) -> None:
    sh("dmsetup", "load", "scoreboard", "--table", table)
    sh("dmsetup", "suspend", "--noudevsync", "scoreboard")
    sh("dmsetup", "resume", "--noudevsync", "scoreboard")


def delayed(below: Recipe, ms: int, read_ms: int | None = None) -> Recipe:
    """dm-delay holds every I/O for ``ms``, above the device; reads for ``read_ms``."""
    reads = ms if read_ms is None else read_ms
    return _mapped(
        below, lambda node, size: f"0 {size} delay {node} 0 {reads} {node} 0 {ms}", "dm_delay"
    )


def encrypted(below: Recipe) -> Recipe:
    """dm-crypt that decrypts reads where the disk completes them, not in threads."""
    key = "00" * 64
    return _mapped(
        below, lambda node, size: f"0 {size} crypt aes-xts-plain64 {key} 0 {node} 0 1 "
        "no_read_workqueue", "dm_crypt",
    )  # fmt: skip


def flakey(below: Recipe, up_s: int, down_s: int) -> Recipe:
    """Every I/O fails for some seconds, again and again."""
    return _mapped(
        below, lambda node, size: f"0 {size} flakey {node} 0 {up_s} {down_s}", "dm_flakey"
    )


def partition(below: Recipe) -> Recipe:
    """The first of two partitions, each half of a disk."""

    def make(bench: Bench) -> str:
        node = below(bench)
        needs("sfdisk")
        half = sectors(node) // 2
        sh("sh", "-c", f"printf ',{half}\\n,\\n' | sfdisk -q --no-reread {node}")
        bench.stack.callback(sh, "sh", "-c", f"dd if=/dev/zero of={node} count=1 conv=fsync; "
                             f"blockdev --rereadpt {node}")  # fmt: skip
        sh("blockdev", "--rereadpt", node)
        settled(Path(f"{node}1").exists)
        bench.node = f"{node}1"
        return bench.node

    return make


def one_by_one(ms: float = 2.0, count: int = 1, mib: int = 64, slots: int = 64) -> Recipe:
    """``count`` SCSI disks that serve one request at a time, each with a queue of ``slots``.
    Returns the first of them."""

    def make(bench: Bench) -> str:
        before = set(os.listdir(SYS_BLOCK))
        node = scsi_debug(ndelay=int(ms * 1e6), max_queue=1, add_host=count, per_host_store=1,
                          dev_size_mb=mib)(bench)  # fmt: skip
        settled(lambda: len(set(os.listdir(SYS_BLOCK)) - before) == count)
        for name in set(os.listdir(SYS_BLOCK)) - before:
            (SYS_BLOCK / name / "queue/scheduler").write_text("mq-deadline")
            (SYS_BLOCK / name / "queue/nr_requests").write_text(f"{slots}")
        return node

    return make


def nvme_loop(below: Recipe) -> Recipe:
    """An NVMe drive (over fabrics, transport loop) whose data is on another disk."""

    def make(bench: Bench) -> str:
        node, name = below(bench), "scoreboard"
        for module in ("nvmet", "nvme_loop"):
            load(module)
        _mount_configfs("nvmet")
        target = CONFIGFS / "nvmet"
        subsystem, port = target / "subsystems" / name, target / "ports/1"
        place = subsystem / "namespaces/1"
        for directory in (subsystem, place, port):
            directory.mkdir()
            bench.stack.callback(directory.rmdir)
        (subsystem / "attr_allow_any_host").write_text("1")
        (place / "device_path").write_text(node)
        (place / "enable").write_text("1")
        (port / "addr_trtype").write_text("loop")
        (port / "subsystems" / name).symlink_to(subsystem)
        bench.stack.callback((port / "subsystems" / name).unlink)
        before = set(os.listdir(SYS_BLOCK))
        Path("/dev/nvme-fabrics").write_text(f"transport=loop,nqn={name}")
        bench.stack.callback(sh, "nvme", "disconnect", "-n", name)
        settled(lambda: bool(_shown(before)))
        (new,) = _shown(before)
        settled(Path("/dev", new).exists)
        bench.node = f"/dev/{new}"
        return bench.node

    return make


def _shown(before: set[str]) -> set[str]:
    """The names of new disks, without the hidden paths of multipath drives."""
    new = set(os.listdir(SYS_BLOCK)) - before
    return {name for name in new if (SYS_BLOCK / name / "hidden").read_text().strip() != "1"}


def unanswered(seconds: int, every: int) -> Action:
    """From now on, the scsi_debug disk leaves one in ``every`` commands unanswered (-1: none). The
    kernel sends it again after ``seconds``."""

    def act(bench: Bench) -> None:
        driver = Path("/sys/bus/pseudo/drivers/scsi_debug")
        (SYS_BLOCK / bench.disk / "device/timeout").write_text(str(seconds))
        bench.stack.callback((driver / "opts").write_text, "0")
        (driver / "every_nth").write_text(str(every))
        (driver / "opts").write_text(UNANSWERED)

    return act


def array(level: int, count: int, ms: float = 2.0, mib: int = 64, slots: int = 64) -> Recipe:
    """An md array of SCSI disks that serve one request at a time."""

    def make(bench: Bench) -> str:
        needs("mdadm")
        before = set(os.listdir(SYS_BLOCK))
        one_by_one(ms, count, mib, slots)(bench)
        members = [f"/dev/{name}" for name in sorted(set(os.listdir(SYS_BLOCK)) - before)]
        load("raid456" if level == 5 else f"raid{level}")
        node = "/dev/md127"
        sh("mdadm", "--create", node, f"--level={level}", f"--raid-devices={count}", "--run",
           *(["--assume-clean"] if level else []), "--metadata=1.2", *members)  # fmt: skip
        bench.stack.callback(sh, "mdadm", "--stop", node)
        bench.node = node
        return node

    return make


def lost(below: Recipe) -> Recipe:
    """An md array whose last disk has failed."""

    def make(bench: Bench) -> str:
        node = below(bench)
        last = max(path.name for path in (SYS_BLOCK / bench.disk / "slaves").iterdir())
        sh("mdadm", node, "--fail", f"/dev/{last}")
        return node

    return make


def thin(below: Recipe, mib: int = 0) -> Recipe:
    """A thin volume; its pool's metadata is in memory. ``mib``: the pool has so much room, for a
    larger volume; who writes more waits."""

    def make(bench: Bench) -> str:
        data, meta = below(bench), loop(16)(bench)
        load("dm_thin_pool")
        size = 2048 * mib or sectors(data)
        if mib:  # else the writes fail after a minute
            put(bench, Path("/sys/module/dm_thin_pool/parameters/no_space_timeout"), "0")
        table = f"thin-pool {meta} {data} 128 0 1 skip_block_zeroing"
        sh("dmsetup", "create", "pool", "--noudevsync", "--table", f"0 {size} {table}")
        bench.stack.callback(sh, "dmsetup", "remove", "--noudevsync", "--retry", "pool")
        sh("dmsetup", "mknodes", "pool")
        sh("dmsetup", "message", "pool", "0", "create_thin 0")
        return mapped(bench, f"0 {sectors(data) // 2} thin /dev/mapper/pool 0")

    return make


def grows_at_the_end(bench: Bench) -> None:
    """A full thin pool gets room before its writers are stopped, which could not end otherwise."""

    def grow() -> None:
        table = sh("dmsetup", "table", "pool").split()
        table[1] = Path(f"/sys/dev/block/{table[4]}/size").read_text().strip()
        sh("dmsetup", "reload", "pool", "--table", " ".join(table))
        sh("dmsetup", "resume", "--noudevsync", "pool")

    bench.stack.callback(grow)


def two_paths(below: Recipe) -> Recipe:
    """dm-multipath over a scsi_debug disk with two LUNs, which share their data."""

    def make(bench: Bench) -> str:
        node = below(bench)
        directory = SYS_BLOCK / Path(node).name / "device/../.."
        nodes = sorted(str(p.name) for p in directory.glob("target*/*/block/*"))
        paths = " ".join(f"/dev/{name} 1000" for name in nodes)
        load("dm_multipath")
        load("dm_round_robin")
        table = f"0 {sectors(node)} multipath 0 0 1 1 round-robin 0 {len(nodes)} 1 {paths}"
        # the name that multipathd gives its devices
        return mapped(bench, table, "mpath-scoreboard")

    return make


def _mapped(below: Recipe, table: Callable[[str, int], str], *modules: str) -> Recipe:
    def make(bench: Bench) -> str:
        node = below(bench)
        for module in ("dm_mod", *modules):
            load(module)
        return mapped(bench, table(node, sectors(node)))

    return make


def mapped(bench: Bench, table: str, uuid: str = "scoreboard") -> str:
    name = "scoreboard"
    sh("dmsetup", "create", name, "--uuid", uuid, "--noudevsync", "--table", table)
    bench.stack.callback(sh, "dmsetup", "remove", "--noudevsync", "--retry", name)
    sh("dmsetup", "mknodes", name)
    bench.node = f"/dev/mapper/{name}"
    return bench.node


def mirror(mib: int = 96, degraded: bool = False, resync: bool = False) -> Recipe:
    """An md raid1 of two loop devices. ``degraded``: one of them has failed; ``resync``: the second
    is still being copied, at 1 MiB/s."""

    def make(bench: Bench) -> str:
        needs("mdadm")
        load("raid1")
        members = [loop(mib)(bench) for _ in range(2)]
        if resync:
            put(bench, Path("/proc/sys/dev/raid/speed_limit_max"), "1000")
            put(bench, Path("/proc/sys/dev/raid/speed_limit_min"), "500")
        clean = [] if resync else ["--assume-clean"]
        node = "/dev/md127"
        sh("mdadm", "--create", node, "--level=1", "--raid-devices=2", "--run", *clean,
           "--metadata=1.2", *members)  # fmt: skip
        bench.stack.callback(sh, "mdadm", "--stop", node)
        if degraded:
            sh("mdadm", node, "--fail", members[1])
        bench.node = node
        return node

    return make


def ext4(below: Recipe) -> Recipe:
    """A directory on a new file system. It has no lazy initialization, so only the job writes."""
    return _mounted(below, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0")


def xfs(below: Recipe) -> Recipe:
    """A directory on a new xfs."""
    return _mounted(below, "mkfs.xfs", "-q", "-f")


def _mounted(below: Recipe, *program: str) -> Recipe:
    def make(bench: Bench) -> str:
        node = below(bench)
        needs(program[0])
        sh(*program, node)
        place = bench.here / "mounted"
        place.mkdir()
        sh("mount", node, str(place))
        bench.stack.callback(sh, "umount", str(place))
        return str(place)

    return make


def sectors(node: str) -> int:
    """The size of a device in sectors of 512 bytes."""
    return int(sh("blockdev", "--getsz", node))


def load(module: str, *parameters: str) -> None:
    """Load a module. Raises Absent if this kernel has no such module."""
    loaded = Path("/sys/module", module).is_dir()
    if loaded and not parameters:
        return
    if shutil.which("modprobe") is None:
        raise Absent(f"this kernel loads no {module}")
    process = subprocess.run(["modprobe", module, *parameters], capture_output=True, text=True)
    if process.returncode:
        raise Absent(f"no {module}: {process.stderr.strip()}")


def needs(program: str) -> None:
    """Raise Absent if the program is not installed."""
    if shutil.which(program) is None:
        raise Absent(f"{program} is not installed")


def put(bench: Bench, path: Path, value: str) -> None:
    """Write a file; at the end of the scenario restore the old value."""
    bench.stack.callback(path.write_text, path.read_text())
    path.write_text(value)


def sh(*args: str) -> str:
    """Run a program and return its output. Raises RuntimeError with its message if it fails."""
    process = subprocess.run(args, capture_output=True, text=True, timeout=60)
    if process.returncode:
        raise RuntimeError(f"{' '.join(args)}: {process.stderr.strip() or process.stdout.strip()}")
    return process.stdout.strip()


def settled(is_done: Callable[[], bool]) -> None:
    """Wait until ``is_done`` returns true, 10 s at most."""
    deadline = time.monotonic() + 10
    while not is_done():
        if time.monotonic() > deadline:
            raise RuntimeError("the kernel has not done what it was asked for")
        time.sleep(0.02)
