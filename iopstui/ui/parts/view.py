"""Keys that only change the view: charts, panes, heat map, queue map, findings, messages, help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from iopstui.discovery import feature_modules
from iopstui.tables import sortable
from iopstui.text import printable
from iopstui.ui.actions import (
    ALL_SCREENS,
    ANYWHERE,
    BOTH_SCREENS,
    IDLE,
    OVER_EXPERIMENT,
    REPLAY,
    RUNNING,
    Action,
    Footer,
    Part,
)
from iopstui.ui.core import key
from iopstui.ui.core.key import Key
from iopstui.ui.draw.rows import Row, capital
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.linux.counters.cgroup import CgroupLoad
    from iopstui.model.cgroups import GroupRates
    from iopstui.session.live import LiveSession
    from iopstui.ui.core.modal import Modal
    from iopstui.ui.dashboard.panels.who_panel import UsersOfDisk
    from iopstui.ui.dialogs.slow_list import LiveRows, ProcessList, SlowList

    GroupsOfDisks = tuple[Sequence[GroupRates] | None, Sequence[str], str]
    """The groups, the disks, and why there are none."""

LONGEST_MARK = 60
FEATURE_PAGES = {page.TITLE: page for page in feature_modules("who_page")}
WHO_PAGES = {
    "Processes": "processes", "Cgroups": "cgroups, units, containers, pods",
    **{title: page.SUBJECT for title, page in FEATURE_PAGES.items()},
    "Slowest": "the slowest requests", "Kernel": "inside the kernel",
}  # fmt: skip
"""The pages of the key ``u``: the titles of their tabs, and their names in the palette."""
PLACE_PAGES = ("Waits", "Queue map")
"""The pages of the key ``o``."""


NO_READING = "the flight recorder noted no cgroup at this second (it reads them every 5 s)"


def _nothing() -> None:
    """Does nothing, for a page that leaves nothing to end."""


class ViewKeys(Part):
    """Keys that change only the view, never the measurement."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self._marks = 0

    @property
    def frozen(self) -> bool:
        dashboard = self.port.dashboard
        return dashboard is not None and dashboard.frozen_at is not None

    def mark(self) -> None:
        from iopstui.ui.dialogs.questions import Prompt

        hint = (
            f"Enter adds a mark with this text now; without text it is {self._next_mark}. Charts "
            "show the mean between marks."
        )
        prompt = Prompt("Mark", hint, "", lambda text: text, self.port.charset)
        self.port.push(prompt, self._add_mark)

    @property
    def _next_mark(self) -> str:
        return f"mark {self._marks + 1}"

    def _add_mark(self, text: str | None) -> None:
        if text is not None and self.port.session is not None:
            mark_text = " ".join(text.split())[:LONGEST_MARK] or self._next_mark
            self._marks += mark_text == self._next_mark
            self.port.session.mark(mark_text)

    def freeze(self) -> None:
        self.port.open_dashboard.freeze()
        self.port.refresh_footer()
        self.port.open_dashboard.paint(even_if_frozen=True)

    def walk(self, by: tuple[int, float]) -> None:
        """Show an earlier or a later second in all panes. ``by`` is (entries, seconds)."""
        dashboard = self.port.open_dashboard
        begins, step = dashboard.frozen_at is None, by[0] + by[1]
        if begins and step > 0:
            self.port.show_message("info", "this is now; left: back in time, space: freeze")
            return
        moved = dashboard.walk(*by)
        if not moved and not begins:
            end = "second of the freeze" if step > 0 else "oldest kept second"
            self.port.show_message("info", f"this is the {end}; space: return to now")
        self.port.refresh_footer()
        dashboard.paint(even_if_frozen=True)

    def zoom(self, out: bool) -> None:
        """Show a longer or a shorter span of time in the charts."""
        self.port.show_message("info", self.port.open_dashboard.zoom(out))

    def findings(self) -> None:
        rows = self.port.open_dashboard.finding_rows
        self.port.push(self._list("Findings", rows, key.FINDINGS))

    def runs(self) -> None:
        from iopstui.ui.dialogs.jobs import RunsList

        dashboard = self.port.open_dashboard
        runs = RunsList(
            lambda: self.port.shown_state, dashboard.overlay, self.port.charset,
            can_run=not self.port.is_replay,
        )  # fmt: skip
        self.port.push(runs, lambda _: dashboard.relayout())

    def overlay(self) -> None:
        """Overlay the newest two runs, or show the usual charts again."""
        dashboard = self.port.open_dashboard
        overlay = dashboard.overlay
        measured = [row.step for row in self.port.shown_state.runs.rows if row.iops is not None]
        if overlay.steps:
            overlay.steps = ()
        elif len(measured) < 2:
            self.port.show_message("info", "an overlay needs two runs")
        else:
            overlay.steps = tuple(measured[-2:])
            before, now = overlay.steps
            text = f"overlay of runs {before} and {now}; v, Enter: choose others"
            self.port.show_message("info", text)
        dashboard.relayout()

    def base(self) -> None:
        """Compare all runs with the newest finished one, or stop doing so."""
        had = self.port.state.runs.base
        row = self.port.state.runs.toggle_base()
        text = "no finished run yet to compare with"
        if row is not None:
            text = f"run {row.step} is the base that all runs are compared with (again: none)"
        elif had is not None:
            text = "no base run"
        self.port.show_message("info", text)

    def places(self, index: int = 0) -> None:
        """Open one of the pages on where I/Os are: where they wait, or the queues."""
        from iopstui.ui.core.modal import PageTabs

        rows = (self._wait_rows, self._queue_rows)[index]
        page = self._list(PLACE_PAGES[index], rows, key.PLACES)
        self.port.push(page.with_tabs(PageTabs("Where", PLACE_PAGES, index, self.places)))

    def _queue_rows(self, width: int) -> Sequence[Row]:
        from iopstui.ui.dashboard.pages import queue_view

        session, dashboard = self.port.session, self.port.dashboard
        if session is None or dashboard is None:
            return []
        return queue_view.rows(
            self.port.shown_state, session.target, session.devices, dashboard.topology(), width,
            self.port.charset,
        )  # fmt: skip

    def _probe_rows(self, width: int) -> Sequence[Row]:
        from iopstui.ui.dashboard.pages import probe_view

        dashboard, live = self.port.dashboard, self.port.live
        if dashboard is None:
            return []
        parts = live.probe if live is not None else None
        return probe_view.rows(
            self.port.shown_state, parts, dashboard.topology(), width, self.port.charset,
            printable(live.no_probe) if live is not None else "",
        )  # fmt: skip

    def _wait_rows(self, width: int) -> Sequence[Row]:
        from iopstui.ui.dashboard.pages import waits_view

        state = self.port.shown_state
        end = state.frame.t if state.frame is not None else 0.0
        history = [entry.frame for entry in state.recent_seconds if entry.frame.t <= end]
        return waits_view.rows(state, history, width, self.port.charset)

    def users(self, index: int = 0) -> None:
        """Open one of the pages on who uses the disk."""
        from iopstui.ui.core.modal import PageTabs

        page, when_closed = self._user_page(index)
        every = [*WHO_PAGES]
        titles = [one for one in every if one in (every[index], *self._known_pages())]
        tabs = PageTabs("Who", titles, titles.index(every[index]),
                        lambda place: self.users(every.index(titles[place])))  # fmt: skip
        self.port.push(page.with_tabs(tabs), lambda _: when_closed())

    def _known_pages(self) -> Iterator[str]:
        """The pages that have something here: without cgroup version 2 no I/O is counted by
        cgroup."""
        for title in WHO_PAGES:
            live = self.port.live
            if title != "Cgroups" or live is None or not self._cgroup_load(live).why_not:
                yield title

    def _user_page(self, index: int) -> tuple[Modal[None], Callable[[], None]]:
        """A page on who uses the disk, and a function that ends what the page started."""
        match tuple(WHO_PAGES)[index]:
            case "Processes":
                return self._processes_page(), _nothing
            case "Cgroups":
                return self._cgroups_page(), _nothing
            case "Slowest":
                return self._slowest_page(), _nothing
            case "Kernel":
                return self._list("Kernel", self._probe_rows), _nothing
            case title:
                page: tuple[Modal[None], Callable[[], None]] = FEATURE_PAGES[title].open_page(
                    self.port
                )
                return page

    def _list(
        self, title: str, rows: Callable[[int], Sequence[Row]], opened_by: Key = key.USERS
    ) -> LiveRows:
        from iopstui.ui.dialogs.slow_list import LiveRows

        return LiveRows(title, rows, self.port.charset, opened_by)

    def _processes_page(self) -> ProcessList:
        from iopstui.linux.process.process_io import ProcessIo
        from iopstui.ui.dashboard.pages import processes_view
        from iopstui.ui.dialogs.slow_list import ProcessList

        port, charset = self.port, self.port.charset
        live = None if port.live is None else ProcessIo()

        def source() -> processes_view.Source | None:
            use = port.replay.disk_use if port.replay is not None and not self.frozen else None
            return processes_view.RecordedProcesses(use) if use is not None else live

        def disk(of_all: bool) -> UsersOfDisk | None:
            return None if of_all else port.open_dashboard.users_of_disk

        records_users = port.replay is not None and port.replay.records_users
        page = ProcessList(
            "Processes",
            lambda width: processes_view.rows(
                port.shown_state, source(), width, charset, self.frozen, page.order,
                page.filter_text, port.open_dashboard.users_sentence,
                disk(page.all_disks), records_users,
                port.live.disk_use if port.live is not None and not self.frozen else None,
            ),
            charset, key.USERS,
            lambda of_all: processes_view.orders(port.shown_state, source(), disk(of_all)),
            disk(False) is None and not records_users,
        )  # fmt: skip
        return page

    def _cgroups_page(self) -> LiveRows:
        from iopstui.ui.dashboard.pages import cgroups_view
        from iopstui.ui.dialogs.slow_list import LiveRows

        port, charset, groups = self.port, self.port.charset, self._groups()
        page = LiveRows(
            "Cgroups",
            lambda width: cgroups_view.rows(
                *groups(), width, charset, page.order, self.frozen and port.live is not None,
                port.shown_state.probe, page.filter_text,
            ),
            charset, key.USERS, lambda: sortable(cgroups_view.COLUMNS), True,
        )  # fmt: skip
        return page

    @property
    def experimenting(self) -> bool:
        """Whether a sweep or a comparison runs."""
        experiment = self.port.state.experiment
        return experiment is not None and experiment.active

    @property
    def has_heat(self) -> bool:
        dashboard = self.port.dashboard
        return dashboard is not None and any(
            heat_map.shown for heat_map in dashboard.heat_maps.maps
        )

    def move_cell(self, by: int) -> None:
        dashboard = self.port.open_dashboard
        if not dashboard.move_cell(by):
            self.port.show_message("info", "nothing in the heat map at this second")
        self.port.refresh_footer()
        dashboard.paint(even_if_frozen=True)

    def open_cell(self) -> None:
        """List the kept requests of the chosen cell."""
        chosen = self.port.open_dashboard.chosen_cell
        if chosen is None:
            return
        from iopstui.ui.dialogs.slow_list import cell_list

        self._open_requests(cell_list(self.port.shown_state, chosen, self.port.charset))

    def _open_requests(self, page: SlowList | None) -> None:
        """Open this list of requests; if it is ``None``, explain why."""
        if page is not None:
            self.port.push(page)
            return
        from iopstui.ui.dialogs.slow_list import empty_reason

        live = self.port.live
        parts = live.probe if live is not None else None
        why = printable(live.no_probe) if live is not None else ""
        self.port.show_message("info", empty_reason(self.port.shown_state, parts, why))

    def leave_cell(self) -> None:
        self.port.open_dashboard.leave_cell()
        self.port.refresh_footer()
        self.port.open_dashboard.paint(even_if_frozen=True)

    def _slowest_page(self) -> Modal[None]:
        """The slowest requests of the second shown, or a page that says why there are none."""
        from iopstui.ui.dialogs.slow_list import empty_reason, slowest_list
        from iopstui.ui.draw.rows import wrap

        state, charset, live = self.port.shown_state, self.port.charset, self.port.live
        page = slowest_list(state, charset)
        if page is not None:
            return page
        parts, why = (live.probe, printable(live.no_probe)) if live is not None else (None, "")
        reason = capital(empty_reason(state, parts, why)).rstrip(".")
        return self._list("Slowest", lambda width: wrap(width, charset, f"{reason}.", None))

    def _groups(self) -> Callable[[], GroupsOfDisks]:
        """A function that returns the cgroups' rates; in a replay, the recorded ones."""
        port, live = self.port, self.port.live
        if live is None:

            def recorded() -> GroupsOfDisks:
                frame = port.shown_state.frame
                groups: Sequence[GroupRates] | None = frame.groups if frame is not None else None
                replay = port.replay
                if groups is None and replay is not None and not self.frozen:
                    groups = replay.groups
                why = "" if groups is not None else "this recording has none (watch --cgroups)"
                if groups is None and replay is not None and replay.records_users:
                    why = NO_READING
                return groups, frame.opened if frame is not None else (), why

            return recorded
        load = self._cgroup_load(live)
        return lambda: (load.rates(), load.disks, load.why_not)

    def _cgroup_load(self, live: LiveSession) -> CgroupLoad:
        from iopstui.linux.counters.cgroup import CgroupLoad
        from iopstui.linux.kernel_files import Roots

        return CgroupLoad(live.target.devices_below, Roots())

    def heat_map(self) -> None:
        """Switch from the percentile lines to the heat map; with the probe, then to the device's
        heat map and to both; then back."""
        self.port.open_dashboard.next_heat_map()
        self._explain_missing_heat()

    def percentiles(self) -> None:
        """Draw percentiles over the heat map, which is opened if necessary."""
        self.port.open_dashboard.toggle_percentiles()
        self._explain_missing_heat()

    def _explain_missing_heat(self) -> None:
        dashboard = self.port.open_dashboard
        if dashboard.heat_enabled and not dashboard.heat_visible:
            what = "at a second with a job or the probe"
            what = (
                what
                if self.port.is_replay
                else f"with a job, or with the probe ({dashboard.probe_key})"
            )
            self.port.show_message("info", f"the heat map begins {what}")

    def log(self) -> None:
        """Open the session's messages."""
        from iopstui.ui.dialogs.text import LogScreen

        self.port.push(LogScreen(self.port.state, self.port.charset))

    def help(self) -> None:
        self.port.open_help()

    def themes(self) -> None:
        """Open the list of themes. The chosen theme is saved."""
        from iopstui.ui.dialogs.questions import ThemeChoice

        names, now = self.port.themes()
        self.port.push(
            ThemeChoice(names, now, self.port.charset),
            lambda name: None if name is None else self.port.apply_theme(name),
        )

    def save_layout(self) -> None:
        self.port.save_layout()

    def theme(self, name: str) -> None:
        self.port.apply_theme(name)

    ACTIONS = (
        Action(
            "mark", (Key("m", "m"),), mark, title="Mark this moment",
            help="add a mark to the charts, with your text or a number; charts show the "
                 "mean between marks", place=60,
            footer=(Footer("Mark", {IDLE: 160, RUNNING: 160}),),
            measures=True,
        ),
        Action(
            "freeze", (Key("space", "space"),), freeze, title="Freeze or continue",
            help="freeze all panels at this second; measuring continues. Again: back to now",
            place=70,
            footer=(
                Footer("Freeze", {IDLE: 170, RUNNING: 170}, when=lambda view: not view.frozen),
                Footer("Continue", {IDLE: 6, RUNNING: 6}, when=lambda view: view.frozen),
            ),
        ),
        Action(
            "walk", (Key("left", "left", (-1, 0.0)), Key("right", "right", (1, 0.0))), walk,
            help="one second back, forward, in all panels; freezes "
                 "the screen. The last five minutes are kept", place=75, term="left right",
            footer=(
                Footer("Walk", {IDLE: 5, RUNNING: 5}, when=lambda view: view.frozen,
                       key="← →"),
            ),
        ),
        Action(
            "stride",
            (Key("shift+left,pageup", "PgUp", (0, -10.0)),
             Key("shift+right,pagedown", "PgDn", (0, 10.0))), walk,
            help="ten seconds back, forward", place=76,
        ),
        Action(
            "ends", (Key("home", "home", (0, -1e9)), Key("end", "end", (0, 1e9))), walk,
            help="to the start of the last five minutes, to the second of the freeze", place=77,
        ),
        Action(
            "zoom",
            (Key("minus", "-", True, "Charts: longer time"),
             Key("plus,equals_sign", "+", False, "Charts: shorter time")), zoom,
            help="charts: show a longer or shorter time", place=90,
            footer=(Footer("Time", {IDLE: 190, RUNNING: 190, REPLAY: 190}),),
        ),
        Action(
            "places",
            (replace(key.PLACES, argument=0, title="Where the I/Os wait"),
             Key("", "", 1, "Queue map")), places,
            note="for a CPU, above the block layer, in which device; hardware queues",
            help="where the I/Os in flight are: waiting for a CPU, above the block layer, in each "
                 "device of the stack; Tab: queue map, each hardware queue with its CPUs, its "
                 "interrupt, and where and how often that arrives", place=200,
            footer=(Footer("Waits, queues", {IDLE: 140, RUNNING: 140}),),
        ),
        Action(
            "runs", (key.RUNS,), runs, title="Runs",
            note="each run: what was changed, and its figures",
            help="runs of this session: what was changed, the figures, and the "
                 "difference in IOPS from the run before and from the base", place=202,
            footer=(Footer("Runs", {IDLE: 185, RUNNING: 185, REPLAY: 185}),),
        ),
        Action(
            "overlay", (Key("", "", title="Runs: overlay two, or end it"),), overlay,
            note="the newest two, or those selected in the list of runs",
        ),
        Action(
            "base", (Key("", "", title="Base run: the newest one, or none"),), base,
        ),
        Action(
            "users",
            (replace(key.USERS, argument=0, title="Who uses the disk: processes"),
             *(Key("", "", index, f"Who uses the disk: {title}")
               for index, title in enumerate(WHO_PAGES.values()) if index)), users,
            note="Tab: the next of these pages",
            help="who uses the disk: processes; Tab: cgroups (units, containers, pods) with their "
                 "waiting time and limits, the workload of each process (root), the slowest "
                 "requests of the second, and what the probe measures inside the kernel",
            place=206,
            footer=(Footer("Who", {IDLE: 25, RUNNING: 139}),),
        ),
        Action(
            "heat_map", (Key("h", "h"),), heat_map, title="Latency: heat map or lines",
            note="each second's histogram as a column",
            help="latency as a heat map of each second's histogram, or as percentile lines; while"
            " the probe counts: fio's, the device's, both, lines",
            place=210, footer=(Footer("Heat map", {IDLE: 130, RUNNING: 130}),),
        ),
        Action(
            "percentiles", (Key("", "", title="Heat map: percentiles over it"),), percentiles,
            note="━ p50, ─ p99, ┄ p99.9",
        ),
        Action(
            "cell", (Key("up", "up", -1), Key("down", "down", 1)), move_cell,
            help="a cell of the heat map (h), the slowest I/Os first: left and right change the "
                 "second, Enter or a click on the cell lists the requests kept of it (probe: P), "
                 "Esc leaves it", place=221, term="up down",
            footer=(Footer("Cell", {IDLE: 131, RUNNING: 131, REPLAY: 131},
                           when=lambda view: view.has_heat, key="↑ ↓"),),
            applies=lambda view: view.has_heat,
        ),
        Action(
            "open_cell", (Key("enter", "Enter", on_dashboard=True),), open_cell,
            footer=(Footer("Requests", {IDLE: 3, RUNNING: 3, REPLAY: 3},
                           when=lambda view: view.port.in_cell),),
            applies=lambda view: view.port.in_cell,
        ),
        Action(
            "leave_cell", (Key("escape", "Esc", on_dashboard=True),), leave_cell,
            footer=(Footer("Leave the cell", {IDLE: 4, RUNNING: 4, REPLAY: 4},
                           when=lambda view: view.port.in_cell),),
            applies=lambda view: view.port.in_cell,
        ),
        Action(
            "findings", (key.FINDINGS,), findings, title="Findings",
            note="what limits the I/O, with numbers",
            help="the whole answer; findings: what limits the I/O, with numbers and advice; the "
                 "result of each --expect", place=230,
            footer=(Footer("Findings", {IDLE: 120, RUNNING: 120}),),
        ),
        Action(
            "log", (Key("", "", title="Messages"),), log,
            note="all messages of this session, and fio's command line",
            scope=OVER_EXPERIMENT, offered_on=BOTH_SCREENS,
        ),
        Action(
            "help", (key.HELP_KEY,), help, title="Help",
            note="every key, panel and abbreviation", scope=ANYWHERE,
            offered_on=ALL_SCREENS,
        ),
        Action(
            "themes", (Key("", "", title="Theme: choose from a list"),), themes,
            note="the screen shows the one under the cursor", offered_on=ALL_SCREENS,
        ),
        Action(
            "theme",
            (Key("", "", "dark", title="Theme: dark"),
             Key("", "", "light", title="Theme: light"),
             Key("", "", "colourblind", title="Theme: colour-blind safe"),
             Key("", "", "terminal", title="Theme: the terminal's 16 colours")), theme,
            note="now and for the next start", scope=ANYWHERE,
            offered_on=ALL_SCREENS,
        ),
        Action(
            "save_layout", (Key("", "", title="Layout: save this one"),), save_layout,
            note="zoomed panel, heat map, length of the charts: for the next start",
        ),
        Action(
            # no handler, because Textual itself opens the palette
            "palette", (Key("", "ctrl+p"),), lambda view: None,
            help="all actions in a searchable list", place=260,
            footer=(Footer("All", {IDLE: 1000, RUNNING: 1000, REPLAY: 1000}),), scope=ANYWHERE,
        ),
    )  # fmt: skip
