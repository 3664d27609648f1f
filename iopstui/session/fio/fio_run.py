"""A fio run: make its files, start it, follow its documents, end it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from iopstui.events import LAYOUT, RUN
from iopstui.fio.guard import descendants
from iopstui.fio.inspect import Fio, error_line
from iopstui.fio.job_text import expand_variables
from iopstui.fio.process import DEADLINE_S, OUTPUT, FioProcess
from iopstui.fio.stream.framing import BrokenDocument, Document, Framer, LogLine
from iopstui.fio.stream.status import parse_status
from iopstui.fio.write_bound import LayoutWork
from iopstui.linux.kernel_files import list_names
from iopstui.linux.own_threads import BackgroundReader
from iopstui.linux.process.limits import oom_kills, oom_text
from iopstui.linux.process.private import remove
from iopstui.linux.process.processes import (
    children,
    cpu_s,
    moved_bytes,
    state,
    stored_bytes,
    written_bytes,
)
from iopstui.model.block.device import DeviceWatch
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.model.samples import FioStatus, JobThread, RawSample
from iopstui.preflight.prepared_job import PreparedJob, write_job
from iopstui.session.fio.write_budget import bytes_written
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.linux.process.job_threads import JobThreads


ENDED = "over"
LAST_FRAME_DELAY_S = 0.3
MAX_MESSAGES = 200
MAX_ALIKE = 5
"""Most messages kept that differ in numbers alone: a job with iodepth=256 has one for each I/O that
fails."""
MORE_ALIKE = "more such messages, with other numbers"
GUARD_DIED = -9
CUT_SHORT_TIMEOUT_S = 10.0
MIN_IO_BYTES = 512
"""A job has done I/O after this many bytes: before its first I/O it passes a few bytes to
read(2)."""


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A whole document of fio. ``maybe_final``: no job was alive when it arrived. ``repeated``: no
    job was alive, and it repeats the previous document."""

    status: FioStatus
    maybe_final: bool
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class FioMessage:
    """A message of fio or of one of its jobs."""

    text: str


@dataclass(frozen=True, slots=True)
class PhaseFinished:
    """fio has ended in this phase. ``exit_code`` is negative for a signal."""

    phase: str
    exit_code: int
    error: str


@dataclass(frozen=True, slots=True)
class ReadyToStart:
    """Everything is ready; ``FioRun.start_run`` starts fio."""


@dataclass(frozen=True, slots=True)
class FioStarted:
    """fio was started, at ``monotonic_ns`` (CLOCK_MONOTONIC)."""

    monotonic_ns: int


FioEvent = NewDocument | FioMessage | PhaseFinished | ReadyToStart | FioStarted


def status_interval(seconds: float) -> str:
    """The value of --status-interval for fio, which rejects fractions such as "0.25"."""
    milliseconds = round(seconds * 1000)
    return str(milliseconds // 1000) if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def fio_command(
    fio: Fio, job: Path, output: Path, prepared: PreparedJob, interval_s: float
) -> list[str]:
    """The arguments with which a measuring run starts fio."""
    command = [
        fio.path,
        f"--status-interval={status_interval(interval_s)}",
        "--output-format=json+",
        "--eta=never",
        f"--output={output}",
    ]
    if prepared.read_only:
        command.append("--readonly")
    return [*command, str(job)]


def hanging_text(pids: Sequence[int]) -> str:
    """A sentence about processes that even SIGKILL has not ended yet."""
    subject = f"fio's process {', '.join(map(str, pids))}"
    states = {state(pid) for pid in pids} - {""}
    if not states <= {"D"}:
        state_text = ", ".join(sorted(states))
        return (
            f"{subject} was killed but has not ended yet (state {state_text}); its guard keeps "
            "watching it"
        )
    return (
        f"{subject} hangs in the kernel, waiting for the device; it is killed and ends when the "
        "device answers"
    )


class FioRun:
    """Drives one ``PreparedJob`` job without blocking. ``poll`` returns the events since the last
    call.

    ``before_start`` is called right before the measuring fio starts (to run the write guard's
    checks again) and may raise. ``devices`` are the kernel names of the devices it works on.
    ``hold``: the measuring fio waits for ``start_run``. ``deadline_s``: fio is ended if neither
    ``poll`` nor ``send_heartbeat`` is called for this time."""

    def __init__(
        self,
        fio: Fio,
        prepared: PreparedJob,
        private: Callable[[], Path],
        interval_s: float,
        before_start: Callable[[], None],
        devices: Sequence[str] = (),
        hold: bool = False,
        deadline_s: float | None = None,
    ) -> None:
        self.prepared = prepared
        self.hold = hold
        self._deadline_s = DEADLINE_S if deadline_s is None else deadline_s
        self.phase = LAYOUT if prepared.layout_text is not None else RUN
        self.stopping = False
        self.failure = ""
        self.hanging: tuple[int, ...] = ()
        self.messages: list[str] = []
        self.last_status: FioStatus | None = None
        self.status_before: FioStatus | None = None
        self.document: Mapping[str, object] = {}
        self.command: list[str] = []
        self.broken_documents = 0
        self._cut_short = ""
        self._cut_short_at: float | None = None
        self.fio = fio
        self._private = private
        self._interval_s = interval_s
        self._before_start = before_start
        self._process: FioProcess | None = None
        # ``send_heartbeat`` runs in another thread: it must never write to a descriptor number that
        # has been reused for another file
        self._closing = threading.Lock()
        self._exit_code = GUARD_DIED
        self._framer = Framer()
        self._written_bytes = 0
        self._threads: JobThreads | None = None
        self._oom_kills: int | None = None
        self._watch = DeviceWatch(devices)
        self._sections = _expanded_sections(prepared.text)
        # these calls access the job's file system, whose server may be gone
        self._used_bytes = BackgroundCall(lambda: self.prepared.used_bytes(), 0)
        self._overrun = BackgroundCall(lambda: self.prepared.overrun_reason(), "")

    def start_phase(self) -> None:
        """Start fio for the current phase. Raises IopstuiError if that is not possible."""
        if self.phase != LAYOUT:
            # both calls may refuse the run; then nothing must be left behind
            self.prepared.finish_layout()
            self._before_start()
        private = self._private()
        try:
            self._start(private)
        except BaseException:
            remove(private)
            raise

    def _start(self, private: Path) -> None:
        layout = self.phase == LAYOUT
        job = write_job(self.prepared, private, layout)
        if layout:
            self.command = [
                self.fio.path, "--create_only=1", "--output-format=json", "--eta=never",
                f"--output={private / OUTPUT}", str(job),
            ]  # fmt: skip
        else:
            self.command = fio_command(
                self.fio, job, private / OUTPUT, self.prepared, self._interval_s
            )
        self._framer = Framer()
        self._exit_code = GUARD_DIED
        self._oom_kills = oom_kills()
        guard = self.prepared.guard
        self._process = FioProcess(
            self.command,
            private,
            self.prepared.fence(layout),
            cwd=self.prepared.cwd,
            cleanup=self.prepared.cleanup,
            keep_fds=guard.fds if guard else (),
            hold=self.hold and not layout,
            deadline_s=self._deadline_s,
        )

    @property
    def fds(self) -> tuple[int, ...]:
        """Descriptors to poll in addition to a timeout."""
        return self._process.wake_fds if self._process else ()

    @property
    def wakes_on_output(self) -> bool:
        """Whether one of ``fds`` becomes ready when fio has written something."""
        return self._process is not None and self._process.wakes_on_output

    @property
    def pid(self) -> int | None:
        """PID of fio's main process, once the guard has reported it."""
        return self._process.pid if self._process else None

    @property
    def guard_pid(self) -> int | None:
        """PID of fio's guard, the ancestor of all processes of the run; ``None`` without one."""
        return self._process.guard_pid if self._process else None

    def has_done_io(self) -> bool:
        """Whether one of fio's jobs has done an I/O, according to the kernel's counts for its
        processes."""
        if not self.jobs_alive() or self.pid is None:
            return False
        places = [f"/proc/{pid}" for pid in children(self.pid)]
        if not places:
            # with the option `thread` the jobs are threads of fio's main process
            tasks = f"/proc/{self.pid}/task"
            places = [f"{tasks}/{tid}" for tid in list_names(Path(tasks)) if int(tid) != self.pid]
        return any(moved_bytes(place) >= MIN_IO_BYTES for place in places)

    def guard_busy_s(self) -> float | None:
        """CPU time used by fio's guard, a process of iopstui; ``None`` without one."""
        return self._process.guard_busy_s() if self._process else None

    def jobs_alive(self) -> bool:
        """True once fio's jobs have been started and not all have ended."""
        return self._process is not None and self._process.jobs_alive() is True

    def jobs(self) -> tuple[JobThread, ...]:
        """fio's jobs and the CPUs they are on; empty while files are laid out."""
        threads = self._job_threads()
        return threads.sample() if threads is not None else ()

    def block_io(self) -> tuple[int, int] | None:
        """Bytes that block devices have read and written for fio's processes so far; ``None`` while
        files are laid out, or if the kernel does not say."""
        threads = self._job_threads()
        return threads.block_io() if threads is not None else None

    def _job_threads(self) -> JobThreads | None:
        if self.phase != RUN or self.pid is None:
            return None
        if self._threads is None or self._threads.fio_pid != self.pid:
            from iopstui.linux.process.job_threads import JobThreads

            self._threads = JobThreads(self.pid)
        return self._threads

    def work(self) -> LayoutWork:
        """The work done by fio's processes so far."""
        pids = [self.pid, *descendants(self.pid)] if self.pid is not None else []
        byte_counts = [written_bytes(pid) for pid in pids]
        readable = [count for count in byte_counts if count is not None]
        return LayoutWork(
            self._used_bytes(),
            sum(readable) if len(readable) == len(pids) > 0 else None,
            sum(cpu_s(pid) or 0.0 for pid in pids),
            any(state(pid) in ("D", "T", "t") for pid in pids),
        )

    def bytes_written_in(self, phase: str) -> int:
        if phase == LAYOUT:
            return self._used_bytes()
        return max(self._written_bytes, bytes_written(self.last_status))

    def bytes_written(self) -> int:
        """Bytes that the job has written so far, by the counters of its processes and of fio."""
        pids = [self.pid, *descendants(self.pid)] if self.pid is not None else []
        # the count of a process that ends is added to its parent's
        self._written_bytes = max(self._written_bytes, sum(stored_bytes(pid) or 0 for pid in pids))
        return self.bytes_written_in(RUN)

    def send_heartbeat(self) -> None:
        """Tell fio's guard that iopstui still watches; from any thread."""
        with self._closing:
            if self._process is not None:
                self._process.send_heartbeat()

    def start_run(self, at_ns: int) -> None:
        """Start the waiting fio at this instant (ns of CLOCK_MONOTONIC)."""
        if self._process is not None:
            self._process.start_at(at_ns)

    @property
    def ended_by_itself(self) -> bool:
        """Whether fio ended by itself, for any reason, so that its last document is the final
        one."""
        return self._exit_code >= 0

    def stop(self, hard: bool = False) -> None:
        """Ask fio to end after a last document. ``hard``: end it at once, without one."""
        self.stopping = True
        if self._process is not None:
            self._process.send_order("kill" if hard else "stop")

    def watch(self, raw: RawSample) -> None:
        """Watch the device: end the run, as a failed one, if this sample shows that the device is
        gone."""
        if self.phase != LAYOUT and not self.failure:
            self.failure = self._watch.feed(raw)
            if self.failure and self.phase == RUN:
                self.stop()

    def replace(self, before: FioRun) -> None:
        """Watch this run's devices in place of those of ``before`` from now on."""
        self.hold = False
        self._watch.follow(before._watch)

    def check_space(self) -> None:
        """End the run as failed if its files grow beyond the planned size."""
        if self._process is not None and not self.failure:
            self.failure = self._overrun() or self._log_overrun()
            if self.failure:
                self.stop(hard=self.phase == LAYOUT)

    def _log_overrun(self) -> str:
        """Why the run has to end: fio's log takes too much memory; "" if it doesn't."""
        logs = self.prepared.logs
        if logs is None or self.last_status is None:
            return ""
        parts = [part for job in self.last_status.jobs for part in job.directions.values()]
        return logs.overrun(sum(part.issued for part in parts))

    def poll(self) -> list[FioEvent]:
        """Events of fio and its guard since the last call, in order."""
        if self._process is None:
            return []
        if (
            self._cut_short_at is not None
            and time.monotonic() - self._cut_short_at > CUT_SHORT_TIMEOUT_S
        ):
            # fio may wait for its jobs for ever if it gets a signal while they start
            self._process.send_order("kill")
            self._cut_short_at = None
        self._process.send_heartbeat()
        guard_lines = self._process.read_guard()
        # read after the guard's lines, so that all output of a dead fio is seen before its end
        events = self._read_output()
        for line in guard_lines:
            if line.event == "stuck":
                self.hanging = line.numbers
                events.append(FioMessage(hanging_text(line.numbers)))
            elif line.event == "deadline":
                self.failure = self.failure or _deadline_error(self._deadline_s)
            elif line.event == "held":
                events.append(ReadyToStart())
            elif line.event == "started" and self.hold and self._process.began_ns is not None:
                events.append(FioStarted(self._process.began_ns))
            elif line.event == "exited":
                self._exit_code = line.numbers[0]
            elif line.event in ("over", "gone"):
                # now all processes of this run are gone, not just fio's main one
                events += self._finish(self._exit_code)
                break
        return events

    def _read_output(self) -> list[FioEvent]:
        assert self._process is not None
        data = self._process.read_output()
        return [event for item in self._framer.feed(data) for event in self._handle_item(item)]

    def _handle_item(self, item: Document | LogLine | BrokenDocument) -> Sequence[FioEvent]:
        if isinstance(item, LogLine):
            return self._handle_message(item.text)
        if isinstance(item, BrokenDocument):
            self.broken_documents += 1
            return ()
        status = parse_status(item.data, self._sections)
        if status is None or self.phase == LAYOUT:
            return ()
        self.status_before, self.last_status = self.last_status, status
        self.document = item.data
        assert self._process is not None
        return (NewDocument(status, self._process.jobs_alive() is not True),)

    def _handle_message(self, text: str) -> Sequence[FioEvent]:
        text = printable(text)
        signalled = _SIGNALLED.search(text)
        if signalled and not self.stopping and not self.prepared.ends_others:
            self._cut_short = self._cut_short or _cut_short_text(int(signalled[1]))
            if self._cut_short_at is None:
                self._cut_short_at = time.monotonic()
        kind = _DIGITS.sub("", text)
        if sum(_DIGITS.sub("", message) == kind for message in self.messages) >= MAX_ALIKE:
            text = MORE_ALIKE
        if len(self.messages) < MAX_MESSAGES and text not in self.messages:
            self.messages.append(text)
            return (FioMessage(text),)
        return ()

    def _finish(self, code: int) -> list[FioEvent]:
        assert self._process is not None
        events = self._read_output()
        events += [event for item in self._framer.close() for event in self._handle_item(item)]
        for line in self._process.messages():
            events += self._handle_message(line.strip())
        error = self.failure or (
            "" if self.stopping else self._cut_short or self._failure_reason(code)
        )
        phase, self.phase = self.phase, ENDED
        with self._closing:
            self._process.close()
            self._process = None
        events.append(PhaseFinished(phase, code, error))
        if phase == LAYOUT and code == 0 and not self.stopping:
            self.phase = RUN
        return events

    def _failure_reason(self, code: int) -> str:
        """Why the run failed, in one sentence; "" if it did not."""
        errors = (
            {job.error for job in self.last_status.jobs if job.error} if self.last_status else set()
        )
        killed = next((line for line in self.messages if "got signal=" in line), None)
        silent = self.last_status is None and self.phase == RUN
        place = self._process.full_directory() if self._process is not None and silent else ""
        if place:
            return f"fio's figures could not be written: no space left in {place}"
        if code == 0 and not errors and killed is None and not silent:
            return ""
        reason = self._reason_from_log()
        if code == 0 and silent and not errors:
            return "fio ended without any result" + (f": {reason}" if reason else "")
        if errors:
            names = ", ".join(
                f"{os.strerror(number)} (errno {number})" for number in sorted(errors)
            )
            reason = self._known_cause(errors) or reason
            return f"fio's job failed: {names}" + (f": {reason}" if reason else "")
        ended_by = oom_text(self._oom_kills) if code == -9 or "=9" in (killed or "") else ""
        if killed is not None:
            return f"one of fio's jobs was killed: {killed}{ended_by}"
        if code < 0:
            return f"fio was killed by signal {-code}" + (f": {reason}" if reason else ended_by)
        return f"fio ended with exit code {code}" + (f": {reason}" if reason else "")

    def _known_cause(self, errors: set[int]) -> str:
        """The cause of these errors, and what helps, if the job's options show it; else ""."""
        options = dict(self.prepared.facts.options)
        trims = "trim" in options.get("rw", options.get("readwrite", ""))
        if trims and errors & {errno.ENOTTY, errno.EOPNOTSUPP}:
            return "fio trims block devices, not files; give a device as the target"
        if options.get("zonemode") == "zbd" and self.prepared.staging and errno.EINVAL in errors:
            return "with zonemode=zbd a file must exist in its full size (fallocate -l SIZE FILE)"
        if errno.EACCES in errors and self.prepared.scratch and {"uid", "gid"} & options.keys():
            return (
                "only its owner may enter the scratch directory; leave out uid= and gid=, or start "
                "iopstui as that user"
            )
        return ""

    def _reason_from_log(self) -> str:
        log = [line for line in self.messages if not _IGNORED_MESSAGES.search(line)]
        if any(map(_TOO_SHORT.search, log)):
            return (
                "a file of the job is shorter than its size=, and iopstui never extends or "
                "replaces an existing file; use a smaller size="
            )
        too_long = [line for line in log if os.strerror(errno.EFBIG) in line]
        reason = error_line(too_long or log)
        if too_long and self.prepared.max_file_bytes is not None:
            most = f"{self.prepared.max_file_bytes >> 20} MiB"
            limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
            if 0 <= limit < self.prepared.max_file_bytes:  # RLIM_INFINITY is -1
                return f"{reason} (this shell limits files to {limit} bytes: ulimit -f)"
            reason += (
                f" (a file may grow to {most} here; offset=, nrfiles= or a larger bs= make it "
                "longer than size= says)"
                if self.prepared.scratch is not None
                else f" (a file may grow to {most} here: 5 % of the file system stays free)"
            )
        return reason

    def close(self) -> None:
        """End fio, whatever it does, and remove the private directory and scratch files. If a
        process hangs in the kernel, the guard does all this, because touching that process's files
        would hang, too."""
        with self._closing:
            if self._process is not None:
                self._process.close(*([0.0] if self.hanging else []))
                self._process = None
        self.phase = ENDED
        if self.hanging:
            self.prepared.release()
        else:
            self.prepared.close()


def _deadline_error(deadline_s: float) -> str:
    return (
        f"fio was stopped, because iopstui was stopped or hung for {deadline_s:g} s and could "
        f"not watch it{FIGURES_END_THERE}"
    )


FIGURES_END_THERE = "; the figures cover the time until then"


def _cut_short_text(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return (
        f"the run was cut short: one of fio's processes received {name}, and not from iopstui"
        f"{FIGURES_END_THERE}"
    )


_DIGITS = re.compile(r"\d+")
_SIGNALLED = re.compile(r"terminating on signal (\d{1,3})")
_TOO_SHORT = re.compile(r"refusing extend of file|func=unlink, error=(Perm|Operation|Read-only)")
_IGNORED_MESSAGES = re.compile(
    r"terminating on signal|both iodepth >= 1 and synchronous|tausworthe"
    r"|multiple writers may overwrite"
)


def _expanded_sections(text: str) -> list[Section]:
    """The sections of a job file, with environment variables replaced."""
    return [
        Section(
            section.name, {name: expand_variables(value) for name, value in section.options.items()}
        )
        for section in jobfile.effective_sections(text)
    ]


# Calls that may never return, because they access a mount whose server may be gone.


T = TypeVar("T")
WAIT_S = 1.0
"""How long to wait for a call; a working file system nearly always answers within this time."""


class BackgroundCall(BackgroundReader, Generic[T]):
    """Runs ``call`` in a thread that may be left behind if the call hangs. The first call that does
    not return costs ``WAIT_S``. Until it returns no other call is made, and the last answer is used
    (at first ``first``)."""

    name = "patient"

    def __init__(self, call: Callable[[], T], first: T) -> None:
        super().__init__()
        self._call = call
        self._answer = first

    def __call__(self) -> T:
        """The newest answer."""
        if self._begin(self._ask):
            self._wait(WAIT_S)
        return self._answer

    def _ask(self) -> None:
        with contextlib.suppress(OSError):
            self._answer = self._call()
