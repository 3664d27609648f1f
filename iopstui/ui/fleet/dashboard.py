"""The dashboard of many hosts: totals in its panels, and the hosts in place of the CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iopstui import format as f
from iopstui.fleet.fleet_state import (
    FAILED,
    INCOMPLETE,
    LATE,
    LEFT_OUT,
    LOST,
    MISSING,
    FleetState,
    active_hosts_text,
)
from iopstui.model.answer.answer import Answer
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.frame import Frame
from iopstui.text import printable
from iopstui.ui.core.messages import KeyClicked
from iopstui.ui.dashboard import mouse
from iopstui.ui.dashboard.panels import fio_panel, runs_panel
from iopstui.ui.dashboard.panels.registry import Panel, PanelData
from iopstui.ui.dashboard.screen import Dashboard, Strip
from iopstui.ui.dialogs.type_to_filter import TypeToFilter
from iopstui.ui.draw import frame, layout
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.rows import (
    Line,
    Piece,
    Row,
    Table,
    message,
    pad,
    rule,
)  # fmt: skip
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, ERROR, WARNING, Charset
from iopstui.ui.fleet.controller import FleetController
from iopstui.ui.fleet.hosts import FEW_HOSTS, HostsView
from iopstui.ui.fleet.saved_layout import PANELS, FleetLayout, parse_fleet_layout
from iopstui.ui.state.live import LiveState

TITLES = ("IOPS", "latency", "numbers", "hosts")
HOSTS_TAB = TITLES.index("hosts")
MIN_CHART_ROWS = 9
STATE_STYLES = ((LOST, ERROR), (FAILED, ERROR), (MISSING, ERROR), (LEFT_OUT, WARNING),
                   (LATE, WARNING), (INCOMPLETE, WARNING))  # fmt: skip
KERNEL_COLUMNS = (
    DiskRates.r_s.screen_column(DEVICE), DiskRates.w_s.screen_column(DEVICE),
    *(row.screen_column() for row in (
        DiskRates.r_bytes_s, DiskRates.w_bytes_s, DiskRates.r_await, DiskRates.w_await,
        DiskRates.aqu_sz, DiskRates.n_in_flight)),
    DiskRates.util.screen_column(title="util%"),
)  # fmt: skip


class FleetDashboard(TypeToFilter, Dashboard):
    """Letters that are no key narrow the hosts; Enter opens the one under the cursor."""

    allows_fullscreen = has_heat_cells = False
    layout_key = "fleet-layout"
    about = (
        "Many hosts: their totals, and a row (or a line of the map) for each. Type to filter them: "
        "part of a name, or node[01-10]; press / first if the letter is a key. Up and down select "
        "a host, Enter opens it, o and O change the order, k switches map and rows."
    )

    def __init__(
        self,
        controller: FleetController,
        state: LiveState,
        fleet_state: FleetState,
        charset: Charset,
        strip: Strip,
    ) -> None:
        self.hosts = HostsView(charset)
        self.fleet_state = fleet_state
        self.fleet = controller
        panes = (
            Panel("fio", self._fio_rows, title="fio", value=self._fio_value, foot=True),
            Panel(
                "kernel",
                lambda s, width, height: kernel_rows(s.state, width, height, charset),
                title="Devices of all hosts",
            ),
            Panel("cpus", self._host_rows),
            Panel(
                "runs",
                lambda s, width, height: runs_panel.rows(
                    s.state, width, height, s.charset, s.next_job
                ),
                tab="runs",
                height=runs_panel.HEIGHT,
                title="Runs",
                value=lambda s: runs_panel.value(s.state),
            ),
        )
        super().__init__(controller, state, charset, strip, panes, TITLES, True)
        self.tab = HOSTS_TAB

    @property
    def saved_layout(self) -> FleetLayout:
        """Layout to keep for the next start."""
        hosts = self.hosts
        return FleetLayout(
            PANELS[self.tab], self.heat_enabled, self.percentiles_enabled, self.column_seconds,
            hosts.order, hosts.reverse, hosts.as_map,
        )  # fmt: skip

    def restore_layout(self, layout: str) -> None:
        """Begin as an earlier one was left."""
        saved = parse_fleet_layout(layout)
        self.set_layout(PANELS.index(saved.panel), saved.heat_map, saved.percentiles, saved.seconds)
        self.hosts.order, self.hosts.reverse = saved.order, saved.reverse
        self.hosts.as_map = saved.as_map

    def apply_filter(self) -> None:
        """Show the hosts that match the filter."""
        self.hosts.filter_text = self.filter_text
        self.hosts.move_to_top()
        self.paint(even_if_frozen=True)

    def cpu_rows(self) -> int:
        """Return as many rows as the hosts want."""
        return len(self.fleet_state.hosts)

    def make_plan(self, width: int, height: int, strip: int) -> layout.LayoutPlan:
        """Give the hosts the rows that the charts can spare."""
        plan = super().make_plan(width, height, strip)
        if plan.tabbed or not plan.cpus.height:
            return plan
        wanted_height = min(self.cpu_rows(), FEW_HOSTS) + (3 if plan.framed else 2)
        if self.cpu_rows() > FEW_HOSTS:
            wanted_height = max(wanted_height, height)
        total = plan.iops.height + plan.cpus.height
        chart_rows = max(MIN_CHART_ROWS, total * 2 // 5)
        rows = max(5, min(wanted_height, total - chart_rows))
        return _rows_given_to_hosts(plan, rows - plan.cpus.height)

    def title_line(self, width: int) -> Row:
        """The hosts, how many are active, and how far apart they started."""
        line = Line(width, self.charset).add(" ").add(printable(self.fleet.title), BOLD)
        line.add("  ").add(active_hosts_text(self.fleet_state), BOLD)
        counts = self.fleet_state.counts()
        for state, style in STATE_STYLES:
            if counts.get(state):
                line.try_add((f"  {counts[state]} {state}", style))
        second = self.fleet_state.second
        if second is not None and self.shown_state.probe_frame is not None:
            # the hosts that the device's percentiles come from
            device = second.sums.device
            is_complete = device.hosts == second.counted
            line.try_add((f"  {device.describe(second.counted)}", DIM if is_complete else WARNING))
        spread = self.fleet_state.spread()
        if spread is not None:
            line.try_add((f"  started within {f.latency((spread[0] + spread[1]) * 1e6)}", None))
            line.try_add((f" (clocks ±{f.latency(spread[1] * 1e6)})", DIM))
        return line.build()

    def _answer(self) -> Answer | None:
        """On all hosts: their combined figures are no disk's."""
        return self.shown_state.answer

    def _host_rows(self, data: PanelData, width: int, height: int) -> Sequence[Row]:
        frame = data.state.frame
        second = self.fleet_state.number if frame is None or self.frozen_at is None else frame.seq
        return self.hosts.rows(self.fleet_state, second, width, height)

    def _click_panel(self, x: int, y: int, chain: int) -> None:
        """On a column's title: sort by it; again: reverse. On a host: select it; twice: open it."""
        plan, hosts, fio = self._plan, self.hosts, not self.fleet.watching
        box = self.panels["cpus"].box
        if plan is not None and mouse.inside(box, x, y):
            column, row = x - box.x - (frame.BORDER_COLUMNS // 2 if plan.framed else 0), y - box.y
            order = hosts.title_at(column, row, fio)
            if order is not None:
                if order == hosts.effective_order:
                    hosts.reverse_order(fio)
                else:
                    hosts.sort_by(order, fio)
                self.paint(even_if_frozen=True)
                return
            if hosts.select_at(column, row):
                self.paint(even_if_frozen=True)
                if chain == 2:
                    self.post_message(KeyClicked("Enter"))
                return
        super()._click_panel(x, y, chain)

    def _fio_value(self, data: PanelData) -> Sequence[Piece]:
        return () if self.fleet.watching else fio_panel.value(data.state)

    def _fio_rows(self, data: PanelData, width: int, height: int) -> Sequence[Row]:
        if not self.fleet.watching:
            return fio_panel.rows(data.state, width, height, data.charset, data.next_job)
        title = rule(width, data.charset, ("fio", BOLD))
        text = "no job: watching the hosts' disks; --job JOB runs one on all"
        return pad([title, message(width, data.charset, text)], height, width)


def _rows_given_to_hosts(plan: layout.LayoutPlan, rows: int) -> layout.LayoutPlan:
    """Move ``rows`` from the charts to the hosts."""

    def up(box: Box) -> Box:
        return replace(box, y=box.y - rows)

    return replace(
        plan,
        iops=replace(plan.iops, height=plan.iops.height - rows),
        latency=replace(plan.latency, height=plan.latency.height - rows),
        fio=up(plan.fio),
        kernel=up(plan.kernel),
        cpus=replace(up(plan.cpus), height=plan.cpus.height + rows),
    )


def kernel_rows(state: LiveState, width: int, height: int, charset: Charset) -> list[Row]:
    """Sums over the devices of all hosts; util is their mean."""
    title = rule(
        width, charset, ("Devices of all hosts, this second", BOLD),
        right=((f"{f.MISSING} = no such request", DIM),),
    )  # fmt: skip
    return pad([title, *_kernel_table(state.frame, width, charset)], height, width)


def _kernel_table(frame: Frame | None, width: int, charset: Charset) -> list[Row]:
    disk = frame.combined(frame.opened) if frame is not None else None
    if disk is None:
        return [message(width, charset, "no device's figures yet")]
    table: Table[DiskRates] = Table(KERNEL_COLUMNS, 7, width, charset)
    text = "sums of all hosts; await: mean of all requests, util: mean of all hosts"
    return [table.header(), table.row("all", disk), message(width, charset, text)]
