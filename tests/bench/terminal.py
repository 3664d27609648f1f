"""A pseudo-terminal of any size and speed, and the CPU time of a program in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
ASKS_SYNC = b"\x1b[?2026$p"
HAS_SYNC = b"\x1b[?2026;2$y"
KEEP = 1 << 20


def cpu_clock(pid: int) -> int:
    """The clock id of a process's CPU time, including ended threads (clock_getcpuclockid(3))."""
    return (~pid << 3) | 2


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used so far; 0 if it is gone."""
    try:
        return time.clock_gettime(cpu_clock(pid))
    except OSError:
        return 0.0


def children(pid: int) -> list[int]:
    """All processes below ``pid``."""
    found: list[int] = []
    queue = [pid]
    while queue:
        parent = queue.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as file:
                    below = [int(word) for word in file.read().split()]
                found += below
                queue += below
    return found


def command_line(pid: int) -> list[str]:
    """The process's arguments; empty if it is gone."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [word.decode("utf-8", "replace") for word in raw.split(b"\0") if word]


def own_cpu_s(pid: int) -> float:
    """CPU seconds of iopstui and of fio's guard, which is part of it, without fio."""
    guards = [c for c in children(pid) if command_line(c)[:1] == [sys.executable]]
    return sum(cpu_s(one) for one in (pid, *guards))


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident memory now, and its maximum (VmRSS, VmHWM of proc(5))."""
    values = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            values[name] = int(rest.split()[0]) / 1024
    return values.get("VmRSS", 0.0), values.get("VmHWM", 0.0)


class Terminal:
    """Runs a command in a new pseudo-terminal and reads its output.

    ``bytes_per_s`` limits how fast the terminal reads (``None``: no limit, 0: not at all until the
    attribute changes). ``written`` has the last part of the output."""

    def __init__(
        self,
        argv: Sequence[str],
        columns: int,
        rows: int,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        bytes_per_s: float | None = None,
    ) -> None:
        self.bytes_per_s = bytes_per_s
        self.total = 0
        self._arrived: list[tuple[int, float]] = []
        self.written = bytearray()
        self.started = time.monotonic()
        self._over = threading.Event()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            self._child(argv, columns, rows, cwd, env)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _child(self, argv: Sequence[str], columns: int, rows: int, cwd: Path | None,
               env: Mapping[str, str] | None) -> None:  # fmt: skip
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            if cwd is not None:
                os.chdir(cwd)
            wanted = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})}
            os.execvpe(argv[0], list(argv), wanted)
        finally:
            os._exit(127)

    def _read(self) -> None:
        while not self._over.is_set():
            speed = self.bytes_per_s
            if speed == 0:
                self._over.wait(0.05)
                continue
            if not select.select([self._fd], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self._fd, 65536 if speed is None else max(1, int(speed / 20)))
            except OSError:
                break
            if not data:
                break
            self._take(data)
            if speed is not None:
                self._over.wait(len(data) / speed)
        self._over.set()

    def _take(self, data: bytes) -> None:
        self.total += len(data)
        self.written += data
        if self.total <= KEEP:
            self._arrived.append((self.total, cpu_s(self.pid)))
        if len(self.written) > 2 * KEEP:
            del self.written[:-KEEP]
        if ASKS_SYNC in data:
            self.type(HAS_SYNC)

    def type(self, keys: bytes) -> None:
        """Send these keys."""
        with contextlib.suppress(OSError):
            os.write(self._fd, keys)

    def words(self) -> str:
        """The output without escape sequences."""
        return ANSI.sub(b" ", bytes(self.written)).decode("utf-8", "replace")

    def wait_for(self, seen: Callable[[str], object], within: float = 30.0) -> float:
        """Seconds from the start until ``seen(words)`` holds; raises TimeoutError."""
        looked = -1
        while time.monotonic() - self.started < within:
            if self.total != looked:
                looked = self.total
                if seen(self.words()):
                    return time.monotonic() - self.started
            if self._over.is_set():
                break
            time.sleep(0.002)
        raise TimeoutError(f"not seen within {within} s: {self.words()[-2000:]}")

    def cpu_at(self, seen: Callable[[str], object]) -> float:
        """CPU seconds that the program had used when ``seen(words)`` first held, within the first
        KEEP bytes. Raises LookupError if it never did."""
        for total, used in self._arrived:
            if seen(ANSI.sub(b" ", bytes(self.written[:total])).decode("utf-8", "replace")):
                return used
        raise LookupError("not seen")

    def end(self, keys: bytes | None = b"q", within: float = 10.0) -> bool:
        """Leave the program. Returns False if it had to be killed."""
        if keys is not None:
            self.type(keys)
            if self._gone(within):
                return self._close(True)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            if self._gone(5.0):
                break
        return self._close(keys is None)

    def _gone(self, within: float) -> bool:
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            try:
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    return True
            except ChildProcessError:
                return True
            time.sleep(0.01)
        return False

    def _close(self, result: bool) -> bool:
        self._over.set()
        self._thread.join()
        os.close(self._fd)
        return result
