"""Hosts over time: a row for each, or for several neighbours, darker where one is off the middle.

A cell says how far the worst host of its row is from the middle of all hosts in that second, so
what all hosts do alike leaves it light, and the totals' charts show that.
"""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.fleet.fleet_state import IOPS, UTIL, FleetState, HostState, span
from iopstui.format import utc
from iopstui.text import printable
from iopstui.ui.draw import density
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.rows import Line, Piece, Row
from iopstui.ui.draw.style import BOLD, DIM, Charset

TIMES = (1.1, 1.5, 2.0, 4.0)
"""A cell is a shade darker from each of these on: so many times the middle (for IOPS: a part)."""
LEGEND = ("<1.1", "1.1", "1.5", "2", "4×")
MAX_LABEL = 26
MARK_SPACING = 20
UNKNOWN = -1
LEGENDS = {IOPS: "median / IOPS", UTIL: "util / median"}

_Levels = list["int | None"]


class HostMap:
    """A map of hosts over time; only new columns are computed, all of them when hosts or window
    change."""

    def __init__(self, charset: Charset) -> None:
        self._charset = charset
        self._key: object = None
        self._levels: list[_Levels] = []
        self._groups: list[list[HostState]] = []
        self._named: tuple[object, int] = (None, 12)
        self._done = -1
        self._start = 0

    def legend(self, measure: str, fio: bool) -> list[Piece]:
        """Meaning of the shades."""
        measure_text = LEGENDS.get(measure, f"{'p99' if fio else 'await'} / median")
        pieces: list[Piece] = [(f"  {measure_text}", DIM)]
        shades = density.shades(self._charset)
        for shade, style, text in zip(shades, density.HEAT, LEGEND, strict=True):
            pieces += [(f" {shade}", style), (f" {text}", DIM)]
        return [*pieces, (f"  {density.UNKNOWN[0]} unknown", DIM)]

    def rows(
        self,
        fleet: FleetState,
        lines: Sequence[HostState],
        measure: str,
        second: int,
        width: int,
        height: int,
    ) -> list[Row]:
        """``height`` rows, the last of which has the time of day."""
        group_rows = max(1, height - 1)
        if (id(lines), group_rows) != self._named[0]:
            longest = max(map(len, self._names(lines, group_rows)), default=0)
            self._named = ((id(lines), group_rows), min(MAX_LABEL, max(12, 1 + longest)))
        label = self._named[1]
        columns = max(1, width - label)
        key = (id(lines), len(lines), measure, columns, group_rows)
        self._follow(second if fleet.first is None else fleet.first, second, columns)
        if (*key, self._start) != self._key:
            self._key = (*key, self._start)
            self._groups = groups(lines, group_rows)
            self._levels = [[None] * columns for _ in self._groups]
            self._done = self._start - 1
        for number in range(max(self._done + 1, self._start), second + 1):
            self._column(fleet, measure, number)
        self._done = max(self._done, second)
        rows = [self._row(at, label, width) for at in range(len(self._groups))]
        blank: Row = ((" " * width, None),)
        rows += [blank] * (group_rows - len(rows))
        return [*rows, self._time(fleet, label, width)]

    def _names(self, lines: Sequence[HostState], rows: int) -> list[str]:
        return [span([host.name for host in group]) for group in groups(lines, rows)]

    def _follow(self, first: int, second: int, columns: int) -> None:
        """Scroll: it stands still until it is full, then moves on by a quarter."""
        step = max(1, columns // 4)
        self._start = first + max(0, (second - first - columns) // step + 1) * step

    def _column(self, fleet: FleetState, measure: str, number: int) -> None:
        middle = fleet.medians[measure].at(number)
        for group, levels in zip(self._groups, self._levels, strict=True):
            levels[number - self._start] = _level(group, measure, number, middle)

    def _row(self, at: int, label: int, width: int) -> Row:
        shades = density.shades(self._charset)
        names = printable(span([host.name for host in self._groups[at]]))
        cells: list[plotting.Cell] = []
        for level in self._levels[at]:
            if level is None:
                cells.append((" ", None))
            elif level == UNKNOWN:
                cells.append(density.UNKNOWN)
            else:
                cells.append((shades[level], density.HEAT[level]))
        line = Line(label, self._charset).add(names, BOLD)
        if line.used >= label:
            line = Line(label, self._charset).add(names[: label - 2] + "… ", BOLD)
        return (*line.build(), *plotting.runs(cells))

    def _time(self, fleet: FleetState, label: int, width: int) -> Row:
        line = Line(width, self._charset)
        second = fleet.second
        interval_ms = 1000 * (second.interval_s if second is not None else 1.0)
        for column in range(0, width - label - 8, MARK_SPACING):
            text = (utc((self._start + column) * interval_ms) or "")[11:19]
            line.fill_to(label + column).add(text, DIM)
        return line.build()


def groups(lines: Sequence[HostState], rows: int) -> list[list[HostState]]:
    """Neighbours together, as many in each as it takes."""
    size = max(1, -(-len(lines) // max(1, rows)))
    return [list(lines[at : at + size]) for at in range(0, len(lines), size)]


def _level(
    group: Sequence[HostState], measure: str, number: int, middle: float | None
) -> int | None:
    """The shade of the worst; UNKNOWN if less than half of them were measured."""
    if middle is None:
        return None
    values = [value for host in group if (value := host.now(measure, number)) is not None]
    if 2 * len(values) <= len(group):
        return UNKNOWN
    if measure == IOPS:
        least = min(values)
        times = middle / least if least > 0 else TIMES[-1] + 1 if middle > 0 else 1.0
    else:
        times = max(values) / middle if middle > 0 else 1.0
    return sum(times > limit for limit in TIMES)
