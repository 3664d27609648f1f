"""The data shown on the dashboard: all hosts, or one host from the rows it sends."""

from __future__ import annotations

from dataclasses import replace

from iopstui.events import AnswerGiven, FindingReported, FrameReady
from iopstui.features.fleet.answer import ABSENT, absent_hosts, fleet_answer, is_due
from iopstui.features.fleet.controller import FleetController
from iopstui.features.fleet.findings import fleet_evidence, list_findings
from iopstui.features.fleet.fleet_events import FleetEvent, HostRow
from iopstui.features.fleet.fleet_state import (
    AWAIT,
    HISTORY_SECONDS,
    IOPS,
    WAIT,
    FleetState,
    HostState,
)
from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.merging.row_events import event_of, target_of
from iopstui.features.fleet.merging.sums import Object
from iopstui.text import printable
from iopstui.ui.port import Port
from iopstui.ui.state.live import DEVICE_IOPS, FIO_IOPS, LiveState


class HostView:
    """The state of one host, with its last minutes on the charts; ``apply`` takes its events."""

    def __init__(
        self, host: HostState, frame: Object | None, second: int, interval_s: float
    ) -> None:
        self.name = host.name
        self.host_state = host
        self.target = target_of(host.session)
        self.state = LiveState(self.target.opened)
        self._clock_shift_s = 0.0
        if host.step is not None:
            self._apply_row(host.step)
        if frame is not None:
            self._restore_history(host, frame, second, interval_s)
            self._apply_row(frame)
        for note in host.notes:
            self._apply_row(note)
        if host.answer is not None:
            self.state.apply(AnswerGiven(self.state.t, host.answer))
        if host.end_row is not None:
            self._apply_row(host.end_row)

    def _restore_history(
        self, host: HostState, frame: Object, second: int, interval_s: float
    ) -> None:
        event = event_of(frame, self.target.opened)
        if event is None:
            return
        # the last frame of a lost host is older than the fleet's newest second
        second = min(second, host.history[IOPS].last)
        for number in range(second + 1 - HISTORY_SECONDS, second):
            t = event.t - (second - number) * interval_s
            iops = host.value(IOPS, number)
            if t <= 0 or iops is None:
                continue
            fio = host.step is not None
            values = {FIO_IOPS if fio else DEVICE_IOPS: iops}
            wait = host.value(WAIT if fio else AWAIT, number)
            values |= {"p99" if fio else "r_await": wait} if wait is not None else {}
            self.state.history.add(t, interval_s, values)

    def apply(self, event: FleetEvent) -> None:
        if isinstance(event, HostRow) and event.name == self.name:
            self._apply_row(event.row)

    def _apply_row(self, row: Object) -> None:
        event = event_of(row, self.target.opened)
        match event:
            case FrameReady():
                self._apply_frame(event)
            case FindingReported(finding=found):
                times = [None if t is None else t + self._clock_shift_s
                         for t in (found.since, found.until)]  # fmt: skip
                # keys act on all hosts
                moved = replace(found, key="", test=(), since=times[0], until=times[1])
                self.state.apply(FindingReported(event.t + self._clock_shift_s, moved))
            case None:
                return
            case _:
                self.state.apply(replace(event, t=event.t + self._clock_shift_s))

    def _apply_frame(self, event: FrameReady) -> None:
        """Apply a frame unless it is older. A new session restarts the clock: watching after a run
        continues with the same state, a new run gets a new one."""
        previous, frame = self.state.frame, event.frame
        if previous is not None and frame.t < previous.t - self._clock_shift_s - 1:
            gap_s = max(0.0, frame.wall_ms - previous.wall_ms) / 1000
            run_ended = previous.step and not frame.step
            self._clock_shift_s = previous.t + gap_s - frame.t if run_ended else 0.0
            if not run_ended:
                self.state, previous = LiveState(self.target.opened), None
        t = frame.t + self._clock_shift_s
        if previous is None or t > previous.t:
            self.state.apply(FrameReady(t, replace(frame, t=t)))


class HostsSource:
    """The states of ``fleet``: ``all`` its totals, ``hosts`` a line each, and ``one`` host if it is
    shown. The shown state is that of ``port``."""

    def __init__(self, port: Port, fleet: FleetController) -> None:
        self.fleet = fleet
        self.hosts = FleetState()
        self.all = LiveState()
        self.one: HostView | None = None
        self._port = port
        # the host that was shown at the last position of the recording
        self._again = ""

    @property
    def odd_host(self) -> str:
        """The host that the answer on all of them is about; "": about no single one."""
        return self.all.answer.disk if self.all.answer is not None else ""

    def take_events(self) -> None:
        """Take what the fleet has told since."""
        events, one = self.fleet.events, self.one
        while events:
            event = events.popleft()
            self.hosts.apply(event)
            if one is not None:
                one.apply(event)
            if isinstance(event, MergedInterval) and is_due(self.hosts, event):
                self._judge(event)
        answer, second = self.all.answer, self.hosts.second
        if (answer is not None and answer.rule == ABSENT and second is not None
                and not absent_hosts(self.hosts)):  # fmt: skip
            self._judge(second)  # the host came again or has ended; perhaps no second follows
        host = self.hosts.hosts.get(self._again)
        # only once it has a second here: its newest frame may be from the last position
        if host is not None and host.session is not None and host.series.last >= 0:
            self.show(host.name)
        # the host on the screen has a new state if its session has begun again
        elif one is not None and self._port.state is not one.state:
            self._port.restart_state(one.state)

    def _judge(self, second: MergedInterval) -> None:
        state, evidence = self.all, fleet_evidence(self.hosts, second.interval_s)
        findings = list_findings(evidence)
        for finding in findings:
            state.apply(FindingReported(state.t, finding))
        answer = fleet_answer(self.hosts, evidence, findings)
        if answer is not None:
            state.apply(AnswerGiven(state.t, answer))

    def restart(self) -> None:
        """The recording continues elsewhere: show all hosts until the shown one has come again."""
        again = self.one.name if self.one is not None else self._again
        self.show_all()
        self._again = again
        self.all = LiveState(self.fleet.target.opened)
        self._port.restart_state(self.all)

    def show(self, name: str) -> None:
        """Show one host, and make it send all its figures."""
        host_state = self.hosts.hosts.get(name)
        if host_state is None or (self.one is not None and self.one.name == name):
            return
        if host_state.session is None:
            self._port.show_message("info", f"no data from {printable(name)} yet")
            return
        self._leave()
        second = self.hosts.second
        interval_s = second.interval_s if second is not None else 1.0
        frame = self.fleet.runs.frames.get(name)
        one = self.one = HostView(host_state, frame, self.hosts.number, interval_s)
        self.fleet.runs.detail(name, True)
        self._show(one.state)

    def show_all(self) -> None:
        shown = self.one is not None
        self._leave()
        if shown:
            self._show(self.all)

    def _leave(self) -> None:
        one, self.one, self._again = self.one, None, ""
        if one is not None:
            self.fleet.runs.detail(one.name, False)

    def _show(self, state: LiveState) -> None:
        if self.one is not None:
            self.fleet.show(self.one.name, self.one.target)
        else:
            self.fleet.show()
        self._port.state = state
        self._port.refresh_footer()
        self._port.restart_state(state)
