"""What one process waits for: the states of its threads, sampled many times a second (proc(5))."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from iopstui.linux.activity.thread_looks import ThreadLooks, WaitCounts, seen_at, wchan
from iopstui.linux.counters.cgroup import cpu_stat_files, parse_throttled_us
from iopstui.linux.devices.open_devices import OpenDevices
from iopstui.linux.kernel_files import Roots, decode, list_names, read_bytes, read_text
from iopstui.linux.process.processes import children, children_of, command_of, process_of, task_stat
from iopstui.model.answer.process import (
    DISK,
    RING_PLACE,
    UNKNOWN_WAIT,
    ProcessWaits,
    place_kind,
)
from iopstui.model.answer.use import ELSEWHERE
from iopstui.model.answer.who import role
from iopstui.model.block.device import BlockDevice
from iopstui.text import printable

MAX_THREADS, MAX_CHILDREN = 64, 16
LOOK_S, LOOK_FEW_S, FEW_THREADS = 0.05, 0.02, 4
LEAST_LOOKS = 5
"""Least number of looks in each second."""
LEAST_OTHER, OTHER_SHARE = 3, 0.1
"""At least this many looks, and this share of those without a function, must show something else
than I/O."""
ALONE = 0.7, 1.15
"""If the tasks of the machine that wait for I/O are between so many times as many as this process's
blocked threads, they are these threads: both numbers change during a look."""
MAX_NAMES, NAMED_SHARE = 3, 0.1
"""At most this many children are named, each with at least this share of all children's waits."""
_FLAGS, _KERNEL_THREAD, _PARENT = 6, 0x00200000, 1


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
        self._odd: Counter[str] = Counter()
        self._threads: dict[str, ThreadLooks] = {}
        self._blocked: list[int] = []
        """Of each look that found threads blocked, where could not be read: how many."""
        self._cpu_stats = cpu_stat_files(roots, str(pid))
        self._throttled_us = self._throttled()
        self._most_threads = 1
        self._comm, self._command, self._state = "", "", ""
        self._kernel, self._parent = False, 0
        self._first_children = children(pid, self._proc)
        few = not is_child and len(self._first_children) <= MAX_CHILDREN
        self._children: list[TaskWaits] = []
        self._peeks_first = not is_child
        self._in_turn = None if is_child else _ChildrenInTurn(self._proc, self._open)
        self.look()
        self._children += [
            TaskWaits(child, devices, roots, is_child=True)
            for child in self._first_children * few
            if child != os.getpid()
        ]

    @property
    def exists(self) -> bool:
        """Whether the process existed at the last look."""
        return bool(self._state)

    def look_until(self, moment: float) -> None:
        """Look repeatedly until a monotonic time. Look a few times even if that time is past: if
        the CPUs are full, other work may take the whole second."""
        for one in (self, *self._children):
            one.note_devices()
        if self._in_turn is not None:
            self._in_turn.note_devices(self._later_children())
        enough = self._looks + LEAST_LOOKS
        while (left := moment - time.monotonic()) > 0 or (self._state and self._looks < enough):
            pause = LOOK_FEW_S if self._has_few_threads else LOOK_S
            time.sleep(min(left, pause) if left > 0 else pause)
            self.look()

    @property
    def _has_few_threads(self) -> bool:
        return sum(one._most_threads for one in (self, *self._children)) <= FEW_THREADS

    def note_devices(self) -> None:
        """Note the devices on which it has files open, and whether it has some elsewhere."""
        reading, writing = self._open.of_process(self._place)
        self._devices |= reading | writing

    def peek(self) -> None:
        """Read only the kernel functions that the known threads sleep in."""
        for child in self._children:
            child.peek()
        for thread in self._threads.values():
            thread.peek()

    def look(self) -> None:
        """Look at the process and at its children once."""
        if self._peeks_first:
            self.peek()
        if self._in_turn is not None:
            self._in_turn.look(self._later_children())
        for child in self._children:
            child.look()
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
        self._most_threads = max(self._most_threads, len(places))
        blocked = 0
        for place in places[:MAX_THREADS]:
            if place not in self._threads:
                self._threads[place] = ThreadLooks(place, self._kernel, self._proc)
            seen = self._threads[place].look()
            blocked += seen is not None and seen.blocked and not seen.place
            if seen is not None and seen.waits:
                self._places[seen.place] += bool(seen.place)
                kind = place_kind(seen.place, seen.blocked)
                kinds.add(kind)
                if kind == UNKNOWN_WAIT and seen.place:
                    self._odd[seen.place] += 1
        self._blocked += [blocked] * bool(blocked)
        self._kinds.update(kinds)
        self._looks += 1

    def _thread_places(self) -> list[str]:
        if self._of:
            return [self._place]
        return [f"{self._place}/task/{thread}" for thread in list_names(f"{self._place}/task")]

    def _later_children(self) -> list[int]:
        return [pid for pid in children(self.pid, self._proc)
                if pid not in self._first_children and pid != os.getpid()]  # fmt: skip

    def result(self) -> ProcessWaits:
        """The result of all looks so far."""
        percents, rest = self._percents()
        running, ready = self._busiest()
        now = children(self.pid, self._proc)
        stayed = tuple(child for child in now if child in self._first_children)
        seen = [child.result() for child in self._children if child.exists]
        in_turn = self._in_turn.result() if self._in_turn is not None else None
        return ProcessWaits(
            self.pid, self._comm, self._command, self._looks, self._state,
            percents, running, ready, _main_places(self._places),
            not self._state or os.access(f"{self._place}/fd", os.R_OK | os.X_OK), self._kernel,
            frozenset(self._devices.difference(ELSEWHERE)), self._parent, self._names(stayed, now),
            self._role(), self._of, self._most_threads,
            reached_quota=self._throttled() > self._throttled_us,
            children_change=not stayed,
            of_children=(*seen, *([in_turn] if in_turn is not None else ())),
            never_ran=self._never_ran(),
            not_seen=rest,
            may_be_vfork=any(one.may_be_vfork for one in self._threads.values()),
            not_for_io=self._not_for_io(),
            all_for_disk=self._all_for_disk(),
            odd_place=next((place for place, count in self._odd.most_common(1)), ""),
            elsewhere=not self._devices.isdisjoint(ELSEWHERE),
        )  # fmt: skip

    def _never_ran(self) -> bool:
        """Whether no thread ran; false unless this is known of all threads."""
        threads = self._threads.values()
        return len(threads) == self._most_threads and all(one.never_ran for one in threads)

    def _not_for_io(self) -> bool:
        """Whether a thread was blocked in several looks in which no task waited for I/O, or no more
        tasks than in the other looks; or others wait, too, and nothing shows that it is one of
        them."""
        threads = self._threads.values()
        if any(one.not_for_io >= max(LEAST_OTHER, OTHER_SHARE * one.unread) or one.adds is False
               for one in threads):  # fmt: skip
            return True
        in_io = [count for one in threads for count in one.in_io[0]]
        if len(in_io) < LEAST_OTHER or any(one.adds for one in threads):
            return False
        least, most = (part * fmean(self._blocked) for part in ALONE)
        return not least <= fmean(in_io) <= most

    def _percents(self) -> tuple[dict[str, float], float]:
        """Percent of the time by kind of wait, and the percentage of which nothing is known. For a
        kind that one thread was seen in, it is that thread's exact sum. For several threads it is
        the largest sum, or the share of looks that found any of them in it, if that is more."""
        looks, span_s = max(1, self._looks), self._span_s
        found: dict[str, float] = {}
        rest = 0.0
        for thread in self._threads.values():
            percents, not_seen = thread.percents(looks, span_s)
            rest = max(rest, not_seen)
            for kind, percent in percents.items():
                any_of_them = 100 * self._kinds[kind] / looks if kind in found else 0.0
                found[kind] = max(percent, found.get(kind, 0.0), any_of_them)
        return found, rest

    def _all_for_disk(self) -> float:
        looks, span_s = max(1, self._looks), self._span_s
        threads = self._threads.values()
        return sum(thread.percents(looks, span_s)[0].get(DISK, 0.0) for thread in threads)

    @property
    def _span_s(self) -> float:
        return max((thread.span_s for thread in self._threads.values()), default=0.0)

    def _throttled(self) -> int:
        """Microseconds for which its cgroup, or one above, was throttled at its CPU limit."""
        return sum(parse_throttled_us(read_bytes(file) or b"") or 0 for file in self._cpu_stats)

    def _role(self) -> str:
        numbers = {f"{d.major}:{d.minor}": name for name, d in self._known.items()}
        found = role(self._comm, numbers) if self._kernel else None
        return found.text(self._known) if found is not None else "kernel" * self._kernel

    def _names(self, stayed: tuple[int, ...], now: tuple[int, ...]) -> tuple[str, ...]:
        """The names of its children that stay; if none does, of those that came and went."""
        if not stayed and self._in_turn is not None and (names := self._in_turn.names):
            return names
        comms = {pid: read_text(f"{self._proc}/{pid}/comm") for pid in stayed or now}
        return tuple(f"{printable(comm)} ({pid})" for pid, comm in comms.items() if comm)

    def _busiest(self) -> tuple[float | None, float | None]:
        """(percent on a CPU, percent ready but without a CPU) of the thread with the largest sum of
        both."""
        span_s, looks = self._span_s, max(1, self._looks)
        timed = [thread for thread in self._threads.values() if thread.has_times]
        if not timed:
            return None, None
        if len(timed) == 1 and timed[0].contradicts(looks, span_s):
            return timed[0].on_cpus(span_s)[0], None
        return max((thread.on_cpus(span_s) for thread in timed), key=sum)


class _ChildrenInTurn:
    """Counts the children that a process starts one after the other as one process."""

    def __init__(self, proc: str, files: OpenDevices) -> None:
        self._proc = proc
        self._open = files
        self._devices: set[str] = set()
        self._looks = 0
        self._pids: dict[str, int] = {}
        """The last process of each name."""
        self._counts = WaitCounts()
        self._states: dict[str, bool] = {}
        self._places: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._may_be_vfork = False
        self._waiting: Counter[str] = Counter()
        """By name: how many looks saw it, and how many of these found a process of this name
        waiting for a disk, at least perhaps."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that were seen most often."""
        return tuple(name for name, _ in self._seen.most_common(MAX_NAMES))

    def note_devices(self, pids: Sequence[int]) -> None:
        """Note the devices on which the present children have files open."""
        for pid in pids[:MAX_CHILDREN]:
            reading, writing = self._open.of_process(f"{self._proc}/{pid}")
            self._devices |= reading | writing

    def look(self, pids: Sequence[int]) -> None:
        """Look once at the children that exist now."""
        looks, names = set(), {}
        for pid in pids[:MAX_CHILDREN]:
            place = f"{self._proc}/{pid}"
            try:
                comm, _ = task_stat(place)
            except OSError:
                continue
            name = printable(decode(comm))
            names[name], waits = pid, False
            for thread in [*list_names(f"{place}/task")][:MAX_THREADS]:
                task = f"{place}/task/{thread}"
                seen = seen_at(task, False, self._states, wchan(task))
                if seen is not None and seen.waits:
                    looks.add(seen)
                    self._places[seen.place] += bool(seen.place)
                    waits |= place_kind(seen.place, seen.blocked) in (DISK, UNKNOWN_WAIT)
                    if seen.blocked and not seen.place and children_of(task):
                        self._may_be_vfork = True
            self._waiting[name] += waits
        self._seen.update([*names])
        self._pids |= names
        self._counts.note(looks)
        self._looks += 1

    def result(self) -> ProcessWaits | None:
        """What the children were seen in; ``None`` if there were none. Its name is made of the
        names of those that wait for a disk."""
        if not self._seen:
            return None
        kinds = self._counts.kinds()
        total = self._waiting.total()
        waiting = [name for name, count in self._waiting.most_common(MAX_NAMES)
                   if count and count >= NAMED_SHARE * total] or [*self.names[:1]]  # fmt: skip
        return ProcessWaits(
            self._pids[waiting[0]], " or ".join(waiting), "", self._looks, "S",
            {kind: min(100.0, 100 * count / self._looks) for kind, count in kinds.items()},
            places=_main_places(self._places),
            devices=frozenset(self._devices.difference(ELSEWHERE)), in_turn=True,
            may_be_vfork=self._may_be_vfork,
            elsewhere=not self._devices.isdisjoint(ELSEWHERE),
        )  # fmt: skip


def _main_places(counts: Counter[str]) -> tuple[str, ...]:
    """The kernel functions that threads waited in most often. If some functions show what a thread
    waits for, only these: the other threads of a program only sleep."""
    places = [name for name, count in counts.most_common() if name and count]
    known = [
        name
        for name in places
        if name == RING_PLACE or place_kind(name, blocked=True) != UNKNOWN_WAIT
    ]
    return tuple((known or places)[:3])
