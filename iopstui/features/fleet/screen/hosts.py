"""The panel of hosts: a row for each if they fit, else a map over time beside the worst hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from operator import attrgetter

from iopstui import format as f
from iopstui.errors import Missing, UsageError
from iopstui.features.fleet.fleet_state import (
    ABSENT_STATES,
    AWAIT,
    BW,
    CONNECTING,
    DONE,
    FAILED,
    FIGURES,
    IDLE,
    INCOMPLETE,
    IOPS,
    LATE,
    LEFT_OUT,
    LOST,
    MISSING,
    READY,
    UTIL,
    WAIT,
    FleetState,
    HostState,
)
from iopstui.features.fleet.hosts.nodes import expand_node_set, has_ranges
from iopstui.features.fleet.screen.host_map import HostMap
from iopstui.tables import DOWN, UP, Column, in_order
from iopstui.text import printable
from iopstui.ui.draw import density
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.rows import Line, Piece, Row, Table, cells, message, pad, rule
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FIO, SELECTED, WARNING, Charset

FEW_HOSTS = 20
"""Up to this number of hosts, each has a row, even if the list has to scroll."""
NAME, WORST, STATE, OUTLIERS = "name", "worst", "state", "odd"
ORDERS = (NAME, WORST, *FIGURES, STATE, OUTLIERS)
BY, REVERSED, MAP, ROWS = "by-", "reversed", "map", "rows"
LAYOUT_PANELS = ("iops", "latency", "numbers", "hosts", "runs")
"""The panels in the order of the keys 1 to 5."""
LAYOUT_WORDS = (*(f"{BY}{order}" for order in ORDERS), REVERSED, MAP, ROWS)
"""Words of a saved layout that are about the hosts."""


def _time(ns: float | None) -> str:
    """A latency as text. An await of 0 means less than the kernel's unit, 1 ms; a p99 is never
    0."""
    return f.dense_ms(None if ns is None else ns / 1e6)


STYLES = {
    LOST: ERROR, FAILED: ERROR, MISSING: ERROR, LEFT_OUT: WARNING, LATE: WARNING,
    INCOMPLETE: WARNING, DONE: DIM, READY: DIM, CONNECTING: DIM, IDLE: DIM,
}  # fmt: skip
BAD_STATES = tuple(state for state, style in STYLES.items() if style is not DIM)
"""The bad states, worst first."""


def _severity(host: HostState) -> int:
    return BAD_STATES.index(host.state) if host.state in BAD_STATES else len(BAD_STATES)


COLUMNS = (
    Column(IOPS, "IOPS", 6, f.number, style=FIO, sorts=UP),
    Column(BW, "MiB/s", 6, f.mib, sorts=UP),
    Column(WAIT, "p99", 7, _time, sorts=DOWN),
    # shown in place of p99 if no job runs
    Column(AWAIT, "await", 7, _time, rank=2, sorts=DOWN),
    Column(UTIL, "util%", 5, f.percent, rank=1, sorts=DOWN),
    Column(STATE, "state", 8, sorts=UP, key=_severity),
)
"""The columns of a host, besides its name."""
SORTED_BY = {
    NAME: Column("sort_key", "host", sorts=UP),
    OUTLIERS: Column("oddness", "outliers", sorts=DOWN),
    **{column.id: column for column in COLUMNS},
}
BETWEEN_RUNS = "  no job runs: what the disks do"
LAST_SECOND = "  last second"
TITLE_ENDS = 4
"""Cells of a title's line around its text."""
MIN_NAME, MAX_NAME = 8, 30
MINUTE_S = 60
MIN_SPARKLINE = 12
LIST_WIDTH = 62
SORT_INTERVAL_S = 5
"""Seconds between two sorts by a figure."""


def matches(name: str, text: str) -> bool:
    """Whether a host matches the filter, which has parts of its name or node sets."""
    return all(_matches_term(name, term) for term in text.lower().split())


def _matches_term(name: str, term: str) -> bool:
    if "[" not in term:
        return any(part in name.lower() for part in term.split(",") if part) or term == ","
    names = _expand_nodes(term)
    # the node set is still incomplete, or a group, which is not looked up
    return term.partition("[")[0] in name.lower() if names is None else name.lower() in names


@lru_cache(maxsize=16)
def _expand_nodes(term: str) -> frozenset[str] | None:
    """The hosts of a node set; ``None`` if the text is not one. Groups are not looked up, because
    the user is still typing."""
    if not has_ranges(term) or {*term} & {*"@*?!&^"}:
        return None
    try:
        return frozenset(expand_node_set(term))
    except (UsageError, Missing):
        return None


class HostsView:
    """The view of the hosts: ``order`` (``reverse``: the opposite direction), ``filter_text``, the
    ``cursor``, and ``as_map`` (``None``: depends on the number of hosts)."""

    def __init__(self, charset: Charset) -> None:
        self.order = NAME
        self.reverse = False
        self.effective_order = NAME
        """The order in use: beside a map, the worst hosts come first if ``order`` is NAME."""
        self.filter_text = ""
        self.cursor = 0
        self.as_map: bool | None = None
        self._charset = charset
        self._map = HostMap(charset)
        self._listed_hosts: list[HostState] = []
        self._selected_name: str | None = None
        self._odd = self._shown = ""
        self._sort_cache: tuple[object, int, list[HostState]] = (None, 0, [])
        self._filter_cache: tuple[object, list[HostState]] = (None, [])
        self._hosts: dict[str, HostState] = {}
        self._top = 0
        self._titles: list[tuple[int, int, str]] = []
        self._list_origin = (0, 0)
        """The column and row in the panel at which the list begins."""

    @property
    def layout(self) -> tuple[str, ...]:
        """The words of a saved layout that differ from the default, e.g. ("by-util", "map")."""
        words = (
            f"{BY}{self.order}" if self.order != NAME else "", REVERSED if self.reverse else "",
            "" if self.as_map is None else MAP if self.as_map else ROWS,
        )  # fmt: skip
        return tuple(word for word in words if word)

    def restore_layout(self, words: Sequence[str]) -> None:
        self.order = next((order for order in ORDERS if f"{BY}{order}" in words), NAME)
        self.reverse = REVERSED in words
        self.as_map = next((word == MAP for word in words if word in (MAP, ROWS)), None)

    @property
    def selected(self) -> HostState | None:
        """The host that Enter would open."""
        return self._listed_hosts[self.cursor] if self.cursor < len(self._listed_hosts) else None

    def next_order(self, fio: bool) -> str:
        """Switch to the next order. Returns its name in words. Without a job, await replaces p99,
        so it is not an order of its own."""
        orders = [order for order in ORDERS if fio or order != AWAIT]
        return self.sort_by(orders[(orders.index(self.order) + 1) % len(orders)], fio)

    def sort_by(self, order: str, fio: bool) -> str:
        """Sort in this order, not reversed. Returns its name in words."""
        self.order, self.reverse = order, False
        self.move_to_top()
        return order_text(order, fio)

    def reverse_order(self, fio: bool) -> str:
        self.reverse = not self.reverse and self.order != WORST
        self.move_to_top()
        return order_text(self.order, fio, self.reverse)

    def title_at(self, x: int, y: int, fio: bool) -> str | None:
        """The order for the column title at this cell of the panel."""
        left_column, top = self._list_origin
        title = next(
            (name for begin, end, name in self._titles if begin <= x - left_column < end), None
        )
        if y != top or title is None:
            return None
        return next(
            (order for order, column in SORTED_BY.items() if _title(column, fio) == title), None
        )

    def select_at(self, x: int, y: int) -> bool:
        """Select the host at this cell of the panel. Returns False if there is none."""
        left_column, top = self._list_origin
        index = self._top + y - top - 1
        if x < left_column or y <= top or index >= len(self._listed_hosts):
            return False
        self.move(index - self.cursor)
        return True

    def move_to_top(self) -> None:
        self.cursor, self._selected_name = 0, None

    def move(self, by: int) -> None:
        """Select the next or previous host. From then on the cursor stays with that host."""
        self.cursor = max(0, min(self.cursor + by, len(self._listed_hosts) - 1))
        self._selected_name = self._listed_hosts[self.cursor].name if self._listed_hosts else None

    def _sorted_hosts(self, hosts: list[HostState], order: str, second: int) -> list[HostState]:
        """The hosts in their order, sorted again only every few seconds, so that rows can be
        read."""
        key = (id(hosts), len(hosts), order, self.reverse, self._odd)
        if self._sort_cache[0] != key or not 0 <= second - self._sort_cache[1] < SORT_INTERVAL_S:
            ordered = order_hosts(hosts, order, second, self.reverse)
            if order == NAME:
                ordered.sort(key=lambda host: printable(host.name) != self._odd)
            self._sort_cache = (key, second, ordered)
        return self._sort_cache[2]

    def is_map(self, hosts: int, rows: int) -> bool:
        """Whether this number of hosts is shown as a map, not as a list."""
        return hosts > max(FEW_HOSTS, rows) if self.as_map is None else self.as_map

    def matching_hosts(self, fleet: FleetState) -> list[HostState]:
        key = (len(fleet.hosts), self.filter_text)
        if key != self._filter_cache[0] or self._hosts is not fleet.hosts:
            self._hosts = fleet.hosts
            matching = [
                host for host in self._hosts.values() if matches(host.name, self.filter_text)
            ]
            self._filter_cache = (key, sorted(matching, key=attrgetter("sort_key")))
        return self._filter_cache[1]

    def rows(
        self, fleet: FleetState, second: int, width: int, height: int, odd: str = "",
        shown: str = "",
    ) -> list[Row]:  # fmt: skip
        """The panel for this second. If sorted by name, the ``odd`` host comes first. While one
        host is ``shown``, the hosts are a list."""
        self._odd, self._shown = odd, shown
        hosts = self.matching_hosts(fleet)
        as_map = self.is_map(len(hosts), height - 2)
        self.effective_order = WORST if as_map and self.order == NAME else self.order
        as_map = as_map and not shown
        title = self._title(fleet, hosts, as_map, width)
        if not hosts:
            self._listed_hosts = []
            text = "no host matches the filter" if self.filter_text else "no host yet"
            return pad([title, message(width, self._charset, text)], height, width)
        if not as_map:
            ordered = self._sorted_hosts(hosts, self.effective_order, second)
            self._list_origin = (0, 1)
            body = self._list_rows(fleet, ordered, second, width, height - 1)
            return pad([title, *body], height, width)
        return pad(
            [title, *self._map_and_list(fleet, hosts, second, width, height - 1)], height, width
        )

    def _title(
        self, fleet: FleetState, hosts: Sequence[HostState], as_map: bool, width: int
    ) -> Row:
        total = len(fleet.hosts)
        count = f"{len(hosts)} of {total}" if len(hosts) < total else f"{total}"
        pieces: list[Piece] = [("Hosts", BOLD), (f" {count}", None)]
        right = f"o: {order_text(self.effective_order, not fleet.watching, self.reverse)}"
        if self._odd and self.order == self.effective_order == NAME:
            right = right.replace("by name", f"{self._odd} first, then by name")
        if self.filter_text:
            pieces.append((f"  filter: {self.filter_text}", WARNING))
        legend = self._map.legend(self._measure, not fleet.watching) if as_map else []
        used = sum(cells(text) for text, _ in (*pieces, *legend)) + TITLE_ENDS
        if fleet.between_runs and fleet.has_second:
            # the map cannot be read without its whole legend
            if not legend or used + cells(BETWEEN_RUNS) <= width:
                pieces.append((BETWEEN_RUNS, DIM))
        elif fleet.watch_end_reason and not fleet.running:
            pieces.append((f"  not watched: {printable(fleet.watch_end_reason)}", WARNING))
        elif fleet.second is not None and not fleet.running and not legend:
            pieces.append((LAST_SECOND, DIM))
        pieces += legend
        return rule(width, self._charset, *pieces, right=[(right, DIM)])

    @property
    def _measure(self) -> str:
        return self.order if self.order in (IOPS, UTIL) else WAIT

    # -- the list

    def _list_rows(
        self,
        fleet: FleetState,
        hosts: Sequence[HostState],
        second: int,
        width: int,
        height: int,
        with_sparkline: bool = True,
    ) -> list[Row]:
        self._listed_hosts = list(hosts)
        visible = max(1, height - 1)
        if self._selected_name is not None:
            positions = (n for n, host in enumerate(hosts) if host.name == self._selected_name)
            self.cursor = next(positions, self.cursor)
        self.cursor = max(0, min(self.cursor, len(hosts) - 1))
        self._top = max(self.cursor - visible + 1, min(self._top, self.cursor))
        self._top = max(0, min(self._top, len(hosts) - visible))
        table = self._table(fleet, second, width)
        spare = width - table.used_width if with_sparkline else 0
        visible_hosts = hosts[self._top : self._top + visible]
        top = sparkline_scale(visible_hosts, second) if with_sparkline else 0.0
        self._titles = table.spans("host")
        # between two runs, the column's title stays p99, as in a run
        fio = not fleet.watching or fleet.between_runs
        by = SORTED_BY.get(self.effective_order)
        sorted_title = "" if by is None else _title(by, fio)
        head = Line(width, self._charset).extend(
            _first_cells(table.header("host", sorted_title), table.used_width)
        )
        if spare >= MIN_SPARKLINE:
            second_s = fleet.second.interval_s if fleet.second is not None else 1.0
            span = "minute" if second_s == 1 else f"{MINUTE_S} samples"
            head.add(f"  last {span}, IOPS", DIM)
        first = sparkline_start(fleet.run_start, second)
        rows = [head.build()]
        for index, host in enumerate(visible_hosts, self._top):
            rows.append(
                self._row(host, table, (first, second), width, spare, top, index == self.cursor)
            )
        return rows

    def _row(
        self,
        host: HostState,
        table: Table[HostState],
        seconds: tuple[int, int],
        width: int,
        spare: int,
        top: float,
        selected: bool,
    ) -> Row:
        row = Line(width, self._charset)
        odd = printable(host.name) == self._odd
        style = SELECTED if selected else WARNING if odd else BOLD
        row.extend(
            _first_cells(table.row(printable(host.name), host, label_style=style), table.used_width)
        )
        if host.state in ABSENT_STATES and host.error:
            return row.add(f"  {host.error}", STYLES[host.state]).build()
        if spare >= MIN_SPARKLINE:
            cells = min(MINUTE_S, spare - 2)
            row.add("  ").add(sparkline(host, *seconds, cells, top, self._charset), FIO)
        return row.build()

    def _table(self, fleet: FleetState, second: int, width: int) -> Table[HostState]:
        names = max((len(name) for name in fleet.hosts), default=0)
        label = max(MIN_NAME, min(MAX_NAME, names + 1))
        # between two runs, the column of p99 stays, but is empty
        fio = not fleet.watching or fleet.between_runs

        def now(figure: str, host: HostState) -> float | None:
            # when a run starts, it has no figures yet
            is_starting = fleet.running and not (fleet.has_second or fleet.between_runs)
            no_wait = figure == WAIT and fleet.between_runs and fleet.has_second
            return None if is_starting or no_wait else host.value(figure, second)

        columns = [
            replace(column, title=_title(column, fio), read=partial(now, column.id))
            if column.id in FIGURES else column for column in COLUMNS if fio or column.id != AWAIT
        ]  # fmt: skip
        # not the full width: the columns must not grow into the space of the sparklines
        used = label + sum(column.cells for column in columns)
        return Table(columns, label, min(width, used), self._charset)

    # -- the map

    def _map_and_list(
        self, fleet: FleetState, hosts: list[HostState], second: int, width: int, height: int
    ) -> list[Row]:
        """The map, with the worst hosts beside or below it."""
        ordered = self._sorted_hosts(hosts, self.effective_order, second)
        measure = self._measure
        if width >= 2 * LIST_WIDTH:
            self._list_origin = (width - LIST_WIDTH, 1)
            list_rows = self._list_rows(
                fleet, ordered, second, LIST_WIDTH, height, with_sparkline=False
            )
            map_rows = self._map.rows(fleet, hosts, measure, second, width - LIST_WIDTH - 1, height)
            blank: Row = ((" " * LIST_WIDTH, None),)
            list_rows += [blank] * (height - len(list_rows))
            return [
                (*map_row, (" ", None), *list_row)
                for map_row, list_row in zip(map_rows, list_rows, strict=False)
            ]
        list_height = max(3, min(7, height // 2))
        map_rows = self._map.rows(fleet, hosts, measure, second, width, height - list_height)
        self._list_origin = (0, 1 + len(map_rows))
        return [*map_rows, *self._list_rows(fleet, ordered, second, width, list_height)]


def _first_cells(row: Row, width: int) -> Row:
    cells, used_width = [], 0
    for text, style in row:
        part = text[: width - used_width]
        cells.append((part, style))
        used_width += len(part)
    return tuple(cells)


def _minute_iops(host: HostState, second: int) -> list[float | None]:
    return host.history[IOPS].between(second + 1 - MINUTE_S, second + 1)


def sparkline_start(start: int | None, second: int) -> int:
    """The first second of the sparklines. Like charts, they scroll by a quarter when they are
    full."""
    first = start if start is not None and start <= second else second
    step = MINUTE_S // 4
    return first + max(0, (second - first - MINUTE_S) // step + 1) * step


def sparkline(
    host: HostState, first: int, second: int, cells: int, top: float, charset: Charset
) -> str:
    """A minute of IOPS in this number of cells, on the same scale for all hosts."""
    cell_s = -(-MINUTE_S // cells)
    bars = density.bars(charset)
    text = ""
    for begin in range(first, first + MINUTE_S, cell_s):
        values = [
            v
            for v in host.history[IOPS].between(begin, min(begin + cell_s, second + 1))
            if v is not None
        ]
        if not values:
            text += " "
            continue
        share = sum(values) / len(values) / top if top else 0.0
        text += bars[min(len(bars) - 1, int(share * len(bars)))]
    return text


def order_hosts(
    hosts: Sequence[HostState], order: str, second: int, reverse: bool = False
) -> list[HostState]:
    """Sort hosts that are in the order of their names; "worst": the worst hosts first, then the
    others. ``reverse``: the opposite direction, but hosts without the figure stay last."""
    if order == WORST:
        return [*{host.name: host for host in (*_worst_hosts(hosts, second), *hosts)}.values()]
    column = SORTED_BY[order]
    if order in FIGURES:
        column = replace(column, read=lambda host: host.value(order, second))
    return [*in_order(hosts, (column,), column.title, reverse)]


def _worst_hosts(hosts: Sequence[HostState], second: int, count: int = 6) -> list[HostState]:
    """Absent hosts, then the slowest, then the outliers; each host once."""
    absent = [host for host in hosts if host.state in ABSENT_STATES][: 2 * count]
    active = [host for host in hosts if host.state not in ABSENT_STATES]
    slowest = order_hosts(active, WAIT, second)[:count]
    worst = [*absent, *slowest, *order_hosts(active, OUTLIERS, second)]
    return [*{host.name: host for host in worst}.values()][: len(absent) + 2 * count]


def order_text(order: str, fio: bool, reverse: bool = False) -> str:
    """The name of an order in words."""
    if order in FIGURES:
        column = SORTED_BY[order]
        ends = ("least", "most") if column.sorts == UP else ("highest", "lowest")
        return f"{ends[reverse]} {_title(column, fio).rstrip('%')} first"
    return {
        WORST: ("slowest, then outliers",) * 2,
        NAME: ("by name", "by name, last first"),
        STATE: ("worst state first", "worst state last"),
        OUTLIERS: ("outliers first", "outliers last"),
    }[order][reverse]


def _title(column: Column, fio: bool) -> str:
    return "await" if column.id == WAIT and not fio else column.title


def sparkline_scale(hosts: Sequence[HostState], second: int) -> float:
    """The top of the sparklines' scale: a round number that seldom changes."""
    return plotting.nice_above(
        max((value for host in hosts for value in _minute_iops(host, second) if value), default=0.0)
    )
