"""From what a session said to a verdict. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

RIGHT, MISSED, WRONG, BROKEN, OUT = "right", "missed", "wrong", "broken", "left out"
MAX_MISSED = 0.1


@dataclass(frozen=True)
class Said:
    """One finding: its rule, its sentence with the advice, and how many seconds after the situation
    began it was reported (``None``: before, or not known)."""

    rule: str
    text: str
    after: float | None = None


@dataclass(frozen=True)
class Verdict:
    """``why`` has a line for each thing that is not as expected."""

    word: str
    why: tuple[str, ...] = ()


def judge(
    said: Iterable[Said],
    expected: Mapping[str, Sequence[str]],
    allowed: Collection[str] = (),
    never: Sequence[str] = (),
    broken: str = "",
) -> Verdict:
    """Wrong: a rule that is neither expected nor allowed has spoken, or one that is expected
    without its words, or anything with a word of ``never``. Missed: an expected rule hasn't.

    ``broken`` says why the situation did not come about: then silence proves nothing; what was said
    though it is wrong stays wrong.
    """
    said = list(said)
    wrong = list(dict.fromkeys(_wrong(said, expected, allowed, never)))
    missed = [f"{rule} is missing" for rule in expected if rule not in {one.rule for one in said}]
    if wrong:
        return Verdict(WRONG, (*wrong, *missed))
    if broken:
        return Verdict(BROKEN, (broken, *missed))
    return Verdict(MISSED, tuple(missed)) if missed else Verdict(RIGHT)


def _wrong(
    said: Iterable[Said],
    expected: Mapping[str, Sequence[str]],
    allowed: Collection[str],
    never: Sequence[str],
) -> Iterable[str]:
    for one in said:
        if one.rule not in expected and one.rule not in allowed:
            yield f"{one.rule}: {one.text}"
        lacking = [word for word in expected.get(one.rule, ()) if word not in one.text]
        if lacking:
            yield f"{one.rule} says nothing of {', '.join(lacking)}: {one.text}"
        unfit = [word for word in never if word in one.text]
        if unfit:
            yield f"{one.rule} must not say {', '.join(unfit)}: {one.text}"


def passes(words: Collection[str]) -> bool:
    """Whether a board of these verdicts is good enough: nothing wrong, and at most a tenth of
    what was run missed or broken. One that ran nothing is not."""
    run = [word for word in words if word != OUT]
    absent = sum(word in (MISSED, BROKEN) for word in run)
    return bool(run) and WRONG not in run and absent <= MAX_MISSED * len(run)
