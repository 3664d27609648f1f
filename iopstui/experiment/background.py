"""Run experiments in a screen's session: check, start, stop and wait for them in the background."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

from iopstui.errors import IopstuiError
from iopstui.events import Event, Notice
from iopstui.experiment.progress import ProgressFile
from iopstui.experiment.runner import ExperimentRunner
from iopstui.experiment.setup import ExperimentSetup, form_lines, preview_setup, resume_text
from iopstui.fio.inspect import find_fio
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import Plan
from iopstui.model.experiment.run_request import RunRequest
from iopstui.session.live import LiveSession
from iopstui.session.run_loop import Sink


@dataclass(frozen=True, slots=True)
class PreparedExperiment:
    """An experiment that has passed preflight. ``lines`` describe its length, then what it runs,
    changes and writes; each begins with a label. ``resume_note`` says what is already measured (""
    if nothing), ``loss_note`` why the results will not be kept if it is stopped ("" if they
    will)."""

    setup: ExperimentSetup
    progress: ProgressFile | None
    lines: tuple[str, ...]
    resume_note: str = ""
    loss_note: str = ""


class BackgroundExperiments:
    """Background experiments of one session; ``conditions`` are those of its command line."""

    hosts = 0
    seconds = None

    def __init__(
        self, session: LiveSession, job_target: Target | None, conditions: RunRequest
    ) -> None:
        self._session = session
        self._job_target = job_target
        self._conditions = conditions

    def preview(self, plan: Plan) -> PreparedExperiment:
        """Check a plan and describe what it would do. Takes a while, because fio parses the options
        of every kind of run. Raises UsageError, Refused or Missing."""
        session = self._session
        conditions = replace(self._conditions, bind=session.bind)
        setup = preview_setup(
            plan, session.target, self._job_target, session.devices, conditions, find_fio(), Roots()
        )
        setup = replace(setup, write_budget=session.budget.most, write_rate=session.budget.rate)
        lines = [*form_lines(setup)]
        try:
            progress = setup.progress(None, session.interval_s)
        except OSError as error:
            return PreparedExperiment(
                setup, None, tuple(lines), loss_note=f"progress is not saved: {error}"
            )
        if progress.changed:
            loss_note = f"the interrupted run is discarded: {progress.changed}"
            return PreparedExperiment(setup, progress, tuple(lines), loss_note=loss_note)
        resume_note = resume_text(progress, plan, time.time()) if progress.points else ""
        return PreparedExperiment(setup, progress, tuple(lines), resume_note)

    def start(
        self, ready: PreparedExperiment, sink: Sink, t: float, anew: bool = False
    ) -> RunningExperiment:
        """Run the experiment in its own thread. ``sink`` gets the experiment's events in that
        thread; pass the session's events to ``RunningExperiment.feed``. ``t`` is the session's
        time; ``anew`` discards the saved results of an interrupted run."""
        if ready.progress is not None and (anew or ready.progress.changed):
            ready.progress.remove()
        setup = ready.setup.resumed(ready.progress)
        runner = ExperimentRunner(
            self._session, setup.plan, setup.job_target, setup.conditions, sink, ready.progress,
            borrowed=True, t=t,
        )  # fmt: skip
        experiment = RunningExperiment(runner, sink)
        experiment.start()
        return experiment

    def variants(self) -> tuple[str, str]:
        for knob in self._session.knobs():
            if knob.name == "rq_affinity" and not knob.idle and not knob.refused:
                return "rq_affinity=1", "rq_affinity=2"
        return "iodepth=1", "iodepth=16"


class RunningExperiment:
    """A running experiment."""

    def __init__(self, runner: ExperimentRunner, sink: Sink) -> None:
        self._runner = runner
        self._sink = sink
        self._thread = threading.Thread(target=self._main, name="experiment", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def active(self) -> bool:
        return self._thread.is_alive()

    def feed(self, event: Event) -> None:
        """Pass on an event of the session; ignored after the end of the experiment."""
        if self.active:
            self._runner.loop.feed(event)

    def stop(self) -> None:
        """Stop after the running fio has reported its last second. A second call stops at once."""
        if self._runner.interrupted:
            self._runner.loop.kill()
        else:
            self._runner.loop.stop()

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _main(self) -> None:
        runner = self._runner
        try:
            runner.run()
            if runner.progress is not None and not runner.interrupted:
                runner.progress.remove()
        except IopstuiError:
            return  # the event ExperimentFinished has reported it
        except Exception as error:
            self._sink(Notice(runner.t, "error", f"internal error in the experiment: {error!r}"))
