"""Progress of a lesson on the screen: the page being read, the run being watched."""

from __future__ import annotations

from iopstui.features.lessons.model.pages import RUN_STEP, AnswerPage, Page, RunPage
from iopstui.features.lessons.play.page import READY, AnswerVerdict, ShownPage
from iopstui.features.lessons.play.player import LessonRun

END = "end"


class LessonProgress:
    """``watching`` is True from the start of a run until the user continues: the dashboard is shown
    then, else a page. ``stopping`` is True once a stop was requested."""

    def __init__(self, run: LessonRun) -> None:
        self.run = run
        self.watching = False
        self.stopping = False
        self._read_pages: list[ShownPage] = []
        self._pages_back = 0

    # -- pages

    @property
    def page(self) -> ShownPage | None:
        """The page being read; ``None`` after the last one."""
        return self._read_pages[-self._pages_back] if self._pages_back else self.run.page()

    @property
    def reading_back(self) -> bool:
        """True on a page that was read before."""
        return self._pages_back > 0

    @property
    def has_earlier(self) -> bool:
        """Whether there is a previous page."""
        return self._pages_back < len(self._read_pages)

    def previous_page(self) -> bool:
        """Go to the previous page; False on the first one."""
        if self.has_earlier:
            self._pages_back += 1
            return True
        return False

    def next_page(self) -> None:
        if self._pages_back:
            self._pages_back -= 1
            return
        page = self.run.page()
        self.watching = False
        self.run.advance()
        if page is not None:
            self._read_pages.append(page)

    def leave(self) -> None:
        """Pause the lesson on its current page, not on an earlier one."""
        self._pages_back = 0
        self.watching = False
        self.run.end_repeat()

    @property
    def position(self) -> str:
        """Position: "page 5 of 12"."""
        page = self.run.page()
        return f"page {page.number} of {page.total}" if page is not None else "its end"

    def step_of(self, page: ShownPage) -> Page | None:
        """The lesson's page behind a shown page."""
        steps = self.run.lesson.steps
        return next((s for s in steps if (s.kind, s.name) == (page.kind, page.name)), None)

    def verdicts(self, page: ShownPage) -> list[AnswerVerdict]:
        """What the measurement answers to the questions of a page."""
        step = self.step_of(page)
        names = step.answers if isinstance(step, AnswerPage) else ()
        verdicts = (self.run.verdict(name) for name in names)
        return [verdict for verdict in verdicts if verdict is not None]

    def score(self) -> tuple[int, int]:
        """(answers confirmed by the measurements, answers that could be judged)."""
        verdicts = [self.run.verdict(name) for name in self.run.answers]
        judged = [v.correct for v in verdicts if v is not None and v.correct is not None]
        return sum(judged), len(judged)

    # -- runs

    def watch(self) -> None:
        """A run starts: show the dashboard from now on."""
        self.watching, self.stopping = True, False

    def stop(self) -> None:
        """Request a stop of the run."""
        self.stopping = True
        self.run.stop()

    @property
    def run_page(self) -> RunPage | None:
        """The run that is watched, or that the page shows."""
        return self.run.run_page

    @property
    def can_run(self) -> bool:
        """True on the page of a run that has not run yet."""
        return self._on_run(READY)

    @property
    def can_repeat(self) -> bool:
        """True after a run that failed, was stopped or was disturbed."""
        return bool(self.repeatable)

    @property
    def repeatable(self) -> str:
        """The run that can be repeated from this page; "" if there is none."""
        run = None if self._pages_back else self.run.repeatable
        return run.name if run is not None else ""

    @property
    def has_failed(self) -> bool:
        """True after a run that failed or was stopped."""
        return self.run_page is not None and self.run_page.name in self.run.failed

    def _on_run(self, state: str) -> bool:
        page = None if self._pages_back else self.run.page()
        return page is not None and page.kind == RUN_STEP and page.state == state

    @property
    def run_position(self) -> str:
        """ "run 2 of 3"."""
        runs = self.run.lesson.runs
        step = self.run_page
        number = runs.index(step) + 1 if step is not None else len(runs)
        return f"run {number} of {len(runs)}"
