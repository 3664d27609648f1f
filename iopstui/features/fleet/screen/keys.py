"""The keys of a fleet's screen: select a host, show it, sort the hosts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from iopstui.format import counted
from iopstui.recording.writer import next_free_path
from iopstui.ui.actions import ANYWHERE, EXPERIMENT, IDLE, REPLAY, RUNNING, Action, Footer, Part
from iopstui.ui.core.key import Key
from iopstui.ui.parts.record import REPORT_TITLE, REPORTS, RecordKeys
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.features.fleet.screen.dashboard import FleetDashboard, HostsSource


HELP = "Keys of the fleet screen (iopstui fleet HOSTS)"
OPEN_HOST_POSITIONS = {IDLE: 25, RUNNING: 25, REPLAY: 25}
ONE_HOST = "one host is shown; Esc returns to all hosts, where keys act on all"
NO_JOB_HERE = "no job in this session; iopstui fleet HOSTS --job JOB runs one"
NO_HOSTS = "no host is connected, so tunables cannot be read or changed"
NO_ANSWER = (
    "No host has reported its tunables yet. If none does within 5 s, the hosts do not answer: "
    "press Esc and look at their states in the table of hosts."
)
ABOUT_JOBS = frozenset({
    "run_or_stop", "choose_job", "iodepth", "numjobs", "block_size", "option",
})  # fmt: skip
NOT_IN_FLEET = frozenset({
    "compare", "places", "users", "decide", "rq_affinity", "scheduler", "probe", "settings",
    "bind_queues", "open_panel", "close_panel", "cell",
    "open_cell", "leave_cell",
})  # fmt: skip
"""Actions of the live screen that a fleet's screen doesn't have."""


class FleetKeys(Part):
    """Keys of the dashboard of ``source``. ``watch_only``: no job was named for this session."""

    def __init__(self, port: Port, source: HostsSource, watch_only: bool) -> None:
        super().__init__(port)
        self._source = source
        self._watch_only = watch_only

    @property
    def on_host(self) -> bool:
        return self._source.one is not None

    @property
    def _screen(self) -> FleetDashboard:
        return cast("FleetDashboard", self.port.dashboard)

    def refuses(self, action: Action) -> bool:
        """Whether an action is refused, because it is for all hosts while one is shown, or because
        it needs a job and none was named."""
        refused = self.does_nothing(action)
        if refused:
            self.port.show_message("info", ONE_HOST if self.on_host else NO_JOB_HERE)
        return refused

    def footer_hides(self, action: Action) -> bool:
        """Whether the footer leaves out the action, because it has no effect now: a sweep needs a
        job, a heat map a job or the probe."""
        if self.does_nothing(action):
            return True
        needs_job = action.id == "sweep" or (action.id == "heat_map" and not self._has_probe)
        return self._watch_only and needs_job

    @property
    def _has_probe(self) -> bool:
        return self.port.state.probe_frame is not None

    def does_nothing(self, action: Action) -> bool:
        """Whether the action has no effect now, for one of these two reasons."""
        for_all = action.measures or action.id == "sweep"
        return (self.on_host and for_all) or (self._watch_only and action.id in ABOUT_JOBS)

    def move(self, by: int) -> None:
        """Move the cursor to the next or previous host. If one host is shown, show the new one."""
        self._screen.hosts.move(by)
        if self.on_host:
            self.open()
        self._screen.paint(even_if_frozen=True)

    def open(self) -> None:
        """Show the host under the cursor."""
        host = self._screen.hosts.selected
        if host is not None:
            self._source.show(host.name)

    def show_all_hosts(self) -> None:
        self._source.show_all()

    def order(self) -> None:
        self._tell_order(self._screen.hosts.next_order(not self._watch_only))

    def reverse_order(self) -> None:
        self._tell_order(self._screen.hosts.reverse_order(not self._watch_only))

    def _tell_order(self, order: str) -> None:
        self.port.show_message("info", f"hosts: {order}")
        self._screen.paint(even_if_frozen=True)

    def settings(self) -> None:
        """List the tunables of all hosts' disks. Each change has to be confirmed."""
        if not self._source.fleet.runs.request_settings():
            self.port.show_message("info", NO_HOSTS)
            return
        session = self.port.session
        if session is not None:
            from iopstui.ui.dialogs.settings import Settings

            self.port.push(Settings(
                session.knobs, self._confirm_change, self.port.state, self.port.charset, NO_ANSWER,
                Key("K", "K"),
            ))  # fmt: skip

    def _confirm_change(self, name: str, value: str) -> None:
        # imported here, because the help of a single machine's screen loads this module without a
        # fleet
        from iopstui.features.fleet.fleet_state import natural_key
        from iopstui.features.fleet.hosts.host_tunables import plan_tunable_change
        from iopstui.ui.dialogs.questions import Confirm

        runs = self._source.fleet.runs
        if runs.settings.is_pending:
            self.port.show_message("info", "still waiting for the hosts")
            return
        hosts = sorted(self._source.hosts.hosts, key=natural_key)
        change = plan_tunable_change(hosts, runs.settings.by_host, name, value)
        if not change.hosts:
            self.port.show_message("warning" if change.excluded else "info", change.no_hosts_reason)
            return
        self.port.push(
            Confirm(
                f"{change.title}?",
                change.text,
                f"Change {counted(len(change.hosts), 'host')}",
                self.port.charset,
            ),
            lambda yes: runs.change_tunable(change) if yes else None,
        )

    def toggle_map(self) -> None:
        hosts, box = self._screen.hosts, self._screen.panels["hosts"].box
        hosts.as_map = not hosts.is_map(
            len(hosts.matching_hosts(self._source.hosts)), box.height - 2
        )
        self._screen.paint(even_if_frozen=True)

    ACTIONS = (
        Action(
            "move_host", (Key("down", "down", 1), Key("up", "up", -1)), move,
            help="next host, previous host", place=10, term="up down",
            footer=(Footer("Next host", {IDLE: 2, RUNNING: 2, REPLAY: 2}, key="↑ ↓",
                           when=lambda keys: keys.on_host),),
        ),
        Action(
            "open_host", (Key("enter", "enter"),), open, title="Show the host under the cursor",
            help="the figures of the selected host, with its CPUs and findings, in place of the "
                 "totals; up and down then show the next one", place=20,
            footer=(
                Footer("Open host", OPEN_HOST_POSITIONS,
                       when=lambda keys: not keys.on_host, key="Enter"),
            ),
        ),
        Action(
            "leave_host", (Key("q", "q"),), show_all_hosts, applies=lambda keys: keys.on_host,
        ),
        Action(
            "close_host", (Key("escape", "escape"),), show_all_hosts,
            help="from one host back to all; clears the filter", place=30, term="esc",
            footer=(
                Footer("All hosts", {IDLE: 1, RUNNING: 1, REPLAY: 1},
                       when=lambda keys: keys.on_host, key="Esc"),
            ),
        ),
        Action(
            "order_hosts", (Key("o", "o"),), order, title="Hosts: another order",
            help="order of the hosts: by name (the host that the answer names first), the slowest "
                 "first, by each column, outliers first. A click on a column's title sorts by it, "
                 "a second click reverses", place=40,
            footer=(Footer("Order", {IDLE: 26, RUNNING: 26, REPLAY: 26},
                           when=lambda keys: not keys.on_host),),
        ),
        Action(
            "turn_order", (Key("O", "O"),), reverse_order, title="Hosts: reverse the order",
            help="reverse the order of the hosts", place=45,
        ),
        Action(
            "turn_map", (Key("k", "k"),), toggle_map, title="Hosts: map or rows",
            help="hosts as rows, or as a map over time", place=50,
            footer=(Footer("Map", {IDLE: 27, RUNNING: 27, REPLAY: 27},
                           when=lambda keys: not keys.on_host),),
        ),
        Action(
            "host_settings", (Key("K", "K"),), settings, title="Tunables of all hosts' disks",
            note="asks before anything is changed",
            help="tunables of all hosts' disks. A change asks first and names each "
                 "host, disk and value; restored at the end", place=55,
            footer=(Footer("Tunables", {IDLE: 110, RUNNING: 110},
                           when=lambda keys: not keys.on_host),),
            disturbs=frozenset({EXPERIMENT}), measures=True,
        ),
        Action(
            "filter_hosts", (), order,
            help="filter the hosts by part of a name, or a set such as "
                 "node[01-10]", place=60, term="/",
            scope=ANYWHERE,
        ),
    )  # fmt: skip


# The key H on the screen of many hosts: a report of their recording.


NOT_RECORDED = "Nothing is recorded, so there is no report. Start the fleet with --record FILE."


class FleetReportKeys(RecordKeys):
    """Writes a report of ``recording``, which is being written or played."""

    def __init__(self, port: Port, recording: Path | None) -> None:
        super().__init__(port, lambda: None)
        self._recording = recording

    def report(self) -> None:
        """Write an HTML report to the current directory; it never replaces a file."""
        if self._recording is None:
            self.port.show_message("info", NOT_RECORDED)
            return
        output = Path.cwd() / f"{self._recording.stem}.html"
        self.port.show_message("info", "Writing the report ...")
        self.port.run_in_background(
            self._write_report(
                self._recording, next_free_path(output) if output.exists() else output
            ),
            "report",
        )

    ACTIONS = (
        replace(
            RecordKeys.REPORT, keys=(Key("H", "H"),), title=REPORT_TITLE, handler=report, place=205,
            note="of the hosts' recording (--record FILE)",
            help="write an HTML report of all hosts: of --record FILE, or of the replay",
        ),
    ) if REPORTS else ()  # fmt: skip
