"""Read and write megabytes of JSON fast: documents of hundreds of rows, samples of a day.

The only user of orjson, which is an extra (`iopstui[fast]`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

ORJSON_FROM_BYTES = 1 << 18
"""Bytes. Loading orjson takes 10 ms, and reading as much with Python's own 3 ms."""


def fast_loads(text: bytes) -> Any:
    """The value of ``text`` in a third of the time; ``None`` where Python's own has to read it:
    without orjson, or where that refuses the text (which may be right, as NaN is).

    Whole numbers beyond 64 bits are floats.
    """
    loads = _orjson()
    if loads is None:
        return None
    try:
        return loads(text)
    except ValueError:
        return None


def loads(text: bytes) -> Any:
    """As ``json.loads``, quickly where that can be."""
    value = fast_loads(text)
    return json.loads(text) if value is None else value


@cache
def _orjson() -> Callable[[bytes], Any] | None:
    try:
        import orjson
    except ImportError:
        return None
    return orjson.loads
