"""Devices that a program or the kernel of this machine serves: what they are made of is on this
machine, too, and may be in use."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from iopstui.linux.devices.usage.openers import (
    Writable,
    exported_files,
    exports_served_here,
    writables_of,
    writers,
)
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_bytes, read_count
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.stack import Backings, Stack
from iopstui.model.block.usage import uses_of_device
from iopstui.safety.file_users import FileUsers
from iopstui.text import printable

# proc_pid_status(5)
_PROCESS = re.compile(rb"(?m)^Tgid:\t(\d+)$")


@dataclass(frozen=True, slots=True)
class _Source:
    """A file or device that something served here is made of; ``server`` is its name
    in messages that say who writes to it."""

    path: str
    server: str
    number: tuple[int, int] | None


def exporter_pid_text(name: str, roots: Roots) -> str:
    """PID, as a text, of the program that serves an nbd device: it has that device open itself."""
    pid = _pid(name, roots)
    return f"(pid {pid})" if pid else ""


def users_of_backing(
    names: Iterable[str], stack: Stack, backings: Backings, roots: Roots
) -> Iterator[str]:
    """Describe who else uses a part of any of the devices, if this machine serves it."""
    for name in names:
        # the head of an NVMe multipath device reports the same as its hidden paths
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
    # the number may be of another process: it is not of this container's
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
        # the server of a remote file may be gone: to look at it would hang
        if source.number is not None or source.file is not None:
            yield _Source(source.name, by, source.number)


def _is_node(file: Writable, name: str) -> bool:
    return file.name == f"/dev/{name}"


def _pid(name: str, roots: Roots) -> int | None:
    """PID of a server: the kernel names the thread that serves an nbd device."""
    thread = read_count(roots.sys / "class/block" / name.replace("/", "!") / "pid")
    if thread is None:
        return None
    match = _PROCESS.search(read_bytes(roots.proc / str(thread) / "status") or b"")
    return int(match[1]) if match else thread
