"""The search for a limit on the screen, in the command palette and with a page of its own."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from iopstui.errors import EXIT_OK, Interrupted, IopstuiError
from iopstui.events import Event, SessionEnded
from iopstui.ui.actions import EXPERIMENT, LESSON, Action
from iopstui.ui.core.backend import Conditions
from iopstui.ui.core.key import Key
from iopstui.ui.parts.experiment import ExperimentKeys
from iopstui.ui.parts.feature import FeaturePart
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.features.limit.page import ShownSearch
    from iopstui.features.limit.setup import LimitSetup
    from iopstui.session.live import LiveSession

TIME_S = 180.0
OFFERED = "clat.p99<=1ms"
JOIN_S = 5.0


class LimitKeys(FeaturePart):
    """Runs one search at a time, with the job that the key r would run. The last search can still
    be shown."""

    def __init__(
        self, port: Port, jobs: JobKeys, experiments: ExperimentKeys,
        conditions: Conditions | None, first: object | None,
    ) -> None:  # fmt: skip
        super().__init__(port, jobs, experiments, conditions, first)
        self.shown: ShownSearch | None = None
        self._jobs, self._experiments, self._conditions = jobs, experiments, conditions
        self._thread: threading.Thread | None = None
        self._keep = OFFERED

    @property
    def active(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def title(self) -> str:
        """Its title in the command palette."""
        return "Show the limit" if self.shown is not None else "Limit"

    def choose(self) -> None:
        """Show the search, or ask for the bound of a new one."""
        if self.shown is not None:
            self._show()
        else:
            self._ask()

    def _ask(self) -> None:
        from iopstui.ui.dialogs.questions import Prompt

        session = self.port.live
        if session is None or self._conditions is None:
            self.port.show_message("info", "this session cannot search for a limit")
            return
        if self.active or self._experiments.refuses_disturbance():
            return
        stops = "; the running job is stopped" if session.running else ""
        self.port.push(
            Prompt("Limit", f"Latency to keep. Runs {self._jobs.job} at one rate after another, "
                   f"up to {TIME_S / 60:g} min{stops}", self._keep, lambda text: None,
                   self.port.charset),
            self._asked,
        )  # fmt: skip

    def _asked(self, keep: str | None) -> None:
        session = self.port.live
        if keep is not None and session is not None and not self.active:
            self._keep = keep
            self.port.run_in_background(self._begin(session, keep), "limit")

    async def _begin(self, session: LiveSession, keep: str) -> None:
        try:
            setup = await asyncio.to_thread(self._set_up, session, keep)
        except IopstuiError as error:
            self.port.show_message("error", error.full_text)
            return
        if self.port.live is session and not self.active:
            self._start(setup, session)
            self._show()

    def _set_up(self, session: LiveSession, keep: str) -> LimitSetup:
        from iopstui.features.limit.setup import TIMES, require_whole_seconds, set_up_on

        assert self._conditions is not None
        require_whole_seconds(session.interval_s)
        job_target, asked = self._conditions(session)
        # the dialog has said that the search decides how long it runs
        options = {name: value for name, value in self._jobs.overrides.items() if name not in TIMES}
        run = replace(asked, job=self._jobs.job, overrides=options, bind=session.bind, knobs=())
        return set_up_on((session.target, job_target), session.devices, run, keep, TIME_S)

    def _start(self, setup: LimitSetup, session: LiveSession) -> None:
        from iopstui.features.limit.page import ShownSearch
        from iopstui.features.limit.runner import LimitRunner

        self._jobs.forget_pending()
        runner = LimitRunner(setup, lambda event: None, lambda text: None, session)
        self.shown = ShownSearch(runner)
        self._thread = threading.Thread(
            target=_run, args=(self.shown,), name="limit", daemon=True
        )  # fmt: skip
        self._thread.start()

    def _show(self) -> None:
        from iopstui.features.limit.page import LimitPage

        shown = self.shown
        assert shown is not None
        self.port.push(LimitPage(lambda: shown, self.stop, self._ask, self.port.charset))

    def stop(self) -> None:
        """Stop the search after fio has reported its last second. A second call stops at once."""
        if self.active and self.shown is not None:
            loop = self.shown.runner.loop
            (loop.kill if loop.interrupted else loop.stop)()

    # -- calls from the application

    def event(self, event: Event) -> None:
        if self.active and self.shown is not None:
            self.shown.runner.loop.feed(event)

    def refuses(self, action: Action) -> bool:
        """Refuse keys that would disturb the search. The key r stops it."""
        disturbs = action.disturbs & {EXPERIMENT, LESSON} or action.id == "run_or_stop"
        if not self.active or not disturbs or action.id == "limit":
            return False
        if action.id == "run_or_stop":
            self.stop()
            self.port.show_message("info", "stopping the search; its rates are kept")
        else:
            self.port.show_message("info", "the search for a limit is running; r stops it")
        return True

    def forget(self) -> None:
        """Forget the search, because another target is opened."""
        self.end()
        self.shown = None

    async def close(self) -> None:
        """After the session was closed, wait until the search's scratch files are removed."""
        await asyncio.to_thread(self.end)

    def end(self) -> None:
        if self.active and self.shown is not None and self._thread is not None:
            loop = self.shown.runner.loop
            loop.interrupted = True
            loop.feed(SessionEnded(loop.t, EXIT_OK))
            self._thread.join(JOIN_S)

    ACTIONS = (
        Action(
            "limit", (Key("", ""),), choose, title=lambda part: part.title,
            note="the highest rate at which the job keeps a latency",
            disturbs=frozenset({EXPERIMENT, LESSON}), measures=True,
        ),
    )  # fmt: skip


def _run(shown: ShownSearch) -> None:
    """Run the search, in its own thread."""
    try:
        shown.answer = shown.runner.run()
    except Interrupted as error:
        shown.error = error.message
    except IopstuiError as error:
        shown.error = error.full_text
    # a bug must not end the thread silently; the session's own thread does the same
    except Exception as error:
        shown.error = f"internal error in the search: {error!r}"


PART = LimitKeys
