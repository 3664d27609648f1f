"""The I/O of all disks of the machine together (/proc/diskstats)."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.linux.counters.procfs import parse_diskstats
from iopstui.linux.kernel_files import Roots, decode, list_names, read_bytes
from iopstui.model.samples import DiskCounters

SECTOR = 512
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "afs", "lustre"})


class WholeDisks:
    """Reads the counters of all disks, without partitions and devices on other disks (dm, md). A
    loop device counts beside the disk of its file, so sums are an upper bound."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._counts_for: dict[str, bool] = {}

    def read(self) -> dict[str, DiskCounters]:
        rows = parse_diskstats(read_bytes(self._roots.proc / "diskstats") or b"")
        return {name: row for name, row in rows.items() if self._is_counted(name)}

    def bytes_moved(self, rows: Mapping[str, DiskCounters]) -> tuple[int, int] | None:
        """Bytes that all disks have read and written so far, from the rows of ``read``; ``None`` if
        processes may also use network file systems, which no disk counts."""
        if not rows or has_remote_mounts(self._roots):
            return None
        reads = sum(row.read_sectors or 0 for row in rows.values())
        writes = sum(row.write_sectors or 0 for row in rows.values())
        return SECTOR * reads, SECTOR * writes

    def _is_counted(self, name: str) -> bool:
        counted = self._counts_for.get(name)
        if counted is None:
            place = self._roots.sys / "class/block" / name.replace("/", "!")
            counted = not (place / "partition").exists() and not list_names(place / "slaves")
            self._counts_for[name] = counted
        return counted


def is_remote(kind: str) -> bool:
    """Whether a file system of this kind is on another machine, or served by a program."""
    return kind in REMOTE or kind.partition(".")[0] == "fuse"


def has_remote_mounts(roots: Roots) -> bool:
    """Whether a file system of another machine, or one served by a program, is mounted here."""
    for line in decode(read_bytes(roots.proc / "self/mountinfo") or b"").splitlines():
        kind = line.partition(" - ")[2].partition(" ")[0]
        if is_remote(kind):
            return True
    return False
