"""Lists of rows that stay live, and lists of single requests, the slowest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable, Static

from iopstui import format as f
from iopstui.model.figures.figure import by_name
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.probe import SLOW_REQUEST
from iopstui.model.metrics.slow.common_properties import CommonProperty, common_properties
from iopstui.model.metrics.slow.slow_requests import by_level, completion_second
from iopstui.model.samples import Exemplar
from iopstui.tables import DOWN, UP, Column
from iopstui.text import printable
from iopstui.ui.core import key
from iopstui.ui.core.key import Key
from iopstui.ui.core.list_table import ListTable
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, SCROLL_KEYS, Hint, Modal
from iopstui.ui.dashboard.heat_maps import ChosenCell, frames_of, requests_of
from iopstui.ui.dashboard.pages.slow_view import timeline
from iopstui.ui.dialogs.text import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.canvas import Canvas, Lines
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.rows import Row, no_match, pad, rows_text
from iopstui.ui.draw.style import Charset
from iopstui.ui.state.live import LiveState

RowBuilder = Callable[[int], "Sequence[Row]"]
SORT_HINT: Hint = ("< >", "Sort", "screen.sort(1)")
HINTS: tuple[Hint, ...] = (("↑ ↓ PgUp PgDn", "Scroll", ""), FILTER_HINT, CLOSE_HINT)
WHEEL_ROWS, MIN_ROWS = 3, 3


class LiveRows(TypeToFilter, Modal[None]):
    """A dialog with the rows that ``build(width)`` returns; ``paint`` builds them again."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("pagedown", "page(1)", show=False),
        *SCROLL_KEYS,
        Binding("less_than_sign", "sort(-1)", show=False),
        Binding("greater_than_sign", "sort(1)", show=False),
    ]
    size_class = "broad"

    def __init__(
        self, title: str, build: RowBuilder, charset: Charset, opened_by: Key | None = None,
        orders: Callable[[], Sequence[str]] = tuple, filters_itself: bool = False,
    ) -> None:  # fmt: skip
        """``filters_itself``: ``build`` applies the filter, so the rows are not filtered again."""
        hints = (HINTS[0], SORT_HINT, *HINTS[1:]) if orders() else HINTS
        self.about = "A live list: up and down scroll, / filters, Esc closes it."
        if orders():
            self.about += " < and > sort by another column, and so does a click on its title."
        super().__init__(title, charset, hints, opened_by)
        self._orders = orders
        self.order = ""
        """The title of the column that the rows are sorted by; "": as they come."""
        self._build, self._filters_itself = build, filters_itself
        self._top = self._row_count = self._body_height = 0
        self.body = Lines("page-body")
        self.canvas = Canvas([self.body])

    def content(self) -> ComposeResult:
        """One widget for all rows."""
        yield self.canvas

    def on_mount(self) -> None:
        self.call_after_refresh(self.paint)

    def on_screen_resume(self) -> None:
        """Paint again after another dialog has closed."""
        self.paint()

    def on_resize(self, event: events.Resize) -> None:
        self._body_height = 0
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        width, height = self.canvas.size
        if width < 2 or height < 1:
            return
        self.body.place(Box(0, 0, width, height))
        rows = self.rows(width)
        self._row_count = len(rows)
        self._grow()
        self._top = max(0, min(self._top, len(rows) - height))
        self.body.show(pad(rows[self._top :], height, width))
        last = min(self._row_count, self._top + height)
        note = f"{self._top + 1}-{last} of {self._row_count}" if self._row_count > height else ""
        if note != self.note:
            self.set_title(self.heading, note)

    def _grow(self) -> None:
        """Grow to the height of the rows. The box never shrinks, so that nothing jumps."""
        height = min(self.body_height, max(MIN_ROWS, self._row_count))
        if height > self._body_height or height > self.body_height:
            self._body_height = height
            self.canvas.styles.height = height
            self.call_after_refresh(self.paint)

    def rows(self, width: int) -> Sequence[Row]:
        """The newest rows that contain all words of the filter."""
        rows = self._build(width)
        if not self.filter_text.strip() or self._filters_itself:
            return rows
        found = [row for row in rows if self.matches("".join(text for text, _ in row))]
        return found or [no_match("row", self.filter_text, width, self.charset)]

    def copied_text(self) -> str:
        return rows_text(self.rows(self.canvas.size.width))

    def apply_filter(self) -> None:
        self.action_scroll(-1_000_000)

    def action_sort(self, by: int) -> None:
        """Sort by the next or the previous column; after the last one, restore the rows' own
        order."""
        orders = ("", *self._orders())
        index = orders.index(self.order) if self.order in orders else 0
        self.order = orders[(index + by) % len(orders)]
        self.paint()

    def on_click(self, event: events.Click) -> None:
        """Sort by the column whose title was clicked."""
        box = self.canvas.region
        x, y = event.screen_x - box.x, event.screen_y - box.y
        rows = self.rows(box.width)
        if not box.contains(event.screen_x, event.screen_y) or self._top + y >= len(rows):
            return
        text = "".join(piece for piece, _ in rows[self._top + y])
        titles = [title for title in self._orders() if title in text]
        # only the heading contains all titles
        if len(titles) == len(self._orders()) and titles:
            positions = {title: text.index(title) for title in titles}
            self.order = next(
                (
                    title
                    for title in titles
                    if positions[title] <= x < positions[title] + len(title)
                ),
                self.order,
            )
            self.paint()

    def action_scroll(self, by: int) -> None:
        self._top = max(0, self._top + by)
        self.paint()

    def action_page(self, by: int) -> None:
        self.action_scroll(by * max(1, self.body.box.height - 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.action_scroll(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.action_scroll(-WHEEL_ROWS)


ALL_HINT: Hint = ("a", "All disks", "screen.all_disks")
THIS_HINT: Hint = ("a", "This disk", "screen.all_disks")


class ProcessList(LiveRows):
    """Processes: those that use this disk, or after a key those of all disks. ``only_all``: the
    first are not known, as while a job runs."""

    BINDINGS = [Binding("a", "all_disks", show=False)]  # noqa: RUF012 (Textual's own form)

    def __init__(
        self, title: str, build: RowBuilder, charset: Charset, opened_by: Key,
        orders: Callable[[bool], Sequence[str]], only_all: bool,
    ) -> None:  # fmt: skip
        self.all_disks = self._only_all = only_all
        super().__init__(
            title, build, charset, opened_by, lambda: orders(self.all_disks), True
        )  # fmt: skip
        if not only_all:
            self.about = f"{self.about} a lists the processes of all disks, or of this one alone."
            self._show_choice()

    def action_all_disks(self) -> None:
        if not self._only_all:
            self.all_disks, self.order = not self.all_disks, ""
            self._show_choice()
            self.apply_filter()

    def _show_choice(self) -> None:
        choice = THIS_HINT if self.all_disks else ALL_HINT
        self._hints = (choice, SORT_HINT, ("↑ ↓", "Scroll", ""), *HINTS[1:])
        self.show_hints(self.filter_hint)


LIST_HINTS: tuple[Hint, ...] = (
    ("Enter", "Timeline", "screen.open"), ("< >", "Sort", "screen.sort(1)"), FILTER_HINT,
    CLOSE_HINT,
)  # fmt: skip
MAX_CLAIMS = 3
NOTHING_IN_COMMON = "Nothing in common beyond chance (compared with the random requests)."
NO_SAMPLE = "Too few other requests in this second to compare with."


@dataclass(frozen=True, slots=True)
class ListedRequest:
    """A request of a list: ``t`` is when it completed (seconds of the session), ``in_cell`` whether
    it belongs to the chosen cell of the heat map."""

    t: float
    exemplar: Exemplar
    in_cell: bool = False

    @property
    def time_text(self) -> str:
        """The completion time, such as "0:04.250"."""
        second = max(0.0, self.t)
        return f"{f.clock(int(second))}.{int(second * 1000) % 1000:03}"

    @property
    def kept_reason(self) -> str:
        if self.exemplar.slow:
            return "slow, random" if self.exemplar.sampled else "slow"
        return "random"


def _sector(request: ListedRequest) -> int:
    return -1 if request.exemplar.sector is None else request.exemplar.sector


def _known(stage: str) -> Callable[[ListedRequest], int]:
    return lambda request: getattr(request.exemplar, f"{stage}_ns") or 0


_ROWS = by_name(SLOW_REQUEST)
DISK, BEFORE_DISK = "DISK", "WHAT"
COLUMNS = (
    _ROWS["total"].column(title="TOTAL", sorts=DOWN),
    _ROWS["direction"].column(title=BEFORE_DISK, left=True, sorts=UP),
    Column("", "PROCESS", left=True, sorts=UP, key=lambda r: r.exemplar.comm.lower(),
           read=lambda r: f"{printable(r.exemplar.comm) or f.MISSING} ({r.exemplar.pid})"),
    *(_ROWS[name].column(title=name.upper(), sorts=DOWN, key=_known(name))
      for name in ("plugged", "queued", "device", "tried")),
    Column("time_text", "TIME", sorts=UP, key=lambda r: r.exemplar.completed_ns),
    _ROWS["rwbs"].column(title="FLAGS", left=True, sorts=UP),
    _ROWS["size"].column(title="SIZE", sorts=DOWN),
    _ROWS["sector"].column(title="SECTOR", sorts=UP, key=_sector),
    Column("", "CPU", sorts=UP, key=lambda r: r.exemplar.cpu_done,
           read=lambda r: f"{r.exemplar.cpu} → {r.exemplar.cpu_done}"),
    _ROWS["hctx"].column(title="HCTX", sorts=UP),
    _ROWS["disk"].column(title=DISK, form=printable, left=True, sorts=UP),
    _ROWS["cgroup"].column(title="CGROUP", form=lambda group: printable(group) or f.MISSING,
                           left=True, sorts=UP),
)  # fmt: skip
CELL_COLUMNS = (
    Column("in_cell", "CELL", form=lambda inside: "in" if inside else "", left=True, sorts=DOWN),
    Column("kept_reason", "KEPT", left=True, sorts=UP),
    *COLUMNS,
)
"""The columns of a list for a cell of the heat map."""


@dataclass(frozen=True, slots=True)
class ListContent:
    """A list's ``requests``, its ``title``, the ``lines`` above it, and all kept requests
    ``nearby`` in time. ``for_cell``: the list belongs to a cell of the heat map."""

    title: str
    lines: Sequence[str]
    requests: Sequence[ListedRequest]
    nearby: Sequence[Exemplar]
    for_cell: bool = False


def _columns_for(content: ListContent) -> Sequence[Column]:
    """The columns of this list. Where requests are of several disks, the disk is among the first
    ones, because a narrow terminal has no room for the last ones."""
    columns = CELL_COLUMNS if content.for_cell else COLUMNS
    if len({request.exemplar.disk for request in content.requests}) < 2:
        return columns
    by_title = {column.title: column for column in columns}
    disk, found = by_title.pop(DISK), [*by_title.values()]
    place = [*by_title].index(BEFORE_DISK) + 1
    return (*found[:place], disk, *found[place:])


class SlowList(TypeToFilter, Modal[None]):
    """A list of single requests, which does not change while it is open."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("less_than_sign", "sort(-1)", show=False),
        Binding("greater_than_sign", "sort(1)", show=False),
    ]
    size_class = "broad"
    about = (
        "The slowest requests of one second, or those kept of a cell of the heat map. TRIED: until "
        "the driver last sent it back; PLUGGED: until it came to a scheduler or a queue; QUEUED: "
        "from there to its issue; DEVICE: from its issue to its completion. Enter opens one as a "
        "timeline beside the others; < and >, or a click on a title, sort."
    )

    def __init__(self, content: ListContent, charset: Charset) -> None:
        super().__init__(content.title, charset, LIST_HINTS, key.USERS)
        self._charset = charset
        self._content = content
        self._columns = _columns_for(content)
        self._table = ListTable(self._columns, charset, self._columns[0].title, classes="modal-fit")

    def content(self) -> ComposeResult:
        requests = self._content.requests
        text = "\n".join((*self._content.lines, *_layers(requests), *_dashes(requests)))
        yield Static(Text(self._charset.text(text)), id="slow-common")
        yield self._table

    def on_mount(self) -> None:
        """Focus the table."""
        self._table.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Fill the table; this also runs before the first paint."""
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        table = self._table
        # rows that compare equal are in this order, the slowest first
        slowest = sorted(self._content.requests, key=lambda request: -request.exemplar.total_ns)
        found = [
            request for request in table.in_order(slowest)
            if self.matches(*(column.text(request) for column in self._columns))
        ]  # fmt: skip
        table.show(found, table.fitting(slowest))
        suffix = ", reversed" if table.reverse else ""
        self.set_title(self.heading, f"sorted by {table.order}{suffix}")

    def apply_filter(self) -> None:
        self._fill()

    def action_sort(self, by: int) -> None:
        """Sort by the next or the previous column."""
        self._table.sort_next(by)

    def on_list_table_sorted(self) -> None:
        self._fill()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the request under the cursor."""
        self.action_open()

    def action_open(self) -> None:
        """Open the request under the cursor as a timeline."""
        request, charset, nearby = self._table.selected, self._charset, self._content.nearby
        if request is None:
            return

        def rows(width: int) -> Sequence[Row]:
            return timeline(request.exemplar, nearby, request.time_text, width, charset)

        self.app.push_screen(LiveRows("One request", rows, charset))


def slowest_list(state: LiveState, charset: Charset) -> SlowList | None:
    """List of the slowest requests of the second shown, or of the last one before it that has any;
    ``None`` if none has."""
    frame = _last_with_slow(state)
    probe = frame.probe if frame is not None else None
    if frame is None or probe is None:
        return None
    requests = [
        ListedRequest(completion_second(exemplar, probe, frame.t), exemplar)
        for exemplar in probe.exemplars
        if exemplar.slow
    ]
    nearby = [*_nearby_requests(state, frame.t, frame.t)]
    title = f"Slowest at {f.clock(frame.t)}"
    return SlowList(
        ListContent(title, [*_common_facts(probe.exemplars)], requests, nearby), charset
    )


def _last_with_slow(state: LiveState) -> Frame | None:
    """The newest frame with slow requests, up to the second shown; ``None`` without the probe."""
    if state.probe_frame is None:
        return None
    for moment in reversed([*state.recent_seconds]):
        frame: Frame = moment.frame
        if moment.t > state.t or frame.probe is None:
            continue
        if any(exemplar.slow for exemplar in frame.probe.exemplars):
            return frame
    return None


def cell_list(state: LiveState, chosen: ChosenCell, charset: Charset) -> SlowList | None:
    """The list of the kept requests of a cell's second, with those in the cell first; ``None`` if
    no request was kept."""
    frames = frames_of(state, chosen)
    exemplars = requests_of(state, frames)
    in_cell = {id(exemplar) for exemplar in exemplars if chosen.contains(exemplar)}
    below = not any(exemplar.disk in state.devices for exemplar in exemplars)
    requests = [
        ListedRequest(
            completion_second(exemplar, frame.probe, frame.t), exemplar, id(exemplar) in in_cell
        )
        for frame in frames if frame.probe is not None for exemplar in frame.probe.exemplars
    ]  # fmt: skip
    if not requests:
        return None
    nearby = [*_nearby_requests(state, frames[0].t, frames[-1].t)]
    title = f"Requests at {f.clock(frames[-1].t)}, {chosen.range_text}"
    return SlowList(
        ListContent(title, [_cell_text(chosen, len(in_cell), below)], requests, nearby, True),
        charset,
    )


def _cell_text(chosen: ChosenCell, kept_count: int, below: bool) -> str:
    rule = "The 10 slowest and 10 random requests of each second and direction are kept."
    count = chosen.cell.count
    if chosen.by_device and below:
        return (
            f"{count:,} I/Os are in this cell. The device has no requests of its own; "
            f"{kept_count} requests kept from the disks below took as long from allocation to "
            f"completion. {rule}"
        )
    if chosen.by_device:
        return f"{kept_count} of the cell's {count:,} requests are kept. {rule}"
    ios = "1 I/O" if count == 1 else f"{count:,} I/Os"
    return (
        f"fio measured {ios} in this cell. {kept_count} of the kept requests took as long from "
        f"allocation to completion; fio's latency includes the time above. {rule}"
    )


def empty_reason(state: LiveState, parts: Sequence[str] | None, no_probe: str = "") -> str:
    """Why there is no list; ``parts`` are the probe's active parts (``None``: a recording),
    ``no_probe`` says why the probe can't run here."""
    frame = state.probe_frame
    if frame is None or frame.probe is None:
        if parts is None:
            return "no slowest requests: the probe was off at this time"
        if no_probe:
            return f"no slowest requests without the probe: {no_probe}"
        return "P switches on the probe, which keeps the slowest requests (root)"
    return "no request was completed in the last minutes"


DASHES = {
    "plugged": "PLUGGED: issued at once, or sent back",
    "tried": "TRIED: never sent back by the driver",
}
"""What a dash in these columns means."""


def _dashes(requests: Sequence[ListedRequest]) -> Iterator[str]:
    """What the dashes in columns mean that also have values; a column of dashes is left out."""
    known = {stage: [getattr(r.exemplar, f"{stage}_ns") is not None for r in requests]
             for stage in DASHES}  # fmt: skip
    texts = [text for stage, text in DASHES.items() if any(known[stage]) and not all(known[stage])]
    if texts:
        yield f"{f.MISSING} in {'; in '.join(texts)}."


def _layers(requests: Sequence[ListedRequest]) -> Iterator[str]:
    """Why an I/O may be listed twice: it has a request on each layer."""
    levels = by_level(request.exemplar for request in requests).values()
    names = [", ".join(sorted({printable(one.disk) for one in level})) for level in levels]
    for upper, lower in pairwise(names):
        yield f"An I/O that {upper} passes on to {lower} has a request on each: both may be listed."


def _common_facts(exemplars: Sequence[Exemplar]) -> Iterator[str]:
    if not any(exemplar.sampled and not exemplar.slow for exemplar in exemplars):
        yield NO_SAMPLE
        return
    claims: list[CommonProperty] = common_properties(exemplars)
    yield from (printable(claim.text) for claim in claims[:MAX_CLAIMS])
    if not claims:
        yield NOTHING_IN_COMMON


def _nearby_requests(state: LiveState, first: float, last: float) -> Iterator[Exemplar]:
    """The requests kept in the second before ``first`` up to the second after ``last``."""
    for moment in state.recent_seconds:
        probe = moment.frame.probe
        if probe is None:
            continue
        margin_s = 1.5 * max(1.0, probe.seconds)
        if first - margin_s < moment.frame.t < last + margin_s:
            yield from probe.exemplars
