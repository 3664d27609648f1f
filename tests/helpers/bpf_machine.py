"""An interpreter for the BPF instructions that the probe uses, with memory made up by a test."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

WHOLE = (1 << 64) - 1
HALF = (1 << 32) - 1
# the address at which the stack ends
STACK = 0x7FFF_0000_0000
OPERATIONS: Mapping[int, Callable[[int, int], int]] = {
    0x0: lambda a, b: a + b, 0x1: lambda a, b: a - b, 0x2: lambda a, b: a * b,
    0x4: lambda a, b: a | b, 0x5: lambda a, b: a & b, 0x6: lambda a, b: a << (b & 63),
    0x7: lambda a, b: a >> (b & 63), 0xA: lambda a, b: a ^ b, 0xB: lambda a, b: b,
}  # fmt: skip
TESTS: Mapping[int, Callable[[int, int], bool]] = {
    0x1: lambda a, b: a == b, 0x2: lambda a, b: a > b, 0x3: lambda a, b: a >= b,
    0x5: lambda a, b: a != b, 0xA: lambda a, b: a < b,
}  # fmt: skip


class Machine:
    """``memory``: bytes by the address at which they begin. ``maps``: the address of each map's
    value by the map's descriptor. ``helpers``: by number, called with as many of r1 to r5 as they
    take. All other memory reads as 0, as in the kernel; the stack ends at STACK."""

    def __init__(
        self,
        memory: dict[int, bytearray],
        maps: Mapping[int, int],
        helpers: Mapping[int, Callable[..., int]],
        writers: frozenset[int] = frozenset(),
    ) -> None:
        self._memory = {STACK - 512: bytearray(512), **memory}
        self._maps, self._helpers, self._writers = maps, helpers, writers

    def run(self, code: bytes, context: int) -> int:
        """Run the program with r1 = ``context`` and return its result."""
        rows = list(struct.iter_unpack("<BBhi", code))
        r, at = [0] * 11, 0
        r[1], r[10] = context, STACK
        while True:
            op, registers, offset, n = rows[at]
            to, other = registers & 15, registers >> 4
            kind, at = op & 7, at + 1
            value = r[other] if op & 8 else n & WHOLE
            if op == 0x95:
                return r[0]
            if op == 0x85:
                r[0] = self._helpers[n](*r[1:6]) if n in self._writers else self._helpers[n]()
                # overwrite the registers that a helper may overwrite
                r[1:6] = [0xDEAD] * 5
            elif op == 0x18 and other == 1:
                r[to], at = self._maps[n], at + 1
            elif op == 0x18:
                high = rows[at][3]
                wide = (n & HALF) | (high & HALF) << 32
                r[to] = self._maps[n] + high if other else wide
                at += 1
            elif kind == 7:
                r[to] = OPERATIONS[op >> 4](r[to], value) & WHOLE
            elif op == 0x05:
                at += offset
            elif kind in (5, 6):
                mask = WHOLE if kind == 5 else HALF
                at += offset if TESTS[op >> 4](r[to] & mask, value & mask) else 0
            elif op in (0x61, 0x79):
                r[to] = self._at(r[other] + offset, 4 if op == 0x61 else 8)
            elif op == 0x7B:
                self._put(r[to] + offset, r[other])
            elif op == 0xC3:
                self._put(r[to], self._at(r[to], 4) + r[other] & HALF, 4)
            elif op == 0xDB:
                before = self._at(r[to], 8)
                self._put(r[to], before + r[other] & WHOLE)
                # BPF_FETCH
                r[other] = before if n & 1 else r[other]
            else:
                raise AssertionError(f"instruction {op:#x}")

    def _at(self, address: int, size: int) -> int:
        for begins, held in self._memory.items():
            if begins <= address and address + size <= begins + len(held):
                return int.from_bytes(held[address - begins :][:size], "little")
        return 0

    def _put(self, address: int, value: int, size: int = 8) -> None:
        for begins, held in self._memory.items():
            if begins <= address and address + size <= begins + len(held):
                held[address - begins : address - begins + size] = value.to_bytes(size, "little")
                return
        raise AssertionError(f"nothing may be written at {address:#x}")
