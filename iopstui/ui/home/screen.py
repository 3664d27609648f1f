"""The home screen: the disks, their activity, and the actions for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Static

from iopstui import format as f
from iopstui.discovery import feature_modules
from iopstui.errors import UsageError
from iopstui.model.answer.answer import GOOD, Answer
from iopstui.model.answer.table import gone_answer
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import TargetPath
from iopstui.recording.recent import RecentRecording
from iopstui.text import printable
from iopstui.ui.core.backend import Backend
from iopstui.ui.core.clipboard import host_and_time, row_text
from iopstui.ui.core.list_table import ListTable
from iopstui.ui.core.modal import Hint, KeyLine
from iopstui.ui.dialogs.text import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.rows import Row, answer_row
from iopstui.ui.draw.style import BOLD, DIM, ERROR, KEY, Charset
from iopstui.ui.home import rows
from iopstui.ui.home.memory import BEGAN_S, LIVE_S, HomeMemory
from iopstui.ui.home.recent import RecentRecordings
from iopstui.ui.home.rows import COLUMNS, PROGRAM_NAME, Activity, DiskCharts, DiskRow

SETTLE_S, RESCAN_S = 0.3, 3.0
CHART_INTERVAL_S = 2
"""Seconds between two paints of the charts; a column shows two seconds."""
SORT_INTERVAL_S = 5
"""Least seconds between two sorts by who needs attention, until a key is pressed."""
ROOMY_HEIGHT = 30
FRAME_COLUMNS = 4
"""Columns of a box and its scroll bar."""
LOWER_ROWS = 7
"""Rows of the boxes below the disks."""
SEARCHING = "Reading the disks ..."
NO_DISK = "No disk here. A job can still run in a directory (s)."
NO_MATCH = "No disk has all of these words."
WATCH, RUN, SCRATCH, SWEEP, COMPARE, OPEN, DEMO, CHECK = (
    "watch", "run", "scratch", "sweep", "compare", "open", "demo", "check",
)  # fmt: skip
FEATURE_ACTIONS: tuple[tuple[str, str, str], ...] = tuple(
    module.PART.HOME_ACTION for module in feature_modules("screen_part") if module.PART.HOME_ACTION
)
FEATURE_NAMES = frozenset(name for _, _, name in FEATURE_ACTIONS)
ACTIONS: tuple[tuple[str, str, str], ...] = (
    ("Enter", "Watch this disk", WATCH), ("w", "Sweep (find the knee)", SWEEP),
    ("r", "Run a job", RUN), ("c", "Compare settings", COMPARE),
    ("s", "Use a directory", SCRATCH), *FEATURE_ACTIONS,
    ("o", "Open a recording", OPEN), ("d", "Demo", DEMO),
    ("x", "Check this machine", CHECK),
)  # fmt: skip
HELP = "Keys of the home screen"
HELP_ROWS: tuple[tuple[str, str], ...] = (
    ("Enter", "watch the disk under the cursor, or all that are marked; play a recording"),
    *((key, title[0].lower() + title[1:]) for key, title, action in ACTIONS if action != WATCH),
    ("space", "mark a disk, to use several together"),
    ("p", "show partitions, or hide them"),
    ("< > R", "sort by the next or previous column (or click on its title); reverse the order"),
    ("/", "filter by words"),
    ("Tab", "from the disks to the recent recordings, and back"),
    ("F5", "read the disks again"),
)
ACT_BINDINGS = [
    Binding(key, f"act({action!r})", label) for key, label, action in ACTIONS if action != WATCH
]
DISK_ACTIONS = frozenset({WATCH, RUN, SWEEP, COMPARE})
KEYS_OF_DISKS = frozenset({
    "up", "down", "space", *(key.lower() for key, _, name in ACTIONS if name in DISK_ACTIONS),
})  # fmt: skip
DIALOG_ACTIONS = frozenset({CHECK, OPEN})
"""Actions that open a dialog on top of this screen."""
DIRECTORY_WORDS = (
    "Directory for the scratch file, on the disk that you want to measure. Jobs read and write "
    "only this file, and it is removed at the end."
)
FIRST_RUN = "First time? Enter: watch a disk · r: run a job (reads only)" + "".join(
    f" · {key}: {title.lower()}" for key, title, _ in FEATURE_ACTIONS
)
FILTERING = (("Enter", "Watch", "screen.act('watch')"), ("↑ ↓", "Choose", ""), ("Esc", "Clear", ""))
"""The keys while a filter is typed, to which all letters belong."""
FOOTER_HINTS = (
    ("Enter", "Watch", "screen.act('watch')"), ("r", "Run", "screen.act('run')"),
    ("space", "Mark", "screen.mark"), ("p", "Partitions", "screen.partitions"), FILTER_HINT,
    ("y", "Copy", "app.do('copy', 0)"),
    ("?", "Help", "app.do('help', 0)"),
)  # fmt: skip
QUIT = ("q", "Quit", "screen.leave")
WATCHING, RETURNING, LOOKING = (
    ("Watch", "Watch this disk"), ("Back", "Back to it"), ("Look", "Look at this disk"),
)  # fmt: skip
"""What Enter does: in a word, and as a title."""
STOP_TITLE = "Stop what is running?"
OPEN_ROW = "(open)"
"""The key of the open session's row, unless it is the one of the session's only disk."""
GONE_ROW = "(gone)"
"""Shown instead of a mount point once that disk is gone."""


if TYPE_CHECKING:
    from iopstui.ui.home.beside import DiskNow


@dataclass(frozen=True, slots=True)
class HomeChoice:
    """What was chosen: devices in the order in which they were marked (none: a scratch file), and
    the action for them. ``opened``: the session that is open already was chosen."""

    paths: tuple[str, ...]
    action: str = WATCH
    opened: bool = False


@dataclass(frozen=True, slots=True)
class OpenSession:
    """The session whose dashboard is below the home screen: its paths, its name, the device of its
    row (``disk`` is what it was when it was opened), and functions that return what runs in it now,
    in a word and in a sentence, its answer, and whether that would have to end before another disk
    is opened."""

    paths: tuple[str, ...]
    name: str
    device: str
    running: Callable[[], str]
    describe: Callable[[], str]
    answer: Callable[[], Answer | None]
    is_busy: Callable[[], bool]
    disk: BlockDevice | None = None


def _is_loop(disk: DiskRow) -> bool:
    return disk.device is not None and disk.device.kind == "loop"


class DevicesChanged(Message):
    """A block device has appeared, disappeared or changed."""


class HomeScreen(TypeToFilter, Screen["HomeChoice"]):
    """The root of all screens: Esc does nothing here. Returns the chosen devices and an action.

    ``actions`` are those possible here. ``opened``: the session that goes on meanwhile; the cursor
    begins on its row. ``error`` is shown at the top. ``open_dialog`` opens the dialogs of
    ``DIALOG_ACTIONS``. ``memory`` is what the screen that was here before left."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("f5,ctrl+r", "rescan", "Rescan"),
        Binding("space", "mark", "Mark"),
        Binding("p", "partitions", "Partitions"),
        Binding("less_than_sign", "sort(-1)", "Sort by the column before"),
        Binding("greater_than_sign", "sort(1)", "Sort by the next column"),
        Binding("R", "reverse", "Reverse the order"),
        Binding("q", "leave", "Quit"),
        *ACT_BINDINGS,
    ]
    help_first = HELP
    about = (
        "The disks: first the one that the answer warns of, then by name, loop devices last. Once "
        "you press a key, no row moves until you sort; the answer names the disk that needs "
        "attention. Jobs that write are refused on a disk in use; a scratch file is safe anywhere. "
        "The open session has the mark ▸: Enter returns to it."
    )

    _message = _open_text = ""
    _rescan_pending = _reading_use = False
    _ticks = _next_sort = 0

    def __init__(
        self, backend: Backend, charset: Charset, error: str, actions: frozenset[str],
        first_run: bool, opened: OpenSession | None, open_dialog: Callable[[str], None],
        memory: HomeMemory,
    ) -> None:  # fmt: skip
        super().__init__()
        self._backend = backend
        make_watch = backend.watch
        self._watch = make_watch and make_watch(lambda action, name: self._hotplug_event())
        self._open_dialog = open_dialog
        self._possible_actions = actions
        self._error = error
        self._first_run = first_run and opened is None
        self._memory = memory
        self._use = memory.last_use(monotonic() - BEGAN_S)
        self._devices = memory.devices
        self._activity = memory.activity
        self._early_keys: list[str] = []
        self._marked: list[str] = []
        self._texts: dict[str, tuple[str, str]] = {}
        """Model and mount point of each device."""
        self._charset = charset
        self._table = ListTable(COLUMNS, charset, key=lambda row: row.key, id="home-table",
                                cell_padding=rows.CELL_PADDING)  # fmt: skip
        self._table.order, self._table.reverse = memory.column, memory.reverse
        self._opened = opened
        self._enter = WATCHING
        self._keys = KeyLine(self._footer_hints, charset)
        self._charts = DiskCharts(charset)
        self._answer = memory.answer
        self._describe(memory.devices or {})
        self._answer_row: Row = ()
        self._last_answer: Answer | None = None

    # -- layout

    def compose(self) -> ComposeResult:
        """Head, disks, the selected disk, actions, keys."""
        box = f"home-box {self._charset.name}"
        with Horizontal(id="picker-head"):
            yield Static(Text(PROGRAM_NAME, style=BOLD), id="picker-name")
            yield Static(Text(self._charset.text(machine_text()), style=DIM), id="picker-machine")
        yield Static(id="home-answer")
        yield Static(id="picker-words")
        with Vertical(id="home-disks", classes=box):
            yield Static(SEARCHING, id="home-none")
            yield self._table
        yield Static(id="home-line")
        yield self._charts
        if self._backend.recent is not None:
            yield RecentRecordings(self._charset)
        with Horizontal(id="home-below"):
            with Vertical(id="home-about", classes=box):
                yield Static(id="home-facts")
            with Vertical(id="home-actions", classes=box):
                yield Static(self._action_keys(), id="home-keys")
        yield self._keys

    def _action_keys(self) -> Text:
        """Two columns of keys that can be clicked."""
        text = Text(no_wrap=True)
        possible = [action for action in ACTIONS if action[2] in self._possible_actions]
        for number, (key, title, name) in enumerate(possible):
            title = self._enter[1] if name == WATCH else title
            click = Style(meta={"@click": f"screen.act({name!r})"})
            text.append(f"{key:<6}", KEY + click)
            text.append(f"{title:<21}" if number % 2 == 0 else title, click)
            text.append("" if number % 2 == 0 else "\n")
        return text

    @property
    def _footer_hints(self) -> tuple[Hint, ...]:
        (key, _, action), *others = FOOTER_HINTS
        return (key, self._enter[0], action), *others, QUIT

    def _show_enter(self) -> None:
        """Show what Enter does with the disk under the cursor: while a job runs it only looks."""
        opened, words = self._opened, WATCHING
        if opened is not None and self._is_open_row:
            words = RETURNING
        elif opened is not None and opened.is_busy():
            words = LOOKING
        if words != self._enter:
            self._enter = words
            self.query_one("#home-keys", Static).update(self._action_keys())
            if not self._typing:
                self._keys.show(self._footer_hints, self.filter_hint)

    def commands(self) -> Iterator[tuple[str, str, Callable[[], None]]]:
        """(title, help text, command) of what can be done here, for the command palette."""
        for key, title, name in ACTIONS:
            if name in self._possible_actions:
                yield title, f"key {key}", partial(self.action_act, name)
        yield "Partitions: show or hide them", "key p", self.action_partitions

    def on_mount(self) -> None:
        """Fill the table while the screen is painted for the first time: discovery may take a
        moment."""
        self.query_one("#home-disks").border_title = "Disks"
        self._show_order()
        self.query_one("#home-actions").border_title = "What do you want to do?"
        self._show_usual_text()
        self._fit()
        self._go_to_open_row()
        self._table.focus()
        self.action_rescan()
        if self._backend.recent is not None:
            self.run_worker(self._read_recent, thread=True)
        if self._backend.loads is not None:
            if not self._memory.is_fresh(monotonic() - BEGAN_S):
                self._memory.forget_figures()
                self._backend.loads(None)
            self.set_interval(LIVE_S, self._tick)
            self._last_answer = self._answer_now()
            self._show_answer(self._last_answer)
            self._fill_table()
        if self._watch is not None and not self._watch.start():
            # there are no events here (a container without netlink): look from time to time
            self.set_interval(RESCAN_S, self.action_rescan)

    def on_key(self, event: events.Key) -> None:
        """From now on the rows stay where they are: the cursor is on its way to one of them. A key
        for a disk that was pressed before there are any waits for them."""
        self._memory.was_used = True
        if self._devices is None and event.key in KEYS_OF_DISKS:
            event.stop()
            event.prevent_default()
            self._early_keys.append(event.key)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """As for a key."""
        self._memory.was_used = True

    def on_unmount(self) -> None:
        """Stop listening once a device is chosen."""
        if self._watch is not None:
            self._watch.stop()

    def on_resize(self, event: events.Resize) -> None:
        """The columns follow the width."""
        self._fit()

    def _fit(self) -> None:
        width, height = self.app.size
        self.set_class(height < ROOMY_HEIGHT, "-low")
        self.set_class(height < 16 or width < 60, "-tiny")
        for recent in self.query(RecentRecordings):
            recent.resize(width - FRAME_COLUMNS, height)
        self._share_rows()
        self._fill_table()
        if self._last_answer is not None:
            self._show_answer(self._last_answer)

    def _share_rows(self) -> None:
        """Give the disks the rows they need and the charts the rest."""
        height = self.app.size.height
        recent = sum(table.rows for table in self.query(RecentRecordings))
        free_rows = height - 3 - LOWER_ROWS - recent - bool(self._message)
        needed = len(rows.device_tree(self._devices or {}, self._memory.partitions)) + FRAME_COLUMNS
        if free_rows - needed < rows.MIN_HEIGHT and free_rows > 3 * rows.MIN_HEIGHT:
            needed = free_rows - rows.MIN_HEIGHT
        has_charts = height >= ROOMY_HEIGHT and free_rows - needed >= rows.MIN_HEIGHT
        self._charts.display = has_charts and bool(self._devices)
        self.query_one("#home-disks").styles.height = needed if self._charts.display else "1fr"

    def _read_recent(self) -> None:
        """Look through recent recordings in a thread, because each must be opened."""
        recordings = self._backend.recent() if self._backend.recent is not None else ()
        self._show_from_thread(self._show_recent, recordings)

    def _show_from_thread(self, show: Callable[[Any], None], found: Any) -> None:
        """Show what a thread has found, unless the screen is closing: its widgets disappear
        first."""
        self.app.call_from_thread(lambda: show(found) if self.query("#home-none") else None)

    def _show_recent(self, recordings: Sequence[RecentRecording]) -> None:
        for recent in self.query(RecentRecordings):
            recent.show(recordings, self.app.size.width - FRAME_COLUMNS, self.app.size.height)
        self._share_rows()

    def on_recent_recordings_chosen(self, message: RecentRecordings.Chosen) -> None:
        self.dismiss(HomeChoice((message.path,), OPEN))

    # -- devices

    def _hotplug_event(self) -> None:
        """Called in the monitor's thread, which must never wait for the screen: the screen waits
        for that thread when it stops it."""
        self.post_message(DevicesChanged())

    def on_devices_changed(self, message: DevicesChanged) -> None:
        """Read the devices again once the events have died down: one change causes several."""
        if not self._rescan_pending:
            self._rescan_pending = True
            self.set_timer(SETTLE_S, self._rescan_now)

    def _rescan_now(self) -> None:
        self._rescan_pending = False
        self.action_rescan()

    def action_rescan(self) -> None:
        self.run_worker(self._scan, thread=True, exclusive=True)

    def _scan(self) -> None:
        try:
            devices: Mapping[str, BlockDevice] = self._backend.discover()
        except OSError as error:
            self._show_from_thread(self._show_error, f"Cannot read the devices: {error}.")
            return
        places = rows.find_places(devices) if devices != self._devices else {}
        self._show_from_thread(partial(self._set_devices, places=places), devices)

    def _show_error(self, message: str) -> None:
        self._show_status(message, ERROR)

    def _set_devices(
        self, devices: Mapping[str, BlockDevice], places: Mapping[str, TargetPath]
    ) -> None:  # fmt: skip
        previous, self._devices = self._devices, devices
        self._memory.devices = devices
        if previous == devices:
            return
        self._answer.places = places
        paths = {device.path for device in devices.values()}
        self._marked = [path for path in self._marked if path in paths]
        self._describe(devices)
        self._share_rows()
        self._fill_table()
        if previous is None:
            self._go_to_open_row()
        early, self._early_keys = self._early_keys, []
        for key in early:
            self.app.simulate_key(key)
        if previous is not None:
            self._report_changes(rows.present_names(previous), rows.present_names(devices))

    def _describe(self, devices: Mapping[str, BlockDevice]) -> None:
        places = self._answer.places
        self._texts = {
            device.name: (rows.model_text(device),
                          rows.mount_text(device, devices, places.get(device.name)))
            for device in devices.values()
        }  # fmt: skip

    # -- the table

    def _visible_rows(self) -> list[DiskRow]:
        """Rows that match the filter: trees of disks, and a session that is not of one of them."""
        trees: dict[DiskRow, list[DiskRow]] = {}
        tree: list[DiskRow] = []
        for depth, device in rows.device_tree(self._devices or {}, self._memory.partitions):
            row = self._row(depth, device)
            if depth == 0 or not trees:
                tree = trees[row] = []
            tree.append(row)
        shown = [row for tree in trees.values() for row in tree]
        if self._opened is not None and not any(row.is_open for row in shown):
            row = self._row_of_opened(self._opened, shown)
            trees[row] = [row]
        return [
            row for disk in self._in_order(trees) for row in trees[disk]
            if row.key in self._marked or self.matches(row.name, row.model, row.size, row.mounted)
        ]  # fmt: skip

    def _in_order(self, trees: Mapping[DiskRow, Sequence[DiskRow]]) -> list[DiskRow]:
        """The disks in the order in which they were last shown, new ones last, so that no row moves
        while somebody goes to it. At first, and when the user sorts: the one that needs attention,
        the others by name and loop devices last, as many systems have dozens; or by the chosen
        column."""
        memory, disks = self._memory, [*trees]
        if memory.order:
            places = {key: place for place, key in enumerate(memory.order)}
            disks.sort(key=lambda disk: places.get(disk.key, len(places)))
        elif self._table.order:
            disks = [*self._table.in_order(disks)]
        else:
            disks.sort(key=_is_loop)
        if self._devices:
            memory.order = [disk.key for disk in disks]
        if memory.alarming and not self._table.order:
            disks.sort(key=lambda disk: all(row.name != memory.alarming for row in trees[disk]))
        return sorted(disks, key=lambda disk: disk.key != OPEN_ROW)

    def _row_of_opened(self, opened: OpenSession, shown: Sequence[DiskRow]) -> DiskRow:
        """The row of a session that is not of one disk of the list: the first one. A disk that is
        gone keeps its place, but has no figures."""
        path = opened.paths[0] if len(opened.paths) == 1 else ""
        key = path if path in self._memory.order and all(row.key != path for row in shown) else ""
        name, mounted = ("", GONE_ROW) if self._gone(opened) else (opened.device, "")
        return DiskRow(key or OPEN_ROW, f"{rows.OPEN_MARK}{opened.name}", name, opened.running(),
                       "", mounted, self._activity, self._minute, is_open=True)  # fmt: skip

    def _gone(self, opened: OpenSession) -> Answer | None:
        """The answer if the disk of the open session is gone."""
        now = (self._devices or {}).get(opened.device)
        if self._devices is None or opened.disk is None or (now is not None and now.size != 0):
            return None
        if now is None:
            return gone_answer(opened.device)
        is_detached = opened.disk.backing_file is not None
        return gone_answer(opened.device, is_detached) if opened.disk.size else None

    def _row(self, depth: int, device: BlockDevice) -> DiskRow:
        """The row of a device; of the open session if this is its only disk."""
        model, mounted = self._texts[device.name]
        opened = self._opened
        is_open = opened is not None and opened.paths == (device.path,)
        label = self._label(depth, device, is_open)
        if opened is not None and is_open:
            model = opened.running()
        return DiskRow(device.path, label, device.name, model, f.size(device.size), mounted,
                       self._activity, self._minute, device, is_open)  # fmt: skip

    def _minute(self, activity: Activity) -> str:
        bars = rows.BARS if self._charset.name == "utf8" else rows.PLAIN_BARS
        width = self._table.widths[rows.LAST_TITLE] or 0
        return activity.sparkline(min(width, rows.MEAN_SECONDS), bars)

    def on_list_table_sorted(self) -> None:
        memory, table = self._memory, self._table
        memory.order, memory.column, memory.reverse = [], table.order, table.reverse
        self._sort_anew()
        self._show_order()
        self._fill_table()

    def action_sort(self, by: int) -> None:
        """Sort by the next or previous column; before the first one: by activity."""
        self._table.sort_next(by)

    def action_reverse(self) -> None:
        if self._table.order:
            self._table.sort_by(self._table.order, not self._table.reverse)

    def _show_order(self) -> None:
        order, keys = "need for attention, then name", "< > column"
        if self._table.order:
            order, keys = self._table.order_text, f"{keys}  R reverse"
        box = self.query_one("#home-disks")
        box.border_subtitle = Text(self._charset.text(f"Sorted by {order} · {keys}"))

    def _fill_table(self) -> None:
        """Fill the table again; the cursor stays on its row, or near it."""
        visible = self._visible_rows()
        longest = max((len(row.label) for row in visible), default=0)
        widths = rows.column_widths(self.app.size.width - FRAME_COLUMNS, longest)
        placeholder = self.query_one("#home-none", Static)
        placeholder.display = not any(row.device for row in visible) and not self.filter_hint
        if placeholder.display:
            placeholder.update(SEARCHING if self._devices is None else NO_DISK)
        with self.app.batch_update():
            self._table.show(visible, widths)
        self._explain()

    def _tick(self) -> None:
        """Update the disks' figures of this second; only changed cells are drawn."""
        if self._backend.loads is None:
            return
        now_s = monotonic() - BEGAN_S
        self._ticks += 1
        reader = self._backend.use
        # covered by the page of a disk, which shows who uses it
        is_seen = not self.is_current
        if (
            reader is not None
            and reader.is_due(is_seen)
            and not self._reading_use
            and self._devices
        ):
            self._reading_use = True
            self.run_worker(partial(self._read_use, now_s, dict(self._devices)), thread=True,
                            group="use")  # fmt: skip
        self._memory.measure(self._backend.loads, now_s)
        self._last_answer = self._answer_now()
        if self.is_current:
            self._show_answer(self._last_answer)
            self._show_loads()

    def _answer_now(self) -> Answer | None:
        """The answer on all disks; the open session's own if it knows better, or if its disk is
        gone and all is well with the others."""
        answer, opened = self._answer.now(self._devices or {}, self._use), self._opened
        if opened is None:
            return answer
        gone = self._gone(opened)
        if gone is not None:
            return gone if answer is None or answer.state == GOOD else answer
        return (opened.answer() or answer) if self._is_session_s(opened, answer) else answer

    def _is_session_s(self, opened: OpenSession, answer: Answer | None) -> bool:
        """Whether the open session knows better than home: it has measured for longer, or knows
        what its job waits for, or who uses the disk while home has not read that."""
        about = answer is not None and answer.state == GOOD and answer.disk == opened.device
        knows_more = opened.is_busy() or (self._backend.use is not None and self._use is None)
        return self._answer.is_short or (about and knows_more)

    def on_screen_resume(self) -> None:
        """Show the present, not what it was when another screen covered this one."""
        if self._ticks:
            self._show_answer(self._last_answer)
            self._fill_table()

    def copied_head(self) -> list[str]:
        """Where and when."""
        return [host_and_time(os.uname().nodename, time() * 1e3)]

    def copied_text(self) -> str:
        """The head, the answer, the disk or recording under the cursor, and who uses it."""
        lines = self.copied_head()
        lines.append(self._last_answer.sentence_with_span if self._last_answer is not None else "")
        lines.append(row_text(self, titled=True))
        if self._table.has_focus and (users := self._users_text()):
            lines.append(f"Used by {users}")
        return "\n".join(filter(None, lines))

    def _users_text(self, most: int = rows.MAX_USERS) -> str:
        device, devices = self._selected(), self._devices or {}
        if device is None:
            return ""
        target = self._answer.target([device.name], devices)
        return rows.users_text(target, self._use, self._answer.seconds, most)

    def _show_answer(self, answer: Answer | None) -> None:
        row = answer_row(answer, self.app.size.width, self._charset)
        if row != self._answer_row:
            self._answer_row = row
            text = Text(no_wrap=True)
            for piece, style in row:
                text.append(piece, style)
            self.query_one("#home-answer", Static).update(text, layout=False)

    def _read_use(self, now_s: float, devices: Mapping[str, BlockDevice]) -> None:
        """Read who uses the disks in a thread: some machines have thousands of processes."""
        use = self._backend.use(now_s, devices) if self._backend.use is not None else None
        self._show_from_thread(self._show_use, use)

    def _show_use(self, use: DiskUse | None) -> None:
        self._reading_use = False
        self._use = self._memory.use = use
        self._explain()

    def _show_loads(self) -> None:
        if self._ticks % CHART_INTERVAL_S == 1:
            self._paint_charts()
        table = self._table
        if self._ticks >= self._next_sort and not self._memory.was_used and self._sort_anew():
            self._next_sort = self._ticks + SORT_INTERVAL_S
            self._fill_table()
            return
        opened = self._opened if self._is_open_row else None
        if opened is not None and opened.describe() != self._open_text:
            self._explain()
        table.show(table.items)

    def _sort_anew(self) -> bool:
        """Put the disk first that the answer warns of now. Returns True if this is a change."""
        memory, answer = self._memory, self._last_answer
        before = memory.alarming
        memory.alarming = answer.disk if answer is not None and answer.state != GOOD else ""
        return before != memory.alarming and not self._table.order

    def _paint_charts(self) -> None:
        device = self._selected()
        name = device.name if device is not None else ""
        if self._opened is not None and self._is_open_row:
            name = self._opened.device
        activity = self._activity.get(name)
        if activity is not None and self._charts.display:
            self._charts.paint(name, activity.history, activity.rates)

    def apply_filter(self) -> None:
        self._keys.show(FILTERING if self._typing else self._footer_hints, self.filter_hint)
        self._fill_table()
        self.query_one(RecentRecordings).filter(self.matches)
        if not self._table.row_count:
            self._show_status(NO_MATCH)
        elif self._message == NO_MATCH:
            self._show_usual_text()

    # -- messages

    def _show_usual_text(self) -> None:
        if self._error:
            self._show_status(f"Error: {self._error}", ERROR)
        else:
            self._show_status(FIRST_RUN if self._first_run else "", KEY)

    def _report_changes(self, old_names: list[str], new_names: list[str]) -> None:
        added = [name for name in new_names if name not in old_names]
        removed = [name for name in old_names if name not in new_names]
        parts = [
            f"{label}: {', '.join(names[:6])}{' ...' if len(names) > 6 else ''}"
            for label, names in (("new", added), ("gone", removed))
            if names
        ]
        if parts:
            self._show_status("; ".join(parts))

    def _show_status(self, message: str, style: Style = BOLD) -> None:
        self._message = message
        text = Text(self._charset.text(printable(message)), style=style)
        status = self.query_one("#picker-words", Static)
        status.update(text)
        status.display = bool(message)

    def _explain(self) -> None:
        """Show the facts of the selected disk."""
        device = self._selected()
        box = self.query_one("#home-about")
        box.border_title = Text(printable(device.name) if device is not None else "Disk")
        devices = self._devices or {}
        users = self._users_text()
        about = rows.detail_rows(device, devices, users) if device is not None else []
        if self._opened is not None and self._is_open_row:
            self._open_text = self._opened.describe()
            box.border_title = Text(printable(self._opened.name))
            about = [("Now", f"{self._open_text} (Enter returns to it)"), *about]
        self.query_one("#home-facts", Static).update(self._facts_table(about), layout=False)
        width = self.app.size.width - 2
        line = rows.summary_line(device, devices, width, users) if device else ""
        if device and len(line) > width:
            line = rows.summary_line(device, devices, width, self._users_text(1))
        if self._opened is not None and self._is_open_row:
            state = f" · {self._open_text}. Enter returns to it."
            line = f.shorten(self._opened.name, max(1, width - len(state))) + state
        text = Text(self._charset.text(printable(line)), style=DIM)
        self.query_one("#home-line", Static).update(text, layout=False)
        self._paint_charts()
        self._show_enter()

    def _facts_table(self, about: Sequence[tuple[str, str]]) -> Table:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(style=DIM, no_wrap=True)
        grid.add_column(ratio=1)
        for label, value in about:
            grid.add_row(label, Text(self._charset.text(printable(value))))
        return grid

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the facts of the newly selected disk."""
        self._explain()

    # -- the choice

    def _label(self, depth: int, device: BlockDevice, is_open: bool) -> str:
        wide = self.app.size.width >= rows.WIDE_NAMES
        name = f"{rows.OPEN_MARK if is_open else ''}{printable(device.name)}"
        return rows.label(name, depth, device.path in self._marked, wide)

    def action_mark(self) -> None:
        """Mark or unmark the device under the cursor."""
        device = self._selected()
        if device is None:
            return
        if device.path in self._marked:
            self._marked.remove(device.path)
        else:
            self._marked.append(device.path)
        self._fill_table()
        names = {d.path: d.name for d in (self._devices or {}).values()}
        marked = ", ".join(names[path] for path in self._marked)
        if len(self._marked) == 1:
            self._show_status(
                f"marked: {marked}; Enter opens it, space marks another to go with it"
            )
        elif self._marked:
            self._show_status(
                f"marked: {marked}; Enter opens them together, every job uses all of them"
            )
        else:
            self._show_usual_text()

    def action_partitions(self) -> None:
        """Show or hide partitions."""
        self._memory.partitions = not self._memory.partitions
        self._share_rows()
        self._fill_table()

    @property
    def _is_open_row(self) -> bool:
        row = self._table.selected
        return row is not None and row.is_open

    def _go_to_open_row(self) -> None:
        for number, row in enumerate(self._table.items):
            if row.is_open:
                self._table.move_cursor(row=number)

    def _selected(self) -> BlockDevice | None:
        row: DiskRow | None = self._table.selected
        return row.device if row is not None else None

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Watch the marked devices, or the one under the cursor if none is marked."""
        self.action_act(WATCH)

    def action_act(self, name: str) -> None:
        """Do the action ``name`` with the marked devices, or with the one under the cursor if none
        is marked."""
        if name not in self._possible_actions:
            return
        if name in DIALOG_ACTIONS:
            self._open_dialog(name)
            return
        if name == SCRATCH:
            self._ask_for_directory()
            return
        on_open_row = self._is_open_row and not self._marked
        if self._opened is not None and on_open_row and name in DISK_ACTIONS | FEATURE_NAMES:
            self.dismiss(HomeChoice(self._opened.paths, name, True))
            return
        paths = tuple(self._marked) or ((row.key,) if (row := self._table.selected) else ())
        if name in DISK_ACTIONS and not paths:
            if self._devices is not None:
                self._show_status(NO_MATCH if self._devices else NO_DISK)
            return
        if name == WATCH and len(paths) == 1 and self._looks_beside(paths[0]):
            return
        self.dismiss(HomeChoice(paths if name in DISK_ACTIONS else (), name))

    def action_leave(self) -> None:
        """Quit; ask first if this ends what runs, which is not visible here."""
        opened = self._opened
        if opened is None or not opened.is_busy():
            self.app.call_later(self.app.action_quit)
            return
        from iopstui.ui.dialogs.questions import Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self.app.call_later(self.app.action_quit)

        text = f"{opened.name}: {opened.describe()}. Quitting ends it."
        self.app.push_screen(Confirm(STOP_TITLE, text, "Stop and quit", self._charset), answered)

    def _looks_beside(self, path: str) -> bool:
        """While a job runs: return to it if it uses this device, else show a page of the device.
        False if no job runs."""
        opened = self._opened
        device = next((d for d in (self._devices or {}).values() if d.path == path), None)
        if opened is None or device is None or not opened.is_busy():
            return False
        if path in opened.paths or device.name == opened.device:
            self.dismiss(HomeChoice(opened.paths, WATCH, True))
            return True
        from iopstui.ui.home.beside import BesideScreen

        def closed(opens: bool | None) -> None:
            if opens:
                self.dismiss(HomeChoice((path,)))

        def job() -> str:
            return f"{opened.name}: {opened.running()}" if opened.is_busy() else ""

        page = BesideScreen(device.name, job, self._charset, partial(self._disk_now, device))
        self.app.push_screen(page, closed)
        return True

    def _disk_now(self, device: BlockDevice) -> DiskNow:
        from iopstui.ui.home.beside import DiskNow

        devices = self._devices or {}
        answer = None if self._answer.is_short or device.name not in devices else (
            self._answer.about([device.name], devices, self._use)
        )  # fmt: skip
        target = self._answer.target([device.name], devices)
        return DiskNow(target, answer, self._activity.get(device.name), self._use)

    def _ask_for_directory(self) -> None:
        """Ask where the scratch file goes; offered is a directory on the selected disk."""
        from iopstui.ui.dialogs.questions import Prompt

        device = self._selected()
        mounts = rows.mountpoints(device, self._devices or {}) if device is not None else ()
        offered = next(filter(is_writable, mounts), ".")

        def typed(value: str | None) -> None:
            if value is not None:
                self.dismiss(HomeChoice((os.path.expanduser(value.strip()),), SCRATCH))

        self.app.push_screen(
            Prompt("Use a directory", DIRECTORY_WORDS, offered, check_directory, self._charset),
            typed,
        )


def is_writable(directory: str) -> bool:
    """Whether it is a directory in which this user can make files."""
    return os.path.isdir(directory) and os.access(directory, os.W_OK | os.X_OK)


def check_directory(text: str) -> None:
    """Raise UsageError if no scratch file can be made there."""
    directory = os.path.expanduser(text.strip())
    if not os.path.isdir(directory):
        raise UsageError("This is not a directory.", "Type one that is on the disk to measure.")
    if not is_writable(directory):
        raise UsageError("You can't make files in it.", "Type another one, or start with sudo.")


def machine_text() -> str:
    """Name, kernel, CPUs and user of this machine."""
    system = os.uname()
    cpus = os.cpu_count() or 1
    user = "root" if os.geteuid() == 0 else "not root"
    facts = (system.nodename, f"Linux {system.release.partition('-')[0]}", f"{cpus} CPUs", user)
    return printable(" · ".join(facts))
