"""Choose the sink of an experiment, and follow one that is measured now."""

from __future__ import annotations

from typing import Any, TextIO

from iopstui.events import Event, PointFinished
from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import Plan
from iopstui.output.experiment.compare import (
    CompareJson,
    CompareTable,
    comparison_results,
    csv_cells,
    progress_note,
)
from iopstui.output.experiment.progress import ProgressReporter
from iopstui.output.experiment.sink import ExperimentCsv, ExperimentRows, ExperimentSink, JsonLines
from iopstui.output.experiment.sweep import SweepJson, SweepTable, sweep_cells, sweep_results


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
    "csv"), words on ``err``. ``started``: the first of the JSON lines, which says whose they are,
    is written already."""
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
    """The ``sink`` of an experiment that is measured now, and on ``err`` how far it is. Its data
    goes to ``out``."""

    def __init__(self, sink: ExperimentSink[Any], err: TextIO, out: TextIO | None = None) -> None:
        self._reporter = ProgressReporter(err, sink.plan.settle + sink.plan.measure, out)
        self._sink = sink

    def handle(self, event: Event) -> None:
        """Take one event."""
        self._reporter.handle(event)
        self._sink.handle(event)
        if isinstance(event, PointFinished) and self._sink.plan.variants:
            text = progress_note(self._sink.plan, self._sink.points)
            if text:
                self._reporter.write_note(event.t, text)

    def end(self) -> None:
        """Write the conclusions."""
        self._reporter.clear()
        self._sink.end()
