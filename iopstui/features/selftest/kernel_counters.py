"""What the kernel's counters grew by, at least and at most, from the self-test's own readings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import lt
from typing import Any

SLACK_MS = 100.0
ROUNDING = 1e-3
Frame = dict[str, Any]
Reading = tuple[float, list[float]]


def readings(rows: Sequence[Sequence[Any]], name: str, skip: int, label: str = "") -> list[Reading]:
    """The numbers of each line of this kind, behind the first ``skip`` words."""
    samples = []
    for at, kind, line in rows:
        words = str(line).split()
        if kind == name and (not label or words[0] == label):
            numbers = []
            for word in words[skip:]:
                if not word.isdecimal():
                    break
                numbers.append(float(word))
            samples.append((float(at), numbers))
    return samples


def was_reset(readings: Sequence[Reading]) -> bool:
    """Whether a counter was lower than before, or there were others."""
    return any(
        len(now) != len(earlier) or any(map(lt, now, earlier))
        for (_, earlier), (_, now) in pairwise(readings)
    )


def begin_ms(frame: Frame) -> float:
    """When a frame of iopstui's began, in ms of the wall clock."""
    return float(frame["wall_ms"] - 1000 * frame["seconds"])


def growth(
    readings: Sequence[Reading], field: int, begin: float, end: float
) -> tuple[float, float]:
    """The least and the most that a counter can have grown by between two instants."""

    def before(at: float) -> float:
        return max((row[field] for t, row in readings if t <= at), default=readings[0][1][field])

    def after(at: float) -> float:
        return min((row[field] for t, row in readings if t >= at), default=readings[-1][1][field])

    return (max(0.0, before(end - SLACK_MS) - after(begin + SLACK_MS)),
            after(end + SLACK_MS) - before(begin - SLACK_MS))  # fmt: skip


def round_down(value: float) -> float:
    """The same with room for rounding."""
    return max(0.0, value * (1 - ROUNDING) - 1)


def round_up(value: float) -> float:
    """The same with room for rounding."""
    return value * (1 + ROUNDING) + 1
