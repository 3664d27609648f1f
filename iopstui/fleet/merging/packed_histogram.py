"""Histograms packed into one large integer each, so that one addition adds two of them.

fio's buckets stand side by side in fields of ``FIELD`` bytes, the first in the lowest. A field is
wide enough for what thousands of hosts count in years, so none runs over into the next. On the wire
a histogram is a text: where its first bucket is, then the lowest bytes of all fields from there on,
then the next ones as far as there are any but 0, compressed: the counts of a second are small, so
nearly all of it are a byte or two for each bucket.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping

from iopstui.model.histogram import BUCKET_BITS, EXACT_BELOW

FIELD = 8
_EMPTY = bytes(FIELD)
_HEADER = struct.Struct("<HB")
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
_MAX_BYTES = len(KEYS) * FIELD + _HEADER.size
_INDEX = {str(key): index for index, key in enumerate(KEYS)}


def pack(bins: Mapping[str, int]) -> int:
    """Pack a histogram as JSON has it. KeyError for what is no bucket, OverflowError or TypeError
    for an impossible count."""
    if not bins:
        return 0
    indexes = [_INDEX[key] for key in bins]
    data = bytearray((max(indexes) + 1) * FIELD)
    for index, count in zip(indexes, bins.values(), strict=True):
        data[index * FIELD : (index + 1) * FIELD] = count.to_bytes(FIELD, "little")
    return int.from_bytes(data, "little")


def unpack(packed: int) -> dict[int, int]:
    """Return its counts by their keys (ns), in order."""
    fields = -(-packed.bit_length() // (8 * FIELD))
    counts = struct.unpack(f"<{fields}Q", packed.to_bytes(fields * FIELD, "little"))
    return {key: count for key, count in zip(KEYS, counts, strict=False) if count}


def to_wire(packed: int) -> str:
    """Return it as text; "" for an empty one."""
    if not packed:
        return ""
    first = ((packed & -packed).bit_length() - 1) // 8 // FIELD
    rest = packed >> (first * FIELD * 8)
    count = (rest.bit_length() + FIELD * 8 - 1) // (FIELD * 8)
    data = rest.to_bytes(count * FIELD, "little")
    planes = [data[plane::FIELD] for plane in range(FIELD)]
    while not any(planes[-1]):
        planes.pop()
    head = _HEADER.pack(first, len(planes))
    return base64.b64encode(zlib.compress(head + b"".join(planes))).decode("ascii")


def from_wire(text: str) -> int:
    """ValueError for what ``to_wire`` never gives."""
    if not text:
        return 0
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
        first, planes = _HEADER.unpack_from(data)
    except (zlib.error, struct.error) as error:
        raise ValueError("no histogram") from error
    count, remainder = divmod(len(data) - _HEADER.size, planes or 1)
    if remainder or not unpacker.eof or not 0 < planes <= FIELD or first + count > len(KEYS):
        raise ValueError("no histogram")
    fields = bytearray((first + count) * FIELD)
    for plane in range(planes):
        start = _HEADER.size + plane * count
        fields[first * FIELD + plane :: FIELD] = data[start : start + count]
    return int.from_bytes(fields, "little")
