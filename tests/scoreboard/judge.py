"""The verdict on the findings of a session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from iopstui.model.answer.answer import FINDING
from iopstui.model.findings.finding import HEADLINES, INFO

RIGHT, MISSED, WRONG, BROKEN, OUT = "right", "missed", "wrong", "broken", "left out"
MAX_MISSED = 0.1


@dataclass(frozen=True)
class ReportedFinding:
    """One finding: its rule, its sentence with the advice, and how many seconds after the situation
    began it was reported (``None``: before, or not known)."""

    rule: str
    text: str
    after: float | None = None


@dataclass(frozen=True)
class ReportedAnswer:
    """The answer line of a session: its rule, whether it finds all well, and how many seconds after
    the situation began it was given."""

    rule: str
    is_good: bool
    text: str
    after: float | None = None


@dataclass(frozen=True)
class Verdict:
    """``why`` has a line for each thing that is not as expected."""

    word: str
    why: tuple[str, ...] = ()


def judge(
    findings: Iterable[ReportedFinding],
    expected: Mapping[str, Sequence[str]],
    allowed: Collection[str] = (),
    never: Sequence[str] = (),
    broken: str = "",
) -> Verdict:
    """Wrong: a finding that is neither expected nor allowed, an expected one without its text, or
    one with a text of ``never``. Missed: an expected finding is missing.

    ``broken`` is the reason why the situation did not occur. Then missing findings prove nothing,
    but wrong ones stay wrong.
    """
    findings = list(findings)
    wrong = list(dict.fromkeys(_wrong(findings, expected, allowed, never)))
    missed = [
        f"{rule} is missing"
        for rule in expected
        if rule not in {finding.rule for finding in findings}
    ]
    if wrong:
        return Verdict(WRONG, (*wrong, *missed))
    if broken:
        return Verdict(BROKEN, (broken, *missed))
    return Verdict(MISSED, tuple(missed)) if missed else Verdict(RIGHT)


def _wrong(
    findings: Iterable[ReportedFinding],
    expected: Mapping[str, Sequence[str]],
    allowed: Collection[str],
    never: Sequence[str],
) -> Iterable[str]:
    for finding in findings:
        if finding.rule not in expected and finding.rule not in allowed:
            yield f"{finding.rule}: {finding.text}"
        lacking = [text for text in expected.get(finding.rule, ()) if text not in finding.text]
        if lacking:
            yield f"{finding.rule} says nothing of {', '.join(lacking)}: {finding.text}"
        unfit = [text for text in never if text in finding.text]
        if unfit:
            yield f"{finding.rule} must not say {', '.join(unfit)}: {finding.text}"


def judge_answers(
    answers: Sequence[ReportedAnswer], expected: Collection[str], allowed: Collection[str]
) -> tuple[str, ReportedAnswer | None]:
    """The verdict on the answers beside a job, and the answer that decided. Right: an answer quotes
    an ``expected`` finding that needs attention; if no such finding is expected, all answers find
    all well or quote an allowed rule. Missed: no answer quotes an expected finding. Wrong: an
    answer names another fault."""
    needed = {rule for rule in expected if HEADLINES[rule][0] != INFO}
    accusing = {one.rule.removeprefix(FINDING): one for one in answers if not one.is_good}
    last = answers[-1] if answers else None
    for rule, answer in accusing.items():
        if rule not in needed and rule not in allowed and f"answer-{rule}" not in allowed:
            return WRONG, answer
    quoted = next((answer for rule, answer in accusing.items() if rule in needed), None)
    return (RIGHT, quoted or last) if quoted or not needed else (MISSED, last)


def passes(verdicts: Collection[str]) -> bool:
    """Whether the verdicts are good enough: none wrong, at most a tenth of the scenarios that ran
    missed or broken, and at least one ran."""
    run = [verdict for verdict in verdicts if verdict != OUT]
    absent = sum(verdict in (MISSED, BROKEN) for verdict in run)
    return bool(run) and WRONG not in run and absent <= MAX_MISSED * len(run)
