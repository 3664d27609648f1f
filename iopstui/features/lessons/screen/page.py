"""A page of a lesson: text, figures, a question, or a run to start.

The text of a lesson is Markdown: its paragraphs may have headings, emphasis, code and lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Markdown, Static

from iopstui import format as f
from iopstui.features.lessons.model.pages import ASK, RUN_STEP
from iopstui.features.lessons.play.lesson_state import READY, SKIPPED, AnswerVerdict, ShownPage
from iopstui.features.lessons.screen.rows import END, LessonProgress, end_page, pane_name
from iopstui.tables import Table
from iopstui.text import printable
from iopstui.ui.core.modal import SCROLL_KEYS, Hint, KeyLine
from iopstui.ui.dashboard.screen import chart_specs
from iopstui.ui.draw.canvas import Canvas
from iopstui.ui.draw.charts.chart import Chart, TimeWindow
from iopstui.ui.draw.layout import Box, large
from iopstui.ui.draw.style import BOLD, DIM, KEY, WARNING, Charset
from iopstui.ui.state.live import LiveState

PagePart = str | Table
"""A part of a page: Markdown, or a table of figures."""


def page_parts(
    page: ShownPage,
    verdicts: Sequence[AnswerVerdict],
    charset: Charset,
    repeatable: str = "",
    tabbed: bool = False,
) -> list[PagePart]:
    """The parts of a page, without the choices of a question. ``repeatable`` names a run that
    failed or was disturbed; ``tabbed``: the dashboard shows one pane at a time."""
    parts: list[PagePart] = []
    for part in _page_parts(page, verdicts, repeatable, tabbed):
        if isinstance(part, Table):
            parts.append(part)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += f"\n\n{charset.text(part)}"
        else:
            parts.append(charset.text(part))
    return parts


def _page_parts(
    page: ShownPage, verdicts: Sequence[AnswerVerdict], repeatable: str, tabbed: bool
) -> Iterator[PagePart]:
    yield f"# {printable(page.title)}"
    if page.state == SKIPPED:
        yield "**Not available here:**"
    judged = {verdict.text: verdict for verdict in verdicts}
    for block in page.blocks:
        if isinstance(block, Table):
            yield block
        elif block.kept:
            yield _fence(block.text)
        elif (verdict := judged.get(block.text)) is not None:
            yield f"> {_verdict_prefix(verdict)}{printable(block.text)}"
        else:
            yield printable(block.text)
    if page.look and page.state == READY:
        yield "### Look at"
        yield "\n".join(
            f"- **{pane_name(pane, tabbed)}**: {printable(sentence)}"
            for pane, sentence in page.look
        )
    if page.kind == RUN_STEP and page.state == READY:
        yield "*Enter starts the run.*"
    if repeatable:
        yield f"*r repeats run {printable(repeatable)}.*"


def _verdict_prefix(verdict: AnswerVerdict) -> str:
    if verdict.correct is None:
        return ""
    return "**Right.** " if verdict.correct else "**Wrong.** "


def _fence(text: str) -> str:
    lines = ["".join(c if c.isprintable() else "?" for c in line) for line in text.splitlines()]
    longest = max((len(run) for line in lines for run in line.split() if set(run) == {"`"}),
                  default=0)  # fmt: skip
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])


LESSON_RUNNING = "a lesson is running: Esc leaves it"
SIDE_BY_SIDE_FROM = 120
"""From this width of the terminal on, the charts are beside the text."""
WHEEL_ROWS = 3


def _parser() -> MarkdownIt:
    """A parser for Markdown without HTML, so that a "<" in a lesson is only a "<"."""
    return MarkdownIt("commonmark", {"html": False}).enable("table")


class PageText(Markdown):
    """Markdown with iopstui's own bullets."""

    BULLETS = ["- "]  # noqa: RUF012 (Textual's own form)


class LessonPage(Screen[None]):
    """Shows the page of ``progress``. Enter at the end of a page calls ``on_continue``;
    ``on_repeat`` repeats a failed run, ``on_leave`` leaves the lesson. ``refused_keys`` are keys
    that would disturb the lesson. The charts of ``state`` are drawn beside the text on a wide
    terminal."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right", "on", "continue"),
        Binding("left", "back", "back"),
        Binding("escape", "leave", "leave the lesson"),
        Binding("space,pagedown", "page(1)", show=False),
        *SCROLL_KEYS,
    ]

    def __init__(
        self,
        progress: LessonProgress,
        charset: Charset,
        on_continue: Callable[[], None],
        on_repeat: Callable[[], None],
        on_leave: Callable[[], None],
        refused_keys: Collection[str],
        state: Callable[[], LiveState],
    ) -> None:
        super().__init__()
        self._progress = progress
        self._charset = charset
        self._continue, self._repeat, self._leave = on_continue, on_repeat, on_leave
        self._refused_keys, self._note = refused_keys, ""
        self._keys = KeyLine((), charset)
        self._charts = SideCharts(state, charset)

    def compose(self) -> ComposeResult:
        """Head, text and charts, keys."""
        with Horizontal(id="lesson-head"):
            yield Static(id="lesson-title")
            yield Static(id="lesson-place")
        with Horizontal(id="lesson-body"):
            yield VerticalScroll(id="lesson-text", can_focus=False)
            yield self._charts
        yield self._keys

    @property
    def page(self) -> ShownPage:
        return self._progress.page or end_page(self._progress)

    @property
    def _scroll(self) -> VerticalScroll:
        return self.query_one("#lesson-text", VerticalScroll)

    @property
    def has_more(self) -> bool:
        """Whether the page continues below what is visible."""
        return round(self._scroll.scroll_y) < self._scroll.max_scroll_y

    async def on_mount(self) -> None:
        self.watch(self._scroll, "scroll_y", self._update_footer)
        self.watch(self._scroll, "virtual_size", self._schedule_footer)
        self._fit()
        await self._fill()

    def on_resize(self, event: events.Resize) -> None:
        """Show the charts only on a wide terminal."""
        self._fit()

    def _fit(self) -> None:
        self._charts.display = self.app.size.width >= SIDE_BY_SIDE_FROM
        self._schedule_footer()

    def paint(self) -> None:
        """Paint the newest seconds in the charts."""
        self._charts.paint()

    def show_new_page(self) -> None:
        self._note = ""
        self.call_next(self._fill)

    async def _fill(self) -> None:
        page = self.page
        title = self._charset.text(printable(self._title))
        self.query_one("#lesson-title", Static).update(Text(title, style=BOLD, no_wrap=True))
        self.query_one("#lesson-place", Static).update(Text(self._position, style=DIM))
        with self.app.batch_update():
            scroll = self._scroll
            await scroll.remove_children()
            await scroll.mount_all(self._widgets(page))
            scroll.scroll_home(animate=False)
        self._schedule_footer()

    def _parts(self, page: ShownPage) -> list[PagePart]:
        progress, tabbed = self._progress, not large(*self.app.size)
        verdicts = progress.verdicts(page)
        return page_parts(page, verdicts, self._charset, progress.repeatable, tabbed)

    @property
    def _title(self) -> str:
        return self._progress.run.lesson.title

    @property
    def _position(self) -> str:
        page = self.page
        position = "the end" if page.kind == END else f"page {page.number} of {page.total}"
        return f"{position}, read before" if self._progress.reading_back else position

    @property
    def copied_title(self) -> str:
        return f"{self._title}, {self._position}"

    def copied_text(self) -> str:
        """The page as Markdown, with its tables as columns of text."""
        page = self.page
        parts = [
            part if isinstance(part, str) else "\n".join(part.lines()) for part in self._parts(page)
        ]
        return "\n\n".join([*parts, *(f"{letter}) {text}" for letter, text in page.choices)])

    def _widgets(self, page: ShownPage) -> list[Widget]:
        widgets: list[Widget] = [
            Static(self._grid(part), classes="lesson-table")
            if isinstance(part, Table)
            else PageText(part, parser_factory=_parser, open_links=False)
            for part in self._parts(page)
        ]
        if page.choices:
            widgets.append(Static(id="lesson-choices"))
            self.call_after_refresh(self._choices)
        return widgets

    def _grid(self, table: Table) -> Grid:
        """A table of figures; the first column has the labels."""
        grid = Grid(box=None, padding=(0, 0, 0, 2), pad_edge=False, header_style=BOLD)
        grid.add_column("", style=DIM)
        for name in table.head[1:]:
            grid.add_column(Text(self._clean(name)), justify="right", no_wrap=True)
        for row in table.rows:
            grid.add_row(*(Text(self._clean(cell)) for cell in row))
        return grid

    def _clean(self, text: str) -> str:
        return self._charset.text(printable(text))

    def _choices(self) -> None:
        """The answers of a question, which can be clicked."""
        page = self.page
        query = self.query("#lesson-choices")
        if not query or not page.choices:
            return
        grid = Grid.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=6)
        grid.add_column(ratio=1)
        for letter, text in page.choices:
            is_chosen = letter == page.chosen
            click = Style(meta={"@click": f"screen.answer({letter!r})"})
            sign = Text("[x] " if is_chosen else "[ ] ", style=(KEY if is_chosen else DIM) + click)
            sign.append(f"{letter})", style=KEY + click)
            style = (BOLD if is_chosen else Style()) + click
            grid.add_row(sign, Text(self._clean(text), style=style))
        if self._progress.reading_back and page.kind == ASK:
            grid.add_row("", Text("Answers cannot be changed.", style=DIM))
        query.first(Static).update(grid)
        self._update_footer()

    # -- the last row

    def _schedule_footer(self) -> None:
        self.call_after_refresh(self._update_footer)

    def _update_footer(self) -> None:
        """Show the keys, or a note in their place."""
        if not self.is_mounted:
            return
        if self._note:
            self._keys.update(Text(f" {self._charset.text(self._note)}", style=WARNING))
        else:
            self._keys.show(self._hints())

    def _hints(self) -> Sequence[Hint]:
        page, progress = self.page, self._progress
        hints: list[Hint] = [("Enter", self._enter_label(), "screen.on")]
        if progress.can_repeat and not self.has_more:
            hints.append(("r", "Again", "screen.again"))
        if self._can_answer:
            letters = f"{page.choices[0][0]}-{page.choices[-1][0]}"
            hints.insert(0, (letters, "Answer", ""))
        if progress.has_earlier:
            hints.append(("←" if self._charset.name != "ascii" else "left", "Back", "screen.back"))
        hints.append(("Esc", "Dashboard" if page.kind == END else "Leave", "screen.leave"))
        return [*hints, ("?", "Help", "app.do('help', 0)"), ("q", "Quit", "app.do('quit', 0)")]

    def _enter_label(self) -> str:
        progress = self._progress
        if self.has_more:
            return "Read on"
        if progress.can_run:
            return "Start the run"
        if progress.has_failed:
            return "Continue without it"
        return "Dashboard" if self.page.kind == END else "Continue"

    # -- keys

    @property
    def _can_answer(self) -> bool:
        page = self.page
        is_question = page.kind == ASK and page.state != SKIPPED and not self._progress.reading_back
        return is_question and bool(page.choices)

    def on_key(self, event: events.Key) -> None:
        """Handle the letter of an answer. Refuse keys of the dashboard that would disturb the
        lesson."""
        char = event.character or ""
        if self._can_answer and char.lower() in {letter for letter, _ in self.page.choices}:
            self.action_answer(char.lower())
        elif char == "r" and self._progress.can_repeat:
            self._repeat()
        elif char and char in self._refused_keys:
            self._note = LESSON_RUNNING
            self._update_footer()
        else:
            return
        event.stop()

    def action_answer(self, letter: str) -> None:
        if self._can_answer:
            self._progress.run.answer(letter)
            self._note = ""
            self._choices()

    def action_again(self) -> None:
        self._repeat()

    def action_on(self) -> None:
        """Scroll down, or continue the lesson if the end of the page is visible."""
        page, progress = self.page, self._progress
        if self.has_more:
            self.action_page(1)
            return
        if self._can_answer and page.chosen is None and not self._note.startswith("no answer"):
            letters = ", ".join(letter for letter, _ in page.choices)
            self._note = f"no answer yet ({letters}); Enter again skips the question"
            self._update_footer()
        elif progress.reading_back:
            progress.next_page()
            self.show_new_page()
        else:
            self._continue()

    def action_back(self) -> None:
        if self._progress.previous_page():
            self.show_new_page()
        else:
            self._note = "this is the first page"
            self._update_footer()

    def action_scroll(self, by: int) -> None:
        """Scroll by one row, or to the beginning or the end."""
        self._note = ""
        self._scroll.scroll_relative(y=by, animate=False)
        self._update_footer()

    def action_page(self, by: int) -> None:
        self.action_scroll(by * max(1, self._scroll.size.height - 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.action_scroll(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.action_scroll(-WHEEL_ROWS)

    def action_leave(self) -> None:
        self._leave()


# The charts of IOPS and latency beside other content, for example the page of a lesson.


NO_FIO = "while a job runs"
"""Short enough for the border of a chart beside 80 columns of text on a screen of 120."""


class SideCharts(Canvas):
    """Two charts, one below the other, for the state that ``state`` returns."""

    def __init__(self, state: Callable[[], LiveState], charset: Charset) -> None:
        super().__init__()
        self._state = state
        self._rates, self._latency = (Chart(spec, charset) for spec in chart_specs("device"))
        self._window = TimeWindow()
        for chart in (self._rates, self._latency):
            self.add(chart.widgets())

    def on_resize(self, event: events.Resize) -> None:
        width, height = self.size
        upper = height // 2
        # the same second of both charts is in the same column
        labels = self._latency.spec.right
        self.add(self._rates.place(Box(0, 0, width, upper), framed=True, blank=labels))
        self.add(self._latency.place(Box(0, upper, width, height - upper), framed=True))
        self.paint()

    def paint(self) -> None:
        state, charts = self._state(), (self._rates, self._latency)
        if not self.display or not all(chart.shown for chart in charts):
            return
        columns = min(chart.columns for chart in charts)
        self._window.follow(state.history.end or 0.0, columns, 1.0)
        fio, frame = state.fio_now, state.frame
        disk = frame.combined(state.devices) if frame is not None else None
        rates = [f.number(disk.ios_s) if disk else "", f.number(fio.total.iops) if fio else ""]
        self._rates.paint(state.history, self._window, rates, ())
        percentiles = fio.total.percentiles if fio else {}
        names = ("p99.9", "p99", "p50")
        latencies = [
            f.latency(percentiles[name], "") if name in percentiles else "" for name in names
        ]
        note = [] if fio else [(NO_FIO, DIM)]
        self._latency.paint(state.history, self._window, latencies, note)
