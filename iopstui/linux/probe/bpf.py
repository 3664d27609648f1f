"""Wrappers of the bpf(2) commands that the probe needs."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct

MAP_CREATE, PROG_LOAD = 0, 5
RAW_TRACEPOINT_OPEN, ENABLE_STATS = 17, 32
# its number on this machine (syscalls(2)); where it isn't known nothing is done
NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "s390x": 351,
           "ppc64le": 361, "armv7l": 386, "i686": 357}  # fmt: skip
_ATTR_BYTES = 128
# a map of one value, which processes can map into their memory (Linux 5.5)
_HASH, _ARRAY, _MMAPABLE = 1, 2, 1 << 10
# a program at a raw tracepoint, whose arguments the kernel knows the types of (Linux 5.5)
_TRACING, _RAW_TRACEPOINT = 26, 23
# only GPL-compatible programs may read the kernel's structures; this is the only name under which
# it accepts MIT (license_is_gpl_compatible, include/linux/license.h)
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


def new_value_map(size: int, name: str) -> int:
    """A descriptor of a new map of one value of ``size`` bytes, all 0, that can be mapped into
    memory. OSError."""
    flags = _MMAPABLE
    return _create(MAP_CREATE, _CREATE.pack(_ARRAY, 4, size, 1, flags, 0, 0, name.encode()))


def new_hash_map(value_bytes: int, keys: int, name: str) -> int:
    """A descriptor of a new map of ``keys`` keys of 8 bytes. OSError."""
    return _create(MAP_CREATE, _CREATE.pack(_HASH, 8, value_bytes, keys, 0, 0, 0, name.encode()))


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
