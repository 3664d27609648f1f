"""One host of a fleet: its link, clock and progress."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from iopstui import __version__
from iopstui.errors import EXIT_JOB_FAILED, EXIT_MISSING
from iopstui.fleet.hosts.clocks import Offset
from iopstui.fleet.hosts.free_space import SpaceNeed, parse_space_needs
from iopstui.fleet.hosts.json_objects import parse_object
from iopstui.fleet.hosts.link import Link
from iopstui.fleet.hosts.nodes import Node
from iopstui.fleet.hosts.orders import CAPABILITIES, HEARTBEAT, MAX_MONOTONIC_NS, SUMS
from iopstui.fleet.hosts.program_copy import bundle
from iopstui.text import printable

Object = dict[str, Any]
LAUNCHED, GREETED, ARMED, STARTED, OVER = "launched", "greeted", "armed", "started", "over"
ENOUGH_ANSWERS, START_ANSWERS = 12, 6
"""Answers to ping after which a clock is compared well enough, and how many more are asked for
right before the start."""
MAX_BROKEN = 100
MAX_SAID = 1000
"""Messages of a sub-fleet."""
LONGEST_WORDS = 400
MAX_AT_ONCE, MAX_PER_S = 64 << 20, 8 << 20
"""Bytes of a host's lines, which a recording keeps: at most so many, and so many more a second."""
FLEET_EVENTS = frozenset({"fleet", "fleet_over", "total", "merged"})
"""Events of whoever adds hosts up: no host has any, and in a recording they would count as ours."""
TOTALS = frozenset({"total", "merged"})
"""But a sub-fleet is who sends these."""
INTERRUPTED = "interrupted"
"""What a host says that was told to stop: no failure of its own."""
GREETING_TIMEOUT_S = 1.1
_HEARTBEAT = json.dumps({"op": HEARTBEAT}).encode() + b"\n"


class Member:
    """``take`` gets what has come and gives the rows that concern others. ``error`` says why it
    is over before its time, "" if it ended in order; ``exit_code`` is its own then. ``executed_ns``
    is when fio was executed, by our CLOCK_MONOTONIC, give or take ``error_ns``. ``no_probe`` says
    why its device's percentiles are missing though they were asked for.
    ``executions`` are all of them below, with their errors. ``said``: messages of a sub-fleet."""

    def __init__(self, node: Node, command: Sequence[str], order: Object) -> None:
        self.name = node.name
        below = order.get("fleet")
        self.below: tuple[str, ...] = tuple(below["hosts"]) if below else ()
        """The hosts of a sub-fleet; () for a single host."""
        self.armed_hosts = 0
        self.executions: list[tuple[int, int]] = []
        self.said: list[str] = []
        self.state = LAUNCHED
        self.offset = Offset()
        self.error = ""
        self.hint = ""
        self.exit_code = 0
        self.needs: list[SpaceNeed] | None = None
        self.seen: list[str] | None = None
        self.disks: list[Object] = []
        self.no_probe = ""
        self.broken = 0
        self.executed_ns: int | None = None
        self.error_ns = 0
        self.heard_ns = time.monotonic_ns()
        self.late = False
        self.lost = False
        self.link = Link(command)
        self._order = order
        self._start_ns: int | None = None
        self._wanted = ENOUGH_ANSWERS
        self._speaks: frozenset[str] = frozenset()
        self.boot = ""
        """The same on all hosts that are one machine, as far as it says."""
        self._ended = False
        self._came, self._floods = 0, False
        self._compared_ns = 0
        self._first_ns = self.heard_ns

    @property
    def hosts(self) -> int:
        """How many hosts it is: those of a sub-fleet that are ready, or may be."""
        return self.armed_hosts or max(1, len(self.below))

    @property
    def silent_s(self) -> float:
        """Since its last line."""
        return (time.monotonic_ns() - self.heard_ns) / 1e9

    @property
    def since_start_signal_s(self) -> float | None:
        """Since the instant at which it is to start; ``None``: it was told none."""
        return None if self._start_ns is None else (time.monotonic_ns() - self._start_ns) / 1e9

    def send_order(self, order: Object) -> None:
        """Send it an order."""
        self.link.send(json.dumps(order).encode() + b"\n")

    def ask(self) -> None:
        """Ask for its time; its heartbeat, too."""
        if self.state not in (LAUNCHED, OVER):
            self.send_order(self.offset.ask())

    def send_heartbeat(self) -> None:
        """The heartbeat alone: who speaks by itself need not be asked."""
        if HEARTBEAT not in self._speaks or self.silent_s > GREETING_TIMEOUT_S:
            self.ask()
        elif self.state not in (LAUNCHED, OVER):
            self.link.send(_HEARTBEAT)

    @property
    def compared(self) -> bool:
        """Whether as many answers have come as are wanted."""
        return self.offset.answers >= self._wanted

    @property
    def compared_for_s(self) -> float:
        """How long its clock is being compared; 0 if it is not."""
        if self.compared or self.state not in (GREETED, ARMED):
            return 0.0
        return (time.monotonic_ns() - self._compared_ns) / 1e9

    def compare(self) -> None:
        """Ask for its time some times more: what was known is old."""
        self._compared_ns = time.monotonic_ns()
        self._wanted = self.offset.answers + START_ANSWERS
        self.ask()

    def take_rows(self, data: bytes | None) -> list[Object]:
        """The rows of others in what came from its link (``Link.receive``)."""
        if data is None:
            self._connection_ended()
            return []
        rows, heard = [], False
        self._came += len(data)
        since_s = (time.monotonic_ns() - self._first_ns) / 1e9
        if self._came > MAX_AT_ONCE + since_s * MAX_PER_S and not self._floods:
            self._floods = True
            self.fail(f"it sends too much ({self._came >> 20} MiB in {since_s:.0f} s)")
            self.link.kill()
        if self._floods:
            # until its link has ended
            return []
        for line in self.link.lines(data):
            row = self._parsed(line)
            if row is None:
                self._refuse_garbage()
                continue
            heard = True
            if row["event"] == "frame" or self._handle_host_event(row):
                rows.append(row)
        if heard:
            self.heard_ns = time.monotonic_ns()
        if self.link.too_long:
            self.link.too_long = 0
            self._refuse_garbage(MAX_BROKEN)
        return rows

    def _parsed(self, line: bytes) -> Object | None:
        row = parse_object(line)
        kind = row.get("event") if row is not None else None
        foreign = kind in FLEET_EVENTS and not (self.below and kind in TOTALS)
        return row if isinstance(kind, str) and not foreign else None

    def _handle_host_event(self, row: Object) -> bool:
        """Whether it concerns others."""
        kind = row["event"]
        handlers: dict[str, Callable[[Object], None]] = {
            "send": self._send, "hello": self._hello, "lacks": self._report_missing,
            "failed": self._failed, "pong": self._measure_offset, "planned": self._planned,
            "seen": self._take_seen_marks, "armed": self._armed,
            "no_probe": self._without_probe, "alive": lambda row: None, "said": self._take_message,
        }  # fmt: skip
        if kind in handlers:
            handlers[kind](row)
            return False
        if kind == "executed":
            self._executed(row)
        elif kind == "step_finished" and (row.get("error") or row.get("exit_code")):
            self._failed(row)
        elif kind == "ended":
            self._ended = True
        return True

    def _executed(self, row: Object) -> None:
        at_ns = row.get("monotonic_ns")
        if isinstance(at_ns, int) and 0 <= at_ns < MAX_MONOTONIC_NS:
            self.state = STARTED
            self.executed_ns = at_ns - self.offset.mono_ns
            below_ns = row.get("error_ns")
            valid = self.below and isinstance(below_ns, int) and 0 <= below_ns < MAX_MONOTONIC_NS
            more_ns = int(below_ns or 0) if valid else 0
            self.error_ns = self.offset.error_at(self.executed_ns) + more_ns
            if len(self.executions) < self.hosts:
                self.executions.append((self.executed_ns, self.error_ns))

    def _send(self, row: Object) -> None:
        self.link.send(bundle())

    def _hello(self, row: Object) -> None:
        if self.state != LAUNCHED:
            return
        if row.get("iopstui") != __version__:
            version = _text_of(row, "iopstui")
            self.fail(f"it has iopstui {version}, this machine has {__version__}",
                      "To copy this version there: --bring")  # fmt: skip
            return
        self.state = GREETED
        self._compared_ns = time.monotonic_ns()
        self.boot = _text_of(row, "boot")
        capabilities = row.get("speaks")
        self._speaks = frozenset(
            name for name in CAPABILITIES if type(capabilities) is list and name in capabilities
        )
        self.ask()
        self.send_order(
            {"op": "begin", "host": self.name, "plan": True, "frames": SUMS, **self._order}
        )

    def _report_missing(self, row: Object) -> None:
        missing, why = _text_of(row, "what"), _text_of(row, "why")
        hint = ""
        if row.get("user"):
            line = f"{_text_of(row, 'user')} ALL=(root) NOPASSWD: ALL"
            hint = f"There: echo '{line}' | sudo EDITOR='tee -a' visudo, or name root@{self.name}."
        self.fail(f"it lacks {missing}{f' ({why})' if why else ''}", hint, EXIT_MISSING)

    def _failed(self, row: Object) -> None:
        code = row.get("exit_code")
        message = _text_of(row, "error")
        interrupted = bool(row.get("interrupted")) and not message
        self.fail(INTERRUPTED if interrupted else message, _text_of(row, "hint"),
                  code if isinstance(code, int) else EXIT_JOB_FAILED)  # fmt: skip

    def _measure_offset(self, row: Object) -> None:
        answer = self.offset.answered(row, time.monotonic_ns())
        if answer and not self.compared:
            self.ask()

    def _planned(self, row: Object) -> None:
        self.needs = parse_space_needs(row)
        if self.needs is None:
            self._refuse_garbage(MAX_BROKEN)

    def look_for(self, names: Sequence[str]) -> None:
        """Have it say which of these scratch directories are beside its own: ``seen``."""
        self.send_order({"op": "look", "names": [*names]})

    def _take_seen_marks(self, row: Object) -> None:
        names = row.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            self.seen = names
        else:
            self._refuse_garbage(MAX_BROKEN)

    def _armed(self, row: Object) -> None:
        disks = row.get("disks")
        if type(disks) is not list:
            disks = []
        self.disks = [disk for disk in disks if isinstance(disk, dict)]
        hosts = row.get("hosts")
        if self.below and type(hosts) is int and 0 < hosts <= len(self.below):
            self.armed_hosts = hosts
        if self.state == GREETED:
            self.state = ARMED

    def _take_message(self, row: Object) -> None:
        if self.below and len(self.said) < MAX_SAID:
            self.said.append(_text_of(row, "text"))

    def _without_probe(self, row: Object) -> None:
        self.no_probe = _text_of(row, "why")

    def _refuse_garbage(self, weight: int = 1) -> None:
        self.broken += weight
        if self.broken >= MAX_BROKEN and self.state != OVER:
            self.fail("it sent something that is not an agent's answer", code=EXIT_JOB_FAILED)
            self.link.kill()

    def _connection_ended(self) -> None:
        if self._ended or self.error:
            self.state = OVER
            return
        if self.link.err >= 0:
            # both streams ended, and the other one says why
            self.link.errors()
        stderr = printable(self.link.last_words)
        self.fail(f"its connection has ended{f': {stderr}' if stderr else ''}")
        self.lost = True

    def fail(self, error: str, hint: str = "", code: int = EXIT_JOB_FAILED) -> None:
        """Mark the host as failed; the first reason stays."""
        self.error, self.hint = self.error or error or "it failed", self.hint or hint
        self.exit_code = self.exit_code or code
        self.state = OVER

    def go(self, at_ns: int) -> None:
        """Start it at this instant of our CLOCK_MONOTONIC."""
        self._start_ns = at_ns
        self.send_order({
            "op": "go", "at_ns": at_ns + self.offset.mono_ns,
            "offset_ms": round(self.offset.wall_ms, 6),
            "error_ms": round(self.offset.error_at(at_ns) / 1e6, 6),
        })  # fmt: skip

    def stop(self, completed: bool = False) -> None:
        """Have it stop; it puts everything back by itself. ``completed``: its job is done."""
        self.send_order({"op": "stop", **({"completed": True} if completed else {})})

    def give_up(self, why: str, hint: str = "") -> None:
        """Mark the host as lost: it does not answer."""
        self.fail(why, hint)
        self.lost = True
        self.link.kill()


def _text_of(row: Object, key: str) -> str:
    """A text of a host's for people; "" without one."""
    return printable(str(row.get(key) or "")[:LONGEST_WORDS])
