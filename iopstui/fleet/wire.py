"""What came over a link, or out of a file, as JSON objects."""

from __future__ import annotations

import json
from typing import Any

Object = dict[str, Any]


def object_of(line: bytes) -> Object | None:
    """The object that a line is; ``None`` if it is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
