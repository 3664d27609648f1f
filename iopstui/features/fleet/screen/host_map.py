"""A map of hosts over time: a row for each host or for several neighbours, fuller for outliers.

A cell shows how far the worst host of its row is from the median of all hosts in that second.
Changes that all hosts share do not show here, but in the charts of the totals."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.features.fleet.fleet_state import IOPS, UTIL, FleetState, HostState, name_range
from iopstui.format import utc
from iopstui.text import printable
from iopstui.ui.draw import density
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.rows import Line, Piece, Row
from iopstui.ui.draw.style import BOLD, DIM, Charset

LEVEL_RATIOS = (1.1, 1.5, 2.0, 4.0)
"""At these ratios to the median (for IOPS: median / IOPS), a cell gets the next fuller shade."""
LEGEND = ("<1.1", "1.1", "1.5", "2", "4×")
MAX_LABEL = 26
MARK_SPACING = 20
UNKNOWN = -1
LEGENDS = {IOPS: "median / IOPS", UTIL: "util / median"}

_Levels = list["int | None"]


class HostMap:
    """A map of hosts over time. Usually only new columns are computed; all of them if the hosts or
    the window change."""

    def __init__(self, charset: Charset) -> None:
        self._charset = charset
        self._layout_key: object = None
        self._levels: list[_Levels] = []
        self._groups: list[list[HostState]] = []
        self._label_cache: tuple[object, int] = (None, 12)
        self._last_second = -1
        self._start = 0

    def legend(self, measure: str, fio: bool) -> list[Piece]:
        """The meaning of the shades."""
        measure_text = LEGENDS.get(measure, f"{'p99' if fio else 'await'} / median")
        pieces: list[Piece] = [(f"  {measure_text}", DIM)]
        shades = density.shades(self._charset)
        for shade, style, text in zip(shades, density.HEAT, LEGEND, strict=True):
            pieces += [(f" {shade}", style), (f" {text}", DIM)]
        return [*pieces, (f"  {density.UNKNOWN[0]} unknown", DIM)]

    def rows(
        self,
        fleet: FleetState,
        hosts: Sequence[HostState],
        measure: str,
        second: int,
        width: int,
        height: int,
    ) -> list[Row]:
        """``height`` rows; the last one shows the time of day."""
        group_rows = max(1, height - 1)
        if (id(hosts), group_rows) != self._label_cache[0]:
            longest = max(map(len, self._group_names(hosts, group_rows)), default=0)
            self._label_cache = ((id(hosts), group_rows), min(MAX_LABEL, max(12, 1 + longest)))
        label = self._label_cache[1]
        columns = max(1, width - label)
        key = (id(hosts), len(hosts), measure, columns, group_rows)
        self._follow(second if fleet.first is None else fleet.first, second, columns)
        if (*key, self._start) != self._layout_key:
            self._layout_key = (*key, self._start)
            self._groups = groups(hosts, group_rows)
            self._levels = [[None] * columns for _ in self._groups]
            self._last_second = self._start - 1
        for number in range(max(self._last_second + 1, self._start), second + 1):
            self._column(fleet, measure, number)
        self._last_second = max(self._last_second, second)
        rows = [self._row(index, label, width) for index in range(len(self._groups))]
        blank: Row = ((" " * width, None),)
        rows += [blank] * (group_rows - len(rows))
        return [*rows, self._time(fleet, second, label, width)]

    def _group_names(self, hosts: Sequence[HostState], rows: int) -> list[str]:
        return [name_range([host.name for host in group]) for group in groups(hosts, rows)]

    def _follow(self, first: int, second: int, columns: int) -> None:
        """Scroll by a quarter of the width when the map is full."""
        step = max(1, columns // 4)
        self._start = first + max(0, (second - first - columns) // step + 1) * step

    def _column(self, fleet: FleetState, measure: str, number: int) -> None:
        middle = fleet.medians[measure].at(number)
        for group, levels in zip(self._groups, self._levels, strict=True):
            levels[number - self._start] = _level(group, measure, number, middle)

    def _row(self, index: int, label: int, width: int) -> Row:
        shades = density.shades(self._charset)
        names = printable(name_range([host.name for host in self._groups[index]]))
        cells: list[plotting.Cell] = []
        for level in self._levels[index]:
            if level is None:
                cells.append((" ", None))
            elif level == UNKNOWN:
                cells.append(density.UNKNOWN)
            else:
                cells.append((shades[level], density.HEAT[level]))
        line = Line(label, self._charset).add(names, BOLD)
        if line.used >= label:
            line = Line(label, self._charset).add(names[: label - 2] + "… ", BOLD)
        return (*line.build(), *plotting.cells_to_row(cells))

    def _time(self, fleet: FleetState, last: int, label: int, width: int) -> Row:
        """The time of day of some columns, none of them later than the ``last`` one."""
        line = Line(width, self._charset)
        second = fleet.second
        interval_ms = 1000 * (second.interval_s if second is not None else 1.0)
        columns = min(width - label - 8, last + 1 - self._start)
        for column in range(0, max(1, columns), MARK_SPACING):
            text = (utc((self._start + column) * interval_ms) or "")[11:19]
            line.fill_to(label + column).add(text, DIM)
        return line.build()


def groups(hosts: Sequence[HostState], rows: int) -> list[list[HostState]]:
    """Divide the hosts into at most ``rows`` groups of neighbours."""
    size = max(1, -(-len(hosts) // max(1, rows)))
    return [list(hosts[start : start + size]) for start in range(0, len(hosts), size)]


def _level(
    group: Sequence[HostState], measure: str, number: int, middle: float | None
) -> int | None:
    """The shade of the group's worst host; UNKNOWN unless more than half of the group was
    measured."""
    if middle is None:
        return None
    values = [value for host in group if (value := host.value(measure, number)) is not None]
    if 2 * len(values) <= len(group):
        return UNKNOWN
    if measure == IOPS:
        lowest = min(values)
        times = middle / lowest if lowest > 0 else LEVEL_RATIOS[-1] + 1 if middle > 0 else 1.0
    else:
        times = max(values) / middle if middle > 0 else 1.0
    return sum(times > limit for limit in LEVEL_RATIOS)
