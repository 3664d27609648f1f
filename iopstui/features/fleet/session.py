"""Run the fleet of a screen: its runs one after another, in a separate thread.

Each run has its own ``Fleet``, which is launched, started together and ended with nothing left
behind. Every change needs a new run. Between two runs, a fleet without a job watches the hosts. The
thread emits one stream of events (fleet_events.py)."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_OK,
    EXIT_VERDICT,
    Interrupted,
    IopstuiError,
)
from iopstui.experiment.runner import new_seed
from iopstui.features.fleet.fleet import Fleet, FleetCallbacks
from iopstui.features.fleet.fleet_events import (
    FleetEvent,
    FleetMessage,
    FleetRunFinished,
    FleetRuns,
    FleetRunStarted,
    HostFigures,
    HostFiguresBatch,
    HostRow,
    HostStateChanged,
    collect_figures,
)
from iopstui.features.fleet.fleet_state import (
    CONNECTING,
    DONE,
    FAILED,
    LATE,
    LEFT_OUT,
    LOST,
    READY,
    RUNNING,
    STOPPED,
)
from iopstui.features.fleet.host_sweep import HostSweep, RunVerdict, swept_options
from iopstui.features.fleet.hosts import member as states
from iopstui.features.fleet.hosts.host_tunables import HostTunableChange, HostTunables
from iopstui.features.fleet.hosts.member import INTERRUPTED, Member
from iopstui.features.fleet.merging.merger import MergedInterval, Merger
from iopstui.format import first_of
from iopstui.model.experiment.host_sweep import SweptPoint
from iopstui.model.experiment.plan import Plan, PlannedPoint
from iopstui.model.experiment.run_request import RunRequest
from iopstui.safety.crash import crash_sentence

Object = dict[str, Any]
STATES_EVERY_S = 0.5
MAX_REASONS = 2
PAUSE_BEFORE_WATCHING_S = 0.7
"""How long to wait after a run before watching the hosts, so that a key for another run need not
wait."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that is about to begin: its fleet, its merger and its first event. ``on_row`` records
    each line of a host, ``stop_reason`` returns why to end with this second, if so
    (``is_completed``: the job then counts as done), and ``judge`` returns the verdict at the
    end."""

    make_fleet: Callable[[FleetCallbacks], Fleet]
    merger: Merger
    start_event: FleetRunStarted
    on_row: Callable[[str, Object], None]
    stop_reason: Callable[[MergedInterval], str]
    judge: Callable[[Fleet], RunVerdict]
    is_completed: Callable[[], bool] = lambda: False


PlanRun = Callable[[int, str, Mapping[str, str], SweptPoint | None], PlannedRun]
"""Plans a run from its number, job, changed options and point of a sweep. Raises IopstuiError."""


class FleetSession(FleetRuns):
    """Runs on connected hosts. ``plan`` plans each run, ``watch`` plans the watching between two
    runs, ``note`` records a line."""

    live = True

    def __init__(
        self,
        plan: PlanRun,
        note: Callable[[Object], None] = lambda row: None,
        watch: Callable[[], PlannedRun] | None = None,
        settings: HostTunables | None = None,
        hosts: Sequence[str] = (),
    ) -> None:
        super().__init__(hosts, settings)
        self._plan = plan
        self._record = note
        self._plan_watch = watch
        self._between_runs = False
        self._emit: Callable[[FleetEvent], None] = lambda event: None
        self._requests: queue.SimpleQueue[RunRequest | Plan | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, name="fleet", daemon=True)
        self._fleet: Fleet | None = None
        self._number = 0
        self._next_report_s = 0.0
        self._closing = self._watching = self._sweeping = self._sweep_stopped = False
        self._reported_states: dict[str, tuple[str, str]] = {}

    # -- called by the screen

    def start(self, sink: Callable[[FleetEvent], None]) -> None:
        self._emit = sink
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._sweeping or (self._fleet is not None and not self._between_runs)

    def run(self, job: str, options: Mapping[str, str]) -> None:
        self._request(RunRequest(job, dict(options)))

    def sweep(self, plan: Plan) -> None:
        self._request(plan)

    def _request(self, order: RunRequest | Plan) -> None:
        # interrupt first, so that the run that this order starts is not stopped
        self._interrupt()
        self._requests.put(order)

    def stop(self) -> None:
        if not self._between_runs:
            self._sweep_stopped = True
            self._interrupt()

    def _interrupt(self) -> None:
        fleet = self._fleet
        if fleet is not None:
            fleet.interrupt()

    def mark(self, text: str) -> None:
        self._record({"event": "mark", "text": text, "wall_ms": time.time() * 1000})

    def detail(self, name: str, enabled: bool) -> None:
        super().detail(name, enabled)
        self._send_order(name, {"op": "detail", "on": enabled})

    def request_settings(self) -> bool:
        fleet, self.settings.requested = self._fleet, True
        for name in [*fleet.members] if fleet is not None else ():
            self._send_order(name, {"op": "tunables"})
        return fleet is not None

    def change_tunable(self, change: HostTunableChange) -> None:
        order = self.settings.make_order(change)
        for name, _ in change.hosts:
            self._send_order(name, order)

    def _send_order(self, name: str, order: Object) -> None:
        fleet = self._fleet
        if fleet is not None:
            fleet.send_order(name, order)

    def close(self) -> None:
        self._closing = True
        self._requests.put(None)
        self._interrupt()
        if self._thread.is_alive():
            self._thread.join()

    def kill(self) -> None:
        fleet = self._fleet
        if fleet is not None:
            fleet.kill()

    # -- called in the thread

    def _main(self) -> None:
        while (order := self._next_request()) is not None:
            if self._closing:
                return
            # if there are several orders by now, only the last one counts
            while not self._requests.empty():
                newer = self._requests.get()
                if newer is None:
                    return
                order = newer
            try:
                if isinstance(order, Plan):
                    self._sweep(order)
                else:
                    self._run_request(order)
            except Exception as error:  # an exception in a thread would not be seen
                message = crash_sentence(error)
                self._emit(FleetRunFinished(FAILED, EXIT_JOB_FAILED, (message,), (message,)))

    def _next_request(self) -> RunRequest | Plan | None:
        """Wait for the next request. Until it comes, the hosts of the last run are watched."""
        self.settings.start_session()
        self._report_tunable_results()
        if self._plan_watch is not None and self._number and not self._watching:
            try:
                return self._requests.get(timeout=PAUSE_BEFORE_WATCHING_S)
            except queue.Empty:
                pass
            try:
                self._watch_between(self._plan_watch())
            except IopstuiError as error:
                self._emit(FleetRunFinished(FAILED, messages=(error.full_text,), between_runs=True))
            except Exception as error:  # as above: an exception in a thread would not be seen
                self._emit(
                    FleetRunFinished(FAILED, messages=(crash_sentence(error),), between_runs=True)
                )
        return self._requests.get()

    def _watch_between(self, planned: PlannedRun) -> None:
        """Watch until a request comes, or no host is left."""
        self._between_runs = True
        fleet = self._start_fleet(planned)
        fleet.on_tick = lambda: self._tick_between(fleet)
        try:
            fleet.run()
        finally:
            self._fleet, self._between_runs = None, False
        reasons = () if fleet.stop_reason else (failure_text(failed_hosts(fleet)),)
        self._emit(FleetRunFinished(STOPPED, messages=reasons, between_runs=True))

    def _tick_between(self, fleet: Fleet) -> None:
        # an order may have come before there was a fleet to interrupt, so check again
        if not self._requests.empty():
            fleet.interrupt()
        self._report_host_states()

    def _sweep(self, plan: Plan) -> None:
        """Run the points one after another. If a point fails or is stopped, the earlier results are
        kept."""
        self._sweeping, self._sweep_stopped, seed = True, False, new_seed()

        def run(step: PlannedPoint) -> RunVerdict:
            point = SweptPoint(plan, step)
            return self._run_request(RunRequest(step.job, swept_options(point, seed)), point)

        try:
            HostSweep(
                plan, run, self._emit,
                lambda: self._sweep_stopped or not self._requests.empty(),
            ).run()  # fmt: skip
        finally:
            self._sweeping = False

    def _tick_point(self, fleet: Fleet) -> None:
        # the order that ends a sweep may have come before there was a fleet to interrupt, so check
        # again
        if self._sweep_stopped or not self._requests.empty():
            fleet.interrupt()
        self._report_host_states()

    def _run_request(self, request: RunRequest, point: SweptPoint | None = None) -> RunVerdict:
        self._number += 1
        try:
            planned = self._plan(self._number, request.job, request.overrides, point)
        except IopstuiError as error:
            messages = (error.full_text,)
            self._emit(FleetRunFinished(FAILED, error.exit_code, messages, messages))
            return RunVerdict(error.exit_code, messages, messages, ends_sweep=True)
        self._watching = planned.start_event.watching
        fleet = self._start_fleet(planned)
        fleet.on_tick = (
            self._report_host_states if point is None else lambda: self._tick_point(fleet)
        )
        state, verdict = self._run_planned(fleet, planned)
        sums = None if state is not None else planned.merger.run_sums()
        self._emit(
            FleetRunFinished(
                state or state_for_exit_code(verdict.code),
                verdict.code,
                verdict.messages,
                verdict.exit_lines,
                sums,
            )
        )
        return verdict

    def _start_fleet(self, planned: PlannedRun) -> Fleet:
        seconds = collect_figures(planned.merger)
        # no messages between runs: a host that can't be watched shows that in its row, and the
        # run's result stays on the screen
        report = _ignore if planned.start_event.between_runs else self.warn
        callbacks = FleetCallbacks(
            report, partial(self._emit_second, seconds),
            partial(self._handle_row, planned), planned.stop_reason, planned.is_completed,
        )  # fmt: skip
        self._reported_states = {}
        self.settings.start_session()
        fleet = self._fleet = planned.make_fleet(callbacks)
        self._emit(planned.start_event)
        return fleet

    def _run_planned(self, fleet: Fleet, planned: PlannedRun) -> tuple[str | None, RunVerdict]:
        """Run the planned job. Returns how it ended if it could not run, and its verdict."""
        try:
            fleet.run()
        except IopstuiError as error:
            self._emit_states(fleet)
            state = STOPPED if isinstance(error, Interrupted) else FAILED
            reason = failure_text(failed_hosts(fleet)) if state == FAILED else ""
            message = (
                f"{error.message.rstrip('.')}: {reason}. {error.hint}"
                if reason
                else error.full_text
            )
            return state, RunVerdict(
                error.exit_code, (message.strip(),), (error.full_text,), ends_sweep=True
            )
        finally:
            self._fleet = None
        self._emit_states(fleet)
        return None, planned.judge(fleet)

    def warn(self, text: str) -> None:
        self._emit(FleetMessage("warning", text))

    def _emit_second(self, seconds: list[HostFigures], second: MergedInterval) -> None:
        if seconds:
            self._emit(HostFiguresBatch(tuple(seconds)))
            seconds.clear()
        self._emit(second)

    def _handle_row(self, planned: PlannedRun, name: str, row: Object) -> None:
        kind = row["event"]
        if kind in ("tunables", "turned"):
            self.settings.take_answer(name, row)
            return
        planned.on_row(name, row)
        if not self.is_shown(name, row):
            return
        self._emit(HostRow(name, row))
        if kind != "session":
            return
        if name in self._detailed_hosts:
            self.detail(name, True)
        if self.settings.requested:
            self._send_order(name, {"op": "tunables"})

    def _report_host_states(self) -> None:
        now = time.monotonic()
        fleet = self._fleet
        if fleet is not None and fleet.has_changes and now >= self._next_report_s:
            self._next_report_s = now + STATES_EVERY_S
            fleet.has_changes = False
            self._emit_states(fleet)
        self._report_tunable_results()

    def _report_tunable_results(self) -> None:
        fleet = self._fleet
        members = fleet.members if fleet is not None else {}
        result = self.settings.result(
            name for name, member in members.items() if member.state == states.OVER
        )
        if result is not None:
            if result.changes:
                self.mark(f"{result.name} {result.value} on {', '.join(result.hosts)}")
            self._emit(result)

    def _emit_states(self, fleet: Fleet) -> None:
        for name, member in fleet.members.items():
            state = host_state(member, self._watching or self._between_runs)
            current = (state, "" if state == STOPPED else member.error)
            if self._reported_states.get(name) != current:
                self._reported_states[name] = current
                self._emit(HostStateChanged(name, *current))


def _ignore(message: str) -> None:
    """Ignore an event."""


def failed_hosts(fleet: Fleet) -> list[tuple[str, str]]:
    """Which hosts were lost, failed or refused, and why. Hosts that were only told to stop do not
    count."""
    return [
        (name, member.error) for name, member in fleet.members.items()
        if member.error and member.error != INTERRUPTED
    ]  # fmt: skip


def failure_text(failures: Sequence[tuple[str, str]]) -> str:
    """The failed hosts with their reasons, such as "node2 (its connection has ended)"; of many
    hosts only the first."""
    return first_of([f"{name} ({reason.rstrip('.')})" for name, reason in failures], MAX_REASONS)


def host_state(member: Member, watching: bool) -> str:
    """A host's state, in the words of the screen."""
    if member.state == states.OVER:
        has_started = member.executed_ns is not None
        if member.is_lost:
            return LOST
        if member.error == INTERRUPTED:
            return STOPPED
        return (FAILED if has_started else LEFT_OUT) if member.error else DONE
    if member.is_late:
        return LATE
    if member.state == states.STARTED:
        return RUNNING
    ready = (states.ARMED, states.GREETED) if watching else (states.ARMED,)
    return READY if member.state in ready else CONNECTING


def state_for_exit_code(code: int) -> str:
    """The state of a run by its exit code. A missed expectation does not mean that the run
    failed."""
    if code in (EXIT_OK, EXIT_VERDICT):
        return DONE
    return STOPPED if code == EXIT_INTERRUPTED else FAILED
