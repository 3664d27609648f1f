"""Single requests as a list, the slowest of a second or those of a cell of the heat map; Enter
opens one as a timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable, Static

from iopstui import format as f
from iopstui.model.metrics.probe import OWN
from iopstui.model.metrics.slow.in_common import InCommon, in_common
from iopstui.model.metrics.slow.slow_requests import second_of
from iopstui.model.samples import Exemplar
from iopstui.text import printable
from iopstui.ui.core import pages
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, Hint, Modal
from iopstui.ui.dashboard.heat_cursor import ChosenCell, frames_of, requests_of
from iopstui.ui.dashboard.pages.slow_view import timeline
from iopstui.ui.dialogs.live_rows import LiveRows
from iopstui.ui.dialogs.type_to_filter import FILTER, TypeToFilter
from iopstui.ui.draw.rows import Row
from iopstui.ui.draw.style import Charset
from iopstui.ui.state.live import LiveState

HINTS: tuple[Hint, ...] = (
    ("Enter", "Timeline", "screen.open"), ("< >", "Sort", "screen.sort(1)"), FILTER, CLOSE_HINT,
)  # fmt: skip
MAX_CLAIMS = 3
NOTHING = "Nothing in common beyond chance (compared with the random requests)."
NO_SAMPLE = "Too few other requests in this second to compare with."


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """A request of a list: ``t`` is when it completed (seconds of the session), ``in_cell`` is
    whether it is of the cell that the list is about."""

    t: float
    one: Exemplar
    in_cell: bool = False

    @property
    def when(self) -> str:
        """ "0:04.250"."""
        second = max(0.0, self.t)
        return f"{f.clock(int(second))}.{int(second * 1000) % 1000:03}"

    @property
    def kept_as(self) -> str:
        """Why it was kept."""
        if self.one.slow:
            return "slow, random" if self.one.sampled else "slow"
        return "random"


Value = Callable[[KeptRequest], "float | str"]


@dataclass(frozen=True, slots=True)
class SlowColumn:
    """A column: its title, its text, and what it is sorted by. ``left``: text."""

    title: str
    text: Callable[[KeptRequest], str]
    value: Value
    left: bool = False


COLUMNS = (
    SlowColumn("TOTAL", lambda k: f.latency(k.one.total_ns), lambda k: -k.one.total_ns),
    SlowColumn("WHAT", lambda k: k.one.kind, lambda k: k.one.kind, left=True),
    SlowColumn("PROCESS", lambda k: f"{printable(k.one.comm) or f.MISSING} ({k.one.pid})",
               lambda k: k.one.comm.lower(), left=True),
    SlowColumn("plugged", lambda k: f.latency(k.one.plugged_ns),
               lambda k: -(k.one.plugged_ns or 0)),
    SlowColumn("queued", lambda k: f.latency(k.one.queued_ns), lambda k: -(k.one.queued_ns or 0)),
    SlowColumn("device", lambda k: f.latency(k.one.device_ns), lambda k: -k.one.device_ns),
    SlowColumn("tried", lambda k: f.latency(k.one.tried_ns), lambda k: -(k.one.tried_ns or 0)),
    SlowColumn("TIME", lambda k: k.when, lambda k: k.one.completed_ns),
    SlowColumn("FLAGS", lambda k: k.one.flags, lambda k: k.one.flags, left=True),
    SlowColumn("SIZE", lambda k: f.size(k.one.size), lambda k: -k.one.size),
    SlowColumn("SECTOR", lambda k: f.MISSING if k.one.sector is None else str(k.one.sector),
               lambda k: -1 if k.one.sector is None else k.one.sector),
    SlowColumn("CPU", lambda k: f"{k.one.cpu} → {k.one.cpu_done}", lambda k: k.one.cpu_done),
    SlowColumn("HCTX", lambda k: str(k.one.hctx), lambda k: k.one.hctx),
    SlowColumn("DISK", lambda k: printable(k.one.disk), lambda k: k.one.disk, left=True),
    SlowColumn("CGROUP", lambda k: printable(k.one.group) or f.MISSING, lambda k: k.one.group,
               left=True),
)  # fmt: skip
CELL_COLUMNS = (
    SlowColumn("CELL", lambda k: "in" if k.in_cell else "", lambda k: not k.in_cell, left=True),
    *COLUMNS,
    SlowColumn("KEPT", lambda k: k.kept_as, lambda k: k.kept_as, left=True),
)
"""For a cell of the heat map."""


@dataclass(frozen=True, slots=True)
class Content:
    """What is listed under a ``title``, the ``words`` above it, and all requests that were kept
    ``near`` it in time. ``of_cell``: the list is about a cell of the heat map."""

    title: str
    words: Sequence[str]
    requests: Sequence[KeptRequest]
    near: Sequence[Exemplar]
    of_cell: bool = False


class SlowList(TypeToFilter, Modal[None]):
    """Single requests; they stay while it is open."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("less_than_sign", "sort(-1)", show=False),
        Binding("greater_than_sign", "sort(1)", show=False),
    ]
    size_class = "broad"
    about = (
        "The slowest requests of one second, or those kept of a cell of the heat map: where each "
        "waited, whose it was. Enter opens one as a timeline beside the others; < and >, or a "
        "click on a title, sort."
    )

    def __init__(self, content: Content, charset: Charset) -> None:
        super().__init__(content.title, charset, HINTS, pages.SLOWEST)
        self._charset = charset
        self._content = content
        self._columns = CELL_COLUMNS if content.of_cell else COLUMNS
        self._sort, self._down = self._columns[0], False
        self._shown: list[KeptRequest] = []

    def content(self) -> ComposeResult:
        """The words, and the table."""
        text = "\n".join(self._content.words)
        yield Static(Text(self._charset.text(text)), id="slow-common")
        yield DataTable(cursor_type="row", classes="modal-fit")

    def on_mount(self) -> None:
        """The table has the keys."""
        table = self._table()
        for column in self._columns:
            justify = "left" if column.left else "right"
            title = Text(column.title, justify=justify)  # type: ignore[arg-type]
            table.add_column(title, key=column.title)
        table.focus()
        self._fill()

    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    def _fill(self) -> None:
        table = self._table()
        table.clear()
        # of equal ones the slowest first
        slowest = sorted(self._content.requests, key=lambda request: -request.one.total_ns)
        ordered = sorted(slowest, key=self._sort.value, reverse=self._down)
        self._shown = [request for request in ordered if self.matches(*self._texts(request))]
        for request in self._shown:
            table.add_row(*(
                Text(self.clean(text), justify="left" if column.left else "right")
                for column, text in zip(self._columns, self._texts(request), strict=True)
            ))  # fmt: skip
        backwards = ", reversed" if self._down else ""
        self.set_title(self.heading, f"sorted by {self._sort.title}{backwards}")

    def _texts(self, request: KeptRequest) -> list[str]:
        return [column.text(request) for column in self._columns]

    def apply_filter(self) -> None:
        """Show the requests that have all of the words."""
        self.keys.show(HINTS, self.filtering)
        self._fill()

    def action_sort(self, by: int) -> None:
        """Sort by the next column or the one before."""
        self._sort = self._columns[(self._columns.index(self._sort) + by) % len(self._columns)]
        self._down = False
        self._fill()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by this column; again: the other way round."""
        chosen = next(c for c in self._columns if c.title == event.column_key.value)
        self._down = not self._down if chosen is self._sort else False
        self._sort = chosen
        self._fill()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the request under the cursor."""
        self.action_open()

    def action_open(self) -> None:
        """Open the request under the cursor as a timeline."""
        at = self._table().cursor_row
        if not 0 <= at < len(self._shown):
            return
        request, charset, nearby = self._shown[at], self._charset, self._content.near

        def rows(width: int) -> Sequence[Row]:
            return timeline(request.one, nearby, request.when, width, charset)

        self.app.push_screen(LiveRows("One request", rows, charset))


def list_of(state: LiveState, charset: Charset) -> SlowList | None:
    """The list of the slowest of the second that ``state`` shows; ``None`` if none was kept."""
    frame = state.probed
    probe = frame.probe if frame is not None else None
    if frame is None or probe is None or not any(exemplar.slow for exemplar in probe.exemplars):
        return None
    requests = [
        KeptRequest(second_of(exemplar, probe, frame.t), exemplar)
        for exemplar in probe.exemplars
        if exemplar.slow
    ]
    nearby = [*_near(state, frame.t, frame.t)]
    title = f"Slowest requests at {f.clock(frame.t)}"
    return SlowList(Content(title, [*_claims(probe.exemplars)], requests, nearby), charset)


def cell_list(state: LiveState, chosen: ChosenCell, charset: Charset) -> SlowList | None:
    """The list of the requests kept of the second of a cell, first those of its latency; ``None``
    if none was kept."""
    frames = frames_of(state, chosen)
    exemplars = requests_of(state, frames)
    in_cell = {id(exemplar) for exemplar in exemplars if chosen.has(exemplar)}
    below = not any(exemplar.disk in state.devices for exemplar in exemplars)
    requests = [
        KeptRequest(second_of(exemplar, frame.probe, frame.t), exemplar, id(exemplar) in in_cell)
        for frame in frames if frame.probe is not None for exemplar in frame.probe.exemplars
    ]  # fmt: skip
    if not requests:
        return None
    nearby = [*_near(state, frames[0].t, frames[-1].t)]
    title = f"Requests at {f.clock(frames[-1].t)}, {chosen.range_text}"
    return SlowList(
        Content(title, [_cell_text(chosen, len(in_cell), below)], requests, nearby, True), charset
    )


def _cell_text(chosen: ChosenCell, kept_count: int, below: bool) -> str:
    rule = "Of each second and direction the 10 slowest and 10 random ones are kept."
    count = chosen.cell.count
    if chosen.by_device and below:
        return (
            f"{count:,} I/Os are in this cell. The device has no requests of its own; "
            f"{kept_count} of those kept of the disks below took as long from allocation to "
            f"completion. {rule}"
        )
    if chosen.by_device:
        return f"{kept_count} of the cell's {count:,} requests are kept. {rule}"
    ios = "1 I/O" if count == 1 else f"{count:,} I/Os"
    return (
        f"fio measured {ios} in this cell. {kept_count} of the kept requests took as long from "
        f"allocation to completion; fio's latency includes the time above. {rule}"
    )


def why_none(state: LiveState, parts: Sequence[str] | None) -> str:
    """Why there is no list; ``parts`` of the probe are counted (``None``: this is a recording)."""
    frame = state.probed
    if frame is None or frame.probe is None:
        if parts is None:
            return "no slowest requests: the probe was off at this time"
        return "P switches on the probe, which keeps the slowest requests (root)"
    if frame.probe.by != OWN:
        return "bpftrace keeps no single requests; with latencies alone (P) the probe does"
    return "no request was completed in this second"


def _claims(exemplars: Sequence[Exemplar]) -> Iterator[str]:
    if not any(exemplar.sampled and not exemplar.slow for exemplar in exemplars):
        yield NO_SAMPLE
        return
    claims: list[InCommon] = in_common(exemplars)
    yield from (printable(claim.text) for claim in claims[:MAX_CLAIMS])
    if not claims:
        yield NOTHING


def _near(state: LiveState, first: float, last: float) -> Iterator[Exemplar]:
    """Requests kept from the second before ``first`` to the one behind ``last``."""
    for moment in state.recent_seconds:
        probe = moment.frame.probe
        if probe is None:
            continue
        beside = 1.5 * max(1.0, probe.seconds)
        if first - beside < moment.frame.t < last + beside:
            yield from probe.exemplars
