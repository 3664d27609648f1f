"""Scaling over hosts as a table, JSON lines or CSV on standard output."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Protocol, TextIO

from iopstui.fleet.merging.sums import Object
from iopstui.fleet.scaling_curve import ScalePoint, linear_text
from iopstui.format import latency, number, print_line
from iopstui.model.experiment.scaling import Scaling, analyse_scaling
from iopstui.model.figures.latency import SHOWN
from iopstui.model.metrics.paths import SCHEMA
from iopstui.model.sizes import MIB
from iopstui.output.csv_out import CsvFile
from iopstui.output.fleet.wording import WIDTH
from iopstui.output.jsonl import dumps
from iopstui.tables import Column, head_line, row_line
from iopstui.text import printable

LABEL = "fleet"
COLUMNS = (
    Column("hosts", "hosts", 5), Column("iops", "IOPS", 6, number),
    Column("bw", "MiB/s", 6, lambda bw: number((bw or 0) / MIB)),
    *(Column(name, name, 7, latency) for name in SHOWN),
    Column("iops_host", "a host", 6, number), Column("iops_lowest", "lowest", 6, number),
    Column("iops_highest", "highest", 7, number),
    Column("linear", "linear", 7, linear_text),
)  # fmt: skip


class ScalingSink(Protocol):
    """A sink for the points of a scaling curve."""

    def point(self, point: ScalePoint, first: ScalePoint) -> None:
        """Take one; ``first`` is the first one of the curve."""
        ...

    def end(self, scaling: Scaling) -> None:
        """No more come."""
        ...


def scaling_sink(kind: str, out: TextIO, err: TextIO) -> ScalingSink:
    """The sink for --format ``kind`` ("table", "jsonl" or "csv"); words of data go to ``err``."""
    if kind == "jsonl":
        return ScalingLines(out)
    return ScalingCsv(out, err) if kind == "csv" else ScalingTable(out)


class ScalingTable:
    """A row of at most 80 columns for each point, the law in words at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._has_rows = False

    def point(self, point: ScalePoint, first: ScalePoint) -> None:
        """Print one."""
        if not self._has_rows:
            self._has_rows = True
            print_line(head_line(COLUMNS), self._out)
        print_line(row_line(COLUMNS, point.figures(first)), self._out)

    def end(self, scaling: Scaling) -> None:
        """Print the conclusions from all points."""
        print_line("", self._out)
        for sentence in scaling.sentences():
            for line in textwrap.wrap(sentence, WIDTH, subsequent_indent="  "):
                print_line(line, self._out)


class ScalingLines:
    """A JSON object for each point, and one for the law."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def point(self, point: ScalePoint, first: ScalePoint) -> None:
        """Write one."""
        self._write({
            "event": "scale_point", "host": LABEL, "schema": SCHEMA, **point.figures(first),
            "met": point.expectations_met,
            "each": {printable(name): iops for name, iops in point.iops_by_host.items()},
            "fio": point.sums.fio_object(),
        })  # fmt: skip

    def end(self, scaling: Scaling) -> None:
        """Write the law."""
        law = scaling.law
        self._write({
            "event": "scaling", "host": LABEL, "schema": SCHEMA,
            "points": [[hosts, iops] for hosts, iops in scaling.points],
            "rate": law.rate if law else None,
            "contention": law.contention if law else None,
            "coherency": law.coherency if law else None,
            "residuals": law.residuals(scaling.points) if law else None,
            "knee": scaling.knee, "knee_within": list(scaling.knees) if scaling.knees else None,
            "beyond": scaling.knee_is_beyond, "doubt": scaling.doubt or None,
            "words": scaling.sentences(),
        })  # fmt: skip

    def _write(self, row: Object) -> None:
        self._out.write(dumps(row) + "\n")
        self._out.flush()


class ScalingCsv:
    """A row for each point; the header at once."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._err = err
        self._file = CsvFile(out, (column.id for column in COLUMNS))

    def point(self, point: ScalePoint, first: ScalePoint) -> None:
        """Write one."""
        self._file.row(point.figures(first).values())

    def end(self, scaling: Scaling) -> None:
        """The law has no row."""
        for sentence in scaling.sentences():
            print_line(sentence, self._err)


def scaling_texts(points: Sequence[ScalePoint]) -> tuple[str, ...]:
    """The table and the law in words, when there is no more to come."""
    out = io.StringIO()
    sink = ScalingTable(out)
    for point in points:
        sink.point(point, points[0])
    sink.end(analyse_scaling([(p.hosts, p.iops) for p in points]))
    return tuple(out.getvalue().rstrip("\n").split("\n"))
