"""What one process waits for: the states of its threads, sampled many times a second (proc(5))."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from iopstui.linux.counters.cgroup import cpu_stat_files, parse_throttled_us
from iopstui.linux.devices.open_devices import OpenDevices
from iopstui.linux.kernel_files import Roots, decode, list_names, read_bytes, read_text
from iopstui.linux.process.processes import children, command_of, process_of, task_stat
from iopstui.model.answer.process import (
    RING_PLACE,
    UNKNOWN_WAIT,
    ProcessWaits,
    place_kind,
    waits_off_cpus,
)
from iopstui.model.answer.use import ELSEWHERE
from iopstui.model.answer.who import role
from iopstui.model.block.device import BlockDevice
from iopstui.text import printable

MAX_THREADS, MAX_CHILDREN = 64, 16
LOOK_S = 0.05
LEAST_LOOKS = 5
"""In each second."""
MUCH_READY, MOSTLY_ASLEEP = 50.0, 90.0
"""Percent of the time that one thread was ready, and of the looks that found it asleep: more of
both is contradictory. Seen in a starved guest for a shell that waited for its child."""
_FLAGS, _KERNEL_THREAD, _PARENT = 6, 0x00200000, 1
_BLOCKED, _SLEEPS = b"D", b"S"


class TaskWaits:
    """``look`` samples the process once; ``result`` sums up. To be used by one thread.
    The children that it has from the beginning are looked at, too, unless they are many; those that
    come and go are looked at as one."""

    def __init__(
        self, pid: int, devices: Mapping[str, BlockDevice], roots: Roots, is_child: bool = False
    ) -> None:
        self.pid = pid
        self._proc = str(roots.proc)
        self._of = process_of(pid, self._proc)
        self._place = f"{self._proc}/{f'{self._of}/task/{pid}' if self._of else pid}"
        self._open = OpenDevices(devices, roots)
        self._known = devices
        self._devices: set[str] = set()
        self._looks = 0
        self._kinds: Counter[str] = Counter()
        self._places: Counter[str] = Counter()
        self._times: dict[str, tuple[int, int]] = {}
        self._first_times: dict[str, tuple[int, int]] = {}
        self._cpu_stats = cpu_stat_files(roots, str(pid))
        self._throttled_us = self._throttled()
        self._began = time.monotonic()
        self._ended = self._began
        self._threads = 1
        self._comm, self._command, self._state = "", "", ""
        self._kernel, self._parent = False, 0
        self._first_children = children(pid, self._proc)
        few = not is_child and len(self._first_children) <= MAX_CHILDREN
        self._children: list[TaskWaits] = []
        self._in_turn = None if is_child else _ChildrenInTurn(self._proc, self._open)
        self.look()
        self._children += [
            TaskWaits(child, devices, roots, is_child=True)
            for child in self._first_children * few
            if child != os.getpid()
        ]

    @property
    def exists(self) -> bool:
        """Whether it existed at the last look."""
        return bool(self._state)

    def look_until(self, moment: float) -> None:
        """Look repeatedly until a monotonic time, and a few times even if that is past: if the CPUs
        are full, other work may take the whole second."""
        for one in (self, *self._children):
            one.note_devices()
        if self._in_turn is not None:
            self._in_turn.note_devices(self._later_children())
        enough = self._looks + LEAST_LOOKS
        while (left := moment - time.monotonic()) > 0 or (self._state and self._looks < enough):
            time.sleep(min(left, LOOK_S) if left > 0 else LOOK_S)
            self.look()

    def note_devices(self) -> None:
        """Look at its open files."""
        reading, writing = self._open.of_process(self._place)
        self._devices |= (reading | writing).difference(ELSEWHERE)

    def look(self) -> None:
        """Look at the process and at its children once."""
        for child in self._children:
            child.look()
        if self._in_turn is not None:
            self._in_turn.look(self._later_children())
        try:
            comm, fields = task_stat(self._place)
        except OSError:
            self._state = ""
            return
        if len(fields) <= _FLAGS:
            self._state = ""
            return
        self._comm, self._state = printable(decode(comm)), fields[0].decode("ascii", "replace")
        self._parent = int(fields[_PARENT])
        self._kernel = bool(int(fields[_FLAGS]) & _KERNEL_THREAD)
        self._command = self._command or command_of(self._place)
        kinds: set[str] = set()
        places = self._thread_places()
        self._threads = max(self._threads, len(places))
        for place in places[:MAX_THREADS]:
            self._note_times(place)
            kinds |= _kinds_of(place, self._kernel, self._places)
        self._kinds.update(kinds)
        self._looks += 1
        self._ended = time.monotonic()

    def _thread_places(self) -> list[str]:
        if self._of:
            return [self._place]
        return [f"{self._place}/task/{thread}" for thread in list_names(f"{self._place}/task")]

    def _later_children(self) -> list[int]:
        return [pid for pid in children(self.pid, self._proc)
                if pid not in self._first_children and pid != os.getpid()]  # fmt: skip

    def _note_times(self, place: str) -> None:
        words = (read_text(f"{place}/schedstat") or "").split()
        if len(words) >= 2 and words[0].isdigit() and words[1].isdigit():
            self._times[place] = int(words[0]), int(words[1])
            self._first_times.setdefault(place, self._times[place])

    def result(self) -> ProcessWaits:
        """What was seen so far."""
        looks = max(1, self._looks)
        running, ready = self._busiest()
        percents = {kind: 100 * count / looks for kind, count in self._kinds.items()}
        contradicts = (ready or 0.0) >= MUCH_READY and sum(percents.values()) >= MOSTLY_ASLEEP
        if len(self._times) == 1 and contradicts:
            ready = None
        elif len(self._times) == 1:
            percents = waits_off_cpus(percents, 100 - (running or 0.0) - (ready or 0.0))
        now = children(self.pid, self._proc)
        stayed = tuple(child for child in now if child in self._first_children)
        seen = [child.result() for child in self._children if child.exists]
        in_turn = self._in_turn.result() if self._in_turn is not None else None
        return ProcessWaits(
            self.pid, self._comm, self._command, self._looks, self._state,
            percents, running, ready, _main_places(self._places),
            not self._state or os.access(f"{self._place}/fd", os.R_OK | os.X_OK), self._kernel,
            frozenset(self._devices), self._parent, tuple(self._names(stayed or now)),
            self._role(), self._of, self._threads,
            reached_quota=self._throttled() > self._throttled_us,
            children_change=not stayed,
            of_children=(*seen, *([in_turn] if in_turn is not None else ())),
            never_ran=self._never_ran(),
        )  # fmt: skip

    def _never_ran(self) -> bool:
        """Whether no thread ran, as all say. A kernel that doesn't count this writes 0."""
        return len(self._times) == self._threads and all(
            first[0] and self._times[place] == first for place, first in self._first_times.items()
        )

    def _throttled(self) -> int:
        """Microseconds for which its cgroup, or one above, was throttled at its CPU limit."""
        return sum(parse_throttled_us(read_bytes(file) or b"") or 0 for file in self._cpu_stats)

    def _role(self) -> str:
        numbers = {f"{d.major}:{d.minor}": name for name, d in self._known.items()}
        found = role(self._comm, numbers) if self._kernel else None
        return found.text(self._known) if found is not None else "kernel" * self._kernel

    def _names(self, pids: tuple[int, ...]) -> Iterator[str]:
        for pid in pids:
            name = read_text(f"{self._proc}/{pid}/comm")
            if name is not None:
                yield f"{printable(name)} ({pid})"

    def _busiest(self) -> tuple[float | None, float | None]:
        """(percent on a CPU, percent ready without one) of the thread with the largest sum."""
        ns = 1e9 * (self._ended - self._began)
        if not self._times or ns <= 0:
            return None, None
        grown = [
            (self._times[place][0] - first[0], self._times[place][1] - first[1])
            for place, first in self._first_times.items()
        ]
        run, wait = max(grown, key=sum)
        return min(100.0, 100 * run / ns), min(100.0, 100 * wait / ns)


class _ChildrenInTurn:
    """The children that a process starts one after the other, as one process."""

    def __init__(self, proc: str, files: OpenDevices) -> None:
        self._proc = proc
        self._open = files
        self._devices: set[str] = set()
        self._looks = 0
        self._pid = 0
        self._kinds: Counter[str] = Counter()
        self._places: Counter[str] = Counter()
        self._names: Counter[str] = Counter()

    def note_devices(self, pids: Sequence[int]) -> None:
        """Look at the open files of those that are there."""
        for pid in pids[:MAX_CHILDREN]:
            reading, writing = self._open.of_process(f"{self._proc}/{pid}")
            self._devices |= (reading | writing).difference(ELSEWHERE)

    def look(self, pids: Sequence[int]) -> None:
        """Look at those that are there once."""
        kinds: set[str] = set()
        for pid in pids[:MAX_CHILDREN]:
            place = f"{self._proc}/{pid}"
            try:
                comm, _ = task_stat(place)
            except OSError:
                continue
            self._pid = pid
            self._names[printable(decode(comm))] += 1
            for thread in [*list_names(f"{place}/task")][:MAX_THREADS]:
                kinds |= _kinds_of(f"{place}/task/{thread}", False, self._places)
        self._kinds.update(kinds)
        self._looks += 1

    def result(self) -> ProcessWaits | None:
        """``None`` if there was none."""
        if not self._names:
            return None
        return ProcessWaits(
            self._pid, self._names.most_common(1)[0][0], "", self._looks, "S",
            {kind: 100 * count / self._looks for kind, count in self._kinds.items()},
            places=_main_places(self._places), devices=frozenset(self._devices), in_turn=True,
        )  # fmt: skip


def _kinds_of(place: str, kernel: bool, places: Counter[str]) -> set[str]:
    """The kind of wait that a thread was seen in, if any; its function is added to ``places``."""
    try:
        _, fields = task_stat(place)
    except OSError:
        return set()
    if not fields or fields[0] not in (_BLOCKED, _SLEEPS):
        return set()
    if kernel and fields[0] == _SLEEPS:
        return set()  # it waits for work
    wchan = read_text(f"{place}/wchan") or "0"
    where = "" if wchan == "0" else wchan
    if where:
        places[where] += 1
    return {place_kind(where, fields[0] == _BLOCKED)}


def _main_places(counts: Counter[str]) -> tuple[str, ...]:
    """The kernel functions that threads waited in most often. If some tell what for, only these:
    the other threads of a program only sleep."""
    places = [name for name, _ in counts.most_common()]
    known = [
        name
        for name in places
        if name == RING_PLACE or place_kind(name, blocked=True) != UNKNOWN_WAIT
    ]
    return tuple((known or places)[:3])
