"""Assemble BPF instructions (RFC 9669), and the bpf(2) commands that the probe needs."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
from collections.abc import Collection, Mapping

from iopstui.linux.kernel_files import Roots

_INSTRUCTION = struct.Struct("<BBhi")
_LOADS = {4: 0x61, 8: 0x79}
_STORES = {8: 0x7B}
_WITH_NUMBER = {"=": 0xB7, "+": 0x07, "-": 0x17, "*": 0x27, "|": 0x47, "&": 0x57, "<<": 0x67,
                ">>": 0x77, "^": 0xA7}  # fmt: skip
# added to one of these codes: the operand is a register
_FROM_REGISTER = 0x08
# jumps that compare the lower 32 bits, unsigned
_JUMPS = {"==": 0x16, ">": 0x26, ">=": 0x36, "!=": 0x56, "<": 0xA6}
_WIDE = {"==": 0x15, ">": 0x25, ">=": 0x35, "!=": 0x55, "<": 0xA5}
_GOTO, _CALL, _EXIT, _LOAD_WIDE = 0x05, 0x85, 0x95, 0x18
_ADD_ATOMIC = {4: 0xC3, 8: 0xDB}
# BPF_FETCH, a flag in the number of an atomic operation
_FETCH = 1
# BPF_PSEUDO_MAP_FD: the map with this descriptor; BPF_PSEUDO_MAP_VALUE: its first value's address
_MAP, _MAP_VALUE = 1, 2
# from linux/bpf.h, enum bpf_func_id
KTIME_GET_NS, GET_SMP_PROCESSOR_ID, GET_CURRENT_PID_TGID = 5, 8, 14
GET_CURRENT_TASK, PROBE_READ_KERNEL = 35, 113
MAP_LOOKUP, MAP_UPDATE, MAP_DELETE = 1, 2, 3
STACK = 10
"""The register with the address after the last of the 512 bytes of the stack."""


class Program:
    """A sequence of instructions. Registers are 0 to 10; ``n`` is a 32-bit number."""

    def __init__(self) -> None:
        self._rows: list[list[int]] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []

    def load(self, size: int, to: int, address: int, offset: int) -> None:
        """``to`` = ``size`` bytes at ``address`` + ``offset``."""
        self._add(_LOADS[size], to, address, offset)

    def store(self, address: int, offset: int, register: int) -> None:
        """8 bytes at ``address`` + ``offset`` = ``register``."""
        self._add(_STORES[8], address, register, offset)

    def do(self, operation: str, to: int, n: int) -> None:
        """``to`` = ``to`` ``operation`` ``n``; "=" for ``n`` itself."""
        self._add(_WITH_NUMBER[operation], to, 0, 0, n)

    def do_with(self, operation: str, to: int, register: int) -> None:
        """``to`` = ``to`` ``operation`` ``register``; "=" for the register itself."""
        self._add(_WITH_NUMBER[operation] | _FROM_REGISTER, to, register)

    def jump(self, register: int, test: str, n: int, to: str) -> None:
        """Jump if the lower 32 bits of ``register``, unsigned, pass the test."""
        self._jump(to, _JUMPS[test], register, 0, n if n < 1 << 31 else n - (1 << 32))

    def jump_wide(self, register: int, test: str, n: int, to: str) -> None:
        """Jump if all 64 bits of ``register``, unsigned, pass the test; ``n`` is below 2^31."""
        self._jump(to, _WIDE[test], register, 0, n)

    def jump_with(self, register: int, test: str, source: int, to: str) -> None:
        """Jump if the comparison of ``register`` with another one (unsigned) is true."""
        self._jump(to, _WIDE[test] | _FROM_REGISTER, register, source, 0)

    def goto(self, to: str) -> None:
        """Jump always."""
        self._jump(to, _GOTO, 0, 0, 0)

    def label(self, name: str) -> None:
        """Define the label ``name`` here, a jump target."""
        self._labels[name] = len(self._rows)

    def wide(self, to: int, n: int) -> None:
        """``to`` = ``n``, of 64 bits."""
        self._add(_LOAD_WIDE, to, 0, 0, _signed(n & 0xFFFFFFFF))
        self._add(0, 0, 0, 0, _signed(n >> 32))

    def value(self, to: int, fd: int, offset: int = 0) -> None:
        """``to`` = the address of ``offset`` in the single value of the map ``fd``."""
        self._add(_LOAD_WIDE, to, _MAP_VALUE, 0, fd)
        self._add(0, 0, 0, 0, offset)

    def map(self, to: int, fd: int) -> None:
        """``to`` = the map ``fd``, as an argument of a helper."""
        self._add(_LOAD_WIDE, to, _MAP, 0, fd)
        self._add(0, 0)

    def call(self, helper: int) -> None:
        """Call a helper: r0 = its result; r1 to r5 are lost."""
        self._add(_CALL, 0, 0, 0, helper)

    def add_atomic(self, address: int, register: int, size: int = 8) -> None:
        """Add ``register`` to the ``size`` bytes at ``address``."""
        self._add(_ADD_ATOMIC[size], address, register)

    def fetch_add(self, address: int, register: int) -> None:
        """As ``add_atomic``; then ``register`` = the previous value (Linux 5.12)."""
        self._add(_ADD_ATOMIC[8], address, register, 0, _FETCH)

    def end(self) -> None:
        self.do("=", 0, 0)
        self._add(_EXIT)

    def code(self) -> bytes:
        """The assembled program. Raises KeyError for an undefined label."""
        for at, name in self._jumps:
            self._rows[at][2] = self._labels[name] - at - 1
        return b"".join(_INSTRUCTION.pack(*row) for row in self._rows)

    def _jump(self, to: str, code: int, register: int, source: int, n: int) -> None:
        self._jumps.append((len(self._rows), to))
        self._add(code, register, source, 0, n)

    def _add(self, code: int, to: int = 0, source: int = 0, offset: int = 0, n: int = 0) -> None:
        self._rows.append([code, to | source << 4, offset, n])


def _signed(n: int) -> int:
    return n - (1 << 32) if n >= 1 << 31 else n


MAP_CREATE, PROG_LOAD = 0, 5
RAW_TRACEPOINT_OPEN, ENABLE_STATS = 17, 32
# number of the system call bpf by machine; on other machines the probe is not available
NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "s390x": 351,
           "ppc64le": 361, "armv7l": 386, "i686": 357}  # fmt: skip
_ATTR_BYTES = 128
# a map of one value, which processes can map into their memory (Linux 5.5)
_HASH, _ARRAY, _MMAPABLE = 1, 2, 1 << 10
# a program at a raw tracepoint with typed arguments (Linux 5.5)
_TRACING, _RAW_TRACEPOINT = 26, 23
# only GPL-compatible programs may read the kernel's structures; this is the only name under which
# it accepts MIT (license_is_gpl_compatible, include/linux/license.h)
_LICENSE = b"Dual MIT/GPL"
_CREATE = struct.Struct("=7I16s")
# the part of union bpf_attr for BPF_PROG_LOAD up to attach_btf_id
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
    memory. Raises OSError."""
    flags = _MMAPABLE
    return _create(MAP_CREATE, _CREATE.pack(_ARRAY, 4, size, 1, flags, 0, 0, name.encode()))


def new_hash_map(value_bytes: int, keys: int, name: str) -> int:
    """A descriptor of a new map of ``keys`` keys of 8 bytes. Raises OSError."""
    return _create(MAP_CREATE, _CREATE.pack(_HASH, 8, value_bytes, keys, 0, 0, 0, name.encode()))


def load_program(code: bytes, tracepoint: int, name: str) -> int:
    """Load these instructions as a program for the raw tracepoint whose type has this number in the
    kernel's BTF; return its descriptor. OSError if the kernel refuses."""
    text = ctypes.create_string_buffer(code, len(code))
    license_of = ctypes.create_string_buffer(_LICENSE)
    begins, says = ctypes.addressof(text), ctypes.addressof(license_of)
    return _create(PROG_LOAD, _LOAD.pack(
        _TRACING, len(code) // 8, begins, says, 0, 0, 0, 0, 0, name.encode(), 0, _RAW_TRACEPOINT,
        0, 0, 0, 0, 0, 0, 0, tracepoint,
    ))  # fmt: skip


def attach_program(fd: int) -> int:
    """Attach the program ``fd`` to its tracepoint; it runs while the returned descriptor is open.
    Raises OSError."""
    return _create(RAW_TRACEPOINT_OPEN, struct.pack("=QI", 0, fd))


def close_all(fds: list[int]) -> None:
    """Close these descriptors, the newest first (programs before the maps they use), and empty the
    list."""
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


# Find offsets of structure members in the kernel's type data (BTF, /sys/kernel/btf/vmlinux).
#
# The format is that of Documentation/bpf/btf.rst. One walk over all types takes 0.1 s.


MAGIC = 0xEB9F
_HEADER = struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
PTR, STRUCT, UNION, TYPEDEF, CONST, PROTO = 2, 4, 5, 8, 10, 13
# bytes that follow a type of each kind: a fixed number, and a number for each of its entries
_FIXED_BYTES = (0, 4, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 4, 0, 0)
_ENTRY_BYTES = (0, 0, 0, 0, 12, 12, 8, 0, 0, 0, 0, 0, 0, 8, 0, 12, 0, 0, 0, 12)
_MAX_DEPTH = 8


class Types:
    """The types with these ``names`` in ``data`` (little-endian). ValueError if it is not BTF, or
    of a later version."""

    def __init__(self, data: bytes, names: Collection[str]) -> None:
        try:
            magic, _, _, header, first, length, strings, size = _HEADER.unpack_from(data)
            if magic != MAGIC:
                raise ValueError("no BTF of this machine's byte order")
            self._types = data[header + first : header + first + length]
            self._strings = data[header + strings : header + strings + size]
            self._numbers: dict[tuple[str, int], int] = {}
            self._offsets = self._walk(names)
        except (struct.error, IndexError):
            raise ValueError("BTF that is not understood") from None

    def number(self, name: str, kind: int) -> int:
        """The id of this type. KeyError if there is none."""
        return self._numbers[name, kind]

    def members(self, name: str) -> Mapping[str, int]:
        """Offsets (bytes) of the members of this struct, including those of nameless parts.
        KeyError if there is no such struct."""
        return self._members(self.number(name, STRUCT), 0)

    def parameters(self, name: str) -> list[str]:
        """Parameters of the function behind this typedef of a pointer: for each the struct that it
        points to, "" for any other. KeyError if there is no such typedef."""
        number = self.number(name, TYPEDEF)
        for _ in range(_MAX_DEPTH):
            kind, count, type_id, at = self._head(number)
            if kind == PROTO:
                fields = (_TYPE.unpack_from(self._types, at + 8 * n - 4) for n in range(count))
                return [self._target_struct(of) for _, _, of in fields]
            number = type_id
        raise KeyError(name)

    def _walk(self, names: Collection[str]) -> list[int]:
        # types follow one another, with the ids 1, 2, 3 ...
        name_by_offset = {
            self._strings.find(b"\0" + name.encode() + b"\0") + 1: name for name in names
        }
        at, end, offsets = 0, len(self._types), [0]
        unpack, types = _TYPE.unpack_from, self._types
        while at < end:
            name, info, _ = unpack(types, at)
            kind = info >> 24 & 31
            if name in name_by_offset:
                self._numbers.setdefault((name_by_offset[name], kind), len(offsets))
            offsets.append(at)
            at += 12 + _FIXED_BYTES[kind] + _ENTRY_BYTES[kind] * (info & 0xFFFF)
        return offsets

    def _head(self, number: int) -> tuple[int, int, int, int]:
        """(kind, number of entries, the type it refers to, the position of its entries) of a
        type."""
        at = self._offsets[number]
        _, info, type_id = _TYPE.unpack_from(self._types, at)
        return info >> 24 & 31, info & 0xFFFF, type_id, at + _TYPE.size

    def _members(self, number: int, begins: int) -> dict[str, int]:
        _, count, _, at = self._head(number)
        bit_fields = _TYPE.unpack_from(self._types, at - _TYPE.size)[1] >> 31
        offsets: dict[str, int] = {}
        for entry in range(count):
            name, kind_of, bits = _TYPE.unpack_from(self._types, at + 12 * entry)
            if bit_fields:
                if bits >> 24:
                    continue
                bits &= 0xFFFFFF
            if name:
                offsets.setdefault(self._name(name), begins + bits // 8)
            elif self._head(kind_of)[0] in (STRUCT, UNION):
                offsets.update(self._members(kind_of, begins + bits // 8))
        return offsets

    def _target_struct(self, number: int) -> str:
        kind, _, type_id, _ = self._head(number) if number else (0, 0, 0, 0)
        while kind in (PTR, CONST):
            number = type_id
            kind, _, type_id, _ = self._head(number) if number else (0, 0, 0, 0)
        if kind != STRUCT:
            return ""
        return self._name(_TYPE.unpack_from(self._types, self._offsets[number])[0])

    def _name(self, at: int) -> str:
        return self._strings[at : self._strings.index(b"\0", at)].decode("ascii", "replace")


# Check whether the probe can run here, and explain how to enable it.


LOCKDOWN = "kernel/security/lockdown"
ONLY_ROOT = "only root may load BPF programs"


def why_no_probe(roots: Roots) -> tuple[str, str] | None:
    """Why the probe can't run, and the command that fixes it; ``None`` if no obstacle is known."""
    if os.geteuid() != 0:
        return ONLY_ROOT, "sudo iopstui ..."
    if locked_down(roots):
        return (
            "the kernel is locked down (lockdown=confidentiality) and does not load BPF programs",
            "boot without lockdown=confidentiality",
        )
    return None


def locked_down(roots: Roots) -> bool:
    """Whether kernel lockdown hides kernel data even from root."""
    try:
        return "[confidentiality]" in (roots.sys / LOCKDOWN).read_text()
    except OSError:
        return False
