"""The state of each host for a screen: its last minutes, its progress and its deviation.

It gets the events of a fleet or of its recording (fleet_events.py), and uses neither drawing nor a
clock. A host's figures of a second are those that the merger counts, so they come from the same
frames as the totals."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from iopstui.features.fleet.fleet_events import (
    FleetEvent,
    FleetRunFinished,
    FleetRunStarted,
    HostFigures,
    HostFiguresBatch,
    HostRow,
    HostStateChanged,
    ReplayRestarted,
)
from iopstui.features.fleet.hosts.conversation import start_spread
from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.merging.row_events import read_answer
from iopstui.features.fleet.merging.sums import Object
from iopstui.format import counted
from iopstui.model.answer.answer import Answer
from iopstui.model.figures.disk import DiskRates
from iopstui.model.rates import median
from iopstui.model.sizes import MIB
from iopstui.text import printable

HISTORY_SECONDS = 300
"""How many seconds of each host are kept."""
IOPS, BW, WAIT, AWAIT, UTIL = "iops", "bw", "wait", "await", "util"
FIGURES = (IOPS, BW, WAIT, AWAIT, UTIL)
CONNECTING, READY, RUNNING, LATE, LOST, FAILED, DONE = (
    "connects", "ready", "runs", "late", "lost", "failed", "done"
)  # fmt: skip
LEFT_OUT, STOPPED, WATCHED, IDLE = "left out", "stopped", "watched", "idle"
MISSING, INCOMPLETE = "missing", "partly"
ABSENT_STATES = (LOST, FAILED, MISSING, LEFT_OUT, LATE)
"""In these states, a host sends nothing now."""
ACTIVE_STATES = (CONNECTING, READY, RUNNING, WATCHED, LATE, MISSING, INCOMPLETE)
MEASURED_STATES = (RUNNING, WATCHED, LATE, MISSING, INCOMPLETE)
NO_END_REASON = "it gave no reason"
ODDNESS_SHARE = 0.2
"""Weight of the newest second in a host's oddness."""
MAX_NOTES = 60
NOTE_EVENTS = ("found", "notice", "mark", "tunable_changed", "progress")


class SecondSeries:
    """Some figures of the last ``HISTORY_SECONDS`` seconds, by second number; NaN if missing. The
    figures of one second are adjacent in memory, because with a thousand hosts, separate lists for
    five figures took longer than everything else."""

    __slots__ = ("last", "values", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.values = array("f", [math.nan]) * (HISTORY_SECONDS * width)
        self.last = -1

    def add(self, second: int, values: Sequence[float | None]) -> None:
        """Add a second after the last one, or the last one again."""
        width = self.width
        if second != self.last + 1:
            if second < self.last:
                return
            gap_values = array("f", [math.nan]) * width
            for gap in range(max(self.last + 1, second - HISTORY_SECONDS + 1), second):
                offset = gap % HISTORY_SECONDS * width
                self.values[offset : offset + width] = gap_values
        offset = second % HISTORY_SECONDS * width
        self.values[offset : offset + width] = array("f", [nan_or(value) for value in values])
        self.last = second


def nan_or(value: float | None) -> float:
    return math.nan if value is None else value


class FigureHistory:
    """The last seconds of one figure, a ``column`` of a SecondSeries."""

    __slots__ = ("_column", "_series")

    def __init__(self, series: SecondSeries | None = None, column: int = 0) -> None:
        self._series = series or SecondSeries(1)
        self._column = column

    @property
    def last(self) -> int:
        """The newest second's number; -1 if there is none."""
        return self._series.last

    def add(self, second: int, value: float | None) -> None:
        """Add a value of a figure that has a series of its own; like ``SecondSeries.add``."""
        self._series.add(second, (value,))

    def at(self, second: int) -> float | None:
        """The value in this second; ``None`` if it was not measured or is too long ago."""
        series = self._series
        if not series.last - HISTORY_SECONDS < second <= series.last:
            return None
        value = series.values[second % HISTORY_SECONDS * series.width + self._column]
        return None if value != value else value

    def between(self, first: int, after: int) -> list[float | None]:
        """Values of the seconds from ``first`` up to, but not including, ``after``."""
        series = self._series
        if series.last - HISTORY_SECONDS < first and after - 1 <= series.last:
            width, values = series.width, series.values
            begin, end = (
                first % HISTORY_SECONDS * width + self._column,
                after % HISTORY_SECONDS * width + self._column,
            )
            result: Any
            if begin < end:
                result = values[begin:end:width].tolist()
            elif first < after:
                result = (values[begin::width] + values[self._column : end : width]).tolist()
            else:
                result = []
            has_gap = math.isnan(sum(result))
            return [None if math.isnan(value) else value for value in result] if has_gap else result
        return [self.at(second) for second in range(first, after)]


@dataclass(slots=True)
class HostState:
    """One host. ``history`` has its figures (``series``) by name (FIGURES): I/Os and bytes per
    second, ``wait`` the p99 in ns (without a job the same as ``await``), ``await`` the mean time of
    the device's requests in ns, ``util`` in percent. ``oddness`` grows with the distance from the
    other hosts. ``session``, ``step`` and ``end_row`` are the newest lines of these kinds."""

    name: str
    state: str = CONNECTING
    error: str = ""
    series: SecondSeries = field(default_factory=lambda: SecondSeries(len(FIGURES)))
    history: dict[str, FigureHistory] = field(default_factory=dict)
    oddness: float = 0.0
    session: Object | None = None
    step: Object | None = None
    end_row: Object | None = None
    notes: deque[Object] = field(default_factory=lambda: deque(maxlen=MAX_NOTES))
    answer: Answer | None = None
    """The host's own answer, about its disks."""
    executed_ms: float | None = None
    error_ms: float = 0.0
    sort_key: tuple[object, ...] = ()
    """The key by which names are sorted."""

    def __post_init__(self) -> None:
        self.sort_key = natural_key(self.name)
        self.history = {
            name: FigureHistory(self.series, column) for column, name in enumerate(FIGURES)
        }

    def value(self, figure: str, second: int) -> float | None:
        return self.history[figure].at(second)


class FleetState:
    """``apply`` takes events in order. ``second`` is the newest second with any I/O, ``run_start``
    the number of the current run's first second, ``first`` the number of the very first second.
    ``between_runs``: the hosts are watched between two runs; a lost or failed host then keeps its
    state and reason, and ``watch_end_reason`` is why watching ended. ``has_second``: a second of
    the current run or watch has come."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.hosts: dict[str, HostState] = {}
        self.second: MergedInterval | None = None
        self.run_start: int | None = None
        self.first: int | None = None
        self.medians = {name: FigureHistory() for name in (IOPS, WAIT, UTIL)}
        # by the number of each second that is still open
        self._open_seconds: dict[int, list[HostFigures]] = {}
        self.sums = {name: FigureHistory() for name in (IOPS, BW)}
        self.running = self.watching = self.between_runs = False
        self.watch_end_reason = ""
        self.has_second = False

    @property
    def number(self) -> int:
        """The newest second's number; -1 before the first."""
        return -1 if self.second is None else self.second.number

    def spread(self) -> tuple[float, float, int] | None:
        """The time between the first and the last start of fio (ms, by one clock), its error (ms),
        and the number of hosts; ``None`` if fewer than two have begun."""
        started = [host for host in self.hosts.values() if host.executed_ms is not None]
        if len(started) < 2:
            return None
        starts = [(host.executed_ms or 0.0, host.error_ms) for host in started]
        return *start_spread(starts), len(started)

    def hosts_with_findings(self) -> list[str]:
        """The names of the hosts that have reported a finding in their session, in order."""
        names = [name for name, host in self.hosts.items()
                 if any(note["event"] == "found" for note in host.notes)]  # fmt: skip
        return sorted(names, key=natural_key)

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for host in self.hosts.values():
            counts[host.state] = counts.get(host.state, 0) + 1
        return counts

    def host(self, name: str) -> HostState:
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = HostState(name)
        return host

    def apply(self, event: FleetEvent) -> None:
        match event:
            case HostFigures():
                self._host_figures((event,))
            case HostFiguresBatch():
                self._host_figures(event.seconds)
            case HostRow():
                self._host_row(self.host(event.name), event.row)
            case MergedInterval():
                self._merged_interval(event)
            case HostStateChanged():
                self._host_state_changed(event)
            case FleetRunStarted():
                self._run_started(event)
            case ReplayRestarted():
                self.reset()
            case FleetRunFinished():
                self.running = self.between_runs = False
                self.watch_end_reason = (
                    event.messages[0] if event.between_runs and event.messages else ""
                )
                for host in self.hosts.values():
                    if host.state == MISSING and not event.between_runs:
                        host.state, host.error = LOST, host.error or NO_END_REASON
                    elif host.state in ACTIVE_STATES:
                        # not FAILED, because a failed host has reported that itself
                        host.state = STOPPED if event.state == FAILED else event.state

    def _run_started(self, event: FleetRunStarted) -> None:
        self.running, self.watching, self.between_runs = True, event.watching, event.between_runs
        self.watch_end_reason, self.has_second = "", False
        if event.between_runs:
            # keep the lines and sparklines of the previous run
            return
        self.run_start = None
        for host in self.hosts.values():
            host.state, host.error = IDLE, ""
            host.executed_ms = host.step = host.end_row = host.answer = None
        for name in event.hosts:
            self.host(name).state = CONNECTING

    def _host_state_changed(self, event: HostStateChanged) -> None:
        host = self.host(event.name)
        if self.between_runs and (
            host.state not in MEASURED_STATES or event.state not in (LATE, LOST)
        ):
            return
        # the list of missing hosts is newer than the state of the link
        if event.state != RUNNING or host.state not in (MISSING, INCOMPLETE):
            host.state, host.error = event.state, event.error

    def _host_figures(self, all_host_figures: Iterable[HostFigures]) -> None:
        hosts, between = self.hosts, self.between_runs
        for event in all_host_figures:
            # the figures are the last values, in the order of FIGURES
            name, number, complete, *values = event
            if not complete:
                continue
            received = self._open_seconds.get(number)
            if received is None:
                received = self._open_seconds[number] = []
            received.append(event)
            host = hosts.get(name) or self.host(name)
            state = host.state
            if state in (CONNECTING, READY) or (between and state in (DONE, STOPPED, IDLE)):
                host.state = self._measured_state
            host.series.add(number, values)

    def _host_row(self, host: HostState, row: Object) -> None:
        kind = row["event"]
        if kind == "session":
            # earlier notes belong to another session, with another clock
            host.notes.clear()
            host.answer = None
        elif kind == "answer":
            host.answer = read_answer(row) or host.answer
        if self.between_runs and kind == "session":
            host.session, host.step, host.end_row = row, None, None
        elif self.between_runs and kind not in NOTE_EVENTS:
            return
        elif kind == "session":
            host.session, host.state = row, READY
        elif kind == "step_started":
            host.step, host.end_row = row, None
        elif kind == "executed":
            self._executed(host, row)
        elif kind == "step_finished":
            host.end_row = row
            host.error = printable(str(row.get("error") or ""))
            host.state = FAILED if host.error else DONE
        elif kind == "ended" and host.state != FAILED:
            host.state = DONE
        elif kind in NOTE_EVENTS:
            host.notes.append(row)

    def _executed(self, host: HostState, row: Object) -> None:
        wall_ms, offset, error = (row.get(name) for name in ("wall_ms", "offset_ms", "error_ms"))
        host.state = RUNNING
        if isinstance(wall_ms, int | float) and isinstance(offset, int | float):
            host.executed_ms = wall_ms - offset
            host.error_ms = float(error) if isinstance(error, int | float) else 0.0

    def _merged_interval(self, event: MergedInterval) -> None:
        if not event.counted and not event.missing:
            return
        self.second, self.has_second = event, True
        self.run_start = event.number if self.run_start is None else self.run_start
        self.first = event.number if self.first is None else self.first
        self._mark_missing_hosts(event)
        sums, complete = event.sums, event.counted == event.expected
        total = sums.total
        values: dict[str, float | None] = {IOPS: None, BW: None}
        if total is not None:
            values = {IOPS: total.iops, BW: total.bw}
        elif sums.kernel.hosts:  # without any device, nothing was measured, which is not 0
            rates = (sums.kernel.value(row) or 0.0 for row in (DiskRates.r_s, DiskRates.w_s))
            values = {IOPS: sum(rates), BW: (sums.kernel.mib_s or 0.0) * MIB}
        for name, value in values.items():
            self.sums[name].add(event.number, value if complete else None)
        self._update_oddness(event.number)

    @property
    def _measured_state(self) -> str:
        """The state of a host that sends figures."""
        return WATCHED if self.watching else RUNNING

    def _mark_missing_hosts(self, event: MergedInterval) -> None:
        missing, incomplete = {*event.missing}, {*event.incomplete}
        for host in self.hosts.values():
            if host.state in MEASURED_STATES:
                name, state = host.name, self._measured_state
                state = INCOMPLETE if name in incomplete else state
                host.state = MISSING if name in missing else state
        for name in missing:
            self.host(name)

    def _update_oddness(self, second: int) -> None:
        """Update the median over all hosts, and each host's oddness."""
        seconds = self._open_seconds.pop(second, [])
        for passed in [number for number in self._open_seconds if number < second]:
            del self._open_seconds[passed]
        iops, wait = _median(s.iops for s in seconds), _median(s.wait_ns for s in seconds)
        self.medians[IOPS].add(second, iops)
        self.medians[WAIT].add(second, wait)
        self.medians[UTIL].add(second, _median(s.util for s in seconds))
        hosts = self.hosts
        for host_figures in seconds:
            host = hosts[host_figures.name]
            oddness = max(log_ratio(host_figures.iops, iops), log_ratio(host_figures.wait_ns, wait))
            host.oddness += ODDNESS_SHARE * (oddness - host.oddness)


def _median(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return median(measured) if measured else None


def log_ratio(value: float | None, middle: float | None) -> float:
    """The distance from the median, in doublings or halvings; 0 if undefined."""
    if not value or not middle or value < 0 or middle < 0:
        return 0.0
    return abs(math.log2(value / middle))


def natural_key(name: str) -> tuple[object, ...]:
    """A sort key that puts node2 before node10."""
    parts: list[object] = []
    digits = text = ""
    for letter in name + "\0":
        if letter.isdigit() and letter.isascii():
            digits += letter
            continue
        if digits:
            parts += [text, int(digits)]
            digits = text = ""
        text += letter
    return (*parts, text)


def name_range(names: Sequence[str]) -> str:
    """A range of hosts in one word: "node001-067", or the first and the last name."""
    first, last = names[0], names[-1]
    if len(names) == 1:
        return first
    common = 0
    while common < min(len(first), len(last)) and first[common] == last[common]:
        common += 1
    while common and first[common - 1].isdigit():
        common -= 1
    return f"{first}-{last[common:]}" if common else f"{first}..{last}"


def active_hosts_text(state: FleetState) -> str:
    """How many hosts are active: "97 of 100 hosts"; before the first second, how many are ready."""
    second, total = state.second, len(state.hosts)
    if not state.running or (state.between_runs and not state.has_second):
        return counted(total, "host")
    if second is None or state.run_start is None:
        hosts = [host for host in state.hosts.values() if host.state != IDLE]
        ready = sum(host.state != CONNECTING for host in hosts)
        return f"{ready} of {counted(len(hosts), 'host')} ready"
    watched = " watched" if state.between_runs else ""
    expected = total if state.between_runs else second.expected
    return f"{second.counted} of {counted(expected, 'host')}{watched}"
