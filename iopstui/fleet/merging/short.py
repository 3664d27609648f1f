"""A frame's sums as a line that is no JSON: for many hosts the head of a line cost as much as its
sums.

Behind the mark comes one text in hexadecimal: the frame's own figures in fixed places, then what
``sums`` of the same frame in JSON has (compact.py). Only frames without flags and probe are told
so, and only to who asked for it (``"frames": "short"``). ``row_of`` gives the line as JSON would
have had it: a merger may take either and comes to the same.
"""

from __future__ import annotations

import struct
from binascii import Error, unhexlify
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from iopstui.fleet.merging.compact import HEAD, LOOKED, Pieces, Pile, pieces_of
from iopstui.model.metrics.paths import DEVICE

Object = dict[str, Any]
MARK = b"#"
MOST_UTIL = 1e6
_OWN = struct.Struct("<II5d")
_LINE = struct.Struct(_OWN.format + HEAD.format.removeprefix("<") + LOOKED)
_UNPACK = _LINE.unpack_from
_FIRST = _OWN.size + HEAD.size
_NAMES = ("seq", "step", "t", "wall_ms", "seconds", "own_cpu", "util")
_WHOLE, _NUMBERS = frozenset((int,)), frozenset((int, float))
_MAY_LACK = frozenset(("own_cpu", "util"))
_KNOWN = frozenset((*_NAMES, "event", "host", "flags", "sums", DEVICE))
_NAN = float("nan")
# how much of a line is its own figures
_SUMS = len(MARK) + 2 * _OWN.size
# where which figure is in what ``looked`` gives
T, WALL_MS, SECONDS, UTIL = 2, 3, 4, 6
_PARTS, _PLANES = 7, 8
FIO, IOS, BYTES, IOPS_M, BW_M = 9, 10, 11, 12, 13
READS, WRITES, READ_WAIT, WRITE_WAIT, P99, MAXIMA = 14, 15, 16, 17, 18, 19
Short = tuple[tuple[Any, ...], Pieces]
"""The figures of a line that are looked at, in these places, and what is added as it is."""


def short_line(row: Mapping[str, Any]) -> bytes:
    """Of a frame with its sums, with a newline; b"" for one that has more to say, which goes as
    JSON."""
    sums = row.get("sums")
    if not isinstance(sums, str) or not sums.isalnum() or not sums.isascii():
        return b""
    if row.get("event") != "frame" or not row.keys() <= _KNOWN:
        return b""
    if row.get("flags") or row.get(DEVICE) is not None:
        return b""
    own = [_figure(name, row.get(name)) for name in _NAMES]
    try:
        head = _OWN.pack(*own).hex()
    except (struct.error, OverflowError):
        return b""
    return MARK + f"{head}{sums}\n".encode("ascii")


def _figure(name: str, value: Any) -> Any:
    """``None``, which can't be packed, for what has no place in a line."""
    if name in ("seq", "step"):
        return value if type(value) in _WHOLE else None
    if value is None and name in _MAY_LACK:
        return _NAN
    # a NaN says that there is none
    return value if type(value) in _NUMBERS and value == value else None


def row_of(line: bytes) -> Object | None:
    """The frame of a short line (without its newline) as JSON has it; ``None`` if it is none."""
    try:
        own = _OWN.unpack(unhexlify(line[len(MARK) : _SUMS]))
        sums = line[_SUMS:].decode("ascii")
    except (Error, ValueError, struct.error):
        return None
    row: Object = {"event": "frame", **dict(zip(_NAMES, own, strict=True))}
    for name in _MAY_LACK:
        row[name] = None if row[name] != row[name] else row[name]
    return {**row, "flags": [], "sums": sums}


def looked(line: bytes) -> Short | None:
    """A short line with its newline, checked; ``None`` if anything about it is odd."""
    try:
        data = unhexlify(line[len(MARK) : -1])
        own = _UNPACK(data)
        return own, pieces_of(data, _FIRST, own[_PARTS], own[_PLANES])
    except (Error, ValueError, IndexError, struct.error):
        return None


def add_shorts(pile: Pile, names: Sequence[str], shorts: Sequence[Short]) -> None:
    """Add what these hosts' lines have."""
    begin = 0
    while begin < len(shorts):
        end = begin + pile.room
        figures, pieces = zip(*shorts[begin:end], strict=True)
        columns = [*zip(*figures, strict=True)]
        slowest = max(zip(columns[P99], names[begin:end], strict=False))
        pile.add_pieces(pieces, map(max, columns[MAXIMA:]), slowest)
        begin = end


class Columns(NamedTuple):
    """The same second ``number`` of many hosts, on all of which fio has counted: their names and,
    in the same order, the figures of their lines in the places above."""

    number: int
    names: Sequence[str]
    figures: Sequence[Sequence[Any]]

    @property
    def utils(self) -> list[float | None]:
        """The devices' util in percent; ``None``: not known."""
        return [util if 0 <= util <= MOST_UTIL else None for util in self.figures[UTIL]]
