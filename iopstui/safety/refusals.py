"""The write guard: find reasons against writing to a device or file, and reserve it.

A device in use is refused, and nothing overrides that. A device that is not in use is written only
if the user repeats its path with ``--destroy-data``."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from iopstui.errors import Refused
from iopstui.linux.devices.aliases import generic_number, read_backings
from iopstui.linux.devices.signatures import Signatures, read_signatures
from iopstui.linux.devices.usage.mounts import read_btrfs
from iopstui.linux.devices.usage.openers import File, file_identity, hidden_programs_reason, writers
from iopstui.linux.kernel_files import Roots, list_names, read_count, read_flag, read_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.stack import Backings, Stack, backing_files, uses_of_device
from iopstui.model.block.target import DEVICE, FILE, Target
from iopstui.safety.file_users import FileUsers, exporter_pid_text, users_of_backing
from iopstui.safety.locks import ActiveRun, identity
from iopstui.text import printable

Devices = Mapping[str, BlockDevice]
DestroyData = str | Sequence[str] | None

# linux/fs.h: _IOR(0x12, 128, __u64), as encoded on x86, ARM, RISC-V and s390
_BLKGETDISKSEQ = 0x80081280
_CHOOSE_ANOTHER = "There is no override. Choose another device; see: iopstui devices"


@dataclass(frozen=True, slots=True)
class WriteVerdict:
    """Reasons against writing to ``path``, in words.

    ``in_use`` reasons always lead to a refusal. ``contents`` are data that would be destroyed.
    ``unseen`` says why it is unknown whether another program has it open."""

    path: str
    in_use: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    unseen: str = ""

    @property
    def blank(self) -> bool:
        """True if the device is unused and nothing was found on it."""
        return not self.in_use and not self.contents


def write_reasons(
    device: str,
    devices: Devices,
    roots: Roots,
    *,
    path: str | None = None,
    reserved: bool = False,
    active: ActiveRun | None = None,
) -> WriteVerdict:
    """All reasons against writing to a block device. Only reads.

    ``path`` is the node to open (default: the device's own). ``reserved``: this process already
    holds the device exclusively, so that is not tried. A device that cannot be examined counts as
    in use. ``devices`` should be fresh. Processes of the ``active`` run don't count as other
    programs."""
    block_device = devices.get(device)
    if block_device is None:
        return WriteVerdict(path or device, in_use=("the device no longer exists",))
    node = path or block_device.path
    backings = read_backings(devices, roots)
    stack = Stack(devices, backings)
    in_use = [*uses_of_device(device, devices, backings), *_memberships(device, stack, roots)]
    in_use += _state_reasons(block_device, roots)
    in_use += _uses_of_same_disk(block_device, stack, roots)
    in_use += users_of_backing((device, *stack.below(device)), stack, backings, roots)
    if not reserved:
        in_use += _exclusive_open_errors(node, block_device)
        for lower in lower_loops(device, stack):
            in_use += _exclusive_open_errors(str(roots.dev / lower.name), lower)
    carries, more = _check_contents(block_device, node, devices, roots)
    in_use += [*more, *_other_writers(device, node, stack, backings, roots, active)]
    return WriteVerdict(
        path=node,
        in_use=tuple(dict.fromkeys(in_use)),
        contents=tuple(dict.fromkeys(carries)),
        unseen=hidden_programs_reason(roots),
    )


def check_write(
    target: Target,
    devices: Devices,
    roots: Roots,
    destroy_data: DestroyData,
    *,
    reserved: bool = False,
    open_stat: os.stat_result | None = None,
    users: FileUsers | None = None,
) -> WriteVerdict:
    """Raise Refused unless a job may write to the target; otherwise return warnings.

    ``open_stat`` is the stat of the file or device that the caller holds open; then this one is
    checked. ``users`` knows who uses files (many calls share it). A raw device needs
    ``destroy_data`` (one path or several) to repeat its path even if it is blank; so does an
    existing file. A directory is accepted: only our own scratch file is written there."""
    if target.kind == FILE:
        return check_file_write(target.path, destroy_data, devices, roots, open_stat=open_stat,
                                users=users)  # fmt: skip
    if target.kind != DEVICE:
        return WriteVerdict(target.path)
    # for a generic device: it can't be opened exclusively, and its content can't be read like a
    # file's
    node = None if target.passthrough else target.path
    verdict = write_reasons(target.device or "", devices, roots, path=node, reserved=reserved,
                            active=users.active if users is not None else None)  # fmt: skip
    path = printable(target.path)
    _check_unused(path, verdict)
    device = devices[target.device or ""]
    if target.passthrough and _confirms_device(destroy_data, device):
        return verdict
    if open_stat is None and roots.real:
        open_stat = _stat(target.path)
    _check_confirmation(target.path, destroy_data, _loss_text(verdict, path), open_stat, roots,
                device.diskseq)  # fmt: skip
    return verdict


def _check_unused(path: str, verdict: WriteVerdict) -> None:
    """Raise Refused if the device is in use."""
    if verdict.in_use:
        more = "; ".join(verdict.contents)
        raise Refused(
            f"Refusing to write to {path}: it is in use: {'; '.join(verdict.in_use)}."
            + (f" Also: {more}." if more else ""),
            _CHOOSE_ANOTHER,
        )


def check_file_write(
    path: str,
    destroy_data: DestroyData,
    devices: Devices | None = None,
    roots: Roots | None = None,
    *,
    open_stat: os.stat_result | None = None,
    users: FileUsers | None = None,
) -> WriteVerdict:
    """Raises Refused unless a job may write to the file ``path``, which may not exist yet.

    A file used by a loop device or as swap, or open for writing in another program, is in use, and
    nothing overrides that. ``open_stat``, ``users``: see ``check_write``."""
    real, path_text = os.path.realpath(path), printable(path)
    roots = roots or Roots()
    info = open_stat or _stat(path)
    if info is None:
        if os.path.lexists(path):
            _check_confirmation(real, destroy_data, f"{path_text} exists; the job would overwrite "
                                            "it.", None, roots)  # fmt: skip
        return WriteVerdict(path)
    if not stat.S_ISREG(info.st_mode):
        raise Refused(f"Refusing to write to {path_text}: it is not a regular file.")
    why = (users or FileUsers(devices or {}, roots)).users_of(real, info)
    if why:
        raise Refused(
            f"Refusing to write to {path_text}: it is in use: {'; '.join(why)}.",
            "There is no override. Detach it first (losetup -d, swapoff), end the program that has "
            "it open, or name another file.",
        )
    _check_confirmation(
        real, destroy_data, f"{path_text} exists; the job would overwrite it.", info, roots
    )
    return WriteVerdict(path)


def lower_loops(device: str, stack: Stack) -> list[BlockDevice]:
    """The backing devices of this device, if it is a loop device, and of loop devices below it:
    unless they are held, the kernel lets others mount them during the run."""
    above = (device, *stack.below(device))
    lower = (
        name
        for upper in above
        for name in stack.directly_below(upper)
        if upper in stack.loops_on(name)
    )
    return [stack.devices[name] for name in dict.fromkeys(lower)]


class ExclusiveHold:
    """An exclusively opened device: no other program can mount it or use it for swap or RAID."""

    def __init__(self, fd: int, path: str, device: BlockDevice, roots: Roots) -> None:
        self.fd = fd
        self._path = path
        self._device = device
        self._roots = roots

    def verify(self) -> None:
        """Raises Refused unless the path still leads to the same device: number and disk sequence
        number are compared."""
        try:
            fd_number, path_number = os.fstat(self.fd).st_rdev, os.stat(self._path).st_rdev
        except OSError as error:
            raise self._replaced(
                f"its device node cannot be examined ({error.strerror})"
            ) from error
        expected = os.makedev(self._device.major, self._device.minor)
        if fd_number != expected or path_number != expected:
            raise self._replaced("its device node belongs to another device now")
        if self._device.diskseq is None:
            return
        for now in (_ioctl_diskseq(self.fd), self._sysfs_diskseq()):
            if now is not None and now != self._device.diskseq:
                raise self._replaced("another disk took its name")

    def _sysfs_diskseq(self) -> int | None:
        name = (self._device.disk or self._device.name).replace("/", "!")
        return read_count(self._roots.sys / "class/block" / name / "diskseq")

    def _replaced(self, why: str) -> Refused:
        return Refused(
            f"Refusing to write to {printable(self._path)}: {why}.",
            "Look again with: iopstui devices",
        )


@contextmanager
def open_exclusively(
    path: str, device: BlockDevice, roots: Roots, active: ActiveRun | None = None
) -> Iterator[ExclusiveHold]:
    """Hold the block device at ``path`` exclusively and verify that it still is ``device``.

    Opens O_RDONLY|O_EXCL: ordinary opens (fio's) still work, mount(2), swapon(2) and mkfs are
    refused. A descriptor that the ``active`` run holds is duplicated instead. Raises Refused if it
    is in use, gone, or another device."""
    try:
        fd = adopted_hold(path, active)
        if fd is None:
            fd = os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        why = _open_error_text(error)
        raise Refused(f"Refusing to write to {printable(path)}: {why}.", _CHOOSE_ANOTHER) from error
    try:
        if not stat.S_ISBLK(os.fstat(fd).st_mode):
            raise Refused(f"Refusing to write to {printable(path)}: it is not a block device.")
        hold = ExclusiveHold(fd, path, device, roots)
        hold.verify()
        yield hold
    finally:
        os.close(fd)


def adopted_hold(path: str, active: ActiveRun | None) -> int | None:
    """A duplicate of the active run's exclusive descriptor of the device at ``path``; ``None`` if
    the run has no such descriptor. Raises OSError."""
    held = active.holds if active is not None else ()
    info = identity(os.stat(path)) if held else None
    return next((os.dup(fd) for fd in held if identity(os.fstat(fd)) == info), None)


def is_held(path: str, device: BlockDevice, roots: Roots, active: ActiveRun) -> bool:
    """Whether the active run holds the device at ``path`` exclusively. Raises Refused if the path
    no longer leads to ``device``."""
    try:
        fd = adopted_hold(path, active)
    except OSError:
        return False
    if fd is None:
        return False
    try:
        ExclusiveHold(fd, path, device, roots).verify()
    finally:
        os.close(fd)
    return True


def _ioctl_diskseq(fd: int) -> int | None:
    try:
        answer = fcntl.ioctl(fd, _BLKGETDISKSEQ, b"\0" * 8)
    except OSError:
        return None  # Linux before 5.15 has no such ioctl
    return int(struct.unpack("Q", answer)[0])


def _check_confirmation(
    path: str,
    destroy_data: DestroyData,
    reason: str,
    info: os.stat_result | None,
    roots: Roots,
    diskseq: int | None = None,
) -> None:
    path_text = printable(path)
    paths = [destroy_data] if isinstance(destroy_data, str) else list(destroy_data or ())
    if not paths:
        raise Refused(
            reason,
            "Use a job that only reads (randread-4k), or, if nothing on it is needed, repeat "
            f"its path: --destroy-data {path_text}",
        )
    # in a fixture tree, paths lead to other devices than on this machine, so they are compared as
    # text
    bound = (
        bind_paths(paths) if roots.real or info is not None else [DestroyPath(w, w) for w in paths]
    )
    if any(destroy_path.matches(path, info, diskseq) for destroy_path in bound):
        return
    if any(
        os.path.isabs(destroy_path.text) and os.path.realpath(destroy_path.text) == path
        for destroy_path in bound
    ):
        raise Refused(
            f"Refusing to write to {path_text}: it is not the file or device that --destroy-data "
            "named.",
            "Another file or device has that name now. Check it, then start again.",
        )
    raise Refused(
        f"--destroy-data names {' and '.join(map(_quoted, paths))}, "
        f"but the job would write to {path_text}.",
        f"Repeat the target's exact path: --destroy-data {path_text}",
    )


def _confirms_device(destroy_data: DestroyData, device: BlockDevice) -> bool:
    """Whether one of the paths leads to this block device, whose generic device a job uses."""
    paths = [destroy_data] if isinstance(destroy_data, str) else list(destroy_data or ())
    info = _stat(device.path)
    return info is not None and any(
        destroy_path.matches(device.path, info, device.diskseq)
        for destroy_path in bind_paths(paths)
    )


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _quoted(text: str) -> str:
    return printable(text) or '""'


def _loss_text(verdict: WriteVerdict, path: str) -> str:
    doubt = f" Another program may be writing to it: {verdict.unseen}."
    doubt = doubt if verdict.unseen else ""
    if verdict.contents:
        reasons = "; ".join(verdict.contents)
        return f"The job would destroy the data on {path}: {reasons}.{doubt}"
    return f"{path} is a raw device that seems empty; the job would destroy any data on it.{doubt}"


def _other_writers(
    device: str, node: str, stack: Stack, backings: Backings, roots: Roots, active: ActiveRun | None
) -> Iterator[str]:
    """Other programs that have one of these open for writing: the device, anything below, above or
    beside it, its namespace's generic device, or the backing file of a loop device among these. A
    virtual machine uses its disk like that: neither mounted nor held exclusively, but destroyed
    just as surely. A program that only reads is no reason."""
    below = stack.below(device)
    related = (*stack.above(device), *below, *stack.overlapping(device), *stack.snapshots(device))
    names = dict.fromkeys(related)
    members = [stack.devices[name] for name in names]
    nodes = {node, *(member.path for member in members)}
    numbers = {(member.major, member.minor) for member in members}
    files = backing_files(names, backings)
    servers = tuple(filter(None, (exporter_pid_text(name, roots) for name in names)))
    generic = {generic_number(roots, name) for name in names} - {None}
    for writer in writers(nodes, roots, numbers, files, filter(None, generic),
                          active.owns if active is not None else None):  # fmt: skip
        # mdmon(8) keeps an array's metadata on its disks, and writes to nothing else there
        if writer.startswith("mdmon (") and any(stack.devices[n].kind == "md" for n in names):
            continue
        if not any(server_name in writer for server_name in servers):
            yield writer


def _memberships(device: str, stack: Stack, roots: Roots) -> Iterator[str]:
    """Uses as a member that holders/ does not show: btrfs, bcache."""
    names = tuple(dict.fromkeys((*stack.above(device), *stack.overlapping(device))))
    for uuid, members in read_btrfs(roots).items():
        for name in sorted(members.intersection((*names, *stack.below(device)))):
            yield f"{name} belongs to the mounted btrfs {printable(uuid)}"
    bcache = _bcache_members(roots)
    for name in names:
        member = (_directory(name, roots) / "bcache").is_dir()
        # a device made of members has a link of this name to one of them
        made_of_them = name in stack.devices and stack.devices[name].layer == "bcache"
        if name in bcache or (member and not made_of_them):
            yield f"{name} is a bcache member"


def _bcache_members(roots: Roots) -> frozenset[str]:
    """Names of the devices that bcache uses: /sys/fs/bcache/SET/{cacheN,bdevN} link to
    BLOCK/bcache."""
    top = roots.sys / "fs/bcache"
    members = set()
    for group in list_names(top):
        for entry in list_names(top / group):
            real = os.path.realpath(top / group / entry)
            if entry.startswith(("cache", "bdev")) and os.path.basename(real) == "bcache":
                members.add(os.path.basename(os.path.dirname(real)).replace("!", "/"))
    return frozenset(members)


def _state_reasons(device: BlockDevice, roots: Roots) -> Iterator[str]:
    read_only = read_flag(_directory(device.name, roots) / "ro")
    if device.read_only or read_only:
        yield f"{device.name} is read-only"
    if device.hidden:
        yield f"{device.name} is a path of a multipath device"


def _uses_of_same_disk(device: BlockDevice, stack: Stack, roots: Roots) -> Iterator[str]:
    """Other devices that are the same disk on another path and are in use. A LUN can be seen
    through two host adapters without multipath; the kernel then treats them as two disks."""
    devices = stack.devices
    disk = devices.get(device.disk or "", device)
    wwid = _wwid(disk, roots)
    if wwid is None:
        return
    for other in devices.values():
        related = other.name == disk.name or other.name in (*disk.slaves, *disk.holders)
        if related or other.disk is not None or _wwid(other, roots) != wwid:
            continue
        for reason in uses_of_device(other.name, devices):
            yield f"it is the same disk as {other.name} (WWID {printable(wwid)}): {reason}"


def _wwid(device: BlockDevice, roots: Roots) -> str | None:
    if device.kind not in ("scsi", "nvme") or device.hidden:
        return None
    directory = _directory(device.name, roots)
    return read_text(directory / "device/wwid") or read_text(directory / "wwid")


def _exclusive_open_errors(node: str, device: BlockDevice) -> Iterator[str]:
    try:
        fd = os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        yield _open_error_text(error)
        return
    try:
        info = os.fstat(fd)
        number = (os.major(info.st_rdev), os.minor(info.st_rdev))
        if not stat.S_ISBLK(info.st_mode) or number != (device.major, device.minor):
            yield f"{printable(node)} is no longer the node of {device.name}"
    finally:
        os.close(fd)


def _open_error_text(error: OSError) -> str:
    if error.errno == errno.EBUSY:
        return "it is held exclusively by the kernel or another program"
    return f"it cannot be opened to check that it is unused ({error.strerror or error})"


def _check_contents(
    device: BlockDevice, node: str, devices: Devices, roots: Roots
) -> tuple[list[str], list[str]]:
    """The contents that would be destroyed, and the uses, of the device and its partitions."""
    carries: list[str] = []
    in_use: list[str] = []
    if device.partitions:
        carries.append("partitions " + ", ".join(device.partitions))
    nodes = [(device.name, node)]
    nodes += [(name, devices[name].path) for name in device.partitions if name in devices]
    for name, path in nodes:
        signatures = read_signatures(path)
        carries += [f"{name} carries {content}" for content in signatures.contents]
        if signatures.error:
            carries.append(f"the content of {name} cannot be read ({signatures.error})")
        if _is_zfs(signatures) and (roots.sys / "module/zfs").is_dir():
            in_use.append(f"{name} is a ZFS pool member, and ZFS is loaded")
    return carries, in_use


def _is_zfs(signatures: Signatures) -> bool:
    return "zfs_member" in signatures.types or any("zfs_member" in s for s in signatures.contents)


def _directory(name: str, roots: Roots) -> Path:
    return roots.sys / "class/block" / name.replace("/", "!")


# The paths of ``--destroy-data``. Each is bound to its device or file when the option is read.


SYS = Path("/sys/dev/block")


@dataclass(frozen=True, slots=True)
class DestroyPath:
    """A path of ``--destroy-data``, bound to the file or device it named when it was read.

    ``real`` is the path with links followed, ``file`` the file (``None``: there was none), or
    ``number`` the block device, ``diskseq`` tells which of the disks that had this number it is.
    ``fd`` keeps the file's inode from being reused."""

    text: str
    real: str
    file: File | None = None
    number: tuple[int, int] | None = None
    diskseq: int | None = None
    fd: int = -1

    @property
    def existed(self) -> bool:
        """False if the path named nothing when it was read."""
        return self.file is not None or self.number is not None

    def matches(self, path: str, info: os.stat_result | None, diskseq: int | None = None) -> bool:
        """Whether this path leads to the file or device ``info``, whose real path is ``path``."""
        if not os.path.isabs(self.text):
            return False
        if info is None or not self.existed:
            return self.real == path
        if stat.S_ISBLK(info.st_mode):
            if self.number != (os.major(info.st_rdev), os.minor(info.st_rdev)):
                return False
            return None in (self.diskseq, diskseq) or self.diskseq == diskseq
        return self.file == file_identity(info)


def bind_paths(texts: Sequence[str]) -> tuple[DestroyPath, ...]:
    """Bind the paths to their present files or devices; paths that were bound before keep their
    binding."""
    return tuple(map(_bind_path, texts))


@cache
def _bind_path(text: str) -> DestroyPath:
    try:
        real = os.path.realpath(text)
        fd = os.open(real, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return DestroyPath(text, os.path.realpath(text) if "\0" not in text else text)
    info = os.fstat(fd)
    if not stat.S_ISBLK(info.st_mode):
        return DestroyPath(text, real, file=file_identity(info), fd=fd)
    major, minor = os.major(info.st_rdev), os.minor(info.st_rdev)
    directory = SYS / f"{major}:{minor}"
    diskseq = read_count(directory / "diskseq")
    if diskseq is None:
        diskseq = read_count(directory / "../diskseq")
    return DestroyPath(text, real, number=(major, minor), diskseq=diskseq, fd=fd)
