"""The first screen of a report, for somebody who has to decide: a light with its reason, three
sentences and a chart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from iopstui import format as units
from iopstui.events import AnswerGiven, ExpectationChecked, FindingEnded
from iopstui.model.answer.answer import (
    CRITICAL,
    FINDING,
    GOOD,
    NOTHING,
    OF_A_SECOND,
    RANKS,
    SIGNS,
    UNKNOWN,
    WARNING,
    Answer,
)
from iopstui.output.page.markup import Block, Charts, Text
from iopstui.output.plain import answer_sentence
from iopstui.session.tick.outcomes import FAIL, PASS, worst_outcome
from iopstui.text import printable

NOT_COMPARED = "Nothing to compare with: the file has no expectation, baseline or promise."
_TIMES = re.compile(r" \([0-9:, -]+\)$")
_WORDS = {GOOD: "Good", WARNING: "Warning", CRITICAL: "Critical"}
OF_HOST = "host-"
"""The prefix of ``rule`` in an answer about one of several hosts. The text of such an answer begins
with the host's name."""
Reason = tuple[str, str]
"""A state (GOOD, WARNING, CRITICAL), and the reason for it."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The overview at the top of a report. ``state`` is GOOD, WARNING, CRITICAL or "" if nothing
    judges the measurement. ``answer`` and ``compared`` are "" if there is no answer and nothing to
    compare with; ``missing`` says why there is no answer."""

    state: str
    reason: str
    measured: str
    answer: str
    compared: str
    missing: str

    @property
    def light(self) -> str:
        """ "▲ Warning: vda is busy (at 0:31)."."""
        name = f"{SIGNS[self.state]} {_WORDS[self.state]}" if self.state else "No verdict"
        return f"{name}: {self.reason}."

    @property
    def sentences(self) -> list[str]:
        """The three sentences; a missing one is replaced by the reason why it is missing."""
        return [self.measured, self.answer or self.missing, self.compared or NOT_COMPARED]

    def as_object(self) -> dict[str, str | None]:
        """The overview for JSON; a part that is missing is ``None``."""
        names = ("state", "reason", "measured", "answer", "compared")
        return {name: getattr(self, name) or None for name in names}

    def blocks(self, drawings: list[str]) -> Iterator[Block]:
        """The light, the sentences and the first of ``drawings``, which is removed from that
        list."""
        yield Text(self.light, f"light {self.state}".strip())
        yield from map(Text, self.sentences)
        if drawings:
            yield Charts([drawings.pop(0)], "first")


def made_of(
    reasons: Sequence[Reason], verdicts: Sequence[str], given: Sequence[AnswerGiven],
    measured: str, compared: str, missing: str, findings: int = 0,
) -> Overview:  # fmt: skip
    """Make the first screen from the ``reasons`` that the runs give, the outcomes of --expect
    (``verdict_of``) and the answers in order of time. ``findings`` is how many findings the report
    lists below."""
    every = [*reasons, *_expectation_reasons(verdicts), *_answer_reasons(given)]
    state, reason = _light(every, given, findings)
    return Overview(state, reason, measured, _answer_text(given), compared, missing)


def _light(reasons: Sequence[Reason], given: Sequence[AnswerGiven], findings: int) -> Reason:
    """The gravest state with all of its reasons; without any reason, "" and why there is none."""
    if reasons:
        state = min((state for state, _ in reasons), key=RANKS.__getitem__)
        return state, "; ".join(text for one, text in reasons if one == state)
    text = "there is no answer about the disk and no expectation"
    if given:
        text = (
            f"the answer at {units.clock(worst_answer(given).t)} could not tell whether I/Os wait"
        )
    return "", f"{text}; {units.counted(findings, 'finding')} below" if findings else text


def _expectation_reasons(verdicts: Sequence[str]) -> Iterator[Reason]:
    """The states that the outcomes of --expect (``verdict_of``) suggest, with reasons."""
    count = units.counted(len(verdicts), "expectation")
    missed, met = verdicts.count(FAIL), verdicts.count(PASS)
    if missed:
        yield CRITICAL, f"{missed} of {count} not met"
    if met + missed < len(verdicts):
        yield WARNING, f"{len(verdicts) - met - missed} of {count} not measured or not judged"
    if verdicts and met == len(verdicts):
        yield GOOD, f"{met} of {count} met"


def outcome_sentences(judged: Sequence[ExpectationChecked]) -> Iterator[str]:
    """A sentence on the gravest outcome of --expect; nothing if there are no outcomes."""
    if judged:
        yield f"{' '.join(worst_outcome(judged)[1].split())}."


def range_text(rates: Mapping[int, float | None]) -> str:
    """The least and the most IOPS of several runs, as the end of a sentence; ``rates`` are by the
    runs' numbers."""
    known = {number: rate for number, rate in rates.items() if rate}
    if not known:
        return "; it counted no I/O"
    least, most = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    text = units.number(known[most])
    if units.number(known[least]) == text:
        without = len(rates) - len(known)
        return f": {text} IOPS{f'; {without} counted no I/O' if without else ' each'}"
    return f": from {units.number(known[least])} IOPS (run {least}) to {text} IOPS (run {most})"


def note_answer(
    answers: dict[tuple[str, ...], AnswerGiven], event: AnswerGiven | FindingEnded
) -> None:
    """Keep the last answer of each kind (``Answer.key``), except answers that were withdrawn."""
    if isinstance(event, AnswerGiven):
        answers[event.answer.key] = event
        return
    for key, given in [*answers.items()] if event.why else ():
        if given.answer.rule == FINDING + event.rule and given.t >= event.since:
            del answers[key]


def _answer_reasons(given: Sequence[AnswerGiven]) -> Iterator[Reason]:
    """The state that the answers suggest, with its reason."""
    if not given:
        return
    worst = worst_answer(given)
    at, answer = units.clock(worst.t), worst.answer
    if answer.state != GOOD:
        yield answer.state, f"{_headline(answer)} (at {at})"
    elif answer.verdict == NOTHING:
        yield GOOD, "no answer about the disk is a warning"


def _answer_text(given: Sequence[AnswerGiven]) -> str:
    """The gravest and the last of these answers, which are in order of time; "" if there are
    none."""
    if not given:
        return ""
    worst, last = worst_answer(given), given[-1]
    shown = [worst] if worst is last else [worst, last]
    return " ".join(map(_one_answer, shown))


def worst_answer(given: Sequence[AnswerGiven]) -> AnswerGiven:
    """The gravest answer; of several equally grave ones, the last. An answer that could not tell
    counts as graver than a good one."""
    return min(
        given, key=lambda one: (RANKS[one.answer.state], one.answer.verdict != UNKNOWN, -one.t)
    )


def _one_answer(given: AnswerGiven) -> str:
    """One answer in words. Figures of a single second are left out, because the first sentence has
    the figures of the whole run."""
    if given.answer.rule == OF_A_SECOND:
        return f"At {units.clock(given.t)} no request was stuck, and no finding needed attention."
    return printable(f"{answer_sentence(given.answer, given.t)}.")


def _headline(answer: Answer) -> str:
    """The answer's statement alone, without the evidence and the time that a finding names."""
    first = answer.text.split("; ")[0]
    of_host = answer.rule.startswith(OF_HOST)
    host, text = first.split(": ", 1) if of_host and ": " in first else ("", first)
    head, rest = text.partition(": ")[::2]
    says_little = head in (answer.disk, "Not the disk")
    short = _TIMES.sub("", f"{head}: {rest}" if says_little else head)
    return printable(f"{host}: {short}" if host else short)
