"""Parse and validate the orders that an agent accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iopstui.features.fleet.hosts.host_tunables import are_settings, is_setting

Object = Mapping[str, Any]
MAX_MONOTONIC_NS = 1 << 63
"""An instant of CLOCK_MONOTONIC is below."""
MAX_WALL_MS = 1e15
SUMS, LINES = "sums", "lines"
"""How frames are sent: as sums (encoded_frame.py), or as whole JSON lines, to record them."""
HEARTBEAT = "beat"
CAPABILITIES = (HEARTBEAT, SUMS)
"""What an agent says in its first line that it knows; an older one says nothing of it."""


def is_order(row: Object) -> bool:
    """Whether it has the form of an order. One that nobody knows is passed over later."""
    op = row.get("op")
    if op == "begin":
        return _is_begin_order(row)
    if op == "ping":
        # it is sent back, so nothing that is nested too deep for that
        return row.get("id") is None or type(row["id"]) is int
    if op == "go":
        at_ns = row.get("at_ns")
        valid = type(at_ns) is int and 0 <= at_ns < MAX_MONOTONIC_NS
        return valid and all(_is_time(row.get(name)) for name in ("offset_ms", "error_ms"))
    if op == "look":
        names = row.get("names")
        return isinstance(names, list) and all(map(_is_word, names))
    if op == "turn":
        number = row.get("id")
        return type(number) is int and is_setting(row.get("name"), row.get("value"))
    return isinstance(op, str)


def _is_begin_order(row: Object) -> bool:
    arguments, job, host = row.get("arguments", []), row.get("job"), row.get("host", "")
    if not (isinstance(arguments, list) and all(map(_is_word, arguments)) and _is_word(host)):
        return False
    if not are_settings(row.get("tunables", [])):
        return False
    if isinstance(job, dict):
        return _is_word(job.get("name")) and _is_text(job.get("text"))
    return job is None or _is_word(job)


def _is_time(value: object) -> bool:
    # NaN is in no order of size
    return value is None or (type(value) in (int, float) and abs(value) < MAX_WALL_MS)  # type: ignore[arg-type]


def _is_text(value: object) -> bool:
    """A text that can be written to a file, with surrogates for odd bytes."""
    try:
        return isinstance(value, str) and bool(value.encode("utf-8", "surrogateescape") or True)
    except UnicodeEncodeError:
        return False


def _is_word(value: object) -> bool:
    """Return whether a word can be a program's argument or a file's name."""
    return _is_text(value) and "\0" not in str(value)
