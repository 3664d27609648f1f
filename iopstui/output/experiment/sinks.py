"""Choose the sink of an experiment, and report the progress of a running one on standard error."""

from __future__ import annotations

from typing import Any, TextIO

from iopstui.events import (
    Event,
    ExperimentStarted,
    FrameReady,
    LayoutProgress,
    Notice,
    PointFailed,
    PointFinished,
    PointStarted,
)
from iopstui.format import clock, number, print_line, print_sentence
from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import Plan
from iopstui.output.experiment.compare import (
    CompareJson,
    CompareTable,
    comparison_results,
    csv_cells,
    progress_note,
)
from iopstui.output.experiment.sink import ExperimentCsv, ExperimentRows, ExperimentSink, JsonLines
from iopstui.output.experiment.sweep import SweepJson, SweepTable, sweep_cells, sweep_results
from iopstui.output.narration import Narrator, share_progress_text
from iopstui.text import printable


class ProgressReporter:
    """Prints the progress of an experiment on ``stream``: as one updated line on a terminal,
    otherwise one line per point. Each notice is printed once."""

    def __init__(self, stream: TextIO, seconds: float, out: TextIO | None = None) -> None:
        self._stream = stream
        self._narrator = Narrator(stream, out)
        self._seconds = seconds
        self._line = self._narrator.line
        self._total_s = 0.0
        self._printed: set[str] = set()
        self._point: PointStarted | None = None
        self._elapsed = 0.0
        self._unit = "point"

    def handle(self, event: Event) -> None:
        match event:
            case ExperimentStarted():
                self._unit = event.plan.unit
            case PointStarted():
                self._point, self._elapsed = event, 0.0
                self._total_s = max(self._total_s, event.left_s)
                if not self._line.alive:
                    left = f", {clock(event.left_s)} left" if event.left_s else ""
                    print_line(f"[{clock(event.t)}] {self._point_text()}{left}", self._stream)
            case FrameReady():
                self._frame(event)
            case PointFinished():
                self.clear()
            case PointFailed():
                self.clear()
                text = self._point_text()
                print_sentence(
                    f"[{clock(event.t)}] {text} failed: {printable(event.error)}", self._stream
                )
            case LayoutProgress():
                self._narrator.handle(event)
            case Notice() if event.text not in self._printed:
                self._printed.add(event.text)
                self.clear()
                self._narrator.handle(event)

    def write_note(self, t: float, text: str) -> None:
        """Print a sentence for the session's time ``t``."""
        self.handle(Notice(t, "info", text))

    def clear(self) -> None:
        """Clear the progress line to make room for another line."""
        self._line.clear()

    def _point_text(self) -> str:
        point = self._point
        assert point is not None
        return f"{self._unit} {point.index + 1} of {point.total}: {printable(point.label)}"

    def _frame(self, event: FrameReady) -> None:
        fio = event.frame.fio
        point = self._point
        if point is None or fio is None:
            return
        self._elapsed += fio.seconds or 0.0
        iops = f"{number(fio.total.iops)} IOPS"
        if not point.left_s:
            self._line.draw(f"{self._point_text()}, {self._elapsed:.0f} s, {iops}")
            return
        left = max(0.0, point.left_s - self._elapsed)
        share = 1 - left / self._total_s if self._total_s else 1.0
        now = f"{self._elapsed:.0f} of {self._seconds:g} s, {iops}"
        self._line.draw(f"{share_progress_text(share, left)}: {self._point_text()}, {now}")


def experiment_sink(
    plan: Plan,
    kind: str,
    host: str,
    target: Target | None,
    out: TextIO,
    err: TextIO,
    started: bool = False,
) -> ExperimentSink[Any]:
    """The sink for the experiment's ``plan``: data on ``out`` as ``kind`` ("table", "jsonl" or
    "csv"), messages on ``err``. ``started``: the first JSON line, which names the host, is already
    written."""
    rows: ExperimentRows[Any]
    if kind == "jsonl":
        lines = JsonLines(out, host, target, started)
        rows = CompareJson(plan, lines) if plan.variants else SweepJson(plan, lines)
    elif kind == "csv":
        rows = ExperimentCsv(csv_cells(plan) if plan.variants else sweep_cells(plan), out)
    else:
        rows = CompareTable(plan, out) if plan.variants else SweepTable(plan, out)
    results = comparison_results if plan.variants else sweep_results
    return ExperimentSink(plan, rows, results, None if kind == "table" else err)


class ReportedExperiment:
    """The ``sink`` of a running experiment, whose data goes to ``out``; progress is shown on
    ``err``."""

    def __init__(self, sink: ExperimentSink[Any], err: TextIO, out: TextIO | None = None) -> None:
        self._reporter = ProgressReporter(err, sink.plan.settle + sink.plan.measure, out)
        self._sink = sink

    def handle(self, event: Event) -> None:
        self._reporter.handle(event)
        self._sink.handle(event)
        if isinstance(event, PointFinished) and self._sink.plan.variants:
            text = progress_note(self._sink.plan, self._sink.points)
            if text:
                self._reporter.write_note(event.t, text)

    def end(self) -> None:
        self._reporter.clear()
        self._sink.end()
