"""How far another machine's clocks are ahead of ours, by asking what time it is there.

Of all answers the one that came back soonest says most: its way there and back took ``error_ns``
twice, so its clock was read at the middle of that, give or take ``error_ns``.
"""

from __future__ import annotations

import time
from dataclasses import field
from typing import Any

from iopstui.fleet.orders import LATEST_MS, LATEST_NS
from iopstui.records import dataclass


@dataclass(slots=True)
class Offset:
    """``mono_ns``: its CLOCK_MONOTONIC minus ours; ``wall_ms``: its wall clock minus ours;
    ``error_ns`` how wrong both can be. ``answers`` were had so far."""

    answers: int = 0
    mono_ns: int = 0
    wall_ms: float = 0.0
    error_ns: int = 1 << 62
    asked: dict[int, tuple[int, float]] = field(default_factory=dict)
    _next: int = 0

    def ask(self) -> dict[str, Any]:
        """An order to send at once."""
        self._next += 1
        self.asked[self._next] = (time.monotonic_ns(), time.time() * 1000)
        # what was never answered is forgotten
        self.asked.pop(self._next - 64, None)
        return {"op": "ping", "id": self._next}

    def answered(self, row: dict[str, Any], now_ns: int) -> bool:
        """Take the answer, received at ``now_ns``; False if it is none to what was asked."""
        number, mono, wall = row.get("id"), row.get("mono_ns"), row.get("wall_ms")
        if not isinstance(number, int) or not isinstance(mono, int):
            return False
        if not isinstance(wall, int | float) or number not in self.asked:
            return False
        # also false for what is no number (NaN)
        if not (abs(mono) < LATEST_NS and 0 <= wall < LATEST_MS):
            return False
        sent_ns, sent_ms = self.asked.pop(number)
        half_ns = (now_ns - sent_ns) // 2
        self.answers += 1
        if half_ns <= self.error_ns:
            self.error_ns = half_ns
            self.mono_ns = mono - (sent_ns + half_ns)
            self.wall_ms = wall - (sent_ms + half_ns / 1e6)
        return True

    def forget(self) -> None:
        """Begin anew: clocks drift."""
        self.answers, self.error_ns = 0, 1 << 62
