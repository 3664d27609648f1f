"""What came over a link, or out of a file, as JSON objects."""

from __future__ import annotations

import json
from typing import Any

Object = dict[str, Any]
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


def object_of(line: bytes) -> Object | None:
    """The object that a line is; ``None`` if it is none."""
    try:
        # as json.loads, but for looking whether it is UTF-16
        text = line.decode("utf-8", "surrogatepass").strip(_SPACE)
        found, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return found if type(found) is dict and end == len(text) else None
