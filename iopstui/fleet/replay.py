"""Replay a fleet's recording: pass its lines through a merger at any speed.

Clocks are corrected by what the hosts were told at their start (``executed``), as live. After a
jump the last minutes before the place are played at once, so that charts and maps have a past.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from iopstui.errors import EXIT_OK, EXIT_VERDICT, UsageError
from iopstui.fleet.deduplication import Deduplicator, mark_repeats
from iopstui.fleet.fleet_events import (
    FLEET,
    FLEET_OVER,
    FleetEvent,
    FleetMessage,
    FleetRunFinished,
    FleetRunStarted,
    HostRow,
    ReplayRestarted,
    host_second,
)
from iopstui.fleet.fleet_state import DONE, FAILED, KEPT_SECONDS, STOPPED
from iopstui.fleet.hosts.host_tunables import HostTunableChange, HostTunables
from iopstui.fleet.merging.certificate import certify_merge
from iopstui.fleet.merging.merger import MergedSecond, Merger
from iopstui.fleet.merging.sums import MalformedRow
from iopstui.fleet.scaling_curve import ScalingCurve, SweepPosition, scale_point
from iopstui.format import counted
from iopstui.recording.replay import next_speed

Object = dict[str, Any]
Rows = Callable[[], Iterator[tuple[str, Object]]]
CLOSE_AFTER_S = 1.5
MERGED_EVENTS = ("frame", "session", "step_finished", "ended")
STEP_S = 1.0
MIN_S, MAX_S = 0.01, 3600.0
"""A second's length can't be another one."""
ENDS_HERE = "the recording ends here for this host"
LONGEST_PAUSE_S = 5.0
"""Of a recording in which nobody says anything is not waited for."""


class FleetReplay:
    """``rows`` gives all lines from the beginning, as often as it is called. Raises UsageError
    where no host's second is among them. Seconds are counted from the first frame's."""

    live = False
    running = False
    growing = False
    settings = HostTunables()

    def __init__(self, rows: Rows, speed: float = 1.0) -> None:
        self._lines = rows
        self.speed = speed
        self.paused = False
        self.hosts: list[str] = []
        self.job = ""
        self.frames: dict[str, Object] = {}
        self._detailed: set[str] = set()
        self.on_failure: Callable[[Exception], None] = lambda error: None
        self._emit: Callable[[FleetEvent], None] = lambda event: None
        self._turn = threading.Condition()
        self._thread = threading.Thread(target=self._main, name="replay", daemon=True)
        self._closing = False
        self._goal: float | None = None
        self._at = 0.0
        self._first_s = self._last_s = 0.0
        self._jobs = self._swept = False
        self._copies: set[int] = set()
        self._unsaid = ""
        self._scan()

    def _rows(self) -> Iterator[tuple[str, Object]]:
        """Each line once."""
        return (row for place, row in enumerate(self._lines()) if place not in self._copies)

    def _scan(self) -> None:
        """When it begins and ends, who is in it, and what in it came twice."""
        deduplicator = Deduplicator()
        names: dict[str, None] = {}
        walls: list[float] = []
        offsets: dict[str, float] = {}
        for place, (name, row), is_repeat in mark_repeats(self._lines(), deduplicator):
            if is_repeat:
                self._copies.add(place)
                continue
            kind = row.get("event")
            self._jobs |= kind == "step_started"
            if kind == FLEET:
                self.job = str(row.get("job") or self.job)
                self._swept |= "axis" in row
            wall = _wall(row, name, offsets)
            if kind == "frame" and wall is not None:
                names[name] = None
                walls = [min([wall, *walls]), max([wall, *walls])]
        if not walls:
            raise UsageError(
                "This recording contains no seconds of hosts, so there is nothing to replay."
            )
        self.hosts = [*names]
        self._first_s, self._last_s = walls
        twice = sum(deduplicator.repeated.values())
        if twice:
            self._unsaid = f"{counted(twice, 'duplicate second')} of hosts; each is played once"

    # -- where it is: what ReplayKeys ask for

    @property
    def at(self) -> float:
        """Seconds from its beginning."""
        return min(self._at, self.end)

    @property
    def end(self) -> float:
        """Return its length in seconds."""
        return self._last_s - self._first_s

    def pause(self, paused: bool) -> None:
        """Stand still, or go on; at the end from the beginning."""
        with self._turn:
            if not paused and self._at >= self.end:
                self._goal = 0.0
            self.paused = paused
            self._turn.notify()

    def seek_by(self, seconds: float) -> None:
        """Jump."""
        self.seek(self._at + seconds)

    def seek(self, at: float) -> None:
        """Go to this second."""
        with self._turn:
            self._goal = max(0.0, min(at, self.end))
            self._turn.notify()

    def change_speed(self, up: bool) -> float:
        """The next faster or slower pace."""
        with self._turn:
            self.speed = next_speed(self.speed, up)
            self._turn.notify()
            return self.speed

    def step(self) -> None:
        """The next second alone."""
        with self._turn:
            self.paused = True
            self._goal = min(self._at + STEP_S, self.end)
            self._turn.notify()

    # -- what a fleet's screen asks for

    def start(self, emit: Callable[[FleetEvent], None]) -> None:
        """``tell`` is called in a thread of its own."""
        self._emit = emit
        self._thread.start()

    def run(self, job: str, options: Mapping[str, str]) -> None:
        """Do nothing: a recording runs no job."""

    def sweep(self, counts: Sequence[int], job: str, options: Mapping[str, str]) -> None:
        """Do nothing: a recording runs no sweep."""

    def stop(self) -> None:
        """Do nothing: a recording runs no job."""

    def mark(self, text: str) -> None:
        """Do nothing: a recording takes no marks."""

    def detail(self, name: str, enabled: bool) -> None:
        """Send the lines of this host from now on; their detail is as recorded."""
        (self._detailed.add if enabled else self._detailed.discard)(name)

    def request_settings(self) -> bool:
        """Nobody is asked."""
        return False

    def change_tunable(self, change: HostTunableChange) -> None:
        """Do nothing: a recording changes no tunables."""

    def close(self) -> None:
        """End the thread."""
        with self._turn:
            self._closing = True
            self._turn.notify()
        if self._thread.is_alive():
            self._thread.join()

    # -- the thread

    def _main(self) -> None:
        try:
            goal: float | None = 0.0
            while goal is not None:
                goal = self._play(goal)
        except Exception as error:  # of a thread nobody would hear of it
            self.on_failure(error)

    def _play(self, goal: float) -> float | None:
        """Play from the beginning up to ``goal``; return the next goal, ``None`` if closed."""
        player = _Player(self._of_host, self.hosts, self._jobs, self.job, self._first_s)
        message, self._unsaid = self._unsaid, ""
        if message:
            self._emit(FleetMessage("warning", message))
        # a curve is made of all of its points
        history_start = -math.inf if self._swept else goal - KEPT_SECONDS
        pace = _ReplayClock(goal)
        for name, row in self._rows():
            at = player.position_of(name, row)
            if row.get("event") == "frame" and at < history_start:
                continue
            if at > goal:
                new_goal = self._wait(pace, at)
                if new_goal is not None or self._closing:
                    return new_goal
            player.row(name, row)
            self._at = max(goal, at) if at >= goal else self._at
        player.end(last=True)
        self._at = self.end
        return self._next()

    def _of_host(self, event: FleetEvent) -> None:
        """Frames only of a host that is looked at."""
        if isinstance(event, HostRow) and event.row["event"] == "frame":
            self.frames[event.name] = event.row
            if event.name not in self._detailed:
                return
        self._emit(event)

    def _wait(self, pace: _ReplayClock, at: float) -> float | None:
        """Wait until it is time for ``at``; return a new goal if there is one meanwhile."""
        with self._turn:
            while not self._closing and self._goal is None:
                remaining_s = pace.seconds_until(at, self.speed, self.paused)
                if remaining_s <= 0:
                    return None
                self._at = max(0.0, min(pace.now, at))
                self._turn.wait(remaining_s)
            return self._take_goal()

    def _next(self) -> float | None:
        with self._turn:
            while not self._closing and self._goal is None:
                self._turn.wait()
            return self._take_goal()

    def _take_goal(self) -> float | None:
        goal, self._goal = self._goal, None
        return None if self._closing else goal


class _ReplayClock:
    """Position of the replay by the clock."""

    def __init__(self, at: float) -> None:
        self.now = at
        self._then = time.monotonic()

    def seconds_until(self, at: float, speed: float, paused: bool) -> float:
        """Seconds to wait until ``at``; a long pause of the recording is cut."""
        previous, self._then = self._then, time.monotonic()
        if paused:
            return 3600.0
        self.now += (self._then - previous) * speed
        if at - self.now > LONGEST_PAUSE_S:
            self.now = at - LONGEST_PAUSE_S
        return (at - self.now) / speed


class _Player:
    """Feeds lines to mergers, a new one with each run, and tells what comes of it."""

    def __init__(
        self,
        emit: Callable[[FleetEvent], None],
        hosts: list[str],
        jobs: bool,
        job: str,
        first_s: float,
    ) -> None:
        self._emit = emit
        self._hosts = hosts
        self._jobs = jobs
        self._job = job
        self._first_s = first_s
        self._offsets: dict[str, float] = {}
        self._merger: Merger | None = None
        self._number = 0
        self._last = 0.0
        self._broken: set[str] = set()
        self._over: Object = {}
        self._curve: ScalingCurve | None = None
        emit(ReplayRestarted())

    def position_of(self, name: str, row: Object) -> float:
        """Seconds from the beginning."""
        wall = _wall(row, name, self._offsets)
        if wall is not None:
            self._last = max(self._last, wall - self._first_s)
        return self._last

    def row(self, name: str, row: Object) -> None:
        """Take a line."""
        kind = row.get("event")
        if kind == FLEET:
            self.end()
            self._begin(row)
        elif kind == FLEET_OVER:
            self._over = row
        elif kind == "mark" and name not in self._hosts:
            self._emit(FleetMessage("mark", str(row.get("text"))))
        elif isinstance(kind, str) and name in self._hosts:
            self._host_row(name, row)

    def _begin(self, row: Object) -> None:
        interval = row.get("interval_s")
        hosts = row.get("hosts")
        names = [str(host) for host in hosts] if isinstance(hosts, list) else self._hosts
        watching = bool(row.get("watching")) if "watching" in row else not self._jobs
        self._number += 0 if watching else 1
        place = self._sweep(row)
        merger = self._merger = Merger(
            float(interval) if isinstance(interval, int | float) else 1.0
        )
        merger.on_slot = lambda name, slot, is_counted: self._emit(
            host_second(name, slot, is_counted)
        )
        for name, offset in self._offsets.items():
            merger.host(name).offset_ms = offset
        job = str(row.get("job") or self._job)
        self._over = {}
        self._emit(FleetRunStarted(
            self._number, tuple(names), self._first_s + self._last, job, watching, place=place
        ))  # fmt: skip

    def _sweep(self, row: Object) -> SweepPosition | None:
        """Start or end a sweep, from the sweep that a run belongs to."""
        axis, number = row.get("axis"), row.get("point")
        counts = tuple(count for count in axis if type(count) is int) if type(axis) is list else ()
        if type(number) is not int or not 0 <= number < len(counts) or min(counts) < 1:
            self._end_sweep()
            return None
        curve = self._curve
        if curve is None or curve.counts != counts or number <= (curve.at or 0):
            self._end_sweep()
            curve = ScalingCurve(str(row.get("job") or self._job), counts)
        self._curve = replace(curve, at=number)
        self._emit(self._curve)
        return SweepPosition(counts, number)

    def _point(self, merger: Merger, code: object, messages: tuple[str, ...]) -> None:
        """Report the result of a finished point."""
        curve = self._curve
        if curve is None:
            return
        hosts = certify_merge(merger).finished
        counts = code in (EXIT_OK, EXIT_VERDICT) and hosts > 0
        point = scale_point(hosts, merger) if counts else None
        self._curve = curve.with_point(point, code if type(code) is int else EXIT_OK, messages)
        if curve.last:
            self._end_sweep()

    def _end_sweep(self) -> None:
        curve, self._curve = self._curve, None
        if curve is not None:
            self._emit(curve.over(curve.notes.get(curve.at or 0, ENDS_HERE)))

    def _host_row(self, name: str, row: Object) -> None:
        if self._merger is None:
            self._begin({})
        merger = self._merger
        assert merger is not None
        offset = self._offsets.get(name)
        if offset is not None:
            merger.host(name).offset_ms = offset
        self._emit(HostRow(name, row))
        try:
            if row["event"] in MERGED_EVENTS:
                merger.feed(name, row)
        except MalformedRow as error:
            if name not in self._broken:
                self._broken.add(name)
                self._emit(FleetMessage("warning", f"{name}: row skipped: {error}"))
        end = (self._first_s + self._last - CLOSE_AFTER_S) / merger.interval_s
        self._seconds(merger.closed(int(end) - 1))

    def _seconds(self, seconds: Iterator[MergedSecond]) -> None:
        for second in seconds:
            self._emit(second)

    def end(self, last: bool = False) -> None:
        """The run is over; ``last``: the recording is."""
        self._run_over()
        if last:
            self._end_sweep()

    def _run_over(self) -> None:
        merger, self._merger = self._merger, None
        if merger is None:
            return
        self._seconds(merger.finish())
        end_row = self._over
        code = end_row.get("code")
        state = end_row.get("how")
        recorded = end_row.get("said")
        messages = tuple(str(message) for message in recorded) if isinstance(recorded, list) else ()
        if not end_row and merger.lost:
            messages = (
                f"the recording ends before the end of {counted(len(merger.lost), 'host')}",
            )
        self._point(merger, code, messages)
        self._emit(FleetRunFinished(
            state if state in (DONE, FAILED, STOPPED) else DONE,
            code if isinstance(code, int) else 0, messages, whole=merger.rated(),
        ))  # fmt: skip


def _wall(row: Object, name: str, offsets: dict[str, float]) -> float | None:
    """When a line was written, by our clock, in seconds since 1970; offsets are learnt from it."""
    offset, wall = row.get("offset_ms"), row.get("wall_ms")
    if row.get("event") == "executed" and isinstance(offset, int | float):
        offsets[name] = float(offset)
    if not isinstance(wall, int | float):
        return None
    return (wall - offsets.get(name, 0.0)) / 1000
