"""A live session: one thread that samples the kernel, follows fio and emits events.

Ticks come with fio's documents: kernel counters are read as soon as a document is complete. If no
document comes (no job, or a stuck one), a monotonic deadline ticks instead, so that the kernel's
figures continue."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui import events
from iopstui.errors import EXIT_JOB_FAILED, EXIT_MISSING, EXIT_OK, IopstuiError
from iopstui.linux.counters.signal_flag import SignalFlag
from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.topology import read_topology
from iopstui.linux.own_threads import Clock
from iopstui.linux.process.limits import exhausted_limit
from iopstui.linux.process.processes import thread_cpu_s
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.findings.finding import Finding
from iopstui.recording.writer import Recorder, RecordingBuffer
from iopstui.session.fio.write_budget import WriteBudget
from iopstui.session.own_cpus import OwnCpus
from iopstui.session.tick.context import Context, CurrentRun, Sink, Viewer
from iopstui.session.tick.outcomes import OutcomeTracker, SteadyStop
from iopstui.session.tick.sampling import Sampling
from iopstui.session.tunable_changes import TunableAlternation, TunableChanges
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.model.answer.use import DiskUse
    from iopstui.model.experiment.expectation import Expectation, Outcome
    from iopstui.preflight.staging import LentScratch
    from iopstui.safety.tunables import TunableState
    from iopstui.session.run_preparation import RunOrder, StartSignal
    from iopstui.session.runs import Runs

LEAVE_TIMEOUT_S = 4.0
CLOSE_TIMEOUT_S = 5.0
# share of a CPU: a thread that uses less is not busy (with removing files, for example) but waits
MIN_CPU_SHARE = 0.02
_NOTHING, _SOMEBODY = RunRequest(own_cpus=()), Viewer()


class LiveSession:
    """Samples ``target``, runs jobs and emits events until it is closed.

    The sink is called in the session's thread and must not block. ``job_target`` is the target
    given to jobs; ``None`` if they name their own files. ``request`` applies to all of its runs,
    unless a run requests otherwise. ``announce_writes``: each run first reports how much it may
    write. ``deadline_s``: fio is ended if this process hangs or is stopped for this long (``None``:
    fio.process.DEADLINE_S). UsageError for an invalid --record or --cpu; then no file is left
    behind."""

    def __init__(
        self, target: Target, devices: Mapping[str, BlockDevice], job_target: Target | None,
        request: RunRequest = _NOTHING, viewer: Viewer = _SOMEBODY, *,
        roots: Roots | None = None, clock: Clock | None = None,
        expectations: Sequence[Expectation] = (), announce_writes: bool = False,
        deadline_s: float | None = None,
    ) -> None:  # fmt: skip
        self._own_cpus = OwnCpus(request.own_cpus, request.nice)
        recorder = Recorder(Path(request.record)) if request.record else None
        self.job: str | None = None
        self.overrides: dict[str, str] = {}
        self.bind = request.bind
        self.interval_s = request.interval_s
        self.budget = WriteBudget(request.write_budget, announce_writes)
        self._request = request
        self._failure_code: int | None = None
        self._hang_message = ""
        self._commands: deque[Callable[[], None]] = deque()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread: threading.Thread | None = None
        self._closing = False
        self._at_end: list[Callable[[], object]] = []
        recording = RecordingBuffer(
            target, lambda: self.devices, self.interval_s, viewer.idle_frames, request.knobs,
            recorder, self.topology, own_files=job_target is None, keep_s=viewer.keep_s,
        )  # fmt: skip
        until_steady = request.until_steady
        outcomes = OutcomeTracker(expectations, SteadyStop(until_steady) if until_steady else None)
        context = self._context = Context(target, devices, roots or Roots(), clock or Clock(),
                                          recording, outcomes)  # fmt: skip
        self._current = CurrentRun()
        self._sampling = Sampling(context, self._current, request, viewer)
        self._tunable_changes = TunableChanges(context, self._sampling, request.knobs)
        self._alternation = TunableAlternation(
            context, self._tunable_changes, self._sampling.findings
        )
        # set before a stop is requested, because examining a job can take a while
        self._given_up = SignalFlag()
        self._runs: Runs | None = None
        self._run_options = job_target, viewer.idle_frames, deadline_s

    # -- called from any thread

    def start(self, sink: Sink | None = None) -> None:
        """Start sampling; every event goes to ``sink``. Without a sink, events are kept until a
        later call names one: a screen that takes a while to open then has something to show at
        once."""
        if sink is not None:
            self._context.listen(sink)
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="session", daemon=True)
            self._thread.start()

    def add_sink(self, sink: Sink) -> None:
        """Send every event from now on to this sink, too; it must not block."""
        self._context.add_sink(sink)

    def at_end(self, call: Callable[[], object]) -> None:
        """Have this called in the session's thread before its end, while events are still
        recorded."""
        self._at_end.append(call)

    @property
    def target(self) -> Target:
        """The watched target, which jobs use as well."""
        return self._context.target

    @property
    def devices(self) -> Mapping[str, BlockDevice]:
        """All block devices by kernel name, as they were when last looked at."""
        return self._context.devices

    @property
    def exit_code(self) -> int:
        """The exit code of the last run (iopstui.errors)."""
        if self._failure_code is not None:
            return self._failure_code
        return self._runs.exit_code if self._runs is not None else EXIT_OK

    @property
    def left_behind(self) -> str:
        """Return, after ``close``, the processes that hang in the kernel, in words."""
        return (self._runs.left_behind if self._runs is not None else "") or self._hang_message

    def run_job(
        self, job: str, overrides: Mapping[str, str], plan: bool = False, mark: str = ""
    ) -> None:
        """Run this job; a running one is replaced without a pause where that is safe, or stopped
        first. Failures arrive as events. ``plan``: the event ``RunPlanned`` comes first, and the
        run waits for ``lay_out``. ``mark`` is put on all charts when the run begins."""
        # the session's tunables are set already, and the user may have changed them since
        request = replace(
            self._request, job=job, overrides=dict(overrides), bind=self.bind, knobs=()
        )
        self._order(request, announce=plan, hand_over=not plan, mark=mark)

    def run_request(self, request: RunRequest, lent: LentScratch | None = None) -> None:
        """Run this request (a point of an experiment); a running job is stopped first."""
        self._order(request, lent)

    def _order(
        self, request: RunRequest, lent: LentScratch | None = None, announce: bool = False,
        hand_over: bool = False, mark: str = "",
    ) -> None:  # fmt: skip
        from iopstui.session.run_preparation import RunOrder

        self.job, self.overrides = request.job, dict(request.overrides)
        order = RunOrder(request, lent, announce, hand_over, mark)
        self._command(lambda: self._begin_run(order))

    def _new_runs(self) -> Runs:
        # most sessions only watch, and the code that runs fio is a quarter of what a session loads
        from iopstui.session.runs import Runs

        job_target, keeps_scratch, deadline_s = self._run_options
        return Runs(
            self._context, self._sampling, self._current, self._tunable_changes, self._own_cpus,
            job_target, self.budget, self._given_up, self._request.hold, keeps_scratch, deadline_s,
        )  # fmt: skip

    def _begin_run(self, order: RunOrder) -> None:
        self._sampling.probe.make_way_for_job()
        self._runs = self._runs or self._new_runs()
        self._runs.order(order)

    def lay_out(self) -> None:
        """Continue the run that has announced its layout, and now waits."""
        self._command(lambda: self._to_runs(lambda runs: runs.lay_out()))

    def start_run(self, start_signal: StartSignal) -> None:
        """Start the run that waits; the event ``FioExecuted`` has the time of the start."""
        self._command(lambda: self._to_runs(lambda runs: runs.start_run(start_signal)))

    def send_heartbeat(self) -> None:
        """Tell fio's guard that this process still runs. Ticks do this as well; a caller needs it
        only if ticks may be further apart than ``deadline_s``."""
        run = self._current.fio
        if run is not None:
            run.send_heartbeat()

    def stop_job(self) -> None:
        """Stop the running job; its last document still arrives."""
        self._given_up.set()
        self._command(self._stop)

    def _stop(self, hard: bool = False) -> None:
        self._given_up.clear()
        self._to_runs(lambda runs: runs.stop(hard))

    def _to_runs(self, call: Callable[[Runs], None]) -> None:
        """Make the call if any job has been run so far. Used in the session's thread."""
        if self._runs is not None:
            call(self._runs)

    def kill_job(self) -> None:
        """Stop the running job at once, without its last document."""
        self._given_up.set()
        self._command(lambda: self._stop(hard=True))

    def mark(self, text: str) -> None:
        """Put a mark on all charts, now."""
        self._command(lambda: self._context.emit(events.Mark(self._context.now(), printable(text))))

    def set_tunable(self, name: str, value: str) -> None:
        """Change a tunable (model/block/tunable.py) of the disks under the target; ``close``
        restores it. A refusal arrives as a Notice."""
        self.change_tunable(name, value, lambda error: None)

    def change_tunable(
        self, name: str, value: str, on_done: Callable[[IopstuiError | None], None]
    ) -> None:
        """Change a tunable; ``on_done`` is called in the session's thread with any error."""
        self._command(lambda: on_done(self._tunable_changes.try_change(name, value)))

    def alternate_tunable(self, name: str, values: tuple[str, str]) -> None:
        """Set a tunable to the first and the second of these values in turn while the job runs, and
        report the difference. It ends with the second value, the current one. A second call ends it
        early."""
        alternation = self._alternation

        def start_or_stop() -> None:
            if alternation.is_active:
                alternation.stop("it was ended")
            else:
                alternation.start(name, values)

        self._command(start_or_stop)

    def ask(self, finding: Finding) -> None:
        """Let the next run decide whether this finding is true: the finding "answer" says what it
        shows. That run has the finding's ``options``."""
        self._command(lambda: self._sampling.findings.ask(finding))

    def reapply_tunables(self, settings: Sequence[tuple[str, str]]) -> None:
        """Set these tunables (name, value) again if they have changed since."""
        self._command(lambda: self._tunable_changes.reapply(settings))

    @property
    def probe(self) -> tuple[str, ...]:
        """The things that the probe counts (model/metrics/probe.py); empty while it is off."""
        return self._sampling.probe.parts

    @property
    def disk_use(self) -> DiskUse | None:
        return self._sampling.disk_use

    @property
    def no_probe(self) -> str:
        """Why the requested probe doesn't count; "" while it does."""
        return self._sampling.probe.why_off

    def switch_probe(self, on: bool) -> None:
        """Start or stop counting in the kernel. If it can't, a Notice says why."""
        self._command(lambda: self._sampling.probe.switch(on))

    @property
    def runs(self) -> int:
        """Number of runs begun so far."""
        return self._current.step

    def knobs(self) -> list[TunableState]:
        """The tunables of the disks under the target, as they are now (reads some files)."""
        from iopstui.safety.tunables import tunable_states

        return tunable_states(self.target, self.devices, self._context.roots)

    @property
    def host(self) -> str:
        return os.uname().nodename

    def topology(self) -> Topology:
        """The machine's CPUs and their groups by cache and node (reads some files for each CPU)."""
        return read_topology(self._context.roots)

    @property
    def recording(self) -> Path | None:
        return self._context.recording.path

    @property
    def recorded(self) -> Path | None:
        """Return, after ``close``, the path of the recording; ``None`` if there was none."""
        return self._context.recording.kept_path

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Outcomes of the last run's expectations."""
        return self._context.outcomes.outcomes

    @property
    def steady(self) -> bool:
        """Whether a run ended because it was steady (``until_steady``)."""
        return self._context.outcomes.steady

    def record(self, path: Path) -> None:
        """Record from now on. Raises UsageError (the file exists ...); later problems are reported
        as a Notice."""
        recorder = Recorder(path)
        self._command(lambda: self._start_recording(recorder))

    def begin_recording(self, path: Path) -> None:
        """Begin a recording in the caller's thread, so that a slow disk does not delay the session.
        It begins with the last ``keep_s`` seconds. Raises UsageError."""
        self._start_recording(Recorder(path), with_kept=True)

    def record_with(self, recorder: Recorder) -> None:
        """Silently switch to this recorder; no second is lost or counted twice. From any thread."""
        self._context.recording.start(recorder)

    def add_record(self, record: object) -> None:
        """Put a record into the recording that is not an event (recording/layout.py)."""
        self._context.recording.add(record)

    def save_kept(self, path: Path) -> float | None:
        """Write the last seconds that are kept (``keep_s``) to a recording, in the caller's thread;
        only while nothing else is recorded. Returns how many seconds (``None``, and no file, if
        nothing was measured yet). Raises UsageError."""
        return self._context.recording.save_kept(Recorder(path))

    def end_recording(self) -> None:
        """End the recording like ``stop_recording``, in the caller's thread."""
        message = self._context.recording.detach()()
        if message:
            self.notice("info", message)

    def sample(self) -> None:
        """Take a sample now; the next one comes an interval later."""
        self._command(self._sampling.tick)

    def note(self, event: events.Event) -> None:
        """Record an event derived from the session's events (a point of an experiment)."""
        self._context.note(event)

    def notice(self, level: str, text: str) -> None:
        """Emit a Notice; ``level`` is "info", "warning" or "error"."""
        self._command(lambda: self._context.notice(level, text))

    def stop_recording(self) -> None:
        """End the recording; a Notice says what was recorded."""
        self._command(self._end_recording)

    def close(self) -> None:
        """Stop fio, remove scratch files, restore tunables, end the thread. Idempotent.

        Afterwards ``left_behind`` says what hangs in the kernel. This waits about 2 s for a job
        that hangs, CLOSE_TIMEOUT_S for a call of iopstui itself."""
        self._closing = True
        self._given_up.set()
        self._wake()
        # starting the thread may have failed at a limit of threads or memory
        if self._thread is None or self._thread.ident is None:
            return
        while self._join(self._thread):
            continue  # the thread is busy, e.g. with many files to remove
        if self._thread.is_alive() and not self.left_behind:
            self._hang_message = (
                "A system call hangs, waiting for the device. To clean up later: iopstui doctor"
            )

    def _join(self, thread: threading.Thread) -> bool:
        """Wait for the thread's end; True if it has not ended but works."""
        before = thread_cpu_s(thread)
        thread.join(CLOSE_TIMEOUT_S)
        return (
            thread.is_alive()
            and not self.left_behind
            and thread_cpu_s(thread) - before > CLOSE_TIMEOUT_S * MIN_CPU_SHARE
        )

    @property
    def running(self) -> bool:
        return self._current.fio is not None

    def _command(self, command: Callable[[], None]) -> None:
        self._commands.append(command)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"!")

    # -- the session's thread

    def _main(self) -> None:
        context, sampling = self._context, self._sampling
        try:
            context.warn(self._own_cpus.begin())
            context.warn(_no_sum_text(context.target))
            if self._request.probe:
                sampling.probe.switch(True)
            sampling.first()
            while not self._closing:
                self._wait()
                while self._commands:
                    self._commands.popleft()()
                self._follow(self._runs)
            self._shut_down(self._runs)
        except Exception as error:  # the last line of defence: reported, and nothing left running
            self._failure_code = self._failure_code or _exit_code(error)
            context.notice("error", _error_text(error))
        finally:
            self._try(lambda: self._to_runs(lambda runs: runs.close()))
            for call in (self._tunable_changes.restore, sampling.close, *self._at_end):
                self._try(call)
            self._end()

    def _follow(self, runs: Runs | None) -> None:
        """Continue with the current run, if any, and tick if that is due."""
        if runs is not None:
            runs.follow()
        self._tunable_changes.apply_due(runs.began_ns if runs is not None else None)
        self._alternation.follow()
        ticked = self._sampling.tick_if_due()
        if runs is not None:
            if ticked:
                runs.progress()
            runs.end_steady()

    def _try(self, call: Callable[[], object]) -> None:
        """Make the call, and report any exception instead of raising it, so that the following
        steps are done."""
        try:
            call()
        except Exception as error:
            self._failure_code = self._failure_code or _exit_code(error)
            self._context.notice("error", _error_text(error))

    def _end(self) -> None:
        context = self._context
        session_ended = events.SessionEnded(context.now(), self.exit_code)
        try:
            lost = context.recording.close(session_ended)
        except Exception as error:  # go on: somebody waits for the event
            lost = _error_text(error)
        if lost:
            context.notice("error", lost)
        context.emit(session_ended)

    def _wait(self) -> None:
        """Wait for the next tick, news of fio, or a command."""
        runs = self._runs
        fds = [self._wake_read, *(runs.fds() if runs is not None else ())]
        timeout = (self._sampling.deadline_ns - self._context.clock.monotonic_ns()) / 1e9
        patience = runs.patience_s() if runs is not None else None
        if patience is not None:
            timeout = min(timeout, patience)
        ready, _, _ = select.select(fds, [], [], max(0.0, timeout))
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)

    def _start_recording(self, recorder: Recorder, with_kept: bool = False) -> None:
        context = self._context
        context.recording.start(recorder, with_kept)
        # not recorded, because it is not part of the measurement
        name = printable(str(recorder.path))
        message = f"recording to {name} (others watch it with: iopstui replay {name} --follow)"
        context.emit_unrecorded(events.Notice(context.now(), "info", message))

    def _end_recording(self) -> None:
        message = self._context.recording.stop()
        if message:
            self._context.notice("info", message)

    def _shut_down(self, runs: Runs | None) -> None:
        """Stop fio and wait for its last document, so that all measurements are reported."""
        clock = self._context.clock
        if runs is None:
            return
        self._given_up.clear()
        runs.stop()
        give_up_ns = clock.monotonic_ns() + int(LEAVE_TIMEOUT_S * 1e9)
        while runs.ending:
            if clock.monotonic_ns() > give_up_ns:
                runs.leave_behind()
                return
            self._sampling.postpone(1.0)
            self._wait()
            runs.follow()


def _no_sum_text(target: Target) -> str:
    """Why the devices of a job's own files have no common sum; "" if they are side by side."""
    if target.nested is None:
        return ""
    top, below = target.nested
    return (
        f"{top} lies on {below}, and the job uses both. The same I/O is counted twice, so no "
        "sum is shown."
    )


def _exit_code(error: Exception) -> int:
    """Exit code of a failed session. An exhausted limit has the same code as a limit that is
    exhausted before the start."""
    return EXIT_MISSING if exhausted_limit(error) else EXIT_JOB_FAILED


def _error_text(error: Exception) -> str:
    """The text for an error. An exhausted limit (files, processes) is not a bug: then the text
    names the setting that raises it."""
    return exhausted_limit(error) or f"internal error: {error!r}"
