"""Assemble BPF instructions into bytes, with labels for jump targets (RFC 9669)."""

from __future__ import annotations

import struct

_INSTRUCTION = struct.Struct("<BBhi")
_LOADS = {4: 0x61, 8: 0x79}
_STORES = {8: 0x7B}
_WITH_NUMBER = {"=": 0xB7, "+": 0x07, "-": 0x17, "*": 0x27, "|": 0x47, "&": 0x57, "<<": 0x67,
                ">>": 0x77, "^": 0xA7}  # fmt: skip
# added to a code of these
_FROM_REGISTER = 0x08
# of the lower 32 bits, without sign
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
        """Jump if the lower half of ``register``, unsigned, passes the test."""
        self._jump(to, _JUMPS[test], register, 0, n if n < 1 << 31 else n - (1 << 32))

    def jump_wide(self, register: int, test: str, n: int, to: str) -> None:
        """Jump if all of ``register``, unsigned, passes the test; ``n`` below 2^31."""
        self._jump(to, _WIDE[test], register, 0, n)

    def jump_with(self, register: int, test: str, source: int, to: str) -> None:
        """Jump if the comparison of ``register`` with another one (unsigned) is true."""
        self._jump(to, _WIDE[test] | _FROM_REGISTER, register, source, 0)

    def goto(self, to: str) -> None:
        """Always."""
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
        """``to`` = the map ``fd``, for a helper."""
        self._add(_LOAD_WIDE, to, _MAP, 0, fd)
        self._add(0, 0)

    def call(self, helper: int) -> None:
        """Call a helper: r0 = its result; r1 to r5 are lost."""
        self._add(_CALL, 0, 0, 0, helper)

    def add_atomic(self, address: int, register: int, size: int = 8) -> None:
        """Add ``register`` to the ``size`` bytes at ``address``."""
        self._add(_ADD_ATOMIC[size], address, register)

    def fetch_add(self, address: int, register: int) -> None:
        """As ``add_atomic``; ``register`` = the previous value (Linux 5.12)."""
        self._add(_ADD_ATOMIC[8], address, register, 0, _FETCH)

    def end(self) -> None:
        """Return 0."""
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
