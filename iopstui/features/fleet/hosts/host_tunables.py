"""Tunables of many hosts' disks: their values, the changes requested and the results.

A host changes them under the same rules as in a local run (safety/tunables.py), and restores them
at the end of its session, even if that is killed. Changes are kept here, so that each later session
makes them again on the same hosts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iopstui.errors import UsageError
from iopstui.format import counted, first_of
from iopstui.model.block.tunable import parse_tunable
from iopstui.safety.tunables import TunableState
from iopstui.text import printable

Object = dict[str, Any]
ANSWER_TIMEOUT_S = 5.0
"""A host that has not answered after this time is reported as unchanged."""
MAX_TUNABLES, MAX_DISKS, MAX_TEXT = 64, 256, 400
NO_ANSWER = "no answer; it restores its changes when its session ends"
MAX_NAMED = 5
RESTORED = (
    "Each host applies its own checks, and restores its present value when its session ends, "
    "however it ends. Later runs set the new value again."
)
NOT_CONNECTED = "it is not connected, or has not sent its settings"


@dataclass(frozen=True, slots=True)
class HostTunableChange:
    """A requested change. ``hosts`` would change, given with their present values; ``unchanged``
    hosts already have the value; ``excluded`` are (host, reason)."""

    name: str
    value: str
    hosts: tuple[tuple[str, TunableState], ...]
    unchanged: tuple[str, ...] = ()
    excluded: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """The change in a line: "nomerges 0 → 1 on 2 hosts"."""
        old_values = "/".join(dict.fromkeys(tunable.now for _, tunable in self.hosts))
        return f"{self.name} {old_values} → {self.value} on {counted(len(self.hosts), 'host')}"

    @property
    def text(self) -> str:
        """Each host with its disks and their values, and the hosts that will not change."""
        lines = [
            f"{host} " + ", ".join(f"{disk}: {now} → {self.value}" for disk, now in tunable.by_disk)
            for host, tunable in self.hosts
        ]
        if self.unchanged:
            lines += ["", f"Already {self.value} on: {', '.join(self.unchanged)}"]
        if self.excluded:
            lines += ["", "Left out (nothing is changed there):"]
        lines += [f"{host}: {reason}" for host, reason in self.excluded]
        return "\n".join([*lines, "", RESTORED])

    @property
    def no_hosts_reason(self) -> str:
        """Why no host can make the change."""
        if not self.excluded:
            return f"{self.name} is already {self.value} on all hosts"
        return f"no host can set {self.name} to {self.value}: {_reasons_text(self.excluded)}"


@dataclass(frozen=True, slots=True)
class HostTunableResult:
    """The result of a change: (host, disk, before, now) for each disk, and (host, reason) for
    hosts that changed nothing."""

    name: str
    value: str
    changes: tuple[tuple[str, str, str, str], ...]
    failed: tuple[tuple[str, str], ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that were changed."""
        return tuple(dict.fromkeys(host for host, *_ in self.changes))

    @property
    def mark(self) -> str:
        """The change as a mark on the charts: "nomerges 0 → 1"."""
        old_values = "/".join(dict.fromkeys(value for *_, value, _ in self.changes))
        return f"{self.name} {old_values} → {self._new_values}"

    @property
    def _new_values(self) -> str:
        return "/".join(dict.fromkeys(value for *_, value in self.changes))

    @property
    def text(self) -> str:
        """The hosts on which the tunable was changed, and those on which it was not, with the
        reason. If there are many hosts, only the first are named."""
        hosts, parts = self.hosts, []
        if hosts:
            parts.append(f"{self.name} is {self._new_values} on {counted(len(hosts), 'host')}: "
                         f"{first_of(hosts, MAX_NAMED)}")  # fmt: skip
        if self.failed:
            parts.append(f"{self.name} is not changed on {_reasons_text(self.failed)}")
        return "; ".join(parts)


def _reasons_text(reasons: Sequence[tuple[str, str]]) -> str:
    """The hosts by reason, such as "node2, node3 (its disk has no wbt_lat_usec)"."""
    hosts_by_reason: dict[str, list[str]] = {}
    for host, reason in reasons:
        hosts_by_reason.setdefault(reason.rstrip("."), []).append(host)
    return "; ".join(f"{', '.join(hosts)} ({text})" for text, hosts in hosts_by_reason.items())


def tunables_object(states: Sequence[TunableState], disk: str) -> list[Object]:
    """The tunables of an agent's disks as an object, without those of interrupts, whose numbers
    differ between machines. ``disk`` is the name of the first disk."""
    return [
        {
            "name": state.name, "meaning": state.meaning, "takes": state.allowed,
            "values": list(state.values), "refused": state.refused,
            "each": [list(pair) for pair in state.by_disk or ((disk, state.now),)],
        }
        for state in states if "/" not in state.name
    ]  # fmt: skip


def parse_host_tunables(row: Mapping[str, Any]) -> dict[str, TunableState]:
    """Parse the tunables that a host sends. The present value is a list if its disks differ.
    Invalid tunables are left out, so they can't be changed."""
    tunables = {}
    states = row.get("states")
    for state in (states if isinstance(states, list) else [])[:MAX_TUNABLES]:
        if isinstance(state, dict):
            name, disk_values = (
                _printable_value(state.get("name")),
                _text_rows(state.get("each"), 2),
            )
            if name and disk_values:
                values = state.get("values")
                tunables[name] = TunableState(
                    name, _printable_value(state.get("meaning")),
                    "/".join(dict.fromkeys(value for _, value in disk_values)),
                    tuple(map(_printable_value, values)) if isinstance(values, list) else (),
                    _printable_value(state.get("takes")),
                    tuple((disk, value) for disk, value in disk_values),
                    _printable_value(state.get("refused")),
                )  # fmt: skip
    return tunables


def _printable_value(value: object) -> str:
    return printable(value[:MAX_TEXT]) if isinstance(value, str) else ""


def _text_rows(value: object, length: int) -> list[list[str]]:
    """The value as lists of ``length`` words; [] if it is anything else."""
    if not isinstance(value, list):
        return []
    lists = [
        [_printable_value(text) for text in item] for item in value[:MAX_DISKS]
        if isinstance(item, list) and len(item) == length
    ]  # fmt: skip
    return lists if len(lists) == len(value) else []


def merged_tunables(hosts: Mapping[str, Mapping[str, TunableState]]) -> list[TunableState]:
    """The tunables of all hosts as one list. ``values`` are those that at least one host accepts; a
    tunable is refused only if all hosts refuse it."""
    states = []
    for name in dict.fromkeys(name for tunables in hosts.values() for name in tunables):
        by_host = {host: tunables[name] for host, tunables in hosts.items() if name in tunables}
        first = next(iter(by_host.values()))
        values = dict.fromkeys(value for tunable in by_host.values() for value in tunable.values)
        refused = [
            f"{host}: {tunable.refused}" for host, tunable in by_host.items() if tunable.refused
        ]
        states.append(TunableState(
            name, first.meaning,
            "/".join(dict.fromkeys(
                value for tunable in by_host.values() for _, value in tunable.by_disk)),
            tuple(values), ", ".join(values) or first.allowed,
            tuple((f"{host} {disk}", value)
                  for host, tunable in by_host.items() for disk, value in tunable.by_disk),
            refused[0] if len(refused) == len(by_host) else "",
        ))  # fmt: skip
    return states


def plan_tunable_change(
    hosts: Iterable[str], tunables: Mapping[str, Mapping[str, TunableState]], name: str, value: str
) -> HostTunableChange:
    """The hosts and disks that a change would affect. Raises UsageError for a value that no device
    accepts."""
    parse_tunable(f"{name}={value}")
    affected, unchanged, excluded = [], [], []
    for host in hosts:
        tunable = tunables.get(host, {}).get(name)
        if tunable is None:
            excluded.append(
                (host, f"its disk has no {name}" if tunables.get(host) else NOT_CONNECTED)
            )
        elif tunable.values and value not in tunable.values:
            excluded.append((host, f"{tunable.by_disk[0][0]} takes {', '.join(tunable.values)}"))
        elif tunable.refused:
            excluded.append((host, tunable.refused))
        elif all(current == value for _, current in tunable.by_disk):
            unchanged.append(host)
        else:
            affected.append((host, tunable))
    return HostTunableChange(name, value, tuple(affected), tuple(unchanged), tuple(excluded))


@dataclass(slots=True)
class _PendingChange:
    """A change that hosts are making."""

    id: int
    change: HostTunableChange
    unanswered: set[str]
    deadline_s: float
    changes: list[tuple[str, str, str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


class HostTunables:
    """The tunables of a fleet's hosts. ``by_host`` has each host's tunables in the current session,
    ``applied`` its changes (name and value) in all sessions. ``start_session`` drops the data of
    the last session. Once tunables were ``requested``, each new session asks the hosts for them."""

    def __init__(self) -> None:
        self.by_host: dict[str, dict[str, TunableState]] = {}
        self.applied: dict[str, dict[str, str]] = {}
        self._originals: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
        self._pending: _PendingChange | None = None
        self._number = 0
        self.requested = False

    def start_session(self) -> None:
        self.by_host = {}
        if self._pending is not None:
            self._pending.deadline_s = 0.0

    def initial_settings(self, host: str) -> list[list[str]]:
        """The tunables to set when a session of this host begins."""
        return [[name, value] for name, value in self.applied.get(host, {}).items()]

    @property
    def is_pending(self) -> bool:
        """Whether a change is being made."""
        return self._pending is not None

    def make_order(self, change: HostTunableChange) -> Object:
        self._number += 1
        hosts = {host for host, _ in change.hosts}
        self._pending = _PendingChange(
            self._number, change, hosts, time.monotonic() + ANSWER_TIMEOUT_S
        )
        return {"op": "turn", "id": self._number, "name": change.name, "value": change.value}

    def take_answer(self, host: str, row: Mapping[str, Any]) -> None:
        if row.get("event") == "tunables":
            self.by_host = {**self.by_host, host: parse_host_tunables(row)}
            return
        pending = self._pending
        if pending is None or row.get("id") != pending.id or host not in pending.unanswered:
            return
        pending.unanswered.discard(host)
        disk_changes, error = _text_rows(row.get("each"), 3), _printable_value(row.get("error"))
        if error or not disk_changes:
            hint = _printable_value(row.get("hint"))
            pending.failed.append((host, f"{error} {hint}".strip() or "no reason given"))
            return
        pending.changes += [(host, disk, before, now) for disk, before, now in disk_changes]
        self._keep_originals(host, pending.change, disk_changes)

    def _keep_originals(
        self, host: str, change: HostTunableChange, disk_changes: Sequence[Sequence[str]]
    ) -> None:
        """Keep the values from before the first change. A host that has them again needs no setting
        in later sessions."""
        first = self._originals.setdefault(
            (host, change.name), tuple((disk, before) for disk, before, _ in disk_changes)
        )
        settings = self.applied.setdefault(host, {})
        settings[change.name] = change.value
        if tuple((disk, now) for disk, _, now in disk_changes) == first:
            del settings[change.name]

    def result(self, ended_hosts: Iterable[str] = ()) -> HostTunableResult | None:
        """The result of a requested change, once all hosts have answered, timed out or are
        ``ended_hosts``; returned once."""
        pending = self._pending
        if pending is None:
            return None
        timed_out = time.monotonic() >= pending.deadline_s
        for host in sorted(
            pending.unanswered if timed_out else pending.unanswered & {*ended_hosts}
        ):
            pending.unanswered.discard(host)
            pending.failed.append((host, NO_ANSWER))
        if pending.unanswered:
            return None
        self._pending = None
        change = pending.change
        # sort by the hosts' order, not by the order of the answers
        positions = {host: index for index, (host, _) in enumerate(change.hosts)}
        pending.changes.sort(key=lambda row: positions[row[0]])
        pending.failed.sort(key=lambda failure: positions[failure[0]])
        return HostTunableResult(
            change.name, change.value, tuple(pending.changes), tuple(pending.failed)
        )


def are_settings(value: object) -> bool:
    """Whether ``tunables`` of an order are pairs [name, value] of existing tunables."""
    return isinstance(value, list) and all(
        isinstance(setting, list) and len(setting) == 2 and is_setting(*setting)
        for setting in value
    )


def is_setting(name: object, value: object) -> bool:
    """Whether a setting can be made at once: a disk's tunable with a valid value."""
    if not isinstance(name, str) or not isinstance(value, str) or "/" in name or "\0" in value:
        return False
    try:
        return parse_tunable(f"{name}={value}").after_s is None
    except UsageError:
        return False
