"""The dashboard: the same second as seen by fio and by the kernel, side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from textual import events
from textual.timer import Timer

from iopstui import format as f
from iopstui.model.answer.answer import GONE, Answer
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.frame import NO_LATENCY, Frame
from iopstui.session.run_rows import LATENCIES, run_outcome
from iopstui.ui.core.key import Controller, KeyClicked, KeyHint, StripClicked, ViewChanged
from iopstui.ui.core.pace import Overhead
from iopstui.ui.core.preferences import DOT_SECONDS, PANELS, ZOOMED, SavedLayout, parse_layout
from iopstui.ui.dashboard import bars, finding_line, mouse, overlay
from iopstui.ui.dashboard.heat_maps import ChosenCell, HeatMaps
from iopstui.ui.dashboard.overlay import MoreCharts, Overlay
from iopstui.ui.dashboard.panels import kernel_panel, registry, who_panel
from iopstui.ui.dashboard.run_result import time_of
from iopstui.ui.draw import layout
from iopstui.ui.draw.canvas import CanvasScreen, Lines
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.chart import AXIS_WIDTH, Chart, ChartSpec, Curve, Mean, TimeWindow
from iopstui.ui.draw.charts.heat import HeatMap
from iopstui.ui.draw.frame import BORDER_COLUMNS
from iopstui.ui.draw.layout import NO_BOX, TABS, Box
from iopstui.ui.draw.rows import Piece, Row, answer_row, pad, rows_text, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, FIO, P50, P99, P999, WARNING, Charset
from iopstui.ui.state.findings import HistoryEntry
from iopstui.ui.state.live import AWAITS, DEVICE_IOPS, FIO_IOPS, LiveState

MIN_SPAN_S = 2.0
TOOLTIP_S = 10.0
"""How long the values under a resting mouse are shown; it may have been left there by accident."""
HOME_TRAIL = "home › "
NUMBERS_TITLE, WHO_TITLE = TABS[2], f"who, {TABS[2]}"
JOB_WIDTH = 90
"""The width of the job's part if it shares a line with the device."""


def chart_specs(device: str) -> tuple[ChartSpec, ChartSpec]:
    """The charts of IOPS and of fio's latency; ``device`` is the label of the device's curve."""
    rates = ChartSpec(
        "iops",
        "IOPS",
        (
            Curve(DEVICE_IOPS, device, plotting.AREA, DEVICE),
            Curve(FIO_IOPS, "fio", plotting.LINE, FIO),
        ),
        log=False,
        unit=f.axis_number,
        right=0,
    )
    latency = ChartSpec(
        "latency",
        "latency",
        (
            Curve("p99.9", "p99.9", plotting.FINE_POINTS, P999, "max"),
            Curve("p99", "p99", plotting.POINTS, P99, "max"),
            Curve("p50", "p50", plotting.LINE, P50),
        ),
        log=True,
        unit=f.axis_latency,
        right=6,
    )
    return rates, latency


COPIED_COLUMNS, COPIED_ROWS = 160, 9
"""The size of the panel when it is copied as text."""
_AGE = re.compile(r", (\d+) s ago")
"""The age of a reading of who uses the disk."""
FIO_LATENCY, DEVICE_LATENCY, AWAIT = "fio", "device", "await"


def _other_latencies(latency: ChartSpec) -> dict[str, ChartSpec]:
    """The charts that replace the one of fio's percentiles: with the probe, fio's and the device's
    p99 together; with neither job nor probe, the means from /proc/diskstats."""
    p999, p99, p50 = latency.curves
    device = (
        replace(p999, name="device p99", label="device p99", style=DEVICE),
        replace(p99, label="fio p99"),
        Curve("device p50", "device p50", plotting.LINE, DEVICE),
        replace(p50, label="fio p50"),
    )
    waits = tuple(
        Curve(name, name, plotting.LINE, style)
        for name, style in zip(reversed(AWAITS), (P99, DEVICE), strict=True)
    )
    return {
        DEVICE_LATENCY: replace(latency, id="probe", curves=device, right=12),
        AWAIT: replace(latency, id="await", title="await (means)", curves=waits, right=8),
    }


@runtime_checkable
class LiveScreen(Protocol):
    """A screen over the dashboard that also shows live figures."""

    def paint(self) -> None:
        """Show the newest state."""


Strip = Callable[[int, int, bool], Sequence[Row]]
"""Returns rows above the message for (width, height, tabbed); their number must not depend on
tabs."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """What the user has chosen for the view."""

    tab: int
    heat_enabled: bool


class Dashboard(CanvasScreen):
    """Draws a ``LiveState``. ``paint`` paints what has changed. The application binds its keys."""

    quit_label = "Quit"
    is_replay = False
    has_jobs = True
    """Whether a job may run: not in a recording that has none."""
    allows_fullscreen = True
    """Whether Enter gives the focused panel the whole screen."""
    saves_layout = True
    """Whether its layout is saved for the next start."""
    has_heat_cells = True
    probe_key = "P"
    """The key, or the option, that switches the probe on."""
    """Whether cells of the heat map can be chosen."""
    regions = ("iops", "latency", "fio", "cpus")
    """The regions of the first tabs. The kernel's panel shares a tab with fio's."""
    layout_key = "layout"
    layout_panels: Sequence[str] = PANELS
    own_words: Sequence[str] = (ZOOMED,)
    """The words that ``own_layout`` may contain."""
    first_tab = 0
    """The tab that is open unless the saved layout names another one."""
    _steps_placed = _users_placed = False
    _fio_placed = True
    """Whether the charts have a row for the values of a changed option."""
    _mouse_t: float | None = None
    """The time under the mouse."""
    _mouse_timer: Timer | None = None
    has_home = True
    """Whether Esc leads to a home screen above it."""
    has_controls = True
    """Whether keys here run jobs and change settings of the disks."""
    has_answer = True
    """Whether the answer is below the title. An answer is about one disk, not about many hosts."""

    def __init__(
        self, controller: Controller, state: LiveState, charset: Charset, strip: Strip,
        panes: Sequence[registry.Panel] | None = None, titles: Sequence[str] = TABS,
        several: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.panes = panes = registry.PANELS if panes is None else panes
        self.controller = controller
        self.state = state
        self.charset = charset
        self.tab = 0
        self.focus_shown = False
        """Whether the focused panel is highlighted."""
        self.fullscreen = False
        """Whether one pane fills a screen that is large enough for all."""
        self._frozen: LiveState | None = None
        self._shown_second: LiveState | None = None
        self.own_cost = Overhead()
        self.next_job = ""
        self.hints: Sequence[KeyHint] = ()
        self._strip = strip
        # cached, because the title is the same each second until a setting is changed
        self._title_row: Row = ()
        self._title_key: tuple[int, Target, list[int], list[BlockDevice | None], str] | None = None
        self.window = TimeWindow()
        self._zoom = 0
        self.span: tuple[float, float] | None = None
        """The span of time that was selected with the mouse."""
        self._drag: tuple[Chart, int] | None = None
        self._dragged = False
        self._placed_cpus = -1
        self._placed_size = (0, 0)
        self._topology = Topology()
        self._topology_of: tuple[tuple[int, ...], int] = ((), -1)
        self._plan: layout.LayoutPlan | None = None
        self._make_charts(several or len(controller.target.devices_below) > 1)
        self.heat_enabled = self.percentiles_enabled = False
        self._make_panels(panes, titles)

    def _make_panels(self, panes: Sequence[registry.Panel], titles: Sequence[str]) -> None:
        self.tabs = registry.tabs(panes, titles)
        lines = ("header", "answer", "summary", "tabs", "strip", "message", "finding", "footer")
        names = (*lines, *(panel.name for panel in panes))
        self.panels = {name: Lines(name) for name in names}
        self.too_small_notice = Lines("small")
        self.canvas.add([*self.panels.values(), self.too_small_notice])
        for chart in self.charts:
            self.canvas.add(chart.widgets())

    def _make_charts(self, several: bool) -> None:
        """Make charts, heat maps and overlays; ``several``: more than one device is measured."""
        charset = self.charset
        rates, latency = chart_specs("devices" if several else "device")
        other_specs = _other_latencies(latency)
        self._latencies = {FIO_LATENCY: Chart(latency, charset)}
        self._latencies |= {name: Chart(spec, charset) for name, spec in other_specs.items()}
        self._latency_source = FIO_LATENCY
        self.heat_maps = HeatMaps(latency, other_specs[DEVICE_LATENCY], charset)
        latencies = self._latencies.values()
        self.charts = [Chart(rates, charset), *latencies, *self.heat_maps.maps]
        self.overlay = Overlay(charset)
        self.more_charts = MoreCharts(charset)
        self.charts += [*self.overlay.charts, *self.more_charts.charts]

    @property
    def saved_layout(self) -> SavedLayout:
        """The layout to save for the next start; ``restore_layout`` gets its text."""
        return SavedLayout(
            self.layout_panels[self.kept_tab] if self.kept_tab != self.first_tab else "",
            self.own_layout, self.heat_enabled, self.percentiles_enabled, self.column_seconds,
        )  # fmt: skip

    @property
    def kept_tab(self) -> int:
        """The index of the open tab, for the saved layout."""
        return self.tab

    @property
    def own_layout(self) -> tuple[str, ...]:
        """The words of the layout that only this dashboard has; ``restore_own`` gets them back."""
        return (ZOOMED,) if self.fullscreen else ()

    def restore_own(self, words: Sequence[str]) -> None:
        """Restore what ``own_layout`` has saved."""
        self.fullscreen = ZOOMED in words

    @property
    def column_seconds(self) -> int:
        return DOT_SECONDS[self._zoom]

    def restore_layout(self, layout: str) -> None:
        """Restore a saved layout, before the first paint."""
        saved = parse_layout(layout, self.layout_panels, self.own_words)
        self.restore_own(saved.own)
        self.tab = self.layout_panels.index(saved.panel) if saved.panel else self.first_tab
        self.heat_enabled, self.percentiles_enabled = saved.heat_map, saved.percentiles
        self._zoom = DOT_SECONDS.index(saved.seconds)

    @property
    def frozen_at(self) -> float | None:
        """The shown time if the screen is frozen (seconds of the session), else ``None``."""
        return self.shown_state.t if self._frozen is not None else None

    @property
    def shown_state(self) -> LiveState:
        """The state that panels and charts show: the newest one, or that of the frozen second."""
        return self._shown_second or self._frozen or self.state

    @property
    def view(self) -> ViewState:
        return ViewState(self.tab, self.heat_enabled)

    def show_view(self, view: ViewState) -> None:
        self.tab, self.heat_enabled = view.tab, view.heat_enabled
        self.relayout()

    def show_keys(self, hints: Sequence[KeyHint], next_job: str) -> None:
        """Show the footer's keys and the job that r would run with the next paint."""
        self.hints, self.next_job = hints, next_job

    def show_cost(self, cost: Overhead) -> None:
        """Show iopstui's own cost with the next paint."""
        self.own_cost = cost

    def restart_state(self, state: LiveState) -> None:
        """Go to another position of a recording; the charts start anew."""
        self.state = state
        self.window = TimeWindow()
        for chart in self.charts:
            chart.forget()

    def freeze(self) -> None:
        if self._frozen is not None:
            self.unfreeze()
            return
        self._frozen = self.state.snapshot()
        # begin with the newest frame: the state's own time may be a little later
        self._show_second(self._frozen.recent_seconds.near(self._frozen.t, 0))

    def walk(self, step: int, seconds: float = 0.0) -> bool:
        """While frozen, show the second ``step`` entries and ``seconds`` later (negative: earlier),
        if it is still kept. False if nothing changed."""
        if self._frozen is None:
            self.freeze()
        if self._frozen is None:
            return False
        before = self.shown_state.t
        moments = self._frozen.recent_seconds
        self._show_second(moments.at(before + seconds) if seconds else moments.near(before, step))
        return self.shown_state.t != before

    def _show_second(self, moment: HistoryEntry | None) -> None:
        if self._frozen is not None and moment is not None:
            self._shown_second = self._frozen.at(moment)

    def unfreeze(self) -> None:
        """Show the newest second again."""
        self._frozen = self._shown_second = None
        self.heat_maps.cursor.clear()

    @property
    def has_something_open(self) -> bool:
        """Whether a panel is zoomed, a span of time is chosen, or the screen is frozen."""
        return self.fullscreen or self.span is not None or self._frozen is not None

    @property
    def chosen_cell(self) -> ChosenCell | None:
        t = self.frozen_at
        return self.heat_maps.cursor.at(t) if t is not None and self.heat_visible else None

    def move_cell(self, by: int) -> bool:
        """Freeze the screen and choose the next cell of the heat map below (``by`` 1) or above
        (-1). False if this second has no cells."""
        if self._frozen is None:
            self.freeze()
            self.paint(even_if_frozen=True)
        t = self.frozen_at
        return t is not None and self.heat_maps.cursor.move(t, by)

    def leave_cell(self) -> None:
        """Choose no cell of the heat map any more; the second stays."""
        self.heat_maps.cursor.clear()

    def on_resize(self, event: events.Resize) -> None:
        """Place everything again; but only once for each size, because a new screen gets it
        twice."""
        if self._plan is None or self._placed_size != self.app.size:
            self.relayout()

    def on_screen_resume(self) -> None:
        """Paint what has changed while another screen was on top."""
        if self._plan is not None:
            self.paint()

    def relayout(self) -> None:
        """Place every region for the present size and tab, and paint it."""
        width, height = self._placed_size = self.app.size
        if layout.too_small(width, height):
            self._place_nothing(width, height)
            return
        self.too_small_notice.place(NO_BOX)
        self._placed_cpus = self.cpu_rows()
        plan = self._plan = self.make_plan(width, height, len(self._strip(width, height, False)))
        for name, panel in self.panels.items():
            panel.place(plan.box(name))
        self._latency_source = self._current_latency_source()
        iops, latency = (plan.iops, plan.latency) if not self.overlay.active else (NO_BOX, NO_BOX)
        framed = plan.framed
        steps = self._steps_placed = bool(self.shown_state.option_steps.option)
        new = [
            *self.overlay.place(plan.iops, plan.latency, framed),
            *self.more_charts.place(plan.box(layout.CHARTS), framed),
            *self.charts[0].place(iops, framed, steps),
            *self.heat_maps.place(
                latency if self.heat_visible else NO_BOX, self._heat_choice(), framed
            ),
        ]
        for name, chart in self._latencies.items():
            visible = name == self._latency_source and not self.heat_visible
            new += chart.place(latency if visible else NO_BOX, framed, steps)
        self._show_focus()
        self.canvas.add(new)
        self.paint(even_if_frozen=True)

    def _show_focus(self) -> None:
        """Highlight the border of the focused chart."""
        rates = [self.charts[0], self.overlay.charts[0]]
        further = [*rates, *self.more_charts.charts]
        latencies = [chart for chart in self.charts if chart not in further]
        for index, charts in enumerate((rates, latencies)):
            for chart in charts:
                chart.number = str(index + 1)
                chart.focused = self.focus_shown and self.tab == index

    def cpu_rows(self) -> int:
        """The number of CPUs, which decides the height of their panel."""
        return len(self.shown_state.frame.cpus) if self.shown_state.frame else 0

    def make_plan(self, width: int, height: int, strip: int) -> layout.LayoutPlan:
        disks = max(1, kernel_panel.row_count(self.controller.target)) + bool(
            self.shown_state.drives
        )
        self._users_placed = self._panel_data().users is not None
        self._fio_placed = self._has_fio
        # an overlay uses the space of all charts; a network share has no queue to draw
        target = self.controller.target
        without = self.overlay.active or (target is not None and not target.devices_below)
        further = {} if without else {layout.CHARTS: overlay.HEIGHT}
        more = registry.heights(self.panes)
        if height - strip >= layout.FULL_HEIGHT + sum(more.values()):
            more = registry.heights(self.panes, self.cpu_rows())
        more |= further
        if not self._fio_placed and layout.RUNS in more:
            more[layout.RUNS] = height  # none fits: its tab stays
        return layout.plan(
            width, height, disks, self.cpu_rows(), self.tab, strip, more, self.fullscreen,
            int(self.has_answer), self._users_placed, self._fio_placed,
        )  # fmt: skip

    @property
    def _has_fio(self) -> bool:
        """Whether fio's panel has anything to show: a replay without a job has no key that starts
        one, either."""
        state = self.shown_state
        return (
            self.has_jobs or state.step is not None or state.finished is not None
            or self._panel_data().users is not None
        )  # fmt: skip

    def _place_nothing(self, width: int, height: int) -> None:
        self._plan = None
        for panel in self.panels.values():
            panel.place(NO_BOX)
        for chart in self.charts:
            chart.place(NO_BOX)
        self.too_small_notice.place(Box(0, 0, width, height))
        self.too_small_notice.show(pad(self._too_small_rows(width), height, width))

    def _too_small_rows(self, width: int) -> list[Row]:
        text = (
            f"This terminal is {self.app.size.width}×{self.app.size.height}; the dashboard needs "
            f"{layout.MIN_WIDTH}×{layout.MIN_HEIGHT} or more. Please make it larger. Measuring "
            "continues. q: quit."
        )
        return wrap(width, self.charset, text, None)

    def show_tab(self, tab: int) -> bool:
        """Open a pane. Returns False if all panes are visible anyway."""
        if self._plan is None or not self._plan.tabbed:
            return False
        self.tab = tab % len(self.tabs)
        self.relayout()
        return True

    def show_fullscreen(self, tab: int | None) -> None:
        """Show one pane on the whole screen, even a large one; ``None``: show all panes again."""
        self.fullscreen = tab is not None
        self.tab = self.tab if tab is None else tab % len(self.tabs)
        self.relayout()

    @property
    def tabbed(self) -> bool:
        """Whether only one pane at a time is shown."""
        return self._plan is not None and self._plan.tabbed

    def focus_panel(self, tab: int) -> None:
        """Focus a panel; Enter shows it on the whole screen."""
        self.tab, self.focus_shown = tab % len(self.tabs), True
        self._show_focus()
        self.paint(even_if_frozen=True)

    def focus_by(self, by: int) -> None:
        """Focus the next or the previous visible panel; the first one if none has the focus yet."""
        visible = [tab for tab in range(len(self.tabs)) if self._is_visible(tab)] or [0]
        at = visible.index(self.tab) + by if self.focus_shown and self.tab in visible else 0
        self.focus_panel(visible[at % len(visible)])

    def _is_visible(self, tab: int) -> bool:
        plan = self._plan
        names = (*self.regions, *(p.name for p in self.panes if p.tab))
        return plan is not None and plan.box(names[tab]).height > 0

    def show_heat(self, enabled: bool) -> None:
        """Show the heat map in place of the percentile lines, or the lines again."""
        self.heat_enabled = enabled
        if self._plan is not None:
            if self._plan.tabbed:
                self.tab = TABS.index("latency")
            self.relayout()

    def _heat_choice(self) -> str:
        return self.heat_maps.current(
            self.shown_state, self._plan.latency.height if self._plan else 0
        )

    def next_heat_map(self) -> None:
        """Switch from the lines to the first heat map, then to the next one, and at last back."""
        height = self._plan.latency.height if self._plan else 0
        self.show_heat(
            not self.heat_enabled or self.heat_maps.choose_next(self.shown_state, height)
        )

    def toggle_percentiles(self) -> None:
        """Show percentiles over the heat map, or hide them; opens the heat map if needed."""
        self.percentiles_enabled = not self.heat_enabled or not self.percentiles_enabled
        self.show_heat(True)

    def zoom(self, out: bool) -> str:
        """Change the time span of the charts; returns a description of it."""
        self.span = None
        self._zoom = min(len(DOT_SECONDS) - 1, max(0, self._zoom + (1 if out else -1)))
        self.paint(even_if_frozen=True)
        shown = f.clock(self._columns * self.column_seconds)
        return f"the charts show up to {shown}, {self.column_seconds} s per column"

    def paint(self, even_if_frozen: bool = False) -> None:
        """Show the newest state. A frozen screen only updates the message line."""
        top, stack = self.app.screen, self.app.screen_stack
        for screen in stack[stack.index(self) + 1 :] if self in stack else ():
            if isinstance(screen, LiveScreen):
                screen.paint()
        if self._plan is None or not self.is_current:
            return
        box = self._plan.strip
        strip = self._strip(self.app.size.width, self.app.size.height, self._plan.tabbed)
        outdated = self._latency_source != self._current_latency_source()
        outdated |= self.heat_maps.placed not in ("", self._heat_choice())
        outdated |= self._steps_placed != bool(self.shown_state.option_steps.option)
        outdated |= self._users_placed != (self._panel_data().users is not None)
        outdated |= self._fio_placed != self._has_fio
        if self.cpu_rows() != self._placed_cpus or len(strip) != box.height or outdated:
            self.relayout()
            return
        if strip:
            self.panels["strip"].show(strip)
        self._paint_lines(self._plan)
        if self.frozen_at is None or even_if_frozen:
            self._move_window()
            self._paint_panels(self._plan)
            self._paint_charts()
        if top is not self:
            self.paint_below()

    def _current_latency_source(self) -> str:
        """Which latencies to chart: with the probe, the device's and fio's; else fio's; and before
        the first job, the kernel's means."""
        state = self.shown_state
        if state.probe_frame is not None:
            return DEVICE_LATENCY
        if state.step is None and self.controller.target.devices_below:
            return AWAIT
        return FIO_LATENCY

    @property
    def heat_visible(self) -> bool:
        """Whether a heat map is visible. Before the first job there are only the kernel's means,
        which have no heat map."""
        return self.heat_enabled and self._latency_source != AWAIT

    def _paint_lines(self, plan: layout.LayoutPlan) -> None:
        state, width, charset = self.shown_state, plan.header.width, self.charset
        if plan.header.height == 1:
            job = min(width * 11 // 20, JOB_WIDTH)
            title = (*self.title_line(width - job - 1), (" ", None))
            self.panels["header"].show(
                [(*title, *bars.job_line(state, self.next_job, job, charset))]
            )
        else:
            self.panels["header"].show(
                [self.title_line(width), bars.job_line(state, self.next_job, width, charset)]
            )
        answer = self._answer() if plan.answer.height else None
        if plan.answer.height:
            self.panels["answer"].show([answer_row(answer, width, charset, bars.WHERE_WHOLE)])
        box = plan.finding
        in_box = plan.framed and box.height >= layout.FINDING_BOX
        is_free = finding_line.is_empty(state)
        message, *more_rows = bars.message_rows(
            self.state, self._frozen_frame(), self.own_cost, width,
            box.height if is_free and not in_box else 0, charset, self.has_controls,
        )  # fmt: skip
        self.panels["message"].show([message])
        rows = pad(more_rows, box.height, width) if more_rows else None
        if is_free and in_box:
            whole = bars.long_message(self.state, box.width - BORDER_COLUMNS, charset)
            rows = whole and finding_line.message_box(whole, box.width, box.height, charset)
        draw = finding_line.box_rows if in_box else finding_line.rows
        rows = rows or draw(state, box.width, box.height, charset, answer)
        self.panels["finding"].show(rows)
        self.panels["footer"].show([bars.footer_line(self.hints, width, charset, self.quit_label)])

    def _answer(self, by_clock: bool = False) -> Answer | None:
        controller = self.controller
        return bars.answer_of(self.shown_state, controller.target, controller.devices, by_clock)

    def title_line(self, width: int) -> Row:
        target, devices = self.controller.target, self.controller.devices
        answer = self.shown_state.answer
        if answer is not None and answer.rule == GONE and answer.disk in devices:
            devices = {**devices, answer.disk: replace(devices[answer.disk], size=None)}
        cpus = self._cpu_numbers()
        measured = [devices.get(name or "") for name in (target.device, *target.devices_below)]
        volume = self.shown_state.volume.text if self.shown_state.volume is not None else ""
        of = (width, target, cpus, measured, volume)
        if of != self._title_key:
            self._title_key = of
            trail = HOME_TRAIL if self.has_home else ""
            self._title_row = bars.device_line(
                target, devices, width, self.charset, cpus, volume, trail
            )
        return self._title_row

    def _frozen_frame(self) -> Frame | None:
        return self.shown_state.frame if self._frozen is not None else None

    def topology(self) -> Topology:
        """The CPUs and queues. They are read again when other CPUs are online, and at each run
        until everything could be read."""
        step = self.state.step.step if self.state.step is not None else 0
        topology = self._topology
        key = (tuple(self._cpu_numbers()), step if topology.irq_time is None else 0)
        if key != self._topology_of and key != (self._topology_of[0], 0):
            self._topology = self.controller.topology()
        self._topology_of = key
        return self._topology

    def _cpu_numbers(self) -> list[int]:
        return sorted(self.shown_state.frame.cpus) if self.shown_state.frame else []

    def _panel_data(self) -> registry.PanelData:
        return registry.PanelData(
            self.shown_state, self.controller.target, self.controller.devices, self.topology,
            self.next_job, self.charset, self.frozen_at, self.has_controls, self.window,
            self.controller.disk_use if self._frozen is None else None,
        )  # fmt: skip

    def _paint_panels(self, plan: layout.LayoutPlan) -> None:
        state, target, charset = self.shown_state, self.controller.target, self.charset
        panels = self.panels
        if plan.tabbed:
            width = plan.summary.width
            panels["summary"].show([bars.summary_line(state, target, width, charset)])
            panels["tabs"].show([bars.tabs_line(self.tab_titles, self.tab, width, charset)])
        data, numbered = self._panel_data(), set[int]()
        for panel in self.panes:
            if not panels[panel.name].shown:
                continue
            box = plan.box(panel.name)
            if plan.framed:
                index = self.index_of(panel.name)
                focused = self.focus_shown and self.tab == index
                # fio's panel and the device's have one key, which stands on the first of them
                number = "" if index in numbered else str(index + 1)
                numbered.add(index)
                rows = panel.box_rows(data, box.width, box.height, number, focused)
            else:
                rows = panel.rows(data, box.width, box.height)
            panels[panel.name].show(rows)

    def _paint_steps(self, charts: Sequence[Chart]) -> None:
        """Show the values of the option that was changed last."""
        option = self.shown_state.option_steps
        for chart in charts:
            chart.show_steps(option.name, option.steps, self.window, self.shown_state.t)

    def _move_window(self) -> bool:
        """Move the time span of charts and completions to the newest second. Returns False if no
        chart is shown."""
        columns = self._columns or self.size.width - AXIS_WIDTH
        if self.span is None:
            frame, end = self.shown_state.frame, self.shown_state.history.end or 0.0
            self.window.sample_s = (frame.seconds if frame is not None else None) or 1.0
            self.window.follow(end, columns, self.column_seconds)
            if self.frozen_at is not None:
                self.window.extend_to(self.frozen_at)
        return self._columns > 0

    @property
    def _columns(self) -> int:
        """The width of the narrowest chart in columns, because all charts show the same time."""
        return min((chart.columns for chart in self.charts if chart.shown), default=0)

    def _paint_charts(self) -> None:
        if self.overlay.active:
            self.overlay.paint(self.shown_state)
            return
        if not self._move_window():
            return
        cursor = self.frozen_at
        mouse_t = self.mouse_t
        cursor = cursor if mouse_t is None else mouse_t
        fio, frame = self.shown_state.fio_now, self.shown_state.frame
        disk = frame.combined(self.shown_state.devices) if frame else None
        rates, latency = self.charts[0], self._latencies[self._latency_source]
        bought = self.shown_state.volume
        newest = [f.number(disk.ios_s) if disk else "", f.number(fio.total.iops) if fio else ""]
        self._paint_steps((rates, latency))
        rates.paint(
            self.shown_state.history, self.window, self._values(rates, newest),
            self._mouse_note(self._iops_note()), cursor, self._mark_means(),
            bought.iops if bought is not None else (),
        )  # fmt: skip
        note = self._latency_note()
        latency.paint(
            self.shown_state.history, self.window,
            self._values(latency, self._latency_labels(disk)),
            self._mouse_note(note), cursor,
        )  # fmt: skip
        if mouse_t is not None and self.heat_enabled:
            note = self._mouse_note([]) + self._values_note(latency)
        at = cursor
        if self.heat_maps.cursor.active:
            at, note = self.frozen_at, self._latency_note()
        self.heat_maps.paint(self.shown_state, self.window, note, self.percentiles_enabled, at)
        self.more_charts.paint(
            self.shown_state.history, self.window, disk, cursor, mouse_t,
            bought.mib if bought is not None else (),
        )  # fmt: skip

    # -- the values under the mouse

    @property
    def mouse_t(self) -> float | None:
        """The time that the mouse points at, if there are figures for it; else ``None``."""
        t, end = self._mouse_t, self.shown_state.history.end
        return t if t is not None and end is not None and t <= end + 1.0 else None

    def _values(self, chart: Chart, newest: list[str]) -> list[str]:
        t = self.mouse_t
        if t is None:
            return newest
        column_s = self.window.length / max(1, self._columns)
        return chart.values_at(self.shown_state.history, self.window, t, column_s)

    def _mouse_note(self, note: list[Piece]) -> list[Piece]:
        t = self.mouse_t
        return note if t is None else [(f"at {f.clock(t)}", BOLD), ("  ", None)]

    def _values_note(self, chart: Chart) -> list[Piece]:
        """The values of the curves; a heat map does not show them in its title."""
        pieces: list[Piece] = []
        for curve, value in reversed(
            [*zip(chart.spec.curves, self._values(chart, []), strict=True)]
        ):
            if value:
                pieces += [(f"{curve.label} ", DIM), (f"{value:>6}  ", BOLD)]
        return pieces

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Show the values of the second under the mouse in all charts."""
        chart = mouse.chart_at(self.charts, event.screen_x, event.screen_y)
        column = chart.column_at(event.screen_x, event.screen_y) if chart is not None else None
        if chart is None or column is None or self.overlay.active:
            self._set_mouse_t(None)
        else:
            self._set_mouse_t(chart.begin_of(column + 1, self.window))

    def on_leave(self, event: events.Leave) -> None:
        """Forget the position, because the mouse has left the charts."""
        self._set_mouse_t(None)

    def _set_mouse_t(self, t: float | None) -> None:
        if self._mouse_timer is not None:
            self._mouse_timer.stop()
            self._mouse_timer = None
        if t is not None:
            self._mouse_timer = self.set_timer(TOOLTIP_S, lambda: self._set_mouse_t(None))
        before, self._mouse_t = self._mouse_t, t
        if t != before and self._plan is not None and self.is_current:
            self._paint_charts()

    @property
    def tab_titles(self) -> Sequence[str]:
        """The titles of the tabs. That of the numbers changes while it shows who uses the disk."""
        if not self._users_placed:
            return self.tabs
        return [WHO_TITLE if title == NUMBERS_TITLE else title for title in self.tabs]

    @property
    def users_sentence(self) -> str:
        """Who uses the target most; "" while a job's figures are shown, or if nobody is known."""
        data = self._panel_data()
        return who_panel.sentence(data.users, data.target, data.seconds_of_use)

    @property
    def users_of_disk(self) -> who_panel.UsersOfDisk | None:
        """Who uses the target; ``None`` while a job's figures are shown, or if it was not read."""
        data = self._panel_data()
        if data.users is None:
            return None
        return who_panel.users_of(data.users, data.target, data.seconds_of_use)

    def index_of(self, name: str) -> int:
        region = "fio" if name == "kernel" else name
        if region in self.regions:
            return self.regions.index(region)
        with_tab = [panel.name for panel in self.panes if panel.tab]
        return len(layout.TABS) + with_tab.index(name) if name in with_tab else 0

    def copied_head(self) -> list[str]:
        """Lines with place, time and what was measured, and the answer."""
        from iopstui.ui.core.clipboard import place_and_time

        state, controller, answer = self.shown_state, self.controller, self._answer(by_clock=True)
        wall_ms = state.frame.wall_ms if state.frame is not None else None
        place = place_and_time(controller.host, wall_ms, controller.target, controller.devices)
        lines = [f"{place}, {bars.run_text(state)}"]
        lines += [answer.sentence_with_span] if answer is not None else []
        if answer is not None and answer.next:
            lines.append(f"Next: {answer.next}")
        return lines

    def copied_text(self) -> str:
        """The text to copy: the head, who uses the disk (unless the answer says it), the findings
        and the last run."""
        state, answer, data = self.shown_state, self._answer(), self._panel_data()
        lines = self.copied_head()
        if data.users is not None and not (answer and answer.who):
            users = registry.PANELS[0].rows(data, COPIED_COLUMNS, COPIED_ROWS)[:-1]
            text = _AGE.sub(
                lambda age: f", ended {time_of(state, state.t - int(age[1]))}", rows_text(users)
            )
            lines += filter(None, text.split("\n"))
        lines += finding_line.texts(state, answer)
        lines += [
            run_outcome(row, state.runs.name_of(row), LATENCIES)
            for row in state.runs.rows[-1:] if row.iops is not None
        ]  # fmt: skip
        return "\n".join(lines)

    def finding_rows(self, width: int) -> list[Row]:
        """The rows of the page with the whole answer and all findings."""
        answer = self._answer(by_clock=True)
        return finding_line.list_rows(self.shown_state, width, self.charset, answer)

    # -- the mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        chart = mouse.chart_at(self.charts, event.screen_x, event.screen_y)
        self._drag = None
        if event.button == 1 and chart is not None and not self.overlay.active:
            self._drag = (chart, event.screen_x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """After a drag over a chart, show the selected span of time."""
        drag, self._drag = self._drag, None
        self._dragged = False
        if drag is None:
            return
        chart, x = drag
        plot = chart.axis.box
        columns = sorted((x, min(max(event.screen_x, plot.x + AXIS_WIDTH), self.size.width)))
        if columns[1] - columns[0] < mouse.MIN_DRAG:
            return
        self._dragged = True
        first, last = (chart.begin_of(at - plot.x - AXIS_WIDTH, self.window) for at in columns)
        self.show_span(first, last)

    def on_click(self, event: events.Click) -> None:
        """Focus a panel, show it on the whole screen (double click), select a second, or press a
        key of the footer."""
        x, y, plan = event.screen_x, event.screen_y, self._plan
        if plan is None or self._dragged or event.button != 1:
            self._dragged = False
            return
        if mouse.inside(plan.footer, x, y):
            key = mouse.footer_key_at(self.hints, plan.footer.width, x, self.quit_label)
            if key is not None:
                self.post_message(KeyClicked(key))
        elif mouse.inside(plan.tabs, x, y):
            tab = mouse.tab_at(self.tab_titles, x)
            if tab is not None and not self.show_tab(tab):
                self.show_fullscreen(tab)
        elif mouse.inside(plan.strip, x, y):
            self.post_message(StripClicked(x - plan.strip.x, plan.strip.width))
        elif mouse.inside(plan.finding, x, y):
            self.post_message(KeyClicked("f"))
        else:
            self._click_panel(x, y, event.chain)

    def _click_panel(self, x: int, y: int, chain: int) -> None:
        tab = self._panel_at(x, y)
        if tab is not None and not self.tabbed and not (self.focus_shown and self.tab == tab):
            self.focus_panel(tab)
        if self._is_chosen(x, y):
            self.post_message(KeyClicked("Enter"))
            return
        if chain == 2 and tab is not None and self.allows_fullscreen:
            if self.fullscreen:
                self.show_fullscreen(None)
            elif not self.tabbed:
                self.show_fullscreen(tab)
            return
        chart = mouse.chart_at(self.charts, x, y)
        column = chart.column_at(x, y) if chart is not None else None
        if chart and column is not None and chain == 1 and not self.overlay.active:
            column_s = chart.column_s(self.window)
            self.freeze_at(chart.begin_of(column, self.window) + column_s / 2)
            heat, t = self._heat_map_at(x, y), self.frozen_at
            if heat is not None and t is not None:
                self.heat_maps.cursor.choose(heat, heat.row_at(y), t)
                self.post_message(ViewChanged())
                self.paint(even_if_frozen=True)

    def _heat_map_at(self, x: int, y: int) -> HeatMap | None:
        """The heat map at this cell, if its column is that of the selected second."""
        chart, t = mouse.chart_at(self.charts, x, y), self.frozen_at
        column = chart.column_at(x, y) if isinstance(chart, HeatMap) else None
        if not self.has_heat_cells or column is None or t is None or self._frozen is None:
            return None
        assert isinstance(chart, HeatMap)
        column_s = chart.column_s(self.window)
        # a second may fill several columns
        middle = chart.begin_of(column, self.window) + column_s / 2
        entry = self._frozen.recent_seconds.at(middle)
        same = column == self.window.column(t, column_s) or (entry is not None and entry.t == t)
        return chart if same else None

    def _is_chosen(self, x: int, y: int) -> bool:
        heat = self._heat_map_at(x, y)
        return heat is not None and heat.chosen is not None and heat.row_at(y) == heat.chosen.row

    def _panel_at(self, x: int, y: int) -> int | None:
        plan = self._plan
        names = ("iops", "latency", *(panel.name for panel in self.panes))
        hits = (n for n in names if plan is not None and mouse.inside(plan.box(n), x, y))
        name = next(hits, None)
        return self.index_of(name) if name is not None else None

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Show a longer span of time."""
        self._scroll(event, True)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Show a shorter span of time."""
        self._scroll(event, False)

    def _scroll(self, event: events.MouseEvent, down: bool) -> None:
        event.stop()
        if mouse.chart_at(self.charts, event.screen_x, event.screen_y) is not None:
            self.zoom(down)

    def freeze_at(self, t: float) -> None:
        """Freeze all panels at the second that contains ``t``."""
        if self._frozen is None:
            self._frozen = self.state.snapshot()
        self._show_second(self._frozen.recent_seconds.at(t))
        self.post_message(ViewChanged())
        self.paint(even_if_frozen=True)

    def show_span(self, first: float, last: float) -> None:
        """Show this span of time in the charts, until the zoom changes or Esc is pressed."""
        if last > max(0.0, first):
            self.span = (max(0.0, first), last)
            self.window.start = self.span[0]
            self.window.length = max(MIN_SPAN_S, last - self.span[0])
            self.post_message(ViewChanged())
            self.paint(even_if_frozen=True)

    def clear_span(self) -> None:
        """Show the same time as before a span was chosen."""
        if self.span is not None:
            self.span = None
            self.window = TimeWindow()
            self.paint(even_if_frozen=True)

    def _mark_means(self) -> list[Mean]:
        """The means of each span between marks. Without marks there are none, because the runs
        panel then says more."""
        mark_intervals = self.shown_state.mark_intervals
        if not mark_intervals.marked:
            return []
        return [
            Mean(
                interval.start,
                interval.end,
                interval.iops,
                f"{self.charset.mean}{f.number(interval.iops)}",
            )
            for interval in mark_intervals.all
            if interval.iops is not None and interval.end >= self.window.start
        ]

    def _latency_labels(self, disk: DiskRates | None) -> list[str]:
        """The newest value of each latency curve."""
        state = self.shown_state
        if self._latency_source == AWAIT:
            return [f.dense_ms(ms) if ms is not None else ""
                    for ms in ((disk.w_await, disk.r_await) if disk else (None, None))]  # fmt: skip
        fio = state.fio_now.total.percentiles if state.fio_now else {}
        if self._latency_source == FIO_LATENCY:
            return [f.latency(fio[n], "") if n in fio else "" for n in ("p99.9", "p99", "p50")]
        probe = state.probe
        times = probe.device_times(state.devices) if probe is not None else None
        device = times.percentiles if times is not None else {}
        values = (device.get("p99"), fio.get("p99"), device.get("p50"), fio.get("p50"))
        return [f.latency(value, "") if value is not None else "" for value in values]

    def _iops_note(self) -> list[Piece]:
        target = self.controller.target
        if not target.devices_below and not target.shares:
            return [("no block device", DIM)]
        return []

    def _latency_note(self) -> list[Piece]:
        frame = self.shown_state.fio
        if frame is not None and NO_LATENCY in frame.flags:
            return [("this job measures no latency (gtod_reduce)", WARNING)]
        if self._latency_source == AWAIT:
            hint = "" if self.is_replay else f"; {self.probe_key}: percentiles"
            return [(f"no job: means from /proc/diskstats{hint}", DIM)]
        if frame is None and self._latency_source != DEVICE_LATENCY:
            return [("measured by fio: needs a job", DIM)]
        return []
