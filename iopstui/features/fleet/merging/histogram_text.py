"""Histograms as bytes and as text, and sums of many rows of numbers.

A histogram's bytes are the lowest byte of each of fio's buckets side by side (a plane), then the
next higher ones as far as any is not 0: the counts of a second are small. The text has the first
bucket and the number of planes, then the planes, compressed."""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from iopstui.model.histogram import BUCKET_BITS, EXACT_BELOW

COUNT_BYTES = 8
FEW = 256
"""Up to this number of rows numpy is not loaded (0.1 s): Python adds 100 hosts as fast."""
_HEADER = struct.Struct("<HB")
_GROUP = 1 << BUCKET_BITS
# fio has fewer buckets; no latency in ns has more bits
_GROUPS = 57


def _key(index: int) -> int:
    """The key (model/histogram.py) of the ``index``-th bucket."""
    if index < EXACT_BELOW:
        return index
    shift = index // _GROUP - 1
    return ((_GROUP + index % _GROUP) << shift) + (1 << (shift - 1))


KEYS = tuple(_key(index) for index in range(EXACT_BELOW + _GROUPS * _GROUP))
_MAX_BYTES = len(KEYS) * COUNT_BYTES + _HEADER.size
_INDEX = {key: index for index, key in enumerate(KEYS)}


def planes_of(bins: Mapping[int, int]) -> list[bytes]:
    """The planes of a histogram, each from the lowest bucket on. KeyError or struct.error for
    impossible buckets or counts."""
    counts = [0] * (1 + max(map(_INDEX.__getitem__, bins), default=-1))
    for key, count in bins.items():
        counts[_INDEX[key]] = count
    data = struct.pack(f"<{len(counts)}Q", *counts)
    planes = [data[plane::COUNT_BYTES] for plane in range(COUNT_BYTES)]
    while planes and not any(planes[-1]):
        planes.pop()
    return planes


def add_plane(bins: dict[int, int], plane: int, first: int, sums: Sequence[int]) -> None:
    """Add a plane, or the sums of many planes, that begins at bucket ``first``."""
    keys = KEYS[first : first + len(sums)]
    if not bins and not plane:
        bins.update({key: count for key, count in zip(keys, sums, strict=True) if count})
        return
    for key, count in zip(keys, sums, strict=True):
        if count:
            bins[key] = bins.get(key, 0) + (count << 8 * plane)


def to_wire(bins: Mapping[int, int]) -> str:
    """The histogram as text; "" for an empty one."""
    planes = planes_of(bins)
    if not planes:
        return ""
    first = min(_INDEX[key] for key, count in bins.items() if count)
    data = b"".join(plane[first:] for plane in planes)
    packed = zlib.compress(_HEADER.pack(first, len(planes)) + data)
    return base64.b64encode(packed).decode("ascii")


def from_wire(text: str) -> dict[int, int]:
    """ValueError for what ``to_wire`` never gives."""
    bins: dict[int, int] = {}
    if not text:
        return bins
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
        first, planes = _HEADER.unpack_from(data)
    except (zlib.error, struct.error) as error:
        raise ValueError("no histogram") from error
    count, remainder = divmod(len(data) - _HEADER.size, planes or 1)
    if remainder or not unpacker.eof or not 0 < planes <= COUNT_BYTES or first + count > len(KEYS):
        raise ValueError("no histogram")
    for plane in range(planes):
        add_plane(bins, plane, first, data[_HEADER.size + plane * count :][:count])
    return bins


def column_sums(rows: Sequence[bytes], form: str) -> list[int]:
    """Column sums of rows of numbers (struct's ``form`` "B" or "Q"); many rows are added by numpy
    if it is installed. Sums of "B" must fit into 4 bytes, those of "Q" into 8."""
    numpy = _numpy() if len(rows) > FEW else sys.modules.get("numpy")
    if numpy is None:
        numbers = struct.Struct(f"<{len(rows[0]) // struct.calcsize(form)}{form}")
        return [*map(sum, zip(*map(numbers.unpack, rows), strict=True))]
    table = numpy.frombuffer(b"".join(rows), numpy.dtype(form).newbyteorder("<"))
    sums = table.reshape(len(rows), -1).sum(axis=0, dtype="u4" if form == "B" else "u8")
    return sums.tolist()  # type: ignore[no-any-return]


@cache
def _numpy() -> Any:
    try:
        return import_module("numpy")
    except ImportError:
        return None
