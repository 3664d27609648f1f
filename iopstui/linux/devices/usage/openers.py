"""Which other programs have a device or file open for writing, or mapped (proc_pid_fd(5),
proc_pid_fdinfo(5), proc_pid_maps(5)), and what the kernel's own NVMe and SCSI targets export."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.kernel_files import Roots, decode, list_names, read_bytes, read_flag, read_text
from iopstui.text import printable

OPEN, MAPPED = "has it open for writing", "has it mapped for writing"

# accessing a file there may hang, if its server is gone
_REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "afs", "fuse", "glusterfs"})
# proc(5): the initial PID namespace has this number (PROC_PID_INIT_INO)
_INITIAL_PIDS = "pid:[4026531836]"
# a line of /proc/PID/maps: range, "rw-s" or "-w-s", offset, device, inode, name
_SHARED = re.compile(r"(?m)^([0-9a-f]+-[0-9a-f]+) .w.s [0-9a-f]+ [0-9a-f:]+ [1-9][0-9]* +(/.*)$")

File = tuple[tuple[int, int], int]
"""A file's identity: ((major, minor) of the file system, inode)."""


@dataclass(frozen=True, slots=True)
class Writable:
    """A file or device that another program may write to. ``user`` is the program in words,
    ``name`` the file's name. ``number`` is a block device, ``character`` a character device,
    ``file`` a regular file; all three are ``None`` if the file can't be examined."""

    user: str
    name: str
    number: tuple[int, int] | None = None
    file: File | None = None
    character: tuple[int, int] | None = None

    @property
    def unexamined(self) -> bool:
        """Whether only the name of the file is known."""
        return self.number is None and self.file is None and self.character is None


def file_identity(info: os.stat_result) -> File:
    """The identity of a file, independent of its name."""
    return (os.major(info.st_dev), os.minor(info.st_dev)), info.st_ino


class Writers:
    """Everything that other programs have open or mapped for writing now.

    Only processes this user may inspect are seen, so an empty answer proves nothing
    (``hidden_programs_reason``). ``is_own`` recognises the processes of our own runs, which are
    skipped."""

    def __init__(self, roots: Roots, is_own: Callable[[int], bool] | None = None) -> None:
        own_pid = str(os.getpid())
        self._writables: list[Writable] = []
        for pid in list_names(roots.proc):
            if pid.isdecimal() and pid != own_pid and not (is_own and is_own(int(pid))):
                self._writables += _process_writables(roots.proc / pid)
        self._writables += exported_files(read_exports(roots), roots)
        self._by_file: dict[File, list[Writable]] = {}
        self._by_name: dict[str, list[Writable]] = {}
        for writable in self._writables:
            self._by_name.setdefault(writable.name, []).append(writable)
            if writable.file is not None:
                self._by_file.setdefault(writable.file, []).append(writable)

    def of_device(
        self,
        nodes: Iterable[str],
        numbers: Iterable[tuple[int, int]],
        files: Iterable[File] = (),
        characters: Iterable[tuple[int, int]] = (),
    ) -> tuple[str, ...]:
        """Sentences such as "name (pid N) has it open for writing", for these nodes by path, these
        devices by number (containers, chroots and virtual machines have nodes with other names),
        these files under any name, and these character devices."""
        named, numbered, of_files = frozenset(nodes), frozenset(numbers), frozenset(files)
        generic = frozenset(characters)
        users = (
            writable.user for writable in self._writables
            if writable.name in named or writable.number in numbered or writable.file in of_files
            or writable.character in generic
        )  # fmt: skip
        return tuple(dict.fromkeys(users))

    def of_file(self, path: str, files: Iterable[File]) -> tuple[str, ...]:
        """The writers of one file, given by its real path and its numbers."""
        writables = [writable for file in files for writable in self._by_file.get(file, ())]
        # for a file that cannot be examined (on a server) only the name is known
        writables += [writable for writable in self._by_name.get(path, ()) if writable.unexamined]
        return tuple(dict.fromkeys(writable.user for writable in writables))


def writers(
    nodes: Iterable[str],
    roots: Roots,
    numbers: Iterable[tuple[int, int]] = (),
    files: Iterable[File] = (),
    characters: Iterable[tuple[int, int]] = (),
    is_own: Callable[[int], bool] | None = None,
) -> tuple[str, ...]:
    """Return the current writers, like ``Writers.of_device``."""
    return Writers(roots, is_own).of_device(nodes, numbers, files, characters)


def hidden_programs_reason(roots: Roots) -> str:
    """Why some programs that have a device open may be invisible; "" if all are visible."""
    try:
        if os.readlink(roots.proc / "self/ns/pid") != _INITIAL_PIDS:
            return "programs outside this container are not visible"
    except OSError:
        return "running programs are not visible"
    unreadable = sum(
        1
        for pid in list_names(roots.proc)
        if pid.isdecimal() and not os.access(roots.proc / pid / "fd", os.R_OK | os.X_OK)
    )
    if unreadable:
        return f"{unreadable} programs of other users can't be inspected"
    return ""


def _process_writables(process: Path) -> Iterator[Writable]:
    remote = _Remote(process)
    name = ""
    for access, files in (
        (OPEN, _open_files(process, remote)),
        (MAPPED, _mapped_files(process, remote)),
    ):
        for path, info in files:
            name = name or printable(read_text(process / "comm") or "?")
            user = f"{name} (pid {process.name}) {access}"
            if (writable := _writable(user, path, info)) is not None:
                yield writable


def _writable(user: str, path: str, info: os.stat_result | None) -> Writable | None:
    """Return the writable file; ``None`` if it is neither a device nor a regular file."""
    if info is None:
        return Writable(user, path)
    number = os.major(info.st_rdev), os.minor(info.st_rdev)
    if stat.S_ISBLK(info.st_mode):
        return Writable(user, path, number)
    if stat.S_ISCHR(info.st_mode):
        return Writable(user, path, character=number)
    return Writable(user, path, None, file_identity(info)) if stat.S_ISREG(info.st_mode) else None


def exported_files(exports: Iterable[Export], roots: Roots) -> Iterator[Writable]:
    """Files and devices exported by the kernel, which opens them without claiming them and without
    a process's descriptor."""
    remote = _Remote(roots.proc / "self")
    for export in exports:
        info = None if remote.has_file(export.path) else _stat(Path(export.path))
        yield _writable(export.user, export.path, info) or Writable(export.user, export.path)


def writables_of(pid: int, roots: Roots) -> Iterator[Writable]:
    """Files that one process has open for writing."""
    process = roots.proc / str(pid)
    name = printable(read_text(process / "comm") or "?")
    for path, info in _open_files(process, _Remote(process)):
        if (writable := _writable(f"{name} (pid {pid}) {OPEN}", path, info)) is not None:
            yield writable


def _open_files(process: Path, remote: _Remote) -> Iterator[tuple[str, os.stat_result | None]]:
    for table in _descriptor_tables(process):
        for number in list_names(table / "fd"):
            link, fdinfo = table / "fd" / number, table / "fdinfo" / number
            try:
                path = os.readlink(link)
            except OSError:
                continue
            # otherwise it is a socket or a pipe
            if path.startswith("/") and _is_writable(fdinfo):
                is_remote = _field(fdinfo, "mnt_id") in remote.mounts
                yield path, None if is_remote else _stat(link)


def _descriptor_tables(process: Path) -> Iterator[Path]:
    """The descriptor tables of a process. There may be several: a thread may have its own
    (unshare(2)), and outlive the main thread."""
    yield process
    descriptors = list_names(process / "fd")
    for thread in list_names(process / "task"):
        if thread != process.name and list_names(process / "task" / thread / "fd") != descriptors:
            yield process / "task" / thread


def _mapped_files(process: Path, remote: _Remote) -> Iterator[tuple[str, os.stat_result | None]]:
    data = read_bytes(process / "maps") or b""
    if b"w-s " not in data and b"wxs " not in data:
        return
    for area, path in _SHARED.findall(decode(data)):
        path = path.replace("\\012", "\n").removesuffix(" (deleted)")
        if remote.has_file(path):
            yield path, None
            continue
        # another file may have this name by now; only root may read the mapping itself
        yield path, _stat(process / "map_files" / area) or _stat(Path(f"{process}/root{path}"))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


class _Remote:
    """The remote mounts of a process (proc_pid_mountinfo(5)), by number and by path; they are read
    on first use."""

    def __init__(self, process: Path) -> None:
        self._process = process
        self._read: dict[str, str] | None = None

    @property
    def mounts(self) -> dict[str, str]:
        if self._read is None:
            self._read = {}
            for line in decode(read_bytes(self._process / "mountinfo") or b"").split("\n"):
                before, _, after = line.partition(" - ")
                kind = after.partition(" ")[0]
                if kind in _REMOTE or kind.startswith("fuse."):
                    fields = before.split(" ")
                    self._read[fields[0]] = fields[4] if len(fields) > 4 else "/"
        return self._read

    def has_file(self, name: str) -> bool:
        return any(
            name == top or name.startswith(top.rstrip("/") + "/") for top in self.mounts.values()
        )


def _field(fdinfo: Path, name: str) -> str:
    for line in decode(read_bytes(fdinfo) or b"").split("\n"):
        if line.startswith(f"{name}:"):
            return line.partition(":")[2].strip()
    return ""


def _is_writable(fdinfo: Path) -> bool:
    flags = _field(fdinfo, "flags")
    try:
        number = int(flags, 8)
    except ValueError:
        # unreadable flags count as writable, because a false alarm is better; a closed descriptor
        # does not
        return bool(flags)
    # an O_PATH descriptor does not open the file
    return number & os.O_ACCMODE != os.O_RDONLY and not number & os.O_PATH


# Files and devices that the kernel itself exports, from configfs: by the NVMe target (nvmet) and
# the SCSI target (LIO) with its fileio store; and which local device uses such an export.
#
# LIO's iblock and pscsi stores claim their device like a mount, so they need no check.


CONFIG = "kernel/config"
# fd_show_configfs_dev_params() in drivers/target/target_core_file.c
_FILE = re.compile(r"(?s)TCM FILEIO ID: \d+ +File: (.*)  Size: \d+ ")
_ADDRESS = re.compile(r"(\d+:\d+:\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Export:
    """An exported file or device: its ``path``; ``user`` is the server in words; ``directory`` is
    its directory below /sys, and ``ids`` are the uuid or nguid that clients see."""

    path: str
    user: str
    directory: str
    ids: tuple[str, ...] = ()


def read_exports(roots: Roots) -> Iterator[Export]:
    yield from _nvme_exports(roots.sys / CONFIG / "nvmet/subsystems")
    yield from _scsi_exports(roots.sys / CONFIG / "target/core")


def exports_served_here(name: str, roots: Roots) -> Iterator[Export]:
    """The exports of this machine that its own device ``name`` uses as a client: over NVMe (loop or
    another transport) or LIO's loopback."""
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
    """The directory of the store behind a SCSI disk of LIO's loopback; "" for any other disk."""
    address = _ADDRESS.fullmatch(os.path.basename(os.path.realpath(block / "device")))
    top = roots.sys / CONFIG / "target/loopback"
    for port in list_names(top) if address else ():
        for group in list_names(top / port):
            if address and read_text(top / port / group / "address") == address[1]:
                lun = top / port / group / "lun" / f"lun_{address[2]}"
                links = (lun / entry for entry in list_names(lun))
                return next((os.path.realpath(link) for link in links if link.is_symlink()), "")
    return ""
