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


def matches(name: str, words: str) -> bool:
    """Whether a host is meant by what was typed: parts of its name, or a set of nodes."""
    return all(_matches(name, word) for word in words.lower().split())


def _matches(name: str, word: str) -> bool:
    if "[" not in word:
        return any(part in name.lower() for part in word.split(",") if part) or word == ","
    names = _names_of(word)
    # not typed to its end yet, or nobody to ask
    return word.partition("[")[0] in name.lower() if names is None else name.lower() in names


@lru_cache(maxsize=16)
def _names_of(word: str) -> frozenset[str] | None:
    """The hosts of a node set; ``None`` if it is none. Typing does not ask for groups."""
    if not has_ranges(word) or {*word} & {*"@*?!&^"}:
        return None
    try:
        return frozenset(expand_node_set(word))
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
        orders = [one for one in ORDERS if fio or one != AWAIT]
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
        left, top = self._titles_at
        title = next((name for at, end, name in self._titles if at <= x - left < end), None)
        if y != top or title is None:
            return None
        return WAIT if title == "await" and not fio else TITLES.get(title)

    def select_at(self, x: int, y: int) -> bool:
        """The cursor to the host in this cell of the panel; False if none is there."""
        left, top = self._titles_at
        at = self._top + y - top - 1
        if x < left or y <= top or at >= len(self._listed):
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

    def is_map(self, hosts: int, room: int) -> bool:
        """Whether so many hosts are shown as a map."""
        return hosts > max(FEW_HOSTS, room) if self.mapped is None else self.mapped

    def chosen(self, scene: FleetState) -> list[HostState]:
        """The hosts that what was typed leaves, by name."""
        key = (len(scene.hosts), self.words)
        if key != self._chosen[0] or self._of is not scene.hosts:
            self._of = scene.hosts
            found = [one for one in self._of.values() if matches(one.name, self.words)]
            self._chosen = (key, sort_hosts(found, NAME, 0))
        return self._chosen[1]

    def rows(self, scene: FleetState, second: int, width: int, height: int) -> list[Row]:
        """The panel, as of this second."""
        lines = self.chosen(scene)
        mapped = self.is_map(len(lines), height - 2)
        self.shown_order = WORST if mapped and self.order == NAME else self.order
        title = self._title(scene, lines, mapped, width)
        if not lines:
            words = "no host has all of these words" if self.words else "no host yet"
            return pad([title, message(width, self._charset, words)], height, width)
        if not mapped:
            listed = self._in_order(lines, self.order, second)
            self._titles_at = (0, 1)
            body = self._list(scene, listed, second, width, height - 1)
            return pad([title, *body], height, width)
        return pad(
            [title, *self._map_and_list(scene, lines, second, width, height - 1)], height, width
        )

    def _title(
        self, scene: FleetState, lines: Sequence[HostState], mapped: bool, width: int
    ) -> Row:
        every = len(scene.hosts)
        count = f"{len(lines)} of {every}" if len(lines) < every else f"{every}"
        pieces: list[Piece] = [("Hosts", BOLD), (f" {count}", None)]
        right = f"o: {order_words(self.shown_order, not scene.watching, self.reverse)}"
        if self.words:
            pieces.append((f"  filter: {self.words}", WARNING))
        if scene.between and scene.seen:
            pieces.append(("  no job runs: what the disks do", DIM))
        elif scene.unwatched and not scene.running:
            pieces.append((f"  not watched: {printable(scene.unwatched)}", WARNING))
        if mapped:
            pieces += self._map.legend(self._measure, not scene.watching)
        return rule(width, self._charset, *pieces, right=[(right, DIM)])

    @property
    def _measure(self) -> str:
        return self.order if self.order in (IOPS, UTIL) else WAIT

    # -- a row each

    def _list(
        self,
        scene: FleetState,
        lines: Sequence[HostState],
        second: int,
        width: int,
        height: int,
        line: bool = True,
    ) -> list[Row]:
        self._listed = list(lines)
        room = max(1, height - 1)
        if self._name is not None:
            places = (at for at, one in enumerate(lines) if one.name == self._name)
            self.cursor = next(places, self.cursor)
        self.cursor = max(0, min(self.cursor, len(lines) - 1))
        self._top = max(self.cursor - room + 1, min(self._top, self.cursor))
        self._top = max(0, min(self._top, len(lines) - room))
        table = self._table(scene, second, width, line)
        spare = width - table.used_width if line else 0
        seen = lines[self._top : self._top + room]
        top = scale_of(seen, second) if line else 0.0
        self._titles = table.spans("host")
        # between two runs the wait is p99's, as during them
        fio = not scene.watching or scene.between
        strong = next((t for t, one in TITLES.items() if one == self.shown_order), "")
        strong = "await" if self.shown_order == WAIT and not fio else strong
        head = Line(width, self._charset).extend(
            _first_cells(table.header("host", strong), table.used_width)
        )
        if spare >= MIN_LINE:
            second_s = scene.second.interval_s if scene.second is not None else 1.0
            span = "minute" if second_s == 1 else f"{MINUTE} samples"
            head.add(f"  last {span}, IOPS", DIM)
        first = first_of_line(scene.begun, second)
        found = [head.finished()]
        for at, one in enumerate(seen, self._top):
            found.append(
                self._row(one, table, (first, second), width, spare, top, at == self.cursor)
            )
        return found

    def _row(
        self,
        one: HostState,
        table: Table[HostState],
        seconds: tuple[int, int],
        width: int,
        spare: int,
        top: float,
        here: bool,
    ) -> Row:
        row = Line(width, self._charset)
        style = SELECTED if here else BOLD
        row.extend(
            _first_cells(table.row(printable(one.name), one, label_style=style), table.used_width)
        )
        if one.state in ABSENT_STATES and one.error:
            return row.add(f"  {one.error}", STYLES[one.state]).finished()
        if spare >= MIN_LINE:
            cells = min(MINUTE, spare - 2)
            row.add("  ").add(small_line(one, *seconds, cells, top, self._charset), FIO)
        return row.finished()

    def _table(self, scene: FleetState, second: int, width: int, line: bool) -> Table[HostState]:
        names = max((len(name) for name in scene.hosts), default=0)
        label = max(MIN_NAME, min(MAX_NAME, names + 1))
        # between two runs nothing moves: the column of p99 stays, and is empty
        fio = not scene.watching or scene.between

        def now(figure: str, one: HostState) -> float | None:
            # of a run that begins nothing is known yet
            begins = scene.running and not (scene.seen or scene.between)
            waits = figure == WAIT and scene.between and scene.seen
            return None if begins or waits else one.now(figure, second)

        columns = [
            Column[HostState]("IOPS", 7, lambda one: f.number(now(IOPS, one)), style=FIO),
            Column[HostState]("MiB/s", 7, lambda one: f.mib(now(BW, one))),
            Column[HostState]("p99" if fio else "await", 8,
                             lambda one: f.latency(now(WAIT, one), "")),
            # without a job p99's place has it
            *([Column[HostState]("await", 8, lambda one: f.latency(now(AWAIT, one), ""), drop=2)]
              if fio else []),
            Column[HostState]("util%", 6, lambda one: f.percent(now(UTIL, one)), drop=1),
            Column[HostState]("state", 9, lambda one: one.state),
        ]  # fmt: skip
        # what is to the right of the columns must not widen them
        used = label + sum(column.width for column in columns)
        return Table(columns, label, min(width, used), self._charset)

    # -- many

    def _map_and_list(
        self, scene: FleetState, lines: list[HostState], second: int, width: int, height: int
    ) -> list[Row]:
        """The map, and beside or below it who matters."""
        listed = self._in_order(lines, self.shown_order, second)
        measure = self._measure
        if width >= 2 * LIST_WIDTH:
            self._titles_at = (width - LIST_WIDTH, 1)
            beside = self._list(scene, listed, second, LIST_WIDTH, height, line=False)
            left = self._map.rows(scene, lines, measure, second, width - LIST_WIDTH - 1, height)
            blank: Row = ((" " * LIST_WIDTH, None),)
            beside += [blank] * (height - len(beside))
            return [(*one, (" ", None), *other) for one, other in zip(left, beside, strict=False)]
        below = max(3, min(7, height // 2))
        found = self._map.rows(scene, lines, measure, second, width, height - below)
        self._titles_at = (0, 1 + len(found))
        return [*found, *self._list(scene, listed, second, width, below)]


def _first_cells(row: Row, width: int) -> Row:
    """The first cells of a row."""
    found, used = [], 0
    for text, style in row:
        part = text[: width - used]
        found.append((part, style))
        used += len(part)
    return tuple(found)


def _minute(one: HostState, second: int) -> list[float | None]:
    return one.past[IOPS].between(second + 1 - MINUTE, second + 1)


def first_of_line(begun: int | None, second: int) -> int:
    """Begin of the small lines: they stay until they are full, then move on by a quarter, as a
    chart does."""
    since = begun if begun is not None and begun <= second else second
    step = MINUTE // 4
    return since + max(0, (second - since - MINUTE) // step + 1) * step


def small_line(
    one: HostState, first: int, second: int, cells: int, top: float, charset: Charset
) -> str:
    """Return its IOPS of a minute in this many cells, all hosts by one scale."""
    each = -(-MINUTE // cells)
    bars = density.bars(charset)
    text = ""
    for at in range(first, first + MINUTE, each):
        known = [v for v in one.past[IOPS].between(at, min(at + each, second + 1)) if v is not None]
        if not known:
            text += " "
            continue
        share = sum(known) / len(known) / top if top else 0.0
        text += bars[min(len(bars) - 1, int(share * len(bars)))]
    return text


def ordered_by(
    lines: Sequence[HostState], order: str, second: int, reverse: bool = False
) -> list[HostState]:
    """Return hosts in this order; "worst" are those that matter first, then the others by name.
    ``reverse``: from the other end; hosts without the figure stay last."""
    if order == STATE:
        return sorted(lines, key=lambda one: (_severity(one), one.key), reverse=reverse)
    if order != WORST:
        found = sort_hosts(lines, order, second)
        if not reverse:
            return found
        figure = order in FIGURES
        known = [one for one in found if not figure or one.now(order, second) is not None]
        return [*reversed(known), *found[len(known) :]]
    first = worst(lines, second)
    names = {one.name for one in first}
    return [*first, *(one for one in lines if one.name not in names)]


def _severity(one: HostState) -> int:
    """Severity of its state: 0 is the worst."""
    states = [state for state, style in STYLES.items() if style is not DIM]
    return states.index(one.state) if one.state in states else len(states)


def worst(lines: Sequence[HostState], second: int, each: int = 6) -> list[HostState]:
    """Hosts that are missing, then the slowest, then the oddest; each once."""
    gone = [one for one in lines if one.state in ABSENT_STATES][: 2 * each]
    here = [one for one in lines if one.state not in ABSENT_STATES]
    found = {one.name: one for one in gone}
    for one in nsmallest(each, here, key=order_key(WAIT, second)):
        found[one.name] = one
    for one in nsmallest(2 * each, here, key=order_key(ODD, second)):
        if len(found) < len(gone) + 2 * each:
            found.setdefault(one.name, one)
    return list(found.values())


def order_words(order: str, fio: bool, reverse: bool = False) -> str:
    """Name of an order."""
    if order == WORST:
        return "slowest, then outliers"
    wait = "p99" if fio else "await"
    usual, other = {
        NAME: ("by name", "by name, last first"),
        IOPS: ("least IOPS first", "most IOPS first"),
        BW: ("least MiB/s first", "most MiB/s first"),
        WAIT: (f"highest {wait} first", f"lowest {wait} first"),
        AWAIT: ("highest await first", "lowest await first"),
        UTIL: ("highest util first", "lowest util first"),
        STATE: ("worst state first", "worst state last"),
        ODD: ("outliers first", "outliers last"),
    }[order]
    return other if reverse else usual


def scale_of(lines: Sequence[HostState], second: int) -> float:
    """The top of the small lines: a round number that seldom changes."""
    return plotting.nice_above(
        max((value for one in lines for value in _minute(one, second) if value), default=0.0)
    )
