"""The state that the screen shows, made from the session's events, without drawing or a clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iopstui import format as f
from iopstui.events import (
    LAYOUT,
    RUN,
    AnswerGiven,
    Event,
    ExpectationChecked,
    ExperimentFinished,
    ExperimentStarted,
    FindingEnded,
    FindingReported,
    FrameReady,
    LayoutProgress,
    Mark,
    Notice,
    PointFailed,
    PointFinished,
    PointStarted,
    SessionEnded,
    StallFound,
    SteadyState,
    StepFinished,
    StepStarted,
    TunableChanged,
)
from iopstui.model.answer.answer import Answer
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.cpu_accounts import mean_by_cpu
from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.rows import duration_s
from iopstui.model.metrics.cpus import CpuHistory, rate_of
from iopstui.model.metrics.frame import FINAL, LATE, PARTIAL, Frame
from iopstui.model.metrics.history import MIN_MARK_SPACING_S, History
from iopstui.model.metrics.latency_history import LatencyHistory
from iopstui.model.metrics.probe import ProbeInterval
from iopstui.model.metrics.run_figures import MarkIntervals
from iopstui.model.metrics.run_history import RunHistory, RunRow
from iopstui.model.samples import DriveReading
from iopstui.session.run_rows import add_mark_event, add_run_event, run_outcome
from iopstui.session.tick.outcomes import FAIL, PASS, worst_outcome
from iopstui.text import printable
from iopstui.ui.state.findings import (
    DisplayedRun,
    FindingEntry,
    FindingList,
    HistoryEntry,
    Log,
    LogEntry,
    SecondHistory,
)
from iopstui.ui.state.next_run import NextRun, OptionSteps

if TYPE_CHECKING:
    from iopstui.ui.state.experiment import ExperimentState
    from iopstui.ui.state.volume import VolumeState

FIO_IOPS, DEVICE_IOPS = "fio", "device"
LATENCIES = ("p50", "p99", "p99.9")
DEVICE_LATENCIES = ("device p50", "device p99")
AWAITS = (DiskRates.r_await.name, DiskRates.w_await.name)
QUEUE, READ_MIB, WRITE_MIB = DiskRates.aqu_sz.name, "read MiB/s", "write MiB/s"
SERIES = (
    FIO_IOPS, DEVICE_IOPS, *LATENCIES, *DEVICE_LATENCIES, *AWAITS, QUEUE, READ_MIB, WRITE_MIB,
)  # fmt: skip
MIB = 1 << 20
RECENT_S = 0.5
SECONDS_BEFORE = 4
"""How many seconds before a change of a tunable the CPUs' completions are averaged, for
comparison."""
PROBE_STAYS_S = 10.0
MAX_EARLIER = 20
"""How many earlier experiments' answers are kept."""
NEXT_KEYS = "r runs it again, [ ] iodepth, v all runs"


ExperimentEvent = (
    ExperimentStarted | PointStarted | PointFinished | PointFailed | ExperimentFinished
)


@dataclass
class LiveState:
    """The newest value of everything, and the history. ``devices`` are the devices on which the
    jobs work."""

    devices: tuple[str, ...] = ()
    history: History = field(default_factory=lambda: History(SERIES))
    latencies: LatencyHistory = field(default_factory=LatencyHistory)
    device_latencies: LatencyHistory = field(default_factory=LatencyHistory)
    """Latencies that the probe measured."""
    runs: RunHistory = field(init=False)
    mark_intervals: MarkIntervals = field(init=False)
    """The intervals between the marks."""
    completions: CpuHistory = field(default_factory=CpuHistory)
    """Completions by CPU."""
    _probe_frame: Frame | None = None
    """The newest frame with counts of the probe."""
    frame: Frame | None = None
    fio: Frame | None = None
    step: StepStarted | None = None
    progress: LayoutProgress | None = None
    finished: StepFinished | None = None
    ipi: dict[int, float] = field(default_factory=dict)
    drives: dict[str, tuple[float, DriveReading]] = field(default_factory=dict)
    """The last reading of each NVMe drive, with its time, by the drive's controller."""
    log: Log = field(default_factory=Log)
    findings: FindingList = field(default_factory=FindingList)
    next_run: NextRun = field(default_factory=NextRun)
    outcomes: list[ExpectationChecked] = field(default_factory=list)
    """The outcomes of the last run's expectations; empty during a run."""
    answer: Answer | None = None
    """The last answer (events.AnswerGiven); it stays until another one is given."""
    run_answers: Mapping[int, Answer] = field(default_factory=dict)
    """The last answers of ended runs, by their step."""
    ramp: Answer | None = None
    """The result of a ramp, while its best depth runs."""
    steady: SteadyState | None = None
    point: PointStarted | None = None
    """The point of an experiment that is now being measured."""
    experiment: ExperimentState | None = None
    """The current or last experiment."""
    earlier_answers: deque[tuple[str, str]] = field(
        default_factory=lambda: deque(maxlen=MAX_EARLIER)
    )
    """The answers of the experiments before it."""
    t: float = 0.0
    total_s: int | None = None
    """Total duration of the current run in seconds, as far as fio knows it."""
    ended: bool = False
    initial_tunables: dict[str, dict[str, str]] = field(default_factory=dict)
    """The values of changed tunables before the first change, by name and disk."""
    volume: VolumeState | None = None
    """The bought volume and its credits; ``None`` if no volume was given."""
    tunable_change: TunableChanged | None = None
    """The newest change of a tunable."""
    completions_before: Mapping[int, float] = field(default_factory=dict)
    """BLOCK softirqs per second by CPU, in the seconds before that change."""
    option_steps: OptionSteps = field(default_factory=OptionSteps)
    """The option that was changed last, with its values."""
    recent_seconds: SecondHistory = field(default_factory=SecondHistory)
    """The last minutes, second by second."""
    _last_notice_t: float = -1.0
    _listed_devices: frozenset[str] = frozenset()
    """The devices of ``devices`` for which the newest frame has figures."""
    _gone_devices: frozenset[str] = frozenset()
    """The devices of ``devices`` for which only earlier frames have figures."""

    def __post_init__(self) -> None:
        self.runs = RunHistory()
        self.mark_intervals = MarkIntervals()

    @property
    def why_no_rates(self) -> str:
        """Why there are no figures of the kernel for the newest second."""
        if self.frame is None or self.frame.seq == 0:
            return "first sample; rates need two"
        return "not measured in this second"

    @property
    def probe_frame(self) -> Frame | None:
        """The newest frame with counts of the probe; ``None`` if it is old, because the probe is
        then off or has ended."""
        frame = self._probe_frame
        return frame if frame is not None and self.t - frame.t <= PROBE_STAYS_S else None

    @property
    def probe(self) -> ProbeInterval | None:
        """What the probe counted in that frame."""
        frame = self.probe_frame
        return frame.probe if frame is not None else None

    @property
    def running(self) -> bool:
        """Whether a run has started and not yet ended."""
        return self.step is not None and self.finished is None and not self.ended

    @property
    def missing_devices(self) -> tuple[str, ...]:
        """The devices of ``devices`` that the kernel no longer lists."""
        return tuple(name for name in self.devices if name in self._gone_devices)

    @property
    def late(self) -> bool:
        """Whether fio runs but its report is overdue."""
        return self.running and self.frame is not None and LATE in self.frame.flags

    @property
    def fio_now(self) -> FioInterval | None:
        """fio's figures during a run; ``None`` after it, while ``fio`` keeps the last frame."""
        return self.fio.fio if self.running and self.fio is not None else None

    @property
    def creating_file(self) -> bool:
        """Whether fio is only creating the file that the job will use."""
        return self.running and self.step is not None and self.step.phase == LAYOUT

    def snapshot(self) -> LiveState:
        """A copy that later events do not change."""
        frozen = copy(self)
        frozen.history, frozen.latencies = self.history.copy(), self.latencies.copy()
        frozen.device_latencies = self.device_latencies.copy()
        frozen.runs, frozen.mark_intervals = self.runs.copy(), self.mark_intervals.copy()
        frozen.recent_seconds, frozen.completions = (
            self.recent_seconds.copy(),
            self.completions.copy(),
        )
        frozen.log, frozen.findings = self.log.copy(), self.findings.copy()
        frozen.next_run = self.next_run.copy()
        frozen.option_steps = deepcopy(self.option_steps)
        return frozen

    def at(self, moment: HistoryEntry) -> LiveState:
        """The state at an earlier second, except that charts and runs are the present ones."""
        past = copy(self)
        past.show_run(moment.run)
        past.frame, past._probe_frame, past.progress = (
            moment.frame, moment.probe_frame, moment.progress,
        )  # fmt: skip
        past.total_s = self.total_s if past.step == self.step else None
        past.ipi, past.findings = dict(moment.ipi), FindingList(moment.findings)
        past.drives, past.answer = dict(moment.drives), moment.answer
        past.t, past.next_run = moment.t, self.next_run.without_changes()
        return past

    def _add_second(self, frame: Frame) -> None:
        self.recent_seconds.add(
            HistoryEntry(
                frame, self.displayed_run, self._probe_frame, self.progress, self.ipi,
                tuple(self.findings.entries), self.drives, self.answer,
            )
        )  # fmt: skip

    def request_run(self) -> None:
        """Request a run with all changed options; a running one will be stopped first."""
        self.next_run.request(self.step.step if self.step is not None and self.running else None)

    def apply(self, event: Event) -> None:
        self.t = max(self.t, event.t)
        if self.experiment is not None:
            self.experiment.apply(event)
        add_run_event(self.runs, event)
        add_mark_event(self.mark_intervals, event)
        if isinstance(event, ExperimentEvent):
            self._apply_experiment_event(event)
            return
        match event:
            case FrameReady():
                self._add_frame(event.frame)
            case Mark() | Notice() | StallFound():
                self._add_message_event(event)
            case FindingReported():
                self.findings.add(event, self._step)
                self.recent_seconds.set_findings(self.findings.entries)
            case FindingEnded():
                self._finding_ended(event)
            case AnswerGiven():
                self.answer = event.answer
            case ExpectationChecked():
                self._add_outcome(event)
            case SteadyState():
                self.steady = event
                self.log.add(event.t, "info", event.text)
            case TunableChanged():
                self._note_tunable(event)
            case StepStarted():
                self._start_step(event)
            case LayoutProgress():
                self.progress = event
            case StepFinished():
                self._finish_step(event)
            case SessionEnded():
                self._end_session(event)

    def _finding_ended(self, event: FindingEnded) -> None:
        if self.findings.end(event):
            self.recent_seconds.set_findings(self.findings.entries)

    def _add_message_event(self, event: Mark | Notice | StallFound) -> None:
        match event:
            case Mark():
                self.history.mark(event.t, printable(event.text))
                self.log.add_line(event.t, "mark", f"mark: {event.text}")
            case Notice():
                self.log.add_line(event.t, event.level, event.text)
                self._last_notice_t = event.t
                if event.refused:
                    self.next_run.refuse()
            case StallFound():
                stall = event.stall
                self.history.band(stall.start, stall.start + stall.seconds, printable(stall.flag))
                self.log.add_line(event.t, "warning", f"stall: {stall.text}")

    def _note_tunable(self, event: TunableChanged) -> None:
        self.tunable_change = event
        frames = [entry.frame for entry in self.recent_seconds][-SECONDS_BEFORE:]
        self.completions_before = mean_by_cpu(frames, "block_s")
        self.initial_tunables.setdefault(event.name, {}).setdefault(event.device, event.before)
        text = f"{event.device}: {event.name} was {event.before}, is {event.now}"
        self.log.add(event.t, "info", text)

    def add_message(self, level: str, text: str) -> None:
        """Show a message of the screen itself, such as the result of a key, even in place of an
        error; the error stays in the log."""
        self.log.add_over_error(self.t, level, text)

    @property
    def displayed_run(self) -> DisplayedRun:
        """The current run, to be restored with ``show_run`` after other runs."""
        return DisplayedRun(self.step, self.finished, self.fio, tuple(self.outcomes), self.steady)

    def show_run(self, run: DisplayedRun) -> None:
        self.step, self.finished, self.fio = run.step, run.finished, run.fio
        self.total_s = None
        self.outcomes, self.steady = list(run.outcomes), run.steady

    @property
    def next_keys(self) -> str:
        """Keys to press after a run, shown with the message about its end."""
        notice = self.visible_notice()
        has_ended = (
            notice is not None
            and notice.ending
            and not self.running
            and not self.next_run.requested
        )
        return NEXT_KEYS if has_ended else ""

    def visible_notice(self) -> LogEntry | None:
        """The newest message, unless it is too old."""
        return self.log.visible(self.t)

    def current_findings(self) -> list[FindingEntry]:
        """Findings that hold now, with or without a job, or held at the end of the last run: the
        newest first, and within a second the most informative first. Findings that ended recently
        come last."""
        finished = self.finished.t if self.finished is not None else None
        return self.findings.current(self._step, self.t, finished)

    @property
    def _step(self) -> int:
        return self.step.step if self.step is not None else 0

    def _add_outcome(self, event: ExpectationChecked) -> None:
        self.outcomes.append(event)
        level, text = worst_outcome([event])
        self.log.add(event.t, level, text)
        level, text = worst_outcome(self.outcomes)
        self.log.show(LogEntry(event.t, level, printable(text)))

    def _apply_experiment_event(self, event: ExperimentEvent) -> None:
        match event:
            case ExperimentStarted():
                from iopstui.ui.state.experiment import ExperimentState

                self._keep_answer()
                self.experiment = ExperimentState(event.plan, event.t, self.experiment)
            case PointStarted():
                self.point = event
                text = self._point_text(event.index, event.total, event.label)
                left = f", {f.clock(event.left_s)} left" if event.left_s else ""
                self.log.add_line(event.t, "info", f"{text}{left}")
            case PointFinished():
                self._log_finished_point(event)
            case PointFailed():
                text = self._point_text(event.index, event.total, event.label)
                self.log.add_line(event.t, "warning", f"{text}: failed: {event.error}")
            case ExperimentFinished():
                self.point = None
                outcome = (
                    "interrupted" if event.interrupted else "failed" if event.error else "done"
                )
                text = f"{outcome}: {event.done} of {event.total} {self._point_noun}s measured"
                if self.experiment is not None:
                    text += f" in {f.duration(event.t - self.experiment.start_t)}"
                self.log.add_line(event.t, "info", text)

    @property
    def ended_run(self) -> RunRow | None:
        """The row of the run that ended last."""
        ended = self.finished
        return next((row for row in self.runs.rows if ended and row.step == ended.step), None)

    def _keep_answer(self) -> None:
        """Keep the answer of an experiment for the end of the session: the next one begins."""
        if self.experiment is not None and self.experiment.points:
            self.earlier_answers.append(self.experiment.answer)

    def experiment_text(self, target: str) -> str:
        """The answer of each earlier experiment on ``target`` in a line, then the results of the
        last one, as text; "" if there are none."""
        texts = [f"{jobs} on {printable(target)}: {rest}" for jobs, rest in self.earlier_answers]
        if self.experiment is not None and self.experiment.points:
            from iopstui.ui.state.experiment import result_text

            texts.append(result_text(self.experiment, target))
        return "\n".join(texts)

    @property
    def _point_noun(self) -> str:
        return self.experiment.plan.unit if self.experiment else "point"

    def _point_text(self, index: int, total: int, label: str) -> str:
        return f"{self._point_noun} {index + 1} of {total}: {label}"

    def _log_finished_point(self, event: PointFinished) -> None:
        point = event.point
        text = self._point_text(event.index, event.total, event.label)
        text += f": {f.number(point.iops)} IOPS, {f.latency(point.latency_ns)}"
        failed = any(outcome.passed is False for outcome in event.outcomes)
        level = FAIL if failed else PASS if event.outcomes else "info"
        self.log.add_line(event.t, level, text if level == "info" else f"{level}  {text}")

    def _outcome_text(self, event: StepFinished) -> str:
        rows = self.runs.rows
        if rows and rows[-1].step == event.step:
            return run_outcome(rows[-1], self.runs.name_of(rows[-1]))
        return (
            f"run {event.step} was stopped" if event.interrupted else (f"run {event.step} finished")
        )

    def _add_frame(self, frame: Frame) -> None:
        self.frame = frame
        ipi_rates = rate_of(frame.cpus, "ipi_s")
        # a new dict, because entries of earlier seconds refer to the old one
        self.ipi = {**self.ipi, **ipi_rates} if ipi_rates else self.ipi
        new_readings = {name: (frame.t, reading) for name, reading in frame.nvme.items()}
        self.drives = {**self.drives, **new_readings} if new_readings else self.drives
        fio = frame.fio
        values: dict[str, float | None] = {}
        if fio is not None:
            # do not show the part of a second that remains at a run's end
            if self.fio is None or not {FINAL, PARTIAL} <= frame.flags:
                self.fio = frame
            self.total_s = _total_s(self.total_s, fio, self.step.options if self.step else {})
            self.next_run.reported(self._step, FINAL in frame.flags)
            self.progress = None
            values[FIO_IOPS], _ = frame.drawn
            for name in LATENCIES:
                values[name] = fio.total.percentiles.get(name)
        self._note_listed_devices(frame)
        disk = frame.combined(self.devices)
        if disk is not None:
            if self.volume is not None:
                self.volume.feed(disk)
            values[DEVICE_IOPS], values[QUEUE] = disk.ios_s, disk.aqu_sz
            for name, bytes_s in ((READ_MIB, disk.r_bytes_s), (WRITE_MIB, disk.w_bytes_s)):
                values[name] = None if bytes_s is None else bytes_s / MIB
            for name, await_ms in zip(AWAITS, (disk.r_await, disk.w_await), strict=True):
                values[name] = None if await_ms is None else await_ms * 1e6
        self._add_probe(frame, values)
        seconds = frame.seconds or (fio.seconds if fio else None)
        if seconds and fio is not None:
            self.latencies.add(frame.t, seconds, fio.total.bins)
        if seconds and values:
            self.history.add(frame.t, seconds, values)
        if frame.seconds:
            self.completions.add(frame.t, frame.seconds, rate_of(frame.cpus, "block_s"))
        self._add_second(frame)

    def _note_listed_devices(self, frame: Frame) -> None:
        """Log when the kernel starts or stops listing a device of the target."""
        if not frame.disks:
            return
        listed = frozenset(name for name in self.devices if name in frame.disks)
        if not self.running:
            for name in sorted(self._listed_devices - listed):
                self.log.add_line(frame.t, "warning", missing_devices_text((name,)))
            for name in sorted(listed & self._gone_devices):
                self.log.add_line(frame.t, "info", f"{name} is back")
        self._gone_devices = (self._gone_devices | self._listed_devices) - listed
        self._listed_devices = listed

    def _add_probe(self, frame: Frame, values: dict[str, float | None]) -> None:
        if frame.probe is None:
            return
        self._probe_frame = frame
        times = frame.probe.device_times(self.devices)
        if times is None:
            return
        for name, p in zip(DEVICE_LATENCIES, ("p50", "p99"), strict=True):
            values[name] = times.percentiles.get(p)
        self.device_latencies.add(frame.t, frame.probe.seconds, times.bins)

    def _start_step(self, event: StepStarted) -> None:
        new_run = self.step is None or self.step.step != event.step
        if new_run:
            self.next_run.mark_applied(event.step, event.title)
            self.answer = None
        self.step, self.finished, self.progress = event, None, None
        self.total_s = None
        if event.overlap_s is None:
            self.fio = None
        self.outcomes, self.steady = [], None
        if event.phase == RUN:
            self.option_steps.start_run(event.t, event.title, event.options)
        if event.phase == RUN and self.point is not None:
            self.history.mark(event.t, printable(self.point.label))
        # no mark if a changed option has just set one, which says more
        elif event.phase == RUN and not any(
            self.history.marks(event.t - MIN_MARK_SPACING_S, event.t)
        ):
            self.history.mark(event.t, printable(event.job))
        # keep a message that belongs to this start (bound to queues ...)
        fresh = self._last_notice_t >= event.t - RECENT_S
        # keep the message with the previous run's result
        ending = self.log.notice is not None and self.log.notice.ending
        if new_run and not ending and not fresh:
            self.log.forget_notice()
        text = f"run {event.step}, {event.phase}: {event.job}, {event.title}, {event.fio_version}"
        if event.overlap_s is not None:
            text += f", in place of the run before: {_overlap_text(event.overlap_s)}"
        self.log.add(event.t, "info", text)

    def _end_session(self, event: SessionEnded) -> None:
        self.ended = True
        self.next_run.cancel()
        notice = self.log.notice
        why = f" ({notice.text})" if notice is not None and notice.level == "error" else ""
        text = f"the session has ended, no more measurements{why}"
        self.log.add_line(event.t, "error", text)

    def _finish_step(self, event: StepFinished) -> None:
        self.finished, self.progress = event, None
        self.answer = self.answer.of_ended_run if self.answer is not None else None
        if self.answer is not None:
            self.run_answers = {**self.run_answers, event.step: self.answer}
        self.option_steps.end_run(event.t)
        self.next_run.finished(event.step, event.interrupted)
        if self.step is None or self.step.step != event.step:
            self.step = None
        if event.error:
            self.log.add_line(event.t, "error", f"{event.error} {event.hint}".strip())
        elif self.experiment is not None and self.experiment.active:
            pass  # no message: the experiment goes on
        else:
            self.log.add_line(event.t, "info", self._outcome_text(event), ending=True)
        for line in event.fio_log[-5:] if event.error else ():
            self.log.add(event.t, "info", line)


def _overlap_text(seconds: float) -> str:
    if seconds >= 0:
        return f"both did I/O for {seconds:.2f} s"
    return f"no I/O for {-seconds:.2f} s"


def missing_devices_text(names: Sequence[str]) -> str:
    """A message that these devices are gone."""
    singular = len(names) == 1
    are, pronoun = ("is", "it") if singular else ("are", "them")
    return f"{', '.join(names)} {are} gone: the kernel no longer lists {pronoun}"


def _total_s(before: int | None, fio: FioInterval, options: Mapping[str, str]) -> int | None:
    """The total time of a run. fio rounds the elapsed and the remaining time at different moments,
    so their sum varies by two seconds. Within that tolerance, the job's own time is used, or else
    the earlier total."""
    if fio.elapsed_s is None or fio.eta_s is None:
        return before
    total = fio.elapsed_s + fio.eta_s
    asked_s = sum(duration_s(options.get(name, "")) or 0.0 for name in _RUN_TIMES)
    for known in (round(asked_s) if "runtime" in options else None, before):
        if known and abs(total - known) <= ROUNDED_S:
            return known
    return total


_RUN_TIMES = ("runtime", "ramp_time", "startdelay")
ROUNDED_S = 2
