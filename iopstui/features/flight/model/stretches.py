"""Answers over a time, each with how long it held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from iopstui.model.answer.answer import GOOD, RANKS, Answer

GAP_S = 2.0
"""The longest time from the last sample of a file to the first one of the next."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time in which an answer held (seconds since the epoch). Its figures and who it names are
    of the moment ``said_s``."""

    began_s: float
    ended_s: float
    answer: Answer
    said_s: float

    @property
    def seconds(self) -> float:
        """How long."""
        return self.ended_s - self.began_s


def stretches(
    answers: Sequence[tuple[float, Answer | None]], from_s: float = 0.0
) -> list[Stretch]:  # fmt: skip
    """The stretches of answers, which are given as (when, answer); None ends the answer before.
    Successive answers that differ only in their figures are one stretch, with the words that held
    longest, even across the end of a file. No stretch begins before ``from_s``."""
    found: list[Stretch] = []
    longest = (False, 0.0)
    for (said_s, answer), (until, _) in pairwise(answers):
        at = max(said_s, from_s)
        if answer is None or until <= at:
            continue
        weight = bool(answer.who), until - at
        last = found[-1] if found else None
        # after the clock was set back, a file begins before the last one's end
        goes_on = last is not None and abs(at - last.ended_s) <= GAP_S
        if last is not None and goes_on and is_same(last.answer, answer):
            if weight > longest:
                longest, last = weight, replace(last, answer=answer, said_s=said_s)
            found[-1] = replace(last, ended_s=until)
        else:
            found.append(Stretch(at, until, answer, said_s))
            longest = weight
    return found


def is_same(one: Answer, other: Answer) -> bool:
    """Whether they differ only in their figures, or all is well in both."""
    if one.state == GOOD or other.state == GOOD:
        return one.state == other.state
    return (one.state, one.disk, one.rule) == (other.state, other.disk, other.rule)


def worst(several: Sequence[Stretch]) -> Stretch | None:
    """The stretch with the worst answer; of several such, the longest."""
    return min(several, key=lambda one: (RANKS[one.answer.state], -one.seconds), default=None)
