"""Find offsets of structure members in the kernel's type data (BTF, /sys/kernel/btf/vmlinux).

The format is that of Documentation/bpf/btf.rst. One walk over all types takes 0.1 s.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping

MAGIC = 0xEB9F
_HEADER = struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
PTR, STRUCT, UNION, TYPEDEF, CONST, PROTO = 2, 4, 5, 8, 10, 13
# what follows a type of each kind, in bytes: always, and for each of its entries
_FIXED_BYTES = (0, 4, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 4, 0, 0)
_ENTRY_BYTES = (0, 0, 0, 0, 12, 12, 8, 0, 0, 0, 0, 0, 0, 8, 0, 12, 0, 0, 0, 12)
_MAX_DEPTH = 8


class Types:
    """The types called ``names`` among those in ``data``, little-endian. ValueError if it is no
    BTF, or of a later sort."""

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
        """Offsets (bytes) of the members of this struct, with those of nameless parts. KeyError if
        there is no such struct."""
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
        # one after another, as type_id 1, 2, 3 ...
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
        """(kind, how many entries, the type it refers to, where its entries begin)."""
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
