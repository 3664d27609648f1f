"""The session's clock, replaceable in tests."""

from __future__ import annotations

import time


class Clock:
    """Monotonic nanoseconds for intervals, wall milliseconds for labels."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC."""
        return time.monotonic_ns()

    def wall_ms(self) -> float:
        """Milliseconds since the epoch."""
        return time.time() * 1000

    def own_busy_s(self) -> float:
        """User and system time of this process so far, all threads (CLOCK_PROCESS_CPUTIME_ID)."""
        return time.process_time()
