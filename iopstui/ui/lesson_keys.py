"""Key l: guided experiments. Pages are read on a screen of their own; a run is watched on the
dashboard, with a strip that says what to look at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from textual.binding import Binding, BindingType

from iopstui.errors import IopstuiError
from iopstui.model.lesson import Lesson
from iopstui.session.events import Ended, Event, Mark, StepFinished, StepStarted
from iopstui.session.prepare import JobRequest
from iopstui.text import printable
from iopstui.ui.app_parts import AppPart, Command
from iopstui.ui.messages import Controller
from iopstui.ui.rows import Row
from iopstui.ui.widgets.bars import KeyHint

if TYPE_CHECKING:
    from textual.actions import ActionParseResult
    from textual.dom import DOMNode

    from iopstui.session.lesson import LessonRun
    from iopstui.session.lesson_facts import Surroundings
    from iopstui.session.lessons import Offer
    from iopstui.ui.lesson_state import Playing
    from iopstui.ui.screens.lessons import Chosen

LESSON_ACTIONS = {"lessons", "lesson_on", "lesson_escape"}
LESSON_HINTS = (KeyHint("l", "lessons"),)
DISTURBING = {
    "choose_job", "knob", "block_size", "choose_device", "rq_affinity", "scheduler", "settings",
    "option", "bind_queues", "sweep", "compare", "lessons",
}  # fmt: skip
ALLOWED = {"Messages", "Quit"}
ALLOWED_ON_DASHBOARD = {
    "Mark this moment", "Freeze or go on", "Charts: longer time", "Charts: shorter time", "Help",
    "Queue map", "Latency: heat map or lines", "Heat map: percentiles over it", "Findings",
    "Record",
}  # fmt: skip
QUIET = {"m", "space", "- +", "e", "ctrl+p", "R", "f", "h", "o"}


@runtime_checkable
class Teachable(Protocol):
    """A session that can run what a lesson asks for (session/live.py)."""

    def run_request(self, request: JobRequest) -> None:
        """Run this."""
        ...

    def put_back(self, settings: Sequence[tuple[str, str]]) -> None:
        """Set these (name, value) again, as far as they are different by now."""
        ...


class Lessons(Protocol):
    """The lessons of one session (session/lessons.py)."""

    def offers(self) -> Sequence[Offer]:
        """All of them; raises IopstuiError."""
        ...

    def begin(self, lesson: Lesson) -> LessonRun:
        """At its first page; raises IopstuiError."""
        ...

    def around(self) -> Surroundings:
        """What is known of the target now."""
        ...


MakeLessons = Callable[[Controller], Lessons]


class LessonKeys(AppPart):
    """What these keys do. The rest of the application is ui/app.py."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("l", "lessons", "lessons")]

    lessons: MakeLessons | None = None
    first_lesson: Lesson | None = None
    playing: Playing | None = None
    """The lesson that is played."""
    _left: Playing | None = None
    """The one that was left in its middle."""
    played: dict[str, str]
    """What came of the lessons that were finished, by name."""
    _undoing: asyncio.Task[None] | None = None
    _view: tuple[int, bool] | None = None
    _step_before: tuple[Any, ...] = ()
    _last_words: str = ""
    """What was said when the lesson was left, while settings are put back."""

    # -- the list

    def action_lessons(self) -> None:
        """l"""
        controller = self.controller
        if controller is None or self.experiment_holds():
            return
        if self.lessons is None or not isinstance(controller, Teachable):
            self._say("info", "no lesson can be played in this session")
            return
        if controller.running or self.state.running or self.state.asked:
            self._say("info", "a job is running: stop it first (r), then choose a lesson (l)")
            return
        self.run_worker(self._open_list(self.lessons(controller)), group="lessons", exclusive=True)

    async def _open_list(self, lessons: Lessons) -> None:
        try:
            offers = await asyncio.to_thread(lessons.offers)
        except IopstuiError as error:
            self._say("error", f"{error.message} {error.hint}".strip())
            return
        from iopstui.ui.screens.lessons import LessonList

        controller, dashboard = self.controller, self.dashboard
        if controller is None or dashboard is None or not dashboard.is_current:
            return
        target, left = controller.target, self._left
        where = f"{target.path} ({', '.join(target.on)})" if target.on else target.path
        self.push_screen(
            LessonList(
                offers, where, (left.run.lesson.name, left.place) if left else None,
                self.played, self.charset,
            ),
            self._lesson_chosen,
        )  # fmt: skip

    def _lesson_chosen(self, chosen: Chosen | None) -> None:
        if chosen is not None:
            self.begin_lesson(chosen.lesson, chosen.anew)

    def begin_lesson(self, lesson: Lesson, anew: bool = True) -> None:
        """Open its first page, or the one where it was left."""
        controller = self.controller
        if controller is None or self.lessons is None or self.playing is not None:
            return
        left = None if anew else self._left
        self.run_worker(
            self._begin(self.lessons(controller), lesson, left), group="lessons", exclusive=True
        )

    async def _begin(self, lessons: Lessons, lesson: Lesson, left: Playing | None) -> None:
        from iopstui.ui.lesson_state import Playing

        if self._undoing is not None:
            await self._undoing
        try:
            if left is None:
                playing = Playing(await asyncio.to_thread(lessons.begin, lesson))
            else:
                playing = left
                playing.run.look_again(await asyncio.to_thread(lessons.around))
        except IopstuiError as error:
            self._say("error", f"{error.message} {error.hint}".strip())
            return
        dashboard = self.dashboard
        if dashboard is None:
            return
        self.forget_pending()
        self.playing, self._left = playing, None
        self._view = (dashboard.tab, dashboard.heat_shown)
        state = self.state
        self._step_before = (state.step, state.finished, state.fio, state.judged, state.steady)
        self._refresh_hints()
        self._open_page()

    # -- pages

    def _open_page(self) -> None:
        from iopstui.ui.screens.lesson import LessonPage

        if self.playing is not None:
            self.push_screen(
                LessonPage(
                    self.playing, self.charset, self.lesson_on, self.lesson_again,
                    self.leave_lesson,
                )
            )  # fmt: skip

    def _page_turned(self) -> None:
        """Shows the page where the lesson is now."""
        from iopstui.ui.screens.lesson import LessonPage

        screen = self.screen
        if isinstance(screen, LessonPage):
            screen.turned()
        else:
            self._open_page()

    def _close_page(self) -> None:
        from iopstui.ui.screens.lesson import LessonPage

        if isinstance(self.screen, LessonPage):
            self.pop_screen()

    def lesson_on(self) -> None:
        """Enter: start the run that is shown, or go on."""
        playing = self.playing
        if playing is None or playing.run.running:
            return
        if playing.run.over:
            self._finish()
        elif playing.can_run:
            self._run_lesson()
        else:
            playing.on()
            if playing.run.over:
                self._undo(playing)
            self._refresh_hints()
            self._page_turned()

    def lesson_again(self) -> None:
        """r after a run that failed"""
        if self.playing is not None and self.playing.can_repeat:
            self._run_lesson()

    def action_lesson_on(self) -> None:
        """Enter on the dashboard"""
        self.lesson_on()

    def action_lesson_escape(self) -> None:
        """Esc on the dashboard: stop the run; leave the lesson if none runs"""
        playing, controller = self.playing, self.controller
        if playing is None or controller is None:
            return
        if playing.run.running:
            playing.stopping = True
            controller.stop_job()
            self._paint_strip()
        else:
            self.leave_lesson()

    # -- runs

    def _run_lesson(self) -> None:
        """Run what the page shows; the dashboard is what one sees then."""
        playing, controller, dashboard = self.playing, self.controller, self.dashboard
        if playing is None or dashboard is None or not isinstance(controller, Teachable):
            return
        step = playing.measured
        try:
            if self.state.ended:
                raise IopstuiError("the session has ended, nothing can be measured any more")
            request = playing.run.request(getattr(controller, "interval_s", 1.0))
        except (IopstuiError, OSError) as error:
            hint = error.hint if isinstance(error, IopstuiError) else ""
            playing.run.give_up(f"{error} {hint}".strip())
            self._page_turned()
            return
        playing.watching, playing.stopping = True, False
        self._close_page()
        dashboard.go_on()
        self._show_looked_at()
        self.state.ask()
        if step is not None:
            controller.mark(printable(f"lesson: {step.title}"))
        controller.run_request(request)
        self._refresh_hints()
        self._paint_strip()

    def _show_looked_at(self) -> None:
        """Opens the pane that the run is about, where not all can be seen."""
        from iopstui.ui.widgets.lesson_rows import PANES

        playing, dashboard = self.playing, self.dashboard
        step = playing.measured if playing is not None else None
        if step is None or dashboard is None:
            return
        panes = [pane for pane, _ in step.look]
        if "heat" in panes or "latency" in panes:
            dashboard.show_heat("heat" in panes)
        tab = next((PANES[pane][1] for pane in panes if PANES[pane][1] is not None), None)
        if tab is not None:
            dashboard.show_tab(tab)

    def lesson_event(self, event: Event) -> None:
        """An event of the session, after the state has taken it in."""
        playing = self.playing
        if playing is None and self._last_words:
            self._keep_last_words(event)
        if playing is None or not playing.run.running:
            return
        if isinstance(event, StepStarted):
            self.state.notice = None
        ended = playing.run.feed(event)
        if isinstance(event, Ended):
            playing.run.give_up("the session has ended")
            ended = True
        if ended and not (isinstance(event, StepFinished) and event.error):
            # "press r to run it again" is no advice now
            self.state.notice = None

    def _keep_last_words(self, event: Event) -> None:
        """The marks of the settings that are put back are no news, where the lesson was left is."""
        if isinstance(event, StepStarted):
            self._last_words = ""
        elif isinstance(event, Mark) and "→" in event.text:
            self._say("info", self._last_words)

    def lesson_rows(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        """The strip of the dashboard; none without a run that is watched."""
        playing = self.playing
        if playing is None or not playing.watching:
            return ()
        from iopstui.ui.widgets.lesson_rows import strip_rows

        return strip_rows(playing, tabbed, self.state.layout, width, height, self.charset)

    def _paint_strip(self) -> None:
        if self.dashboard is not None:
            self.dashboard.paint()

    # -- its end

    def leave_lesson(self) -> None:
        """Esc: to the dashboard; l goes on with it."""
        playing = self.playing
        if playing is None or playing.run.running:
            return
        if playing.run.over:
            self._finish()
            return
        playing.to_here()
        playing.watching = False
        self._left = playing
        self._undo(playing)
        self._back_to_dashboard()
        self._last_word(f"left the lesson on {playing.place}: l goes on with it")

    def _finish(self) -> None:
        playing = self.playing
        if playing is None:
            return
        good, judged = playing.score()
        words = f"{good} of {judged} answers borne out" if judged else "no question was answered"
        self.played[playing.run.lesson.name] = words
        self._back_to_dashboard()
        self._last_word(f"the lesson is over, {words}; l shows the other lessons")

    def _last_word(self, words: str) -> None:
        self._last_words = words
        self._say("info", words)

    def _back_to_dashboard(self) -> None:
        """Everything is shown as it was before the lesson; its seconds stay in the charts."""
        self._close_page()
        self.playing = None
        dashboard, state = self.dashboard, self.state
        if dashboard is not None and self._view is not None:
            dashboard.tab, dashboard.heat_shown = self._view
            dashboard.relayout()
        if self._step_before:
            state.step, state.finished, state.fio, state.judged, state.steady = self._step_before
        self._view, self._step_before = None, ()
        self._refresh_hints()
        self._paint_strip()

    def _undo(self, playing: Playing) -> None:
        """Puts the settings back and removes the scratch files; nothing runs."""
        controller = self.controller
        found = playing.run.found_knobs()
        if found and isinstance(controller, Teachable):
            controller.put_back(found)
        self._undoing = asyncio.create_task(asyncio.to_thread(playing.run.close))

    async def lesson_ended(self) -> None:
        """After the session was closed: removes the lesson's scratch files."""
        if self._undoing is not None:
            await self._undoing
        await asyncio.to_thread(self.end_lesson)

    def end_lesson(self) -> None:
        """The same, where nothing else does it any more."""
        for playing in (self.playing, self._left):
            if playing is not None:
                playing.run.close()

    def forget_lesson(self) -> None:
        """Another target: what was left can't go on there."""
        self.end_lesson()
        self.playing = self._left = self._view = None
        self._step_before = ()

    # -- what other keys must know

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Keys of the dashboard that would disturb a lesson say so instead."""
        self._last_words = ""
        name = action if isinstance(action, str) else action[1]
        name = name.partition("(")[0].rpartition(".")[2]
        on_dashboard = self.dashboard is not None and self.dashboard.is_current
        if on_dashboard and self.lesson_holds(name):
            return True
        return await super().run_action(action, default_namespace, namespaces)

    def lesson_holds(self, action: str) -> bool:
        """True, and said, for what must not be done while a lesson is played."""
        playing = self.playing
        if playing is None:
            return False
        if action == "run_or_stop":
            if playing.watching and playing.can_repeat:
                self.lesson_again()
            else:
                self._say("info", _held(playing))
            return True
        if action in DISTURBING:
            self._say("info", _held(playing))
            return True
        return False

    def with_lesson(self, hints: Sequence[KeyHint]) -> Sequence[KeyHint]:
        """The footer's keys: those of the lesson in front while one is played."""
        playing = self.playing
        if playing is None:
            busy = self.state.running or self.experimenting
            return hints if busy else (*hints[:2], *LESSON_HINTS, *hints[2:])
        if playing.run.running:
            own = [KeyHint("Esc", "stop the run")]
        else:
            own = [KeyHint("Enter", "go on"), KeyHint("Esc", "leave the lesson")]
            if playing.can_repeat:
                own.insert(1, KeyHint("r", "again"))
        return (*own, *(hint for hint in hints if hint.key in QUIET))

    def lesson_allows(self, commands: Sequence[Command]) -> Sequence[Command]:
        """Of the command palette, what may be done while a lesson is played."""
        playing = self.playing
        if playing is None:
            return commands
        own = {title for title, _, _ in self.lesson_commands()}
        here = own | ALLOWED | (ALLOWED_ON_DASHBOARD if playing.watching else set())
        return [command for command in commands if command[0] in here]

    def lesson_commands(self) -> list[Command]:
        """For the command palette."""
        playing = self.playing
        if playing is None:
            return [("Lessons", "key l: guided experiments", self.action_lessons)]
        if playing.run.running:
            return [("Stop the lesson's run", "key Esc", self.action_lesson_escape)]
        return [
            ("Go on with the lesson", "key Enter", self.lesson_on),
            ("Leave the lesson", "key Esc: l goes on with it later", self.leave_lesson),
        ]


def _held(playing: Playing) -> str:
    how = "Esc stops the run" if playing.run.running else "Esc leaves it"
    return f"a lesson is running, which that would disturb: {how}"
