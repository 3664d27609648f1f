"""Names of the files in a flight recording's directory: 2026-11-27T020000Z.iops.

A name says when its file begins, in UTC. A second file for the same second (the clock was set back)
has a number; a thinned file says how many seconds its samples are apart: ``...Z-2.10s.iops``."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import NamedTuple

_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d{6})Z(?:-(\d{1,4}))?(?:\.(\d{1,3})s)?\.iops")
_FORM = "%Y-%m-%dT%H%M%S"
_YEARS = range(1970, 9999)
"""Times near the ends of the calendar may have no local time."""


class Name(NamedTuple):
    """A name in its parts. ``began_s`` is seconds since the epoch; ``every_s`` is 0 for a file that
    has every sample."""

    began_s: int
    number: int = 1
    every_s: int = 0

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.began_s, timezone.utc).strftime(_FORM)
        number = f"-{self.number}" if self.number > 1 else ""
        return f"{moment}Z{number}{f'.{self.every_s}s' if self.every_s else ''}.iops"


def parse_name(text: str) -> Name | None:
    """The parts of a name in a flight recording; ``None`` for any other file's name."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    try:
        moment = datetime.strptime(match[1], _FORM).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    if moment.year not in _YEARS:
        return None
    return Name(int(moment.timestamp()), int(match[2] or 1), int(match[3] or 0))
