"""bpf(2), the few commands of it that the probe's upkeep needs."""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Iterator

MAP_LOOKUP_ELEM, MAP_DELETE_ELEM, MAP_GET_NEXT_KEY = 1, 3, 4
MAP_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 14, 15
ENABLE_STATS = 32
# its number on this machine (syscalls(2)); where it isn't known nothing is done
NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "s390x": 351,
           "ppc64le": 361, "armv7l": 386, "i686": 357}  # fmt: skip
_ATTR_BYTES = 128
_INFO_BYTES = 128
# struct bpf_map_info: type, id, key_size, value_size, max_entries, map_flags, name (linux/bpf.h)
_INFO = struct.Struct("6I16s")
_libc: ctypes.CDLL | None = None


def call(command: int, attr: bytes) -> int:
    """What the call returns; -1 where it fails, or where this machine's number isn't known."""
    global _libc
    number = NUMBERS.get(platform.machine())
    if number is None:
        return -1
    if _libc is None:
        _libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attr, _ATTR_BYTES)
    return int(_libc.syscall(number, command, buffer, _ATTR_BYTES))


class Map:
    """An open map with integer keys and values of 8 bytes. Whoever made it closes ``fd``."""

    def __init__(self, fd: int, most: int) -> None:
        self._fd = fd
        self._most = most

    def __iter__(self) -> Iterator[int]:
        """All that are there. A map that changes meanwhile may begin again from its first: no more
        than it has room for are given."""
        after = ctypes.create_string_buffer(8)
        following = ctypes.create_string_buffer(8)
        where: int | None = None
        for _ in range(self._most):
            if call(MAP_GET_NEXT_KEY, self._attr(where, ctypes.addressof(following))) != 0:
                return
            after.raw = following.raw
            where = ctypes.addressof(after)
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


def opened(number: int) -> int:
    """A descriptor of the map with this id; -1 if there is none, or no right (CAP_SYS_ADMIN)."""
    return call(MAP_GET_FD_BY_ID, struct.pack("III", number, 0, 0))


def described(fd: int) -> tuple[str, int] | None:
    """Name and room of a map whose keys and values have 8 bytes; ``None`` for any other."""
    info = ctypes.create_string_buffer(_INFO_BYTES)
    if call(OBJ_GET_INFO_BY_FD, struct.pack("IIQ", fd, _INFO_BYTES, ctypes.addressof(info))) != 0:
        return None
    _, _, key_size, value_size, room, _, name = _INFO.unpack(info.raw[: _INFO.size])
    if (key_size, value_size) != (8, 8):
        return None
    return name.rstrip(b"\0").decode("ascii", "replace"), room
