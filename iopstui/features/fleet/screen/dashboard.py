"""The dashboard of many hosts, and its data: all hosts, or one host by the rows that it sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iopstui import format as f
from iopstui.events import AnswerGiven, FindingReported, FrameReady
from iopstui.features.fleet.controller import FleetController
from iopstui.features.fleet.findings import (
    ABSENT,
    absent_hosts,
    fleet_answer,
    fleet_evidence,
    is_due,
    list_findings,
)
from iopstui.features.fleet.fleet_events import FleetEvent, HostRow
from iopstui.features.fleet.fleet_state import (
    ABSENT_STATES,
    AWAIT,
    HISTORY_SECONDS,
    IOPS,
    WAIT,
    FleetState,
    HostState,
    active_hosts_text,
)
from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.merging.row_events import event_of, target_of
from iopstui.features.fleet.merging.sums import Object
from iopstui.features.fleet.screen.hosts import (
    BAD_STATES,
    FEW_HOSTS,
    LAYOUT_PANELS,
    LAYOUT_WORDS,
    STYLES,
    HostsView,
)
from iopstui.model.answer.answer import Answer
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.advice import advice_on
from iopstui.text import printable
from iopstui.ui.core.key import KeyClicked, KeyHint
from iopstui.ui.dashboard import finding_line, mouse
from iopstui.ui.dashboard.panels import fio_panel
from iopstui.ui.dashboard.panels.registry import PANELS, Panel, PanelData, tabs
from iopstui.ui.dashboard.screen import Dashboard, Strip
from iopstui.ui.dialogs.text import TypeToFilter
from iopstui.ui.draw import frame, layout
from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.rows import Line, Piece, Row, Table, message, pad, rule
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, ERROR, WARNING, Charset
from iopstui.ui.port import Port
from iopstui.ui.state.live import DEVICE_IOPS, FIO_IOPS, LiveState


class HostView:
    """The state of one host, with its last minutes on the charts. ``apply`` processes its
    events."""

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
        # not later than the host's last second: a lost host's last frame is older than the newest
        # second
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
                # without the finding's key and test, because keys act on all hosts
                moved = replace(
                    found,
                    key="",
                    test=(),
                    since=times[0],
                    until=times[1],
                    advice=advice_on(self.name, found.advice),
                )
                self.state.apply(FindingReported(event.t + self._clock_shift_s, moved))
            case None:
                return
            case _:
                self.state.apply(replace(event, t=event.t + self._clock_shift_s))

    def _apply_frame(self, event: FrameReady) -> None:
        """Apply a frame unless it is older than the last one. A new session restarts the clock:
        watching after a run continues with the same state, while a new run gets a new one."""
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
    """The states that the screen can show: ``all`` has the totals of ``fleet``, ``hosts`` a line
    for each host, and ``one`` is the host that is shown, if any. The state of ``port`` is shown."""

    def __init__(self, port: Port, fleet: FleetController) -> None:
        self.fleet = fleet
        self.hosts = FleetState()
        self.all = LiveState()
        self.one: HostView | None = None
        self._port = port
        # the host that was shown before a jump, to show it again
        self._again = ""

    @property
    def odd_host(self) -> str:
        """The host that the answer about all hosts names; "" if it names none."""
        return self.all.answer.disk if self.all.answer is not None else ""

    def take_events(self) -> None:
        """Process the events of the fleet since the last call."""
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
            # judge again: the host is back or has ended, and perhaps no further second comes
            self._judge(second)
        host = self.hosts.hosts.get(self._again)
        # after a jump in a replay, show the host again only when it has a second from after the
        # jump; its newest frame may be older
        if host is not None and host.session is not None and host.series.last >= 0:
            self.show(host.name)
        # if the shown host's session has begun again, its state is a new one
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
        """Restart after a jump in the recording: show all hosts until the host that was shown
        appears again."""
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
        self._port.restart_state(state)

    def refresh_footer(self) -> None:
        self._port.refresh_footer()


TITLES = ("IOPS", "latency", "numbers", "hosts")
HOSTS_TAB = TITLES.index("hosts")
MIN_CHART_ROWS = 9
HOSTS_WIDTH = 62
"""The width of the hosts' panel beside one host's CPUs, on a wide screen."""
IN_SPLIT = 1000
"""More rows than any screen has, so that one host's CPUs are beside the hosts, never below them."""
MAX_NAMED = 12
"""How many hosts with findings are named."""
NO_CPUS = "no CPU figures: a host sends them only while it is shown"
KERNEL_COLUMNS = (
    DiskRates.r_s.screen_column(DEVICE), DiskRates.w_s.screen_column(DEVICE),
    *(row.screen_column() for row in (
        DiskRates.r_bytes_s, DiskRates.w_bytes_s, DiskRates.r_await, DiskRates.w_await,
        DiskRates.aqu_sz, DiskRates.n_in_flight)),
    DiskRates.util.screen_column(title="util%"),
)  # fmt: skip
FILTER_KEYS = (
    KeyHint("Esc", "Clear filter"), KeyHint("Enter", "Open host"), KeyHint("↑ ↓", "Choose"),
)  # fmt: skip
_BY_NAME = {panel.name: panel for panel in PANELS}


class FleetDashboard(TypeToFilter, Dashboard):
    """The dashboard of a fleet. Letters that are not keys filter the hosts; Enter shows the host
    under the cursor."""

    allows_fullscreen = has_heat_cells = False
    probe_key = "--probe"
    regions = ("iops", "latency", "fio", "hosts")
    layout_key, layout_panels, own_words = "fleet-layout", LAYOUT_PANELS, LAYOUT_WORDS
    first_tab = HOSTS_TAB
    about = (
        "Many hosts: their totals, and a row (or a line of the map) for each. Type to filter them: "
        "part of a name, or node[01-10]; press / first if the letter is a key. Up and down select "
        "a host, Enter shows its figures in place of the totals, then up and down show the next "
        "one, and Esc all again. o and O change the order, k switches map and rows."
    )

    _of_one = False
    """Whether one host is shown; ``_other_tab`` is then the tab to which Esc returns."""
    _other_tab = 0

    def __init__(
        self, source: HostsSource, state: LiveState, charset: Charset, strip: Strip
    ) -> None:
        self.source = source
        self.hosts = HostsView(charset)
        hosts = Panel("hosts", self._host_rows)
        self._panes_of_all = (
            Panel("fio", self._fio_rows, title="fio", value=self._fio_value, foot=True),
            Panel("kernel", _kernel_rows, title="Devices of all hosts"),
            hosts,
            _BY_NAME["runs"],
        )
        cpus = replace(_BY_NAME["cpus"], rows=_cpu_rows, tab="CPUs", height=IN_SPLIT)
        self._panes_of_one = (
            _BY_NAME["fio"], _BY_NAME["kernel"], hosts, cpus, _BY_NAME["completions"],
        )  # fmt: skip
        panes = (*self._panes_of_all, *self._panes_of_one)
        super().__init__(source.fleet, state, charset, strip, panes, TITLES, True)
        self.tab = HOSTS_TAB
        self._show_panes()

    def _show_panes(self) -> None:
        self.panes = self._panes_of_all if self.source.one is None else self._panes_of_one
        self.tabs = tabs(self.panes, TITLES)

    def restart_state(self, state: LiveState) -> None:
        self.unfreeze()
        self.span, self.overlay.steps = None, ()
        super().restart_state(state)
        of_one = self.source.one is not None
        several = not of_one or len(self.controller.target.devices_below) > 1
        self.charts[0].rename(["devices" if several else "device", "fio"])
        if of_one != self._of_one:
            self._of_one = of_one
            self.tab, self._other_tab = self._other_tab, self.tab
        # while one host is shown, letters do not filter; Esc leads back to the filtered hosts
        self._typing = self.source.one is None and bool(self.filter_text)
        self.source.refresh_footer()
        self._show_panes()
        if self._plan is not None:
            self.relayout()

    @property
    def quit_label(self) -> str:  # type: ignore[override]
        """The label of the key q; "" while a filter is typed, to which its letter belongs."""
        if self._typing:
            return ""
        return "Quit" if self.source.one is None else "Back"

    @property
    def kept_tab(self) -> int:
        """The tab to save: that of all hosts."""
        return self._other_tab if self._of_one else self.tab

    @property
    def own_layout(self) -> tuple[str, ...]:
        """The order of the hosts, and whether they are shown as a map."""
        return self.hosts.layout

    def restore_own(self, words: Sequence[str]) -> None:
        self.hosts.restore_layout(words)

    @property
    def filter_hints(self) -> Sequence[KeyHint]:
        """The keys while a filter is typed; none at other times."""
        return FILTER_KEYS if self._typing else ()

    def apply_filter(self) -> None:
        self.hosts.filter_text = self.filter_text
        self.hosts.move_to_top()
        self.source.refresh_footer()
        self.paint(even_if_frozen=True)

    def cpu_rows(self) -> int:
        """The number of rows that the hosts, or the CPUs beside them, need."""
        hosts = len(self.source.hosts.hosts)
        return hosts if self.source.one is None else max(hosts, super().cpu_rows())

    def make_plan(self, width: int, height: int, strip: int) -> layout.LayoutPlan:
        """Give the hosts the rows that the charts can spare, and some of these rows to a shown
        host's CPUs."""
        plan = super().make_plan(width, height, strip)
        hosts, cpus = plan.cpus, plan.extra.get("cpus", NO_BOX)
        if not plan.tabbed and plan.cpus.height:
            wanted_height = min(self.cpu_rows(), FEW_HOSTS) + (3 if plan.framed else 2)
            if self.cpu_rows() > FEW_HOSTS:
                wanted_height = max(wanted_height, height)
            total = plan.iops.height + plan.cpus.height
            chart_rows = max(MIN_CHART_ROWS, total * 2 // 5)
            rows = max(5, min(wanted_height, total - chart_rows))
            plan = _rows_given_to_hosts(plan, rows - plan.cpus.height)
            hosts = plan.cpus
            if self.source.one is not None:
                left = min(HOSTS_WIDTH, width * 2 // 5)
                cpus = replace(hosts, x=left, width=width - left)
                hosts = replace(hosts, width=left)
        return replace(plan, extra={**plan.extra, "hosts": hosts, "cpus": cpus})

    def title_line(self, width: int) -> Row:
        """The title: the hosts, how many are active, and how far apart they started; or the shown
        host."""
        line = Line(width, self.charset).add(" ").add(printable(self.source.fleet.title), BOLD)
        if self.source.one is not None:
            return self._title_of_one(line)
        fleet = self.source.hosts
        line.add("  ").add(active_hosts_text(fleet), BOLD)
        counts = fleet.counts()
        for state in BAD_STATES:
            if counts.get(state):
                line.try_add((f"  {counts[state]} {state}", STYLES[state]))
        second = fleet.second
        if second is not None and self.shown_state.probe_frame is not None:
            # the number of hosts whose probes measure the device's percentiles
            device = second.sums.device
            is_complete = device.hosts == second.counted
            line.try_add((f"  {device.describe(second.counted)}", DIM if is_complete else WARNING))
        spread = fleet.spread()
        if spread is not None:
            line.try_add((f"  started within {f.latency((spread[0] + spread[1]) * 1e6)}", None))
            line.try_add((f" (clocks ±{f.latency(spread[1] * 1e6)})", DIM))
        return line.build()

    def _title_of_one(self, line: Line) -> Row:
        one, target = self.source.one, self.controller.target
        assert one is not None
        line.add(" › ", DIM).add(f"{printable(one.name)}  ", BOLD)
        if one.host_state.state in ABSENT_STATES:
            reason = f": {printable(one.host_state.error)}" if one.host_state.error else ""
            line.add(f"{one.host_state.state}{reason}  ", ERROR)
        line.add(target.path)
        devices = ", ".join(target.devices_below)
        if devices and target.path != f"/dev/{devices}":
            line.add(f" on {devices}" if target.path else devices)
        if not devices:
            line.add(f"  {target.no_device}", DIM)
        return line.build()

    def _answer(self, by_clock: bool = False) -> Answer | None:
        """The answer about all hosts (their combined figures belong to no single disk), or about
        the shown host."""
        return self.shown_state.answer if self.source.one is None else super()._answer(by_clock)

    def finding_rows(self, width: int) -> list[Row]:
        """Findings about all hosts together, and which hosts have findings of their own."""
        hosts = [] if self.source.one is not None else self.source.hosts.hosts_with_findings()
        if not hosts:
            return super().finding_rows(width)
        names = ", ".join(map(printable, hosts[:MAX_NAMED]))
        more = f" and {len(hosts) - MAX_NAMED} more" if len(hosts) > MAX_NAMED else ""
        text = f"Single hosts have findings: {names}{more}. Enter on a host, then f, lists them."
        return finding_line.list_rows(self.shown_state, width, self.charset, self._answer(), text)

    def _host_rows(self, data: PanelData, width: int, height: int) -> Sequence[Row]:
        source, shown = self.source, data.state.frame
        frozen = source.one is None and self.frozen_at is not None and shown is not None
        second = shown.seq if frozen and shown is not None else source.hosts.number
        return self.hosts.rows(
            source.hosts, second, width, height, source.odd_host,
            source.one.name if source.one is not None else "",
        )  # fmt: skip

    def _click_panel(self, x: int, y: int, chain: int) -> None:
        """Handle a click. On a column's title: sort by it, or reverse the order. On a host: select
        it; a double click shows it."""
        plan, hosts, fio = self._plan, self.hosts, not self.source.fleet.watching
        box = self.panels["hosts"].box
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
                if chain == 2 or self.source.one is not None:
                    self.post_message(KeyClicked("Enter"))
                return
        super()._click_panel(x, y, chain)

    def _fio_value(self, data: PanelData) -> Sequence[Piece]:
        return () if self.source.fleet.watching else fio_panel.value(data.state)

    def _fio_rows(self, data: PanelData, width: int, height: int) -> Sequence[Row]:
        if not self.source.fleet.watching:
            return fio_panel.rows(data.state, width, height, data.charset, data.next_job)
        title = rule(width, data.charset, ("fio", BOLD))
        text = "no job: watching the hosts' disks; --job JOB runs one on all"
        return pad([title, message(width, data.charset, text)], height, width)


def _rows_given_to_hosts(plan: layout.LayoutPlan, rows: int) -> layout.LayoutPlan:
    """Move ``rows`` from the charts to the hosts' panel."""

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


def _kernel_rows(data: PanelData, width: int, height: int) -> list[Row]:
    """The sums over the devices of all hosts; util is their mean."""
    title = rule(
        width, data.charset, ("Devices of all hosts, this second", BOLD),
        right=((f"{f.MISSING} = no such request", DIM),),
    )  # fmt: skip
    now = data.state.frame
    disk = now.combined(now.opened) if now is not None else None
    if disk is None:
        rows = [title, message(width, data.charset, "no device's figures yet")]
        return pad(rows, height, width)
    table: Table[DiskRates] = Table(KERNEL_COLUMNS, 7, width, data.charset)
    text = "sums of all hosts; await: mean of all requests, util: mean of all hosts"
    rows = [title, table.header(), table.row("all", disk), message(width, data.charset, text)]
    return pad(rows, height, width)


def _cpu_rows(data: PanelData, width: int, height: int) -> Sequence[Row]:
    """The CPUs of one host, or why there are none."""
    now = data.state.frame
    if now is None or now.cpus:
        return _BY_NAME["cpus"].rows(data, width, height)
    title = rule(width, data.charset, ("CPUs, this second", BOLD))
    return pad([title, message(width, data.charset, NO_CPUS)], height, width)
