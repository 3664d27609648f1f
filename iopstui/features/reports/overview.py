"""The first screen of a report: what was measured, the answer, what it is compared with, and one
light with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iopstui import format as units
from iopstui.events import AnswerGiven, ExpectationChecked
from iopstui.features.reports import comparisons, words
from iopstui.features.reports import experiment as experiment_pages
from iopstui.features.reports.experiment import Experiment
from iopstui.features.reports.report_data import ReportData
from iopstui.features.reports.run import Run
from iopstui.model.answer.answer import (
    CRITICAL,
    GOOD,
    NOTHING,
    OF_A_SECOND,
    RANKS,
    SIGNS,
    UNKNOWN,
    WARNING,
    Answer,
)
from iopstui.model.metrics.summary import whole_rate
from iopstui.output.plain import answer_sentence
from iopstui.session.tick.outcomes import FAIL, PASS, outcome_event, verdict_of, worst_outcome
from iopstui.text import printable

NO_ANSWER = (
    "The recording holds no answer about the disk. Short ones have none, and neither have those of "
    "older versions."
)
UNSEEN = (
    "Where its I/Os waited, and who else used the disk, is unknown: only recordings have the "
    "kernel's counters."
)
NOT_COMPARED = "It is compared with nothing: the file has no expectation, baseline or promise."
_TIMES = re.compile(r" \([0-9:, -]+\)$")
_WORDS = {GOOD: "Good", WARNING: "Warning", CRITICAL: "Critical"}


@dataclass(frozen=True, slots=True)
class Overview:
    """``state`` is GOOD, WARNING, CRITICAL or "" where nothing judges the measurement. ``answer``
    and ``compared`` are "" where there is none; ``missing`` says why there is no answer."""

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
        """All three; where one is missing, why."""
        return [self.measured, self.answer or self.missing, self.compared or NOT_COMPARED]


def overview(data: ReportData) -> Overview:
    """Return what somebody who decides reads first."""
    given = sorted(data.answers.values(), key=lambda event: event.t)
    judged = [*_judged(data)]
    state, reason = _light(data, given, judged)
    return Overview(
        state, reason, _measured(data), _answer(given), " ".join(_compared(data, judged)),
        f"{_disk_use(data)}{UNSEEN}" if data.foreign else NO_ANSWER,
    )  # fmt: skip


def _judged(data: ReportData) -> Iterator[ExpectationChecked]:
    for run in data.runs:
        yield from run.outcomes
    for experiment in data.experiments:
        for event in experiment.ordered:
            yield from (outcome_event(event.t, 0, outcome) for outcome in event.outcomes)


def _measured(data: ReportData) -> str:
    if data.experiments:
        return " ".join(_experiment(data, experiment) for experiment in data.experiments)
    target, source = printable(data.header.target.path), "fio"
    if data.foreign:
        source = f"By {printable(data.foreign)}, fio"
    if not data.runs:
        return (f"No job ran: {units.duration(data.duration)} of other programs' I/O on {target} "
                "were recorded.")  # fmt: skip
    if len(data.runs) == 1:
        run = data.runs[0]
        title = f" ({printable(run.title)})" if run.title else ""
        untimed = data.foreign and run.summary.get("all", {}).get("runtime_ms") == 0
        time = "an unknown time" if untimed else units.duration(run.seconds)
        return (f"{source} ran {words.name_of(run)}{title} on {target} for {time}: "
                f"{_figures(run)}.")  # fmt: skip
    known = [(rate, run) for run in data.runs if (rate := comparisons.figures(run)["fio IOPS"])]
    text = f"{source} ran {len(data.runs)} times on {target}"
    if not known:
        return f"{text}; it counted no I/O."
    least, most = min(known, key=lambda pair: pair[0]), max(known, key=lambda pair: pair[0])
    if units.number(least[0]) == units.number(most[0]):
        without = len(data.runs) - len(known)
        rest = f"; {without} counted no I/O" if without else " each"
        return f"{text}: {units.number(most[0])} IOPS{rest}."
    return (f"{text}: from {units.number(least[0])} IOPS (run {least[1].step}) to "
            f"{units.number(most[0])} IOPS (run {most[1].step}).")  # fmt: skip


def _experiment(data: ReportData, experiment: Experiment) -> str:
    plan = experiment.plan
    text = (f"{experiment.title} on {printable(data.header.target.path)}: "
            f"{len(experiment.points)} of {plan.points} {plan.unit}s measured")  # fmt: skip
    # of several curves one says little of the others
    several = bool(plan.variants) or len(experiment.curves) > 1
    found = [] if several else experiment_pages.result_sentences(experiment)
    return f"{text}. {found[0].removesuffix('.')}." if found else f"{text}."


def _figures(run: Run) -> str:
    values = comparisons.figures(run)
    parts = []
    for name, title in (("fio IOPS", "{} IOPS"), ("fio MiB/s", "{} MiB/s"), ("p99", "p99 {}")):
        if values[name] is not None:
            parts.append(title.format(comparisons.COMPARED[name](values[name])))
    text = ", ".join(parts) or "it reported no figures"
    if not run.contradicted:
        return text
    if whole_rate(run.summary, "iops") is None:
        return f"{text} (not fio's final rates: its own counts contradict them)"
    return f"{text} (rates that fio's own counts contradict)"


def _disk_use(data: ReportData) -> str:
    return "".join(
        f"fio counted {value} on {printable(name)}, those of other programs included. "
        for name, value in data.disks[:3]
    )


def _worst(given: Sequence[AnswerGiven]) -> AnswerGiven:
    """The gravest answer, the last one of its kind; one that could not tell before a good one."""
    return min(
        given, key=lambda one: (RANKS[one.answer.state], one.answer.verdict != UNKNOWN, -one.t)
    )


def _answer(given: Sequence[AnswerGiven]) -> str:
    if not given:
        return ""
    worst, last = _worst(given), given[-1]
    shown = [worst] if worst is last else [worst, last]
    return " ".join(map(_answer_text, shown))


def _answer_text(given: AnswerGiven) -> str:
    """One answer; figures of a single second are left out, for the first sentence has the run's."""
    if given.answer.rule == OF_A_SECOND:
        return f"At {units.clock(given.t)} no request was stuck, and no finding needed attention."
    return printable(f"{answer_sentence(given.answer, given.t)}.")


def _compared(data: ReportData, judged: Sequence[ExpectationChecked]) -> Iterator[str]:
    if judged:
        yield f"{' '.join(worst_outcome(judged)[1].split())}."
    for experiment in data.experiments:
        if experiment.plan.variants and experiment.points:
            yield from (f"{line}." for line in experiment_pages.result_sentences(experiment))
    if data.promised is not None:
        yield comparisons.closest_limit(data, data.promised)


def _light(
    data: ReportData, given: Sequence[AnswerGiven], judged: Sequence[ExpectationChecked]
) -> tuple[str, str]:
    reasons = [*_of_runs(data), *_of_expectations(judged), *_of_answers(given)]
    if not reasons:
        return "", _no_verdict(data, given)
    state = min((state for state, _ in reasons), key=RANKS.__getitem__)
    return state, "; ".join(text for one, text in reasons if one == state)


def _no_verdict(data: ReportData, given: Sequence[AnswerGiven]) -> str:
    text = "there is no answer about the disk and no expectation"
    if given:
        text = f"the answer at {units.clock(_worst(given).t)} could not tell whether I/Os wait"
    findings = sum(1 for _ in words.findings(data))
    return f"{text}; {units.counted(findings, 'finding')} below" if findings else text


def _of_runs(data: ReportData) -> Iterator[tuple[str, str]]:
    failed = [run for run in data.runs if run.finished is not None and run.finished.error]
    if failed:
        yield CRITICAL, f"{len(failed)} of {units.counted(len(data.runs), 'run')} failed"
    if data.ending:
        yield WARNING, "the recording is not complete"
    if any(run.contradicted for run in data.runs):
        yield WARNING, "fio's rates contradict its own counts"


def _of_expectations(judged: Sequence[ExpectationChecked]) -> Iterator[tuple[str, str]]:
    verdicts = [verdict_of(check) for check in judged]
    count = units.counted(len(verdicts), "expectation")
    missed, met = verdicts.count(FAIL), verdicts.count(PASS)
    if missed:
        yield CRITICAL, f"{missed} of {count} not met"
    if met + missed < len(verdicts):
        yield WARNING, f"{len(verdicts) - met - missed} of {count} not measured or not judged"
    if verdicts and met == len(verdicts):
        yield GOOD, f"{met} of {count} met"


def _headline(answer: Answer) -> str:
    """What is so, without its evidence and the time that a finding names."""
    head, rest = answer.text.split("; ")[0].partition(": ")[::2]
    says_little = head in (answer.disk, "Not the disk")
    return printable(_TIMES.sub("", f"{head}: {rest}" if says_little else head))


def _of_answers(given: Sequence[AnswerGiven]) -> Iterator[tuple[str, str]]:
    if not given:
        return
    worst = _worst(given)
    at, answer = units.clock(worst.t), worst.answer
    if answer.state != GOOD:
        yield answer.state, f"{_headline(answer)} (at {at})"
    elif answer.verdict == NOTHING:
        yield GOOD, "none of its answers is a warning"
