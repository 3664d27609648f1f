"""The ordered event stream of a fleet for a screen, live or replayed from a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from iopstui.features.fleet.host_sweep import SweepEvent
from iopstui.features.fleet.hosts.host_tunables import (
    HostTunableChange,
    HostTunableResult,
    HostTunables,
)
from iopstui.features.fleet.merging.encoded_frame import EncodedFrame
from iopstui.features.fleet.merging.host_timeline import HostInterval
from iopstui.features.fleet.merging.merger import MergedInterval, Merger
from iopstui.features.fleet.merging.sums import DISK_RATES, MILLI, HostSums
from iopstui.model.experiment.host_sweep import SweptPoint
from iopstui.model.experiment.plan import Plan

Object = dict[str, Any]
FLEET, FLEET_OVER = "fleet", "fleet_over"
"""The events with which a run begins and ends in a recording."""


class HostFigures(NamedTuple):
    """A host's figures in one second, as the merger counts it: I/Os and bytes per second,
    ``wait_ns`` the p99 of fio's I/Os (``await_ns`` if there is no fio), ``await_ns`` the mean time
    of the device's requests, ``util`` in percent. ``complete`` is False if the second is left out
    of the totals. A figure that was not measured is ``None``."""

    name: str
    number: int
    complete: bool
    iops: float | None = None
    bw: float | None = None
    wait_ns: float | None = None
    await_ns: float | None = None
    util: float | None = None


class HostFiguresBatch(NamedTuple):
    """Closed seconds of many hosts, in order of arrival: one event for a thousand hosts."""

    seconds: tuple[HostFigures, ...]


@dataclass(frozen=True, slots=True)
class HostRow:
    """A row received from a host."""

    name: str
    row: Object


@dataclass(frozen=True, slots=True)
class HostStateChanged:
    """A host's new state (fleet_state.py lists them); ``error`` is the reason if it ended early."""

    name: str
    state: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class FleetMessage:
    """A message for people. ``level`` is "info", "warning", "error" or "mark"."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class FleetRunStarted:
    """Run ``number`` of these ``hosts`` begins at ``wall_s`` since 1970. ``watching``: without a
    job. ``between_runs``: this is no run; the hosts are watched until the next one. ``point`` is
    the point of a sweep, if it is one."""

    number: int
    hosts: tuple[str, ...]
    wall_s: float
    job: str = ""
    watching: bool = False
    between_runs: bool = False
    point: SweptPoint | None = None


@dataclass(frozen=True, slots=True)
class FleetRunFinished:
    """The run is over. ``state`` is the hosts' new state (fleet_state.py), ``code`` the exit code.
    The screen shows ``messages``, and prints ``exit_lines`` at its end. ``sums`` are the sums over
    all hosts. ``between_runs``: the hosts were only watched between two runs; ``messages`` then
    says why that ended."""

    state: str
    code: int = 0
    messages: tuple[str, ...] = ()
    exit_lines: tuple[str, ...] = ()
    sums: HostSums | None = None
    between_runs: bool = False


@dataclass(frozen=True, slots=True)
class ReplayRestarted:
    """The replay has jumped to another position: discard all earlier events."""


FleetEvent = (
    ReplayRestarted | SweepEvent | HostFigures | HostFiguresBatch | HostRow
    | HostStateChanged | FleetMessage | FleetRunStarted | FleetRunFinished | MergedInterval
    | HostTunableResult
)  # fmt: skip


def host_figures(name: str, interval: HostInterval, complete: bool) -> HostFigures:
    """A host's figures in a second, from the merger's data."""
    data = interval.data
    if isinstance(data, EncodedFrame) and data.fio:
        # the usual case
        iops_m, bw_m, p99_ns, requests, wait = data.second_figures
        return HostFigures(
            name, interval.number, complete, iops_m / MILLI, bw_m / MILLI,
            float(p99_ns) if p99_ns else None, wait * 1000 / requests if requests else None,
            interval.util,
        )  # fmt: skip
    if isinstance(data, EncodedFrame):
        kernel, total, slowest = data.kernel, None, None
    else:
        sums = interval.sums
        kernel, total, slowest = sums.kernel, sums.fio.get("total"), sums.slowest
    # waits are in thousandths of a millisecond
    await_ns = kernel.waits * 1000 / kernel.requests if kernel.requests else None
    if total is not None:
        p99 = float(slowest[0]) if slowest else None
        return HostFigures(name, interval.number, complete, total.iops, total.bw, p99, await_ns,
                          interval.util)  # fmt: skip
    if not kernel.hosts:
        return HostFigures(name, interval.number, False)
    numbers = kernel.numbers
    reads, writes, read_mib, write_mib = (numbers[name] for name in DISK_RATES[:4])
    iops, bw = (reads + writes) / MILLI, (read_mib + write_mib) / MILLI * (1 << 20)
    return HostFigures(name, interval.number, complete, iops, bw, await_ns, await_ns, interval.util)


def collect_figures(merger: Merger) -> list[HostFigures]:
    """A list to which the merger adds the figures of each host in each second that it counts."""
    seconds: list[HostFigures] = []

    def add_interval(name: str, interval: HostInterval, is_counted: bool) -> None:
        # a host that is not counted has no figures
        if is_counted:
            seconds.append(host_figures(name, interval, is_counted))

    merger.on_interval = add_interval
    return seconds


# The runs that a fleet's screen shows: of connected hosts (session.py), or of a recording
# (replay.py).


class FleetRuns:
    """The runs of a fleet. The methods that give orders do nothing here; a subclass that can run
    jobs overrides them. ``hosts`` are all names, in the order in which a sweep takes them,
    ``settings`` the tunables of their disks, ``frames`` their newest frames. Only frames of hosts
    in detail mode are emitted."""

    live = False

    def __init__(self, hosts: Sequence[str] = (), settings: HostTunables | None = None) -> None:
        self.hosts = hosts
        self.settings = settings or HostTunables()
        self.frames: dict[str, Object] = {}
        self._detailed_hosts: set[str] = set()

    def start(self, sink: Callable[[FleetEvent], None]) -> None:
        """Begin to emit events, in the thread of the runs."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """Whether a run has begun and not yet ended completely."""
        return False

    def run(self, job: str, options: Mapping[str, str]) -> None:
        """Stop the current run, then run ``job`` ("": watch the disks) with these options
        changed."""

    def sweep(self, plan: Plan) -> None:
        """Run the points of ``plan`` one after another, each on the number of hosts that it
        needs."""

    def stop(self) -> None:
        """Make all hosts stop; their last figures still arrive. This also ends a sweep."""

    def kill(self) -> None:
        """Stop waiting for the hosts; they stop by themselves."""

    def mark(self, text: str) -> None:
        """Record a mark."""

    def detail(self, name: str, enabled: bool) -> None:
        """Make this host send all of its figures, or again only those for the totals."""
        (self._detailed_hosts.add if enabled else self._detailed_hosts.discard)(name)

    def is_shown(self, name: str, row: Object) -> bool:
        """Whether a host's row is emitted. Frames are kept, but emitted only in detail mode,
        because otherwise the merger's figures of each second are enough."""
        if row["event"] != "frame":
            return True
        self.frames[name] = row
        return name in self._detailed_hosts

    def request_settings(self) -> bool:
        """Ask all hosts for their disks' tunables. Returns False if no host is connected."""
        return False

    def change_tunable(self, change: HostTunableChange) -> None:
        """Make these hosts change a tunable; a ``HostTunableResult`` has the result of each
        host."""

    def close(self) -> None:
        """Stop the current run and wait until it has ended completely."""
