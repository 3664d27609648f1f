"""The list of lessons: their subject and duration, and which parts work on this target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import OptionList, Static

from iopstui.features.lessons.model.pages import Lesson
from iopstui.features.lessons.play.library import LessonOffer
from iopstui.format import counted
from iopstui.text import printable
from iopstui.ui.core.key import Key
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, Hint
from iopstui.ui.dialogs.questions import Picker
from iopstui.ui.dialogs.text import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.rows import fit
from iopstui.ui.draw.style import BOLD, DIM, KEY, WARNING, Charset

START_HINT: Hint = ("Enter", "Start", "screen.take")
CONTINUE_HINTS: tuple[Hint, ...] = (
    ("Enter", "Continue", "screen.take"),
    ("n", "Start over", "screen.anew"),
)
SCROLL_HINT: Hint = ("PgUp PgDn", "Scroll", "")
STATE_WIDTH, TITLE_WIDTH = 11, 76


@dataclass(frozen=True, slots=True)
class LessonChoice:
    """The lesson to play; ``start_over`` is False to continue where it was paused."""

    lesson: Lesson
    start_over: bool


class LessonList(TypeToFilter, Picker["LessonChoice | None"]):
    """The list of lessons. ``target`` is what they measure; ``paused`` is (name, position) of the
    lesson that was left before its end; ``results`` are those of finished lessons, by name."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("n", "anew", "anew"),
        Binding("pagedown", "scroll(1)", priority=True),
        Binding("pageup", "scroll(-1)", priority=True),
    ]

    size_class = "wide"
    about = (
        "Choose a lesson: Enter starts it or continues where you left; n starts over. Parts that "
        "this target cannot show are listed below."
    )

    def __init__(
        self,
        offers: Sequence[LessonOffer],
        target: str,
        paused: tuple[str, str] | None,
        results: Mapping[str, str],
        charset: Charset,
        opened_by: Key,
    ) -> None:
        title = f"Lessons on {printable(target)}"
        super().__init__(
            title, charset, (START_HINT, SCROLL_HINT, FILTER_HINT, CLOSE_HINT), opened_by
        )
        self._offers = self.items = list(offers)
        self._paused = paused
        self._results = dict(results)

    def content(self) -> ComposeResult:
        yield OptionList(id="lessons-list")
        with VerticalScroll(id="lessons-scroll", can_focus=False):
            yield Static(id="lessons-text")

    def on_mount(self) -> None:
        """Focus the list, with the cursor on the paused lesson, if there is one."""
        names = [offer.lesson.name for offer in self._offers]
        current = self._paused[0] if self._paused else self._next_unplayed()
        self._fill(names.index(current) if current in names else 0)
        self.query_one(OptionList).focus()
        self.explain()

    def _next_unplayed(self) -> str:
        """The first lesson without a result."""
        names = [offer.lesson.name for offer in self._offers]
        return next((name for name in names if name not in self._results), "")

    def on_resize(self, event: events.Resize) -> None:
        """Adapt the columns to the width."""
        self._fill(self.query_one(OptionList).highlighted or 0)

    def _fill(self, cursor: int = 0) -> None:
        self.show_items(self.items, map(self._label, self.items), cursor)

    def apply_filter(self) -> None:
        self.items = [
            offer
            for offer in self._offers
            if self.matches(offer.lesson.name, offer.lesson.title, offer.lesson.teaches)
        ]
        self._fill()
        self.explain()

    def _label(self, offer: LessonOffer) -> Text:
        """The number, title, duration and state of a lesson. The title gets most of the space."""
        lesson = offer.lesson
        number = lesson.name.partition("-")[0].lstrip("0")
        suffix = f" {lesson.minutes:>2g} min {self._state_text(offer):<{STATE_WIDTH}}"
        width = max(16, min(TITLE_WIDTH, min(110, self.app.size.width) - len(suffix) - 6))
        title = fit(f"{number:<2}{printable(lesson.title)}", width)
        text = Text(self.charset.text(title), style=BOLD, no_wrap=True)
        return text.append(self.charset.text(suffix), style="")

    def _state_text(self, offer: LessonOffer) -> str:
        if self._paused is not None and offer.lesson.name == self._paused[0]:
            return "left"
        if offer.lesson.name in self._results:
            return "played"
        possible = len(offer.lesson.runs) - len(offer.impossible_runs)
        return "" if not offer.impossible_runs else "partly here" if possible else "not here"

    def explain(self) -> None:
        offer: LessonOffer | None = self.selected
        hints: tuple[Hint, ...] = (START_HINT,)
        empty_text = (
            "No lesson has all of these words." if self._offers else "There are no lessons."
        )
        text = Text(empty_text, style=DIM)
        if offer is not None:
            text = self._explanation(offer)
            if self._paused is not None and offer.lesson.name == self._paused[0]:
                hints = CONTINUE_HINTS
        self.query_one("#lessons-text", Static).update(text)
        self.keys.show((*hints, SCROLL_HINT, FILTER_HINT, CLOSE_HINT), self.filter_hint)
        self.query_one("#lessons-scroll", VerticalScroll).scroll_home(animate=False)

    def _explanation(self, offer: LessonOffer) -> Text:
        lesson = offer.lesson
        paused = self._paused
        text = Text().append(self.clean(lesson.title) + "\n\n", style=BOLD)
        for label, value in (
            ("Left", f"on {paused[1]}" if paused and paused[0] == lesson.name else ""),
            ("Played", self._results.get(lesson.name, "")),
            ("Teaches", lesson.teaches),
            ("Duration", f"about {lesson.minutes:g} min, {counted(len(lesson.runs), 'run')}, "
             f"{lesson.seconds:.0f} s of fio"),
            ("Here", _possible_text(offer)),
            ("Sources", lesson.source),
        ):  # fmt: skip
            if value:
                style = WARNING if label == "Here" and offer.impossible_runs else ""
                text.append(f"{label}: ", style=KEY)
                text.append(self.clean(value) + "\n\n", style=style)
        return text

    def take(self) -> None:
        """Start the lesson under the cursor; continue it if it was paused."""
        self._choose(start_over=False)

    def action_anew(self) -> None:
        """Start the lesson under the cursor from its first page, even if it was paused."""
        self._choose(start_over=True)

    def _choose(self, start_over: bool) -> None:
        offer: LessonOffer | None = self.selected
        if offer is not None:
            is_paused = self._paused is not None and offer.lesson.name == self._paused[0]
            self.dismiss(LessonChoice(offer.lesson, start_over or not is_paused))


def _possible_text(offer: LessonOffer) -> str:
    """Which parts of the lesson work on this target, and why the others do not."""
    if not offer.impossible_runs:
        return "all runs are possible"
    total = len(offer.lesson.runs)
    possible = total - len(offer.impossible_runs)
    summary = (
        f"{possible} of {counted(total, 'run')} possible" if possible else "no run is possible"
    )
    return f"{summary}: {'; '.join(dict.fromkeys(offer.impossible_runs.values()))}"
