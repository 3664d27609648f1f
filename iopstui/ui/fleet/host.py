"""A host of a fleet on a dashboard of its own, from the lines it sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from iopstui.events import Event, FindingReported, FrameReady
from iopstui.fleet.fleet_events import FleetEvent, HostRow
from iopstui.fleet.fleet_state import ABSENT_STATES, AWAIT, IOPS, KEPT_SECONDS, WAIT, HostState
from iopstui.fleet.merging.row_events import event_of, target_of
from iopstui.fleet.merging.sums import Object
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.safety.tunable_states import TunableState
from iopstui.text import printable
from iopstui.ui.dashboard.panels.registry import PANELS, Panel, PanelData
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.draw.rows import Line, message, pad, rule
from iopstui.ui.draw.rows import Row as DrawnRow
from iopstui.ui.draw.style import BOLD, DIM, ERROR, Charset
from iopstui.ui.state.live import DEVICE_IOPS, FIO_IOPS, LiveState

HISTORY_S = KEPT_SECONDS
NO_CPUS = "no CPU figures: a host sends them only while it is shown"


class HostController:
    """Session of one host for the dashboard; the host itself is elsewhere."""

    bind = False
    running = False
    job: str | None = None

    def __init__(self, target: Target) -> None:
        self.target = target
        self.devices: Mapping[str, BlockDevice] = {}
        self.overrides: dict[str, str] = {}

    def start(self, sink: Callable[[Event], None]) -> None:
        """Do nothing: it runs already."""

    def run_job(self, job: str, overrides: Mapping[str, str]) -> None:
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
    """The state of one host from now on, with its last minutes on the charts; ``apply`` takes what
    is told of it."""

    def __init__(
        self, line: HostState, frame: Object | None, second: int, interval_s: float
    ) -> None:
        self.name = line.name
        self.line = line
        self.controller = HostController(target_of(line.session))
        self._opened = self.controller.target.opened
        self.state = LiveState(self._opened)
        self._shift_s = 0.0
        if line.step is not None:
            self._row(line.step)
        if frame is not None:
            self._take_late_frame(line, frame, second, interval_s)
            self._row(frame)
        for note in line.notes:
            self._row(note)
        if line.ended is not None:
            self._row(line.ended)

    def _take_late_frame(
        self, line: HostState, frame: Object, second: int, interval_s: float
    ) -> None:
        event = event_of(frame, self._opened)
        if event is None:
            return
        # the frame of one that is gone is of its own last second, not of all hosts'
        second = min(second, line.past[IOPS].last)
        for at in range(second + 1 - HISTORY_S, second):
            t = event.t - (second - at) * interval_s
            iops = line.now(IOPS, at)
            if t <= 0 or iops is None:
                continue
            fio = line.step is not None
            values = {FIO_IOPS if fio else DEVICE_IOPS: iops}
            wait = line.now(WAIT if fio else AWAIT, at)
            values |= {"p99" if fio else "r_await": wait} if wait is not None else {}
            self.state.history.add(t, interval_s, values)

    def apply(self, event: FleetEvent) -> bool:
        """Take a line of this host; False if it is another's."""
        if not isinstance(event, HostRow) or event.name != self.name:
            return False
        self._row(event.row)
        return True

    def _row(self, row: Object) -> None:
        event = event_of(row, self._opened)
        match event:
            case FrameReady():
                self._frame(event)
            case FindingReported(finding=found):
                times = [None if t is None else t + self._shift_s
                         for t in (found.since, found.until)]  # fmt: skip
                # keys act on all hosts, from where they are seen
                moved = replace(found, key="", test=(), since=times[0], until=times[1])
                self.state.apply(FindingReported(event.t + self._shift_s, moved))
            case None:
                return
            case _:
                self.state.apply(replace(event, t=event.t + self._shift_s))

    def _frame(self, event: FrameReady) -> None:
        """An older one is left out. A session that begins anew has a clock that does, too: what is
        watched after a run goes on in its state, a run has one of its own."""
        before, frame = self.state.frame, event.frame
        if before is not None and frame.t < before.t - self._shift_s - 1:
            since_s = max(0.0, frame.wall_ms - before.wall_ms) / 1000
            watched = before.step and not frame.step
            self._shift_s = before.t + since_s - frame.t if watched else 0.0
            if not watched:
                self.state, before = LiveState(self._opened), None
        t = frame.t + self._shift_s
        if before is None or t > before.t:
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
    """A host's dashboard, with its name at the top."""

    about = "One host of the fleet. Esc returns to all hosts."
    quit_label = "back"
    has_controls = saves_layout = has_heat_cells = False

    def __init__(self, view: HostView, charset: Charset) -> None:
        panes = tuple(
            replace(panel, rows=_cpu_rows(panel)) if panel.name == "cpus" else panel
            for panel in PANELS if panel.name != "runs"
        )  # fmt: skip
        super().__init__(
            view.controller, view.state, charset, lambda width, height, tabbed: (), panes
        )
        self._host = view.name
        self._line = view.line

    def title_line(self, width: int) -> DrawnRow:
        """The host's name, and what it works on."""
        target = self.controller.target
        line = Line(width, self.charset).add(f" {printable(self._host)}  ", BOLD)
        if self._line.state in ABSENT_STATES:
            why = f": {printable(self._line.error)}" if self._line.error else ""
            line.add(f"{self._line.state}{why}  ", ERROR)
        line.add(target.path)
        devices = ", ".join(target.devices_below)
        if devices and target.path != f"/dev/{devices}":
            line.add(f" on {devices}" if target.path else devices)
        if not devices:
            line.add(f"  {target.no_device}", DIM)
        return line.build()
