"""The slowest requests of a second as a list; Enter opens one as a timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable, Static

from iopstui import format as f
from iopstui.model.metrics.in_common import InCommon, in_common
from iopstui.model.metrics.probe import OWN, ProbeInterval
from iopstui.model.metrics.slow_requests import second_of
from iopstui.model.samples import Exemplar
from iopstui.text import printable
from iopstui.ui.core import pages
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, Hint, Modal
from iopstui.ui.dashboard.slow_view import timeline
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

Value = Callable[[Exemplar], "float | str"]


@dataclass(frozen=True, slots=True)
class SlowColumn:
    """A column: its title, its text, and what it is sorted by. ``left``: text."""

    title: str
    text: Callable[[Exemplar], str]
    value: Value
    left: bool = False


COLUMNS = (
    SlowColumn("TOTAL", lambda o: f.latency(o.total_ns), lambda o: -o.total_ns),
    SlowColumn("WHAT", lambda o: o.kind, lambda o: o.kind, left=True),
    SlowColumn("PROCESS", lambda o: f"{printable(o.comm) or f.MISSING} ({o.pid})",
               lambda o: (o.comm.lower()), left=True),
    SlowColumn("plugged", lambda o: f.latency(o.plugged_ns), lambda o: -(o.plugged_ns or 0)),
    SlowColumn("queued", lambda o: f.latency(o.queued_ns), lambda o: -(o.queued_ns or 0)),
    SlowColumn("device", lambda o: f.latency(o.device_ns), lambda o: -o.device_ns),
    SlowColumn("TIME", lambda o: "", lambda o: o.completed_ns),
    SlowColumn("FLAGS", lambda o: o.flags, lambda o: o.flags, left=True),
    SlowColumn("SIZE", lambda o: f.size(o.size), lambda o: -o.size),
    SlowColumn("SECTOR", lambda o: f.MISSING if o.sector is None else str(o.sector),
               lambda o: -1 if o.sector is None else o.sector),
    SlowColumn("CPU", lambda o: f"{o.cpu} → {o.cpu_done}", lambda o: o.cpu_done),
    SlowColumn("HCTX", lambda o: str(o.hctx), lambda o: o.hctx),
    SlowColumn("DISK", lambda o: printable(o.disk), lambda o: o.disk, left=True),
    SlowColumn("CGROUP", lambda o: printable(o.group) or f.MISSING, lambda o: o.group, left=True),
)  # fmt: skip
_TIME = "TIME"


class SlowList(TypeToFilter, Modal[None]):
    """The slowest requests of the second that ``probe`` measured; they stay while it is open."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("less_than_sign", "sort(-1)", show=False),
        Binding("greater_than_sign", "sort(1)", show=False),
    ]
    size_class = "broad"
    about = (
        "The slowest requests of one second: where each waited, whose it was. Enter opens one as a "
        "timeline beside the others; < and >, or a click on a title, sort."
    )

    def __init__(
        self, probe: ProbeInterval, t: float, near: Sequence[Exemplar], charset: Charset
    ) -> None:
        super().__init__(f"Slowest requests at {f.clock(t)}", charset, HINTS, pages.SLOWEST)
        self._charset = charset
        self._probe, self._t, self._near = probe, t, near
        self._slow = [one for one in probe.exemplars if one.slow]
        self._sort, self._down = COLUMNS[0], False
        self._shown: list[Exemplar] = []

    def content(self) -> ComposeResult:
        """What they have in common, and the table."""
        yield Static(Text(self._charset.text("\n".join(self._claims()))), id="slow-common")
        yield DataTable(cursor_type="row", classes="modal-fit")

    def _claims(self) -> Iterator[str]:
        exemplars = self._probe.exemplars
        if not any(one.sampled and not one.slow for one in exemplars):
            yield NO_SAMPLE
            return
        found: list[InCommon] = in_common(exemplars)
        yield from (printable(one.text) for one in found[:MAX_CLAIMS])
        if not found:
            yield NOTHING

    def on_mount(self) -> None:
        """The table has the keys."""
        table = self._table()
        for column in COLUMNS:
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
        ordered = sorted(self._slow, key=self._sort.value, reverse=self._down)
        self._shown = [one for one in ordered if self.matches(*self._texts(one))]
        for one in self._shown:
            table.add_row(*(
                Text(self.clean(text), justify="left" if column.left else "right")
                for column, text in zip(COLUMNS, self._texts(one), strict=True)
            ))  # fmt: skip
        backwards = ", reversed" if self._down else ""
        self.head(self.heading, f"sorted by {self._sort.title}{backwards}")

    def _texts(self, one: Exemplar) -> list[str]:
        return [self._when(one) if c.title == _TIME else c.text(one) for c in COLUMNS]

    def _when(self, one: Exemplar) -> str:
        second = max(0.0, second_of(one, self._probe, self._t))
        return f"{f.clock(int(second))}.{int(second * 1000) % 1000:03}"

    def apply_filter(self) -> None:
        """Show the requests that have all of the words."""
        self.keys.show(HINTS, self.filtering)
        self._fill()

    def action_sort(self, by: int) -> None:
        """Sort by the next column or the one before."""
        self._sort = COLUMNS[(COLUMNS.index(self._sort) + by) % len(COLUMNS)]
        self._down = False
        self._fill()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by this column; again: the other way round."""
        chosen = next(c for c in COLUMNS if c.title == event.column_key.value)
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
        one, charset = self._shown[at], self._charset

        def rows(width: int) -> Sequence[Row]:
            return timeline(one, self._near, self._when(one), width, charset)

        self.app.push_screen(LiveRows("One request", rows, charset))


def list_of(state: LiveState, charset: Charset) -> SlowList | None:
    """The list of the second that ``state`` shows; ``None`` if none was kept in it."""
    frame = state.probed
    probe = frame.probe if frame is not None else None
    if frame is None or probe is None or not any(one.slow for one in probe.exemplars):
        return None
    return SlowList(probe, frame.t, [*_near(state, frame.t)], charset)


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


def _near(state: LiveState, t: float) -> Iterator[Exemplar]:
    """Requests kept in this second and the two beside it."""
    for moment in state.moments:
        probe = moment.frame.probe
        if probe is not None and abs(moment.frame.t - t) < 1.5 * max(1.0, probe.seconds):
            yield from probe.exemplars
