"""The base of the sinks for sweeps and comparisons. Each point becomes a row, and at the end come
the conclusions from all points. For each kind of experiment there are rows as a table, JSON lines
and CSV (sweep.py, compare.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TextIO, TypeVar

from iopstui import format as units
from iopstui.events import Event, ExperimentFinished, PointFailed, PointFinished
from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import Plan
from iopstui.model.figures.figure import reader
from iopstui.output.csv_out import CsvFile
from iopstui.output.jsonl import Object, dumps, event_object, session_object
from iopstui.text import wrapped

Cell = tuple[str, str | Callable[[Any], Any]]


class Conclusions(Protocol):
    """The conclusions from all points together."""

    def verdicts(self) -> Iterable[str]:
        """The conclusions in sentences."""


R = TypeVar("R", bound=Conclusions)
Results = Callable[[Plan, Sequence[PointFinished], Sequence[PointFailed], Sequence[str]], R]


class ExperimentRows(Generic[R]):
    """An experiment's data in one format. Only a sweep goes on after a failed run."""

    def point(self, event: PointFinished) -> None:
        """Write one point."""

    def failed(self, event: PointFailed) -> None:
        """Write a failed point of a sweep."""

    def end(self, results: R) -> None:
        """Write the conclusions from all points together."""


class ExperimentTable(ExperimentRows[R]):
    """Prints an experiment's rows as a readable table on ``out``."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._plan, self._out = plan, out

    def _print(self, text: str) -> None:
        units.print_line(text, self._out)

    def _sentences(self, lines: Iterable[str]) -> None:
        """Print sentences about a row below it."""
        for text in lines:
            self._print(wrapped(text, 6, 12))


class ExperimentCsv(ExperimentRows[R]):
    """A row for each run. ``columns`` has each heading with the source of its values: the path of
    an attribute, or a function of the event. The conclusions are printed as messages."""

    def __init__(self, columns: Sequence[Cell], out: TextIO) -> None:
        self._cells = [reader(path) for _, path in columns]
        self._file = CsvFile(out, [head for head, _ in columns])

    def point(self, event: PointFinished | PointFailed) -> None:
        """Write one run; a run that failed has no figures."""
        self._file.row([read(event) for read in self._cells])

    failed = point


def cells(names: str) -> list[Cell]:
    """The columns for the figures of a point."""
    return [(name, f"point/{name}") for name in names.split()]


def disturbed_text(event: PointFinished | PointFailed) -> str | None:
    """What disturbed a run; ``None`` if the run failed."""
    return "; ".join(event.point.disturbed) if isinstance(event, PointFinished) else None


class ExperimentSink(Generic[R]):
    """Prints a running or recorded experiment: its data through ``rows``, messages on ``err``
    (``None``: ``rows`` has them). ``results`` returns the conclusions from the points so far."""

    def __init__(
        self, plan: Plan, rows: ExperimentRows[R], results: Results[R], err: TextIO | None
    ) -> None:
        self.plan = plan
        self.points: list[PointFinished] = []
        self.failed: list[PointFailed] = []
        self._said: Sequence[str] = ()
        self._rows, self._results, self._err = rows, results, err

    def handle(self, event: Event) -> None:
        if isinstance(event, PointFinished):
            self.points.append(event)
            self._rows.point(event)
        elif isinstance(event, PointFailed):
            self.failed.append(event)
            if not self.plan.variants:
                self._rows.failed(event)
        elif isinstance(event, ExperimentFinished):
            self._said = event.said

    def end(self) -> None:
        """Write the conclusions from all points; in a table they are below the rows."""
        if not self.points and not self.failed:
            return
        results = self._results(self.plan, self.points, self.failed, self._said)
        self._rows.end(results)
        if self._err is not None:
            for line in results.verdicts():
                units.print_sentence(line, self._err)


class JsonLines:
    """JSON lines of one host. The line that names the host is written first, if it is not there
    yet."""

    def __init__(
        self, out: TextIO, host: str, target: Target | None = None, started: bool = False
    ) -> None:
        self._out, self._host = out, host
        if not started:
            self._write_line(session_object(host, target))

    def write(self, kind: str, row: Object) -> None:
        self._write_line({"event": kind, "host": self._host, **row})

    def _write_line(self, line: Object) -> None:
        self._out.write(dumps(line) + "\n")
        self._out.flush()


def point_object(event: PointFinished) -> Object:
    """A point for JSON, without its outcomes, which get lines of their own."""
    row = event_object(event)
    row["settings"] = dict(event.settings)
    del row["outcomes"]
    return row
