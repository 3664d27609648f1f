"""--baseline FILE: read the figures of an earlier run from a recording or a fio result."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iopstui import events
from iopstui.errors import UsageError
from iopstui.model.experiment.baseline import (
    MAXIMUM,
    WHY_NO_MAX,
    BaselineFigure,
    BatchMeans,
    next_coarser_figure,
)
from iopstui.model.experiment.expectation import Expectation
from iopstui.model.experiment.job_figures import is_job_figure
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.metrics.stated_rates import impossible_rates
from iopstui.model.metrics.summary import fio_summary
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
    """A run of the file: its figures in batches, and fio's final ones."""

    batches: dict[FieldPath, BatchMeans]
    seconds: float = 0.0
    final: dict[FieldPath, float] = field(default_factory=dict)

    def add(self, frame: Frame) -> None:
        if frame.fio is not None:
            self.seconds += frame.fio.seconds or 0.0
        for batch in self.batches.values():
            batch.add(frame)

    def no_interval_reason(self, path: FieldPath) -> str:
        """Why a figure of the intervals has no confidence interval; "" if it has one, or if the
        file only has final figures."""
        batches = self.batches.get(path)
        return batches.why if batches is not None and batches.frames > 1 else ""

    def base(self, path: FieldPath, name: str) -> BaselineFigure | None:
        batches = self.batches.get(path)
        value = self.final.get(path, batches.whole.value if batches else None)
        if value is None:
            return None
        return BaselineFigure(value, batches.spread if batches else None, name, self.seconds)


def with_baseline(expected: Sequence[Expectation], file: str | None) -> tuple[Expectation, ...]:
    """The expectations, with the baseline's figure in those that are a share of it. UsageError if
    one has no baseline to compare with, or if there is a baseline and nothing to compare with
    it."""
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
    """UsageError for a figure that never has a confidence interval."""
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
    """ ", or use clat.p99": the end of a hint if ``name`` has no interval; "" if nothing is
    coarser."""
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
        raise UsageError(
            f"The baseline file {printable(str(path))} does not exist.", BASELINE_ADVICE
        )
    return _read_recording(path, paths)


def _new_run(paths: Sequence[FieldPath]) -> _BaselineRun:
    return _BaselineRun({path: BatchMeans(path) for path in paths if not is_job_figure(path)})


def _read_recording(path: Path, paths: Sequence[FieldPath]) -> _BaselineRun:
    """Return the only run of a recording. UsageError if there is none, or more than one."""
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
    """fio's final figures; batches only if --status-interval wrote documents in between."""
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
    """The intervals between the documents of a result; for a single document the whole run."""
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
    """Percentiles of plain JSON: fio's own, if only one row has the direction."""
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
