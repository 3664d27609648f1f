"""Devices that may be destroyed, and traces that a run might leave."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import struct
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

MIB = 1 << 20
SIZE = 48 * MIB


def sh(*words: str, check: bool = True, stdin: str | None = None) -> str:
    """Run a program and return its output."""
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=60)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def needs(*programs: str, modules: tuple[str, ...] = ()) -> None:
    """Skip where a program or a kernel module is missing."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    for module in modules:
        if not Path("/sys/module", module.replace("-", "_")).is_dir() and not _loads(module):
            pytest.skip(f"this kernel has no {module}")


def _loads(module: str) -> bool:
    modprobe = shutil.which("modprobe")
    if modprobe is None:
        return False
    return subprocess.run([modprobe, module], capture_output=True).returncode == 0


def digest(path: str) -> str:
    """sha256 of all of a device or file, past the page cache of its user."""
    os.sync()
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            found.update(data)
    return found.hexdigest()


@contextlib.contextmanager
def loop(file: Path, size: int = SIZE) -> Iterator[str]:
    """A loop device on a new file with some content."""
    with open(file, "wb") as new:
        new.truncate(size)
        new.seek(size // 2)
        new.write(b"precious" * 512)
    with attached(str(file)) as node:
        yield node


@contextlib.contextmanager
def attached(file: str, *more: str) -> Iterator[str]:
    """A loop device on an existing file or device."""
    node = sh("losetup", "--find", "--show", "--partscan", *more, file)
    try:
        yield node
    finally:
        sh("losetup", "--detach", node, check=False)
        settled(lambda: not Path("/sys/block", Path(node).name, "loop").is_dir())


def settled(done: object) -> None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not done():  # type: ignore[operator]
        time.sleep(0.02)


def one_partition(node: str, size: int = SIZE) -> str:
    """Write an MBR with one Linux partition that begins at 1 MiB. Returns the partition's node."""
    sectors = min(size // 512, int(sh("blockdev", "--getsz", node)))
    entry = struct.pack("<B3sB3sII", 0, b"\0" * 3, 0x83, b"\0" * 3, 2048, sectors - 2048)
    with open(node, "r+b") as disk:
        disk.seek(446)
        disk.write(entry + b"\0" * 48 + b"\x55\xaa")
    part = f"{node}p1"
    name = Path(part).name
    sh("blockdev", "--rereadpt", node, check=False)
    if not Path("/sys/class/block", name).is_dir():
        # a kernel that reads no partition tables can still be given a partition
        sh("addpart", node, "1", "2048", str(sectors - 2048))
    settled(lambda: Path("/sys/class/block", name).is_dir())
    if not os.path.exists(part):
        number = Path("/sys/class/block", name, "dev").read_text().split(":")
        os.mknod(part, 0o600 | 0o060000, os.makedev(int(number[0]), int(number[1])))
    return part


def gpt(node: str) -> None:
    """An empty GPT (UEFI specification, 5.3), the first header only."""
    entries = b"\0" * (128 * 128)
    last = SIZE // 512 - 1
    fields = (b"EFI PART", 0x10000, 92, 0, 0, 1, last, 34, last - 33, b"\x11" * 16, 2, 128, 128,
              zlib.crc32(entries))  # fmt: skip
    header = struct.pack("<8sIIIIQQQQ16sQIII", *fields)
    crc = struct.pack("<I", zlib.crc32(header))
    with open(node, "r+b") as disk:
        disk.seek(446)
        disk.write(struct.pack("<B3sB3sII", 0, b"\0" * 3, 0xEE, b"\xff" * 3, 1, last))
        disk.seek(510)
        disk.write(b"\x55\xaa" + header[:16] + crc + header[20:])


@contextlib.contextmanager
def mounted(node: str, place: Path, *more: str) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    sh("mount", *more, node, str(place))
    try:
        yield place
    finally:
        sh("umount", str(place))


@contextlib.contextmanager
def mapped(name: str, table: str, uuid: str = "") -> Iterator[str]:
    """A device-mapper device with this table."""
    needs("dmsetup", modules=("dm-mod",))
    sh("dmsetup", "create", name, *(("--uuid", uuid) if uuid else ()), "--table", table)
    sh("dmsetup", "mknodes", name)
    try:
        yield f"/dev/mapper/{name}"
    finally:
        sh("dmsetup", "resume", name, check=False)
        sh("dmsetup", "remove", "--retry", "--force", name)


@contextlib.contextmanager
def scsi_debug(**parameters: int) -> Iterator[str]:
    needs("modprobe", modules=("scsi_mod",))
    """A disk in memory with the driver's ``parameters``; removes an older one first."""
    words = [f"{name}={value}" for name, value in {"dev_size_mb": 32, **parameters}.items()]
    sh("modprobe", "-r", "scsi_debug", check=False)
    before = set(Path("/sys/block").iterdir())
    sh("modprobe", "scsi_debug", *words)
    deadline = time.monotonic() + 10
    while not (new := set(Path("/sys/block").iterdir()) - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        yield f"/dev/{new.pop().name}"
    finally:
        sh("modprobe", "-r", "scsi_debug", check=False)


def sectors(node: str) -> int:
    return int(sh("blockdev", "--getsz", node))


class Traces:
    """What must be the same before and after a case."""

    def __init__(self, here: Path) -> None:
        self.here = here
        state = str(here.parent / "state")
        self.processes = {p.pid for p in psutil.process_iter() if _belongs(p, state)}
        self.private = {str(p) for p in (here.parent / "runtime").glob("*")}
        self.scratch = {str(p) for p in here.rglob(".iopstui-*")}
        notes = [*here.parent.rglob("settings-*.json"), *here.parent.rglob("scratch-*.json")]
        self.notes = {str(note) for note in notes}
        self.settings = _settings(here)

    def compare(self, after: Traces) -> None:
        deadline = time.monotonic() + 2.0
        while after.processes - self.processes and time.monotonic() < deadline:
            time.sleep(0.05)
            after = Traces(self.here)
        assert after.processes <= self.processes, "fio or its guard goes on"
        assert after.private <= self.private, "a private directory is left"
        assert after.scratch <= self.scratch, "a scratch file is left"
        assert after.notes <= self.notes, "a note is left"
        changed = {name: value for name, value in after.settings.items()
                   if self.settings.get(name, value) != value}  # fmt: skip
        assert changed == {}, "a setting is changed"


def _belongs(process: psutil.Process, state: str) -> bool:
    """Whether the process was started by this case's iopstui, directly or not."""
    try:
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.environ().get("XDG_STATE_HOME") == state
    except (psutil.Error, OSError):
        return False


def _settings(here: Path) -> dict[str, str]:
    """Queue settings of the loop devices on files of this case."""
    found = {}
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if str(here) not in backing.read_text():
                continue
            for name in ("rq_affinity", "scheduler", "nomerges", "nr_requests"):
                path = backing.parent.parent / "queue" / name
                found[str(path)] = path.read_text()
    return found
