"""The ramp: try one depth after another with a running job, and keep the best."""

from __future__ import annotations

from iopstui.events import Event, FrameReady, Notice, StepFinished, StepStarted
from iopstui.model.answer.answer import GOOD, NOTHING, Answer
from iopstui.model.experiment.ramp import (
    DEFAULT,
    MEASURED_S,
    Level,
    Ramp,
    RampRange,
    parse_ramp,
    progress_text,
)
from iopstui.model.findings.evidence import SYNCHRONOUS
from iopstui.model.metrics.run_history import RunRow
from iopstui.ui.actions import EXPERIMENT, LESSON, Action, Part
from iopstui.ui.core import options as knobs
from iopstui.ui.core.key import Key
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.port import Port

RULE = "ramp"


class RampKeys(Part):
    """The key of the ramp. ``asked`` is the range given on the command line, if any."""

    def __init__(self, port: Port, jobs: JobKeys, asked: RampRange | None = None) -> None:
        super().__init__(port)
        self.asked = asked
        self._jobs = jobs
        self._ramp: Ramp | None = None
        self._value = 0
        self._step: int | None = None
        self._switching = False
        """Whether a run at the best depth was requested and has not begun yet."""

    @property
    def active(self) -> bool:
        return self._ramp is not None

    @property
    def title(self) -> str:
        """Its title in the command palette."""
        return "Stop the ramp" if self._ramp else f"Ramp {self._range}"

    @property
    def _range(self) -> RampRange:
        return self.asked or parse_ramp(DEFAULT)

    def start_or_stop(self) -> None:
        """Begin with the lowest depth, or stop a ramp at its present depth."""
        if self._ramp is not None:
            self._end(f"the ramp was stopped at {self._ramp.range.option} {self._value}")
            return
        if self._range.option == "iodepth" and self._jobs.engine in SYNCHRONOUS:
            self.port.show_message(
                "warning",
                f"{self._jobs.engine} has one I/O in flight, whatever iodepth says: set "
                "ioengine=libaio (:), or start with --ramp numjobs=1..8",
            )
            return
        self._ramp = Ramp(self._range)
        self._set(self._range.values[0])

    def _set(self, value: int) -> None:
        """Continue with another depth, in a new run that replaces the running one."""
        assert self._ramp is not None
        option, before = self._ramp.range.option, self._current
        self._value, self._step = value, None
        if value == before and self.port.state.running and self.port.state.step is not None:
            self._step = self.port.state.step.step
        else:
            self._jobs.go_on_with(option, str(value))
        values = self._ramp.range.values
        self.port.show_message("info", progress_text(self._ramp, value, values))

    @property
    def _current(self) -> int | None:
        """The depth of the present run, read from its title."""
        step, knob = self.port.state.step, knobs.BY_OPTION[self._range.option]
        value = knobs.title_value(knob, step.title) if step is not None else None
        return int(value) if value else None

    def refuses(self, action: Action) -> bool:
        """End the ramp if a key changes the run, because the user wants control."""
        if self._ramp is not None and action.measures and action.id != RULE:
            self._end(f"the ramp ended at {self._ramp.range.option} {self._value}: you pressed "
                      "a key that changes the run")  # fmt: skip
        return False

    def event(self, event: Event) -> None:
        """Follow the session's events: measure each depth, then set the next one."""
        if self._ramp is None:
            if isinstance(event, StepStarted):
                self.port.state.ramp = self.port.state.ramp if self._switching else None
                self._switching = False
            return
        match event:
            case StepStarted() if self._current == self._value:
                self._step = event.step
            case StepFinished() if event.error:
                # no message of the ramp: the session shows the error
                self._ramp, self._step = None, None
            case StepFinished() if event.step == self._step:
                self._end("the ramp ended with the run")
            case Notice(refused=True):
                self._end("the ramp ended: its next run was refused")
            case FrameReady() if self._step is not None:
                row = self._row()
                if row is not None and (row.seconds or 0.0) >= MEASURED_S and row.iops is not None:
                    self._measured(row, row.iops)

    def _row(self) -> RunRow | None:
        rows = self.port.state.runs.rows
        return next((row for row in rows[-1:] if row.step == self._step), None)

    def _measured(self, row: RunRow, iops: float) -> None:
        assert self._ramp is not None
        ramp = self._ramp
        ramp.add(Level(self._value, iops, row.p99_ns))
        following = ramp.next
        if following is not None:
            self._set(following)
            return
        session = self.port.session
        target = session.target.name if session is not None else ""
        self._switching = ramp.best.value != self._value
        if self._switching:
            self._set(ramp.best.value)
        self._ramp = None
        self.port.state.ramp = Answer(target, RULE, GOOD, ramp.text, NOTHING)
        self.port.show_message("info", ramp.text)
        if self.port.live is not None:
            self.port.live.mark(ramp.text)

    def _end(self, why: str) -> None:
        self._ramp, self._step = None, None
        self.port.show_message("info", why)

    ACTIONS = (
        Action(
            RULE, (Key("", ""),), start_or_stop, title=lambda part: part.title,
            note="raises the running job's depth step by step, up to where more gains nothing",
            disturbs=frozenset({EXPERIMENT, LESSON}), measures=True,
        ),
    )  # fmt: skip
