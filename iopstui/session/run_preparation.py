"""Prepare a run: examine its job, count its possible writes, create its scratch files, order
its start.

Each change of an option on the screen restarts the job with the same files, because to write a
gibibyte again for a job that only reads would take longer than the run. Files that a run may have
changed are removed with it, as are files that the next run can't use exactly as they are. A run
that replaces another one without a pause uses the same files, or its own, created while the other
job runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iopstui import events
from iopstui.errors import IopstuiError, JobFailed
from iopstui.events import RUN
from iopstui.fio.inspect import Fio
from iopstui.fio.job_shape import start_delay_s
from iopstui.fio.write_bound import OFFLOAD_STALLED, SILENT_LAYOUT, STALLED, StallDetector
from iopstui.format import duration
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import private_directory, remove
from iopstui.linux.shares import call_with_timeout
from iopstui.model.block import target as kinds
from iopstui.model.block.target import Target
from iopstui.model.experiment.run_request import RunRequest
from iopstui.preflight.job import prepare
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.preflight.staging import LentScratch, SharedScratch
from iopstui.safety.locks import ActiveRun
from iopstui.session.fio.fio_run import FioRun
from iopstui.session.fio.write_budget import WriteBudget
from iopstui.session.tick.context import Context

# The signal to start a prepared run, and the events around it.


@dataclass(frozen=True, slots=True)
class StartSignal:
    """The signal to start at ``at_ns`` (CLOCK_MONOTONIC). ``offset_ms`` is how far this machine's
    clock is ahead of the sender's clock, ``error_ms`` the maximum error of that (``None``: not
    compared)."""

    at_ns: int
    offset_ms: float | None = None
    error_ms: float | None = None


def planned_event(context: Context, step: int, prepared: PreparedJob) -> events.RunPlanned:
    """The event with the files to be laid out. Files that a job names itself are not in it: only
    fio knows how long it would make them."""
    paths = prepared.scratch.paths if prepared.scratch is not None else ()
    layout_bytes = prepared.layout_bytes or 0 if prepared.layout_text is not None else 0
    layout = {str(path): layout_bytes // len(paths) for path in paths}
    return events.RunPlanned(context.now(), step, layout)


def ready_event(context: Context, step: int, prepared: PreparedJob) -> events.RunReady:
    """The event that says that a prepared run waits for its start."""
    prefixes = tuple(f"{path}/" for path in map(str, prepared.directories))
    writes = () if prepared.read_only else tuple(
        name for name in prepared.files if not name.startswith(prefixes)
    )  # fmt: skip
    return events.RunReady(context.now(), step, writes if prepared.scratch is None else ())


def executed_event(
    context: Context, step: int, start_signal: StartSignal, monotonic_ns: int
) -> events.FioExecuted:
    """The event with the time at which fio was started."""
    now_ns = context.clock.monotonic_ns()
    ago_ms = (now_ns - monotonic_ns) / 1e6
    return events.FioExecuted(
        context.now() - ago_ms / 1e3,
        step,
        context.clock.wall_ms() - ago_ms,
        monotonic_ns,
        (monotonic_ns - start_signal.at_ns) / 1e6,
        start_signal.offset_ms,
        start_signal.error_ms,
    )


@dataclass(frozen=True, slots=True)
class RunOrder:
    """An order to run ``request``. ``announce``: report first what would be laid out, and wait for
    permission. ``hand_over``: a running job continues until this one has done its first I/O, if
    that is safe. ``mark`` is put on all charts when the run begins."""

    request: RunRequest
    lent: LentScratch | None = None
    announce: bool = False
    hand_over: bool = False
    mark: str = ""


Make = Callable[[LentScratch | None], PreparedJob]


class StopFirst(Exception):
    """The active run has to end before the next one can be prepared."""


class SessionScratch:
    """Scratch files shared by a session's runs. ``places`` are the target's directories; without
    any, nothing is kept. ``close`` removes the files; a separate guard does so if iopstui is
    killed, and otherwise the next start does."""

    def __init__(self, places: Sequence[Path] = ()) -> None:
        self._places = tuple(places)
        self._shared: SharedScratch | None = None
        self._sizes: Mapping[str, int] = {}
        # whether a run that writes has used the files
        self._changed = False
        # files made for a run that is prepared while the active one works
        self._beside: SharedScratch | None = None
        # files of processes that hang in the kernel; their guards wait for these
        self._hanging: list[SharedScratch] = []

    def prepared(self, lent: LentScratch | None, make: Make) -> PreparedJob:
        """Prepare a run with ``make``, reusing existing files if it needs exactly the same ones, or
        with ``lent`` ones. Raises the errors of ``make``."""
        if not self._places or lent is not None:
            # the files of an experiment need the room
            self.close()
            return make(lent)
        if self._shared is not None:
            job = make(LentScratch(self._shared.scratch))
            if job.layout_text is None and job.file_sizes == self._sizes:
                return job
            job.close()
            self.close()
        self._shared = SharedScratch(self._places)
        try:
            return make(LentScratch(self._shared.scratch))
        except BaseException:
            self.close()
            raise

    def prepared_beside(self, make: Make, active: PreparedJob) -> PreparedJob:
        """Prepare a run while the job ``active`` runs: with its files if they have the right sizes
        and are fully allocated, else with new ones. Raises the errors of ``make``, and StopFirst if
        there is no room for both."""
        if not self._places:
            return make(None)
        if self._shared is None or active.scratch is not self._shared.scratch:
            raise StopFirst
        job = make(LentScratch(self._shared.scratch))
        if job.layout_text is None and job.file_sizes == active.file_sizes:
            return job
        job.close()
        self._beside = SharedScratch(self._places)
        try:
            return make(LentScratch(self._beside.scratch))
        except IopstuiError as error:
            self._drop_beside()
            raise StopFirst from error
        except BaseException:
            self._drop_beside()
            raise

    def take_beside(self) -> SharedScratch | None:
        """The files of the run prepared beside the active one, if it has its own. The caller
        removes them."""
        beside, self._beside = self._beside, None
        return beside

    def _drop_beside(self) -> None:
        beside = self.take_beside()
        if beside is not None:
            beside.close()

    def release_run(
        self, run: FioRun, laid_out: bool, following: PreparedJob | None = None
    ) -> None:
        """Keep the files of a run that has ended, or remove them. (Its fio has ended, too, unless
        it hangs.) ``laid_out``: they were complete. ``following`` is the run that replaces it and
        was prepared beside it."""
        shared_scratch = self._shared
        if shared_scratch is not None and run.prepared.scratch is shared_scratch.scratch:
            self._changed |= run.prepared.makes_files
            if run.hanging:
                self._hanging.append(shared_scratch)
                self._shared = None
            elif following is not None and following.scratch is shared_scratch.scratch:
                return
            elif laid_out and not self._changed and following is None:
                self._sizes = run.prepared.file_sizes
            else:
                self._close_shared()
        if following is not None:
            self._shared, self._beside = self._beside, None
            self._sizes, self._changed = {}, False

    def close(self) -> None:
        """Remove the kept files. May be called twice."""
        self._drop_beside()
        self._close_shared()

    def _close_shared(self) -> None:
        shared_scratch, self._shared = self._shared, None
        self._sizes, self._changed = {}, False
        if shared_scratch is not None:
            shared_scratch.close()


NOTICE_AFTER_S = 5.0
# a longer pause before the first I/O is reported
LONG_DELAY_S = 5.0
# options that check data, keep state between runs, lock or remove files, or delay the first I/O
_ALONE = (
    "verify", "do_verify", "unlink", "create_on_open", "exitall", "exit_what", "lockfile",
    "file_lock", "startdelay", "write_", "read_iolog", "replay", "wait_for", "fill_device",
)  # fmt: skip
# engines whose I/O is not counted for the process or bypasses the block layer, or that use huge
# pages, which may be scarce
_UNSURE = frozenset({
    "cpuio", "filecreate", "filestat", "mmap", "null", "splice", "io_uring_cmd",
    "mmaphuge", "shmhuge", "cudamalloc",
})  # fmt: skip


class RunPreparation:
    """Prepares the runs of a session. ``job_target`` is the target handed to jobs; ``None`` if they
    name their own files. ``keep_scratch``: scratch files are kept for a next run that needs the
    same ones."""

    def __init__(
        self, context: Context, job_target: Target | None, budget: WriteBudget, keep_scratch: bool
    ) -> None:
        self._context = context
        self._job_target = job_target
        self.budget = budget
        self._privates: list[Path] = []
        directories = job_target is not None and job_target.kind == kinds.DIRECTORY
        self.scratch = SessionScratch(
            [Path(place.path) for place in job_target.places]
            if keep_scratch and job_target is not None and directories
            else ()
        )

    def prepared(self, order: RunOrder, fio: Fio) -> PreparedJob:
        """Prepare the job, so that it can be started. Raises IopstuiError; then nothing of it is
        left behind."""
        try:
            with self._notice_if_slow():
                job = self.scratch.prepared(
                    order.lent, lambda lent: self._prepare(order, fio, lent)
                )
            self.check_budget(job)
            self.announce_writes(job)
            return job
        finally:
            self._remove_privates()

    def prepared_beside(
        self, order: RunOrder, fio: Fio, running: PreparedJob, active: ActiveRun
    ) -> PreparedJob:
        """The job that is to replace the running one. Called in a separate thread; the budget is
        not checked here. Raises IopstuiError or StopFirst; then its files may be left
        (``SessionScratch.take_beside``)."""
        try:
            with self._notice_if_slow():
                job = self.scratch.prepared_beside(
                    lambda lent: self._prepare(order, fio, lent, active), running
                )
            if not can_take_over(job):
                job.close()
                raise StopFirst
            return job
        finally:
            self._remove_privates()

    def close(self) -> None:
        """Remove the files kept for other runs."""
        self.scratch.close()
        self._remove_privates()

    def _prepare(
        self, order: RunOrder, fio: Fio, lent: LentScratch | None, active: ActiveRun | None = None
    ) -> PreparedJob:
        context = self._context
        return prepare(
            order.request,
            self._job_target,
            fio,
            self._private(),
            context.devices,
            context.roots,
            active,
            lent,
        )

    def _private(self) -> Path:
        path = private_directory()
        self._privates.append(path)
        return path

    def _remove_privates(self) -> None:
        while self._privates:
            remove(self._privates.pop())

    def can_hand_over(self, order: RunOrder, running: PreparedJob) -> bool:
        """Whether the ordered run may begin while ``running`` still works. Its preparation may
        still find reasons against it."""
        request = order.request
        alone = order.announce or request.trace or request.io_log or request.knobs
        zoned = any(
            disk.queue is not None and disk.queue.zoned not in (None, "none")
            for disk in self._context.disks()
        )
        return (
            self._job_target is not None
            and not (alone or zoned)
            and order.lent is None
            and can_take_over(running)
        )

    def check_budget(self, prepared: PreparedJob, running: int = 0) -> None:
        """Raises JobFailed if the run would exceed the budget, together with a current run that has
        written ``running`` bytes so far."""
        why = self.budget.refusal(_layout_bytes(prepared), running)
        if why:
            prepared.close()
            raise JobFailed(why[0].upper() + why[1:] + ".", "Give a larger --write-budget.")

    def announce_writes(self, prepared: PreparedJob) -> None:
        """Report how much the run may write (it is ended if it writes more), where the logs go that
        the job asks for, and a long ``startdelay`` before its first I/O."""
        message = self.budget.forecast(prepared, _layout_bytes(prepared), self._context.devices)
        if self.budget.announce:
            self._context.notice("info", message)
        logs = prepared.logs.announcement if prepared.logs is not None else ""
        delay = start_delay_s(prepared.text)
        pause = f"fio waits up to {duration(delay)} before its first I/O (startdelay=)"
        for text in filter(None, (logs, pause if delay >= LONG_DELAY_S else "")):
            self._context.notice("info", text)

    @contextmanager
    def _notice_if_slow(self) -> Iterator[None]:
        """Report that preflight takes long: a job may have hundreds of thousands of files."""
        context = self._context
        message = "checking the job and its files"
        timer = threading.Timer(
            NOTICE_AFTER_S,
            lambda: context.emit_unrecorded(events.Notice(context.now(), "info", message)),
        )
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _layout_bytes(prepared: PreparedJob) -> int:
    return prepared.layout_bytes or 0 if prepared.layout_text is not None else 0


def can_take_over(prepared: PreparedJob) -> bool:
    """Whether a job may work beside another one of the same session for a moment: nothing it does
    depends on being alone. Otherwise the other one is stopped first."""
    logs = prepared.logs
    return (
        prepared.staging is None
        and not prepared.trace
        and (logs is None or not logs.options)
        and not any(
            name.startswith(_ALONE) or (name in ("ioengine", "mem", "iomem") and value in _UNSURE)
            or (name == "zonemode" and value != "none")
            for name, value in prepared.facts.options
        )
    )  # fmt: skip


def new_run(
    context: Context, fio: Fio, job: PreparedJob, interval_s: float, hold: bool,
    deadline_s: float | None,
) -> FioRun:  # fmt: skip
    """A run of the job, not started. The write guard checks again right before its start."""
    return FioRun(
        fio, job, private_directory, interval_s, lambda: recheck_writes(job, context.roots),
        context.target.devices_below, hold, deadline_s,
    )  # fmt: skip


def recheck_writes(prepared: PreparedJob, roots: Roots) -> None:
    """Let the write guard check again, right before fio starts. Raises IopstuiError."""
    guard = prepared.guard
    if guard is None:
        return

    def work() -> None:
        # only if needed: reading all devices takes as long as importing thirty of our modules
        guard.engage(read_devices(roots) if guard.is_needed else {})

    call_with_timeout([*map(Path, prepared.files)], work, lambda _: guard.close(), roots)


# Timeouts for a silent run: during layout, and until fio's first document.


class StallTimeouts:
    """Watches one run for stalls."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stall = StallDetector()
        self._next_check = 0.0
        self._silence_reported = False

    def begin_phase(self) -> None:
        """Forget the observations of the previous phase."""
        self._stall = StallDetector()

    def check_layout(self, run: FioRun, step: int) -> None:
        """Report the progress of laying out files; end a run that makes no progress."""
        now = self._context.now()
        # not at each call: examining thousands of files takes a while
        if now < self._next_check:
            return
        work = run.work()
        self._next_check = now + 20 * (self._context.now() - now)
        self._context.emit(
            events.LayoutProgress(
                now, step, "creating the scratch file", work.file_bytes, run.prepared.layout_bytes
            )
        )
        if self._stall.feed(now, work):
            run.failure = STALLED
            run.stop(hard=True)

    def check_first_document(self, run: FioRun) -> None:
        """While no document has come: end a run that cannot succeed; warn about one that still
        may."""
        if run.last_status is not None or self._silence_reported or run.phase != RUN:
            return
        if not self._stall.feed(self._context.now(), run.work()):
            return
        self._silence_reported = True
        if "io_submit_mode=offload" in run.prepared.text.replace(" ", ""):
            run.failure = OFFLOAD_STALLED
            run.stop(hard=True)
        else:
            self._context.warn(SILENT_LAYOUT)
