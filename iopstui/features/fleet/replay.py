"""Replay a fleet's recording: pass its lines through a merger at any speed.

Clocks are corrected as in a live run, by the offsets known at the start (``executed``). After a
jump, the minutes before the new position are played at once, so that charts and maps show what came
before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_VERDICT, UsageError
from iopstui.features.fleet.deduplication import Deduplicator, mark_repeats
from iopstui.features.fleet.fleet_events import (
    FLEET,
    FLEET_OVER,
    FleetEvent,
    FleetMessage,
    FleetRunFinished,
    FleetRuns,
    FleetRunStarted,
    HostRow,
    ReplayRestarted,
    host_figures,
)
from iopstui.features.fleet.fleet_state import DONE, FAILED, HISTORY_SECONDS, STOPPED
from iopstui.features.fleet.host_sweep import SweepEvents, host_point
from iopstui.features.fleet.merging.merger import HOST_EVENTS, MergedInterval, Merger, certify_merge
from iopstui.features.fleet.merging.sums import MalformedRow
from iopstui.format import counted
from iopstui.model.experiment.host_sweep import HostPlan, SweptPoint, check_host_axes
from iopstui.model.experiment.plan import HOSTS, expand_plan, parse_axis
from iopstui.recording.player import Player

Object = dict[str, Any]
Rows = Callable[[], Iterator[tuple[str, Object]]]
CLOSE_AFTER_S = 1.5
STEP_S = 1.0
MAX_POINTS = 10_000
"""If a sweep has more points, its runs are shown as single runs."""
RECORDING_ENDS = "the recording ends here for this host"


class _RecordedRow(NamedTuple):
    """A line of a host, with its second of the recording."""

    t: float
    name: str
    row: Object


class FleetReplay(Player[_RecordedRow, FleetEvent], FleetRuns):
    """Plays a recording. ``rows`` returns all lines from the beginning, each time it is called.
    Raises UsageError if they have no second of any host. Seconds are counted from the first
    frame."""

    lookback_s: float = HISTORY_SECONDS
    longest_pause_s = 5.0
    marks: Sequence[tuple[float, str]] = ()

    def __init__(self, rows: Rows, speed: float = 1.0) -> None:
        super().__init__(speed)
        FleetRuns.__init__(self)
        self._read_rows = rows
        self.job = ""
        self._first_s = self._last_s = 0.0
        self._has_jobs = False
        self._duplicates: set[int] = set()
        self._pending_warning = ""
        self._scan()

    def _rows(self) -> Iterator[tuple[str, Object]]:
        """The lines without repeated ones."""
        return (row for index, row in enumerate(self._read_rows()) if index not in self._duplicates)

    def _scan(self) -> None:
        """Find the recording's beginning and end, its hosts, and repeated lines."""
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
                if "axis" in row or "axes" in row:
                    # play everything after a jump, because a curve needs all of its points
                    self.lookback_s = math.inf
            wall_s = _wall_s(row, name, offsets)
            if kind in ("mark", FLEET) and wall_s is not None:
                marked.append((name, wall_s, str(row.get("text") or row.get("job") or "")))
            if kind == "frame" and wall_s is not None:
                names[name] = None
                walls = [min([wall_s, *walls]), max([wall_s, *walls])]
        if not walls:
            raise UsageError(
                "This recording contains no seconds of hosts, so there is nothing to replay.",
                "iopstui report shows the totals that iopstui merge writes.",
            )
        self.hosts = [*names]
        self._first_s, self._last_s = walls
        # only marks for all hosts; the marks of a single host are in its lines
        self.marks = [(wall_s - self._first_s, text) for name, wall_s, text in marked
                      if text and name not in names]  # fmt: skip
        duplicates = sum(deduplicator.repeat_counts.values())
        if duplicates:
            self._pending_warning = (
                f"{counted(duplicates, 'duplicate second')} of hosts; each is played once"
            )

    @property
    def end(self) -> float:
        return self._last_s - self._first_s

    def step(self) -> None:
        self.pause(True)
        self.seek_by(STEP_S)

    # -- the content

    def _items(self, goal: float | None) -> Iterator[_RecordedRow]:
        """All lines, except frames that are too old for the charts at ``goal`` (``None``: all
        lines)."""
        self._emit_host_event(ReplayRestarted())
        merging = self._merging = _RunMerging(
            self._emit_host_event, self.hosts, self._has_jobs, self.job, self._first_s
        )
        message, self._pending_warning = self._pending_warning, ""
        if message:
            self._sink(FleetMessage("warning", message))
        start_t = (goal or 0.0) - self.lookback_s
        for name, row in self._rows():
            t = merging.position_of(name, row)
            if t >= start_t or row.get("event") != "frame":
                yield _RecordedRow(t, name, row)
        merging.end(last=True)

    def _show(self, item: _RecordedRow) -> None:
        self._merging.take_row(item.name, item.row)

    def _emit_host_event(self, event: FleetEvent) -> None:
        """Emit an event of a host; a frame only if the host is shown."""
        if not isinstance(event, HostRow) or self.is_shown(event.name, event.row):
            self._sink(event)


class _RunMerging:
    """Passes lines to mergers, a new one for each run, and emits the results."""

    def __init__(
        self,
        on_event: Callable[[FleetEvent], None],
        hosts: Sequence[str],
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
        self._sweep: SweepEvents | None = None
        self._point: SweptPoint | None = None
        self._reason = RECORDING_ENDS
        self._planned = 0

    def position_of(self, name: str, row: Object) -> float:
        """A line's position, in seconds from the beginning."""
        wall_s = _wall_s(row, name, self._offsets)
        if wall_s is not None:
            self._last_s = max(self._last_s, wall_s - self._first_s)
        return self._last_s

    def take_row(self, name: str, row: Object) -> None:
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
        point = self._update_sweep(row)
        self._planned = len(names)
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
            point=point,
        ))  # fmt: skip

    def _update_sweep(self, row: Object) -> SweptPoint | None:
        """Start or end a sweep, depending on the sweep to which the run belongs."""
        plan, number = _plan_of(row, str(row.get("job") or self._job)), row.get("point")
        if plan is None or type(number) is not int or not 0 <= number < plan.points:
            self._end_sweep()
            return None
        before = self._point
        if self._sweep is None or before is None or before.plan != plan or (
            number <= before.step.index
        ):  # fmt: skip
            self._end_sweep()
            self._sweep = SweepEvents(plan, self._emit)
        point = self._point = SweptPoint(plan, list(expand_plan(plan))[number])
        self._reason = RECORDING_ENDS
        self._sweep.begin(point.step)
        return point

    def _finish_point(
        self, merger: Merger, planned: int, code: object, messages: tuple[str, ...]
    ) -> None:
        """Report the result of a finished point."""
        if self._sweep is None or self._point is None:
            return
        step = self._point.step
        hosts = certify_merge(merger).finished
        if code in (EXIT_OK, EXIT_VERDICT) and hosts > 0:
            self._sweep.finish(step, host_point(hosts, planned, merger))
        elif code == EXIT_INTERRUPTED or code is None:
            self._reason = STOPPED if code is not None else RECORDING_ENDS
        else:
            self._reason = next(iter(messages), RECORDING_ENDS)
            self._sweep.fail_point(step, self._reason)
        if step.index == self._point.plan.points - 1 and code is not None:
            self._reason = STOPPED if code == EXIT_INTERRUPTED else ""
            self._end_sweep()

    def _end_sweep(self) -> None:
        sweep, self._sweep, self._point = self._sweep, None, None
        if sweep is not None:
            stopped = self._reason == STOPPED
            sweep.end("" if stopped else self._reason, stopped=stopped)

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
            if row["event"] in HOST_EVENTS:
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
        """End the run; with ``last``, also end the recording."""
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
        self._finish_point(merger, self._planned, code, messages)
        self._emit(FleetRunFinished(
            state if state in (DONE, FAILED, STOPPED) else DONE,
            code if isinstance(code, int) else 0, messages, sums=merger.run_sums(),
        ))  # fmt: skip


def _plan_of(row: Object, job: str) -> HostPlan | None:
    """The sweep to which a run belongs; ``None`` if it belongs to none. Older recordings only have
    the number of hosts of each point."""
    axes = row.get("axes", {HOSTS: row["axis"]} if "axis" in row else None)
    if type(axes) is not dict or not axes or not all(type(axis) is list for axis in axes.values()):
        return None
    try:
        parsed = [parse_axis(f"{name}={','.join(map(str, axes[name]))}") for name in axes]
        check_host_axes(parsed, {}, MAX_POINTS)
    except UsageError:
        return None
    repeats, measure_s = row.get("repeats"), row.get("measure_s")
    plan = HostPlan(
        (job,), {}, tuple(parsed), repeats=repeats if type(repeats) is int and repeats > 0 else 1,
        settle=0.0, measure=float(measure_s) if isinstance(measure_s, int | float) else 0.0,
    )  # fmt: skip
    return plan if plan.points <= MAX_POINTS else None


def _wall_s(row: Object, name: str, offsets: dict[str, float]) -> float | None:
    """When a line was written, by our clock (seconds since 1970). Updates ``offsets``."""
    offset, wall_ms = row.get("offset_ms"), row.get("wall_ms")
    if row.get("event") == "executed" and isinstance(offset, int | float):
        offsets[name] = float(offset)
    if not isinstance(wall_ms, int | float):
        return None
    return (wall_ms - offsets.get(name, 0.0)) / 1000
