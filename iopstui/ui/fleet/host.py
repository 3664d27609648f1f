"""The dashboard of one host of a fleet, from the rows it sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from iopstui.events import Event, FindingReported, FrameReady
from iopstui.fleet.fleet_events import FleetEvent, HostRow
from iopstui.fleet.fleet_state import ABSENT_STATES, AWAIT, HISTORY_SECONDS, IOPS, WAIT, HostState
from iopstui.fleet.merging.row_events import event_of, target_of
from iopstui.fleet.merging.sums import Object
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.safety.tunable_states import TunableState
from iopstui.text import printable
from iopstui.ui.dashboard.panels.registry import PANELS, Panel, PanelData
from iopstui.ui.dashboard.screen import Dashboard, Strip
from iopstui.ui.draw.rows import Line, message, pad, rule
from iopstui.ui.draw.rows import Row as DrawnRow
from iopstui.ui.draw.style import BOLD, DIM, ERROR, Charset
from iopstui.ui.state.live import DEVICE_IOPS, FIO_IOPS, LiveState

HISTORY_S = HISTORY_SECONDS
NO_CPUS = "no CPU figures: a host sends them only while it is shown"


class HostController:
    """Session of one host for the dashboard; the host itself is elsewhere."""

    bind = False
    running = False
    disk_use = None
    job: str | None = None

    def __init__(self, target: Target, host: str) -> None:
        self.target, self.host = target, host
        self.devices: Mapping[str, BlockDevice] = {}
        self.overrides: dict[str, str] = {}

    def start(self, sink: Callable[[Event], None]) -> None:
        """Do nothing: it runs already."""

    def run_job(self, job: str, overrides: Mapping[str, str], *, mark: str = "") -> None:
        """Do nothing: only all hosts run a job."""

    def stop_job(self) -> None:
        """Do nothing: only all hosts stop a job."""

    def mark(self, text: str) -> None:
        """Do nothing: only all hosts are marked."""

    def set_tunable(self, name: str, value: str) -> None:
        """Do nothing: nothing is set on one host."""

    def knobs(self) -> Sequence[TunableState]:
        """Return no tunables."""
        return ()

    def topology(self) -> Topology:
        """Return an empty topology: not known here."""
        return Topology()

    def close(self) -> None:
        """Do nothing: it ends with the fleet."""


class HostView:
    """The state of one host, with its last minutes on the charts; ``apply`` takes its events."""

    def __init__(
        self, host: HostState, frame: Object | None, second: int, interval_s: float
    ) -> None:
        self.name = host.name
        self.host_state = host
        self.controller = HostController(target_of(host.session), host.name)
        self._paths = self.controller.target.opened
        self.state = LiveState(self._paths)
        self._clock_shift_s = 0.0
        if host.step is not None:
            self._apply_row(host.step)
        if frame is not None:
            self._restore_history(host, frame, second, interval_s)
            self._apply_row(frame)
        for note in host.notes:
            self._apply_row(note)
        if host.end_row is not None:
            self._apply_row(host.end_row)

    def _restore_history(
        self, host: HostState, frame: Object, second: int, interval_s: float
    ) -> None:
        event = event_of(frame, self._paths)
        if event is None:
            return
        # the last frame of a lost host is older than the fleet's newest second
        second = min(second, host.history[IOPS].last)
        for number in range(second + 1 - HISTORY_S, second):
            t = event.t - (second - number) * interval_s
            iops = host.value(IOPS, number)
            if t <= 0 or iops is None:
                continue
            fio = host.step is not None
            values = {FIO_IOPS if fio else DEVICE_IOPS: iops}
            wait = host.value(WAIT if fio else AWAIT, number)
            values |= {"p99" if fio else "r_await": wait} if wait is not None else {}
            self.state.history.add(t, interval_s, values)

    def apply(self, event: FleetEvent) -> bool:
        """Apply a row of this host; False for another host's."""
        if not isinstance(event, HostRow) or event.name != self.name:
            return False
        self._apply_row(event.row)
        return True

    def _apply_row(self, row: Object) -> None:
        event = event_of(row, self._paths)
        match event:
            case FrameReady():
                self._apply_frame(event)
            case FindingReported(finding=found):
                times = [None if t is None else t + self._clock_shift_s
                         for t in (found.since, found.until)]  # fmt: skip
                # keys act on all hosts, on the fleet's screen
                moved = replace(found, key="", test=(), since=times[0], until=times[1])
                self.state.apply(FindingReported(event.t + self._clock_shift_s, moved))
            case None:
                return
            case _:
                self.state.apply(replace(event, t=event.t + self._clock_shift_s))

    def _apply_frame(self, event: FrameReady) -> None:
        """Apply a frame unless it is older. A new session restarts its clock: watching after a run
        continues in the same state, a new run has a new state."""
        previous, frame = self.state.frame, event.frame
        if previous is not None and frame.t < previous.t - self._clock_shift_s - 1:
            gap_s = max(0.0, frame.wall_ms - previous.wall_ms) / 1000
            run_ended = previous.step and not frame.step
            self._clock_shift_s = previous.t + gap_s - frame.t if run_ended else 0.0
            if not run_ended:
                self.state, previous = LiveState(self._paths), None
        t = frame.t + self._clock_shift_s
        if previous is None or t > previous.t:
            self.state.apply(FrameReady(t, replace(frame, t=t)))


def _cpu_rows(panel: Panel) -> Callable[[PanelData, int, int], Sequence[DrawnRow]]:
    """The CPUs, or why there are none."""

    def rows(data: PanelData, width: int, height: int) -> Sequence[DrawnRow]:
        frame = data.state.frame
        if frame is None or frame.cpus:
            return panel.rows(data, width, height)
        title = rule(width, data.charset, ("CPUs, this second", BOLD))
        return pad([title, message(width, data.charset, NO_CPUS)], height, width)

    return rows


class HostDashboard(Dashboard):
    """Dashboard of one host, with its name at the top."""

    about = "One host of the fleet. Esc returns to all hosts."
    quit_label = "back"
    has_controls = saves_layout = has_heat_cells = False

    def __init__(self, view: HostView, charset: Charset, strip: Strip) -> None:
        panes = tuple(
            replace(panel, rows=_cpu_rows(panel)) if panel.name == "cpus" else panel
            for panel in PANELS if panel.name != "runs"
        )  # fmt: skip
        super().__init__(view.controller, view.state, charset, strip, panes)
        self._host_name = view.name
        self._host_state = view.host_state

    def title_line(self, width: int) -> DrawnRow:
        """The host's name and its target."""
        target = self.controller.target
        line = Line(width, self.charset).add(f" {printable(self._host_name)}  ", BOLD)
        if self._host_state.state in ABSENT_STATES:
            reason = f": {printable(self._host_state.error)}" if self._host_state.error else ""
            line.add(f"{self._host_state.state}{reason}  ", ERROR)
        line.add(target.path)
        devices = ", ".join(target.devices_below)
        if devices and target.path != f"/dev/{devices}":
            line.add(f" on {devices}" if target.path else devices)
        if not devices:
            line.add(f"  {target.no_device}", DIM)
        return line.build()
