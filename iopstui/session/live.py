"""A live session: one thread that samples the kernel, follows fio and emits events.

fio's document is the tick: the kernel is read the moment it is whole. When none comes (no
job, or a stuck one) a monotonic deadline ticks instead, so the kernel's side goes on.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_OK,
    IopstuiError,
    UsageError,
)
from iopstui.model.binding import Binding
from iopstui.model.device import BlockDevice
from iopstui.model.frame import FrameBuilder
from iopstui.model.moved import MANY
from iopstui.model.samples import FioStatus, JobThread, KernelSample, RawSample
from iopstui.model.summary import fio_summary
from iopstui.model.target import Target
from iopstui.model.topology import Topology
from iopstui.model.tunable import KnobRequest, irq_of, why_rq_affinity_cannot_matter
from iopstui.session import events
from iopstui.session.clock import Clock
from iopstui.session.findings import Findings
from iopstui.session.fio_run import (
    HOLD_S,
    LAYOUT,
    OVER,
    RUN,
    FioRun,
    NewDocument,
    PhaseOver,
    Said,
    hangs,
)
from iopstui.session.knob_view import KnobState, knob_states, queued_disks
from iopstui.session.own_cost import OwnCost
from iopstui.session.place import OwnPlace
from iopstui.session.prepare import JobRequest, Prepared, prepare
from iopstui.session.recorder import Recorder, Tape, job_run
from iopstui.session.tunables import Tunables, read_tunable
from iopstui.sources.fio_inspect import find_fio
from iopstui.sources.fio_process import private_directory
from iopstui.sources.kernel import KernelSampler
from iopstui.sources.roots import Roots
from iopstui.sources.sysfs import read_devices
from iopstui.sources.topology import online_cpus, read_topology
from iopstui.text import printable

LATE_AFTER = 1.5
POLL_S = 0.1
START_POLL_S = 0.01
LEAVE_WITHIN_S = 4.0
CLOSE_WITHIN_S = 5.0
FIRST_IO_WITHIN_S = 0.5
FIRST_S = 0.2

Sink = Callable[[events.Event], None]


@dataclass(slots=True)
class _Reading:
    """What was read at one tick. Held back while its document may be fio's last one: until fio
    ends, goes on, or HOLD_S has passed."""

    status: FioStatus | None
    kernel: KernelSample | None
    arrived_ns: int
    wall_ms: float
    jobs: tuple[JobThread, ...]


class LiveSession:
    """See the module. ``sink`` is called in the session's thread and must not block.

    ``idle_frames`` False: only runs make frames (headless), not the time before and after.
    ``job_target`` is the target handed to jobs; ``None`` if they name their own files.
    """

    def __init__(
        self,
        target: Target,
        devices: Mapping[str, BlockDevice],
        *,
        job_target: Target | None,
        roots: Roots | None = None,
        interval_s: float = 1.0,
        size: str | None = None,
        destroy_data: Sequence[str] = (),
        bind: bool = False,
        knobs: Sequence[KnobRequest] = (),
        idle_frames: bool = True,
        fio_path: str | None = None,
        clock: Clock | None = None,
        recorder: Recorder | None = None,
        place: OwnPlace | None = None,
    ) -> None:
        self.target = target
        self.devices = devices
        self.job: str | None = None
        self.overrides: dict[str, str] = {}
        self.bind = bind
        self.interval_s = interval_s
        self.exit_code = EXIT_OK
        self.left_behind = ""
        self._job_target = job_target
        self._roots = roots or Roots()
        self._tunables = Tunables(self._roots)
        self._knobs = list(knobs)
        self._run_began_ns: int | None = None
        self._size = size
        self._destroy_data = tuple(destroy_data)
        self._idle_frames = idle_frames
        self._fio_path = fio_path
        self._clock = clock or Clock()
        self._commands: deque[Callable[[], None]] = deque()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread: threading.Thread | None = None
        self._closing = False
        self._early: list[events.Event] = []
        self._sink: Sink = self._early.append
        self._telling = threading.Lock()
        self._builder = FrameBuilder()
        self._findings = Findings()
        self._place = place or OwnPlace()
        self._own_cost = OwnCost()
        self._seq = 0
        self._step = 0
        self._origin_ns = self._clock.monotonic_ns()
        self._run: FioRun | None = None
        self._next: JobRequest | None = None
        self._held: _Reading | None = None
        self._deadline_ns = 0
        self._awaiting_jobs = False
        self._quiet_since_ns = 0
        self._quiet_counts: tuple[int, int] | None = None
        self._privates: list[str] = []
        self._tape = Tape(
            target, lambda: self.devices, interval_s, idle_frames, self._knobs, recorder
        )

    # -- called from any thread

    def start(self, sink: Sink | None = None) -> None:
        """Start sampling; every event goes to ``sink``. Without one they are kept until a later
        call names it: so a screen that takes a while to open has something to show at once."""
        if sink is not None:
            with self._telling:
                for event in self._early:
                    sink(event)
                self._early, self._sink = [], sink
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="session", daemon=True)
            self._thread.start()

    def run_job(self, job: str, overrides: Mapping[str, str]) -> None:
        """Run this job; a running one is stopped first. Failures arrive as events."""
        self.run_request(
            JobRequest(job, dict(overrides), self._size, self._destroy_data, self.bind)
        )

    def run_request(self, request: JobRequest) -> None:
        """The same with everything that can be said of a run (experiments)."""
        self.job, self.overrides = request.job, dict(request.overrides)
        self._command(lambda: self._request(request))

    def stop_job(self) -> None:
        """Stop the running job; its last document still arrives."""
        self._command(self._stop)

    def kill_job(self) -> None:
        """Stop the running job at once, without its last document."""
        self._command(lambda: self._stop(hard=True))

    def mark(self, text: str) -> None:
        """Put a mark on all charts, now."""
        self._command(lambda: self._emit(events.Mark(self._now(), printable(text))))

    def set_tunable(self, name: str, value: str) -> None:
        """Change a setting (model/tunable.py) of the disks under the target; it is put back by
        ``close``. A refusal arrives as a Notice."""
        self._command(lambda: self._tune_or_tell(name, value))

    def knobs(self) -> list[KnobState]:
        """What can be set on the disks under the target, as it is now (reads some files)."""
        return knob_states(self.target, self.devices, self._roots)

    def topology(self) -> Topology:
        """The machine's CPUs and which belong together (reads some files for each CPU)."""
        return read_topology(self._roots)

    @property
    def recording(self) -> Path | None:
        """Where the session is being recorded to; ``None`` if it is not."""
        return self._tape.path

    def record(self, path: Path) -> None:
        """Record from now on. Raises UsageError (the file exists ...); what happens later is a
        Notice."""
        recorder = Recorder(path)
        self._command(lambda: self._start_recording(recorder))

    def note(self, event: events.Event) -> None:
        """Put into the recording what was concluded from the session's events (a verdict)."""
        self._tape.event(event)

    def stop_recording(self) -> None:
        """End the recording; a Notice says what was recorded."""
        self._command(self._recorded)

    def close(self) -> None:
        """Stop fio, remove scratch files, put settings back, end the thread. Idempotent.

        ``left_behind`` then says what hangs in the kernel: about 2 s are enough for a job that
        does, CLOSE_WITHIN_S for a call of our own.
        """
        self._closing = True
        self._wake()
        if self._thread is None:
            return
        self._thread.join(CLOSE_WITHIN_S)
        if self._thread.is_alive() and not self.left_behind:
            self.left_behind = (
                "a call into the kernel hangs, waiting for the device; what is not undone yet "
                "is undone by: iopstui doctor"
            )

    @property
    def running(self) -> bool:
        """True from a run's start to its end."""
        return self._run is not None

    def _command(self, command: Callable[[], None]) -> None:
        self._commands.append(command)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"!")

    # -- the session's thread

    def _main(self) -> None:
        disks = self.target.tree
        irqs = [v.irq for name in disks for v in _device(self.devices, name).irqs]
        self._sampler = KernelSampler(self._roots, disks, irqs)
        try:
            self._warn(self._place.begin())
            self._tick()
            # the first rates are soon there; all others are over whole intervals
            self._deadline_ns -= int(max(0.0, self.interval_s - FIRST_S) * 1e9)
            while not self._closing:
                self._wait()
                while self._commands:
                    self._commands.popleft()()
                self._follow_run()
                self._tune_due()
                self._tick_if_due()
            self._shut_down()
        except Exception as error:  # the last line of defence: told, and nothing left running
            self.exit_code = EXIT_JOB_FAILED
            self._emit(events.Notice(self._now(), "error", f"internal error: {error!r}"))
        finally:
            if self._run is not None:
                self._run.close()
            self._put_back()
            self._remove_privates()
            self._sampler.close()
            ended = events.Ended(self._now(), self.exit_code)
            lost = self._tape.close(ended)
            if lost:
                self._notice("error", lost)
            self._emit(ended)

    def _wait(self) -> None:
        fds = [self._wake_read, *(self._run.fds if self._run else ())]
        now = self._clock.monotonic_ns()
        timeout = (self._deadline_ns - now) / 1e9
        if self._run is not None:
            timeout = min(timeout, START_POLL_S if self._awaiting_jobs else POLL_S)
        if self._held is not None:
            timeout = min(timeout, HOLD_S - (now - self._held.arrived_ns) / 1e9)
        ready, _, _ = select.select(fds, [], [], max(0.0, timeout))
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)

    def _now(self) -> float:
        return (self._clock.monotonic_ns() - self._origin_ns) / 1e9

    def _emit(self, event: events.Event) -> None:
        self._tape.event(event)
        with self._telling:
            self._sink(event)

    def _start_recording(self, recorder: Recorder) -> None:
        self._tape.start(recorder)
        # past the tape: nothing that was measured
        self._sink(
            events.Notice(self._now(), "info", f"recording to {printable(str(recorder.path))}")
        )

    def _recorded(self) -> None:
        words = self._tape.stop()
        if words:
            self._notice("info", words)

    def _notice(self, level: str, text: str) -> None:
        self._emit(events.Notice(self._now(), level, printable(text)))

    def _warn(self, text: str) -> None:
        if text:
            self._notice("warning", text)

    # -- runs

    def _request(self, request: JobRequest) -> None:
        if self._run is None:
            self._begin(request)
        else:
            self._next = request
            self._run.stop()

    def _stop(self, hard: bool = False) -> None:
        self._next = None
        if self._run is not None:
            self._run.stop(hard)

    def _begin(self, request: JobRequest) -> None:
        self._step += 1
        try:
            fio = find_fio(self._fio_path)
            self._tune_first()
            self._tune_request(request)
            prepared = prepare(
                request, self._job_target, fio, self._private(), self.devices, self._roots
            )
        except IopstuiError as error:
            self._not_started(error)
            return
        finally:
            self._remove_privates()
        self._tape.job(job_run(self._step, request, prepared.text, prepared.files))
        self._run = FioRun(
            fio,
            prepared,
            private_directory,
            self.interval_s,
            lambda: self._engage(prepared),
            self.target.device,
        )
        self._start_phase()

    def _tune_first(self) -> None:
        """The settings asked for on the command line, before the first run."""
        now = [knob for knob in self._knobs if knob.after_s is None]
        self._knobs = [knob for knob in self._knobs if knob.after_s is not None]
        for knob in now:
            self._tune(knob.name, knob.value)

    def _tune_request(self, request: JobRequest) -> None:
        """A run's own settings, as far as they are not in force already."""
        for name, value in request.knobs:
            disks = self._knob_disks(name)
            if any(read_tunable(disk, name, self._roots) != value for disk in disks):
                self._tune(name, value)

    def _tune_due(self) -> None:
        """Those asked for so many seconds after a run began."""
        if self._run is None or self._run_began_ns is None or not self._knobs:
            return
        seconds = (self._clock.monotonic_ns() - self._run_began_ns) / 1e9
        due = [knob for knob in self._knobs if (knob.after_s or 0.0) <= seconds]
        self._knobs = [knob for knob in self._knobs if knob not in due]
        for knob in sorted(due, key=lambda knob: knob.after_s or 0.0):
            self._tune_or_tell(knob.name, knob.value)

    def _tune_or_tell(self, name: str, value: str) -> None:
        try:
            self._tune(name, value)
        except IopstuiError as error:
            self._notice("error", f"{error.message} {error.hint}".strip())

    def _tune(self, name: str, value: str) -> None:
        disks = self._knob_disks(name)
        changes, marks = [], set[str]()
        for device in disks:
            cannot = why_rq_affinity_cannot_matter(device, online_cpus(self._roots))
            if name == "rq_affinity" and cannot is not None:
                self._notice("warning", f"rq_affinity moves nothing on {device.name}: {cannot}")
            change = self._tunables.set(device, name, value)
            self.devices = read_devices(self._roots)
            now = self._now()
            self._emit(events.TunableChanged(now, device.name, name, change.before, change.now))
            mark = f"{name} {change.before} → {change.now}"
            if mark not in marks:
                self._emit(events.Mark(now, mark))
            marks.add(mark)
            if change.adjusted:
                self._notice("info", f"the kernel made {change.now} of {name}={value}")
            changes.append(change)
        first = changes[0]
        if any(change.before != change.now for change in changes):
            names = ", ".join(device.name for device in disks)
            self._findings.changed(self._now(), names, name, first.before, first.now)
            self._sampler.follow_interrupts(MANY + 2)

    def _knob_disks(self, name: str) -> list[BlockDevice]:
        disks, irq = queued_disks(self.target, self.devices), irq_of(name)
        if not disks:
            what = self.target.device or self.target.path
            raise UsageError(
                f"{name} can't be changed: {what} has no device with a request queue under it."
            )
        # the first disk's refusal tells which interrupts there are
        return [d for d in disks if irq in {v.irq for v in d.irqs}] or disks[:1] if irq else disks

    def _engage(self, prepared: Prepared) -> None:
        if prepared.guard is not None:
            prepared.guard.engage(read_devices(self._roots))

    def _private(self) -> Path:
        path = private_directory()
        self._privates.append(str(path))
        return path

    def _remove_privates(self) -> None:
        while self._privates:
            shutil.rmtree(self._privates.pop(), ignore_errors=True)

    def _not_started(self, error: IopstuiError) -> None:
        self.exit_code = error.exit_code
        self._emit(
            events.StepFinished(
                self._now(), self._step, error.exit_code, error.message, False, hint=error.hint
            )
        )

    def _start_phase(self) -> None:
        run = self._run
        assert run is not None
        self._awaiting_jobs = run.phase == RUN
        self._quiet_since_ns, self._quiet_counts = 0, None
        disks = [_device(self.devices, name) for name in self.target.tree]
        where = self._place.for_job(run.prepared.text, disks)
        try:
            with self._place.unpinned():
                run.start_phase()
        except IopstuiError as error:
            run.close()
            self._run = None
            self._not_started(error)
            return
        if run.phase == RUN:
            self._run_began_ns = self._clock.monotonic_ns()
            self._findings.begin(run.prepared.text)
        else:
            self._findings.lay_out()
        if run.phase == RUN and run.prepared.binding is not None:
            self._tell_binding(run.prepared.binding)
        self._emit(
            events.StepStarted(
                self._now(),
                self._step,
                printable(run.prepared.name),
                printable(run.prepared.title),
                tuple(run.command),
                run.prepared.read_only,
                run.phase,
                run.fio.banner,
            )
        )
        if where:
            self._notice("info", where)

    def _tell_binding(self, binding: Binding) -> None:
        pairs = [f"job {job} → CPU {cpu} (hctx {hctx})" for job, cpu, hctx in binding.rows[:16]]
        more = [f"... {len(binding.rows)} jobs"] if len(binding.rows) > len(pairs) else []
        self._notice("info", "bound to queues: " + ", ".join(pairs + more))
        for note in binding.notes:
            self._notice("warning", note)

    def _follow_run(self) -> None:
        run = self._run
        if run is None:
            return
        if self._awaiting_jobs and run.jobs_alive():
            self._await_first_io()
        documents: list[NewDocument] = []
        for news in run.poll():
            if isinstance(news, NewDocument):
                self._awaiting_jobs = False
                documents.append(news)
            elif isinstance(news, Said):
                self._notice("info", news.text)
            elif isinstance(news, PhaseOver):
                self._documents(documents)
                documents = []
                self._phase_over(news)
        self._documents(documents)
        held = self._held
        if held is not None and self._clock.monotonic_ns() - held.arrived_ns > HOLD_S * 1e9:
            self._release(final=False)
        if run.hanging and run.stopping and self._run is run:
            self._leave_behind(run)

    def _await_first_io(self) -> None:
        """Begin the kernel's first interval where fio's begins: with the first I/O, which comes
        about 0.1 s after fio has forked its jobs."""
        now = self._clock.monotonic_ns()
        moved = self._device_moved()
        if self._quiet_since_ns == 0:
            self._quiet_since_ns = now
        if moved or now - self._quiet_since_ns > FIRST_IO_WITHIN_S * 1e9:
            self._awaiting_jobs = False
            self._tick()
            self._deadline_ns += int((LATE_AFTER - 1) * self.interval_s * 1e9)

    def _device_moved(self) -> bool:
        """Whether the target's device has completed an I/O since the last look."""
        if not self.target.tree:
            return True
        disk = self._sampler.sample().disks.get(self.target.tree[0])
        done = (disk.reads, disk.writes) if disk else (0, 0)
        moved = self._quiet_counts is not None and done != self._quiet_counts
        self._quiet_counts = done
        return moved

    def _documents(self, documents: Sequence[NewDocument]) -> None:
        """Documents found at once: the kernel is read for the last of them alone."""
        for position, news in enumerate(documents):
            self._release(final=False)
            last = position == len(documents) - 1
            held = self._read(news.status, kernel=last)
            self._held = held
            self._deadline_ns = held.arrived_ns + int(LATE_AFTER * self.interval_s * 1e9)
            if not news.maybe_final:
                self._release(final=False)

    def _release(self, final: bool) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._sample(held, final)

    def _phase_over(self, over: PhaseOver) -> None:
        run = self._run
        assert run is not None
        self._release(final=True)
        if over.phase == LAYOUT and run.phase == RUN:
            self._start_phase()
            return
        interrupted = run.stopping
        error = over.error or run.failure
        code = EXIT_JOB_FAILED if error else EXIT_INTERRUPTED if interrupted else EXIT_OK
        self.exit_code = code
        run.close()
        self._run, self._run_began_ns = None, None
        self._emit(
            events.StepFinished(
                self._now(),
                self._step,
                code,
                error,
                interrupted and not run.failure,
                fio_summary(run.last) if run.last is not None else {},
                tuple(run.log),
            )
        )
        following, self._next = self._next, None
        if following is not None:
            self._begin(following)

    def _shut_down(self) -> None:
        """Stop fio and wait for its last document, so that what was measured is told."""
        self._next = None
        if self._run is None:
            return
        self._run.stop()
        give_up_ns = self._clock.monotonic_ns() + int(LEAVE_WITHIN_S * 1e9)
        while self._run is not None and self._run.phase != OVER:
            if self._clock.monotonic_ns() > give_up_ns:
                self._leave_behind(self._run)
                return
            self._deadline_ns = self._clock.monotonic_ns() + int(1e9)
            self._wait()
            self._follow_run()

    def _leave_behind(self, run: FioRun) -> None:
        """A process that hangs in the kernel ends with the device's answer, not before; its
        guard waits for that, nobody else."""
        run.hanging = run.hanging or ((run.pid,) if run.pid else ())
        self.left_behind = hangs(run.hanging)
        self.exit_code = EXIT_JOB_FAILED
        summary = fio_summary(run.last) if run.last is not None else {}
        run.close()
        self._run = None
        self._emit(
            events.StepFinished(
                self._now(), self._step, EXIT_JOB_FAILED, self.left_behind, False, summary,
                tuple(run.log),
            )
        )  # fmt: skip

    def _put_back(self) -> None:
        if self._tunables.changed:
            failed = self._tunables.restore()
            for problem in failed:
                self._notice("error", problem)
            if not failed:
                self._notice("info", "the changed settings are as they were before")

    # -- ticks

    def _tick_if_due(self) -> None:
        if self._clock.monotonic_ns() >= self._deadline_ns:
            self._tick()
            if self._run is not None and self._run.phase == LAYOUT:
                self._progress(self._run)

    def _progress(self, run: FioRun) -> None:
        scratch = run.prepared.scratch
        done = scratch.used_bytes() if scratch else 0
        self._emit(
            events.Progress(
                self._now(), self._step, "laying out the scratch file", done,
                run.prepared.layout_bytes,
            )
        )  # fmt: skip

    def _tick(self) -> None:
        """A tick of the monotonic clock. Missed ones are skipped, never made up for."""
        reading = self._read(None, kernel=True)
        self._sample(reading, final=False)
        self._deadline_ns = reading.arrived_ns + int(self.interval_s * 1e9)

    def _read(self, status: FioStatus | None, kernel: bool) -> _Reading:
        """Read the counters of this moment, the kernel's first: closest to fio's."""
        now, wall = self._clock.monotonic_ns(), self._clock.wall_ms()
        sample = self._sampler.sample() if kernel else None
        jobs = self._run.jobs() if self._run is not None and kernel else ()
        return _Reading(status, sample, now, wall, jobs)

    def _sample(self, reading: _Reading, final: bool) -> None:
        measuring = self._run is not None and self._run.phase != LAYOUT
        fio = reading.status
        raw = RawSample(
            seq=self._seq,
            arrived_ns=reading.arrived_ns,
            wall_ms=reading.wall_ms,
            kernel=reading.kernel,
            fio=fio,
            final=final,
            step=self._step if fio is not None or measuring else 0,
            interval_s=self.interval_s,
            jobs=reading.jobs,
            own_busy_s=self._clock.own_busy_s(),
        )
        if self._seq == 0:
            self._origin_ns = reading.arrived_ns  # frames count from here, too
        self._seq += 1
        if self._run is not None:
            self._run.watch(raw)
        self._tape.sample(raw)
        for problem in self._tape.problems():
            self._notice("error", problem)
        frame = self._builder.feed(raw)
        if self._idle_frames or fio is not None or (measuring and frame.fio_age_s is not None):
            self._emit(events.FrameReady(frame.t, frame))
        for warning in self._own_cost.feed(frame):
            self._notice("warning", warning)
        device = self.devices.get(self.target.device or "")
        for finding in self._findings.feed(frame, device):
            self._emit(events.Found(frame.t, finding))


def _device(devices: Mapping[str, BlockDevice], name: str) -> BlockDevice:
    found = devices.get(name)
    return found or BlockDevice(name, f"/dev/{name}", 0, 0, "disk", None)
