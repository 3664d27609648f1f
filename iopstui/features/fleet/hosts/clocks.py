"""Measure the offset of another machine's clock by asking it for the time.

The fastest answer is the most precise: if the round trip took twice ``error_ns``, the clock was
read in the middle of it, give or take ``error_ns``, however unequal the two ways were. Clocks
drift, so an answer loses precision and is replaced by a newer one in time. An answer that
contradicts the known one means that a clock was set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from iopstui.features.fleet.hosts.conversation import MAX_MONOTONIC_NS, MAX_WALL_MS

MAX_DRIFT = 500e-6
"""Two clocks may drift apart by this share of the time: the kernel's maximum when it slews a clock
(adjtimex(2)); quartz alone drifts a tenth of it."""
CLOCK_SET_MS = 1.0
"""A larger difference means that the wall clock was set (it is read a moment before or after the
other clock)."""


def start_spread(starts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """How far apart these instants (time, error) of several clocks are, and the error of that: the
    sum of the two largest errors, since any two may be the first and the last."""
    times = [start for start, _ in starts]
    return max(times) - min(times), sum(nlargest(2, (error for _, error in starts)))


@dataclass(slots=True)
class ClockOffset:
    """Clock offset of a host. ``mono_ns``: its CLOCK_MONOTONIC minus ours; ``wall_ms``: its wall
    clock minus ours; ``error_ns``: the maximum error of both at ``at_ns`` (our CLOCK_MONOTONIC).
    ``answers`` counts the answers so far."""

    answers: int = 0
    mono_ns: int = 0
    wall_ms: float = 0.0
    error_ns: int = 1 << 62
    at_ns: int = 0
    pending: dict[int, tuple[int, float]] = field(default_factory=dict)
    _next: int = 0

    def make_ping(self) -> dict[str, Any]:
        """An order to send at once."""
        self._next += 1
        self.pending[self._next] = (time.monotonic_ns(), time.time() * 1000)
        # what was never answered is forgotten
        self.pending.pop(self._next - 64, None)
        return {"op": "ping", "id": self._next}

    def error_at(self, now_ns: int) -> int:
        """Maximum error of both offsets at another instant of our CLOCK_MONOTONIC, in ns."""
        return self.error_ns + int(MAX_DRIFT * abs(now_ns - self.at_ns))

    def take_answer(self, row: dict[str, Any], now_ns: int) -> bool:
        """Take the answer, received at ``now_ns``; False if it answers no pending question."""
        number, mono, wall = row.get("id"), row.get("mono_ns"), row.get("wall_ms")
        if not isinstance(number, int) or not isinstance(mono, int):
            return False
        if not isinstance(wall, int | float) or number not in self.pending:
            return False
        # also false for NaN
        if not (abs(mono) < MAX_MONOTONIC_NS and 0 <= wall < MAX_WALL_MS):
            return False
        sent_ns, sent_ms = self.pending.pop(number)
        half_ns = (now_ns - sent_ns + 1) // 2
        mono_ns = mono - (sent_ns + half_ns)
        wall_ms = wall - (sent_ms + half_ns / 1e6)
        if not self.answers or self._is_better(mono_ns, wall_ms, half_ns, now_ns):
            self.mono_ns, self.wall_ms = mono_ns, wall_ms
            # the clock may have been read at once, and have drifted since
            self.error_ns, self.at_ns = half_ns, sent_ns
        self.answers += 1
        return True

    def _is_better(self, mono_ns: int, wall_ms: float, half_ns: int, now_ns: int) -> bool:
        """Whether this answer is more precise than the known ones, or shows that a clock was
        set."""
        known_ns = self.error_at(now_ns)
        both_ns = half_ns + known_ns
        was_set = abs(mono_ns - self.mono_ns) > both_ns
        was_set |= abs(wall_ms - self.wall_ms) > both_ns / 1e6 + CLOCK_SET_MS
        # while the answer came back, the clock drifted, too
        return was_set or half_ns + int(MAX_DRIFT * 2 * half_ns) <= known_ns
