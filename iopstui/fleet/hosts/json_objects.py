"""Parse JSON objects from a link or a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
# raw_decode without its words for people
_SCAN: Callable[[str, int], tuple[Any, int]] = vars(_DECODER)["scan_once"]
_FRAME, _SUMS, _END = b'{"event":"frame",', b',"sums":"', b"}"


def parse_object(line: bytes) -> Object | None:
    """The object that a line is; ``None`` if it is none."""
    if line.startswith(_FRAME):
        row = _with_sums(line)
        if row is not None:
            return row
    try:
        # as json.loads, but for looking whether it is UTF-16
        text = line.decode("utf-8", "surrogatepass").strip(_SPACE)
        row, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return row if type(row) is dict and end == len(text) else None


def _with_sums(line: bytes) -> Object | None:
    """The same of a frame whose last field is the text of its sums, which is long and needs no
    look at each of its letters (encoded_frame.py refuses what is none); ``None``: read it as any
    other line."""
    key_start = line.find(_SUMS)
    start = key_start + len(_SUMS)
    # the first quote ends the text, and the text the line
    end = line.find(b'"', start)
    if key_start < 0 or end != len(line) - 2 or line[-1:] != _END or b"\\" in line:
        return None
    try:
        head = line[:key_start].decode("ascii") + "}"
        parsed, stop = _SCAN(head, 0)
        sums = line[start:end].decode("ascii")
    except (ValueError, RecursionError, StopIteration):
        return None
    if stop != len(head):
        return None
    row: Object = parsed
    row["sums"] = sums
    return row
