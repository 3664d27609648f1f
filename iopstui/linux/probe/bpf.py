"""Wrappers of the bpf(2) commands that the probe needs."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator

MAP_CREATE, MAP_LOOKUP_ELEM, MAP_DELETE_ELEM, MAP_GET_NEXT_KEY, PROG_LOAD = 0, 1, 3, 4, 5
MAP_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 14, 15
RAW_TRACEPOINT_OPEN, ENABLE_STATS = 17, 32
# its number on this machine (syscalls(2)); where it isn't known nothing is done
NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "s390x": 351,
           "ppc64le": 361, "armv7l": 386, "i686": 357}  # fmt: skip
_ATTR_BYTES = 128
_INFO_BYTES = 128
# struct bpf_map_info: type, id, key_size, value_size, max_entries, map_flags, name (linux/bpf.h)
_INFO = struct.Struct("6I16s")
# a map of one value, which processes can map into their memory (Linux 5.5)
_ARRAY, _MMAPABLE = 2, 1 << 10
# a program at a raw tracepoint, whose arguments the kernel knows the types of (Linux 5.5)
_TRACING, _RAW_TRACEPOINT = 26, 23
# the kernel lets none but GPL-compatible programs look into its structures, and knows MIT, which is
# compatible, under this name alone (license_is_gpl_compatible, include/linux/license.h)
_LICENSE = b"Dual MIT/GPL"
_CREATE = struct.Struct("=7I16s")
# union bpf_attr of BPF_PROG_LOAD up to attach_btf_id
_LOAD = struct.Struct("=IIQQIIQII16sIIIIQIIQII")
_libc: ctypes.CDLL | None = None


def call(command: int, attr: bytes) -> int:
    """Call bpf(2) and return its result; -1 if it fails or this machine's call number is
    unknown."""
    global _libc
    number = NUMBERS.get(platform.machine())
    if number is None:
        return -1
    if _libc is None:
        _libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attr, _ATTR_BYTES)
    return int(_libc.syscall(number, command, buffer, _ATTR_BYTES))


class Map:
    """An open map with integer keys and values of 8 bytes. The creator must close ``fd``."""

    def __init__(self, fd: int, most: int) -> None:
        self._fd = fd
        self._max_entries = most

    def __iter__(self) -> Iterator[int]:
        """Iterate over all entries. A map that changes meanwhile may begin again from its first: no
        more than it has room for are given."""
        after = ctypes.create_string_buffer(8)
        following = ctypes.create_string_buffer(8)
        key_address: int | None = None
        for _ in range(self._max_entries):
            if call(MAP_GET_NEXT_KEY, self._attr(key_address, ctypes.addressof(following))) != 0:
                return
            after.raw = following.raw
            key_address = ctypes.addressof(after)
            yield int.from_bytes(after.raw, "little")

    def get(self, key: int) -> int | None:
        """The value of ``key``."""
        name = ctypes.create_string_buffer(key.to_bytes(8, "little"), 8)
        value = ctypes.create_string_buffer(8)
        attr = self._attr(ctypes.addressof(name), ctypes.addressof(value))
        return int.from_bytes(value.raw, "little") if call(MAP_LOOKUP_ELEM, attr) == 0 else None

    def delete(self, key: int) -> bool:
        """True if it was there."""
        name = ctypes.create_string_buffer(key.to_bytes(8, "little"), 8)
        return call(MAP_DELETE_ELEM, self._attr(ctypes.addressof(name), 0)) == 0

    def _attr(self, key: int | None, value: int) -> bytes:
        # fd, padding, address of the key, address of the value or of the next key, flags
        return struct.pack("IxxxxQQQ", self._fd, key or 0, value, 0)


def open_map(number: int) -> int:
    """A descriptor of the map with this id; -1 if there is none, or no right (CAP_SYS_ADMIN)."""
    return call(MAP_GET_FD_BY_ID, struct.pack("III", number, 0, 0))


def describe_map(fd: int) -> tuple[str, int] | None:
    """Name and room of a map whose keys and values have 8 bytes; ``None`` for any other."""
    info = ctypes.create_string_buffer(_INFO_BYTES)
    if call(OBJ_GET_INFO_BY_FD, struct.pack("IIQ", fd, _INFO_BYTES, ctypes.addressof(info))) != 0:
        return None
    _, _, key_size, value_size, capacity, _, name = _INFO.unpack(info.raw[: _INFO.size])
    if (key_size, value_size) != (8, 8):
        return None
    return name.rstrip(b"\0").decode("ascii", "replace"), capacity


def new_value_map(size: int, name: str) -> int:
    """A descriptor of a new map of one value of ``size`` bytes, all 0, that can be mapped into
    memory. OSError."""
    flags = _MMAPABLE
    return _create(MAP_CREATE, _CREATE.pack(_ARRAY, 4, size, 1, flags, 0, 0, name.encode()))


def load_program(code: bytes, tracepoint: int, name: str) -> int:
    """A descriptor of these instructions as a program for the raw tracepoint whose type has this
    number in the kernel's BTF. OSError if the kernel refuses."""
    text = ctypes.create_string_buffer(code, len(code))
    license_of = ctypes.create_string_buffer(_LICENSE)
    begins, says = ctypes.addressof(text), ctypes.addressof(license_of)
    return _create(PROG_LOAD, _LOAD.pack(
        _TRACING, len(code) // 8, begins, says, 0, 0, 0, 0, 0, name.encode(), 0, _RAW_TRACEPOINT,
        0, 0, 0, 0, 0, 0, 0, tracepoint,
    ))  # fmt: skip


def attach_program(fd: int) -> int:
    """A descriptor: as long as it is open, the program ``fd`` runs at its tracepoint. OSError."""
    return _create(RAW_TRACEPOINT_OPEN, struct.pack("=QI", 0, fd))


def close_all(fds: list[int]) -> None:
    """Close these and empty the list, the newest first: what runs before what it uses."""
    while fds:
        with contextlib.suppress(OSError):
            os.close(fds.pop())


def _create(command: int, attr: bytes) -> int:
    ctypes.set_errno(errno.ENOSYS)
    fd = call(command, attr)
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return fd
