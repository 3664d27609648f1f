"""Files and devices that the kernel itself serves to others, as configfs tells: the NVMe target
(nvmet) and the SCSI target (LIO) with its fileio store; and which device here is made of them.

LIO's iblock and pscsi stores claim their device as a mount does: they need no look.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import list_names, read_flag, read_text
from iopstui.text import printable

CONFIG = "kernel/config"
# fd_show_configfs_dev_params() in drivers/target/target_core_file.c
_FILE = re.compile(r"(?s)TCM FILEIO ID: \d+ +File: (.*)  Size: \d+ ")
_ADDRESS = re.compile(r"(\d+:\d+:\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Export:
    """An exported file or device: its ``path``; ``user`` serves it, in words; ``directory`` is its
    directory below /sys, and ``ids`` are the uuid or nguid that clients see."""

    path: str
    user: str
    directory: str
    ids: tuple[str, ...] = ()


def read_exports(roots: Roots) -> Iterator[Export]:
    """Exports that are switched on."""
    yield from _nvme_exports(roots.sys / CONFIG / "nvmet/subsystems")
    yield from _scsi_exports(roots.sys / CONFIG / "target/core")


def exports_served_here(name: str, roots: Roots) -> Iterator[Export]:
    """The exports of this machine that its own device ``name`` is a client's view of: over the
    NVMe loop transport or any other, and over LIO's loopback."""
    block = roots.sys / "class/block" / name.replace("/", "!")
    ids = {read_text(block / key) or "" for key in ("uuid", "nguid")} - {""}
    store = _loopback_store(block, roots)
    if ids or store:
        for export in read_exports(roots):
            if ids.intersection(export.ids) or (store and export.directory == store):
                yield export


def _nvme_exports(top: Path) -> Iterator[Export]:
    for subsystem in list_names(top):
        for number in list_names(top / subsystem / "namespaces"):
            space = top / subsystem / "namespaces" / number
            path = read_text(space / "device_path")
            if path and read_flag(space / "enable"):
                ids = (read_text(space / key) or "" for key in ("device_uuid", "device_nguid"))
                user = f"the kernel exports it over NVMe (nvmet, {printable(subsystem)})"
                yield Export(path, user, str(space), tuple(filter(None, ids)))


def _scsi_exports(top: Path) -> Iterator[Export]:
    for adapter in list_names(top):
        for store in list_names(top / adapter) if adapter.startswith("fileio_") else ():
            place = top / adapter / store
            match = _FILE.search(read_text(place / "info") or "")
            if match and read_flag(place / "enable"):
                user = f"the kernel exports it over SCSI (LIO fileio, {printable(store)})"
                yield Export(match[1], user, os.path.realpath(place))


def _loopback_store(block: Path, roots: Roots) -> str:
    """The directory of the store behind a SCSI disk of LIO's loopback; "" of any other disk."""
    address = _ADDRESS.fullmatch(os.path.basename(os.path.realpath(block / "device")))
    top = roots.sys / CONFIG / "target/loopback"
    for port in list_names(top) if address else ():
        for group in list_names(top / port):
            if address and read_text(top / port / group / "address") == address[1]:
                lun = top / port / group / "lun" / f"lun_{address[2]}"
                links = (lun / entry for entry in list_names(lun))
                return next((os.path.realpath(link) for link in links if link.is_symlink()), "")
    return ""
