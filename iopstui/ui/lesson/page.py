"""A page of a lesson: text, figures, a question, or a run that waits to be started."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from textual import events
from textual.binding import Binding

from iopstui.lesson.page import SKIPPED, ShownPage
from iopstui.model.lesson.pages import ASK
from iopstui.text import printable
from iopstui.ui.draw.page_screen import PageScreen
from iopstui.ui.draw.rows import Line, Row
from iopstui.ui.draw.style import BOLD, DIM, KEY, WARNING, Charset
from iopstui.ui.lesson.rows import end_page, foot_keys, page_rows
from iopstui.ui.lesson.state import END, Playing

HELD = "a lesson is running: Esc leaves it"


class LessonPage(PageScreen):
    """Shows the page of ``playing``. ``go_on`` is called where Enter means more than to read,
    ``again`` to make a failed run once more, ``leave`` to leave the lesson. ``held`` are the keys
    that would disturb it."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("enter,right", "on", "goes on"),
        Binding("left", "back", "reads back"),
        Binding("escape", "leave", "leaves the lesson"),
        Binding("space", "page(1)", show=False),
    ]

    def __init__(
        self,
        playing: Playing,
        charset: Charset,
        go_on: Callable[[], None],
        again: Callable[[], None],
        leave: Callable[[], None],
        held: Collection[str],
    ) -> None:
        super().__init__(charset)
        self._playing = playing
        self._go_on, self._again, self._leave = go_on, again, leave
        self._held, self._note = held, ""

    @property
    def page(self) -> ShownPage:
        """What is shown."""
        return self._playing.page or end_page(self._playing)

    def turned(self) -> None:
        """Another page is shown now, from its top."""
        self._top, self._note = 0, ""
        self.paint()

    def head(self, width: int) -> Row:
        """The lesson's title and which page this is."""
        line, page = Line(width, self._charset), self.page
        place = "the end" if page.kind == END else f"page {page.number} of {page.total}"
        if self._playing.reading_back:
            place += ", read before"
        line.add(f" {printable(self._playing.run.lesson.title)}", BOLD)
        return line.right((f"  {place} ", DIM)).done()

    def body(self, width: int) -> Sequence[Row]:
        """The page."""
        page, playing = self.page, self._playing
        return page_rows(page, playing.verdicts(page), playing.reading_back, width, self._charset)

    def foot(self, width: int) -> Line:
        """The keys, or a note on the last one."""
        line = Line(width, self._charset).add(" ")
        if self._note:
            line.add(self._note, WARNING)
        for key, does in () if self._note else foot_keys(self._playing, self.page, self.more):
            if not line.try_add((key, KEY), (f" {does}  ", None)):
                break
        return line

    # -- keys

    def on_key(self, event: events.Key) -> None:
        """Take an answer's letter; refuse the dashboard's keys, which would disturb the lesson."""
        char = event.character or ""
        page, playing = self.page, self._playing
        letters = {letter for letter, _ in page.choices}
        answers = page.kind == ASK and page.state != SKIPPED and not playing.reading_back
        if answers and char.lower() in letters:
            playing.run.answer(char.lower())
            self._note = ""
        elif char == "r" and playing.can_repeat:
            self._again()
        elif char and char in self._held:
            self._note = HELD
        else:
            return
        event.stop()
        self.paint()

    def action_on(self) -> None:
        """Scroll on; at the end of the page, go on with the lesson."""
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
        """Read the page before."""
        if self._playing.back():
            self.turned()
        else:
            self._note = "this is the first page"
            self.paint()

    def action_scroll(self, by: int) -> None:
        """Scroll by one row, or to the beginning or the end."""
        self._note = ""
        super().action_scroll(by)

    def action_leave(self) -> None:
        """Leave the lesson."""
        self._leave()
