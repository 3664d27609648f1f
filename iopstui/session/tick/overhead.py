"""Warn when iopstui uses so much CPU that it may distort the measurement."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from iopstui.model.means import median
from iopstui.model.metrics.frame import Frame

CPU_LIMIT = 5.0
"""Percent of one CPU. The live screen takes about 2 with a job; a lower limit would warn in every
run."""
SKEW_LIMIT_MS = 50.0
FRAMES = 10
WARN_AGAIN_S = 120.0


class OverheadMonitor:
    """Fed with every frame; yields a warning when the median of the last ``FRAMES`` of a run
    exceeds a limit: own CPU time in percent of one CPU, or the distance between fio's and the
    kernel's reading in milliseconds."""

    def __init__(self) -> None:
        self._cpu: deque[float] = deque(maxlen=FRAMES)
        self._skew: deque[float] = deque(maxlen=FRAMES)
        self._step = 0
        self._warned_at: dict[str, float] = {}

    def feed(self, frame: Frame) -> Iterator[str]:
        """The warnings that this frame brings."""
        if frame.step != self._step:
            self._step = frame.step
            self._cpu.clear()
            self._skew.clear()
        if frame.fio is None:
            return
        if frame.own_cpu is not None:
            self._cpu.append(frame.own_cpu)
        if frame.skew_ms is not None:
            self._skew.append(abs(frame.skew_ms))
        cpu = _median(self._cpu)
        if cpu > CPU_LIMIT and self._is_due("cpu", frame.t):
            yield (
                f"iopstui uses {cpu:.1f} % of a CPU, which may slow the job. Use a longer "
                "--interval or --refresh, or --cpu to keep it off the job's CPUs."
            )
        skew = _median(self._skew)
        if skew > SKEW_LIMIT_MS and self._is_due("skew", frame.t):
            yield (
                f"Kernel counters are read {skew:.0f} ms apart from fio's figures, so the two "
                "sides do not show exactly the same interval (CPUs too busy)."
            )

    def _is_due(self, kind: str, t: float) -> bool:
        warned_at = self._warned_at.get(kind)
        if warned_at is not None and t - warned_at < WARN_AGAIN_S:
            return False
        self._warned_at[kind] = t
        return True


class GuardTime:
    """CPU time of iopstui's helper processes, the guards of successive fio runs, as one
    increasing count in seconds."""

    def __init__(self) -> None:
        self._ended_s = 0.0
        self._current_s = 0.0

    def total(self, busy_s: float | None) -> float:
        """Return the total with the time of the current guard (``None``: there is none)."""
        if busy_s is None or busy_s < self._current_s:
            self._ended_s += self._current_s
            self._current_s = 0.0
        self._current_s = busy_s or 0.0
        return self._ended_s + self._current_s


def _median(values: deque[float]) -> float:
    """Return the median; 0 before there are enough values."""
    return median(values) if len(values) == FRAMES else 0.0
