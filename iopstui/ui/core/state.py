"""What the screen knows: the session's events, folded. No drawing, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import field, replace
from typing import TYPE_CHECKING

from iopstui import format as f
from iopstui.events import (
    Ceased,
    Ended,
    Event,
    ExperimentFinished,
    ExperimentStarted,
    Found,
    FrameReady,
    Judged,
    Mark,
    Notice,
    PointFailed,
    PointFinished,
    PointStarted,
    Progress,
    SteadyState,
    StepFinished,
    StepStarted,
    TunableChanged,
)
from iopstui.model.findings.evidence import Finding, ceased_words
from iopstui.model.fio.interval import FioInterval
from iopstui.model.metrics.cpu_frames import rate_of
from iopstui.model.metrics.cpu_history import CpuHistory
from iopstui.model.metrics.frame import FINAL, LATE, PARTIAL, Frame
from iopstui.model.metrics.history import History
from iopstui.model.metrics.latency_history import LatencyHistory
from iopstui.model.metrics.run_history import RunHistory
from iopstui.model.metrics.stretches import Stretches
from iopstui.records import dataclass
from iopstui.session.run_rows import outcome, take, take_stretch
from iopstui.session.tick.outcomes import FAIL, PASS, together
from iopstui.text import printable
from iopstui.ui.core.moments import Moment, Moments
from iopstui.ui.core.options import BY_OPTION, shown_value

if TYPE_CHECKING:
    from iopstui.ui.experiment.state import ExperimentState

FIO_IOPS, DEVICE_IOPS = "fio", "device"
LATENCIES = ("p50", "p99", "p99.9")
DEVICE_LATENCIES = ("device p50", "device p99")
AWAITS = ("r_await", "w_await")
QUEUE, READ_MIB, WRITE_MIB = "aqu-sz", "read MiB/s", "write MiB/s"
SERIES = (
    FIO_IOPS, DEVICE_IOPS, *LATENCIES, *DEVICE_LATENCIES, *AWAITS, QUEUE, READ_MIB, WRITE_MIB,
)  # fmt: skip
MIB = 1 << 20
LOG_LENGTH = 200
ERROR_STAYS_S = 60.0
INFO_STAYS_S = 20.0
MARKS_APART_S = 5.0
FRESH_S = 0.5
PROBED_STAYS_S = 10.0
NOT_STOPPED, STOPS_WITHIN = 2, 30
NEXT = "r runs it again, [ ] iodepth, v all runs"
ONCE = ("moved",)
FINDINGS_KEPT = 60
FINDING_STAYS_S = 40.0
"""A rule that goes on says so again every 30 s (session/tick/findings.py)."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the session's log. ``level`` is "info", "warning", "error", "mark", "PASS" or
    "FAIL". ``ending``: it says what came of a run."""

    t: float
    level: str
    text: str
    ending: bool = False


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """What a rule found: first at ``first``, last at ``t``, in run number ``step``. ``ceased``: its
    cause is over, in words ("": it is not known to be)."""

    t: float
    first: float
    step: int
    finding: Finding
    ceased: str = ""


@dataclass(frozen=True, slots=True)
class RunShown:
    """The run that the screen shows as the one under way or the last one."""

    step: StepStarted | None
    finished: StepFinished | None
    fio: Frame | None
    judged: tuple[Judged, ...]
    steady: SteadyState | None


@dataclass
class LiveState:
    """The newest of everything, and the history. ``devices`` are those that the jobs work on."""

    devices: tuple[str, ...] = ()
    history: History = field(default_factory=lambda: History(SERIES))
    latencies: LatencyHistory = field(default_factory=LatencyHistory)
    device_latencies: LatencyHistory = field(default_factory=LatencyHistory)
    """The probe's."""
    runs: RunHistory = field(init=False)
    stretches: Stretches = field(init=False)
    """Between the marks."""
    completions: CpuHistory = field(default_factory=CpuHistory)
    """By CPU."""
    _probed: Frame | None = None
    """The newest frame in which the probe has counted something."""
    frame: Frame | None = None
    fio: Frame | None = None
    step: StepStarted | None = None
    progress: Progress | None = None
    finished: StepFinished | None = None
    notice: LogEntry | None = None
    ipi: dict[int, float] = field(default_factory=dict)
    log: deque[LogEntry] = field(default_factory=lambda: deque(maxlen=LOG_LENGTH))
    findings: list[FoundEntry] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    """What came of the last run's expectations; empty while one runs."""
    steady: SteadyState | None = None
    point: PointStarted | None = None
    """The point of an experiment that is measured."""
    experiment: ExperimentState | None = None
    """The one that runs or ran last."""
    t: float = 0.0
    ended: bool = False
    asked: bool = False
    """A run was asked for and has neither begun nor failed yet."""
    turned: dict[str, str] = field(default_factory=dict)
    """What was turned and no run was asked for with yet, in words, by option."""
    sent: dict[str, str] = field(default_factory=dict)
    """The same once a run was asked for with it, until that has begun."""
    was: dict[str, dict[str, str]] = field(default_factory=dict)
    """What changed tunables had been at first, by name and disk."""
    moments: Moments = field(default_factory=Moments)
    """The last minutes, one by one."""
    _asked_after: int | None = None
    """The run that must stop first."""
    _goes_on: int = 0
    """How often it has reported since."""
    _noticed: float = -1.0
    _listed: frozenset[str] = frozenset()
    """Those of ``devices`` that the newest frame has figures of."""
    _went: frozenset[str] = frozenset()
    """Those that earlier frames had figures of, and the newest has not."""

    def __post_init__(self) -> None:
        self.runs = RunHistory(self.devices)
        self.stretches = Stretches(self.devices)

    @property
    def probed(self) -> Frame | None:
        """The newest frame in which the probe has counted something; ``None`` if that is long
        ago: it was switched off, or has ended."""
        frame = self._probed
        return frame if frame is not None and self.t - frame.t <= PROBED_STAYS_S else None

    @property
    def running(self) -> bool:
        """True between the start of a run and its end."""
        return self.step is not None and self.finished is None and not self.ended

    @property
    def gone(self) -> tuple[str, ...]:
        """Those of ``devices`` that the kernel listed and no longer lists."""
        return tuple(name for name in self.devices if name in self._went)

    @property
    def late(self) -> bool:
        """True if fio runs but has not reported for longer than it should."""
        return self.running and self.frame is not None and LATE in self.frame.flags

    @property
    def fio_now(self) -> FioInterval | None:
        """fio's figures while a run goes on; ``fio`` keeps the last ones after it."""
        return self.fio.fio if self.running and self.fio is not None else None

    @property
    def layout(self) -> bool:
        """True while fio only creates the file the job will use."""
        return self.running and self.step is not None and self.step.phase == "layout"

    @property
    def pending(self) -> str:
        """What the next run differs by from the one that is shown, in words."""
        return ", ".join({**self.sent, **self.turned}.values())

    def still(self) -> LiveState:
        """As it is now; what is applied later does not change it."""
        other = copy(self)
        other.history, other.latencies = self.history.copy(), self.latencies.copy()
        other.device_latencies = self.device_latencies.copy()
        other.runs, other.stretches = self.runs.copy(), self.stretches.copy()
        other.moments, other.completions = self.moments.copy(), self.completions.copy()
        return other

    def at(self, moment: Moment) -> LiveState:
        """As it was in an earlier moment; charts and runs are those of now."""
        other = copy(self)
        other.frame, other.fio, other._probed = moment.frame, moment.fio, moment.probed
        other.step, other.finished, other.progress = moment.step, moment.finished, moment.progress
        other.steady, other.judged = moment.steady, list(moment.judged)
        other.ipi, other.findings = dict(moment.ipi), list(moment.findings)
        other.t, other.turned, other.sent = moment.t, {}, {}
        return other

    def _keep_moment(self, frame: Frame) -> None:
        self.moments.add(
            Moment(
                frame, self.fio, self._probed, self.step, self.finished, self.progress,
                self.steady, tuple(self.judged), self.ipi, tuple(self.findings),
            )
        )  # fmt: skip

    def ask(self) -> None:
        """A run is asked for, with all that was turned; one that runs will be stopped first."""
        self.asked = True
        self._asked_after = self.step.step if self.step is not None and self.running else None
        self._goes_on = -STOPS_WITHIN
        self.sent.update(self.turned)
        self.turned.clear()

    def turn(self, option: str, words: str) -> None:
        """``option`` was turned; no run was asked for with it yet."""
        self.turned[option] = words

    def forget_turned(self) -> None:
        """Forget the changed options for which no run was asked."""
        self.turned.clear()

    def ask_no_more(self) -> None:
        """Forget the run that was asked for."""
        self.asked = False
        self.turned.clear()
        self.sent.clear()

    def apply(self, event: Event) -> None:
        """Take in one event."""
        self.t = max(self.t, event.t)
        if self.experiment is not None:
            self.experiment.apply(event)
        take(self.runs, event)
        take_stretch(self.stretches, event)
        match event:
            case FrameReady():
                self._frame(event.frame)
            case Mark():
                self.history.mark(event.t, printable(event.text))
                self._say(event.t, "mark", f"mark: {event.text}")
            case Notice():
                self._say(event.t, event.level, event.text)
                self._noticed = event.t
            case Found():
                self._found(event)
            case Ceased():
                self._ceased(event)
            case Judged():
                self._judged(event)
            case SteadyState():
                self.steady = event
                self.log.append(LogEntry(event.t, "info", printable(event.text)))
            case (
                ExperimentStarted()
                | PointStarted()
                | PointFinished()
                | PointFailed()
                | ExperimentFinished()
            ):
                self._experiment(event)
            case TunableChanged():
                self.was.setdefault(event.name, {}).setdefault(event.device, event.before)
                words = f"{event.device}: {event.name} was {event.before}, is {event.now}"
                self.log.append(LogEntry(event.t, "info", printable(words)))
            case StepStarted():
                self._started(event)
            case Progress():
                self.progress = event
            case StepFinished():
                self._finished(event)
            case Ended():
                self._ended(event)

    def say(self, level: str, text: str) -> None:
        """A message of the screen's own, now: what a key has done is told though an error stands
        there, which stays in the list of messages."""
        self._say(self.t, level, text)
        self.notice = self.log[-1]

    def forget_notice(self) -> None:
        """Drop the newest message: it no longer applies."""
        self.notice = None

    @property
    def run_shown(self) -> RunShown:
        """For ``show_run``, when others were made meanwhile."""
        return RunShown(self.step, self.finished, self.fio, tuple(self.judged), self.steady)

    def show_run(self, run: RunShown) -> None:
        """Shows an earlier run as the last one."""
        self.step, self.finished, self.fio = run.step, run.finished, run.fio
        self.judged, self.steady = list(run.judged), run.steady

    @property
    def next_keys(self) -> str:
        """What can be pressed after a run, while its end is told and no other follows."""
        told = self.visible_notice()
        over = told is not None and told.ending and not self.running and not self.asked
        return NEXT if over else ""

    def visible_notice(self) -> LogEntry | None:
        """The newest message, until it is too old to matter."""
        notice = self.notice
        if notice is None:
            return None
        stays = INFO_STAYS_S if notice.level in ("info", "mark") else ERROR_STAYS_S
        return notice if self.t - notice.t <= stays else None

    def current_findings(self) -> list[FoundEntry]:
        """What holds now, with or without a job, or held at the end of the last run: the newest
        first, of one second the most telling first; behind them what has ceased lately."""
        step = self.step.step if self.step is not None else 0
        held = [
            entry
            for entry in self.findings
            if entry.step == step and self._now_for(entry) - entry.t <= FINDING_STAYS_S
        ]
        return sorted(held, key=lambda entry: (bool(entry.ceased), -entry.t))

    def _now_for(self, entry: FoundEntry) -> float:
        """What is said of a run stays as it was at its end; what was found since then ages."""
        if self.finished is None or entry.t > self.finished.t:
            return self.t
        return min(self.t, self.finished.t)

    def _found(self, event: Found) -> None:
        """A rule that fires again moves up; it is not listed twice."""
        step = self.step.step if self.step is not None else 0
        rule, first = event.finding.rule, event.t
        for index, entry in enumerate(self.findings):
            # the same tunable changed again is another finding
            same = (entry.step, entry.finding.rule) == (step, rule) and rule not in ONCE
            if same and not entry.ceased:
                first = entry.first
                del self.findings[index]
                break
        self.findings.append(FoundEntry(event.t, first, step, event.finding))
        del self.findings[:-FINDINGS_KEPT]
        self.moments.found(self.findings)

    def _ceased(self, event: Ceased) -> None:
        """The newest of this rule is over; it is shown as that for a while."""
        for index in reversed(range(len(self.findings))):
            entry = self.findings[index]
            if entry.finding.rule == event.rule and not entry.ceased:
                words = ceased_words(event.since, event.until)
                self.findings[index] = replace(entry, t=event.t, ceased=words)
                self.moments.found(self.findings)
                return

    def _judged(self, event: Judged) -> None:
        self.judged.append(event)
        level, words = together([event])
        self.log.append(LogEntry(event.t, level, printable(words)))
        level, words = together(self.judged)
        self._show(LogEntry(event.t, level, printable(words)))

    def _experiment(
        self,
        event: ExperimentStarted | PointStarted | PointFinished | PointFailed | ExperimentFinished,
    ) -> None:
        match event:
            case ExperimentStarted():
                from iopstui.ui.experiment.state import ExperimentState

                self.experiment = ExperimentState(event.plan, event.t)
            case PointStarted():
                self.point = event
                words = f"point {event.index + 1} of {event.total}: {event.label}"
                self._say(event.t, "info", f"{words}, {f.clock(event.left_s)} left")
            case PointFinished():
                self._point_finished(event)
            case PointFailed():
                words = f"point {event.index + 1} of {event.total}: {event.label}: failed: "
                self._say(event.t, "warning", words + event.error)
            case ExperimentFinished():
                self.point = None
                how = "interrupted" if event.interrupted else "failed" if event.error else "done"
                what = "runs" if self.experiment and self.experiment.plan.variants else "points"
                words = f"{how}: {event.done} of {event.total} {what} are measured"
                self._say(event.t, "info", words)

    def _point_finished(self, event: PointFinished) -> None:
        point = event.point
        words = f"point {event.index + 1} of {event.total}: {event.label}: "
        words += f"{f.number(point.iops)} IOPS, {f.latency(point.latency_ns)}"
        failed = any(one.passed is False for one in event.outcomes)
        level = FAIL if failed else PASS if event.outcomes else "info"
        self._say(event.t, level, words if level == "info" else f"{level}  {words}")

    def _outcome(self, event: StepFinished) -> str:
        rows = self.runs.rows
        if rows and rows[-1].step == event.step:
            return outcome(rows[-1])
        return f"run {event.step} was stopped" if event.interrupted else f"run {event.step} is over"

    def _say(self, t: float, level: str, text: str, ending: bool = False) -> None:
        entry = LogEntry(t, level, printable(text), ending)
        self.log.append(entry)
        self._show(entry)

    def _show(self, entry: LogEntry) -> None:
        t, level, shown = entry.t, entry.level, self.notice
        # fio explains an error in several lines: the error itself must stay in sight
        if (
            shown is not None
            and shown.level == "error"
            and level in ("info", PASS)
            and t - shown.t < ERROR_STAYS_S / 4
        ):
            return
        self.notice = entry

    def _frame(self, frame: Frame) -> None:
        self.frame = frame
        counted = rate_of(frame.cpus, "ipi_s")
        # never changed in place: the moments before keep theirs
        self.ipi = {**self.ipi, **counted} if counted else self.ipi
        fio = frame.fio
        values: dict[str, float | None] = {}
        if fio is not None:
            # what a run still did after its last whole second says little by itself
            if self.fio is None or not {FINAL, PARTIAL} <= frame.flags:
                self.fio = frame
            self._goes_on += FINAL not in frame.flags
            awaited = self.step is not None and self._asked_after == self.step.step
            if awaited and self._goes_on >= NOT_STOPPED:
                self._none_follows()
            self.progress = None
            values[FIO_IOPS] = fio.total.iops
            for name in LATENCIES:
                values[name] = fio.total.percentiles.get(name)
        self._there(frame)
        disk = frame.together(self.devices)
        if disk is not None:
            values[DEVICE_IOPS], values[QUEUE] = disk.ios_s, disk.aqu_sz
            for name, bytes_s in ((READ_MIB, disk.r_bytes_s), (WRITE_MIB, disk.w_bytes_s)):
                values[name] = None if bytes_s is None else bytes_s / MIB
            for name, await_ms in zip(AWAITS, (disk.r_await, disk.w_await), strict=True):
                values[name] = None if await_ms is None else await_ms * 1e6
        self._take_probe(frame, values)
        seconds = frame.seconds or (fio.seconds if fio else None)
        if seconds and fio is not None:
            self.latencies.add(frame.t, seconds, fio.total.bins)
        if seconds and values:
            self.history.add(frame.t, seconds, values)
        if frame.seconds:
            self.completions.add(frame.t, frame.seconds, rate_of(frame.cpus, "block_s"))
        self._keep_moment(frame)

    def _there(self, frame: Frame) -> None:
        """Says when the kernel begins or ceases to list a device that is looked at."""
        if not frame.disks:
            return
        listed = frozenset(name for name in self.devices if name in frame.disks)
        if not self.running:
            for name in sorted(self._listed - listed):
                self._say(frame.t, "warning", gone_words((name,)))
            for name in sorted(listed & self._went):
                self._say(frame.t, "info", f"{name} is there again")
        self._went = (self._went | self._listed) - listed
        self._listed = listed

    def _take_probe(self, frame: Frame, values: dict[str, float | None]) -> None:
        if frame.probe is None:
            return
        self._probed = frame
        found = frame.probe.together(self.devices)
        if found is None:
            return
        for name, p in zip(DEVICE_LATENCIES, ("p50", "p99"), strict=True):
            values[name] = found.device.percentiles.get(p)
        self.device_latencies.add(frame.t, frame.probe.seconds, found.device.bins)

    def _started(self, event: StepStarted) -> None:
        new_run = self.step is None or self.step.step != event.step
        if new_run:
            self._begun_with(event)
        self.step, self.finished, self.progress = event, None, None
        self.fio = None
        self.judged, self.steady = [], None
        if event.phase == "run" and self.point is not None:
            self.history.mark(event.t, printable(self.point.label))
        # a changed option has left its own mark, and that says more
        elif event.phase == "run" and not any(self.history.marks(event.t - MARKS_APART_S, event.t)):
            self.history.mark(event.t, printable(event.job))
        # what was said of this very start (bound to queues ...) is no old news
        fresh = self._noticed >= event.t - FRESH_S
        # what came of the run before stays true
        ending = self.notice is not None and self.notice.ending
        if new_run and not ending and not fresh:
            self.notice = None
        words = f"run {event.step}, {event.phase}: {event.job}, {event.title}, {event.fio_version}"
        self.log.append(LogEntry(event.t, "info", printable(words)))

    def _begun_with(self, event: StepStarted) -> None:
        """What was asked for is in force by now, unless the run's title denies it: then it came
        a little too late for this run, and another follows."""
        for option, words in list(self.sent.items()):
            knob = BY_OPTION.get(option)
            shown = shown_value(knob, event.title) if knob is not None else None
            if shown is None or shown == words.rpartition(" ")[2].lower():
                del self.sent[option]
        self.asked = bool(self.sent)
        self._asked_after = event.step if self.sent else None
        self._goes_on = 0

    def _none_follows(self) -> None:
        self.asked, self._asked_after = False, None
        self.sent.clear()

    def _ended(self, event: Ended) -> None:
        self.ended = True
        self.ask_no_more()
        shown = self.notice
        why = f" ({shown.text})" if shown is not None and shown.level == "error" else ""
        words = f"the session has ended, nothing is measured any more{why}"
        self._say(event.t, "error", words)

    def _finished(self, event: StepFinished) -> None:
        self.finished, self.progress = event, None
        # the one that had to stop first has not answered for the next
        if event.step != self._asked_after or not event.interrupted:
            self._none_follows()
        if self.step is None or self.step.step != event.step:
            self.step = None
        if event.error:
            self._say(event.t, "error", f"{event.error} {event.hint}".strip())
        elif self.experiment is not None and self.experiment.active:
            pass  # it goes on
        else:
            self._say(event.t, "info", self._outcome(event), ending=True)
        for line in event.fio_log[-5:] if event.error else ():
            self.log.append(LogEntry(event.t, "info", printable(line)))


def gone_words(names: Sequence[str]) -> str:
    """That these devices are gone."""
    one = len(names) == 1
    are, them = ("is", "it") if one else ("are", "them")
    return f"{', '.join(names)} {are} gone: the kernel no longer lists {them}"
