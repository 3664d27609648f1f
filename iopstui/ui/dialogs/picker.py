"""The first screen: which device, or a scratch file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Static
from textual.widgets.data_table import RowDoesNotExist

from iopstui.model.block.device import BlockDevice
from iopstui.text import printable
from iopstui.ui.core.messages import Discover, Loads, MakeWatch
from iopstui.ui.dialogs.picker_rows import (
    HEAD,
    LIVE,
    RIGHT,
    SCRATCH,
    TITLES,
    Cells,
    Entry,
    cells,
    live,
)
from iopstui.ui.dialogs.typed import FILTER, Typed
from iopstui.ui.draw.style import Charset

SCRATCH_KEY = ""
REST_S, RESCAN_S, LIVE_S = 0.3, 3.0, 1.0
HELP = "Jobs that write are refused on a device in use. The scratch file is safe: it is removed."
FOOT = f" Enter opens it   space marks several   {FILTER}   q quits"
NOTHING = "nothing has all of these words; Esc drops them"
MARK = "● "


class DevicesChanged(Message):
    """A block device has come, gone or changed."""


class Picker(Typed, Screen["tuple[str, ...] | Entry | None"]):
    """Returns the chosen devices' paths in the order they were marked, none for the scratch file,
    or one of the ``entries``; ``None`` to leave. ``loads`` is asked each second for what the disks
    do."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("f5,ctrl+r", "rescan", "rescan"),
        Binding("space", "mark", "mark"),
        Binding("q,escape", "leave", "quit"),
    ]

    about = (
        "What is to be measured: Enter opens the device under the cursor, or all that are marked"
        " with space. Figures are of the last second. F5 reads the devices again."
    )

    def __init__(
        self,
        discover: Discover,
        charset: Charset,
        reason: str = "",
        watch: MakeWatch | None = None,
        loads: Loads | None = None,
        entries: Sequence[Entry] = (),
    ) -> None:
        super().__init__()
        self._discover = discover
        self._watch = watch(lambda action, name: self._heard()) if watch is not None else None
        self._loads = loads
        self._entries = {entry.name: entry for entry in (SCRATCH, *entries)}
        self._waiting = False
        self._rows: list[tuple[str, str, Cells]] | None = None
        self._live: dict[str, Cells] = {}
        self._marked: list[str] = []
        self._charset = charset
        self._reason = self._said = reason

    def compose(self) -> ComposeResult:
        """A table, and words around it."""
        text = self._charset.text
        yield Static(Text(f" {text(HEAD)}", style="bold"), id="picker-head")
        words = f"error: {printable(self._reason)}" if self._reason else HELP
        style = "bold red" if self._reason else "dim"
        yield Static(Text(text(words), style=style), id="picker-words")
        table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=False)
        yield table
        yield Static(Text(text(FOOT), style="dim"), id="picker-foot")

    def on_mount(self) -> None:
        """Fills the table beside the first paint: discovery may take a moment."""
        table = self._table()
        for title in TITLES:
            table.add_column(Text(title, justify="right" if title in RIGHT else "left"), key=title)
        self._show()
        table.focus()
        self.action_rescan()
        if self._loads is not None:
            self._loads()
            self.set_interval(LIVE_S, self._tick)
        if self._watch is not None and not self._watch.start():
            # no events here (a container without netlink): look now and then
            self.set_interval(RESCAN_S, self.action_rescan)

    def on_unmount(self) -> None:
        """Nothing listens once a device is chosen."""
        if self._watch is not None:
            self._watch.stop()

    def _heard(self) -> None:
        """In the monitor's thread; it must never wait for the screen, which waits for it when it
        stops it."""
        self.post_message(DevicesChanged())

    def on_devices_changed(self, message: DevicesChanged) -> None:
        """Read the devices again once the events have died down: one change causes several."""
        if not self._waiting:
            self._waiting = True
            self.set_timer(REST_S, self._rested)

    def _rested(self) -> None:
        self._waiting = False
        self.action_rescan()

    def action_rescan(self) -> None:
        """Reads the devices again."""
        self.run_worker(self._scan, thread=True, exclusive=True)

    def _scan(self) -> None:
        try:
            devices: Mapping[str, BlockDevice] = self._discover()
        except OSError as error:
            self.app.call_from_thread(self._say, f"the devices can't be read: {error}")
            return
        self.app.call_from_thread(self._fill, devices)

    def _say(self, words: str) -> None:
        self._words(words, "bold red")

    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    def _fill(self, devices: Mapping[str, BlockDevice]) -> None:
        rows = [
            (device.path, device.name, cells(device, devices))
            for device in devices.values()
            if not device.hidden and device.size != 0
        ]
        before, self._rows = self._rows, rows
        if rows == before:
            return
        self._marked = [path for path in self._marked if path in {row[0] for row in rows}]
        self._show()
        if before is not None:
            self._tell([row[1] for row in before], [row[1] for row in rows])

    def narrow(self) -> None:
        """Show the rows that have all of the words."""
        foot = Text(self._charset.text(f" {self.filtering}" if self.filtering else FOOT), "dim")
        self.query_one("#picker-foot", Static).update(foot)
        self._show()
        if not self._table().row_count:
            self._words(NOTHING)
        elif self._said == NOTHING:
            self._words(HELP, "dim")

    def _show(self) -> None:
        """Fill the table anew; the cursor stays on its row, or where that was."""
        table = self._table()
        chosen, place = self._key(), table.cursor_row
        with self.app.batch_update():
            table.clear()
            for entry in self._entries.values():
                if self.has(entry.name, entry.words):
                    self._add(entry.name, entry.cells, "" if entry is SCRATCH else entry.name)
            for path, name, told in self._rows or ():
                if path in self._marked or self.has(name, *told):
                    self._add(self._label(path, name), self._with_live(name, told), path)
        if chosen is not None and table.row_count:
            try:
                place = table.get_row_index(chosen)
            except RowDoesNotExist:
                place = min(place, table.row_count - 1)
            table.move_cursor(row=place)

    def _with_live(self, name: str, told: Cells) -> Cells:
        return (*self._live.get(name, told[: len(LIVE)]), *told[len(LIVE) :])

    def _tick(self) -> None:
        """What the disks do in this second; only what has changed is drawn."""
        if self._loads is None or not self.is_current:
            return
        rates, table = self._loads(), self._table()
        for path, name, _ in self._rows or ():
            now, before = live(rates.get(name)), self._live.get(name)
            self._live[name] = now
            if now == before or path not in table.rows:
                continue
            for title, value in zip(LIVE, now, strict=True):
                cell = Text(self._charset.text(value), justify="right")
                table.update_cell(path, title, cell, update_width=True)

    def _tell(self, before: list[str], now: list[str]) -> None:
        came = [name for name in now if name not in before]
        went = [name for name in before if name not in now]
        parts = [
            f"{words}: {', '.join(names[:6])}{' ...' if len(names) > 6 else ''}"
            for words, names in (("new", came), ("gone", went))
            if names
        ]
        if parts:
            self._words("; ".join(parts))

    def _words(self, words: str, style: str = "bold") -> None:
        self._said = words
        text = Text(self._charset.text(printable(words)), style=style)
        self.query_one("#picker-words", Static).update(text)

    def _label(self, path: str, name: str) -> str:
        return f"{MARK}{name}" if path in self._marked else name

    def action_mark(self) -> None:
        """Mark the device under the cursor, or take its mark away."""
        path = self._key()
        if path is None:
            return
        names = {path: name for path, name, _ in self._rows or ()}
        if path not in names:
            what = self._entries.get(path, SCRATCH).name
            self._words(f"the {what} is used alone; mark devices to use several"
                        if path == SCRATCH_KEY else f"{what}: Enter opens it")  # fmt: skip
            return
        if path in self._marked:
            self._marked.remove(path)
        else:
            self._marked.append(path)
        cell = Text(self._charset.text(printable(self._label(path, names[path]))))
        self._table().update_cell(path, "device", cell, update_width=True)
        chosen = ", ".join(names[one] for one in self._marked)
        if len(self._marked) == 1:
            self._words(f"marked: {chosen}; Enter opens it, space marks another to go with it")
        elif self._marked:
            self._words(f"marked: {chosen}; Enter opens them together, every job uses all of them")
        else:
            self._words(HELP, "dim")

    def _add(self, label: str, cells: Cells, key: str) -> None:
        texts = [
            Text(self._charset.text(printable(cell)), justify="right" if title in RIGHT else "left")
            for title, cell in zip(TITLES, (label, *cells), strict=True)
        ]
        self._table().add_row(*texts, key=key)

    def _key(self) -> str | None:
        table = self._table()
        if not table.row_count:
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the marked devices, or the row under the cursor if none is marked."""
        here = event.row_key.value or SCRATCH_KEY
        if here in self._entries:
            self.dismiss(self._entries[here])
        else:
            self.dismiss(tuple(self._marked) or ((here,) if here else ()))

    def action_leave(self) -> None:
        """Leave without choosing."""
        self.dismiss(None)
