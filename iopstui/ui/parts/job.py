"""The keys of the job: choose it, change its options, run it, stop it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from textual.timer import Timer

from iopstui import format as f
from iopstui.fio.job_text import common_options
from iopstui.fio.library import ShippedJob
from iopstui.model.block.target import DIRECTORY
from iopstui.model.findings.finding import Finding
from iopstui.model.fio.rows import duration_s
from iopstui.text import printable
from iopstui.ui.actions import EXPERIMENT, IDLE, LESSON, RUNNING, Action, Footer, Part
from iopstui.ui.core import options as knobs
from iopstui.ui.core.key import Key
from iopstui.ui.port import Port

RESTART_DELAY_S = 0.3
DEFAULT_JOB = "mixed-4k"
READING_JOB = "randread-4k"
BUSY = frozenset({EXPERIMENT, LESSON})


class JobKeys(Part):
    """The keys that run a job. ``job`` is the job that the key r runs, ``overrides`` are the
    changed fio options."""

    def __init__(
        self, port: Port, jobs: Sequence[ShippedJob], job: str | None, overrides: Mapping[str, str]
    ) -> None:
        super().__init__(port)
        self.jobs = list(jobs)
        self.overrides = dict(overrides)
        self._job = job
        # job and options of the previous and the newest request: if the newest is refused, the
        # previous run goes on
        self._requests = [(job, dict(overrides))] * 2
        self._refusals = 0
        self._restart_timer: Timer | None = None

    @property
    def job(self) -> str:
        """The job that the key r runs. The default job writes only to a scratch file; it is refused
        for a device or an existing file."""
        if self._job is not None:
            return self._job
        names = [job.name for job in self.jobs]
        default = DEFAULT_JOB if self._on_scratch_files() else READING_JOB
        candidates = (name for name in (default, DEFAULT_JOB, *names) if name in names)
        return next(candidates, DEFAULT_JOB)

    @property
    def next_run(self) -> str:
        """What the key r runs: the job, the options that differ from its file, and its file's
        depth and length: "randread-4k with numjobs=4 (QD 32, 1 min)"."""
        changed = self.changed_options
        in_file = common_options(self._text).items()
        options = {name: value for name, value in in_file if name not in self.overrides}
        depth, count = options.get("iodepth"), options.get("numjobs", "1")
        seconds = duration_s(options.get("runtime", "")) if "time_based" in options else None
        facts = [
            *([f"QD {depth}"] if depth else ()),
            *([f"{count} jobs"] if count != "1" else ()),
            *([f.duration(seconds)] if seconds else ()),
        ]
        with_changes = f"{self.job} with {changed}" if changed else self.job
        return f"{with_changes} ({', '.join(facts)})" if facts else with_changes

    @property
    def _text(self) -> str:
        """The job's file; "" if it is not a shipped one."""
        return next((job.text for job in self.jobs if job.name == self.job), "")

    @property
    def changed_options(self) -> str:
        """The changed options in words: "iodepth=64 bs=8k"."""
        return " ".join(f"{key}={value}" for key, value in self.overrides.items())

    def _on_scratch_files(self) -> bool:
        session = self.port.session
        return session is None or all(place.kind == DIRECTORY for place in session.target.places)

    @property
    def engine(self) -> str:
        """The ioengine of the next run, if an option or the job's name says it; else ""."""
        if "ioengine" in self.overrides:
            return self.overrides["ioengine"]
        match = re.search(r"^[ \t]*ioengine[ \t]*=[ \t]*(\w+)", self._text, re.MULTILINE)
        return match[1] if match else ""

    @property
    def mode(self) -> str | None:
        """RUNNING from the request of a job to its end, while the key r stops it."""
        state = self.port.state
        return RUNNING if state.running or state.next_run.requested else None

    def choose(self, job: str, overrides: Mapping[str, str]) -> None:
        """Choose the next run: ``job`` with ``overrides``. Earlier changes are forgotten."""
        self._job, self.overrides = job, dict(overrides)
        self.forget_pending()

    def override(self, option: str, value: str) -> bool:
        """Change an option; an empty ``value`` undoes it. False if there was nothing to undo."""
        self._take_refusals()
        if value:
            self.overrides[option] = value
            return True
        return self.overrides.pop(option, None) is not None

    def _request_run(self, mark: str = "") -> None:
        """Run the job with the changed options; ``mark`` is put on the charts when it begins."""
        session = self.port.session
        if session is None:
            return
        self._requests = [self._requests[1], (self._job, dict(self.overrides))]
        self.port.state.request_run()
        session.run_job(self.job, self.overrides, mark=mark)
        self.port.refresh_footer()

    def _take_refusals(self) -> None:
        """If the last request was refused, restore the options of the job that goes on."""
        refusals = self.port.state.next_run.refusals
        if refusals > self._refusals:
            self._job, overrides = self._requests[0]
            self.overrides, self._requests[1] = dict(overrides), self._requests[0]
        self._refusals = refusals

    def run_or_stop(self) -> None:
        session, state = self.port.open_session, self.port.state
        if state.running or session.running or state.next_run.requested:
            state.next_run.cancel()
            session.stop_job()
            self.port.show_message("info", "stopping the job")
            return
        self.run(self.job)

    def run_first(self) -> None:
        """Run the job of the command line, without showing a message."""
        self._request_run()

    def run(self, job: str) -> None:
        """Start ``job`` with the changed options; it replaces a running job."""
        if self.port.session is None:
            return
        self._job = job
        self._request_run()
        self.port.show_message("info", f"starting {self.next_run}")

    def choose_job(self) -> None:
        if not self.jobs:
            self.port.show_message(
                "warning", "no shipped jobs are installed; start with --job FILE"
            )
            return
        from iopstui.ui.core.clipboard import name_of
        from iopstui.ui.dialogs.jobs import JobChooser

        session = self.port.session
        place = "" if session is None else " and ".join(map(name_of, session.target.places))
        chooser = JobChooser(
            self.jobs, self.job, self.port.charset, place, self.changed_options
        )  # fmt: skip
        self.port.push(chooser, self._job_chosen)

    def _job_chosen(self, name: str | None) -> None:
        if name is not None:
            if name != self.job:
                self.choose(name, {})
            self.run(name)

    def iodepth(self, up: bool) -> None:
        """Double or halve iodepth; a running job is run again with the new value."""
        self._double(knobs.IODEPTH, up)

    def numjobs(self, up: bool) -> None:
        """Double or halve numjobs; a running job is run again with the new value."""
        self._double(knobs.NUMJOBS, up)

    def _double(self, knob: knobs.OptionKey, up: bool) -> None:
        value = knobs.double_or_halve(knob, self._current(knob), up)
        if value is None:
            end = "largest" if up else "smallest"
            self.port.show_message("info", f"{knob.name} is already the {end} for this key")
            return
        self._change_option(knob, value)

    def block_size(self) -> None:
        from iopstui.ui.dialogs.questions import Choice

        now = self._current(knobs.BLOCK_SIZE)
        key = Key("b", "b")
        choice = Choice("Block size", knobs.BLOCK_SIZES, now, self.port.charset, key)
        self.port.push(choice, self._block_size_chosen)

    def _block_size_chosen(self, value: str | None) -> None:
        if value is not None:
            self._change_option(knobs.BLOCK_SIZE, value)

    def _current(self, knob: knobs.OptionKey) -> str:
        self._take_refusals()
        step = self.port.state.step
        title = step.title if step else ""
        return knobs.current_value(knob, self.overrides, title, self._text)

    def _change_option(self, knob: knobs.OptionKey, value: str) -> None:
        """Set the new value; a running job is run again with it after the key is released."""
        self._take_refusals()
        self.overrides[knob.option] = value
        self.option_changed(knob.option, f"{knob.name} {value}")

    def option_changed(self, option: str, change: str) -> None:
        """Run the job again with ``change``, a new value of ``option``. If no job runs, the change
        applies to the next run."""
        state = self.port.state
        if not state.running and not state.next_run.requested:
            state.next_run.note_change(option, change)
            self.port.refresh_footer()
            self.port.show_message("info", f"{change} applies to the next run (r runs {self.job})")
            return
        state.next_run.note_change(option, change)
        self.port.show_message("info", f"{change}: preparing the next run")
        if self._restart_timer is not None:
            self._restart_timer.stop()
        self._restart_timer = self.port.call_after(RESTART_DELAY_S, self.restart_with_changes)

    def go_on_with(self, option: str, value: str) -> None:
        self._take_refusals()
        self.overrides[option] = value
        self.port.state.next_run.note_change(option, f"{option} {value}")
        if self.port.state.running or self.port.state.next_run.requested:
            self.restart_with_changes()
        else:
            self._request_run()

    def restart_with_changes(self) -> None:
        """Run the job again with the changed options, and put a mark on the charts."""
        state = self.port.state
        step = state.step
        before = (step.title, step.options) if step is not None and state.running else ("", {})
        text = ", ".join(
            knobs.mark_text(*changed, *before) for changed in state.next_run.changes.items()
        )
        if text:
            self._request_run(text)

    def decide(self) -> None:
        """Run the job with the options that test an active finding."""
        finding = self._testable_finding()
        live = self.port.live
        if finding is None or live is None:
            text = "no finding needs a test run (f lists all)"
            self.port.show_message("info", text)
            return
        live.ask(finding)
        self.overrides.update(finding.test)
        self._request_run(f"test: {finding.options}")
        self.port.show_message(
            "info", f"{finding.options}: this run tests the finding ({finding.rule})"
        )

    def _testable_finding(self) -> Finding | None:
        findings = (entry.finding for entry in self.port.state.current_findings())
        return next((finding for finding in findings if finding.test), None)

    def forget_pending(self) -> None:
        """Forget an option that was changed just now, so that no run is started for it."""
        self.port.state.next_run.forget_changes()

    ACTIONS = (
        Action(
            "run_or_stop", (Key("r", "r"),), run_or_stop,
            title=lambda jobs: "Stop the job" if jobs.port.state.running
            else f"Run {printable(jobs.next_run)}",
            help="run the job, or stop the running one", place=10,
            footer=(Footer("Run", {IDLE: 10}), Footer("Stop", {RUNNING: 10})),
            disturbs=frozenset({LESSON}), measures=True,
        ),
        Action(
            "choose_job", (Key("j", "j"),), choose_job, title="Choose a job",
            help="choose another job, with a description of each", place=20,
            footer=(Footer("Jobs", {IDLE: 20, RUNNING: 180}),),
            disturbs=BUSY, measures=True,
        ),
        Action(
            "iodepth",
            (Key("left_square_bracket", "[", False, "iodepth: halve"),
             Key("right_square_bracket", "]", True, "iodepth: double")), iodepth,
            help="iodepth: half, double. A running job is run again with it", place=30,
            footer=(Footer("iodepth", {IDLE: 70, RUNNING: 70}),), disturbs=BUSY, measures=True,
        ),
        Action(
            "numjobs",
            (Key("left_curly_bracket", "{", False, "numjobs: halve"),
             Key("right_curly_bracket", "}", True, "numjobs: double")), numjobs,
            help="numjobs: half, double. A running job is run again with it", place=40,
            footer=(Footer("numjobs", {IDLE: 80, RUNNING: 80}),), disturbs=BUSY, measures=True,
        ),
        Action(
            "block_size", (Key("b", "b"),), block_size, title="Block size",
            help="block size: choose one; a running job is run again with it", place=50,
            footer=(Footer("Block size", {IDLE: 90, RUNNING: 90}),), disturbs=BUSY, measures=True,
        ),
        Action(
            "decide", (Key("t", "t"),), decide, title="Test an uncertain finding",
            help="test a finding that says \"may\": run the job with the options that "
                 "decide it", place=55,
            footer=(
                Footer("Test it", {IDLE: 15, RUNNING: 15},
                       when=lambda jobs: jobs._testable_finding() is not None),
            ),
            disturbs=BUSY, measures=True,
        ),
    )  # fmt: skip
