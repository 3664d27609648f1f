"""Replace the running job by the next one without a pause.

While the active run works and is measured, a thread prepares the next one: all checks, missing
files, the guard with a fio that waits for its start. Right after a document of the active run the
next one is started, and once that has done its first I/O the active one is told to end. Events come
in order: the active run's last document and its end, then the start of the next one, then its
documents. If in doubt, the active run is stopped first and then the next one started."""

from __future__ import annotations

import threading
from collections.abc import Callable

from iopstui import events
from iopstui.errors import IopstuiError, JobFailed
from iopstui.events import LAYOUT, RUN
from iopstui.fio.inspect import cancel_when, find_fio
from iopstui.format import size
from iopstui.linux.counters.signal_flag import SignalFlag
from iopstui.model.samples import FioStatus
from iopstui.preflight.staging import SharedScratch
from iopstui.safety.locks import ActiveRun
from iopstui.session.fio.fio_run import FioEvent, FioRun, NewDocument, PhaseFinished, ReadyToStart
from iopstui.session.own_cpus import OwnCpus
from iopstui.session.run_preparation import (
    RunOrder,
    RunPreparation,
    StallTimeouts,
    StopFirst,
    new_run,
)
from iopstui.session.tick.context import Context, CurrentRun
from iopstui.session.tick.sampling import LATE_FACTOR, Sampling

PREPARING, LAYING_OUT, WAITING, STARTED, TAKING_OVER = (
    "preparing", "laying out", "waiting", "started", "taking over",
)  # fmt: skip
POLL_S, FIRST_IO_POLL_S = 0.03, 0.01
# longest wait for the next run's first I/O; then the active run is stopped anyway
FIRST_IO_TIMEOUT_S = 10.0


class Handover:
    """The replacement of the active run by the next one, from the order to prepare that run (in a
    thread) until it is the active run. ``events`` are the unread events of its fio. ``given_up``
    ends the preparation early."""

    def __init__(
        self, order: RunOrder, prepare: Callable[[], FioRun], given_up: SignalFlag, now_ns: int
    ) -> None:
        self.order = order
        self.given_up = given_up
        self.state = PREPARING
        self.since_ns = now_ns
        self.run: FioRun | None = None
        self.error: Exception | None = None
        self.is_held = False
        self.first_io_ms: float | None = None
        self.events: list[FioEvent] = []
        self._prepare = prepare
        self.thread = threading.Thread(target=self._work, name="next run", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        try:
            self.run = self._prepare()
        except Exception as error:
            self.error = error

    def enter(self, state: str, now_ns: int) -> None:
        """Go on to the next state."""
        self.state, self.since_ns = state, now_ns


class Handovers:
    """Prepares and starts the run that replaces the active one. Used in the session's thread.
    ``holds``: runs wait for a start signal. ``stop_first`` is called with an order that has to wait
    for the active run's end."""

    def __init__(
        self,
        context: Context,
        sampling: Sampling,
        current: CurrentRun,
        preparation: RunPreparation,
        own_cpus: OwnCpus,
        holds: bool,
        deadline_s: float | None,
        stop_first: Callable[[RunOrder], None],
    ) -> None:
        self._context = context
        self._sampling = sampling
        self._current = current
        self._preparation = preparation
        self._own_cpus = own_cpus
        self._holds = holds
        self._deadline_s = deadline_s
        self._stop_first = stop_first
        self._next: Handover | None = None
        # an order that is no longer wanted, but still being prepared
        self._unwanted: Handover | None = None
        # the newest order that came meanwhile
        self._later: RunOrder | None = None
        # runs given up before they began, with the files made only for them
        self._dropped: list[tuple[FioRun, SharedScratch | None]] = []
        self._timeouts = StallTimeouts(context)

    @property
    def poll_s(self) -> float | None:
        """Seconds until the next look; ``None`` if no look is needed."""
        if self._next is not None and self._next.state == STARTED:
            return FIRST_IO_POLL_S
        waits = self._next is not None or self._unwanted is not None or self._dropped
        return POLL_S if waits else None

    def bytes_written(self) -> int:
        """Bytes that the next run's jobs have written so far."""
        handover = self._next
        working = handover is not None and handover.state in (STARTED, TAKING_OVER)
        return handover.run.bytes_written() if working and handover and handover.run else 0

    def check_space(self) -> None:
        """End the next run if its files grow beyond what was planned."""
        if self._next is not None and self._next.run is not None:
            self._next.run.check_space()

    def send_heartbeat(self) -> None:
        """Send a heartbeat to the guard of the next run's fio; from any thread."""
        handover = self._next
        if handover is not None and handover.run is not None and handover.state != PREPARING:
            handover.run.send_heartbeat()

    # -- orders

    def order(self, order: RunOrder) -> bool:
        """Begin to replace the active run; the last of several orders wins. False if the active run
        has to be stopped first."""
        run = self._current.fio
        if run is None or not self._is_possible(order, run):
            self.drop()
            return False
        if self._next is not None and self._next.state in (PREPARING, LAYING_OUT, WAITING):
            self.drop()
        self._later = order
        self._begin_later()
        return True

    def _is_possible(self, order: RunOrder, run: FioRun) -> bool:
        return (
            order.hand_over
            and run.phase == RUN
            and not (run.stopping and not self._is_taking_over)
            and not run.failure
            and not self._holds
            and self._preparation.can_hand_over(order, run.prepared)
        )

    @property
    def _is_taking_over(self) -> bool:
        return self._next is not None and self._next.state == TAKING_OVER

    def _begin_later(self) -> None:
        """Begin with the newest order once no other is in progress."""
        run = self._current.fio
        busy = self._next is not None or self._unwanted is not None
        if busy or self._later is None or run is None:
            return
        order, self._later = self._later, None
        guard, guard_pid = run.prepared.guard, run.guard_pid
        if run.stopping or guard is None or guard_pid is None:
            self._stop_first(order)
            return
        given_up = SignalFlag()
        active = guard.active_run(guard_pid, given_up.is_set)
        self._next = Handover(
            order, lambda: self._prepare(order, run, active, given_up), given_up, self._now()
        )

    def _prepare(
        self, order: RunOrder, running: FioRun, active: ActiveRun, given_up: SignalFlag
    ) -> FioRun:
        """Prepare the next run, in the thread of a handover. Its fio waits for its start, unless
        files are to be laid out first. Raises IopstuiError or StopFirst; then nothing is left
        behind."""
        try:
            cancel_when(given_up)
            fio = find_fio()
            prepared = self._preparation.prepared_beside(order, fio, running.prepared, active)
            run = new_run(
                self._context, fio, prepared, self._sampling.interval_s, True,
                self._deadline_s,
            )  # fmt: skip
            if run.phase == RUN:
                self._start(run)
            return run
        finally:
            active.close()

    def _start(self, run: FioRun) -> None:
        """Start the guard and its fio. Raises IopstuiError; then the run is gone."""
        try:
            with self._own_cpus.unpinned():
                run.start_phase()
        except BaseException:
            run.close()
            raise

    # -- steps of a handover

    def follow(self) -> None:
        """Take the next step of the handover, if it is due."""
        for dropped in [entry for entry in self._dropped if _has_ended(entry[0])]:
            self._dropped.remove(dropped)
            _close(*dropped)
        if self._unwanted is not None and not self._unwanted.thread.is_alive():
            self.wait()
        handover = self._next
        if handover is None:
            self._begin_later()
        elif handover.state == PREPARING:
            if not handover.thread.is_alive():
                self._take_prepared(handover)
        elif handover.state == TAKING_OVER:
            self.send_heartbeat()
            self._check_budget(handover)
        elif handover.run is not None:
            self._poll(handover, handover.run)

    def _take_prepared(self, handover: Handover) -> None:
        """Go on when the preparing thread has ended: with the prepared run, or with the error of
        the thread."""
        run, error = handover.run, handover.error
        if isinstance(error, StopFirst):
            self._drop_next()
            self._stop_first(handover.order)
        elif isinstance(error, IopstuiError):
            self._refuse(error)
        elif error is not None:
            raise error
        elif run is not None:
            try:
                self._preparation.check_budget(run.prepared, self._written_by_active())
            except IopstuiError as refusal:
                self._refuse(refusal)
                return
            if run.phase == LAYOUT:
                self._lay_out(handover, run)
            else:
                handover.enter(WAITING, self._now())

    def _check_budget(self, handover: Handover) -> None:
        """Check the budget for both runs: the active run's own check has stopped, because it is
        ending."""
        run, budget = handover.run, self._preparation.budget
        if budget.most is None or run is None or run.failure:
            return
        written = self._written_by_active()
        run.failure = budget.check(self._now() / 1e9, written, run.bytes_written())
        if run.failure:
            run.stop()

    def _written_by_active(self) -> int:
        run = self._current.fio
        return run.bytes_written() if run is not None else 0

    def _refuse(self, error: IopstuiError) -> None:
        """Report the error; the active run goes on unchanged."""
        self._drop_next()
        text = error.full_text
        goes_on = " The running job goes on." if self._current.fio is not None else ""
        self._context.emit(
            events.Notice(self._context.now(), "error", f"{text}{goes_on}", refused=True)
        )

    def _lay_out(self, handover: Handover, run: FioRun) -> None:
        text = f"creating {size(run.prepared.layout_bytes or 0)} of files for the next run"
        self._context.notice("info", f"{text}: that loads the disk beside the running job")
        self._timeouts.begin_phase()
        self._sampling.begin_handover()
        handover.enter(LAYING_OUT, self._now())
        try:
            self._start(run)
        except IopstuiError as error:
            self._refuse(error)

    def _poll(self, handover: Handover, run: FioRun) -> None:
        new_events = run.poll()
        if any(isinstance(event, ReadyToStart) for event in new_events):
            handover.is_held, handover.since_ns = True, self._now()
        handover.events += [event for event in new_events if not isinstance(event, ReadyToStart)]
        ended = next((e for e in handover.events if isinstance(e, PhaseFinished)), None)
        if ended is not None:
            self._phase_finished(handover, run, ended)
        elif handover.state == LAYING_OUT:
            self._timeouts.check_layout(run, self._current.step + 1)
        elif handover.state == WAITING:
            self._check_document_is_late()
        else:
            self._check_first_io(handover, run)

    def _phase_finished(self, handover: Handover, run: FioRun, ended: PhaseFinished) -> None:
        if run.phase == RUN and not ended.error:
            self._preparation.budget.end_beside(run.bytes_written_in(LAYOUT))
            self._sampling.end_handover()
            handover.events.clear()
            try:
                self._start(run)
            except IopstuiError as error:
                self._refuse(error)
                return
            handover.enter(WAITING, self._now())
            return
        if any(isinstance(event, NewDocument) and _has_ios(event) for event in handover.events):
            # it has done all of its I/O at once
            self._take_over(handover)
            return
        why = ended.error or "fio ended before its first I/O"
        self._refuse(JobFailed(f"The next run failed: {why}."))

    def _check_document_is_late(self) -> None:
        """If the active run does not report, stop it before the next one starts."""
        handover = self._next
        patience_s = LATE_FACTOR * max(1.0, self._sampling.interval_s)
        if handover is not None and handover.is_held and self._waited_s(handover) > patience_s:
            self._drop_next()
            self._stop_first(handover.order)

    def _check_first_io(self, handover: Handover, run: FioRun) -> None:
        reported = any(isinstance(e, NewDocument) and _has_ios(e) for e in handover.events)
        if reported or run.has_done_io():
            handover.first_io_ms = self._context.clock.wall_ms()
            self._take_over(handover)
        elif self._waited_s(handover) > FIRST_IO_TIMEOUT_S:
            self._take_over(handover)

    def _take_over(self, handover: Handover) -> None:
        active = self._current.fio
        self._sampling.begin_handover()
        handover.enter(TAKING_OVER, self._now())
        if active is not None:
            active.stop()

    def _waited_s(self, handover: Handover) -> float:
        return (self._now() - handover.since_ns) / 1e9

    def document_read(self) -> None:
        """Note that a document of the active run has just been read, so that the next run can be
        started."""
        handover, active = self._next, self._current.fio
        if active is None or active.stopping or handover is None:
            return
        if handover.state == WAITING and handover.is_held:
            self._go(handover)

    def _go(self, handover: Handover) -> None:
        run = handover.run
        assert run is not None
        message = self._own_cpus.for_job(run.prepared.text, self._context.disks())
        if message:
            self._context.notice("info", message)
        run.start_run(self._now())
        handover.enter(STARTED, self._now())

    # -- ending

    def active_ended(self, failed: bool) -> Handover | None:
        """The active run has ended: return the handover whose run becomes the active one."""
        handover, later = self._next, self._later
        if handover is None:
            if later is not None and not failed:
                self._later = None
                self._stop_first(later)
            return None
        if handover.state == PREPARING:
            handover.thread.join()
            self._take_prepared(handover)
            handover = self._next
        if handover is None or handover.state == PREPARING:
            return None
        if failed and handover.state != TAKING_OVER:
            self.drop()
            return None
        if handover.state == WAITING:
            self._go(handover)
        self._next = None
        self._sampling.end_handover()
        return handover

    def stop(self, hard: bool) -> None:
        """Stop the next run, too; it is dropped if it has done no I/O yet."""
        self._later = None
        handover = self._next
        if handover is not None and handover.state == TAKING_OVER and handover.run is not None:
            handover.run.stop(hard)
        else:
            self.drop()

    def drop(self) -> None:
        """Drop the next run. If it is being prepared, it is dropped when the preparation ends."""
        self._later = None
        handover = self._next
        if handover is not None and handover.state == PREPARING:
            self._next, self._unwanted = None, handover
            handover.given_up.set()
        else:
            self._drop_next()

    def wait(self) -> None:
        """Wait until the preparation that is no longer wanted has ended."""
        handover, self._unwanted = self._unwanted, None
        if handover is not None:
            handover.thread.join()
            self._drop(handover)

    def _drop_next(self) -> None:
        handover, self._next = self._next, None
        if handover is not None:
            self._sampling.end_handover()
            self._drop(handover)

    def _drop(self, handover: Handover) -> None:
        """Drop a run: end its processes without events and remove its files; the active run's files
        stay."""
        run, files = handover.run, self._preparation.scratch.take_beside()
        if run is None:
            if files is not None:
                files.close()
            return
        if handover.state == LAYING_OUT:
            self._preparation.budget.end_beside(run.bytes_written_in(LAYOUT))
        elif handover.state in (STARTED, TAKING_OVER):
            self._preparation.budget.end_beside(run.bytes_written())
        if run.guard_pid is None:
            _close(run, files)
        else:
            # closing its pipe would make the guard remove files that other runs use
            run.stop(hard=True)
            self._dropped.append((run, files))

    def close(self) -> None:
        """Drop the next run and wait until nothing of it is left."""
        self.drop()
        self.wait()
        while self._dropped:
            _close(*self._dropped.pop())

    def _now(self) -> int:
        return self._context.clock.monotonic_ns()


def _close(run: FioRun, files: SharedScratch | None) -> None:
    run.close()
    if files is not None:
        files.close()


def _has_ended(run: FioRun) -> bool:
    return any(isinstance(event, PhaseFinished) for event in run.poll())


def _has_ios(event: NewDocument) -> bool:
    return any(part.issued for job in event.status.jobs for part in job.directions.values())


def overlap_s(before: FioRun, first_io_ms: float | None) -> float | None:
    """How long both runs did I/O (s): from the next run's first I/O, noticed at ``first_io_ms`` of
    the wall clock (``None``: not yet), to the last I/O of the run ``before`` by fio's figures. A
    negative value is the length of a pause. ``None``: not known."""
    last, earlier = before.last_status, before.status_before
    if first_io_ms is None or last is None or earlier is None:
        return None
    worked_ms = _runtime_ms(last) - _runtime_ms(earlier)
    end_ms = earlier.timestamp_ms + worked_ms if worked_ms >= 0 else last.timestamp_ms
    return (min(end_ms, last.timestamp_ms) - first_io_ms) / 1000


def _runtime_ms(status: FioStatus) -> int:
    return max(
        (part.runtime_ms for job in status.jobs for part in job.directions.values()), default=0
    )
