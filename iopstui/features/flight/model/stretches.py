"""Answers over some time: each with how long it held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from iopstui.model.answer.answer import GOOD, RANKS, Answer

GAP_S = 2.0
"""From the last sample of a file to the first one of the next it is at most so long."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time in which an answer held (seconds since the epoch), in its last words."""

    began_s: float
    ended_s: float
    answer: Answer

    @property
    def seconds(self) -> float:
        """How long."""
        return self.ended_s - self.began_s


def stretches(answers: Sequence[tuple[float, Answer | None]]) -> list[Stretch]:
    """From (when it was given, answer); None ends the one before. Successive answers that differ in
    their figures alone are one stretch, in the words that held longest; so are those before and
    after the end of a file."""
    found: list[Stretch] = []
    longest = (False, 0.0)
    for (at, answer), (until, _) in pairwise(answers):
        if answer is None or until <= at:
            continue
        weight = bool(answer.who), until - at
        last = found[-1] if found else None
        if last is not None and at - last.ended_s <= GAP_S and is_same(last.answer, answer):
            found[-1] = Stretch(last.began_s, until, answer if weight > longest else last.answer)
            longest = max(longest, weight)
        else:
            found.append(Stretch(at, until, answer))
            longest = weight
    return found


def is_same(one: Answer, other: Answer) -> bool:
    """Whether they differ in their figures alone, or all is well in both."""
    if one.state == GOOD or other.state == GOOD:
        return one.state == other.state
    return (one.state, one.disk, one.rule) == (other.state, other.disk, other.rule)


def worst(several: Sequence[Stretch]) -> Stretch | None:
    """The one whose answer is worst, of several such the longest."""
    return min(several, key=lambda one: (RANKS[one.answer.state], -one.seconds), default=None)
