"""Reads and writes of each process over all disks together (/proc/PID/io, proc(5)).

A process's counters include those of the children that it has waited for (kernel/exit.c,
wait_task_zombie). A shell that has waited an hour for a program would seem to do all its I/O in one
second, so the I/O of ended children seen before is subtracted."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from iopstui.linux.counters.whole_disks import WholeDisks
from iopstui.linux.kernel_files import KernelFile, Roots, decode, read_bytes
from iopstui.linux.process.processes import command_of, user_of
from iopstui.model.samples import DiskCounters
from iopstui.text import printable

MAX_COMMAND = 200
_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD (include/linux/sched.h)."""
_STATE, _PARENT, _FLAGS, _MAJOR_FAULTS, _START = 0, 1, 6, 9, 19
_CHILDREN = (8, 10, 13, 14)
"""cminflt, cmajflt, cutime, cstime in /proc/PID/stat, counted after the name."""


@dataclass(frozen=True, slots=True)
class ProcessRates:
    """Bytes per second that the block layer read and wrote for a process, on any disk; ``write_s``
    includes pages that it dirtied in the page cache. ``children``: includes I/O of children that
    ended in this interval. ``kernel``: a kernel thread. ``faults``: it waited for pages of files
    that it maps, or of its program."""

    pid: int
    comm: str
    read_s: float
    write_s: float
    children: bool = False
    kernel: bool = False
    parent: int = 0
    faults: bool = True


@dataclass(slots=True)
class _Process:
    """The last reading of a process: ``text`` is the content of its file, ``io`` the parsed
    counters; both are ``None`` if the file may not be read."""

    start: int
    parent: int
    children: tuple[bytes, ...]
    kernel: bool
    comm: str
    io: tuple[int, int] | None
    text: bytes | None
    major_faults: int


class ProcessIo:
    """Counters of all processes that may be read; ``rates`` returns their I/O since the last
    reading. To be used by one thread. It costs some 10 µs per process, so it is called only while
    the rates are shown."""

    def __init__(
        self,
        least_s: float = 0.9,
        roots: Roots | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._proc = str((roots or Roots()).proc)
        self._files = KeptFiles(self._proc, "io")
        self._min_interval_s = least_s
        self._clock = clock
        self._disks = WholeDisks(roots or Roots())
        self._at = 0.0
        self._before: dict[int, _Process] = {}
        self._bytes_before: tuple[int, int] | None = None
        self._rates: list[ProcessRates] | None = None
        self.disks: Mapping[str, DiskCounters] = {}
        """The counters of all disks at the last reading."""
        self.closed = 0
        """How many processes could not be read."""

    def rates(self) -> list[ProcessRates] | None:
        """The processes with I/O, the busiest first; ``None`` until there are two readings."""
        now = self._clock()
        if self._at and now - self._at < self._min_interval_s:
            return self._rates
        processes = self._read()
        self._files.keep_only(processes.keys())
        self.disks = self._disks.read()
        moved = self._disks.bytes_moved(self.disks)
        if self._at:
            limits = self._limits(moved, now - self._at)
            self._rates = self._differences(processes, now - self._at, limits)
        self._at, self._before, self._bytes_before = now, processes, moved
        self.closed = sum(p.io is None and not p.kernel for p in processes.values())
        return self._rates

    def close_files(self) -> None:
        """Close the files that are kept open for the next reading."""
        self._files.keep_only(set())

    def command(self, pid: int) -> str:
        """The command line of a process; "" for a kernel thread, or if the process is gone."""
        return command_of(f"{self._proc}/{pid}", MAX_COMMAND)

    def user(self, pid: int) -> str:
        return user_of(f"{self._proc}/{pid}")

    def _limits(self, moved: tuple[int, int] | None, seconds: float) -> tuple[float, float] | None:
        """Bytes per second that all disks together read and wrote, an upper bound for each
        process."""
        before = self._bytes_before
        if moved is None or before is None:
            return None
        return tuple(max(0, n - b) / seconds for n, b in zip(moved, before, strict=True))  # type: ignore[return-value]

    def _read(self) -> dict[int, _Process]:
        found: dict[int, _Process] = {}
        read, before = self._files.read, self._before
        for name in os.listdir(self._proc):
            if not name.isdecimal():
                continue
            pid = int(name)
            last = before.get(pid)
            text: bytes | None
            try:
                text = read(pid)
                # most processes have done nothing at all since
                if last is not None and last.text == text:
                    found[pid] = last
                    continue
                io = _counts(text)
            except PermissionError:
                text = io = None
            except (OSError, ValueError):
                continue  # the process has just ended
            if last is not None and last.io == io:
                last.text = text
                found[pid] = last
            elif (process := self._process(name, io, text)) is not None:
                found[pid] = process
        return found

    def _process(
        self, pid: str, io: tuple[int, int] | None, text: bytes | None
    ) -> _Process | None:  # fmt: skip
        head, _, rest = (read_bytes(f"{self._proc}/{pid}/stat") or b"").rpartition(b")")
        fields = rest.split()
        if len(fields) <= _START:
            return None
        return _Process(
            int(fields[_START]), int(fields[_PARENT]), tuple(fields[n] for n in _CHILDREN),
            bool(int(fields[_FLAGS]) & _KERNEL_THREAD),
            printable(decode(head.partition(b"(")[2])), io, text,
            int(fields[_MAJOR_FAULTS]),
        )  # fmt: skip

    def _differences(
        self, now: dict[int, _Process], seconds: float, limits: tuple[float, float] | None
    ) -> list[ProcessRates]:
        ended = self._ended_children(now)
        rates = []
        for pid, process in now.items():
            before = self._before.get(pid)
            if before is process or process.io is None:
                continue
            if before is None or before.start != process.start:
                # the process began since the last reading, so all its I/O is new
                increases = process.io
            elif before.io is None:
                continue
            else:
                lost = ended.get(pid, (0, 0))
                if lost is None:
                    continue  # a child that may not be read has ended: its I/O is unknown
                increases = (process.io[0] - before.io[0] - lost[0],
                             process.io[1] - before.io[1] - lost[1])  # fmt: skip
            read_s, write_s = (max(0, increase) / seconds for increase in increases)
            if limits is not None:
                read_s, write_s = min(read_s, limits[0]), min(write_s, limits[1])
            if read_s or write_s:
                is_new = before is None or before.start != process.start
                grew = before is not None and before.children != process.children
                faults_before = 0 if before is None or is_new else before.major_faults
                rates.append(
                    ProcessRates(
                        pid, process.comm, read_s, write_s, grew, process.kernel, process.parent,
                        process.major_faults > faults_before,
                    )
                )  # fmt: skip
        return sorted(rates, key=lambda process: (-process.read_s - process.write_s, process.pid))

    def _ended_children(self, now: dict[int, _Process]) -> dict[int, tuple[int, int] | None]:
        """The last counters of children that have ended since the last reading, by the process that
        has waited for them: its counters now include theirs. ``None`` if not all of them could be
        read."""
        ended: dict[int, tuple[int, int] | None] = {}
        for pid, gone in self._before.items():
            current = now.get(pid)
            if current is gone or (current is not None and current.start == gone.start):
                continue
            heir = self._heir(gone.parent, now)
            if heir is not None:
                sum_before = ended.get(heir, (0, 0))
                ended[heir] = (
                    None
                    if gone.io is None or sum_before is None
                    else (sum_before[0] + gone.io[0], sum_before[1] + gone.io[1])
                )
        return ended

    def _heir(self, pid: int, now: dict[int, _Process]) -> int | None:
        """The nearest ancestor that still runs and has waited for a child."""
        seen: set[int] = set()
        while pid not in seen and (before := self._before.get(pid)) is not None:
            seen.add(pid)
            current = now.get(pid)
            lives = current is not None and current.start == before.start
            if lives and current is not None and current.children != before.children:
                return pid
            pid = before.parent
        return None


def _counts(text: bytes) -> tuple[int, int]:
    words = text.split()
    if len(words) < 12:
        raise ValueError
    return int(words[9]), int(words[11])


# Files of /proc/PID that are read again and again, kept open: opening and closing one takes twice
# as long as reading it.


MOST = 1000
SHARE_OF_LIMIT = 0.5
"""Share of the files that this process may have open."""


class KeptFiles:
    """The file ``name`` of many processes, kept open until this object is closed. To be used by one
    thread."""

    def __init__(self, proc: str, name: str) -> None:
        self._proc, self._name = proc, name
        self._files: dict[int, KernelFile] = {}
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = MOST if soft < 0 else min(MOST, int(SHARE_OF_LIMIT * soft))

    def read(self, pid: int) -> bytes:
        """The beginning of the file. OSError if it can't be read, or the process has ended."""
        kept = self._files.get(pid)
        if kept is not None:
            try:
                if data := kept.read_attribute():
                    return data
            except OSError:
                pass
            self._close(pid)  # the process has ended, and another process may have its number
        file = KernelFile(f"{self._proc}/{pid}/{self._name}")
        try:
            data = file.read_attribute()
        except OSError:
            file.close()
            raise
        if len(self._files) < self._most:
            self._files[pid] = file
        else:
            file.close()
        return data

    def keep_only(self, pids: Set[int]) -> None:
        """Close the files of all other processes."""
        for pid in self._files.keys() - pids:
            self._close(pid)

    def _close(self, pid: int) -> None:
        self._files.pop(pid).close()

    def __del__(self) -> None:
        self.keep_only(set())
