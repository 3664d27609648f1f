"""Tunables of many hosts' disks: their values, the changes requested and the results.

A host changes and restores them by its own rules, as for a run of its own (safety/tunables.py), and
restores them whenever its session ends, however that ends. What was changed is kept here, so that
each later session sets it again on the same hosts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iopstui.errors import UsageError
from iopstui.model.block.tunable import parse_tunable
from iopstui.safety.tunable_states import TunableState
from iopstui.text import printable

Object = dict[str, Any]
ANSWER_TIMEOUT_S = 5.0
"""After which a host that has not answered is said to have changed nothing."""
MAX_TUNABLES, MAX_DISKS, LONGEST = 64, 256, 400
NO_ANSWER = "no answer; it restores its changes when its session ends"
NOT_CONNECTED = "it is not connected, or has not sent its settings"


@dataclass(frozen=True, slots=True)
class HostTunable:
    """A tunable of a host's disks, as the host reports it: ``each`` are (disk, value); the rest is
    as in ``TunableState``."""

    name: str
    meaning: str
    takes: str
    values: tuple[str, ...]
    each: tuple[tuple[str, str], ...]
    refused: str = ""

    @property
    def now(self) -> str:
        """Return its value; several if the disks differ."""
        return "/".join(dict.fromkeys(value for _, value in self.each))


@dataclass(frozen=True, slots=True)
class HostTunableChange:
    """A requested change. ``hosts`` would make it, given with their current values; ``same``
    already have the value; ``out`` are (host, reason for leaving it out)."""

    name: str
    value: str
    hosts: tuple[tuple[str, HostTunable], ...]
    same: tuple[str, ...] = ()
    out: tuple[tuple[str, str], ...] = ()


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
        """Hosts that were changed."""
        return tuple(dict.fromkeys(host for host, *_ in self.changes))


def states_object(states: Sequence[TunableState], disk: str) -> list[Object]:
    """The tunables of an agent's disks as an object, without interrupts: their numbers differ
    between machines. ``disk`` is the first disk's name."""
    return [
        {
            "name": one.name, "meaning": one.meaning, "takes": one.takes,
            "values": list(one.values), "refused": one.refused,
            "each": [list(pair) for pair in one.each or ((disk, one.now),)],
        }
        for one in states if "/" not in one.name
    ]  # fmt: skip


def parse_host_tunables(row: Mapping[str, Any]) -> dict[str, HostTunable]:
    """Parse the tunables a host sends. What can't be understood is left out: it can't be changed
    then."""
    found = {}
    states = row.get("states")
    for one in (states if isinstance(states, list) else [])[:MAX_TUNABLES]:
        if isinstance(one, dict):
            name, each = _printable_value(one.get("name")), _pairs(one.get("each"), 2)
            if name and each:
                values = one.get("values")
                found[name] = HostTunable(
                    name, _printable_value(one.get("meaning")), _printable_value(one.get("takes")),
                    tuple(map(_printable_value, values)) if isinstance(values, list) else (),
                    tuple((disk, value) for disk, value in each),
                    _printable_value(one.get("refused")),
                )  # fmt: skip
    return found


def _printable_value(value: object) -> str:
    return printable(value[:LONGEST]) if isinstance(value, str) else ""


def _pairs(value: object, length: int) -> list[list[str]]:
    """Lists of so many words; [] for anything else."""
    if not isinstance(value, list):
        return []
    found = [
        [_printable_value(word) for word in one] for one in value[:MAX_DISKS]
        if isinstance(one, list) and len(one) == length
    ]  # fmt: skip
    return found if len(found) == len(value) else []


def merged_tunables(hosts: Mapping[str, Mapping[str, HostTunable]]) -> list[TunableState]:
    """All hosts' tunables as one list. ``values`` are those that any of them takes; it is refused
    only if all of them refuse."""
    found = []
    for name in dict.fromkeys(name for one in hosts.values() for name in one):
        there = {host: one[name] for host, one in hosts.items() if name in one}
        first = next(iter(there.values()))
        values = dict.fromkeys(value for one in there.values() for value in one.values)
        refused = [f"{host}: {one.refused}" for host, one in there.items() if one.refused]
        found.append(TunableState(
            name, first.meaning,
            "/".join(dict.fromkeys(now for one in there.values() for _, now in one.each)),
            tuple(values), ", ".join(values) or first.takes,
            tuple((f"{host} {disk}", now) for host, one in there.items() for disk, now in one.each),
            refused[0] if len(refused) == len(there) else "",
        ))  # fmt: skip
    return found


def plan_tunable_change(
    hosts: Iterable[str], known: Mapping[str, Mapping[str, HostTunable]], name: str, value: str
) -> HostTunableChange:
    """Hosts and disks that a change would affect. UsageError for a value that no device could
    take."""
    parse_tunable(f"{name}={value}")
    asked, same, out = [], [], []
    for host in hosts:
        one = known.get(host, {}).get(name)
        if one is None:
            out.append((host, f"its disk has no {name}" if known.get(host) else NOT_CONNECTED))
        elif one.values and value not in one.values:
            out.append((host, f"{one.each[0][0]} takes {', '.join(one.values)}"))
        elif one.refused:
            out.append((host, one.refused))
        elif all(now == value for _, now in one.each):
            same.append(host)
        else:
            asked.append((host, one))
    return HostTunableChange(name, value, tuple(asked), tuple(same), tuple(out))


@dataclass(slots=True)
class _PendingChange:
    """A change that is under way."""

    id: int
    turn: HostTunableChange
    waiting: set[str]
    until_s: float
    changes: list[tuple[str, str, str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


class HostTunables:
    """``known`` is what each host has said in the session that goes on, ``kept`` what was changed
    on it (name and value), for all sessions. ``begin`` forgets what belongs to a session; from the
    first question on (``wanted``) hosts are asked again in each."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, HostTunable]] = {}
        self.kept: dict[str, dict[str, str]] = {}
        self._before: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
        self._pending: _PendingChange | None = None
        self._number = 0
        self.wanted = False

    def start_session(self) -> None:
        """Another session of the hosts."""
        self.known = {}
        if self._pending is not None:
            self._pending.until_s = 0.0

    def initial_settings(self, host: str) -> list[list[str]]:
        """Tunables to set when a session of this host begins."""
        return [[name, value] for name, value in self.kept.get(host, {}).items()]

    @property
    def busy(self) -> bool:
        """While hosts are asked."""
        return self._pending is not None

    def ask(self, turn: HostTunableChange) -> Object:
        """The order for each of its hosts."""
        self._number += 1
        hosts = {host for host, _ in turn.hosts}
        self._pending = _PendingChange(
            self._number, turn, hosts, time.monotonic() + ANSWER_TIMEOUT_S
        )
        return {"op": "turn", "id": self._number, "name": turn.name, "value": turn.value}

    def take_answer(self, host: str, row: Mapping[str, Any]) -> None:
        """A host's answer."""
        if row.get("event") == "tunables":
            self.known = {**self.known, host: parse_host_tunables(row)}
            return
        asked = self._pending
        if asked is None or row.get("id") != asked.id or host not in asked.waiting:
            return
        asked.waiting.discard(host)
        each, error = _pairs(row.get("each"), 3), _printable_value(row.get("error"))
        if error or not each:
            hint = _printable_value(row.get("hint"))
            asked.failed.append((host, f"{error} {hint}".strip() or "no reason given"))
            return
        asked.changes += [(host, disk, before, now) for disk, before, now in each]
        self._keep_originals(host, asked.turn, each)

    def _keep_originals(
        self, host: str, turn: HostTunableChange, each: Sequence[Sequence[str]]
    ) -> None:
        """Keep the values from before the first change; those need not be set again."""
        first = self._before.setdefault(
            (host, turn.name), tuple((disk, before) for disk, before, _ in each)
        )
        kept = self.kept.setdefault(host, {})
        kept[turn.name] = turn.value
        if tuple((disk, now) for disk, _, now in each) == first:
            del kept[turn.name]

    def result(self, gone: Iterable[str] = ()) -> HostTunableResult | None:
        """The result of a requested change, once all hosts have answered, are ``gone`` or timed
        out; returned once."""
        asked = self._pending
        if asked is None:
            return None
        late = time.monotonic() >= asked.until_s
        for host in sorted(asked.waiting if late else asked.waiting & {*gone}):
            asked.waiting.discard(host)
            asked.failed.append((host, NO_ANSWER))
        if asked.waiting:
            return None
        self._pending = None
        turn = asked.turn
        # in the order in which they were named, not in that of their answers
        places = {host: at for at, (host, _) in enumerate(turn.hosts)}
        asked.changes.sort(key=lambda one: places[one[0]])
        asked.failed.sort(key=lambda one: places[one[0]])
        return HostTunableResult(turn.name, turn.value, tuple(asked.changes), tuple(asked.failed))


def are_words(value: object) -> bool:
    """Whether an order's ``tunables`` are [name, value] of tunables that there are."""
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 and is_setting(*one) for one in value
    )


def is_setting(name: object, value: object) -> bool:
    """Whether it can be set at once: a tunable of a disk's queue and a value of it."""
    if not isinstance(name, str) or not isinstance(value, str) or "/" in name or "\0" in value:
        return False
    try:
        return parse_tunable(f"{name}={value}").after_s is None
    except UsageError:
        return False
