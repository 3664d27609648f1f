"""The first screen: which device, or a scratch file."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Static
from textual.widgets.data_table import RowDoesNotExist

from iopstui import format as f
from iopstui.model.block.device import BlockDevice
from iopstui.text import printable
from iopstui.ui.core.messages import Discover, MakeWatch
from iopstui.ui.draw.style import Charset

SCRATCH = ""
REST_S, RESCAN_S = 0.3, 3.0
HEAD = "iopstui: choose what to measure"
HELP = "Jobs that write are refused on a device in use. The scratch file is safe: it is removed."
FOOT = " Enter opens it   space marks several to open together   s rescans   q quits"
MARK = "● "


class DevicesChanged(Message):
    """A block device has come, gone or changed."""


class Picker(Screen["tuple[str, ...] | None"]):
    """Returns the chosen devices' paths in the order they were marked, none for the scratch file;
    ``None`` to leave."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("s", "rescan", "rescan"),
        Binding("space", "mark", "mark"),
        Binding("q,escape", "leave", "quit"),
    ]

    def __init__(
        self,
        discover: Discover,
        charset: Charset,
        reason: str = "",
        watch: MakeWatch | None = None,
    ) -> None:
        super().__init__()
        self._discover = discover
        self._watch = watch(lambda action, name: self._heard()) if watch is not None else None
        self._waiting = False
        self._rows: list[tuple[str, tuple[str, ...]]] | None = None
        self._marked: list[str] = []
        self._charset = charset
        self._reason = reason

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
        for title in ("device", "size", "kind", "in use", "model", "scheduler"):
            table.add_column(title, key=title)
        self._add("scratch file", ("", "file", "made in this directory, removed after", "", ""),
                  SCRATCH)  # fmt: skip
        table.focus()
        self.action_rescan()
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
        rows: list[tuple[str, tuple[str, ...]]] = [
            (device.path, (device.name, *facts(device)))
            for device in devices.values()
            if not device.hidden and device.size != 0
        ]
        before, self._rows = self._rows, rows
        if rows == before:
            return
        self._marked = [path for path in self._marked if path in {path for path, _ in rows}]
        table = self._table()
        chosen, place = self._key(), table.cursor_row
        with self.app.batch_update():
            for key in [k for k in table.rows if k.value != SCRATCH]:
                table.remove_row(key)
            for path, (name, *cells) in rows:
                self._add(self._label(path, name), tuple(cells), path)
        if chosen is not None:
            try:
                place = table.get_row_index(chosen)
            except RowDoesNotExist:
                place = min(place, table.row_count - 1)
            table.move_cursor(row=place)
        if before is not None:
            self._tell([row[1][0] for row in before], [row[1][0] for row in rows])

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
        text = Text(self._charset.text(printable(words)), style=style)
        self.query_one("#picker-words", Static).update(text)

    def _label(self, path: str, name: str) -> str:
        return f"{MARK}{name}" if path in self._marked else name

    def action_mark(self) -> None:
        """Mark the device under the cursor, or take its mark away."""
        path = self._key()
        if path is None:
            return
        if path == SCRATCH:
            self._words("the scratch file is used alone; mark devices to use several")
            return
        if path in self._marked:
            self._marked.remove(path)
        else:
            self._marked.append(path)
        names = {path: cells[0] for path, cells in self._rows or ()}
        cell = Text(self._charset.text(printable(self._label(path, names[path]))))
        self._table().update_cell(path, "device", cell, update_width=True)
        chosen = ", ".join(names[one] for one in self._marked)
        if self._marked:
            self._words(f"marked: {chosen}; Enter opens them together, every job uses all of them")
        else:
            self._words(HELP, "dim")

    def _add(self, label: str, cells: tuple[str, ...], key: str) -> None:
        texts = [Text(self._charset.text(printable(cell))) for cell in (label, *cells)]
        texts[1].justify = "right"
        self._table().add_row(*texts, key=key)

    def _key(self) -> str | None:
        table = self._table()
        if not table.row_count:
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the marked devices, or the one under the cursor if none is marked."""
        here = event.row_key.value
        self.dismiss(tuple(self._marked) or ((here,) if here else ()))

    def action_leave(self) -> None:
        """Leave without choosing."""
        self.dismiss(None)


def facts(device: BlockDevice) -> tuple[str, str, str, str, str]:
    """Size, kind, use, model and scheduler of a device, in words."""
    kind = device.kind
    if device.disk:
        kind = f"partition of {device.disk}"
    elif device.slaves:
        kind += f" on {', '.join(device.slaves)}"
    model = device.model or device.backing_file or ""
    scheduler = (device.queue.scheduler if device.queue else None) or ""
    return (f.size(device.size), kind, use(device), model, scheduler)


def use(device: BlockDevice) -> str:
    """Who uses the device, in words; "free" if no user of it can be seen."""
    parts = [f"mounted at {mount.mountpoint}" for mount in device.mounts]
    if device.swap:
        parts.append("swap")
    if device.holders:
        parts.append(f"under {', '.join(device.holders)}")
    if device.read_only:
        parts.append("read-only")
    if not parts and device.partitions:
        count = len(device.partitions)
        return f"{count} partition{'s' if count > 1 else ''}"
    return ", ".join(parts) or "free"
