"""Apply the rules of model/findings/diagnosis.py to a session's frames and report new findings."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from iopstui.linux.own_threads import initial_cpus
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DeviceLinks
from iopstui.model.findings.active_findings import (
    ActiveFindings,
    EndedFinding,
    answer_question,
    contradiction,
)
from iopstui.model.findings.conditions import Conditions, with_ended
from iopstui.model.findings.diagnosis import fired_findings, reported_findings
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    LONG_ENOUGH,
    NO_CONDITIONS,
    Evidence,
    JobShape,
    SteadyRun,
    measured_frames,
)
from iopstui.model.findings.figures import fio_bytes_s, fio_iops, fio_latency_ns, iops_spread
from iopstui.model.findings.finding import Finding
from iopstui.model.findings.rules.cgroups import needs_cgroup_readings
from iopstui.model.findings.rules.network.nfs import unanswered_requests
from iopstui.model.findings.rules.network.smb import unanswered_requests as unanswered_smb
from iopstui.model.findings.rules.waits import needs_process_readings, no_completions
from iopstui.model.findings.siblings import SiblingWatch
from iopstui.model.findings.tunable_effect import (
    SECONDS_COMPARED,
    TunableChange,
    frames_around,
    tunable_effect,
)
from iopstui.model.metrics.frame import FINAL, Frame
from iopstui.model.samples import DriveReading

if TYPE_CHECKING:
    from iopstui.model.volumes.promised import PromisedFigures

MAX_FRAMES = 30
REPEAT_S = 30.0
# number of frames after a run that are not judged as background I/O: the kernel still writes
# back, and files are removed
SETTLE_FRAMES = 5
# without a job, this many of the last seconds are judged
IDLE_FRAMES = 5
# seconds that a run needs to decide a question
ANSWER_AFTER_SECONDS = 5


class FindingTracker:
    """Fed with every frame; yields a finding when its rule begins to fire, and again every
    ``REPEAT_S`` seconds while it goes on (``ended_findings`` has those that ended); and the effect
    of a changed tunable some seconds later. Between runs only the kernel's side is judged.
    ``uncounted_targets`` are the jobs' targets that are no devices, ``links`` says what lies below
    each device, ``volume`` is the bought one. ``asks_for_processes``: it is worth reading which
    processes do I/O (Conditions.processes); ``asks_for_groups``: the same for cgroups."""

    def __init__(
        self,
        uncounted_targets: Sequence[str] = (),
        links: Sequence[DeviceLinks] = (),
        volume: PromisedFigures | None = None,
    ) -> None:
        self._uncounted_targets, self._links, self._volume = (
            tuple(uncounted_targets),
            tuple(links),
            volume,
        )
        self.asks_for_processes = self.asks_for_groups = False
        self._frames: deque[Frame] = deque(maxlen=MAX_FRAMES)
        self._frames_between_runs: deque[Frame] = deque(maxlen=LONG_ENOUGH)
        self._frames_to_skip = 0
        self._frames_before_run: tuple[Frame, ...] = ()
        self._idle_frames: deque[Frame] = deque(maxlen=IDLE_FRAMES)
        self._unlooked_s = 0.0
        self.conditions = self._start_conditions = NO_CONDITIONS
        """The last readings of the devices and CPUs."""
        self._next_question: Finding | None = None
        self._question: tuple[Finding, SteadyRun] | None = None
        self.shape = JobShape()
        """The shape of the running job, or of the last one."""
        self._job = ""
        self._earlier: list[SteadyRun] = []
        self._reported_at: dict[str, float] = {}
        self._active = ActiveFindings()
        self._explained: set[str] = set()
        self._ended: list[EndedFinding] = []
        self._change: TunableChange | None = None
        self._changed_at = -inf
        self._tree: tuple[BlockDevice, ...] = ()
        self._drives: dict[str, DriveReading] = {}
        self._siblings = SiblingWatch()
        self.idle_rings: tuple[str, ...] = ()
        """The programs that sleep in io_uring, as in Evidence."""

    def note_layout(self) -> None:
        """Note that files are being laid out: these writes are the run's own, not background
        I/O."""
        self._frames_before_run = tuple(self._frames_between_runs)
        self._frames_between_runs.clear()
        self._frames_to_skip = 1 << 30

    def begin_run(self, text: str, bound: bool = False) -> None:
        """Begin a run of this job file, perhaps ``bound`` to the CPUs of queues. Earlier runs are
        comparable only if nothing but the depth differs."""
        from iopstui.fio.job_shape import shape_of, text_without_depth

        steady = self._keep_steady()
        self._question = (self._next_question, steady) if self._next_question and steady else None
        self._next_question = None
        job = text_without_depth(text, bound)
        if job != self._job:
            self._earlier = []
        self._job, self.shape = job, shape_of(text)
        if self._frames_to_skip <= SETTLE_FRAMES:
            self._frames_before_run = tuple(self._frames_between_runs)
        self._frames_between_runs.clear()
        self._frames.clear()
        self._idle_frames.clear()
        self._unlooked_s = 0.0
        self._drives = {}
        if self.conditions.processes is not None:
            self.conditions = replace(self.conditions, processes=None)
        self._start_conditions = self.conditions
        self._reported_at = {}
        self._active.forget()
        self._change, self._changed_at = None, -inf

    def ask(self, finding: Finding) -> None:
        """Let the next run, which has this finding's ``options``, decide whether the finding is
        true."""
        self._next_question = finding

    def note_conditions(self, now: Conditions) -> None:
        """Note the last readings of the devices and CPUs."""
        if self._start_conditions is NO_CONDITIONS:
            self._start_conditions = now
        if now.processes is None and self.conditions.processes is not None:
            # processes are read only now and then
            now = replace(now, processes=self.conditions.processes)
        # until the next reading; a check that begins again and again is not seen in each
        self.conditions = with_ended(now, self.conditions, always=False)

    def note_tunable_change(self, t: float, device: str, name: str, before: str, now: str) -> None:
        """Note that a tunable was changed at ``t``: its effect is reported after enough seconds,
        and runs before and after it are not compared."""
        self._earlier = []
        if self._change is not None:
            self._changed_at = self._change.t
        self._change = TunableChange(t, device, name, before, now)

    def forget_tunable_change(self) -> None:
        """Don't report the effect of the last change of a tunable: it is already reported."""
        if self._change is not None:
            self._changed_at, self._change = self._change.t, None

    def feed(
        self, frame: Frame, devices: Sequence[BlockDevice], tree: Sequence[BlockDevice] = (),
        looks: bool = True,
    ) -> Iterator[Finding]:  # fmt: skip
        """Findings of this frame that were not reported yet. ``devices`` are the devices that the
        jobs work on, ``tree`` these and all below them. Without ``looks`` a frame between runs is
        kept for the next one that is judged."""
        self._tree = tuple(tree or devices)
        self._drives.update(frame.nvme)
        self._siblings.feed(frame, self._tree, self.conditions)
        if not frame.step:
            yield from self._between_runs(frame, devices, looks)
            return
        self._frames_to_skip = SETTLE_FRAMES
        self.asks_for_groups = False
        self._frames_between_runs.clear()
        self._frames.append(frame)
        if frame.fio is None:
            yield from self._hung_findings(devices, frame)
            return
        yield from self._tunable_effects(frame, devices)
        yield from self._answers(frame)
        evidence = self._run_evidence(devices)
        self.asks_for_processes = needs_process_readings(evidence)
        yield from self._new_findings(evidence, frame)

    def _between_runs(
        self, frame: Frame, devices: Sequence[BlockDevice], looks: bool
    ) -> Iterator[Finding]:
        if self._frames_to_skip:
            self._frames_to_skip -= 1
            if not self._frames_to_skip:
                self._reported_at = {}
                self._active.forget()
            return
        self._frames_between_runs.append(frame)
        self._idle_frames.append(frame)
        self._unlooked_s += frame.seconds or 0.0
        if not looks:
            return
        seconds, self._unlooked_s = self._unlooked_s, 0.0
        evidence = self._evidence(self._idle_frames, devices)
        self.asks_for_groups = needs_cgroup_readings(evidence)
        yield from self._new_findings(evidence, frame, seconds)

    def _hung_findings(self, devices: Sequence[BlockDevice], frame: Frame) -> Iterator[Finding]:
        """Findings of a frame without a document of fio: only a stall can be found."""
        evidence = self._run_evidence(devices)
        finding = (
            no_completions(evidence) or unanswered_requests(evidence) or unanswered_smb(evidence)
        )
        if finding is not None:
            yield from self._report([finding], evidence, frame.t)

    @property
    def firing(self) -> list[Finding]:
        """Findings whose rules fire now, without those that another finding explains."""
        return [one for one in self._active.firing if one.rule not in self._explained]

    def ended_findings(self) -> list[EndedFinding]:
        """Return, after ``feed``, reported findings that have ended, each once."""
        ended, self._ended = self._ended, []
        return ended

    def _new_findings(
        self, evidence: Evidence, frame: Frame, looked_s: float | None = None
    ) -> Iterator[Finding]:
        """Findings that were not reported lately. ``looked_s``: the seconds since the last look."""
        t, findings = frame.t, fired_findings(evidence)
        seconds = frame.seconds or (frame.fio.seconds if frame.fio else None) or 0.0
        seconds = seconds if looked_s is None else looked_s
        firing = {finding.rule for finding in findings}
        for ended in (
            *self._contradicted_findings(evidence, firing),
            *self._active.feed(t, seconds, firing),
        ):
            self._ended.append(ended)
            self._reported_at.pop(ended.finding.rule, None)
        yield from self._report(findings, evidence, t)

    def _contradicted_findings(
        self, evidence: Evidence, firing: Collection[str]
    ) -> Iterator[EndedFinding]:
        for finding in self._active.findings:
            if finding.rule not in firing and (why := contradiction(finding, evidence)):
                yield self._active.withdraw(finding.rule, why)

    def _report(
        self, findings: Sequence[Finding], evidence: Evidence, t: float
    ) -> Iterator[Finding]:
        reported = reported_findings(findings, evidence)
        self._explained = {one.rule for one in findings} - {one.rule for one in reported}
        for finding in reported:
            reported_at = self._reported_at.get(finding.rule)
            if reported_at is None or t - reported_at >= REPEAT_S:
                self._reported_at[finding.rule] = t
                self._active.note_reported(finding, t)
                yield finding
            self._active.note_fired(finding)

    def _evidence(self, frames: Iterable[Frame], devices: Sequence[BlockDevice]) -> Evidence:
        window = tuple(frames)
        cpus = set(window[-1].cpus) if window else set()
        online = tuple(sorted(cpus & initial_cpus()))
        return Evidence(window, devices=tuple(devices), online=online,
                        conditions=self.conditions, start_conditions=self._start_conditions,
                        tree=self._tree, links=self._links, volume=self._volume,
                        drives=dict(self._drives), idle_rings=self.idle_rings,
                        odd_disk=self._siblings.odd)  # fmt: skip

    def _run_evidence(self, devices: Sequence[BlockDevice]) -> Evidence:
        return replace(
            self._evidence(self._same_settings(), devices),
            idle_frames=self._frames_before_run,
            shape=self.shape,
            earlier_runs=tuple(self._earlier),
            uncounted_targets=self._uncounted_targets,
        )

    def _tunable_effects(self, frame: Frame, devices: Sequence[BlockDevice]) -> Iterator[Finding]:
        change = self._change
        if change is None:
            return
        frames = tuple(self._frames)
        if len(frames_around(frames, change)[1]) < SECONDS_COMPARED and FINAL not in frame.flags:
            return
        finding = tunable_effect(change, frames, devices, self._changed_at)
        self._changed_at, self._change = change.t, None
        if finding is not None:
            yield finding

    def _same_settings(self) -> list[Frame]:
        """The run's frames since the last change."""
        changed_at = self._changed_at if self._change is None else self._change.t
        return [frame for frame in self._frames if frame.t > changed_at]

    def _steady(self) -> SteadyRun | None:
        """The run's steady figures since the last change; ``None`` without enough seconds."""
        frames = measured_frames(self._same_settings())[-LONG_ENOUGH:]
        latency = fio_latency_ns(frames)
        if len(frames) < ENOUGH_SECONDS or latency is None:
            return None
        return SteadyRun(
            self.shape, fio_iops(frames), latency, fio_bytes_s(frames), iops_spread(frames)
        )

    def _keep_steady(self) -> SteadyRun | None:
        steady_run = self._steady()
        if steady_run is not None:
            self._earlier.append(steady_run)
            del self._earlier[:-8]
        return steady_run

    def _answers(self, frame: Frame) -> Iterator[Finding]:
        """The answer of a run that was made to decide a finding, once it has enough seconds."""
        if self._question is None:
            return
        if (
            len(measured_frames(self._same_settings())) < ANSWER_AFTER_SECONDS
            and FINAL not in frame.flags
        ):
            return
        (question, before), self._question = self._question, None
        now = self._steady()
        if now is not None:
            yield answer_question(question, before, now)
