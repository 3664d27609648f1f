"""A sub-fleet: the agent on a gateway runs a fleet of some hosts for the fleet above it.

Upwards it is one host: it says what all of its hosts need, that they are ready, when they started,
and each second's totals. It has heard nothing for 5 s, or its input ends: then its hosts are
stopped, as an agent stops its fio.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from iopstui.cli.fleet.agent_orders import launch_command
from iopstui.cli.fleet.process_limits import prepare_for_hosts
from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK
from iopstui.fleet.fleet import Fleet, FleetCallbacks, FleetOptions
from iopstui.fleet.hosts.free_space import SpaceNeed
from iopstui.fleet.hosts.member import INTERRUPTED, OVER, Member
from iopstui.fleet.hosts.nodes import Node, parse_nodes
from iopstui.fleet.merging.merger import MergedInterval, Merger
from iopstui.fleet.session import failed_hosts, failure_text
from iopstui.fleet.sub_fleet import StartOrder, marking_hosts, sub_fleet_disks, total_space_needs
from iopstui.output.fleet.rows import merged_object, second_object, session_object

Object = dict[str, Any]
HEARTBEAT_S = 1.0
"""How often a heartbeat is sent, even if there is nothing else to send."""


class SubFleet:
    """The fleet of ``order["fleet"]``. ``write`` sends a row upwards. It is its fleet's
    ``ParentFleet``: ``add_order`` gets the orders, in another thread."""

    def __init__(self, order: Object, write: Callable[[Object], None]) -> None:
        fleet = order["fleet"]
        self._write = write
        self._label = str(order.get("host") or "")
        self._order: Object = {name: order[name] for name in ("job", "frames") if name in order}
        nodes = parse_nodes(",".join(fleet["hosts"]))
        self._arguments = dict(zip((node.name for node in nodes), fleet["arguments"], strict=True))
        self._merger = Merger(fleet["interval"])
        self._orders: queue.SimpleQueue[Object] = queue.SimpleQueue()
        self._start_order: StartOrder | None = None
        self._may_lay_out = self._completed = False
        self._searching: list[str] | None = None
        self._space_needs: Mapping[str, Sequence[SpaceNeed]] = {}
        self._next_heartbeat_s = 0.0
        self._reported: set[str] = set()
        launcher, bring, sudo = fleet["launcher"], fleet["bring"], fleet["sudo"]
        self.fleet = Fleet(
            nodes,
            lambda node: launch_command(node, launcher, bring, sudo),
            self._order_for,
            self._merger,
            FleetOptions(
                fleet["least"], fleet["stop_on_loss"],
                assume_separate_filesystems=fleet["assume_apart"],
                connect_timeout_s=fleet["connect_timeout"], split_target=fleet["parts"],
            ),
            FleetCallbacks(
                self._send_message, self._send_second, lambda name, row: None, lambda second: "",
                lambda: self._completed,
            ),
            self,
        )  # fmt: skip
        self.fleet.on_tick = self._tick

    def _order_for(self, node: Node) -> Object:
        return {**self._order, "arguments": self._arguments[node.name]}

    # -- in the conversation's thread

    def add_order(self, order: Object) -> None:
        """Take an order from above."""
        self._orders.put(order)

    # -- in the fleet's thread

    def run(self) -> int:
        """Run it to its end; the exit code. Raises what Fleet.run raises."""
        prepare_for_hosts(len(self._arguments))
        self._write(session_object(self._label))
        self.fleet.run()
        self._report_executions()
        self._write(merged_object(self._merger, self._label))
        failed = failed_hosts(self.fleet)
        stopped = any(member.error == INTERRUPTED for member in self.fleet.members.values())
        if failed or stopped:
            error = f"{len(failed)} of its hosts failed or were lost: {failure_text(failed)}"
            self._write({
                "event": "failed", "error": error * bool(failed), "interrupted": not failed,
                "exit_code": EXIT_JOB_FAILED if failed else EXIT_INTERRUPTED,
            })  # fmt: skip
        self._write({"event": "ended", "exit_code": EXIT_OK})
        return EXIT_JOB_FAILED if failed else EXIT_INTERRUPTED if stopped else EXIT_OK

    def _send_message(self, text: str) -> None:
        self._write({"event": "said", "text": text})

    def _send_second(self, second: MergedInterval) -> None:
        self._write(second_object(second, self._label))

    def _tick(self) -> None:
        while not self._orders.empty():
            self._handle_order(self._orders.get())
        if self._searching is not None:
            self._report_marks()
        self._report_executions()
        now = time.monotonic()
        if now >= self._next_heartbeat_s:
            self._next_heartbeat_s = now + HEARTBEAT_S
            self._write({"event": "alive"})

    def _handle_order(self, order: Object) -> None:
        kind = order["op"]
        if kind == "lay_out":
            self._may_lay_out = True
        elif kind == "go":
            self._start_order = StartOrder(
                int(order["at_ns"]), float(order.get("offset_ms") or 0.0)
            )
        elif kind == "look":
            self._searching = marking_hosts(self._space_needs)
            for name in self._searching:
                self.fleet.members[name].search_marks(order["names"])
        elif kind == "stop":
            self._completed = order.get("completed") is True
            if not self.fleet.stop_reason:
                self.fleet.stop("the fleet above stops", self._completed)

    def _report_marks(self) -> None:
        """Send the marks that were seen, once all hosts have answered or are gone."""
        members = [self.fleet.members[name] for name in self._searching or ()]
        if all(member.seen_marks is not None or member.state == OVER for member in members):
            self._searching = None
            marks = {name for member in members for name in member.seen_marks or ()}
            self._write({"event": "seen", "names": sorted(marks)})

    def _report_executions(self) -> None:
        if len(self._reported) == len(self.fleet.members):
            return
        for name, member in self.fleet.members.items():
            if member.executed_ns is not None and name not in self._reported:
                self._reported.add(name)
                self._write({"event": "executed", "monotonic_ns": member.executed_ns,
                             "error_ns": member.error_ns})  # fmt: skip

    # -- as the fleet above

    def report_space_needs(self, needs: Mapping[str, Sequence[SpaceNeed]]) -> None:
        """Send what all hosts together would lay out."""
        self._space_needs = needs
        self._write({
            "event": "planned", "needs": [need.as_object() for need in total_space_needs(needs)]
        })  # fmt: skip

    def may_lay_out(self) -> bool:
        """Whether the order has come."""
        return self._may_lay_out

    def report_ready(self, members: Iterable[Member]) -> None:
        """Send that these hosts are ready."""
        ready = [*members]
        self._write({"event": "armed", "hosts": len(ready), "disks": sub_fleet_disks(ready)})

    def start_order(self) -> StartOrder | None:
        """The signal, once it has come."""
        return self._start_order
