"""Parse JSON objects from a link or a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from iopstui.untrusted import check_memory, is_plain, parse_json

Object = dict[str, Any]
_DECODER = json.JSONDecoder()
# raw_decode without its words for people
_SCAN: Callable[[str, int], tuple[Any, int]] = vars(_DECODER)["scan_once"]
_FRAME, _SUMS, _END = b'{"event":"frame",', b',"sums":"', b"}"


def parse_object(line: bytes, exact: bool = False) -> Object | None:
    """The JSON object in a line; ``None`` if there is none, or it is too large. Its texts are safe
    to print unless ``exact``."""
    if line.startswith(_FRAME):
        row = _with_sums(line)
        if row is not None:
            return row
    try:
        row = parse_json(line, is_large=False, exact=exact)
    except ValueError:
        return None
    return row if type(row) is dict else None


def _with_sums(line: bytes) -> Object | None:
    """Parse a frame whose last field is the text of its sums, without scanning that long text
    (encoded_frame.py refuses a malformed one). ``None``: parse it like any other line."""
    key_start = line.find(_SUMS)
    start = key_start + len(_SUMS)
    # the first quote must end the text, and the text must end the line
    end = line.find(b'"', start)
    if key_start < 0 or end != len(line) - 2 or line[-1:] != _END or not is_plain(line):
        return None
    try:
        check_memory(line)
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
