"""Base of the sinks for sweeps and comparisons.

A point comes, a row goes out; what all points together say ends it. Each kind of experiment has
its rows as a table, JSON lines and CSV (sweep.py, compare.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, Protocol, TextIO, TypeVar

from iopstui import format as units
from iopstui.events import Event, PointFailed, PointFinished
from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import Plan
from iopstui.output.experiment.progress import ProgressReporter
from iopstui.output.jsonl import Object, dumps, event_object, session_object


class Conclusions(Protocol):
    """The conclusions from all points together."""

    def verdicts(self) -> Iterable[str]:
        """The conclusions in sentences."""
        ...


R = TypeVar("R", bound=Conclusions)
R_in = TypeVar("R_in", bound=Conclusions, contravariant=True)


class ExperimentRows(Protocol[R_in]):
    """An experiment's data in one format."""

    def point(self, event: PointFinished) -> None:
        """Write one point."""
        ...

    def failed(self, event: PointFailed) -> None:
        """Write one that failed."""
        ...

    def end(self, results: R_in) -> None:
        """The conclusions from all points together."""
        ...


class ExperimentSink(ABC, Generic[R]):
    """An experiment's data on ``out`` as ``kind`` ("table", "jsonl" or "csv") and words on
    ``err``, measured now or recorded. ``started``: the first of the JSON lines, which says whose
    they are, is written already."""

    def __init__(
        self,
        plan: Plan,
        kind: str,
        host: str,
        target: Target | None,
        out: TextIO,
        err: TextIO,
        started: bool = False,
    ) -> None:
        self.plan = plan
        self.points: list[PointFinished] = []
        self.failed: list[PointFailed] = []
        self._err = None if kind == "table" else err
        self._rows: ExperimentRows[R]
        if kind == "jsonl":
            self._rows = self.json(JsonLines(out, host, target, started))
        elif kind == "csv":
            self._rows = self.csv(out)
        else:
            self._rows = self.table(out)

    def handle(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, PointFinished):
            self.points.append(event)
            self._rows.point(event)
        elif isinstance(event, PointFailed):
            self.failed.append(event)
            self._rows.failed(event)

    def end(self) -> None:
        """Write the conclusions from all points; in a table they stand below the rows."""
        if not self.points and not self.failed:
            return
        results = self.results()
        self._rows.end(results)
        if self._err is not None:
            for line in results.verdicts():
                units.print_line(line, self._err)

    def progress_note(self) -> str:
        """Note on the remaining points after the newest one; mostly ""."""
        return ""

    @abstractmethod
    def results(self) -> R:
        """The conclusions from the points so far."""

    @abstractmethod
    def table(self, out: TextIO) -> ExperimentRows[R]:
        """Rows for people."""

    @abstractmethod
    def json(self, lines: JsonLines) -> ExperimentRows[R]:
        """Rows as JSON lines."""

    @abstractmethod
    def csv(self, out: TextIO) -> ExperimentRows[R]:
        """Rows alone."""


class JsonLines:
    """JSON lines of one host; the first, if it is not written yet, says whose they are."""

    def __init__(
        self, out: TextIO, host: str, target: Target | None = None, started: bool = False
    ) -> None:
        self._out, self._host = out, host
        if not started:
            self._write_line(session_object(host, target))

    def write(self, kind: str, row: Object) -> None:
        """Write one of them at once."""
        self._write_line({"event": kind, "host": self._host, **row})

    def _write_line(self, line: Object) -> None:
        self._out.write(dumps(line) + "\n")
        self._out.flush()


def point_object(event: PointFinished) -> Object:
    """A point for JSON, without its outcomes: they have lines of their own."""
    row = event_object(event)
    row["settings"] = dict(event.settings)
    del row["outcomes"]
    return row


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
        text = self._sink.progress_note() if isinstance(event, PointFinished) else ""
        if text:
            self._reporter.write_note(event.t, text)

    def end(self) -> None:
        """Write the conclusions."""
        self._reporter.clear()
        self._sink.end()
