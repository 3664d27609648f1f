"""The runs of a session: prepare a job, start fio, follow its documents, report its end. If a run
may replace another without a pause, handovers.py prepares and starts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iopstui import events
from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, Interrupted, IopstuiError
from iopstui.events import LAYOUT, RUN
from iopstui.fio.inspect import cancel_when, find_fio
from iopstui.linux.counters.signal_flag import SignalFlag
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Binding
from iopstui.model.fio.interval_time import is_repetition
from iopstui.model.metrics.summary import fio_summary, without_bins
from iopstui.model.samples import FioStatus
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.recording.records import JobRun
from iopstui.session.fio.fio_run import (
    ENDED,
    LAST_FRAME_DELAY_S,
    FioEvent,
    FioMessage,
    FioRun,
    FioStarted,
    NewDocument,
    PhaseFinished,
    ReadyToStart,
    hanging_text,
)
from iopstui.session.fio.write_budget import WriteBudget, bytes_written, written_per_s
from iopstui.session.handovers import Handover, Handovers, overlap_s
from iopstui.session.own_cpus import OwnCpus
from iopstui.session.run_preparation import (
    RunOrder,
    RunPreparation,
    StallTimeouts,
    StartSignal,
    executed_event,
    new_run,
    planned_event,
    ready_event,
)
from iopstui.session.tick.context import Context, CurrentRun
from iopstui.session.tick.sampling import Reading, Sampling
from iopstui.session.tunable_changes import TunableChanges
from iopstui.text import printable

POLL_S = 0.1
START_POLL_S = 0.01
FIRST_IO_TIMEOUT_S = 0.5
SPACE_CHECK_S = 0.3


class Runs:
    """Runs one job at a time; an order while one runs replaces it, or stops it first. Blocks only
    while a job is prepared. Used only in the session's thread. ``job_target`` is the target handed
    to jobs; ``None`` if they name their own files. ``exit_code`` is the last run's; ``left_behind``
    says what hangs in the kernel. ``given_up`` ends the preparation of a job early."""

    def __init__(
        self,
        context: Context,
        sampling: Sampling,
        current: CurrentRun,
        knobs: TunableChanges,
        own_cpus: OwnCpus,
        job_target: Target | None,
        budget: WriteBudget,
        given_up: SignalFlag,
        holds: bool = False,
        keeps_scratch: bool = False,
        deadline_s: float | None = None,
    ) -> None:
        self.began_ns: int | None = None
        self.exit_code = EXIT_OK
        self.left_behind = ""
        self._context = context
        self._sampling = sampling
        self._current = current
        self._tunable_changes = knobs
        self._own_cpus = own_cpus
        self._budget = budget
        self._holds = holds
        self._deadline_s = deadline_s
        self._preparation = RunPreparation(context, job_target, budget, keeps_scratch)
        self._next_order: RunOrder | None = None
        self._mark = ""
        self._start_signal: StartSignal | None = None
        self._planning = False
        # a reading whose document may be fio's last one is held back until fio ends, goes on, or
        # LAST_FRAME_DELAY_S has passed
        self._pending: Reading | None = None
        self._pending_repeated = False
        self._awaiting_jobs = False
        self._quiet_since_ns = 0
        self._space_checked_ns = 0
        self._stall_timeouts = StallTimeouts(context)
        self._given_up = given_up
        self._handovers = Handovers(
            context,
            sampling,
            current,
            self._preparation,
            own_cpus,
            holds,
            deadline_s,
            self._stop_first,
        )

    @property
    def run(self) -> FioRun | None:
        return self._current.fio

    def order(self, order: RunOrder) -> None:
        """Run this job; a running job is replaced, or stopped first."""
        if self._planning:
            self._cancel()
        if self._handovers.order(order):
            return
        if self.run is None:
            self._begin(order)
        else:
            self._stop_first(order)

    def _stop_first(self, order: RunOrder) -> None:
        """Run this job after the end of the running one."""
        self._next_order = order
        if self.run is not None:
            self.run.stop()

    def lay_out(self) -> None:
        """Continue the run that has announced its layout."""
        if self._planning:
            self._planning = False
            self._start_phase()

    def start_run(self, start_signal: StartSignal) -> None:
        if self.run is not None and self.run.hold and self._start_signal is None:
            self._start_signal = start_signal
            self._sampling.await_first_io()
            self._awaiting_jobs = True
            self.run.start_run(start_signal.at_ns)

    def stop(self, hard: bool = False) -> None:
        """Stop the running job; ``hard``: without its last document."""
        self._handovers.stop(hard)
        self._next_order = None
        if self._planning:
            self._cancel()
        elif self.run is not None:
            self.run.stop(hard)

    def end_steady(self) -> None:
        """Stop the running job if it has become steady and should end then."""
        if self.run is not None and self._context.outcomes.steady and not self.run.stopping:
            self.run.stop()

    def close(self) -> None:
        """End whatever is left of a run, and remove its private directory."""
        self._handovers.close()
        if self.run is not None:
            self.run.close()
            self._preparation.scratch.release_run(self.run, False)
        self._preparation.close()

    def fds(self) -> tuple[int, ...]:
        """Descriptors to poll for events."""
        return self.run.fds if self.run is not None else ()

    def patience_s(self) -> float | None:
        """The longest time (s) to wait for the run's events; ``None`` without a run."""
        if self.run is None:
            return None
        patience = START_POLL_S if self._awaiting_jobs else self._poll_s(self.run)
        patience = min(patience, self._handovers.poll_s or patience)
        if self._pending is not None:
            held_s = (self._context.clock.monotonic_ns() - self._pending.arrived_ns) / 1e9
            patience = min(patience, LAST_FRAME_DELAY_S - held_s)
        return patience

    def _poll_s(self, run: FioRun) -> float:
        """Poll interval. If fio's output wakes the reader, only free space has to be checked,
        unless there is a write budget or a delayed tunable."""
        woken = run.wakes_on_output and run.phase == RUN
        return (
            SPACE_CHECK_S
            if woken and self._budget.most is None and not self._tunable_changes.has_delayed
            else POLL_S
        )

    # -- beginning

    def _begin(self, order: RunOrder) -> None:
        context = self._context
        self._handovers.wait()
        self._current.step += 1
        self._mark = order.mark
        cancel_when(self._given_up)
        try:
            fio = find_fio()
            self._tunable_changes.apply_initial()
            self._tunable_changes.apply(_knobs(order))
            prepared = self._preparation.prepared(order, fio)
        except IopstuiError as error:
            self._not_started(error)
            return
        run = new_run(
            context, fio, prepared, self._sampling.interval_s, self._holds, self._deadline_s,
        )  # fmt: skip
        self._adopt(order, run)
        self._planning = order.announce
        if order.announce:
            context.emit(planned_event(context, self._current.step, prepared))
        else:
            self._start_phase()

    def _adopt(self, order: RunOrder, run: FioRun) -> None:
        prepared, step = run.prepared, self._current.step
        self._context.recording.job(_recorded_job(step, order, prepared))
        self._current.fio = run
        self._stall_timeouts = StallTimeouts(self._context)

    def _not_started(self, error: IopstuiError) -> None:
        self.exit_code = error.exit_code
        interrupted = isinstance(error, Interrupted)
        self._context.emit(
            events.StepFinished(
                self._context.now(), self._current.step, error.exit_code,
                "" if interrupted else error.message, interrupted, hint=error.hint,
            )
        )  # fmt: skip

    def _cancel(self) -> None:
        """Cancel the order, whose run has not begun."""
        self._planning = False
        if self.run is not None:
            self._undo(self.run, Interrupted("Nothing was started."))

    def _undo(self, run: FioRun, error: IopstuiError) -> None:
        run.close()
        self._preparation.scratch.release_run(run, False)
        self._current.fio = None
        self._not_started(error)

    def _start_phase(self) -> None:
        run, context = self.run, self._context
        assert run is not None
        waits_for_start = self._holds and run.phase == RUN
        self._start_signal = None
        self._awaiting_jobs = run.phase == RUN and not waits_for_start
        self._stall_timeouts.begin_phase()
        self._quiet_since_ns = 0
        self._sampling.await_first_io()
        message = self._own_cpus.for_job(run.prepared.text, context.disks())
        try:
            with self._own_cpus.unpinned():
                run.start_phase()
        except IopstuiError as error:
            self._undo(run, error)
            return
        for doubt in run.prepared.guard.doubts.values() if run.prepared.guard else ():
            context.warn(doubt)
        if not waits_for_start:
            self._report_start(run)
        if message:
            context.notice("info", message)

    def _report_start(self, run: FioRun, overlap_s: float | None = None) -> None:
        """Report that fio works from now on; ``overlap_s`` is how long it has worked so far beside
        the run it replaces."""
        context, findings = self._context, self._sampling.findings
        if run.phase == RUN:
            self.began_ns = context.clock.monotonic_ns()
            binding = run.prepared.binding
            findings.begin_run(run.prepared.text, binding is not None)
            self._sampling.begin_run(findings.shape)
            if binding is not None:
                self._report_binding(binding)
        else:
            findings.note_layout()
        if self._mark:
            context.emit(events.Mark(context.now(), printable(self._mark)))
            self._mark = ""
        context.emit(
            events.StepStarted(
                context.now(),
                self._current.step,
                printable(run.prepared.name),
                printable(run.prepared.title),
                tuple(run.command),
                run.prepared.read_only,
                run.phase,
                run.fio.banner,
                run.prepared.options,
                overlap_s,
            )
        )

    def _report_binding(self, binding: Binding) -> None:
        pairs = [f"job {job} → CPU {cpu} (hctx {hctx})" for job, cpu, hctx in binding.rows[:16]]
        more = [f"... {len(binding.rows)} jobs"] if len(binding.rows) > len(pairs) else []
        self._context.notice("info", "bound to queues: " + ", ".join(pairs + more))
        for note in binding.notes:
            self._context.warn(note)

    # -- following

    def follow(self) -> None:
        """Process fio's output since the last call."""
        self._handovers.follow()
        run = self.run
        if run is None:
            return
        if self._awaiting_jobs and run.jobs_alive():
            self._await_first_io()
        self._check_written(run)
        self._process(run, run.poll())
        pending = self._pending
        if (
            pending
            and self._context.clock.monotonic_ns() - pending.arrived_ns > LAST_FRAME_DELAY_S * 1e9
        ):
            # some versions of fio take their time to end after the last document
            self._release(final=self._pending_repeated)
        if run.hanging and run.stopping and self.run is run:
            self.leave_behind()

    def _process(self, run: FioRun, news: Sequence[FioEvent]) -> None:
        documents: list[NewDocument] = []
        for event in news:
            if isinstance(event, NewDocument):
                self._awaiting_jobs = False
                documents.append(event)
            elif isinstance(event, FioMessage):
                self._context.notice("info", event.text)
            elif isinstance(event, ReadyToStart) and self._holds:
                self._context.emit(ready_event(self._context, self._current.step, run.prepared))
            elif isinstance(event, FioStarted) and self._start_signal is not None:
                self._report_start(run)
                self._context.emit(executed_event(
                    self._context, self._current.step, self._start_signal, event.monotonic_ns
                ))  # fmt: skip
            elif isinstance(event, PhaseFinished):
                self._documents(documents)
                documents = []
                self._finish_phase(event)
        self._documents(documents)
        if documents and self.run is run:
            self._handovers.document_read()

    def _check_written(self, run: FioRun) -> None:
        now = self._context.clock.monotonic_ns()
        if now - self._space_checked_ns > SPACE_CHECK_S * 1e9:
            self._space_checked_ns = now
            run.check_space()
            self._handovers.check_space()
        # nearly always known beforehand: the layout's size
        layout_known = run.phase != RUN and run.prepared.layout_bytes is not None
        if layout_known or run.failure or run.stopping:
            return
        run.failure = self._budget.exceeded_count(bytes_written(run.last_status))
        if self._budget.most is not None and not run.failure:
            run.failure = self._budget.check(
                now / 1e9, run.bytes_written(), self._handovers.bytes_written()
            )
        if run.failure:
            run.stop()

    def _await_first_io(self) -> None:
        """Begin the kernel's first interval where fio's begins: at the first I/O, which comes about
        0.1 s after fio has forked its jobs."""
        now = self._context.clock.monotonic_ns()
        moved = self._sampling.job_did_io()
        if self._quiet_since_ns == 0:
            self._quiet_since_ns = now
        if moved or now - self._quiet_since_ns > FIRST_IO_TIMEOUT_S * 1e9:
            self._awaiting_jobs = False
            self._sampling.tick()
            self._sampling.wait_for_document(now)

    def _documents(self, documents: Sequence[NewDocument]) -> None:
        """Handle documents that arrived together; kernel counters are read only for the last
        one."""
        documents = without_repeats(documents)
        pending = self._pending
        if (
            pending
            and pending.status
            and documents
            and is_repeated(documents[0].status, pending.status)
        ):
            pending.status, documents = documents[0].status, documents[1:]
            self._pending_repeated = True
        for position, document in enumerate(documents):
            self._release(final=False)
            last = position == len(documents) - 1
            pending = self._sampling.read(document.status, kernel=last)
            self._pending, self._pending_repeated = pending, document.repeated
            self._sampling.wait_for_document(pending.arrived_ns)
            if not document.maybe_final:
                self._release(final=False)

    def _release(self, final: bool) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            self._sampling.sample(pending, final)

    def progress(self) -> None:
        """Report the progress of laying out files, if they are being laid out."""
        run = self.run
        if run is None or self._planning:
            return
        if run.phase == LAYOUT:
            self._stall_timeouts.check_layout(run, self._current.step)
        elif not (self._holds and self._start_signal is None):
            self._stall_timeouts.check_first_document(run)

    # -- ending

    def _finish_phase(self, finished: PhaseFinished) -> None:
        run = self.run
        assert run is not None
        self._release(final=True)
        rate = written_per_s(run.last_status)
        self._budget.end(run.bytes_written_in(finished.phase), finished.phase == LAYOUT, rate)
        if finished.phase == LAYOUT and run.phase == RUN:
            self._start_phase()
            return
        interrupted = run.stopping and not self._context.outcomes.steady
        error = finished.error or run.failure
        code = EXIT_JOB_FAILED if error else EXIT_INTERRUPTED if interrupted else EXIT_OK
        handover = self._handovers.active_ended(failed=bool(error))
        next_run = handover.run if handover is not None else None
        self._finished(
            run, code, error, interrupted and not run.failure,
            next_run.prepared if next_run is not None else None,
        )  # fmt: skip
        following, self._next_order = self._next_order, None
        if handover is not None and next_run is not None:
            self._take_over(run, handover, next_run)
        elif following is not None:
            self._begin(following)

    def _take_over(self, before: FioRun, handover: Handover, run: FioRun) -> None:
        """Make ``run`` the active one; its documents are read from now on."""
        works = handover.first_io_ms is not None
        self._current.step += 1
        self._mark = handover.order.mark
        self._adopt(handover.order, run)
        self._preparation.announce_writes(run.prepared)
        run.replace(before)
        self._start_signal = None
        self._awaiting_jobs = run.phase == RUN and not works
        self._stall_timeouts.begin_phase()
        self._quiet_since_ns = 0
        self._sampling.await_first_io()
        self._report_start(run, overlap_s(before, handover.first_io_ms))
        if works:
            self._sampling.wait_for_document(self._context.clock.monotonic_ns())
        self._process(run, handover.events)

    @property
    def ending(self) -> bool:
        """True while a run is not over yet."""
        return self.run is not None and self.run.phase != ENDED

    def leave_behind(self) -> None:
        """Leave a process that hangs in the kernel to its guard: the process ends when the device
        answers."""
        run = self.run
        assert run is not None
        self._handovers.drop()
        run.hanging = run.hanging or ((run.pid,) if run.pid else ())
        self.left_behind = hanging_text(run.hanging)
        if run.stopping and not run.failure:
            self._context.warn(self.left_behind)
            self._finished(run, EXIT_INTERRUPTED, "", True)
        else:
            self._finished(run, EXIT_JOB_FAILED, run.failure or self.left_behind, False)

    def _finished(
        self,
        run: FioRun,
        code: int,
        error: str,
        interrupted: bool,
        following: PreparedJob | None = None,
    ) -> None:
        self.exit_code = code
        slow = run.prepared.slow_ios()
        for why in [] if run.hanging else run.prepared.publish():
            self._context.warn(why)
        run.close()
        self._preparation.scratch.release_run(run, self.began_ns is not None, following)
        self._current.fio = None
        self.began_ns = None
        summary = (
            fio_summary(run.last_status, run.ended_by_itself) if run.last_status is not None else {}
        )
        if summary and slow:
            summary["slowest_ios"] = slow
        self._context.emit(
            events.StepFinished(
                self._context.now(), self._current.step, code, error, interrupted, summary,
                tuple(run.messages), document=without_bins(run.document),
                disturbed=self._sampling.end_run(),
            )
        )  # fmt: skip


def _knobs(order: RunOrder) -> tuple[tuple[str, str], ...]:
    return tuple((knob.name, knob.value) for knob in order.request.knobs)


def _recorded_job(step: int, order: RunOrder, prepared: PreparedJob) -> JobRun:
    """The requested job for the recording, with the text that is passed to fio."""
    request = order.request
    return JobRun(
        step, request.job, dict(request.overrides), request.size, request.bind, prepared.text,
        tuple(prepared.files), _knobs(order), prepared.binding, tuple(request.further_words()),
    )  # fmt: skip


# fio's last document, which it may write twice: as its last periodic document, and as its final
# one.
#
# Only the second document says how long the jobs ran; in the first, before fio 3.30, the runtime
# goes on after their end. So the second one replaces the first.


def is_repeated(status: FioStatus, before: FioStatus) -> bool:
    """True if fio immediately repeats the document ``before``."""
    return status.timestamp_ms - before.timestamp_ms < LAST_FRAME_DELAY_S * 1000 and is_repetition(
        status, before
    )


def without_repeats(documents: Sequence[NewDocument]) -> list[NewDocument]:
    """The documents, without repetitions after the last job has ended."""
    distinct: list[NewDocument] = []
    for document in documents:
        if (
            distinct
            and distinct[-1].maybe_final
            and is_repeated(document.status, distinct[-1].status)
        ):
            distinct.pop()
            document = replace(document, repeated=True)
        distinct.append(document)
    return distinct
