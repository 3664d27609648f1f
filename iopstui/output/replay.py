"""`iopstui replay FILE --format ...`: a recording as table, JSON lines or CSV."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from iopstui.errors import EXIT_OK, UsageError
from iopstui.events import (
    Event,
    ExperimentFinished,
    ExperimentStarted,
    Notice,
    PointFailed,
    PointFinished,
    TunableChanged,
)
from iopstui.format import print_line
from iopstui.model.metrics.run_figures import MarkIntervals
from iopstui.model.metrics.run_history import RunHistory
from iopstui.output.experiment.sink import ExperimentSink
from iopstui.output.experiment.sinks import experiment_sink
from iopstui.output.jsonl import JsonlSink
from iopstui.output.narration import Narrator
from iopstui.output.sinks import PLAIN, EventSink, make_sink
from iopstui.output.verdict import VerdictSink
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording, impossible_figure_error, recording_path
from iopstui.recording.replay import ReplayFold, replay_events
from iopstui.session.run_rows import (
    add_mark_event,
    add_run_event,
    mark_interval_rows,
    run_table_rows,
)
from iopstui.text import printable


def replay_headless(
    name: str, kind: str, wait: Callable[[], bool] | None = None, plain_every_s: float = 0.0
) -> int:
    """Print everything in the recording, without waiting: data on stdout, messages on stderr.

    With ``wait`` a recording that is still being written is followed (``replay_events``).
    ``plain_every_s`` is the time between plain status lines."""
    with checking_figures([recording_path(name)]), Recording(recording_path(name)) as recording:
        fold = ReplayFold(recording.header)
        header = recording.header
        sink: EventSink
        # InfluxDB gets single seconds even of an experiment, and screen readers sentences
        if kind not in ("influx", PLAIN) and has_experiment(recording):
            sink = ReplayedExperiments(kind, header, sys.stdout, sys.stderr)
        else:
            data = make_sink(
                kind, sys.stdout, sys.stderr, header.target, header.host, plain_every_s
            )
            sink = VerdictSink(data, sys.stdout if kind in ("table", PLAIN) else sys.stderr)
            if kind == "table":
                sink = RunsSink(sink, RunHistory(), sys.stdout)
        count = 0
        try:
            for event in replay_events(recording, fold, wait):
                sink.handle(event)
                count += 1
        finally:
            sink.close()
    if not count:
        raise UsageError(f"The recording {printable(name)} is empty.")
    return EXIT_OK


@contextmanager
def checking_figures(paths: Sequence[Path]) -> Iterator[None]:
    """A context for reading recordings: impossible figures, which iopstui does not write, become a
    UsageError."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise impossible_figure_error(paths, error) from error


class RunsSink:
    """Passes events on. At the end it prints to ``out`` a table of the runs, if there were several,
    and the figures between the marks of a session."""

    def __init__(self, inner: EventSink, history: RunHistory, out: TextIO) -> None:
        self._inner = inner
        self._history = history
        self._mark_intervals = MarkIntervals()
        self._out = out

    def handle(self, event: Event) -> None:
        self._inner.handle(event)
        add_run_event(self._history, event)
        add_mark_event(self._mark_intervals, event)

    def close(self) -> None:
        self._inner.close()
        rows = self._history.rows
        if len(rows) > 1:
            print_line("\n".join(("", "runs:", *run_table_rows(rows))), self._out)
        if self._mark_intervals.marked:
            print_line(
                "\n".join(("", "marks:", *mark_interval_rows(self._mark_intervals.all))), self._out
            )


def has_experiment(recording: Recording) -> bool:
    """Whether the recording contains a sweep or a comparison."""
    return any(isinstance(o.value, ExperimentStarted) for _, o in recording.index().events)


class ReplayedExperiments:
    """Prints recorded sweeps and comparisons as in a live session. JSON lines also contain the
    seconds and other events of their runs."""

    def __init__(self, kind: str, header: form.Header, out: TextIO, err: TextIO) -> None:
        self._kind, self._header = kind, header
        self._out, self._err = out, err
        self._lines = JsonlSink(out, header.host, header.target) if kind == "jsonl" else None
        self._narrator = Narrator(err)
        self._sink: ExperimentSink[Any] | None = None

    def handle(self, event: Event) -> None:
        if isinstance(event, Notice | TunableChanged):
            self._narrator.handle(event)
        match event:
            case ExperimentStarted():
                self._end()
                if self._lines is not None:
                    self._lines.begin()
                self._sink = experiment_sink(
                    event.plan, self._kind, self._header.host, self._header.target,
                    self._out, self._err, started=True,
                )  # fmt: skip
            case PointFinished() | PointFailed() | ExperimentFinished():
                if self._sink is not None:
                    self._sink.handle(event)
                if isinstance(event, ExperimentFinished):
                    self._end()
            case _ if self._lines is not None:
                self._lines.handle(event)

    def _end(self) -> None:
        if self._sink is not None:
            self._sink.end()
            self._sink = None

    def close(self) -> None:
        """End the output; also print an experiment whose end was not recorded."""
        self._end()
        if self._lines is not None:
            self._lines.close()
        self._narrator.close()
