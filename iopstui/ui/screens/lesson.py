"""A page of a lesson: text, figures, a question, or a run that waits to be started."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen

from iopstui.model.lesson import ASK
from iopstui.session.lesson_page import SKIPPED, Page
from iopstui.text import printable
from iopstui.ui.layout import Box
from iopstui.ui.lesson_state import END, Playing
from iopstui.ui.rows import Line, Row, pad
from iopstui.ui.style import BOLD, DIM, KEY, WARNING, Charset
from iopstui.ui.widgets.lesson_rows import end_page, foot_keys, page_rows
from iopstui.ui.widgets.lines import Lines

DISTURBING = frozenset("rj[]{}baskdwc:Blx")
HELD = "a lesson is running: Esc leaves it"


class LessonPage(Screen[None]):
    """Shows the page of ``playing``. ``go_on`` is called where Enter means more than to read,
    ``again`` to make a failed run once more, ``leave`` to leave the lesson."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("enter,right", "on", "goes on"),
        Binding("left", "back", "reads back"),
        Binding("escape", "leave", "leaves the lesson"),
        Binding("down", "scroll(1)", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("home", "scroll(-1000000)", show=False),
        Binding("end", "scroll(1000000)", show=False),
    ]

    def __init__(
        self,
        playing: Playing,
        charset: Charset,
        go_on: Callable[[], None],
        again: Callable[[], None],
        leave: Callable[[], None],
    ) -> None:
        super().__init__()
        self._playing = playing
        self._charset = charset
        self._go_on, self._again, self._leave = go_on, again, leave
        self._top = 0
        self._rows = 0
        self._note = ""
        self.panels = [Lines("lesson-head"), Lines("lesson-body"), Lines("lesson-foot")]

    def compose(self) -> ComposeResult:
        """Title, page, keys."""
        yield from self.panels

    def on_resize(self, event: events.Resize) -> None:
        """Places everything anew."""
        width, height = self.app.size
        head, body, foot = self.panels
        head.place(Box(0, 0, width, 1))
        body.place(Box(0, 1, width, max(0, height - 2)))
        foot.place(Box(0, height - 1, width, 1 if height > 1 else 0))
        self.paint()

    @property
    def page(self) -> Page:
        """What is shown."""
        return self._playing.page or end_page(self._playing)

    @property
    def more(self) -> bool:
        """Whether there is more of the page below."""
        return self._top + self.panels[1].box.height < self._rows

    def turned(self) -> None:
        """Another page is shown now, from its top."""
        self._top, self._note = 0, ""
        self.paint()

    def paint(self) -> None:
        """Shows the page; rows that are the same are not sent again."""
        head, body, foot = self.panels
        width, height = body.box.width, body.box.height
        if width < 2 or height < 1:
            return
        page, playing = self.page, self._playing
        rows = page_rows(page, playing.verdicts(page), playing.reading_back, width, self._charset)
        self._rows = len(rows)
        self._top = max(0, min(self._top, len(rows) - height))
        head.show([self._head(page, width)])
        body.show(pad(rows[self._top :], height, width))
        foot.show([self._foot(page, width)])

    def _head(self, page: Page, width: int) -> Row:
        line = Line(width, self._charset)
        place = "the end" if page.kind == END else f"page {page.number} of {page.total}"
        if self._playing.reading_back:
            place += ", read before"
        line.add(f" {printable(self._playing.run.lesson.title)}", BOLD)
        return line.right((f"  {place} ", DIM)).done()

    def _foot(self, page: Page, width: int) -> Row:
        line = Line(width, self._charset).add(" ")
        if self._note:
            line.add(self._note, WARNING)
        for key, does in () if self._note else foot_keys(self._playing, page, self.more):
            if not line.try_add((key, KEY), (f" {does}  ", None)):
                break
        height = self.panels[1].box.height
        if self._rows > height:
            last = min(self._rows, self._top + height)
            line.right((f"{self._top + 1}-{last} of {self._rows} ", DIM))
        return line.done()

    # -- keys

    def on_key(self, event: events.Key) -> None:
        """Answers; and keys of the dashboard, which would disturb."""
        char = event.character or ""
        page, playing = self.page, self._playing
        letters = {letter for letter, _ in page.choices}
        answers = page.kind == ASK and page.state != SKIPPED and not playing.reading_back
        if answers and char.lower() in letters:
            playing.run.answer(char.lower())
            self._note = ""
        elif char == "r" and playing.can_repeat:
            self._again()
        elif char in DISTURBING and char:
            self._note = HELD
        else:
            return
        event.stop()
        self.paint()

    def action_on(self) -> None:
        """Enter, right: reads on, then goes on."""
        page, playing = self.page, self._playing
        if self.more:
            self.action_page(1)
            return
        asked = page.kind == ASK and page.state != SKIPPED and not playing.reading_back
        if asked and page.chosen is None and not self._note.startswith("no answer"):
            letters = ", ".join(letter for letter, _ in page.choices)
            self._note = f"no answer yet ({letters}); Enter again goes on without one"
            self.paint()
            return
        if playing.reading_back:
            playing.on()
            self.turned()
        else:
            self._go_on()

    def action_back(self) -> None:
        """left"""
        if self._playing.back():
            self.turned()
        else:
            self._note = "this is the first page"
            self.paint()

    def action_scroll(self, by: int) -> None:
        """Arrows, Home, End."""
        self._top = max(0, self._top + by)
        self._note = ""
        self.paint()

    def action_page(self, by: int) -> None:
        """Page keys."""
        self.action_scroll(by * max(1, self.panels[1].box.height - 1))

    def action_leave(self) -> None:
        """Esc."""
        self._leave()
