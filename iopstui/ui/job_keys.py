"""Keys of the job: which, with what options, run or stopped."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.timer import Timer

from iopstui.text import printable
from iopstui.ui import knobs
from iopstui.ui.app_parts import AppPart, Command

KNOB_WAITS_S = 0.6
DEFAULT_JOB = "mixed-4k"
JOB_ACTIONS = ("run_or_stop", "choose_job", "knob", "block_size")


class JobKeys(AppPart):
    """What these keys do. The rest of the application is ui/app.py."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run_or_stop", "run or stop"),
        Binding("j", "choose_job", "job"),
        Binding("left_square_bracket", "knob('iodepth', False)", "iodepth ÷ 2"),
        Binding("right_square_bracket", "knob('iodepth', True)", "iodepth × 2"),
        Binding("left_curly_bracket", "knob('numjobs', False)", "numjobs ÷ 2"),
        Binding("right_curly_bracket", "knob('numjobs', True)", "numjobs × 2"),
        Binding("b", "block_size", "block size"),
    ]

    _job: str | None
    _knob_timer: Timer | None = None

    def job_commands(self) -> list[Command]:
        """For the command palette."""
        run = "Stop the job" if self.state.running else f"Run {printable(self.job)}"
        return [
            (run, "key r", self.action_run_or_stop),
            ("Choose a job", "key j", self.action_choose_job),
            ("iodepth: double", "key ]", lambda: self.action_knob("iodepth", True)),
            ("iodepth: halve", "key [", lambda: self.action_knob("iodepth", False)),
            ("numjobs: double", "key }", lambda: self.action_knob("numjobs", True)),
            ("numjobs: halve", "key {", lambda: self.action_knob("numjobs", False)),
            ("Block size", "key b", self.action_block_size),
        ]

    @property
    def job(self) -> str:
        """The job that r runs."""
        if self._job is None:
            self._job = self.jobs[0].name if self.jobs else DEFAULT_JOB
            names = [job.name for job in self.jobs]
            if DEFAULT_JOB in names:
                self._job = DEFAULT_JOB
        return self._job

    def action_run_or_stop(self) -> None:
        """r"""
        controller = self.controller
        if controller is None:
            return
        if self.experimenting:
            self.action_stop_experiment()
            return
        if self.state.running or controller.running or self.state.asked:
            self.state.ask_no_more()
            controller.stop_job()
            self._say("info", "stopping the job")
            return
        self.run_job(self.job)

    def run_job(self, job: str) -> None:
        """Starts ``job`` with the options turned so far; a running one is stopped first."""
        if self.controller is None:
            return
        self._job = job
        self.state.ask()
        self.controller.run_job(job, self.overrides)
        self._refresh_hints()
        changed = " ".join(f"{key}={value}" for key, value in self.overrides.items())
        self._say("info", f"starting {job}" + (f" with {changed}" if changed else ""))

    def action_choose_job(self) -> None:
        """j"""
        if self.dashboard is None or self.experiment_holds():
            return
        if not self.jobs:
            self._say("warning", "there are no shipped jobs here; start with --job FILE")
            return
        from iopstui.ui.screens.jobs import JobChooser

        self.push_screen(JobChooser(self.jobs, self.job, self.charset), self._job_chosen)

    def _job_chosen(self, name: str | None) -> None:
        if name is not None:
            if name != self._job:
                self.overrides = {}
                self.forget_pending()
            self.run_job(name)

    def action_knob(self, option: str, up: bool) -> None:
        """[ ] { }"""
        knob = knobs.IODEPTH if option == "iodepth" else knobs.NUMJOBS
        if self.controller is None or self.experiment_holds():
            return
        value = knobs.turned(knob, self._current(knob), up)
        if value is None:
            end = "largest" if up else "smallest"
            self._say("info", f"{knob.word} is already the {end} that this key sets")
            return
        self._turn(knob, value)

    def action_block_size(self) -> None:
        """b"""
        if self.controller is None or self.dashboard is None or self.experiment_holds():
            return
        from iopstui.ui.screens.choice import Choice

        now = self._current(knobs.BLOCK_SIZE)
        choice = Choice("block size", knobs.BLOCK_SIZES, now, self.charset)
        self.push_screen(choice, self._block_size_chosen)

    def _block_size_chosen(self, value: str | None) -> None:
        if value is not None:
            self._turn(knobs.BLOCK_SIZE, value)

    def _current(self, knob: knobs.Knob) -> str:
        title = self.state.step.title if self.state.step else ""
        text = next((job.text for job in self.jobs if job.name == self.job), "")
        return knobs.current(knob, self.overrides, title, text)

    def _turn(self, knob: knobs.Knob, value: str) -> None:
        """Takes the new value; a running job is started anew, once the key has come to rest."""
        self.overrides[knob.option] = value
        self._turned(knob.option, f"{knob.word} {value}")

    def _turned(self, option: str, words: str) -> None:
        if not self.state.running and not self.state.asked:
            self._say("info", f"{words} from the next run on (r runs {self.job})")
            return
        self.state.turned[option] = words
        self._say("info", f"{words}: the job is started anew with it")
        if self._knob_timer is not None:
            self._knob_timer.stop()
        self._knob_timer = self.set_timer(KNOB_WAITS_S, self.apply_knob)

    def apply_knob(self) -> None:
        """Restarts the job with the options turned, and leaves a mark on the charts."""
        words = ", ".join(self.state.turned.values())
        if not words or self.controller is None:
            return
        self.state.ask()
        self.controller.mark(words)
        self.controller.run_job(self.job, self.overrides)

    def forget_pending(self) -> None:
        """A knob that was turned just now no longer starts the job anew."""
        self.state.turned.clear()
