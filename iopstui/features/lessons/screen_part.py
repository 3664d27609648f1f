"""The key l: guided experiments. Pages have their own screen; a run is watched on the dashboard,
with a strip of rows that say where to look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from iopstui.errors import IopstuiError
from iopstui.events import Event, Mark, SessionEnded, StepFinished, StepStarted
from iopstui.text import printable
from iopstui.ui.actions import EXPERIMENT, IDLE, LESSON, Action, Footer
from iopstui.ui.core.backend import Conditions
from iopstui.ui.core.key import Controller, Key
from iopstui.ui.draw.rows import Row
from iopstui.ui.parts.experiment import ExperimentKeys
from iopstui.ui.parts.feature import FeaturePart
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.features.lessons.model.pages import Lesson
    from iopstui.features.lessons.play.library import Lessons
    from iopstui.features.lessons.screen.list import LessonChoice
    from iopstui.features.lessons.screen.rows import LessonProgress
    from iopstui.ui.dashboard.screen import ViewState
    from iopstui.ui.state.findings import DisplayedRun

OPENS = Key("l", "l")
"""The key that opens the list of lessons, and closes it again."""
ACTIONS_ON_PAGE = {"log", "quit"}
"""Actions in the palette while a page is read. During a run, the palette has all actions that do
not disturb it."""


class LessonKeys(FeaturePart):
    """Handles the keys of the lesson in ``progress``, or opens the list of lessons. Without
    ``conditions`` no lesson can be played. The lesson ``first`` is started at once."""

    HELP = (
        "Keys of a lesson (l, or iopstui lesson NAME)",
        (
            (
                "enter, right",
                "next page, or start the page's run; on the dashboard, after a run: continue",
            ),
            ("a, b, c", "answer a question before the measurement"),
            ("left", "earlier pages; answers there are kept"),
            (
                "escape",
                "stop a run, or leave the lesson; l continues it later. Changed tunables "
                "are restored, files removed",
            ),
            ("r", "repeat a run that failed, was stopped or was disturbed"),
        ),
    )
    HOME_ACTION = (OPENS.label, "Lessons", "lessons")

    def __init__(
        self,
        port: Port,
        jobs: JobKeys,
        experiments: ExperimentKeys,
        conditions: Conditions | None,
        first: object | None,
    ) -> None:
        super().__init__(port, jobs, experiments, conditions, first)
        self.lessons: Callable[[Controller], Lessons] | None = None
        if conditions is not None:
            self.lessons = partial(_lessons_of, conditions)
        self.progress: LessonProgress | None = None
        self.cleanup_task: asyncio.Task[None] | None = None
        self._jobs = jobs
        self._experiments = experiments
        self._first = first
        self._paused: LessonProgress | None = None
        # the results of finished lessons, by name
        self._results: dict[str, str] = {}
        # the view of the dashboard before the lesson
        self._view_before: tuple[ViewState, DisplayedRun] | None = None
        # the message about the lesson's end, which stays while settings are being restored
        self._end_message = ""

    # -- the list

    def choose(self) -> None:
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
            self.port.show_message("error", error.full_text)
            return
        from iopstui.features.lessons.screen.list import LessonList
        from iopstui.ui.core.clipboard import name_of

        session = self.port.session
        if session is None or not self.port.is_shown(self.port.dashboard):
            return
        target, paused = session.target, self._paused
        target_text = " and ".join(map(name_of, target.places))
        position = (paused.run.lesson.name, paused.position) if paused else None
        lesson_list = LessonList(
            offers, target_text, position, self._results, self.port.charset, OPENS
        )
        self.port.push(lesson_list, self._lesson_chosen)

    def _lesson_chosen(self, choice: LessonChoice | None) -> None:
        if choice is not None:
            self._begin(choice.lesson, choice.start_over)

    def begin_first(self) -> None:
        if self._first is None:
            return
        from iopstui.features.lessons.model.pages import Lesson

        lesson, self._first = self._first, None
        if isinstance(lesson, Lesson):
            self._begin(lesson)

    def _begin(self, lesson: Lesson, start_over: bool = True) -> None:
        """Open the lesson's first page, or the page where it was paused."""
        session = self.port.session
        if session is None or self.lessons is None or self.progress is not None:
            return
        paused = None if start_over else self._paused
        self.port.run_in_background(
            self._open_lesson(self.lessons(session), lesson, paused), "lessons"
        )

    async def _open_lesson(
        self, lessons: Lessons, lesson: Lesson, paused: LessonProgress | None
    ) -> None:
        from iopstui.features.lessons.screen.rows import LessonProgress

        if self.cleanup_task is not None:
            await self.cleanup_task
        try:
            if paused is None:
                progress = LessonProgress(await asyncio.to_thread(lessons.start, lesson))
            else:
                progress = paused
                progress.run.target_facts = await asyncio.to_thread(lessons.current_facts)
        except IopstuiError as error:
            self.port.show_message("error", error.full_text)
            return
        dashboard = self.port.dashboard
        if dashboard is None:
            return
        self._jobs.forget_pending()
        self.progress, self._paused = progress, None
        self._view_before = (dashboard.view, self.port.state.displayed_run)
        self.port.refresh_footer()
        self._open_page()

    # -- pages

    def _open_page(self) -> None:
        from iopstui.features.lessons.screen.page import LessonPage
        from iopstui.ui.keys import REFUSED_IN_LESSON

        if self.progress is not None:
            page = LessonPage(
                self.progress, self.port.charset, self.continue_lesson, self.repeat_run, self.leave,
                REFUSED_IN_LESSON, lambda: self.port.state,
            )  # fmt: skip
            self.port.push(page)

    def _show_current_page(self) -> None:
        from iopstui.features.lessons.screen.page import LessonPage

        screen = self.port.screen
        if isinstance(screen, LessonPage):
            screen.show_new_page()
        else:
            self._open_page()

    def _close_page(self) -> None:
        from iopstui.features.lessons.screen.page import LessonPage

        if isinstance(self.port.screen, LessonPage):
            self.port.pop()

    def continue_lesson(self) -> None:
        """Start the run of the shown page, or go to the next page."""
        progress = self.progress
        if progress is None or progress.run.running:
            return
        if progress.run.repeats:
            progress.leave()
            self.port.refresh_footer()
            self._show_current_page()
        elif progress.run.is_over:
            self._finish()
        elif progress.can_run:
            self._run_lesson()
        else:
            progress.next_page()
            if progress.run.is_over:
                self._clean_up(progress)
            self.port.refresh_footer()
            self._show_current_page()

    def repeat_run(self) -> None:
        if self.progress is not None and self.progress.can_repeat:
            self.progress.run.repeat()
            self._run_lesson()

    def escape(self) -> None:
        """Stop the run. If no run is active, leave the lesson."""
        progress, session = self.progress, self.port.session
        if progress is None or session is None:
            return
        if progress.run.running:
            progress.stop()
            session.stop_job()
            self.port.paint()
        else:
            self.leave()

    # -- runs

    def _run_lesson(self) -> None:
        """Start the run of the page, and show the dashboard."""
        progress, session, dashboard = self.progress, self.port.live, self.port.dashboard
        if progress is None or dashboard is None or session is None:
            return
        step = progress.run_page
        try:
            if self.port.state.ended:
                raise IopstuiError("the session has ended; no more measurements")
            request = progress.run.request(getattr(session, "interval_s", 1.0))
            lent = progress.run.jobs.lent()
        except (IopstuiError, OSError) as error:
            hint = error.hint if isinstance(error, IopstuiError) else ""
            progress.run.give_up(f"{error} {hint}".strip())
            self._show_current_page()
            return
        progress.watch()
        self._close_page()
        dashboard.unfreeze()
        self._show_run_pane()
        self.port.state.request_run()
        if step is not None:
            session.mark(printable(f"lesson: {step.title}"))
        session.run_request(request, lent)
        self.port.refresh_footer()
        self.port.paint()

    def _show_run_pane(self) -> None:
        """On a small terminal, open the pane to look at during the run."""
        from iopstui.features.lessons.screen.rows import PANES

        progress, dashboard = self.progress, self.port.dashboard
        step = progress.run_page if progress is not None else None
        if step is None or dashboard is None:
            return
        panes = [pane for pane, _ in step.look]
        if "heat" in panes or "latency" in panes:
            dashboard.show_heat("heat" in panes)
        tab = next((PANES[pane][1] for pane in panes if PANES[pane][1] is not None), None)
        if tab is not None:
            dashboard.show_tab(tab)

    def event(self, event: Event) -> None:
        progress = self.progress
        if progress is None and self._end_message:
            self._repeat_end_message(event)
        if progress is None or not progress.run.running:
            return
        has_ended = progress.run.feed(event)
        match event:
            case SessionEnded():
                progress.run.give_up("the session has ended")
                self.port.state.log.forget_notice()
            case StepFinished() if event.error:
                pass
            case _ if has_ended or isinstance(event, StepStarted):
                # remove "press r to run it again", which does not apply in a lesson
                self.port.state.log.forget_notice()

    def _repeat_end_message(self, event: Event) -> None:
        """Show the end message again, in place of messages about restored settings."""
        match event:
            case StepStarted():
                self._end_message = ""
            case Mark() if "→" in event.text:
                self.port.show_message("info", self._end_message)

    def strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        """The rows above the message while a run is watched."""
        progress = self.progress
        if progress is None or not progress.watching:
            return ()
        from iopstui.features.lessons.screen.rows import strip_rows

        port = self.port
        return strip_rows(progress, tabbed, port.state.creating_file, width, height, port.charset)

    # -- the end

    def leave(self) -> None:
        """Go to the dashboard. The key l continues the lesson."""
        progress = self.progress
        if progress is None or progress.run.running:
            return
        if progress.run.is_over:
            self._finish()
            return
        progress.leave()
        self._paused = progress
        self._clean_up(progress)
        self._back_to_dashboard()
        self._show_end_message(f"left the lesson on {progress.position}; l continues it")

    def _finish(self) -> None:
        progress = self.progress
        if progress is None:
            return
        confirmed, judged = progress.score()
        result = (
            f"{confirmed} of {judged} answers confirmed" if judged else "no question was answered"
        )
        self._results[progress.run.lesson.name] = result
        self._back_to_dashboard()
        self._show_end_message(f"lesson finished, {result}; l: other lessons")

    def _show_end_message(self, message: str) -> None:
        self._end_message = message
        self.port.show_message("info", message)

    def _back_to_dashboard(self) -> None:
        """Restore the view from before the lesson. The lesson's seconds stay in the charts."""
        self._close_page()
        self.progress = None
        if self._view_before is not None:
            view, run = self._view_before
            if self.port.dashboard is not None:
                self.port.dashboard.show_view(view)
            self.port.state.show_run(run)
        self._view_before = None
        self.port.refresh_footer()
        self.port.paint()

    def _clean_up(self, progress: LessonProgress) -> None:
        """Restore the settings and remove the scratch files; no run is active now."""
        session = self.port.live
        knobs = progress.run.jobs.original_knobs()
        if knobs and session is not None:
            session.reapply_tunables(knobs)
        self.cleanup_task = asyncio.create_task(asyncio.to_thread(progress.run.close))

    async def close(self) -> None:
        """Remove the lesson's scratch files after the session was closed."""
        if self.cleanup_task is not None:
            await self.cleanup_task
        await asyncio.to_thread(self.end)

    def end(self) -> None:
        for progress in (self.progress, self._paused):
            if progress is not None:
                progress.run.close()

    def forget(self) -> None:
        """Forget the paused lesson, because another target was opened."""
        self.end()
        self.progress = self._paused = self._view_before = None

    # -- the lesson's effect on other keys

    @property
    def idle(self) -> bool:
        """Whether a lesson can be started."""
        return self.progress is None and not self._experiments.experimenting

    @property
    def is_waiting(self) -> bool:
        """Whether a lesson is open and none of its runs is active."""
        return self.progress is not None and not self.progress.run.running

    @property
    def is_running(self) -> bool:
        """Whether a run of the lesson is active."""
        return self.progress is not None and self.progress.run.running

    @property
    def can_repeat(self) -> bool:
        """Whether a run can be repeated, because it failed or was stopped."""
        return self.is_waiting and self.progress is not None and self.progress.can_repeat

    @property
    def mode(self) -> str | None:
        """LESSON from the lesson's first page to its end."""
        return LESSON if self.progress is not None else None

    def refuses(self, action: Action) -> bool:
        """Refuse keys that would disturb a lesson, and show a message."""
        self._end_message = ""
        progress = self.progress
        if progress is None or LESSON not in action.disturbs:
            return False
        if action.id == "run_or_stop" and progress.watching and progress.can_repeat:
            self.repeat_run()
        else:
            advice = "Esc stops the run" if progress.run.running else "Esc leaves it"
            self.port.show_message("info", f"a lesson is running: {advice}")
        return True

    def offers(self, action: Action) -> bool:
        """Whether the palette offers the action while a lesson is open."""
        if self.progress is None or any(action is a for a in self.ACTIONS):
            return True
        return action.id in ACTIONS_ON_PAGE or (self.progress.watching and action.quiet)

    ACTIONS = (
        Action(
            "lessons", (OPENS,), choose,
            title=lambda lessons: "Lessons" if lessons.progress is None else "",
            note="guided experiments",
            help="lessons: guided experiments on this target",
            place=240, footer=(Footer("Lessons", {IDLE: 30}, when=lambda lessons: lessons.idle),),
            disturbs=frozenset({EXPERIMENT, LESSON}), measures=True,
        ),
        Action(
            "lesson_on", (Key("enter", "Enter", on_dashboard=True),), continue_lesson,
            title="Continue the lesson", applies=lambda lessons: lessons.is_waiting,
            footer=(Footer("Continue", {LESSON: 10}, when=lambda lessons: lessons.is_waiting),),
        ),
        Action(
            # on the dashboard, the dashboard's own binding of r does the same
            "lesson_again", (Key("", "r"),), repeat_run, applies=lambda lessons: lessons.can_repeat,
            footer=(Footer("Again", {LESSON: 20}, when=lambda lessons: lessons.can_repeat),),
        ),
        Action(
            "lesson_escape", (Key("escape", "Esc", on_dashboard=True),), escape,
            title=lambda lessons: (
                "Stop the lesson's run" if lessons.is_running else "Leave the lesson"
            ),
            note=lambda lessons: "" if lessons.is_running else "l continues it later",
            applies=lambda lessons: lessons.progress is not None,
            footer=(
                Footer("Stop the run", {LESSON: 30}, when=lambda lessons: lessons.is_running),
                Footer("Leave the lesson", {LESSON: 30}, when=lambda lessons: lessons.is_waiting),
            ),
        ),
    )  # fmt: skip


def _lessons_of(conditions: Conditions, session: Controller) -> Lessons:
    from iopstui.features.lessons.play.library import Lessons

    target, request = conditions(session)
    return Lessons(target, lambda: session.devices, request.size, request.destroy_data)


PART = LessonKeys
