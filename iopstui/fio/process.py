"""Start fio so that iopstui cannot disturb it, and read its output.

fio writes its documents into a file in a private directory (in memory where possible), so a reader
that pauses never blocks fio: a full pipe makes fio's helper thread hold the lock that every job
needs (measured: runtime doubled, then all jobs died). The part already read is given back to the
file system. ``guard`` makes sure that fio never outlives iopstui."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopstui.errors import Missing
from iopstui.fio import guard as fio_guard
from iopstui.fio.fence import Fence, isolated_command, write_specification
from iopstui.linux.kernel_files import read_bytes
from iopstui.linux.process import private as private_files
from iopstui.linux.process.limits import hint_for_limit
from iopstui.linux.process.private import abandoned_directories, private_directory
from iopstui.linux.process.processes import cpu_s, start_time

__all__ = ["FioProcess", "GuardMessage", "abandoned_directories", "private_directory"]

OUTPUT = "status.json"
MESSAGES = ("stdout", "stderr")
READ_CHUNK = 1 << 20
PUNCH_HOLE_BYTES = 1 << 20
# how many bytes fio may write unread once the first part was read
MAX_UNREAD_BYTES = 64 << 20
# how many bytes of fio's messages are kept; they are read only when fio has ended
MAX_MESSAGE_BYTES = 1 << 16
CLOSE_WITHIN_S = 2.0
# longest silence of iopstui (stopped, or hung) before the guard ends fio
DEADLINE_S = 60.0
BEATS_PER_DEADLINE = 12
MIN_FREE_BYTES = 1 << 16
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2
_IN_MODIFY = 2
_IN_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class GuardMessage:
    """A line of the guard: ``event`` is "held", "started", "exited", "stuck", "deadline", "over" or
    "gone"."""

    event: str
    numbers: tuple[int, ...] = ()


class FioProcess:
    """A running fio. ``private`` is removed by ``close``. ``fence`` is what fio may do besides
    using its private directory. ``cleanup`` has directories that are removed if iopstui dies.
    ``keep_fds`` (locks, open devices) stay open until the last process of this run has ended,
    whatever happens to iopstui. ``hold``: everything is prepared, but fio is started only by
    ``start_at``. ``deadline_s``: the guard ends fio if ``send_heartbeat`` is not called for that
    time. ``wake_fds`` become readable when there may be news (poll them with a timeout);
    ``read_output`` and ``read_guard`` never block."""

    def __init__(
        self,
        command: Sequence[str],
        private: Path,
        fence: Fence,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        cleanup: Sequence[Path] = (),
        keep_fds: Sequence[int] = (),
        hold: bool = False,
        deadline_s: float | None = None,
    ) -> None:
        self.private = private
        self._beat_s = None if deadline_s is None else deadline_s / BEATS_PER_DEADLINE
        self._beat_at = time.monotonic()
        self.began_ns: int | None = None
        self.pid: int | None = None
        self._size_limit = fence.fsize
        self._fio_start_time: int | None = None
        self._is_over = False
        self._fd = _create_output(private)
        self._offset = self._punched = 0
        # for each descriptor, the position up to which its bytes were given back
        self._messages: dict[str, tuple[int, int]] = {}
        self._guard_buffer = b""
        self._inotify = _watch(private / OUTPUT)
        private_fence = replace(fence, run_directories=(str(private), *fence.run_directories))
        try:
            specification = write_specification(private_fence, command[0], private)
            arguments = [*_guard_options(hold, deadline_s), str(private), specification]
            arguments += [*map(str, cleanup), "--", *command]
            self._guard = _start_guard(arguments, keep_fds, env, cwd)
        except OSError as error:
            self._release()
            raise _guard_missing(error) from error

    @property
    def wake_fds(self) -> tuple[int, ...]:
        """File descriptors to wait on."""
        assert self._guard.stdout is not None
        guard = () if self._guard.stdout.closed else (self._guard.stdout.fileno(),)
        return guard if self._inotify is None else (*guard, self._inotify)

    @property
    def wakes_on_output(self) -> bool:
        """Whether one of ``wake_fds`` becomes readable when fio has written something; not every
        machine can do that."""
        return self._inotify is not None

    def read_output(self) -> bytes:
        """Read the new output in fio's document file since the last call."""
        if self._inotify is not None:
            with contextlib.suppress(BlockingIOError):
                os.read(self._inotify, 65536)
        parts = []
        while data := os.pread(self._fd, READ_CHUNK, self._offset):
            parts.append(data)
            self._offset += len(data)
        if self._offset - self._punched >= PUNCH_HOLE_BYTES:
            _punch(self._fd, self._offset)
            self._punched = self._offset
        self._trim_messages()
        if parts:
            self._raise_size_limit()
        return b"".join(parts)

    def _trim_messages(self) -> None:
        """Keep only fio's last messages: they are in memory, and a fio may write them without
        end."""
        for name in MESSAGES if self.pid is not None else ():
            try:
                if name not in self._messages:
                    fd = private_files.open_private_file(self.private, name, write=True)
                    self._messages[name] = (fd, 0)
                fd, punched = self._messages[name]
                end = os.fstat(fd).st_size - MAX_MESSAGE_BYTES
            except OSError:
                continue
            if end - punched >= PUNCH_HOLE_BYTES:
                _punch(fd, end)
                self._messages[name] = (fd, end)

    def _raise_size_limit(self) -> None:
        """Raise the limit on file sizes of fio's main process before it is reached (prlimit(2)),
        because its documents grow without end. The main process starts with the limit of its jobs
        (``Fence.fsize``), which inherit it by fork; only the main process gets more."""
        if self._size_limit is None or self.pid is None or self._offset == 0:
            return
        if self._offset < self._size_limit // 2 and self._size_limit >= MAX_UNREAD_BYTES:
            return
        self._size_limit = max(MAX_UNREAD_BYTES, self._offset * 4)
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (self._size_limit, hard))

    def read_guard(self) -> list[GuardMessage]:
        """Read the guard's messages since the last call; the last one is "gone", once the guard has
        closed its end."""
        assert self._guard.stdout is not None
        if self._guard.stdout.closed:
            return []
        try:
            data = os.read(self._guard.stdout.fileno(), 65536)
        except BlockingIOError:
            return []
        if not data:
            self._guard.stdout.close()
            if not self._is_over:
                self._kill()
            return [GuardMessage("gone")]
        *lines, self._guard_buffer = (self._guard_buffer + data).split(b"\n")
        messages = [_parse_guard_message(line.decode("ascii", "replace")) for line in lines if line]
        for message in messages:
            if message.event == "started" and message.numbers:
                self.pid = message.numbers[0]
                self._fio_start_time = start_time(self.pid)
                self.began_ns = message.numbers[1] if len(message.numbers) > 1 else None
            self._is_over = self._is_over or message.event == "over"
        return messages

    def _kill(self) -> None:
        """Kill fio after its guard was killed. The kernel then sends fio a signal to end, but a
        stopped fio can't react, nor can its jobs without it."""
        if (
            self.pid is None
            or self._fio_start_time is None
            or start_time(self.pid) != self._fio_start_time
        ):
            return
        for pid in (*fio_guard.descendants(self.pid), self.pid):
            fio_guard.send(pid, signal.SIGKILL)

    def send_order(self, command: str) -> None:
        """Tell the guard to "stop" (fio writes its last document) or to "kill"."""
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            os.write(self._guard.stdin.fileno(), command.encode() + b"\n")

    def send_heartbeat(self) -> None:
        """Tell the guard that we still run. It is enough to call this every ``deadline_s`` / 12. A
        guard that somebody has stopped (SIGSTOP) is continued: otherwise it would notice neither
        fio's end nor ours."""
        now = time.monotonic()
        if self._beat_s is not None and now - self._beat_at >= self._beat_s:
            self._beat_at = now
            self.send_order("alive")
            fio_guard.send(self._guard.pid, signal.SIGCONT)

    def start_at(self, at_ns: int) -> None:
        """Start a waiting fio at this instant (ns of CLOCK_MONOTONIC)."""
        self.send_order(f"go {at_ns}")

    def messages(self) -> list[str]:
        """Lines that fio wrote to its standard output and error, at most the last 200."""
        lines: list[str] = []
        for name in MESSAGES:
            with (
                contextlib.suppress(OSError),
                open(private_files.open_private_file(self.private, name), "rb") as file,
            ):
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - MAX_MESSAGE_BYTES))
                lines += file.read().decode("utf-8", "replace").splitlines()
        return [line for line in lines if line.strip()][-200:]

    def full_directory(self) -> str:
        """The directory in which fio ran out of room for its output; "" if there is room."""
        try:
            space = os.fstatvfs(self._fd)
        except OSError:
            return ""
        full = space.f_blocks and space.f_bavail * space.f_frsize < MIN_FREE_BYTES
        return str(self.private.parent) if full else ""

    @property
    def guard_pid(self) -> int:
        """PID of the guard; all processes of this run are below it."""
        return self._guard.pid

    def guard_busy_s(self) -> float | None:
        """CPU time of the guard so far, without fio's; ``None`` once the guard is gone."""
        return cpu_s(self._guard.pid)

    def jobs_alive(self) -> bool | None:
        """Whether fio still has job processes or job threads; ``None`` if that can't be seen."""
        if self.pid is None:
            return None
        children = read_bytes(f"/proc/{self.pid}/task/{self.pid}/children")
        if children is None:
            return None
        if children.strip():
            return True
        try:
            # with the option `thread` jobs are threads; two threads are fio's main one and its
            # helper
            return len(os.listdir(f"/proc/{self.pid}/task")) > 2
        except OSError:
            return None

    def close(self, wait_s: float = CLOSE_WITHIN_S) -> None:
        """Stop whatever is left, wait for the guard (not longer than ``wait_s``), remove the
        private directory."""
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError):
            self._guard.stdin.close()
        # we can't wait for a job that hangs in the kernel; the guard goes on trying
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(timeout=wait_s)
        self._release()

    def _release(self) -> None:
        for fd in (self._fd, self._inotify, *(fd for fd, _ in self._messages.values())):
            if fd is not None:
                with contextlib.suppress(OSError):
                    os.close(fd)
        guard = getattr(self, "_guard", None)
        if guard is not None and guard.stdout is not None:
            guard.stdout.close()
        private_files.remove(self.private)


def _parse_guard_message(line: str) -> GuardMessage:
    event, *numbers = line.split()
    return GuardMessage(event, tuple(int(number) for number in numbers))


def _create_output(private: Path) -> int:
    """Create the file that fio writes its documents into; return its descriptor."""
    try:
        return private_files.create(private, OUTPUT)
    except OSError as error:
        private_files.remove(private)
        raise private_files.no_room_error(private, error) from error


def _guard_options(hold: bool, deadline_s: float | None) -> list[str]:
    options = ["--hold"] if hold else []
    return options if deadline_s is None else [*options, "--deadline", str(deadline_s)]


def _guard_missing(error: OSError) -> Missing:
    # the cause may be a limit of the shell or machine; fio/inspect.py gives the same hint
    return Missing(
        f"Cannot start {sys.executable}, which guards fio: {error.strerror}.",
        hint_for_limit(error, ""),
    )


def _start_guard(
    arguments: Sequence[str],
    keep_fds: Sequence[int],
    env: Mapping[str, str] | None,
    cwd: Path | None,
) -> subprocess.Popen[bytes]:
    """Start the guard process with these arguments; its pipes never block."""
    guard = subprocess.Popen(
        [*isolated_command(fio_guard), *arguments],
        pass_fds=tuple(keep_fds),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(env) if env is not None else None,
        cwd=cwd,
        start_new_session=True,
    )
    assert guard.stdout is not None and guard.stdin is not None
    os.set_blocking(guard.stdout.fileno(), False)
    # a stopped guard reads nothing: never wait for it
    os.set_blocking(guard.stdin.fileno(), False)
    return guard


def _watch(path: Path) -> int | None:
    """An inotify descriptor that wakes on writes to ``path``; ``None``: poll instead."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(libc.inotify_init1(_IN_FLAGS))
    if fd < 0:
        return None
    if libc.inotify_add_watch(fd, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(fd)
        return None
    return fd


def _punch(fd: int, end: int) -> None:
    """Give the first ``end`` bytes back to the file system (fallocate(2)). This is not possible
    everywhere, but never essential."""
    libc = ctypes.CDLL(None, use_errno=True)
    mode = _FALLOC_FL_PUNCH_HOLE | _FALLOC_FL_KEEP_SIZE
    if struct.calcsize("P") == 8:
        libc.fallocate(fd, mode, ctypes.c_long(0), ctypes.c_long(end))
