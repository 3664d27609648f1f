"""What one thread does: its kernel function and state at each look, and its exact times."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable
from statistics import fmean, pvariance
from typing import NamedTuple

from iopstui.linux.kernel_files import read_text
from iopstui.linux.process.processes import children_of, task_stat
from iopstui.model.answer.process import place_kind, waits_off_cpus

MUCH_READY, MOSTLY_ASLEEP = 50.0, 90.0
"""Percent of the time that one thread was ready to run, and of the looks that found it asleep. If
both are higher, they contradict each other: seen in a starved guest for a shell that waited for its
child."""
LEAST_EACH, LEAST_ADDED, SURE = 5, 0.3, 2.0
"""A thread that waits for I/O is one task more that does. In five looks each, this many (two errors
less) show it. Measured: 0.2 (xfs's log) to 1; -0.1 for one blocked in membarrier(2)."""
_RUNS, _BLOCKED, _SLEEPS = b"R", b"D", b"S"


class Look(NamedTuple):
    """A thread that was off the CPUs. ``place``: the kernel function it waited in ("": it could not
    be read at that moment). ``waits`` is False for a stopped thread, and for a kernel thread that
    waits for work."""

    place: str
    blocked: bool
    waits: bool = True


class WaitCounts:
    """Counts of looks, by kind of wait."""

    def __init__(self) -> None:
        self._counts: Counter[Look] = Counter()

    def note(self, seen: Iterable[Look]) -> None:
        """Count one look, which saw one or several threads."""
        self._counts.update({*seen})

    def kinds(self) -> dict[str, float]:
        """Looks by kind ("": it waits for nothing). The kernel function of a thread that is just
        falling asleep or waking up, or that is asleep and still queued (EEVDF, Linux 6.12), cannot
        be read. Looks without a function are distributed over the looks in the same state, unless
        there are more of them."""
        kinds: dict[str, float] = {}
        for blocked in (True, False):
            places = {one.place: count for one, count in self._counts.items()
                      if one.waits and one.blocked is blocked}  # fmt: skip
            unread = places.pop("", 0)
            read = sum(places.values())
            if unread > read:
                places[""], unread = unread, 0
            for place, count in places.items():
                kind = place_kind(place, blocked)
                kinds[kind] = kinds.get(kind, 0.0) + count * (1 + unread / max(1, read))
        idle = sum(count for one, count in self._counts.items() if not one.waits)
        return kinds | ({"": float(idle)} if idle else {})


class ThreadLooks:
    """``look`` samples the thread with this directory in /proc. ``peek`` may be called before it,
    because other work in between could hold the thread up, which ``look`` would then find ready."""

    def __init__(self, place: str, kernel: bool, proc: str = "/proc") -> None:
        self._place, self._proc = place, proc
        self._kernel = kernel
        self._states: dict[str, bool] = {}
        self._where: str | None = None
        self._counts = WaitCounts()
        self._first_children = {*children_of(place)}
        self.may_be_vfork = False
        """A look found it blocked, where could not be read, and with a child that it began
        meanwhile: whoever starts a program is in state D until that has begun (vfork(2))."""
        self.unread = self.not_for_io = 0
        """How many looks found it blocked, where could not be read; and in how many of these no
        task of the machine waited for I/O."""
        self.in_io: tuple[list[int], list[int]] = [], []
        """How many tasks of the machine waited for I/O in looks that found it blocked, where could
        not be read, and in those that found it not blocked."""
        self._first: tuple[float, int, int] | None = None
        self._last: tuple[float, int, int] | None = None

    def peek(self) -> None:
        """Read only its kernel function."""
        self._where = wchan(self._place)

    def look(self) -> Look | None:
        """Look at what the thread waits for now; ``None`` if it runs, could run, or is gone."""
        where, self._where = self._where, None
        where = wchan(self._place) if where is None else where
        words = (read_text(f"{self._place}/schedstat") or "").split()
        if len(words) >= 2 and words[0].isdigit() and words[1].isdigit():
            self._last = time.monotonic(), int(words[0]), int(words[1])
            self._first = self._first or self._last
        seen = seen_at(self._place, self._kernel, self._states, where)
        if seen is not None:
            self._counts.note([seen])
        if seen is not None and seen.blocked and not seen.place:
            self._look_closer()
        elif self.unread and not self._states:
            count = tasks_in_io(self._proc)
            if count is not None and not self._is_blocked:
                self.in_io[1].append(count)
        return seen

    def _look_closer(self) -> None:
        """Look what else may block it than I/O."""
        self.unread += 1
        if not self.may_be_vfork:
            self.may_be_vfork = bool({*children_of(self._place)} - self._first_children)
        if self._last is not None and (count := tasks_in_io(self._proc)) is not None:
            words = (read_text(f"{self._place}/schedstat") or "").split()
            if [*map(str, self._last[1:])] == words[:2] and self._is_blocked:
                self.not_for_io += count == 0
                self.in_io[0].append(count)

    @property
    def adds(self) -> bool | None:
        """Whether more tasks of the machine wait for I/O while it is blocked than otherwise;
        ``None`` if the looks don't show that."""
        if min(map(len, self.in_io)) < LEAST_EACH:
            return None
        blocked, other = self.in_io
        more = fmean(blocked) - fmean(other)
        error = SURE * math.sqrt(sum(pvariance(counts) / len(counts) for counts in self.in_io))
        return None if abs(more - LEAST_ADDED) <= error else more > LEAST_ADDED

    @property
    def _is_blocked(self) -> bool:
        try:
            return task_stat(self._place)[1][0] == _BLOCKED
        except (OSError, IndexError):
            return False

    @property
    def has_times(self) -> bool:
        """Whether the kernel reports how long the thread ran."""
        return self._first is not None

    @property
    def never_ran(self) -> bool:
        """Whether the thread did not run between the first look and the last; False if the kernel
        does not count run time (it then writes 0)."""
        if self._first is None or self._last is None or not self._first[1]:
            return False
        return self._first[1:] == self._last[1:]

    @property
    def span_s(self) -> float:
        """Seconds between the first reading of its times and the last one."""
        return self._last[0] - self._first[0] if self._first and self._last else 0.0

    def on_cpus(self, span_s: float) -> tuple[float, float]:
        """Percent of ``span_s`` on a CPU, and percent of it ready but without a CPU."""
        if self._first is None or self._last is None or span_s <= 0:
            return 0.0, 0.0
        run, ready = (min(100.0, 100 * (self._last[part] - self._first[part]) / 1e9 / span_s)
                      for part in (1, 2))  # fmt: skip
        return run, ready

    def contradicts(self, looks: int, span_s: float) -> bool:
        """Whether most of these looks found the thread asleep although its times say that it was
        ready."""
        asleep = 100 * sum(self._counts.kinds().values()) / looks
        return self.on_cpus(span_s)[1] >= MUCH_READY and asleep >= MOSTLY_ASLEEP

    def percents(self, looks: int, span_s: float) -> tuple[dict[str, float], float]:
        """Percent of the time by kind of wait, and the percentage of which nothing is known. The
        kernel tells exactly how long it was off the CPUs in ``span_s``; the looks divide this
        time."""
        counts = self._counts.kinds()
        found = {kind: 100 * count / looks for kind, count in counts.items()}
        rest = 0.0
        if span_s > 0 and self.span_s > 0 and not self.contradicts(looks, span_s):
            off = 100 * self.span_s / span_s - sum(self.on_cpus(span_s))
            found = waits_off_cpus(found, off, sum(counts.values()))
            rest = max(0.0, off - sum(found.values()))
        return {kind: percent for kind, percent in found.items() if kind}, rest


def wchan(place: str) -> str:
    """The kernel function that a thread sleeps in; "" if it does not, or it cannot be read."""
    where = read_text(f"{place}/wchan") or "0"
    return "" if where == "0" else where


def tasks_in_io(proc: str) -> int | None:
    """How many tasks of the machine wait for I/O now (procs_blocked of /proc/stat)."""
    _, _, rest = (read_text(f"{proc}/stat") or "").rpartition("procs_blocked ")
    count = rest.split()[:1]
    return int(count[0]) if count and count[0].isdigit() else None


def seen_at(place: str, kernel: bool, states: dict[str, bool], where: str) -> Look | None:
    """Look at the thread with this directory in /proc once. ``states`` keeps whether threads are
    blocked in a function. ``where``, the kernel function, was read before."""
    try:
        _, fields = task_stat(place)
    except OSError:
        return None
    state = fields[0] if fields else _RUNS
    if state == _RUNS:  # it was woken up between the two readings
        return Look(where, states[where]) if where in states else None
    if state not in (_BLOCKED, _SLEEPS) or (kernel and state == _SLEEPS):
        return Look(where, False, waits=False)
    if (not where and states) or (state == _BLOCKED and states.get(where) is False):
        where = wchan(place)  # it fell asleep, or was woken up and blocked, between the readings
    if where:
        states[where] = state == _BLOCKED
    return Look(where, state == _BLOCKED)
