"""The runs shown on a fleet's screen: of connected hosts (session.py) or of a recording
(replay.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iopstui.features.fleet.fleet_events import FleetEvent
from iopstui.features.fleet.hosts.host_tunables import HostTunableChange, HostTunables
from iopstui.model.experiment.plan import Plan

Object = dict[str, Any]


class FleetRuns:
    """Orders do nothing if nothing can run. ``hosts`` are all names, in the order in which a sweep
    takes them, ``settings`` the tunables of their disks, ``frames`` their newest frames. Only
    frames of hosts in detail mode are emitted."""

    live = False

    def __init__(self, hosts: Sequence[str] = (), settings: HostTunables | None = None) -> None:
        self.hosts = hosts
        self.settings = settings or HostTunables()
        self.frames: dict[str, Object] = {}
        self._detailed_hosts: set[str] = set()

    def start(self, sink: Callable[[FleetEvent], None]) -> None:
        """Start to emit events, in the thread of the runs."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """True from the beginning of a run until it has ended completely."""
        return False

    def run(self, job: str, options: Mapping[str, str]) -> None:
        """Stop the current run, then run ``job`` ("": watch) with these options changed."""

    def sweep(self, plan: Plan) -> None:
        """Run the points of ``plan`` one after another, each on as many of the first hosts as it
        needs."""

    def stop(self) -> None:
        """Have all hosts stop; their last figures still come. It ends a sweep, too."""

    def kill(self) -> None:
        """Don't wait for the hosts any more; they stop by themselves."""

    def mark(self, text: str) -> None:
        """Keep a mark in the recording."""

    def detail(self, name: str, enabled: bool) -> None:
        """Have this host send all of its figures, or again only those for the totals."""
        (self._detailed_hosts.add if enabled else self._detailed_hosts.discard)(name)

    def is_shown(self, name: str, row: Object) -> bool:
        """Whether a host's row is emitted. Frames are kept, and emitted only in detail mode: for
        other hosts the merger's figures of each second are enough."""
        if row["event"] != "frame":
            return True
        self.frames[name] = row
        return name in self._detailed_hosts

    def request_settings(self) -> bool:
        """Ask all hosts for their disks' tunables; False if none is connected."""
        return False

    def change_tunable(self, change: HostTunableChange) -> None:
        """Have these hosts change a tunable; a ``HostTunableResult`` has each host's result."""

    def close(self) -> None:
        """Stop the current run and wait until it has ended completely."""
