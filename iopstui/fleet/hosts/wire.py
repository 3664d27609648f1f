"""What came over a link, or out of a file, as JSON objects."""

from __future__ import annotations

import json
from typing import Any

Object = dict[str, Any]
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
_FRAME, _SUMS, _END = b'{"event":"frame",', b',"sums":"', b'"}'


def object_of(line: bytes) -> Object | None:
    """The object that a line is; ``None`` if it is none."""
    if line.startswith(_FRAME):
        found = _with_sums(line)
        if found is not None:
            return found
    try:
        # as json.loads, but for looking whether it is UTF-16
        text = line.decode("utf-8", "surrogatepass").strip(_SPACE)
        found, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return found if type(found) is dict and end == len(text) else None


def _with_sums(line: bytes) -> Object | None:
    """The same of a frame whose last field is the text of its sums, which is long and needs no
    look at each of its letters (compact.py refuses what is none); ``None``: read it as any other
    line."""
    head, mark, text = line.partition(_SUMS)
    # the first quote ends the text, and the text the line
    if not mark or text.find(b'"') != len(text) - 2 or not text.endswith(_END) or b"\\" in text:
        return None
    try:
        before = head.decode("ascii") + "}"
        found, end = _DECODER.raw_decode(before)
        sums = text[:-2].decode("ascii")
    except (ValueError, RecursionError):
        return None
    if end != len(before):
        return None
    row: Object = found
    row["sums"] = sums
    return row
