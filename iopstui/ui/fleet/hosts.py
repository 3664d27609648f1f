"""The hosts: a row each while they fit, else a map of all over time beside those that matter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from heapq import nsmallest

from iopstui import format as f
from iopstui.errors import Missing, UsageError
from iopstui.fleet.fleet_state import (
    ABSENT_STATES,
    AWAIT,
    BW,
    CONNECTS,
    DONE,
    FAILED,
    FIGURES,
    IOPS,
    LATE,
    LOST,
    MISSING,
    OUT,
    PARTLY,
    READY,
    RESTS,
    UTIL,
    WAIT,
    FleetState,
    HostState,
    order_key,
    sort_hosts,
)
from iopstui.fleet.hosts.node_sets import expand_node_set, has_ranges
from iopstui.text import printable
from iopstui.ui.draw import density
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.rows import Column, Line, Piece, Row, Table, message, pad, rule
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FIO, SELECTED, WARNING, Charset
from iopstui.ui.fleet.host_map import HostMap

FEW_HOSTS = 20
"""So many hosts have a row each, even if not all of them are seen at once."""
NAME, WORST, STATE, ODD = "name", "worst", "state", "odd"
ORDERS = (NAME, WORST, IOPS, BW, WAIT, AWAIT, UTIL, STATE, ODD)
TITLES = {
    "host": NAME, "IOPS": IOPS, "MiB/s": BW, "p99": WAIT, "await": AWAIT, "util%": UTIL,
    "state": STATE,
}  # fmt: skip
"""The order that a column's title stands for."""
MIN_NAME, MAX_NAME = 8, 30
MINUTE = 60
MIN_LINE = 12
LIST_WIDTH = 62
ORDER_KEPT_S = 5
"""Seconds for which an order by figures is kept."""
STYLES = {
    LOST: ERROR, FAILED: ERROR, MISSING: ERROR, OUT: WARNING, LATE: WARNING, PARTLY: WARNING,
    DONE: DIM, READY: DIM, CONNECTS: DIM, RESTS: DIM,
}  # fmt: skip


def matches(name: str, text: str) -> bool:
    """Whether a host is meant by what was typed: parts of its name, or a set of nodes."""
    return all(_matches(name, term) for term in text.lower().split())


def _matches(name: str, term: str) -> bool:
    if "[" not in term:
        return any(part in name.lower() for part in term.split(",") if part) or term == ","
    names = _names_of(term)
    # not typed to its end yet, or nobody to ask
    return term.partition("[")[0] in name.lower() if names is None else name.lower() in names


@lru_cache(maxsize=16)
def _names_of(term: str) -> frozenset[str] | None:
    """The hosts of a node set; ``None`` if it is none. Typing does not ask for groups."""
    if not has_ranges(term) or {*term} & {*"@*?!&^"}:
        return None
    try:
        return frozenset(expand_node_set(term))
    except (UsageError, Missing):
        return None


class HostsView:
    """View of the hosts: ``order`` (``reverse``: from its other end), the typed ``words``, the
    ``cursor``, and whether it is a map (``None``: as many as there are decide)."""

    def __init__(self, charset: Charset) -> None:
        self.order = NAME
        self.reverse = False
        self.shown_order = NAME
        """Beside a map hosts by name would be of no use: those that matter are first."""
        self.words = ""
        self.cursor = 0
        self.mapped: bool | None = None
        self._charset = charset
        self._map = HostMap(charset)
        self._listed: list[HostState] = []
        self._name: str | None = None
        self._sorted: tuple[object, int, list[HostState]] = (None, 0, [])
        self._chosen: tuple[object, list[HostState]] = (None, [])
        self._of: dict[str, HostState] = {}
        self._top = 0
        self._titles: list[tuple[int, int, str]] = []
        self._titles_at = (0, 0)
        """The column and row in the panel at which the list begins."""

    @property
    def under_cursor(self) -> HostState | None:
        """The host that Enter opens."""
        return self._listed[self.cursor] if self.cursor < len(self._listed) else None

    def next_order(self, fio: bool) -> str:
        """Another order; its words. Without a job there is no other await."""
        orders = [order for order in ORDERS if fio or order != AWAIT]
        return self.sort_by(orders[(orders.index(self.order) + 1) % len(orders)], fio)

    def sort_by(self, order: str, fio: bool) -> str:
        """Sort in this order, from its usual end; return its words."""
        self.order, self.reverse = order, False
        self.begin_at_the_top()
        return order_words(order, fio)

    def reverse_order(self, fio: bool) -> str:
        """Reverse the order; return its words."""
        self.reverse = not self.reverse and self.order != WORST
        self.begin_at_the_top()
        return order_words(self.order, fio, self.reverse)

    def title_at(self, x: int, y: int, fio: bool) -> str | None:
        """The order that the column title in this cell of the panel stands for."""
        left_column, top = self._titles_at
        title = next((name for at, end, name in self._titles if at <= x - left_column < end), None)
        if y != top or title is None:
            return None
        return WAIT if title == "await" and not fio else TITLES.get(title)

    def select_at(self, x: int, y: int) -> bool:
        """The cursor to the host in this cell of the panel; False if none is there."""
        left_column, top = self._titles_at
        at = self._top + y - top - 1
        if x < left_column or y <= top or at >= len(self._listed):
            return False
        self.move(at - self.cursor)
        return True

    def begin_at_the_top(self) -> None:
        """The cursor on whichever is first."""
        self.cursor, self._name = 0, None

    def move(self, by: int) -> None:
        """The cursor to the next host, or the one before; from then on it stays with that host."""
        self.cursor = max(0, min(self.cursor + by, len(self._listed) - 1))
        self._name = self._listed[self.cursor].name if self._listed else None

    def _in_order(self, lines: list[HostState], order: str, second: int) -> list[HostState]:
        """Anew only every few seconds, so that a row can be read."""
        key = (id(lines), len(lines), order, self.reverse)
        if self._sorted[0] != key or not 0 <= second - self._sorted[1] < ORDER_KEPT_S:
            self._sorted = (key, second, ordered_by(lines, order, second, self.reverse))
        return self._sorted[2]

    def is_map(self, hosts: int, rows: int) -> bool:
        """Whether so many hosts are shown as a map."""
        return hosts > max(FEW_HOSTS, rows) if self.mapped is None else self.mapped

    def chosen(self, fleet: FleetState) -> list[HostState]:
        """The hosts that what was typed leaves, by name."""
        key = (len(fleet.hosts), self.words)
        if key != self._chosen[0] or self._of is not fleet.hosts:
            self._of = fleet.hosts
            matching = [host for host in self._of.values() if matches(host.name, self.words)]
            self._chosen = (key, sort_hosts(matching, NAME, 0))
        return self._chosen[1]

    def rows(self, fleet: FleetState, second: int, width: int, height: int) -> list[Row]:
        """The panel, as of this second."""
        lines = self.chosen(fleet)
        as_map = self.is_map(len(lines), height - 2)
        self.shown_order = WORST if as_map and self.order == NAME else self.order
        title = self._title(fleet, lines, as_map, width)
        if not lines:
            text = "no host has all of these words" if self.words else "no host yet"
            return pad([title, message(width, self._charset, text)], height, width)
        if not as_map:
            listed = self._in_order(lines, self.order, second)
            self._titles_at = (0, 1)
            body = self._list(fleet, listed, second, width, height - 1)
            return pad([title, *body], height, width)
        return pad(
            [title, *self._map_and_list(fleet, lines, second, width, height - 1)], height, width
        )

    def _title(
        self, fleet: FleetState, lines: Sequence[HostState], as_map: bool, width: int
    ) -> Row:
        total = len(fleet.hosts)
        count = f"{len(lines)} of {total}" if len(lines) < total else f"{total}"
        pieces: list[Piece] = [("Hosts", BOLD), (f" {count}", None)]
        right = f"o: {order_words(self.shown_order, not fleet.watching, self.reverse)}"
        if self.words:
            pieces.append((f"  filter: {self.words}", WARNING))
        if fleet.between and fleet.seen:
            pieces.append(("  no job runs: what the disks do", DIM))
        elif fleet.unwatched and not fleet.running:
            pieces.append((f"  not watched: {printable(fleet.unwatched)}", WARNING))
        if as_map:
            pieces += self._map.legend(self._measure, not fleet.watching)
        return rule(width, self._charset, *pieces, right=[(right, DIM)])

    @property
    def _measure(self) -> str:
        return self.order if self.order in (IOPS, UTIL) else WAIT

    # -- a row each

    def _list(
        self,
        fleet: FleetState,
        lines: Sequence[HostState],
        second: int,
        width: int,
        height: int,
        line: bool = True,
    ) -> list[Row]:
        self._listed = list(lines)
        visible = max(1, height - 1)
        if self._name is not None:
            places = (at for at, host in enumerate(lines) if host.name == self._name)
            self.cursor = next(places, self.cursor)
        self.cursor = max(0, min(self.cursor, len(lines) - 1))
        self._top = max(self.cursor - visible + 1, min(self._top, self.cursor))
        self._top = max(0, min(self._top, len(lines) - visible))
        table = self._table(fleet, second, width, line)
        spare = width - table.used_width if line else 0
        visible_hosts = lines[self._top : self._top + visible]
        top = scale_of(visible_hosts, second) if line else 0.0
        self._titles = table.spans("host")
        # between two runs the wait is p99's, as during them
        fio = not fleet.watching or fleet.between
        strong = next((t for t, order in TITLES.items() if order == self.shown_order), "")
        strong = "await" if self.shown_order == WAIT and not fio else strong
        head = Line(width, self._charset).extend(
            _first_cells(table.header("host", strong), table.used_width)
        )
        if spare >= MIN_LINE:
            second_s = fleet.second.interval_s if fleet.second is not None else 1.0
            span = "minute" if second_s == 1 else f"{MINUTE} samples"
            head.add(f"  last {span}, IOPS", DIM)
        first = first_of_line(fleet.begun, second)
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
        style = SELECTED if selected else BOLD
        row.extend(
            _first_cells(table.row(printable(host.name), host, label_style=style), table.used_width)
        )
        if host.state in ABSENT_STATES and host.error:
            return row.add(f"  {host.error}", STYLES[host.state]).build()
        if spare >= MIN_LINE:
            cells = min(MINUTE, spare - 2)
            row.add("  ").add(small_line(host, *seconds, cells, top, self._charset), FIO)
        return row.build()

    def _table(self, fleet: FleetState, second: int, width: int, line: bool) -> Table[HostState]:
        names = max((len(name) for name in fleet.hosts), default=0)
        label = max(MIN_NAME, min(MAX_NAME, names + 1))
        # between two runs nothing moves: the column of p99 stays, and is empty
        fio = not fleet.watching or fleet.between

        def now(figure: str, host: HostState) -> float | None:
            # of a run that begins nothing is known yet
            begins = fleet.running and not (fleet.seen or fleet.between)
            waits = figure == WAIT and fleet.between and fleet.seen
            return None if begins or waits else host.now(figure, second)

        columns = [
            Column[HostState]("IOPS", 7, lambda host: f.number(now(IOPS, host)), style=FIO),
            Column[HostState]("MiB/s", 7, lambda host: f.mib(now(BW, host))),
            Column[HostState]("p99" if fio else "await", 8,
                             lambda host: f.latency(now(WAIT, host), "")),
            # without a job p99's place has it
            *([Column[HostState]("await", 8, lambda host: f.latency(now(AWAIT, host), ""), drop=2)]
              if fio else []),
            Column[HostState]("util%", 6, lambda host: f.percent(now(UTIL, host)), drop=1),
            Column[HostState]("state", 9, lambda host: host.state),
        ]  # fmt: skip
        # what is to the right of the columns must not widen them
        used = label + sum(column.width for column in columns)
        return Table(columns, label, min(width, used), self._charset)

    # -- many

    def _map_and_list(
        self, fleet: FleetState, lines: list[HostState], second: int, width: int, height: int
    ) -> list[Row]:
        """The map, and beside or below it who matters."""
        listed = self._in_order(lines, self.shown_order, second)
        measure = self._measure
        if width >= 2 * LIST_WIDTH:
            self._titles_at = (width - LIST_WIDTH, 1)
            beside = self._list(fleet, listed, second, LIST_WIDTH, height, line=False)
            map_rows = self._map.rows(fleet, lines, measure, second, width - LIST_WIDTH - 1, height)
            blank: Row = ((" " * LIST_WIDTH, None),)
            beside += [blank] * (height - len(beside))
            return [
                (*map_row, (" ", None), *list_row)
                for map_row, list_row in zip(map_rows, beside, strict=False)
            ]
        below = max(3, min(7, height // 2))
        map_rows = self._map.rows(fleet, lines, measure, second, width, height - below)
        self._titles_at = (0, 1 + len(map_rows))
        return [*map_rows, *self._list(fleet, listed, second, width, below)]


def _first_cells(row: Row, width: int) -> Row:
    """The first cells of a row."""
    cells, used_width = [], 0
    for text, style in row:
        part = text[: width - used_width]
        cells.append((part, style))
        used_width += len(part)
    return tuple(cells)


def _minute(host: HostState, second: int) -> list[float | None]:
    return host.past[IOPS].between(second + 1 - MINUTE, second + 1)


def first_of_line(start: int | None, second: int) -> int:
    """Begin of the small lines: they stay until they are full, then move on by a quarter, as a
    chart does."""
    first = start if start is not None and start <= second else second
    step = MINUTE // 4
    return first + max(0, (second - first - MINUTE) // step + 1) * step


def small_line(
    host: HostState, first: int, second: int, cells: int, top: float, charset: Charset
) -> str:
    """Return its IOPS of a minute in this many cells, all hosts by one scale."""
    cell_s = -(-MINUTE // cells)
    bars = density.bars(charset)
    text = ""
    for at in range(first, first + MINUTE, cell_s):
        values = [
            v for v in host.past[IOPS].between(at, min(at + cell_s, second + 1)) if v is not None
        ]
        if not values:
            text += " "
            continue
        share = sum(values) / len(values) / top if top else 0.0
        text += bars[min(len(bars) - 1, int(share * len(bars)))]
    return text


def ordered_by(
    lines: Sequence[HostState], order: str, second: int, reverse: bool = False
) -> list[HostState]:
    """Return hosts in this order; "worst" are those that matter first, then the others by name.
    ``reverse``: from the other end; hosts without the figure stay last."""
    if order == STATE:
        return sorted(lines, key=lambda host: (_severity(host), host.key), reverse=reverse)
    if order != WORST:
        hosts = sort_hosts(lines, order, second)
        if not reverse:
            return hosts
        figure = order in FIGURES
        measured = [host for host in hosts if not figure or host.now(order, second) is not None]
        return [*reversed(measured), *hosts[len(measured) :]]
    first = worst(lines, second)
    names = {host.name for host in first}
    return [*first, *(host for host in lines if host.name not in names)]


def _severity(host: HostState) -> int:
    """Severity of its state: 0 is the worst."""
    states = [state for state, style in STYLES.items() if style is not DIM]
    return states.index(host.state) if host.state in states else len(states)


def worst(lines: Sequence[HostState], second: int, count: int = 6) -> list[HostState]:
    """Hosts that are missing, then the slowest, then the oddest; each once."""
    absent = [host for host in lines if host.state in ABSENT_STATES][: 2 * count]
    active = [host for host in lines if host.state not in ABSENT_STATES]
    hosts_by_name = {host.name: host for host in absent}
    for host in nsmallest(count, active, key=order_key(WAIT, second)):
        hosts_by_name[host.name] = host
    for host in nsmallest(2 * count, active, key=order_key(ODD, second)):
        if len(hosts_by_name) < len(absent) + 2 * count:
            hosts_by_name.setdefault(host.name, host)
    return list(hosts_by_name.values())


def order_words(order: str, fio: bool, reverse: bool = False) -> str:
    """Name of an order."""
    if order == WORST:
        return "slowest, then outliers"
    wait = "p99" if fio else "await"
    usual, reversed_text = {
        NAME: ("by name", "by name, last first"),
        IOPS: ("least IOPS first", "most IOPS first"),
        BW: ("least MiB/s first", "most MiB/s first"),
        WAIT: (f"highest {wait} first", f"lowest {wait} first"),
        AWAIT: ("highest await first", "lowest await first"),
        UTIL: ("highest util first", "lowest util first"),
        STATE: ("worst state first", "worst state last"),
        ODD: ("outliers first", "outliers last"),
    }[order]
    return reversed_text if reverse else usual


def scale_of(lines: Sequence[HostState], second: int) -> float:
    """The top of the small lines: a round number that seldom changes."""
    return plotting.nice_above(
        max((value for host in lines for value in _minute(host, second) if value), default=0.0)
    )
