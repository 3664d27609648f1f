"""Check a job's expectations before it runs, and read the figures of an earlier run."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iopstui import events
from iopstui.errors import NoFile, UsageError
from iopstui.events import ExpectationChecked
from iopstui.experiment.preview import representative_points
from iopstui.fio.job_shape import cpu_list
from iopstui.fio.job_text import expand_variables, read_job
from iopstui.fio.library import find_job
from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.topology import online_cpus
from iopstui.model.block.target import Target
from iopstui.model.experiment.baseline import (
    MAXIMUM,
    WHY_NO_MAX,
    BaselineFigure,
    BatchMeans,
    next_coarser_figure,
)
from iopstui.model.experiment.expectation import Expectation, parse_expectation, why_not_measurable
from iopstui.model.experiment.job_figures import is_job_figure
from iopstui.model.experiment.plan import OPTION, Plan
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.metrics.summary import fio_summary, impossible_rates
from iopstui.model.samples import RawSample
from iopstui.recording.foreign import JSON, LOG, FioResult, detect_file_kind, read_result
from iopstui.recording.reader import Recording, impossible_figure_error, recording_path
from iopstui.recording.replay import replay_events
from iopstui.session.tick.outcomes import final_rates, without_direction
from iopstui.text import printable

FieldPath = tuple[str, ...]
BASELINE_ADVICE = ("A baseline is a recording (iopstui run --record FILE) or fio's JSON (fio "
       "--output-format=json+).")  # fmt: skip


@dataclass
class _BaselineRun:
    """A run in the baseline's file: its figures in batches, and fio's final ones."""

    batches: dict[FieldPath, BatchMeans]
    seconds: float = 0.0
    final: dict[FieldPath, float] = field(default_factory=dict)

    def add(self, frame: Frame) -> None:
        if frame.fio is not None:
            self.seconds += frame.fio.seconds or 0.0
        for batch in self.batches.values():
            batch.add(frame)

    def no_interval_reason(self, path: FieldPath) -> str:
        """Why a figure has no confidence interval; "" if it has one, or if the file has only final
        figures."""
        batches = self.batches.get(path)
        return batches.why if batches is not None and batches.frames > 1 else ""

    def base(self, path: FieldPath, name: str) -> BaselineFigure | None:
        batches = self.batches.get(path)
        value = self.final.get(path, batches.whole.value if batches else None)
        if value is None:
            return None
        return BaselineFigure(value, batches.spread if batches else None, name, self.seconds)


def with_baseline(expected: Sequence[Expectation], file: str | None) -> tuple[Expectation, ...]:
    """The expectations, with the baseline's figure in those that are a share of it. Raises
    UsageError if one of them has no baseline to compare with, or if no expectation uses the
    baseline."""
    relative = [expectation for expectation in expected if expectation.part is not None]
    if file is None:
        if relative:
            raise UsageError(
                f"--expect {relative[0].text!r} is a share of a baseline, but there is no "
                "baseline.",
                "Name an earlier run: --baseline FILE",
            )
        return tuple(expected)
    if not relative:
        raise UsageError("--baseline is given, but no --expect compares with it.",
                         "Write it as a share: --expect 'iops>=95%'")  # fmt: skip
    for expectation in relative:
        _check_interval(expectation)
    path = recording_path(file)
    try:
        run = _read_baseline(path, [expectation.path for expectation in relative])
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise impossible_figure_error([path], error) from error
    name = Path(file).name
    return tuple(
        _absolute_expectation(expectation, run, name)
        if expectation.part is not None
        else expectation
        for expectation in expected
    )


def _check_interval(expectation: Expectation) -> None:
    """Raise UsageError for a figure that never has a confidence interval."""
    if expectation.of_job:
        reason = "fio reports the figures of a single job once, so they have no confidence interval"
        advice = f"Use a figure of all jobs, e.g. iops{expectation.op}95%"
    elif expectation.path[-1] == MAXIMUM:
        reason, advice = WHY_NO_MAX, f"Use {next_coarser_figure(expectation.name)}"
    else:
        return
    raise UsageError(f"--expect {expectation.text!r} cannot be compared with a baseline: {reason}.",
                     f"{advice}, or give an absolute limit.")  # fmt: skip


def coarser_hint(name: str) -> str:
    """The end of a hint, such as ", or use clat.p99", if ``name`` has no interval; "" if no coarser
    figure exists."""
    return f", or use {next_coarser_figure(name)}" if next_coarser_figure(name) else ""


def _absolute_expectation(expectation: Expectation, run: _BaselineRun, name: str) -> Expectation:
    base = run.base(expectation.path, name)
    if base is None or base.value <= 0:
        value = "0" if base is not None else "missing"
        raise UsageError(
            f"--expect {expectation.text!r} cannot be checked: "
            f"{'.'.join(expectation.path[1:])} is {value} in the baseline {printable(name)}."
        )
    reason = run.no_interval_reason(expectation.path)
    if reason:
        raise UsageError(
            f"--expect {expectation.text!r} cannot be compared with {printable(name)}: {reason}.",
            f"Record a longer baseline, e.g. --set runtime=60{coarser_hint(expectation.name)}.",
        )
    return expectation.relative_to(base)


def _read_baseline(path: Path, paths: Sequence[FieldPath]) -> _BaselineRun:
    kind = detect_file_kind(path)
    if kind == JSON:
        return _read_result(path, paths)
    if kind == LOG:
        raise UsageError(f"{printable(str(path))} is a fio log. It lacks fio's final figures, "
                         "so it cannot be a baseline.", BASELINE_ADVICE)  # fmt: skip
    if not os.path.exists(path):
        raise NoFile(printable(str(path)), BASELINE_ADVICE)
    return _read_recording(path, paths)


def _new_run(paths: Sequence[FieldPath]) -> _BaselineRun:
    return _BaselineRun({path: BatchMeans(path) for path in paths if not is_job_figure(path)})


def _read_recording(path: Path, paths: Sequence[FieldPath]) -> _BaselineRun:
    """Return the only run of a recording. Raises UsageError if there is none, or more than one."""
    runs: dict[int, _BaselineRun] = {}
    with Recording(path) as recording:
        for event in replay_events(recording):
            match event:
                case events.ExperimentStarted():
                    raise UsageError(f"{printable(str(path))} holds a sweep or a comparison. "
                                     "A baseline needs a single run.", BASELINE_ADVICE)  # fmt: skip
                case events.FrameReady() if event.frame.step:
                    runs.setdefault(event.frame.step, _new_run(paths)).add(event.frame)
                case events.StepFinished() if event.error:
                    raise _failed(path, event.error)
                case events.StepFinished() if event.summary:
                    run = runs.setdefault(event.step, _new_run(paths))
                    run.final = final_rates(event.summary)
    if len(runs) != 1:
        raise UsageError(f"{printable(str(path))} holds {len(runs) or 'no'} runs. A baseline "
                         "needs exactly one.", BASELINE_ADVICE)  # fmt: skip
    return next(iter(runs.values()))


def _read_result(path: Path, paths: Sequence[FieldPath]) -> _BaselineRun:
    """Read fio's final figures. There are batches only if --status-interval wrote several
    documents."""
    result = read_result(path)
    failed = [job.name for job in result.last.jobs if job.error]
    if failed:
        raise _failed(path, f"fio reports failed jobs: {', '.join(failed)}")
    run = _new_run(paths)
    for frame in result_frames(result):
        run.add(frame)
    run.final = result_figures(result)
    return run


def result_frames(result: FioResult, step: int = 1) -> Iterator[Frame]:
    """The intervals between the documents of a result; for a single document, the whole run as
    one."""
    builder = FrameBuilder()
    for number, status in enumerate(result.statuses):
        at_ms, is_last = status.timestamp_ms, number == len(result.statuses) - 1
        yield builder.feed(RawSample(number, at_ms * 1_000_000, at_ms, None, status, is_last, step))


def result_figures(result: FioResult) -> dict[FieldPath, float]:
    """fio's final figures, without impossible rates."""
    summary = fio_summary(result.last)
    final = final_rates(summary)
    for rate in impossible_rates(result.last):
        final = without_direction(final, rate.direction)
    return _stated_percentiles(summary) | final


def _failed(path: Path, why: str) -> UsageError:
    name = printable(str(path))
    return UsageError(f"The job of {name} failed: {printable(why.rstrip('.'))}. Its figures cannot "
                      "be a baseline.", BASELINE_ADVICE)  # fmt: skip


def _stated_percentiles(summary: dict[str, object]) -> dict[FieldPath, float]:
    """The percentiles in plain JSON. fio states them per row, so only directions with a single row
    have any."""
    rows = summary["rows"]
    assert isinstance(rows, list)
    percentiles: dict[FieldPath, float] = {}
    for name in ("read", "write", "trim"):
        parts = [row["directions"][name] for row in rows if name in row["directions"]]
        if len(parts) == 1:
            kind = parts[0]["percentiles_of"]
            percentiles |= {
                ("fio", name, kind, p): float(v) for p, v in parts[0]["percentiles"].items()
            }
    syncs = [row["sync"] for row in rows if "sync" in row]
    if len(syncs) == 1:
        percentiles |= {("fio", "sync", p): float(v) for p, v in syncs[0]["percentiles"].items()}
    return percentiles


def job_sections(job: str, overrides: Mapping[str, str]) -> tuple[Section, ...]:
    """The sections of a job as they will run: with overrides, and variables expanded.
    Raises UsageError."""
    text = jobfile.with_overrides(read_job(find_job(job)), overrides)
    return tuple(
        Section(
            section.name, {name: expand_variables(value) for name, value in section.options.items()}
        )
        for section in jobfile.effective_sections(text)
    )


def plan_sections(plan: Plan) -> list[tuple[Section, ...]]:
    """The sections of each representative run of a plan: every value of every axis occurs at least
    once."""
    return [
        job_sections(step.job, {**plan.options, **step.settings_of(OPTION)})
        for step in representative_points(plan)
    ]


def parse_expectations(
    texts: Sequence[str],
    tolerance: float,
    target: Target,
    jobs: Sequence[Sequence[Section]],
    varied: Collection[str] = (),
) -> tuple[Expectation, ...]:
    """Parse the --expect options of a command. Raises UsageError for one that any of the ``jobs``
    can't measure; ``varied`` names the axes in which the jobs differ."""
    expectations = []
    for text in texts:
        expectation = parse_expectation(text, target.tree, tolerance, target.opened)
        _check_cpu(text, expectation)
        reasons = [why_not_measurable(expectation, sections) for sections in jobs]
        problems = [reason for reason in reasons if reason is not None]
        if problems:
            scope = " at some of the points" if len(problems) < len(reasons) else ""
            raise UsageError(f"--expect {text!r} cannot be checked{scope}: {problems[0]}.",
                             _advice_for(problems[0], varied))  # fmt: skip
        expectations.append(expectation)
    return tuple(expectations)


def unchecked_error(judged: Sequence[ExpectationChecked], hint: str) -> UsageError | None:
    """The error for the first of a run's expectations that could not be checked; ``None`` if there
    is none. ``hint`` tells how to list the figures of a run."""
    for each in judged:
        option = f"--expect {each.expectation!r} cannot be checked"
        if each.measured is None:
            return UsageError(f"{option}: {each.why or 'the run has no such figure'}.", hint)
        if each.passed is None:
            name = each.expectation.partition(each.op)[0].strip()
            return UsageError(f"{option}: {each.why}.", "Run longer, e.g. --set runtime=60"
                              f"{coarser_hint(name)}.")  # fmt: skip
    return None


def _check_cpu(text: str, expectation: Expectation) -> None:
    online = set(online_cpus(Roots()))
    if (
        expectation.path[:2] == ("kernel", "cpus")
        and online
        and int(expectation.path[2]) not in online
    ):
        raise UsageError(
            f"--expect {text!r}: CPU {expectation.path[2]} does not exist here, or is offline.",
            f"There are {cpu_list(online)}",
        )


def _advice_for(reason: str, varied: Collection[str]) -> str:
    for name in varied:
        if f"({name}=" in reason:
            return f"Remove that value from --axis {name}, or expect something else."
    if "gtod_reduce" in reason:
        return "Add --set gtod_reduce=0, or use the kernel's r_await or w_await."
    if "lat_percentiles=1" in reason:
        return "Add --set lat_percentiles=1 --set clat_percentiles=0"
    if "(clat_percentiles=0)" in reason:
        return "Add --set clat_percentiles=1"
    return "Add --set unified_rw_reporting=1" if "unified_rw_reporting=1" in reason else ""
