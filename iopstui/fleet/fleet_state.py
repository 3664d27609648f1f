"""The state of each host for a screen: its last minutes, progress and deviation.

Fed with the events of a fleet or of its recording (fleet_events.py); no drawing, no clock. The
figures of a second are those that the merger counts for it, so a host's values of one second and
the totals come from the same frames.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from iopstui.fleet.fleet_events import (
    FleetEvent,
    FleetRunFinished,
    FleetRunStarted,
    HostRow,
    HostSecond,
    HostSeconds,
    HostStateChanged,
    ReplayRestarted,
)
from iopstui.fleet.hosts.clocks import start_spread
from iopstui.fleet.merging.merger import MergedSecond
from iopstui.fleet.merging.sums import DISK_RATES, Object
from iopstui.fleet.scaling_curve import ScalingCurve
from iopstui.format import counted
from iopstui.model.means import median
from iopstui.model.rates import MIB
from iopstui.text import printable

KEPT_SECONDS = 300
"""Seconds of each host."""
IOPS, BW, WAIT, AWAIT, UTIL = "iops", "bw", "wait", "await", "util"
FIGURES = (IOPS, BW, WAIT, AWAIT, UTIL)
CONNECTS, READY, RUNS, LATE, LOST, FAILED, DONE = (
    "connects", "ready", "runs", "late", "lost", "failed", "done"
)  # fmt: skip
OUT, STOPPED, WATCHED, RESTS = "left out", "stopped", "watched", "idle"
MISSING, PARTLY = "missing", "partly"
ABSENT_STATES = (LOST, FAILED, MISSING, OUT, LATE)
"""Of these nothing comes now."""
ACTIVE_STATES = (CONNECTS, READY, RUNS, WATCHED, LATE, MISSING, PARTLY)
MEASURED = (RUNS, WATCHED, LATE, MISSING, PARTLY)
NO_END = "it gave no reason"
ODD_SHARE = 0.2
"""How much of a host's oddness is its newest second's."""
MAX_NOTES = 60
NOTE_EVENTS = ("found", "notice", "mark", "tunable_changed", "progress")


class SecondSeries:
    """Some figures' last ``KEPT_SECONDS`` seconds by their numbers; NaN where there is none. The
    figures of one second are neighbours in memory: with a thousand hosts, reaching five places for
    each host took longer than everything else."""

    __slots__ = ("last", "values", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.values = array("f", [math.nan]) * (KEPT_SECONDS * width)
        self.last = -1

    def add(self, second: int, values: Sequence[float | None]) -> None:
        """Add a second after the last one, or the last one again."""
        width = self.width
        if second != self.last + 1:
            if second < self.last:
                return
            nothing = array("f", [math.nan]) * width
            for gap in range(max(self.last + 1, second - KEPT_SECONDS + 1), second):
                at = gap % KEPT_SECONDS * width
                self.values[at : at + width] = nothing
        at = second % KEPT_SECONDS * width
        self.values[at : at + width] = array("f", [nan_or(value) for value in values])
        self.last = second


def nan_or(value: float | None) -> float:
    """NaN where there is none."""
    return math.nan if value is None else value


class FigureHistory:
    """The last seconds of one figure: its own, or the one at ``place`` of several."""

    __slots__ = ("_of", "_place")

    def __init__(self, of: SecondSeries | None = None, place: int = 0) -> None:
        self._of = of or SecondSeries(1)
        self._place = place

    @property
    def last(self) -> int:
        """The newest second's number; -1: none."""
        return self._of.last

    def add(self, second: int, value: float | None) -> None:
        """Add a figure's own value, like ``SecondSeries.add``."""
        self._of.add(second, (value,))

    def at(self, second: int) -> float | None:
        """``None``: not measured, or too long ago."""
        of = self._of
        if not of.last - KEPT_SECONDS < second <= of.last:
            return None
        value = of.values[second % KEPT_SECONDS * of.width + self._place]
        return None if value != value else value

    def between(self, first: int, after: int) -> list[float | None]:
        """Values of the seconds from ``first`` up to, but not including, ``after``."""
        of = self._of
        if of.last - KEPT_SECONDS < first and after - 1 <= of.last:
            width, values = of.width, of.values
            begin, end = (
                first % KEPT_SECONDS * width + self._place,
                after % KEPT_SECONDS * width + self._place,
            )
            if begin < end:
                result = values[begin:end:width].tolist()
            elif first < after:
                result = (values[begin::width] + values[self._place : end : width]).tolist()
            else:
                result = []
            if not math.isnan(sum(result)):  # nearly always
                return [*result]
            return [None if math.isnan(value) else value for value in result]
        return [self.at(second) for second in range(first, after)]


@dataclass(slots=True)
class HostState:
    """One host. ``past`` are its figures (``seconds``) by name (FIGURES): I/Os and bytes per
    second, ``wait`` the p99 in ns (without a job the mean time of the device's requests), ``await``
    that of the device in ns, ``util`` in percent. ``odd`` grows with how far it is from the others.
    """

    name: str
    state: str = CONNECTS
    error: str = ""
    seconds: SecondSeries = field(default_factory=lambda: SecondSeries(len(FIGURES)))
    past: dict[str, FigureHistory] = field(default_factory=dict)
    odd: float = 0.0
    session: Object | None = None
    step: Object | None = None
    ended: Object | None = None
    notes: deque[Object] = field(default_factory=lambda: deque(maxlen=MAX_NOTES))
    executed_ms: float | None = None
    error_ms: float = 0.0
    key: tuple[object, ...] = ()
    """By which names are sorted."""

    def __post_init__(self) -> None:
        self.key = natural_key(self.name)
        self.past = {name: FigureHistory(self.seconds, at) for at, name in enumerate(FIGURES)}

    def now(self, figure: str, second: int) -> float | None:
        """Return the value in this second."""
        return self.past[figure].at(second)


class FleetState:
    """``apply`` takes what is told, in order. ``second`` is the newest second in which anybody did
    anything, ``begun`` the number of the first one of the run that goes on, ``first`` that of the
    very first. ``between``: the hosts are watched between two runs, in which case a host that the
    run has lost, or that has failed, keeps that state with its reason; ``unwatched`` is why nobody
    is watched any more. ``seen``: a second of what goes on has come. ``curve`` is the sweep that
    runs or ran last."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.hosts: dict[str, HostState] = {}
        self.second: MergedSecond | None = None
        self.begun: int | None = None
        self.first: int | None = None
        self.medians = {name: FigureHistory() for name in (IOPS, WAIT, UTIL)}
        # by the seconds that are not over
        self._open: dict[int, list[HostSecond]] = {}
        self.sums = {name: FigureHistory() for name in (IOPS, BW)}
        self.running = self.watching = self.between = False
        self.unwatched = ""
        self.seen = False
        self.curve: ScalingCurve | None = None

    @property
    def number(self) -> int:
        """The newest second's; -1 while there is none."""
        return -1 if self.second is None else self.second.number

    def spread(self) -> tuple[float, float, int] | None:
        """Return the time between the first and the last start of fio (ms, by one clock), its error
        (ms), and the number of hosts; ``None``: fewer than two have begun."""
        started = [host for host in self.hosts.values() if host.executed_ms is not None]
        if len(started) < 2:
            return None
        starts = [(host.executed_ms or 0.0, host.error_ms) for host in started]
        return *start_spread(starts), len(started)

    def counts(self) -> dict[str, int]:
        """Number of hosts in each state."""
        counts: dict[str, int] = {}
        for host in self.hosts.values():
            counts[host.state] = counts.get(host.state, 0) + 1
        return counts

    def host(self, name: str) -> HostState:
        """A host by its name, a new one if need be."""
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = HostState(name)
        return host

    def apply(self, event: FleetEvent) -> None:
        """Process an event of a fleet or of its recording."""
        match event:
            case HostSecond():
                self._host_seconds((event,))
            case HostSeconds():
                self._host_seconds(event.of)
            case HostRow():
                self._row(self.host(event.name), event.row)
            case MergedSecond():
                self._second(event)
            case HostStateChanged():
                self._state(event)
            case FleetRunStarted():
                self._begun(event)
            case ReplayRestarted():
                self.forget()
            case ScalingCurve():
                self.curve = event
            case FleetRunFinished():
                self.running = self.between = False
                self.unwatched = event.said[0] if event.between and event.said else ""
                for line in self.hosts.values():
                    if line.state == MISSING and not event.between:
                        line.state, line.error = LOST, line.error or NO_END
                    elif line.state in ACTIVE_STATES:
                        # who has failed has said so by itself
                        line.state = STOPPED if event.how == FAILED else event.how

    def _begun(self, event: FleetRunStarted) -> None:
        self.running, self.watching, self.between = True, event.watching, event.between
        self.unwatched, self.seen = "", False
        if event.between:
            # rows and small lines go on where the run has left them
            return
        self.begun = None
        for line in self.hosts.values():
            line.state, line.error = RESTS, ""
            line.executed_ms = line.step = line.ended = None
        for name in event.hosts:
            self.host(name).state = CONNECTS

    def _state(self, event: HostStateChanged) -> None:
        line = self.host(event.name)
        if self.between and (line.state not in MEASURED or event.state not in (LATE, LOST)):
            return
        # what a second says of who is missing is newer than what the link says
        if event.state != RUNS or line.state not in (MISSING, PARTLY):
            line.state, line.error = event.state, event.error

    def _host_seconds(self, host_seconds: Iterable[HostSecond]) -> None:
        hosts, between = self.hosts, self.between
        for event in host_seconds:
            # the last ones in the order of FIGURES
            name, number, complete, *values = event
            if not complete:
                continue
            received = self._open.get(number)
            if received is None:
                received = self._open[number] = []
            received.append(event)
            line = hosts.get(name) or self.host(name)
            state = line.state
            if state in (CONNECTS, READY) or (between and state in (DONE, STOPPED, RESTS)):
                line.state = self._measured
            line.seconds.add(number, values)

    def _row(self, line: HostState, row: Object) -> None:
        kind = row["event"]
        if kind == "session":
            # what was noted before has the clock of another session
            line.notes.clear()
        if self.between and kind == "session":
            line.session, line.step, line.ended = row, None, None
        elif self.between and kind not in NOTE_EVENTS:
            return
        elif kind == "session":
            line.session, line.state = row, READY
        elif kind == "step_started":
            line.step, line.ended = row, None
        elif kind == "executed":
            self._executed(line, row)
        elif kind == "step_finished":
            line.ended = row
            line.error = printable(str(row.get("error") or ""))
            line.state = FAILED if line.error else DONE
        elif kind == "ended" and line.state != FAILED:
            line.state = DONE
        elif kind in NOTE_EVENTS:
            line.notes.append(row)

    def _executed(self, line: HostState, row: Object) -> None:
        wall, offset, error = (row.get(name) for name in ("wall_ms", "offset_ms", "error_ms"))
        line.state = RUNS
        if isinstance(wall, int | float) and isinstance(offset, int | float):
            line.executed_ms = wall - offset
            line.error_ms = float(error) if isinstance(error, int | float) else 0.0

    def _second(self, event: MergedSecond) -> None:
        if not event.counted and not event.missing:
            return
        self.second, self.seen = event, True
        self.begun = event.number if self.begun is None else self.begun
        self.first = event.number if self.first is None else self.first
        self._mark_missing_hosts(event)
        sums, complete = event.sums, event.counted == event.expected
        total = sums.total
        values: dict[str, float | None] = {IOPS: None, BW: None}
        if total is not None:
            values = {IOPS: total.iops, BW: total.bw}
        elif sums.kernel.hosts:  # no host has a device: nothing was measured, which is not 0
            rates = {name: sums.kernel.rate(name) or 0.0 for name in DISK_RATES}
            values = {IOPS: rates["r/s"] + rates["w/s"],
                      BW: (rates["rMB/s"] + rates["wMB/s"]) * MIB}  # fmt: skip
        for name, value in values.items():
            self.sums[name].add(event.number, value if complete else None)
        self._compare(event.number)

    @property
    def _measured(self) -> str:
        """The state of a host whose seconds come."""
        return WATCHED if self.watching else RUNS

    def _mark_missing_hosts(self, event: MergedSecond) -> None:
        missing, partly = {*event.missing}, {*event.incomplete}
        for line in self.hosts.values():
            if line.state in MEASURED:
                name, measured = line.name, self._measured
                line.state = MISSING if name in missing else PARTLY if name in partly else measured
        for name in missing:
            self.host(name)

    def _compare(self, second: int) -> None:
        """The middle of all hosts, and how odd each is."""
        seconds = self._open.pop(second, [])
        for late in [number for number in self._open if number < second]:
            del self._open[late]
        iops, wait = _middle(s.iops for s in seconds), _middle(s.wait_ns for s in seconds)
        self.medians[IOPS].add(second, iops)
        self.medians[WAIT].add(second, wait)
        self.medians[UTIL].add(second, _middle(s.util for s in seconds))
        hosts = self.hosts
        for host_second in seconds:
            line = hosts[host_second.name]
            now = max(ratio_log(host_second.iops, iops), ratio_log(host_second.wait_ns, wait))
            line.odd += ODD_SHARE * (now - line.odd)


def _middle(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return median(measured) if measured else None


def ratio_log(value: float | None, middle: float | None) -> float:
    """Distance from the middle in doublings (or halvings); 0 if undefined."""
    if not value or not middle or value < 0 or middle < 0:
        return 0.0
    return abs(math.log2(value / middle))


def sort_hosts(lines: Iterable[HostState], by: str, second: int) -> list[HostState]:
    """Sort by name, or by a figure: the slowest or most unusual first, hosts without it last."""
    return sorted(lines, key=order_key(by, second))


def order_key(by: str, second: int) -> Callable[[HostState], tuple[bool, float, object]]:
    """The sort key of hosts."""
    sign = 1.0 if by in (IOPS, BW) else -1.0

    def key(host: HostState) -> tuple[bool, float, object]:
        if by == "odd":
            return False, -host.odd, host.key
        value = host.now(by, second) if by in FIGURES else 0.0
        return value is None, sign * (value or 0.0), host.key

    return key


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


def span(names: Sequence[str]) -> str:
    """A row of hosts in a word: "node001-067", or both ends' names."""
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
    """ "97 of 100 hosts"; before the first second how many are ready."""
    second, total = state.second, len(state.hosts)
    if not state.running or (state.between and not state.seen):
        return counted(total, "host")
    if second is None or state.begun is None:
        hosts = [host for host in state.hosts.values() if host.state != RESTS]
        ready = sum(host.state != CONNECTS for host in hosts)
        return f"{ready} of {counted(len(hosts), 'host')} ready"
    watched = " watched" if state.between else ""
    expected = total if state.between else second.expected
    return f"{second.counted} of {counted(expected, 'host')}{watched}"
