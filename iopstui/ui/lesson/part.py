"""Key l: guided experiments. Pages are read on a screen of their own; a run is watched on the
dashboard, with a strip that says what to look at."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from iopstui.errors import IopstuiError
from iopstui.events import Event, Mark, SessionEnded, StepFinished, StepStarted
from iopstui.text import printable
from iopstui.ui.actions import EXPERIMENT, IDLE, LESSON, Action, Footer, Part
from iopstui.ui.core import pages
from iopstui.ui.core.backend import MakeLessons
from iopstui.ui.core.key import Key
from iopstui.ui.draw.rows import Row
from iopstui.ui.parts.experiment import ExperimentKeys
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.lesson.offers import Lessons
    from iopstui.model.lesson.pages import Lesson
    from iopstui.ui.dashboard.screen import ViewState
    from iopstui.ui.lesson.list import LessonChoice
    from iopstui.ui.lesson.state import Playing
    from iopstui.ui.state.live import DisplayedRun

ACTIONS_ON_PAGE = {"log", "quit"}
"""What the palette offers while a page is read; during a run that is all that disturbs nothing."""


class LessonKeys(Part):
    """The lesson that is ``playing``, or the choice of one. Without ``lessons`` there is none;
    ``first`` is begun at once."""

    def __init__(
        self,
        port: Port,
        jobs: JobKeys,
        experiments: ExperimentKeys,
        lessons: MakeLessons | None,
        first: Lesson | None,
        locked: Collection[str],
    ) -> None:
        super().__init__(port)
        self.lessons = lessons
        self.playing: Playing | None = None
        self.undoing: asyncio.Task[None] | None = None
        self._jobs = jobs
        self._experiments = experiments
        self._first, self._refused_keys = first, locked
        self._left: Playing | None = None
        # what came of the lessons that were finished, by name
        self._played: dict[str, str] = {}
        # what the dashboard showed before the lesson
        self._before: tuple[ViewState, DisplayedRun] | None = None
        # what was said when the lesson was left, while settings are put back
        self._last_words = ""

    # -- the list

    def choose(self) -> None:
        """Opens the list."""
        session, state = self.port.live, self.port.state
        if session is None:
            return
        if self.lessons is None:
            self.port.show_message("info", "no lesson can be played in this session")
            return
        if session.running or state.running or state.next_run.requested:
            message = "a job is running: stop it first (r), then choose a lesson (l)"
            self.port.show_message("info", message)
            return
        self.port.run_in_background(self._open_list(self.lessons(session)), "lessons")

    async def _open_list(self, lessons: Lessons) -> None:
        try:
            offers = await asyncio.to_thread(lessons.offers)
        except IopstuiError as error:
            self.port.show_message("error", f"{error.message} {error.hint}".strip())
            return
        from iopstui.ui.lesson.list import LessonList

        session = self.port.session
        if session is None or not self.port.is_shown(self.port.dashboard):
            return
        target, paused = session.target, self._left
        target_text = (
            f"{target.path} ({', '.join(target.devices_below)})"
            if target.devices_below
            else target.path
        )
        place = (paused.run.lesson.name, paused.position) if paused else None
        lesson_list = LessonList(offers, target_text, place, self._played, self.port.charset)
        self.port.push(lesson_list, self._lesson_chosen)

    def _lesson_chosen(self, chosen: LessonChoice | None) -> None:
        if chosen is not None:
            self._begin(chosen.lesson, chosen.anew)

    def begin_first(self) -> None:
        """The lesson of the command line."""
        if self._first is not None:
            lesson, self._first = self._first, None
            self._begin(lesson)

    def _begin(self, lesson: Lesson, anew: bool = True) -> None:
        """Open its first page, or the one where it was left."""
        session = self.port.session
        if session is None or self.lessons is None or self.playing is not None:
            return
        paused = None if anew else self._left
        self.port.run_in_background(self._begun(self.lessons(session), lesson, paused), "lessons")

    async def _begun(self, lessons: Lessons, lesson: Lesson, paused: Playing | None) -> None:
        from iopstui.ui.lesson.state import Playing

        if self.undoing is not None:
            await self.undoing
        try:
            if paused is None:
                playing = Playing(await asyncio.to_thread(lessons.start, lesson))
            else:
                playing = paused
                playing.run.update_facts(await asyncio.to_thread(lessons.current_facts))
        except IopstuiError as error:
            self.port.show_message("error", f"{error.message} {error.hint}".strip())
            return
        dashboard = self.port.dashboard
        if dashboard is None:
            return
        self._jobs.forget_pending()
        self.playing, self._left = playing, None
        self._before = (dashboard.view, self.port.state.displayed_run)
        self.port.refresh_footer()
        self._open_page()

    # -- pages

    def _open_page(self) -> None:
        from iopstui.ui.lesson.page import LessonPage

        if self.playing is not None:
            page = LessonPage(
                self.playing, self.port.charset, self.go_on, self.repeat_run, self.leave,
                self._refused_keys, lambda: self.port.state,
            )  # fmt: skip
            self.port.push(page)

    def _page_turned(self) -> None:
        """Shows the page where the lesson is now."""
        from iopstui.ui.lesson.page import LessonPage

        screen = self.port.screen
        if isinstance(screen, LessonPage):
            screen.show_new_page()
        else:
            self._open_page()

    def _close_page(self) -> None:
        from iopstui.ui.lesson.page import LessonPage

        if isinstance(self.port.screen, LessonPage):
            self.port.pop()

    def go_on(self) -> None:
        """Start the run of the page shown, or go on to the next page."""
        playing = self.playing
        if playing is None or playing.run.running:
            return
        if playing.run.is_over:
            self._finish()
        elif playing.can_run:
            self._run_lesson()
        else:
            playing.next_page()
            if playing.run.is_over:
                self._undo(playing)
            self.port.refresh_footer()
            self._page_turned()

    def repeat_run(self) -> None:
        """Make a failed or stopped run again."""
        if self.playing is not None and self.playing.can_repeat:
            self._run_lesson()

    def escape(self) -> None:
        """Stop the run; leave the lesson if none runs."""
        playing, session = self.playing, self.port.session
        if playing is None or session is None:
            return
        if playing.run.running:
            playing.stop()
            session.stop_job()
            self.port.paint()
        else:
            self.leave()

    # -- runs

    def _run_lesson(self) -> None:
        """Run what the page shows; the dashboard is what one sees then."""
        playing, session, dashboard = self.playing, self.port.live, self.port.dashboard
        if playing is None or dashboard is None or session is None:
            return
        step = playing.measured
        try:
            if self.port.state.ended:
                raise IopstuiError("the session has ended; no more measurements")
            request = playing.run.request(getattr(session, "interval_s", 1.0))
        except (IopstuiError, OSError) as error:
            hint = error.hint if isinstance(error, IopstuiError) else ""
            playing.run.give_up(f"{error} {hint}".strip())
            self._page_turned()
            return
        playing.watch()
        self._close_page()
        dashboard.unfreeze()
        self._show_looked_at()
        self.port.state.request_run()
        if step is not None:
            session.mark(printable(f"lesson: {step.title}"))
        session.run_request(request)
        self.port.refresh_footer()
        self.port.paint()

    def _show_looked_at(self) -> None:
        """Opens the pane that the run is about, where not all can be seen."""
        from iopstui.ui.lesson.rows import PANES

        playing, dashboard = self.playing, self.port.dashboard
        step = playing.measured if playing is not None else None
        if step is None or dashboard is None:
            return
        panes = [pane for pane, _ in step.look]
        if "heat" in panes or "latency" in panes:
            dashboard.show_heat("heat" in panes)
        tab = next((PANES[pane][1] for pane in panes if PANES[pane][1] is not None), None)
        if tab is not None:
            dashboard.show_tab(tab)

    def event(self, event: Event) -> None:
        """An event of the session, after the state has taken it in."""
        playing = self.playing
        if playing is None and self._last_words:
            self._keep_last_messages(event)
        if playing is None or not playing.run.running:
            return
        has_ended = playing.run.feed(event)
        match event:
            case SessionEnded():
                playing.run.give_up("the session has ended")
                self.port.state.log.forget_notice()
            case StepFinished() if event.error:
                pass
            case _ if has_ended or isinstance(event, StepStarted):
                # "press r to run it again" is no advice now
                self.port.state.log.forget_notice()

    def _keep_last_messages(self, event: Event) -> None:
        """The marks of the settings that are put back are no news, where the lesson was left is."""
        match event:
            case StepStarted():
                self._last_words = ""
            case Mark() if "→" in event.text:
                self.port.show_message("info", self._last_words)

    def strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        """The strip of the dashboard; none without a run that is watched."""
        playing = self.playing
        if playing is None or not playing.watching:
            return ()
        from iopstui.ui.lesson.rows import strip_rows

        port = self.port
        return strip_rows(playing, tabbed, port.state.creating_file, width, height, port.charset)

    # -- its end

    def leave(self) -> None:
        """Go to the dashboard; l goes on with the lesson."""
        playing = self.playing
        if playing is None or playing.run.running:
            return
        if playing.run.is_over:
            self._finish()
            return
        playing.leave()
        self._left = playing
        self._undo(playing)
        self._back_to_dashboard()
        self._last_word(f"left the lesson on {playing.position}; l continues it")

    def _finish(self) -> None:
        playing = self.playing
        if playing is None:
            return
        good, judged = playing.score()
        result = f"{good} of {judged} answers confirmed" if judged else "no question was answered"
        self._played[playing.run.lesson.name] = result
        self._back_to_dashboard()
        self._last_word(f"lesson finished, {result}; l: other lessons")

    def _last_word(self, message: str) -> None:
        self._last_words = message
        self.port.show_message("info", message)

    def _back_to_dashboard(self) -> None:
        """Everything is shown as it was before the lesson; its seconds stay in the charts."""
        self._close_page()
        self.playing = None
        if self._before is not None:
            view, run = self._before
            if self.port.dashboard is not None:
                self.port.dashboard.show_view(view)
            self.port.state.show_run(run)
        self._before = None
        self.port.refresh_footer()
        self.port.paint()

    def _undo(self, playing: Playing) -> None:
        """Puts the settings back and removes the scratch files; nothing runs."""
        session = self.port.live
        knobs = playing.run.original_knobs()
        if knobs and session is not None:
            session.put_back(knobs)
        self.undoing = asyncio.create_task(asyncio.to_thread(playing.run.close))

    async def ended(self) -> None:
        """Remove the lesson's scratch files after the session was closed."""
        if self.undoing is not None:
            await self.undoing
        await asyncio.to_thread(self.end)

    def end(self) -> None:
        """End like ``ended``, when nobody else calls it any more."""
        for playing in (self.playing, self._left):
            if playing is not None:
                playing.run.close()

    def forget(self) -> None:
        """Another target: what was left can't go on there."""
        self.end()
        self.playing = self._left = self._before = None

    # -- what other keys must know

    @property
    def idle(self) -> bool:
        """True while a lesson can be begun."""
        return self.playing is None and not self._experiments.experimenting

    @property
    def waits(self) -> bool:
        """True while a lesson is played and none of its runs is under way."""
        return self.playing is not None and not self.playing.run.running

    @property
    def runs(self) -> bool:
        """True while a run of the lesson is under way."""
        return self.playing is not None and self.playing.run.running

    @property
    def can_repeat(self) -> bool:
        """True after a run that failed or was stopped."""
        return self.waits and self.playing is not None and self.playing.can_repeat

    @property
    def mode(self) -> str | None:
        """LESSON from its first page to its end."""
        return LESSON if self.playing is not None else None

    def refuses(self, action: Action) -> bool:
        """Keys of the dashboard that would disturb a lesson say so instead."""
        self._last_words = ""
        playing = self.playing
        if playing is None or LESSON not in action.disturbs:
            return False
        if action.id == "run_or_stop" and playing.watching and playing.can_repeat:
            self.repeat_run()
        else:
            advice = "Esc stops the run" if playing.run.running else "Esc leaves it"
            self.port.show_message("info", f"a lesson is running: {advice}")
        return True

    def offers(self, action: Action) -> bool:
        """Actions offered in the palette while a lesson is played."""
        if self.playing is None or any(action is a for a in self.ACTIONS):
            return True
        return action.id in ACTIONS_ON_PAGE or (self.playing.watching and action.quiet)

    ACTIONS = (
        Action(
            "lessons", (pages.LESSONS,), choose,
            title=lambda lessons: "Lessons" if lessons.playing is None else "",
            note="guided experiments",
            help="lessons: guided experiments on this target",
            place=240, footer=(Footer("lessons", {IDLE: 30}, when=lambda lessons: lessons.idle),),
            disturbs=frozenset({EXPERIMENT, LESSON}), measures=True,
        ),
        Action(
            "lesson_on", (Key("enter", "Enter", on_dashboard=True),), go_on,
            title="Continue the lesson", applies=lambda lessons: lessons.waits,
            footer=(Footer("continue", {LESSON: 10}, when=lambda lessons: lessons.waits),),
        ),
        Action(
            # pressed on the dashboard r does this too
            "lesson_again", (Key("", "r"),), repeat_run, applies=lambda lessons: lessons.can_repeat,
            footer=(Footer("again", {LESSON: 20}, when=lambda lessons: lessons.can_repeat),),
        ),
        Action(
            "lesson_escape", (Key("escape", "Esc", on_dashboard=True),), escape,
            title=lambda lessons: "Stop the lesson's run" if lessons.runs else "Leave the lesson",
            note=lambda lessons: "" if lessons.runs else "l continues it later",
            applies=lambda lessons: lessons.playing is not None,
            footer=(
                Footer("stop the run", {LESSON: 30}, when=lambda lessons: lessons.runs),
                Footer("leave the lesson", {LESSON: 30}, when=lambda lessons: lessons.waits),
            ),
        ),
    )  # fmt: skip
