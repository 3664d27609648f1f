"""Find users of a file before writing to it, by inode: loop devices, swap, other programs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from iopstui.linux.devices.aliases import Overlays, read_backings
from iopstui.linux.devices.usage.mounts import parse_swaps, read_mounts, read_own_mounts
from iopstui.linux.devices.usage.openers import (
    File,
    Writable,
    Writers,
    exported_files,
    exports_served_here,
    file_identity,
    writables_of,
    writers,
)
from iopstui.linux.kernel_files import Roots, decode, read_bytes, read_count
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.stack import Backing, Backings, Stack, uses_of_device
from iopstui.safety.locks import ActiveRun
from iopstui.text import printable

SECTOR = 512
_DELETED = " (deleted)"


class FileUsers:
    """Users of files at the time of the first query. Programs are scanned once for all files,
    because a job may have hundreds of thousands. Processes of the ``active`` run don't count as
    users."""

    def __init__(
        self, devices: Mapping[str, BlockDevice], roots: Roots, active: ActiveRun | None = None
    ) -> None:
        self._devices = devices
        self._roots = roots
        self.active = active

    def users_of(self, real: str, info: os.stat_result) -> list[str]:
        """Describe who uses the file ``info`` (its path is ``real``), under any of its names and
        through any overlay."""
        files = {file_identity(info), *self._own_overlays.files(real)}
        users = [
            f"{loop.device.name} uses it"
            for loop in self._loops
            if loop.files & files or self._may_use(loop, real, info)
        ]
        names, swapped = self._swaps
        if real in names or files & swapped:
            users.append("it is used as swap")
        return [*users, *self._writers.of_file(real, files)]

    @cached_property
    def _own_overlays(self) -> Overlays:
        return Overlays(read_own_mounts(self._roots))

    @cached_property
    def _overlays(self) -> Overlays:
        return Overlays(read_mounts(self._roots).entries)

    @cached_property
    def _writers(self) -> Writers:
        return Writers(self._roots, self.active.owns if self.active is not None else None)

    @cached_property
    def _swaps(self) -> tuple[tuple[str, ...], set[File]]:
        names = parse_swaps(decode(read_bytes(self._roots.proc / "swaps") or b""))
        files = set()
        for name in names:
            try:
                files.add(file_identity(os.stat(name)))
            except (OSError, ValueError):
                continue
        return names, files

    @cached_property
    def _loops(self) -> list[_Loop]:
        backings = read_backings(self._devices, self._roots)
        return list(self._file_loops(backings))

    def _file_loops(self, backings: Mapping[str, Backing]) -> Iterator[_Loop]:
        for loop in self._devices.values():
            backing = backings.get(loop.name)
            if not loop.backing_file or (backing is not None and backing.number is not None):
                continue  # backed by a device, not by a file
            path = loop.backing_file.removesuffix(_DELETED)
            files = self._overlays.files(path)
            if backing is not None:
                files.add((backing.device, backing.inode))
            yield _Loop(loop, path, backing, files)

    def _may_use(self, loop: _Loop, real: str, info: os.stat_result) -> bool:
        if loop.backing is None:
            return self._may_back_loop(loop.device, real, info)
        # the loop device's file may be in an overlay whose layers can't be found by name
        made_of = loop.backing.device, loop.backing.inode
        same_name = os.path.basename(loop.path) == os.path.basename(real)
        return (same_name or info.st_ino == made_of[1]) and self._overlays.may_hide(
            loop.path, made_of
        )

    def _may_back_loop(self, loop: BlockDevice, real: str, info: os.stat_result) -> bool:
        """Whether the loop device may use the file. Only the name of its backing file is known, so
        this compares names, or else sizes."""
        if loop.backing_file == real:
            return True
        directory = self._roots.sys / "class/block" / loop.name / "loop"
        offset, limit = read_count(directory / "offset"), read_count(directory / "sizelimit")
        if loop.size is None or offset is None:
            return False
        if limit:
            return offset + limit <= info.st_size
        return loop.size == (info.st_size - offset) // SECTOR * SECTOR > 0


class _Loop:
    """A loop device, and what is known about its file."""

    def __init__(
        self, loop: BlockDevice, path: str, backing: Backing | None, files: set[File]
    ) -> None:
        self.device = loop
        self.path = path
        self.backing = backing
        self.files = files


# Devices served by a program or the kernel of this machine: their backing files or devices are on
# this machine, too, and may be in use.


# a line of /proc/PID/status (proc_pid_status(5))
_PROCESS = re.compile(rb"(?m)^Tgid:\t(\d+)$")


@dataclass(frozen=True, slots=True)
class _Source:
    """A file or device behind a device that is served here; ``server`` is what messages call the
    program that has it open for writing."""

    path: str
    server: str
    number: tuple[int, int] | None


def exporter_pid_text(name: str, roots: Roots) -> str:
    """PID, as text, of the program that serves an nbd device: it has that device open itself."""
    pid = _pid(name, roots)
    return f"(pid {pid})" if pid else ""


def users_of_backing(
    names: Iterable[str], stack: Stack, backings: Backings, roots: Roots
) -> Iterator[str]:
    """Describe who else uses the files and devices behind any of these devices, if this machine
    serves them."""
    for name in names:
        # the head of an NVMe multipath device has the same exports as its hidden paths
        for source in () if stack.devices[name].hidden else _sources(name, roots):
            for why in _users(source, stack.devices, backings, roots):
                yield f"{name} is made of {printable(source.path)}: {why}"


def _users(
    source: _Source, devices: Mapping[str, BlockDevice], backings: Backings, roots: Roots
) -> Iterator[str]:
    if source.number is not None:
        numbered = (
            device.name
            for device in devices.values()
            if (device.major, device.minor) == source.number
        )
        for name in numbered:
            yield from uses_of_device(name, devices, backings)
        users = list(writers([source.path], roots, [source.number]))
    else:
        try:
            info = os.stat(source.path)
        except OSError:
            return
        users = FileUsers(devices, roots).users_of(os.path.realpath(source.path), info)
    yield from (why for why in users if source.server not in why)


def _sources(name: str, roots: Roots) -> Iterator[_Source]:
    pid = _pid(name, roots)
    open_files = list(writables_of(pid, roots)) if pid else []
    # without the node, the PID may be of another process, because it is from outside of this
    # container
    if any(_is_node(file, name) for file in open_files):
        candidates = [
            (file, exporter_pid_text(name, roots))
            for file in open_files
            if not _is_node(file, name)
        ]
    else:
        candidates = []
    candidates += [
        (file, file.user) for file in exported_files(exports_served_here(name, roots), roots)
    ]
    for source, by in candidates:
        # skip files that can't be examined: the server of a remote file may be gone, and accessing
        # it would hang
        if source.number is not None or source.file is not None:
            yield _Source(source.name, by, source.number)


def _is_node(file: Writable, name: str) -> bool:
    return file.name == f"/dev/{name}"


def _pid(name: str, roots: Roots) -> int | None:
    """PID of the program that serves an nbd device; the kernel states the thread."""
    thread = read_count(roots.sys / "class/block" / name.replace("/", "!") / "pid")
    if thread is None:
        return None
    match = _PROCESS.search(read_bytes(roots.proc / str(thread) / "status") or b"")
    return int(match[1]) if match else thread
