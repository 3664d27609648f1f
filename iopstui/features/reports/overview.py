"""The first screen of a report on one recording, or on one result of fio."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from iopstui import format as units
from iopstui.events import ExpectationChecked
from iopstui.features.reports import comparisons, words
from iopstui.features.reports import experiment as experiment_pages
from iopstui.features.reports.experiment import Experiment
from iopstui.features.reports.report_data import ReportData
from iopstui.features.reports.run import Run
from iopstui.features.reports.series import mean
from iopstui.fio.job_shape import PACES
from iopstui.model.answer.answer import CRITICAL, WARNING
from iopstui.model.metrics.summary import split_directions, whole_rate
from iopstui.output.page.overview import (
    Overview,
    Reason,
    made_of,
    outcome_sentences,
    range_text,
)
from iopstui.session.tick.outcomes import outcome_event, verdict_of
from iopstui.text import printable

NO_ANSWER = (
    "The recording has no answer about the disk. Short recordings have none, nor do those of older "
    "versions."
)
UNSEEN = (
    "Where its I/Os waited, and who else used the disk, is unknown: only recordings have the "
    "kernel's counters."
)


def overview(data: ReportData) -> Overview:
    """The overview, for somebody who has to decide."""
    given = sorted(data.answers.values(), key=lambda event: event.t)
    judged = [*_judged(data)]
    return made_of(
        [*_of_runs(data)], [*map(verdict_of, judged)], given, _measured(data),
        " ".join(_compared(data, judged)),
        f"{_disk_use(data)}{UNSEEN}" if data.foreign else NO_ANSWER,
        sum(1 for _ in words.findings(data)),
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
        rate = mean(data.series, "device")
        rates = "" if rate is None else f", {units.number(rate)} I/Os a second on average"
        lasted = units.duration(data.duration)
        if data.ending:
            return f"The readable part has no run: {lasted} on {target}{rates}."
        return f"No job ran: {lasted} of other programs' I/O on {target} were recorded{rates}."
    if len(data.runs) == 1:
        run = data.runs[0]
        title = f" ({printable(run.title)})" if run.title else ""
        untimed = data.foreign and run.summary.get("all", {}).get("runtime_ms") == 0
        time = "an unknown time" if untimed else units.duration(run.seconds)
        limits = f" The job limits itself: {options}." if (options := _limits(run)) else ""
        return (f"{source} ran {words.name_of(run)}{title} on {target} for {time}: "
                f"{_figures(run)}.{limits}")  # fmt: skip
    of_runs = {run.step: comparisons.figures(run)["fio IOPS"] for run in data.runs}
    return f"{source} ran {len(of_runs)} times on {target}{range_text(of_runs)}."


def _experiment(data: ReportData, experiment: Experiment) -> str:
    plan = experiment.plan
    text = (f"{experiment.title} on {printable(data.header.target.path)}: "
            f"{len(experiment.points)} of {plan.points} {plan.unit}s measured")  # fmt: skip
    # with several curves, a conclusion about one says little about the others
    several = bool(plan.variants) or len(experiment.curves) > 1
    found = [] if several else experiment_pages.result_sentences(experiment)
    return f"{text}. {found[0].removesuffix('.')}." if found else f"{text}."


def _limits(run: Run) -> str:
    """The options with which a recorded job limits itself, such as "rate_iops=200"; "" if it has
    none. fio's own results don't say which of several jobs has an option."""
    options = run.started.options if run.started is not None else {}
    held = {name: value for name in PACES if (value := options.get(name, "0")) not in ("0", "")}
    return printable(", ".join(f"{name}={value}" for name, value in held.items()))


def _figures(run: Run) -> str:
    values = comparisons.figures(run)
    parts = []
    for name, title in (("fio IOPS", "{} IOPS"), ("fio MiB/s", "{} MiB/s"), ("p99", "p99 {}")):
        if values[name] is not None:
            parts.append(title.format(comparisons.COMPARED[name](values[name])))
            parts[-1] += _directions(run) if name == "fio IOPS" else ""
    text = ", ".join(parts) or "it reported no figures"
    if not run.contradicted:
        return text
    if whole_rate(run.summary, "iops") is None:
        return f"{text} (not fio's final rates: its own counts contradict them)"
    return f"{text} (rates that fio's own counts contradict)"


def _directions(run: Run) -> str:
    """In brackets, the IOPS of each direction of a job that mixes them."""
    rates = {name: part["iops"] for name, part in split_directions(run.figures()).items()}
    known = {name: rate for name, rate in rates.items() if rate}
    whole = whole_rate(run.summary, "iops")
    # not if the parts do not add up, because they did not run at the same time or are counted twice
    adds_up = whole is not None and math.isclose(sum(known.values()), whole, rel_tol=0.01)
    if len(known) < 2 or not adds_up or run.contradicted:
        return ""
    return f" ({', '.join(f'{units.number(rate)} {name}' for name, rate in known.items())})"


def _disk_use(data: ReportData) -> str:
    return "".join(
        f"fio counted {value} on {printable(name)}, including other programs' I/O. "
        for name, value in data.disks[:3]
    )


def _compared(data: ReportData, judged: Sequence[ExpectationChecked]) -> Iterator[str]:
    yield from outcome_sentences(judged)
    for experiment in data.experiments:
        if experiment.plan.variants and experiment.points:
            yield from (f"{line}." for line in experiment_pages.result_sentences(experiment))
    if data.promised is not None:
        yield comparisons.closest_limit(data, data.promised)


def _of_runs(data: ReportData) -> Iterator[Reason]:
    failed = [run for run in data.runs if run.finished is not None and run.finished.error]
    if failed:
        yield CRITICAL, f"{len(failed)} of {units.counted(len(data.runs), 'run')} failed"
    if data.ending:
        yield WARNING, "the recording is not complete"
    if any(run.contradicted for run in data.runs):
        yield WARNING, "fio's rates contradict its own counts"
