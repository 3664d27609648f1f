"""Detect the content of a block device: file systems, partition tables, RAID and LVM members.

``blkid -p`` (libblkid's low-level probing) knows the most; a small check of our own is used if
blkid is missing or finds nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from iopstui.linux.process.programs import which
from iopstui.text import printable

_HEAD_BYTES = 1 << 18
_TAIL_BYTES = 1 << 18
_SECTORS = (512, 4096)
_BLKID_SECONDS = 20
_MD_MAGIC = bytes.fromhex("fc4e2ba9")
# (offset in bytes, magic, meaning), from each format's specification
_MAGICS = (
    (0x438, b"\x53\xef", "an ext2/3/4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x10040, b"_BHRfS_M", "a btrfs file system"),
    (0x400, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (0x36, b"FAT", "a FAT file system"),
    (0x52, b"FAT32", "a FAT file system"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (0, b"hsqs", "a SquashFS file system"),
    (0, b"LUKS\xba\xbe", "LUKS encryption"),
    (0, _MD_MAGIC, "a member of an md array (linux_raid_member)"),
    (4096, _MD_MAGIC, "a member of an md array (linux_raid_member)"),
    (4096 + 24, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"), "a bcache member"),
)
_SWAP_PAGES = (4096, 8192, 16384, 65536)


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signatures found, in words. ``types`` are libblkid's names, if it was used. ``error`` says
    why the device could not be examined ("" if it was)."""

    contents: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    error: str = ""


def read_signatures(path: str) -> Signatures:
    """Detect the content of the device or file at ``path``. Only reads."""
    try:
        head, tail, size = _read_ends(path)
    except OSError as error:
        return Signatures(error=error.strerror or str(error))
    by_magic = tuple(dict.fromkeys(known_magics(head, tail, size)))
    probed = _blkid(path)
    if probed is None or not probed.contents:
        return Signatures(contents=by_magic, types=probed.types if probed else ())
    return probed


def known_magics(head: bytes, tail: bytes, size: int) -> Iterator[str]:
    """Known magic numbers in the first and last bytes of a device of ``size`` bytes, in words."""
    for offset, magic, description in _MAGICS:
        if head[offset : offset + len(magic)] == magic:
            yield description
    for page in _SWAP_PAGES:
        if head[page - 10 : page] in (b"SWAPSPACE2", b"SWAP-SPACE"):
            yield "swap space"
    if any(head[sector * 512 :].startswith(b"LABELONE") for sector in range(4)):
        yield "an LVM physical volume"
    if _has_zfs(head):
        yield "a ZFS pool member (zfs_member)"
    yield from _partition_tables(head, tail)
    yield from _md_at_end(tail, size)


def _partition_tables(head: bytes, tail: bytes) -> Iterator[str]:
    first = any(head[sector:].startswith(b"EFI PART") for sector in _SECTORS)
    last = any(len(tail) >= s and tail[-s:].startswith(b"EFI PART") for s in _SECTORS)
    if first or last:
        yield "a GPT partition table"
    if head[510:512] == b"\x55\xaa":
        yield "a partition table or boot sector (MBR)"


def _md_at_end(tail: bytes, size: int) -> Iterator[str]:
    """Find md metadata 0.90 or 1.0, which is near the end of a device
    (Documentation/admin-guide/md.rst)."""
    version_0 = (size & ~0xFFFF) - 0x10000
    version_1 = ((size // 512 - 16) & ~7) * 512
    start = size - len(tail)
    for offset in (version_0, version_1):
        at = offset - start
        if at >= 0 and tail[at : at + 4] in (_MD_MAGIC, _MD_MAGIC[::-1]):
            yield "a member of an md array (linux_raid_member)"
            return


def _has_zfs(head: bytes) -> bool:
    """Whether the ring in the first label has an uberblock's magic (0x00bab10c, in either byte
    order)."""
    ring = head[0x20000:0x40000]
    magic = (0x00BAB10C).to_bytes(8, "little")
    return any(ring[at : at + 8] in (magic, magic[::-1]) for at in range(0, len(ring), 1024))


def _read_ends(path: str) -> tuple[bytes, bytes, int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        head = os.pread(fd, _HEAD_BYTES, 0)
        start = max(0, size - _TAIL_BYTES)
        return head, os.pread(fd, size - start, start), size
    finally:
        os.close(fd)


def _blkid(path: str) -> Signatures | None:
    """The answer of blkid; None if blkid is missing or could not answer."""
    program = which("blkid", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if program is None:
        return None
    try:
        process = subprocess.run(
            [program, "-p", "-o", "export", path],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_BLKID_SECONDS,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if process.returncode == 8:
        return Signatures(contents=("signatures that contradict each other",))
    if process.returncode != 0:
        return Signatures() if process.returncode == 2 else None
    return parse_blkid(process.stdout.decode("utf-8", "replace"))


def parse_blkid(text: str) -> Signatures:
    """Parse the output of ``blkid -p -o export``: KEY=VALUE lines."""
    pairs = (line.partition("=") for line in text.splitlines())
    values = {key: printable(value) for key, equals, value in pairs if equals}
    contents = []
    kind = values.get("TYPE")
    if kind:
        label = f', label "{values["LABEL"]}"' if values.get("LABEL") else ""
        contents.append(_describe(kind, values.get("USAGE", ""), label))
    if values.get("PTTYPE"):
        contents.append(f"a partition table ({values['PTTYPE']})")
    return Signatures(contents=tuple(contents), types=(kind,) if kind else ())


def _describe(kind: str, use: str, label: str) -> str:
    if use == "filesystem":
        return f"a file system ({kind}{label})"
    if use == "raid":
        return f"a RAID or volume manager's signature ({kind}{label})"
    if use == "crypto":
        return f"encryption ({kind}{label})"
    return f"a signature ({kind}{label})"
