"""Whether a run was in steady state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS = 5
ROUND_S = 60.0
RANGE_LIMIT = 0.20
SLOPE_LIMIT = 0.10


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Was a run in steady state? SNIA Solid State Storage Performance Test Specification,
    "Steady State": over a window of five rounds the figures range over at most 20 % of their
    average, and their least-squares line rises or falls by at most 10 % of it.

    ``range`` and ``slope`` are those shares (0.2 is 20 %), ``round_s`` the length of a round in
    seconds, ``mean`` the average of the five rounds in counts a second. ``steady`` is ``None``
    where nothing can be said (``round_s`` is then 0); ``changing`` is the option of fio that
    changes the load, if that is why. ``sections`` are those at work in this stage of the run (none
    if it has one stage only).
    """

    steady: bool | None
    range: float = 0.0
    slope: float = 0.0
    round_s: float = 0.0
    mean: float = 0.0
    changing: str = ""
    sections: tuple[str, ...] = ()


def steadiness(
    intervals: Sequence[tuple[float, float]], round_s: float | None = None
) -> Steadiness:
    """``intervals`` are (seconds, count) in order, e.g. of completed I/Os.

    Without ``round_s`` a round is a minute, as in the specification, where the run has five of
    them; otherwise a fifth of the run. At least five intervals are needed, and five rounds.
    """
    total = sum(seconds for seconds, _ in intervals)
    if len(intervals) < ROUNDS or total <= 0 or (round_s or 0.0) * ROUNDS > total:
        return Steadiness(None)
    round_s = round_s or min(ROUND_S, total / ROUNDS)
    rates = _rounds(intervals, total - ROUNDS * round_s, round_s)
    mean = sum(rates) / ROUNDS
    if mean <= 0:
        return Steadiness(None)
    spread = (max(rates) - min(rates)) / mean
    slope = abs(_slope(rates)) * (ROUNDS - 1) / mean
    return Steadiness(spread <= RANGE_LIMIT and slope <= SLOPE_LIMIT, spread, slope, round_s, mean)


def _rounds(
    intervals: Sequence[tuple[float, float]], start: float, round_s: float
) -> tuple[float, ...]:
    """The rate of each round; an interval across a boundary is shared out by time."""
    counts = [0.0] * ROUNDS
    at = 0.0
    for seconds, count in intervals:
        for number in range(ROUNDS):
            low = start + number * round_s
            overlap = min(at + seconds, low + round_s) - max(at, low)
            if overlap > 0 and seconds > 0:
                counts[number] += count * overlap / seconds
        at += seconds
    return tuple(count / round_s for count in counts)


def _slope(values: Sequence[float]) -> float:
    """The least-squares line's rise from one value to the next."""
    middle = (len(values) - 1) / 2
    above = sum((x - middle) * y for x, y in enumerate(values))
    return above / sum((x - middle) ** 2 for x in range(len(values)))
