"""The user's options for watching disks."""

from __future__ import annotations

from dataclasses import dataclass

BEFORE_S = AFTER_S = 60.0
MAX_BEFORE_S = 600.0


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """``for_s`` is the watch's length (``None``: until it is ended), ``triggers`` as the user wrote
    them; of a recording the ``before_s`` and ``after_s`` around each firing are kept. ``format`` of
    the data is "table", "jsonl", "csv", "influx" or "plain", which has a status line every
    ``plain_every_s``."""

    for_s: float | None = None
    triggers: tuple[str, ...] = ()
    before_s: float = BEFORE_S
    after_s: float = AFTER_S
    format: str = "table"
    plain_every_s: float = 0.0
