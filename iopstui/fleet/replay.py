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
    host_figures,
)
from iopstui.fleet.fleet_state import DONE, FAILED, HISTORY_SECONDS, STOPPED
from iopstui.fleet.hosts.host_tunables import HostTunableChange, HostTunables
from iopstui.fleet.merging.certificate import certify_merge
from iopstui.fleet.merging.merger import MergedInterval, Merger
from iopstui.fleet.merging.sums import MalformedRow
from iopstui.fleet.scaling_curve import ScalingCurve, SweepPosition, scale_point
from iopstui.format import counted
from iopstui.recording.replay import next_speed

Object = dict[str, Any]
Rows = Callable[[], Iterator[tuple[str, Object]]]
CLOSE_AFTER_S = 1.5
MERGED_EVENTS = ("frame", "session", "step_finished", "ended")
STEP_S = 1.0
RECORDING_ENDS = "the recording ends here for this host"
MAX_PAUSE_S = 5.0
"""Of a recording in which nobody says anything is not waited for."""


class FleetReplay:
    """``rows`` gives all lines from the beginning, as often as it is called. Raises UsageError
    where no host's second is among them. Seconds are counted from the first frame's."""

    live = False
    running = False
    growing = False
    settings = HostTunables()

    def __init__(self, rows: Rows, speed: float = 1.0) -> None:
        self._read_rows = rows
        self.speed = speed
        self.paused = False
        self.hosts: list[str] = []
        self.job = ""
        self.frames: dict[str, Object] = {}
        self._detailed_hosts: set[str] = set()
        self.on_failure: Callable[[Exception], None] = lambda error: None
        self._emit: Callable[[FleetEvent], None] = lambda event: None
        self._condition = threading.Condition()
        self._thread = threading.Thread(target=self._main, name="replay", daemon=True)
        self._closing = False
        self._goal: float | None = None
        self._position_s = 0.0
        self._first_s = self._last_s = 0.0
        self.marks: Sequence[tuple[float, str]] = ()
        """(second, text) of the marks, and the starts of jobs."""
        self._has_jobs = self._has_sweep = False
        self._duplicates: set[int] = set()
        self._pending_warning = ""
        self._scan()

    def _rows(self) -> Iterator[tuple[str, Object]]:
        """Each line once."""
        return (row for index, row in enumerate(self._read_rows()) if index not in self._duplicates)

    def _scan(self) -> None:
        """When it begins and ends, who is in it, and what in it came twice."""
        deduplicator = Deduplicator()
        names: dict[str, None] = {}
        walls: list[float] = []
        offsets: dict[str, float] = {}
        marked: list[tuple[str, float, str]] = []
        for index, (name, row), is_repeat in mark_repeats(self._read_rows(), deduplicator):
            if is_repeat:
                self._duplicates.add(index)
                continue
            kind = row.get("event")
            self._has_jobs |= kind == "step_started"
            if kind == FLEET:
                self.job = str(row.get("job") or self.job)
                self._has_sweep |= "axis" in row
            wall_s = _wall_s(row, name, offsets)
            if kind in ("mark", FLEET) and wall_s is not None:
                marked.append((name, wall_s, str(row.get("text") or row.get("job") or "")))
            if kind == "frame" and wall_s is not None:
                names[name] = None
                walls = [min([wall_s, *walls]), max([wall_s, *walls])]
        if not walls:
            raise UsageError(
                "This recording contains no seconds of hosts, so there is nothing to replay."
            )
        self.hosts = [*names]
        self._first_s, self._last_s = walls
        # those of all hosts; hosts have theirs in their own rows
        self.marks = [(wall_s - self._first_s, text) for name, wall_s, text in marked
                      if text and name not in names]  # fmt: skip
        duplicates = sum(deduplicator.repeat_counts.values())
        if duplicates:
            self._pending_warning = (
                f"{counted(duplicates, 'duplicate second')} of hosts; each is played once"
            )

    # -- where it is: what ReplayKeys ask for

    @property
    def at(self) -> float:
        """Seconds from its beginning."""
        return min(self._position_s, self.end)

    @property
    def end(self) -> float:
        """Return its length in seconds."""
        return self._last_s - self._first_s

    def pause(self, paused: bool) -> None:
        """Stand still, or go on; at the end from the beginning."""
        with self._condition:
            if not paused and self._position_s >= self.end:
                self._goal = 0.0
            self.paused = paused
            self._condition.notify()

    def seek_by(self, seconds: float) -> None:
        """Jump."""
        self.seek(self._position_s + seconds)

    def seek(self, at: float) -> None:
        """Go to this second."""
        with self._condition:
            self._goal = max(0.0, min(at, self.end))
            self._condition.notify()

    def change_speed(self, up: bool) -> float:
        """The next faster or slower pace."""
        with self._condition:
            self.speed = next_speed(self.speed, up)
            self._condition.notify()
            return self.speed

    def step(self) -> None:
        """The next second alone."""
        with self._condition:
            self.paused = True
            self._goal = min(self._position_s + STEP_S, self.end)
            self._condition.notify()

    # -- what a fleet's screen asks for

    def start(self, on_event: Callable[[FleetEvent], None]) -> None:
        """``on_event`` is called in a thread of its own."""
        self._emit = on_event
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
        (self._detailed_hosts.add if enabled else self._detailed_hosts.discard)(name)

    def request_settings(self) -> bool:
        """Nobody is asked."""
        return False

    def change_tunable(self, change: HostTunableChange) -> None:
        """Do nothing: a recording changes no tunables."""

    def close(self) -> None:
        """End the thread."""
        with self._condition:
            self._closing = True
            self._condition.notify()
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
        player = _Player(self._emit_host_event, self.hosts, self._has_jobs, self.job, self._first_s)
        message, self._pending_warning = self._pending_warning, ""
        if message:
            self._emit(FleetMessage("warning", message))
        # a curve is made of all of its points
        history_start = -math.inf if self._has_sweep else goal - HISTORY_SECONDS
        clock = _ReplayClock(goal)
        for name, row in self._rows():
            position_s = player.position_of(name, row)
            if row.get("event") == "frame" and position_s < history_start:
                continue
            if position_s > goal:
                new_goal = self._wait(clock, position_s)
                if new_goal is not None or self._closing:
                    return new_goal
            player.take_row(name, row)
            self._position_s = max(goal, position_s) if position_s >= goal else self._position_s
        player.end(last=True)
        self._position_s = self.end
        return self._wait_for_goal()

    def _emit_host_event(self, event: FleetEvent) -> None:
        """Frames only of a host that is looked at."""
        if isinstance(event, HostRow) and event.row["event"] == "frame":
            self.frames[event.name] = event.row
            if event.name not in self._detailed_hosts:
                return
        self._emit(event)

    def _wait(self, clock: _ReplayClock, position_s: float) -> float | None:
        """Wait until it is time for ``position_s``; return a new goal if there is one meanwhile."""
        with self._condition:
            while not self._closing and self._goal is None:
                remaining_s = clock.seconds_until(position_s, self.speed, self.paused)
                if remaining_s <= 0:
                    return None
                self._position_s = max(0.0, min(clock.now, position_s))
                self._condition.wait(remaining_s)
            return self._take_goal()

    def _wait_for_goal(self) -> float | None:
        with self._condition:
            while not self._closing and self._goal is None:
                self._condition.wait()
            return self._take_goal()

    def _take_goal(self) -> float | None:
        goal, self._goal = self._goal, None
        return None if self._closing else goal


class _ReplayClock:
    """Position of the replay by the clock."""

    def __init__(self, position_s: float) -> None:
        self.now = position_s
        self._last_s = time.monotonic()

    def seconds_until(self, position_s: float, speed: float, paused: bool) -> float:
        """Seconds to wait until ``position_s``; a long pause of the recording is cut."""
        previous, self._last_s = self._last_s, time.monotonic()
        if paused:
            return 3600.0
        self.now += (self._last_s - previous) * speed
        if position_s - self.now > MAX_PAUSE_S:
            self.now = position_s - MAX_PAUSE_S
        return (position_s - self.now) / speed


class _Player:
    """Feeds lines to mergers, a new one with each run, and tells what comes of it."""

    def __init__(
        self,
        on_event: Callable[[FleetEvent], None],
        hosts: list[str],
        jobs: bool,
        job: str,
        first_s: float,
    ) -> None:
        self._emit = on_event
        self._hosts = hosts
        self._has_jobs = jobs
        self._job = job
        self._first_s = first_s
        self._offsets: dict[str, float] = {}
        self._merger: Merger | None = None
        self._run_number = 0
        self._last_s = 0.0
        self._malformed_hosts: set[str] = set()
        self._end_row: Object = {}
        self._curve: ScalingCurve | None = None
        on_event(ReplayRestarted())

    def position_of(self, name: str, row: Object) -> float:
        """Seconds from the beginning."""
        wall_s = _wall_s(row, name, self._offsets)
        if wall_s is not None:
            self._last_s = max(self._last_s, wall_s - self._first_s)
        return self._last_s

    def take_row(self, name: str, row: Object) -> None:
        """Take a line."""
        kind = row.get("event")
        if kind == FLEET:
            self.end()
            self._begin(row)
        elif kind == FLEET_OVER:
            self._end_row = row
        elif kind == "mark" and name not in self._hosts:
            self._emit(FleetMessage("mark", str(row.get("text"))))
        elif isinstance(kind, str) and name in self._hosts:
            self._host_row(name, row)

    def _begin(self, row: Object) -> None:
        interval = row.get("interval_s")
        hosts = row.get("hosts")
        names = [str(host) for host in hosts] if isinstance(hosts, list) else self._hosts
        watching = bool(row.get("watching")) if "watching" in row else not self._has_jobs
        self._run_number += 0 if watching else 1
        sweep_position = self._update_sweep(row)
        merger = self._merger = Merger(
            float(interval) if isinstance(interval, int | float) else 1.0
        )
        merger.on_interval = lambda name, interval, is_counted: self._emit(
            host_figures(name, interval, is_counted)
        )
        for name, offset in self._offsets.items():
            merger.host(name).offset_ms = offset
        job = str(row.get("job") or self._job)
        self._end_row = {}
        self._emit(FleetRunStarted(
            self._run_number, tuple(names), self._first_s + self._last_s, job, watching,
            sweep_position=sweep_position,
        ))  # fmt: skip

    def _update_sweep(self, row: Object) -> SweepPosition | None:
        """Start or end a sweep, from the sweep that a run belongs to."""
        axis, number = row.get("axis"), row.get("point")
        counts = tuple(count for count in axis if type(count) is int) if type(axis) is list else ()
        if type(number) is not int or not 0 <= number < len(counts) or min(counts) < 1:
            self._end_sweep()
            return None
        curve = self._curve
        if curve is None or curve.counts != counts or number <= (curve.point_number or 0):
            self._end_sweep()
            curve = ScalingCurve(str(row.get("job") or self._job), counts)
        self._curve = replace(curve, point_number=number)
        self._emit(self._curve)
        return SweepPosition(counts, number)

    def _finish_point(self, merger: Merger, code: object, messages: tuple[str, ...]) -> None:
        """Report the result of a finished point."""
        curve = self._curve
        if curve is None:
            return
        hosts = certify_merge(merger).finished
        counts = code in (EXIT_OK, EXIT_VERDICT) and hosts > 0
        point = scale_point(hosts, merger) if counts else None
        self._curve = curve.with_point(point, code if type(code) is int else EXIT_OK, messages)
        if curve.is_last:
            self._end_sweep()

    def _end_sweep(self) -> None:
        curve, self._curve = self._curve, None
        if curve is not None:
            self._emit(curve.with_end(curve.notes.get(curve.point_number or 0, RECORDING_ENDS)))

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
            if name not in self._malformed_hosts:
                self._malformed_hosts.add(name)
                self._emit(FleetMessage("warning", f"{name}: row skipped: {error}"))
        end = (self._first_s + self._last_s - CLOSE_AFTER_S) / merger.interval_s
        self._emit_seconds(merger.close_seconds(int(end) - 1))

    def _emit_seconds(self, seconds: Iterator[MergedInterval]) -> None:
        for second in seconds:
            self._emit(second)

    def end(self, last: bool = False) -> None:
        """The run is over; ``last``: the recording is."""
        self._finish_run()
        if last:
            self._end_sweep()

    def _finish_run(self) -> None:
        merger, self._merger = self._merger, None
        if merger is None:
            return
        self._emit_seconds(merger.finish())
        end_row = self._end_row
        code = end_row.get("code")
        state = end_row.get("how")
        recorded = end_row.get("said")
        messages = tuple(str(message) for message in recorded) if isinstance(recorded, list) else ()
        if not end_row and merger.lost_hosts:
            messages = (
                f"the recording ends before the end of {counted(len(merger.lost_hosts), 'host')}",
            )
        self._finish_point(merger, code, messages)
        self._emit(FleetRunFinished(
            state if state in (DONE, FAILED, STOPPED) else DONE,
            code if isinstance(code, int) else 0, messages, sums=merger.run_sums(),
        ))  # fmt: skip


def _wall_s(row: Object, name: str, offsets: dict[str, float]) -> float | None:
    """When a line was written, by our clock, in seconds since 1970; offsets are learnt from it."""
    offset, wall_ms = row.get("offset_ms"), row.get("wall_ms")
    if row.get("event") == "executed" and isinstance(offset, int | float):
        offsets[name] = float(offset)
    if not isinstance(wall_ms, int | float):
        return None
    return (wall_ms - offsets.get(name, 0.0)) / 1000
