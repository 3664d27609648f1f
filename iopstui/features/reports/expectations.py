"""`report --expect`: check whether the runs in a recording or a result of fio met expectations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iopstui import events
from iopstui.errors import UsageError
from iopstui.events import ExpectationChecked
from iopstui.experiment.baseline import result_figures, result_frames, with_baseline
from iopstui.features.reports.foreign import Source, job_file
from iopstui.model.experiment.expectation import (
    Expectation,
    ExpectationChecker,
    Outcome,
    parse_expectation,
    why_not_measurable,
)
from iopstui.model.fio import jobfile
from iopstui.output.page.source import Expected, Judged
from iopstui.recording.reader import Recording
from iopstui.recording.replay import ReplayFold, replay_events
from iopstui.session.tick.outcomes import OutcomeTracker, outcome_event
from iopstui.text import printable

NO_KERNEL = "a result of fio has no figures of the kernel"
NO_END = "the recording ends before the run does"
NO_START = "the recording begins after the run did"


def judge(source: Source, expected: Expected) -> Judged:
    """The outcomes of all runs in a file. Raises UsageError if the file has no run to judge."""
    name = printable(str(source.path))
    if source.logs and not source.results:
        raise UsageError(f"{name} is a fio log. It lacks fio's final figures, so --expect cannot "
                         "be checked.", "Give fio's JSON: --output-format=json+")  # fmt: skip
    judged = _of_results(source, expected) if source.results else _of_recording(source, expected)
    if not judged.outcomes and not judged.failed:
        raise UsageError(f"{printable(source.path.name)} holds no run of fio that --expect could "
                         "check.")  # fmt: skip
    return judged


def _parsed(
    expected: Expected, tree: Sequence[str], opened: Sequence[str]
) -> tuple[Expectation, ...]:
    expectations = [
        parse_expectation(text, tree, expected.tolerance, opened) for text in expected.texts
    ]
    return with_baseline(expectations, expected.baseline)


def _of_recording(source: Source, expected: Expected) -> Judged:
    """Judge a recording in the same way as the runs themselves."""
    judged, unfinished = Judged(), dict[int, float]()
    with Recording(source.path) as recording:
        target, fold = recording.header.target, ReplayFold(recording.header)
        expectations = _parsed(expected, target.tree, target.opened)
        tracker = OutcomeTracker(expectations)
        for event in replay_events(recording, fold):
            outcomes = [o for o in tracker.feed(event) if isinstance(o, ExpectationChecked)]
            if outcomes and fold.run is not None:
                text = jobfile.with_overrides(fold.run.text, fold.run.overrides)
                outcomes = _without_undone(outcomes, expectations, text)
            if fold.starts_during_run and outcomes and not judged.outcomes:
                # the recording began within the run, and fio's final figures cover more than was
                # recorded
                outcomes = [replace(each, passed=None, why=NO_START) for each in outcomes]
            judged.outcomes += outcomes
            match event:
                case events.ExperimentStarted():
                    raise UsageError(
                        f"{printable(str(source.path))} holds a sweep or a comparison.",
                        "Its points are judged while they are measured: iopstui sweep --expect",
                    )
                case events.FrameReady() if event.frame.step:
                    unfinished[event.frame.step] = event.t
                case events.StepFinished():
                    judged.failed = judged.failed or event.error
                    unfinished.pop(event.step, None)
    judged.outcomes += [
        outcome_event(t, step, Outcome(expectation, None, None, why=NO_END))
        for step, t in unfinished.items() for expectation in expectations
    ]  # fmt: skip
    return judged


def _of_results(source: Source, expected: Expected) -> Judged:
    judged = Judged()
    for step, result in enumerate(source.results, 1):
        disks = [printable(str(disk.get("name", ""))) for disk in result.disks]
        # any name of a disk will do, because a result of fio has no figures of disks
        expectations = _parsed(expected, disks or ("disk",), disks[:1] or ("disk",))
        checker = ExpectationChecker(expectations)
        for frame in result_frames(result):
            checker.add(frame)
        failed = [job.name for job in result.last.jobs if job.error]
        if failed and not judged.failed:
            judged.failed = f"fio reports failed jobs: {', '.join(map(printable, failed))}"
        outcomes = [outcome_event(0.0, step, outcome)
                    for outcome in checker.outcomes(result_figures(result))]  # fmt: skip
        if len(result.statuses) == 1:
            # no share of seconds: there is only one interval, which is the whole run
            outcomes = [replace(each, share=None) for each in outcomes]
        outcomes = [
            replace(each, why=NO_KERNEL)
            if each.measured is None and not each.field.startswith("fio.") else each
            for each in outcomes
        ]  # fmt: skip
        judged.outcomes += _without_undone(outcomes, expectations, job_file(result.options))
    return judged


def _without_undone(
    outcomes: Sequence[ExpectationChecked], expectations: Sequence[Expectation], job: str
) -> list[ExpectationChecked]:
    """The outcomes, in which figures that the job can't produce count as not measured instead of as
    0."""
    sections = jobfile.effective_sections(job)
    checked = []
    for outcome, expectation in zip(outcomes, expectations, strict=True):
        why = None if outcome.measured else why_not_measurable(expectation, sections)
        checked.append(
            replace(outcome, measured=None, passed=None, share=None, why=why) if why else outcome
        )
    return checked
