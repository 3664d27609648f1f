"""Keys that only change the view: charts, panes, heat map, queue map, findings, messages, help."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.ui.core.actions import (
    ANYWHERE,
    BOTH_SCREENS,
    IDLE,
    OVER_EXPERIMENT,
    REPLAY,
    RUNNING,
    Action,
    Footer,
    Key,
    Part,
)
from iopstui.ui.core.port import Port
from iopstui.ui.draw.rows import Row


class ViewKeys(Part):
    """Keys that change only what is shown, never what is measured."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self._marks = 0

    @property
    def frozen(self) -> bool:
        """True while the picture stands still."""
        dashboard = self.port.dashboard
        return dashboard is not None and dashboard.frozen_at is not None

    def mark(self) -> None:
        """Put the next numbered mark on the charts."""
        if self.port.session is not None:
            self._marks += 1
            self.port.session.mark(f"mark {self._marks}")

    def freeze(self) -> None:
        """Freeze the picture, or let it go on."""
        if self.port.dashboard is not None:
            self.port.dashboard.freeze()
            self.port.refresh_footer()
            self.port.paint()

    def tab(self, tab: int) -> None:
        """Show a pane."""
        dashboard = self.port.dashboard
        if dashboard is not None and not dashboard.show_tab(tab):
            words = f"{dashboard.tabs[tab]} is on the screen already: it is large enough for all"
            self.port.say("info", words)

    def next_tab(self, by: int) -> None:
        """Show the next or the previous pane."""
        dashboard = self.port.dashboard
        if dashboard is not None:
            self.tab((dashboard.tab + by) % len(dashboard.tabs))

    def zoom(self, out: bool) -> None:
        """Show a longer or a shorter stretch of time in the charts."""
        if self.port.dashboard is not None:
            self.port.say("info", self.port.dashboard.zoom(out))

    def findings(self) -> None:
        """Open the list of findings and outcomes."""
        from iopstui.ui.dashboard.finding_line import listed
        from iopstui.ui.dialogs.live_rows import LiveRows

        state, charset = self.port.state, self.port.charset
        title = "findings, the newest first"
        self.port.push(LiveRows(title, lambda width: listed(state, width, charset), charset))

    def queue_map(self) -> None:
        """Open the queue map."""
        if self.port.dashboard is not None:
            from iopstui.ui.dialogs.live_rows import LiveRows

            title = "queue map: hctx, CPUs, interrupts"
            self.port.push(LiveRows(title, self._queue_rows, self.port.charset))

    def _queue_rows(self, width: int) -> Sequence[Row]:
        from iopstui.ui.dashboard import queue_view

        session, dashboard = self.port.session, self.port.dashboard
        if session is None or dashboard is None:
            return []
        return queue_view.rows(
            self.port.state, session.target, session.devices, dashboard.topology(), width,
            self.port.charset,
        )  # fmt: skip

    def heat_map(self) -> None:
        """Show the heat map in place of the percentile lines, or the lines again."""
        dashboard = self.port.dashboard
        if dashboard is not None:
            dashboard.show_heat(not dashboard.heat_shown)

    def percentiles(self) -> None:
        """Draw percentiles over the heat map, which is opened for it."""
        if self.port.dashboard is not None:
            self.port.dashboard.turn_percentiles()

    def log(self) -> None:
        """Open the session's messages."""
        if self.port.dashboard is not None:
            from iopstui.ui.dialogs.text import log_screen

            self.port.push(log_screen(self.port.state, self.port.charset))

    def help(self) -> None:
        """Open the help."""
        from iopstui.ui.dialogs.text import help_screen

        self.port.push(help_screen(self.port.charset))

    ACTIONS = (
        Action(
            "mark", (Key("m", "m"),), mark, title="Mark this moment",
            help="put a mark on the charts, now", place=60,
            footer=(Footer("mark", {IDLE: 160, RUNNING: 160}),),
            where=OVER_EXPERIMENT, measures=True,
        ),
        Action(
            "freeze", (Key("space", "space"),), freeze, title="Freeze or go on",
            help="freeze the picture; measuring goes on. Again: go on", place=70,
            footer=(
                Footer("freeze", {IDLE: 170, RUNNING: 170}, when=lambda view: not view.frozen),
                Footer("go on", {IDLE: 170, RUNNING: 170}, when=lambda view: view.frozen),
            ),
        ),
        Action(
            "zoom",
            (Key("minus", "-", True, "Charts: longer time"),
             Key("plus,equals_sign", "+", False, "Charts: shorter time")), zoom,
            help="charts: a longer or a shorter stretch of time", place=90,
            footer=(Footer("time", {IDLE: 190, RUNNING: 190, REPLAY: 190}),),
        ),
        Action(
            "tab", (Key("1", "1", 0), Key("2", "2", 1), Key("3", "3", 2), Key("4", "4", 3)), tab,
            help="the panes, where the terminal is too small for all of them", place=100,
            term="1 2 3 4, tab",
        ),
        Action(
            "next_tab",
            (Key("tab", "tab", 1, on_dashboard=True),
             Key("shift+tab", "shift+tab", -1, on_dashboard=True)), next_tab,
        ),
        Action(
            "queue_map", (Key("o", "o"),), queue_map, title="Queue map",
            note="hardware queues, their CPUs and interrupts",
            help="the queue map: hardware queue, its CPUs, its interrupt, where that goes and how"
            " often it comes", place=200,
            footer=(Footer("queues", {IDLE: 140, RUNNING: 140}),),
        ),
        Action(
            "heat_map", (Key("h", "h"),), heat_map, title="Latency: heat map or lines",
            note="each second's histogram as a column",
            help="latency as a heat map of each second's histogram, or as percentile lines",
            place=210, footer=(Footer("heat map", {IDLE: 130, RUNNING: 130}),),
        ),
        Action(
            "percentiles", (Key("p", "p"),), percentiles, title="Heat map: percentiles over it",
            help="percentiles over the heat map: ━ p50, ─ p99, ┄ p99.9", place=220,
        ),
        Action(
            "findings", (Key("f", "f"),), findings, title="Findings",
            note="what the evidence shows, with its numbers",
            help="findings: what the evidence shows, in sentences with their numbers; and what"
            " came of each --expect", place=230,
            footer=(Footer("findings", {IDLE: 120, RUNNING: 120}),),
        ),
        Action(
            "log", (Key("e", "e"),), log, title="Messages",
            note="everything that was said in this session",
            help="everything that was said in this session, and fio's command line", place=250,
            footer=(Footer("messages", {IDLE: 890, RUNNING: 890, REPLAY: 890}),),
            where=OVER_EXPERIMENT, offered_on=BOTH_SCREENS,
        ),
        Action(
            "help", (Key("question_mark,f1", "?"),), help, title="Help",
            note="every key, panel and abbreviation", where=OVER_EXPERIMENT,
            offered_on=BOTH_SCREENS,
        ),
        Action(
            # Textual itself opens it
            "palette", (Key("", "ctrl+p"),), lambda view: None,
            help="all of this in a list that can be searched", place=260,
            footer=(Footer("all", {IDLE: 1000, RUNNING: 1000, REPLAY: 1000}),), where=ANYWHERE,
        ),
    )  # fmt: skip
