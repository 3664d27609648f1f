"""How throughput grows with the hosts: table, JSON lines or CSV on standard output."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Sequence
from typing import Protocol, TextIO

from iopstui.fleet.merging.sums import Object
from iopstui.fleet.scaling_curve import ScalePoint
from iopstui.format import fit, latency, number, put
from iopstui.model.experiment.scaling import Scaling, scaling
from iopstui.model.metrics.paths import SCHEMA
from iopstui.model.rates import MIB
from iopstui.output.fleet.wording import SHOWN, WIDTH
from iopstui.output.jsonl import dumps
from iopstui.text import printable

LABEL = "fleet"
HEAD = ("hosts", "IOPS", "MiB/s", *SHOWN, "a host", "lowest", "highest", "linear")
COLUMNS = ("hosts", "iops", "bw", *SHOWN, "iops_host", "iops_lowest", "iops_highest", "linear")


def figures(point: ScalePoint, first: ScalePoint) -> list[float | int | None]:
    """By ``COLUMNS``; ``first`` is the first point of the curve."""
    ranks = point.percentiles()
    each = point.each.values()
    return [
        point.hosts, point.iops, point.bw, *(ranks.get(name) for name in SHOWN),
        point.iops / point.hosts, min(each, default=None), max(each, default=None),
        point.linear(first),
    ]  # fmt: skip


class ScalingSink(Protocol):
    """What takes the points of a curve."""

    def point(self, point: ScalePoint, first: ScalePoint) -> None:
        """Take one; ``first`` is the first one of the curve."""
        ...

    def end(self, found: Scaling) -> None:
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
        self._any = False

    def point(self, point: ScalePoint, first: ScalePoint) -> None:
        """Print one."""
        if not self._any:
            self._any = True
            self._print(_row(HEAD))
        hosts, iops, bw, *ranks, one, low, high, linear = figures(point, first)
        share = "–" if linear is None else f"{100 * linear:.3g} %"
        self._print(_row((
            str(hosts), number(iops), number((bw or 0) / MIB), *map(latency, ranks),
            *map(number, (one, low, high)), share,
        )))  # fmt: skip

    def end(self, found: Scaling) -> None:
        """Print what the points say together."""
        self._print("")
        for words in found.words():
            for line in textwrap.wrap(words, WIDTH, subsequent_indent="  "):
                self._print(line)

    def _print(self, text: str) -> None:
        self._out.write(fit(text, self._out.encoding) + "\n")
        self._out.flush()


def _row(cells: tuple[str, ...]) -> str:
    widths = (5, 6, 6, 7, 7, 7, 6, 6, 7, 7)
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


class ScalingLines:
    """A JSON object for each point, and one for the law."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def point(self, point: ScalePoint, first: ScalePoint) -> None:
        """Write one."""
        row = dict(zip(COLUMNS, figures(point, first), strict=True))
        self._write({
            "event": "scale_point", "host": LABEL, "schema": SCHEMA, **row,
            "met": point.met,
            "each": {printable(name): iops for name, iops in point.each.items()},
            "fio": point.sums.fio_object(),
        })  # fmt: skip

    def end(self, found: Scaling) -> None:
        """Write the law."""
        law = found.law
        self._write({
            "event": "scaling", "host": LABEL, "schema": SCHEMA,
            "points": [[hosts, iops] for hosts, iops in found.points],
            "rate": law.rate if law else None,
            "contention": law.contention if law else None,
            "coherency": law.coherency if law else None,
            "residuals": law.residuals(found.points) if law else None,
            "knee": found.knee, "knee_within": list(found.knees) if found.knees else None,
            "beyond": found.beyond, "doubt": found.doubt or None, "words": found.words(),
        })  # fmt: skip

    def _write(self, row: Object) -> None:
        self._out.write(dumps(row) + "\n")
        self._out.flush()


class ScalingCsv:
    """A row for each point; the header at once."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out, self._err = out, err
        self._writer = csv.writer(out, lineterminator="\n")
        self._writer.writerow(COLUMNS)
        out.flush()

    def point(self, point: ScalePoint, first: ScalePoint) -> None:
        """Write one."""
        self._writer.writerow("" if cell is None else cell for cell in figures(point, first))
        self._out.flush()

    def end(self, found: Scaling) -> None:
        """The law has no row."""
        for words in found.words():
            put(words, self._err)


def scaling_words(points: Sequence[ScalePoint]) -> tuple[str, ...]:
    """The table and the law in words, when there is no more to come."""
    out = io.StringIO()
    sink = ScalingTable(out)
    for one in points:
        sink.point(one, points[0])
    sink.end(scaling([(one.hosts, one.iops) for one in points]))
    return tuple(out.getvalue().rstrip("\n").split("\n"))
