"""Histograms as one large number each, so that adding two is one addition.

fio's buckets stand side by side in fields of ``FIELD`` bytes, the first in the lowest. A field is
wide enough for the sum of any number of hosts, so none runs over into the next. On the wire a
histogram is a text: where its first bucket is and the fields from there on, compressed.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping

from iopstui.model.histogram import BUCKET_BITS, EXACT_BELOW

FIELD = 12
_EMPTY = bytes(FIELD)
_HEAD = struct.Struct("<H")
_GROUP = 1 << BUCKET_BITS
# fio has fewer; no latency in ns has more bits
_GROUPS = 57


def _key(index: int) -> int:
    """The key (model/histogram.py) of the ``index``-th bucket."""
    if index < EXACT_BELOW:
        return index
    shift = index // _GROUP - 1
    return ((_GROUP + index % _GROUP) << shift) + (1 << (shift - 1))


KEYS = tuple(_key(index) for index in range(EXACT_BELOW + _GROUPS * _GROUP))
_INDEX = {str(key): index for index, key in enumerate(KEYS)}


def pack(bins: Mapping[str, int]) -> int:
    """From a histogram as JSON has it. KeyError for what is no bucket, OverflowError or TypeError
    for an impossible count."""
    if not bins:
        return 0
    places = [_INDEX[key] for key in bins]
    data = bytearray((max(places) + 1) * FIELD)
    for place, count in zip(places, bins.values(), strict=True):
        data[place * FIELD : (place + 1) * FIELD] = count.to_bytes(FIELD, "little")
    return int.from_bytes(data, "little")


def unpack(packed: int) -> dict[int, int]:
    """Its counts by their keys (ns), in order."""
    data = packed.to_bytes((packed.bit_length() + 7) // 8 + FIELD, "little")
    return {
        key: int.from_bytes(data[place : place + FIELD], "little")
        for key, place in zip(KEYS, range(0, len(data), FIELD), strict=False)
        if data[place : place + FIELD] not in (_EMPTY, _EMPTY[: len(data) - place])
    }


def to_wire(packed: int) -> str:
    """As text; "" for an empty one."""
    if not packed:
        return ""
    first = ((packed & -packed).bit_length() - 1) // 8 // FIELD
    rest = packed >> (first * FIELD * 8)
    data = _HEAD.pack(first) + rest.to_bytes((rest.bit_length() + 7) // 8, "little")
    return base64.b64encode(zlib.compress(data)).decode("ascii")


def from_wire(text: str) -> int:
    """ValueError for what ``to_wire`` never gives."""
    if not text:
        return 0
    most = len(KEYS) * FIELD
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text, validate=True), most + _HEAD.size)
        first = int(_HEAD.unpack_from(data)[0])
    except (zlib.error, struct.error) as error:
        raise ValueError("no histogram") from error
    if not unpacker.eof or first * FIELD + len(data) - _HEAD.size > most:
        raise ValueError("no histogram")
    return int.from_bytes(data[_HEAD.size :], "little") << (first * FIELD * 8)
