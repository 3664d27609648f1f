"""How throughput grows with the hosts: table, JSON lines or CSV on standard output."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Mapping
from dataclasses import field
from typing import Protocol, TextIO

from iopstui.fleet.merging.merger import Merger
from iopstui.fleet.merging.sums import Object, Sums
from iopstui.format import fit, latency, number, put
from iopstui.model.experiment.scaling import Scaling
from iopstui.model.metrics.fields import SCHEMA
from iopstui.model.rates import MIB
from iopstui.output.fleet.words import SHOWN, WIDTH
from iopstui.output.jsonl import dumps
from iopstui.records import dataclass
from iopstui.text import printable

LABEL = "fleet"
HEAD = ("hosts", "IOPS", "MiB/s", *SHOWN, "a host", "lowest", "highest", "linear")
COLUMNS = ("hosts", "iops", "bw", *SHOWN, "iops_host", "iops_lowest", "iops_highest", "linear")


@dataclass(frozen=True, slots=True)
class ScalePoint:
    """A run on ``hosts`` hosts: what all did, and I/Os per second of each by its name. ``met``:
    whether all expectations were (``None``: there were none)."""

    hosts: int
    sums: Sums
    each: Mapping[str, float] = field(default_factory=dict)
    met: bool | None = None

    @property
    def iops(self) -> float:
        """I/Os per second of all."""
        total = self.sums.total
        return total.iops if total is not None else 0.0

    @property
    def bw(self) -> float:
        """Bytes per second of all."""
        total = self.sums.total
        return total.bw if total is not None else 0.0

    def percentiles(self) -> Mapping[str, int]:
        """In ns; empty without latencies."""
        total = self.sums.total
        return total.main[1].percentiles() if total is not None else {}

    def linear(self, first: ScalePoint) -> float | None:
        """The share that a host has of what one had at the first point; ``None``: it had
        nothing."""
        before = first.iops / first.hosts
        return self.iops / self.hosts / before if before else None

    def figures(self, first: ScalePoint) -> list[float | int | None]:
        """By ``COLUMNS``."""
        ranks = self.percentiles()
        each = self.each.values()
        return [
            self.hosts, self.iops, self.bw, *(ranks.get(name) for name in SHOWN),
            self.iops / self.hosts, min(each, default=None), max(each, default=None),
            self.linear(first),
        ]  # fmt: skip


def scale_point(hosts: int, merger: Merger, met: bool | None = None) -> ScalePoint:
    """Of a run that is over; ``met`` as in ``ScalePoint``."""
    whole = merger.rated()
    each = {}
    took_part = ((name, host) for name, host in merger.hosts.items() if host.frames)
    for name, host in sorted(took_part):
        total = host.rated().total
        each[name] = total.iops if total is not None else 0.0
    return ScalePoint(hosts, whole, each, met)


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
        hosts, iops, bw, *ranks, one, low, high, linear = point.figures(first)
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
        figures = dict(zip(COLUMNS, point.figures(first), strict=True))
        self._write({
            "event": "scale_point", "host": LABEL, "schema": SCHEMA, **figures,
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
        self._writer.writerow("" if cell is None else cell for cell in point.figures(first))
        self._out.flush()

    def end(self, found: Scaling) -> None:
        """The law has no row."""
        for words in found.words():
            put(words, self._err)
