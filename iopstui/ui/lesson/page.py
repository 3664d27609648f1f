"""A page of a lesson: text, figures, a question, or a run that waits to be started."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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

from iopstui.lesson.page import SKIPPED, ShownPage, Table
from iopstui.model.lesson.pages import ASK
from iopstui.text import printable
from iopstui.ui.core.modal import Hint, Keys
from iopstui.ui.dashboard.side_charts import ChartsBeside
from iopstui.ui.draw.style import BOLD, DIM, KEY, WARNING, Charset
from iopstui.ui.lesson.markdown import page_parts
from iopstui.ui.lesson.rows import end_page
from iopstui.ui.lesson.state import END, Playing
from iopstui.ui.state.live import LiveState

LESSON_RUNNING = "a lesson is running: Esc leaves it"
SIDE_BY_SIDE_FROM = 120
"""Columns from which on the charts stand beside the text."""
WHEEL_ROWS = 3


def _parser() -> MarkdownIt:
    """Return a parser without HTML: a "<" in a lesson is a "<"."""
    return MarkdownIt("commonmark", {"html": False}).enable("table")


class PageText(Markdown):
    """Markdown in this program's signs."""

    BULLETS = ["- "]  # noqa: RUF012 (Textual's own form)


class LessonPage(Screen[None]):
    """Shows the page of ``playing``. ``go_on`` is called where Enter means more than to read,
    ``again`` to make a failed run once more, ``leave`` to leave the lesson. ``locked`` are the keys
    that would disturb it. ``state`` is drawn beside the text where there is room."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right", "on", "continue"),
        Binding("left", "back", "back"),
        Binding("escape", "leave", "leave the lesson"),
        Binding("space,pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("home", "scroll(-1000000)", show=False),
        Binding("end", "scroll(1000000)", show=False),
    ]

    def __init__(
        self,
        playing: Playing,
        charset: Charset,
        go_on: Callable[[], None],
        repeat: Callable[[], None],
        leave: Callable[[], None],
        locked: Collection[str],
        state: Callable[[], LiveState],
    ) -> None:
        super().__init__()
        self._playing = playing
        self._charset = charset
        self._go_on, self._again, self._leave = go_on, repeat, leave
        self._refused_keys, self._note = locked, ""
        self._keys = Keys((), charset)
        self._charts = ChartsBeside(state, charset)

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
        """The page shown."""
        return self._playing.page or end_page(self._playing)

    @property
    def _scroll(self) -> VerticalScroll:
        return self.query_one("#lesson-text", VerticalScroll)

    @property
    def more(self) -> bool:
        """Whether there is more of the page below what is seen."""
        return round(self._scroll.scroll_y) < self._scroll.max_scroll_y

    async def on_mount(self) -> None:
        """Shows the page."""
        self.watch(self._scroll, "scroll_y", self._foot)
        self.watch(self._scroll, "virtual_size", self._later_foot)
        self._fit()
        await self._fill()

    def on_resize(self, event: events.Resize) -> None:
        """The charts come and go with the width."""
        self._fit()

    def _fit(self) -> None:
        self._charts.display = self.app.size.width >= SIDE_BY_SIDE_FROM
        self._later_foot()

    def paint(self) -> None:
        """Shows the newest seconds in the charts."""
        self._charts.paint()

    def show_new_page(self) -> None:
        """Another page is shown now, from its top."""
        self._note = ""
        self.call_next(self._fill)

    async def _fill(self) -> None:
        page, playing = self.page, self._playing
        place = "the end" if page.kind == END else f"page {page.number} of {page.total}"
        if playing.reading_back:
            place += ", read before"
        title = self._charset.text(printable(playing.run.lesson.title))
        self.query_one("#lesson-title", Static).update(Text(title, style=BOLD, no_wrap=True))
        self.query_one("#lesson-place", Static).update(Text(place, style=DIM))
        with self.app.batch_update():
            scroll = self._scroll
            await scroll.remove_children()
            await scroll.mount_all(self._widgets(page))
            scroll.scroll_home(animate=False)
        self._later_foot()

    def _widgets(self, page: ShownPage) -> list[Widget]:
        widgets: list[Widget] = [
            Static(self._grid(part), classes="lesson-table")
            if isinstance(part, Table)
            else PageText(part, parser_factory=_parser, open_links=False)
            for part in page_parts(page, self._playing.verdicts(page), self._charset)
        ]
        if page.choices:
            widgets.append(Static(id="lesson-choices"))
            self.call_after_refresh(self._choices)
        return widgets

    def _grid(self, table: Table) -> Grid:
        """Figures: the first column says what a row is."""
        grid = Grid(box=None, padding=(0, 0, 0, 2), pad_edge=False, header_style=BOLD)
        grid.add_column("", style=DIM)
        for name in table.header[1:]:
            grid.add_column(Text(self._clean(name)), justify="right", no_wrap=True)
        for row in table.rows:
            grid.add_row(*(Text(self._clean(cell)) for cell in row))
        return grid

    def _clean(self, text: str) -> str:
        return self._charset.text(printable(text))

    def _choices(self) -> None:
        """The answers of a question, each to be clicked."""
        page = self.page
        query = self.query("#lesson-choices")
        if not query or not page.choices:
            return
        grid = Grid.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=6)
        grid.add_column(ratio=1)
        for letter, text in page.choices:
            chosen = letter == page.chosen
            click = Style(meta={"@click": f"screen.answer({letter!r})"})
            sign = Text("[x] " if chosen else "[ ] ", style=(KEY if chosen else DIM) + click)
            sign.append(f"{letter})", style=KEY + click)
            style = (BOLD if chosen else Style()) + click
            grid.add_row(sign, Text(self._clean(text), style=style))
        if self._playing.reading_back and page.kind == ASK:
            grid.add_row("", Text("Answers cannot be changed.", style=DIM))
        query.first(Static).update(grid)
        self._foot()

    # -- the last line

    def _later_foot(self) -> None:
        self.call_after_refresh(self._foot)

    def _foot(self) -> None:
        """The keys, or a note in their place."""
        if not self.is_mounted:
            return
        if self._note:
            self._keys.update(Text(f" {self._charset.text(self._note)}", style=WARNING))
        else:
            self._keys.show(self._hints())

    def _hints(self) -> Sequence[Hint]:
        page, playing = self.page, self._playing
        hints: list[Hint] = [("Enter", self._enter_does(), "screen.on")]
        if playing.can_repeat and not self.more:
            hints.append(("r", "Again", "screen.again"))
        if self._asks:
            letters = f"{page.choices[0][0]}-{page.choices[-1][0]}"
            hints.insert(0, (letters, "Answer", ""))
        if playing.has_earlier:
            hints.append(("←" if self._charset.name != "ascii" else "left", "Back", "screen.back"))
        hints.append(("Esc", "Dashboard" if page.kind == END else "Leave", "screen.leave"))
        return [*hints, ("?", "Help", "app.do('help', 0)"), ("q", "Quit", "app.do('quit', 0)")]

    def _enter_does(self) -> str:
        playing = self._playing
        if self.more:
            return "Read on"
        if playing.can_run:
            return "Start the run"
        if playing.can_repeat:
            return "Continue without it"
        return "Dashboard" if self.page.kind == END else "Continue"

    # -- keys

    @property
    def _asks(self) -> bool:
        """True on a question that can be answered."""
        page = self.page
        is_question = page.kind == ASK and page.state != SKIPPED and not self._playing.reading_back
        return is_question and bool(page.choices)

    def on_key(self, event: events.Key) -> None:
        """Take an answer's letter; refuse the dashboard's keys, which would disturb the lesson."""
        char = event.character or ""
        if self._asks and char.lower() in {letter for letter, _ in self.page.choices}:
            self.action_answer(char.lower())
        elif char == "r" and self._playing.can_repeat:
            self._again()
        elif char and char in self._refused_keys:
            self._note = LESSON_RUNNING
            self._foot()
        else:
            return
        event.stop()

    def action_answer(self, letter: str) -> None:
        """Choose an answer."""
        if self._asks:
            self._playing.run.answer(letter)
            self._note = ""
            self._choices()

    def action_again(self) -> None:
        """Make a failed run again."""
        self._again()

    def action_on(self) -> None:
        """Scroll on; at the end of the page, go on with the lesson."""
        page, playing = self.page, self._playing
        if self.more:
            self.action_page(1)
            return
        if self._asks and page.chosen is None and not self._note.startswith("no answer"):
            letters = ", ".join(letter for letter, _ in page.choices)
            self._note = f"no answer yet ({letters}); Enter again skips the question"
            self._foot()
        elif playing.reading_back:
            playing.next_page()
            self.show_new_page()
        else:
            self._go_on()

    def action_back(self) -> None:
        """Read the page before."""
        if self._playing.previous_page():
            self.show_new_page()
        else:
            self._note = "this is the first page"
            self._foot()

    def action_scroll(self, by: int) -> None:
        """Scroll by one row, or to the beginning or the end."""
        self._note = ""
        self._scroll.scroll_relative(y=by, animate=False)
        self._foot()

    def action_page(self, by: int) -> None:
        """Scroll by a screen."""
        self.action_scroll(by * max(1, self._scroll.size.height - 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls."""
        self.action_scroll(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls."""
        self.action_scroll(-WHEEL_ROWS)

    def action_leave(self) -> None:
        """Leave the lesson."""
        self._leave()
