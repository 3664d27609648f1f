"""The page of another disk, over the home screen: opened while a job runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from iopstui import format as f
from iopstui.model.answer.answer import GOOD, SIGNS, Answer
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.target import Target
from iopstui.model.figures.disk import DiskRates, util_text
from iopstui.tables import Column
from iopstui.ui.core import key
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, Modal
from iopstui.ui.dashboard.pages import processes_view
from iopstui.ui.dashboard.panels import who_panel
from iopstui.ui.dialogs.slow_list import LiveRows
from iopstui.ui.draw.rows import ANSWER_STYLES, Row, listing, rows_text, rule, wrap
from iopstui.ui.draw.style import BOLD, DIM, Charset
from iopstui.ui.home.rows import MIN_HEIGHT, Activity, DiskCharts
from iopstui.ui.state.live import LiveState

REFRESH_S, WHO_ROWS, WHO_ROWS_LOW = 1.0, 7, 5
LOW = 22
"""Lower terminals have fewer rows for who uses the disk."""
READING = "Measuring ..."
NOT_YET = "Who uses it is being read ..."


@dataclass(frozen=True, slots=True)
class DiskNow:
    """What is known of a disk now. ``use`` is the last reading of who uses the disks, if any."""

    target: Target
    answer: Answer | None
    activity: Activity | None
    use: DiskUse | None


@dataclass(frozen=True, slots=True)
class _Side:
    name: str
    ios_s: float | None
    bytes_s: float | None
    await_ms: float | None


COLUMNS = (
    Column("name", "", 8, left=True),
    Column("ios_s", "IOPS", 10, f.number),
    Column("bytes_s", "MiB/s", 10, f.mib),
    Column("await_ms", "await", 10, f.dense_ms),
)


class BesideScreen(Modal[bool]):
    """A disk's answer, figures, users and charts. Nothing here is of the job that goes on
    elsewhere; ``job`` names it, or "" once it has ended. Returns True to open the disk."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("enter", "open", "Open", show=False),
        Binding(key.USERS.names, "users", "Who", show=False), *LIST_KEYS,
    ]  # fmt: skip
    size_class = "wide"
    about = (
        "A disk, while a job runs on another one: its answer, the figures of the last second, and "
        "who uses it; u lists all who do. The job goes on. Enter opens the disk; if that ends the "
        "job, it asks first."
    )

    def __init__(
        self, name: str, job: Callable[[], str], charset: Charset, read: Callable[[], DiskNow]
    ) -> None:
        keys = (("Enter", "Open this disk instead (asks first)", "screen.open"),
                (key.USERS.label, "Who", "screen.users"), CLOSE_HINT)  # fmt: skip
        super().__init__(name, charset, keys)
        self._disk, self._job, self._read = name, job, read
        self._charts = DiskCharts(charset, named=False)
        self._shown: Text | None = None
        self._rows = 0

    def content(self) -> ComposeResult:
        yield Static(id="beside-text")
        yield self._charts

    def on_mount(self) -> None:
        self.set_interval(REFRESH_S, self._show)

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.box.set_class(False, "-short")
        self.call_after_refresh(self._measure)

    def _measure(self) -> None:
        """Note how many rows there are, and show the disk."""
        self._rows = self.box.content_region.height
        self._show()

    def _show(self) -> None:
        if self.is_leaving:
            return
        if isinstance(self.app.screen, LiveRows):
            self.app.screen.paint()
        width, now, job = self.box.content_region.width, self._read(), self._job()
        title = f"{self._disk} (meanwhile on {job})" if job else self._disk
        if title != self.heading:
            self.set_title(title)
        text = self._text(now, width)
        if text != self._shown:
            self._shown = text
            self.query_one("#beside-text", Static).update(text)
        rows = len(text.wrap(self.app.console, max(1, width)))
        self._charts.display = self._rows - 1 - rows >= MIN_HEIGHT
        # without the charts the box is as low as its text
        self.box.set_class(not self._charts.display, "-short")
        if self._charts.display and now.activity is not None:
            self._charts.paint(self._disk, now.activity.history, now.activity.rates)

    def _text(self, now: DiskNow, width: int) -> Text:
        text = Text()
        answer = now.answer
        if answer is not None:
            text.append(f"{self.charset.text(SIGNS[answer.state])} ", ANSWER_STYLES[answer.state])
            words = self.clean(answer.text)
            text.append(words, "" if answer.state == GOOD else BOLD)
            text.append(self.charset.text(" · ") + self.clean(answer.who) if answer.who else "")
        rates = now.activity.rates if now.activity is not None else None
        text.append("\n\n" if answer is not None else "")
        lines = self._figures(rates, width) if rates is not None else []
        text.append_text(_as_text(lines)) if lines else text.append(READING, DIM)
        text.append("\n\n")
        height = WHO_ROWS if self.app.size.height >= LOW else WHO_ROWS_LOW
        if now.use is None:
            text.append(self.clean(NOT_YET), DIM)
        else:
            who = who_panel.rows(
                now.use, now.target, width, height, self.charset, "", is_live=False
            )  # fmt: skip
            text.append_text(_as_text([row for row in who if rows_text([row])]))
        return text

    def _figures(self, rates: DiskRates, width: int) -> list[Row]:
        title = "The last second (– = no such request)"
        busy = f"{util_text(rates)} % busy, {f.number(rates.aqu_sz)} in flight"
        head = rule(width, self.charset, (title, BOLD), right=[(busy, DIM)])
        sides = (
            _Side("reads", rates.r_s, rates.r_bytes_s, rates.r_await),
            _Side("writes", rates.w_s, rates.w_bytes_s, rates.w_await),
        )
        return [head, *listing(COLUMNS, sides, width, self.charset, 2)]

    def copied_text(self) -> str:
        """All that is written here."""
        return self._shown.plain if self._shown is not None else ""

    def action_leave(self) -> None:
        self.dismiss(False)

    def action_users(self) -> None:
        """List all who use the disk, over this page."""
        state = LiveState()

        def users() -> who_panel.UsersOfDisk | None:
            now = self._read()
            return who_panel.users_of(now.use, now.target, ()) if now.use is not None else None

        def rows(width: int) -> Sequence[Row]:
            disk = users()
            if disk is None:
                return wrap(width, self.charset, NOT_YET, None)
            return processes_view.rows(
                state, None, width, self.charset, order=page.order, words=page.filter_text,
                disk=disk,
            )  # fmt: skip

        def orders() -> Sequence[str]:
            disk = users()
            return processes_view.orders(state, None, disk) if disk is not None else ()

        page = LiveRows("Who", rows, self.charset, key.USERS, orders, True)
        self.app.push_screen(page)

    def action_open(self) -> None:
        self.dismiss(True)


def _as_text(rows: list[Row]) -> Text:
    text = Text(no_wrap=True)
    for number, row in enumerate(rows):
        text.append("\n" if number else "")
        for piece, style in row:
            text.append(piece, style or "")
    return text
