"""Screens of words: what was said in this session, and what this machine lacks."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from iopstui import format as f
from iopstui.session.tick.outcomes import FAIL, PASS
from iopstui.text import printable
from iopstui.ui.core import pages
from iopstui.ui.core.key import closing
from iopstui.ui.draw.style import Charset
from iopstui.ui.state.live import LiveState

FOOT = " up/down, PgUp/PgDn scroll   Esc goes back"
STYLES = {
    "error": "bold red", "warning": "bold yellow", "mark": "magenta", PASS: "bold green",
    FAIL: "bold red",
}  # fmt: skip


class TextScreen(Screen[None]):
    """Shows a text that can be scrolled."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding(closing(pages.LOG), "leave", "back"),
    ]

    def __init__(self, title: str, text: Text | Group, charset: Charset) -> None:
        super().__init__()
        self._head = title
        self._text = text
        self._charset = charset

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        yield Static(Text(f" {self._head}", style="bold"), id="text-head")
        with VerticalScroll(id="text-body"):
            yield Static(self._text)
        yield Static(Text(self._charset.text(FOOT), style="dim"), id="text-foot")

    def on_mount(self) -> None:
        """The arrows scroll at once."""
        self.query_one(VerticalScroll).focus()

    def action_leave(self) -> None:
        """Close the text."""
        self.dismiss(None)


def doctor_screen(charset: Charset) -> TextScreen:
    """What `iopstui doctor` says."""
    from iopstui.preflight.doctor import OK, examine

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=9)
    table.add_column(width=16)
    table.add_column(ratio=1)
    for check in examine():
        style = "" if check.state == OK else "bold yellow"
        found = Text(charset.text(printable(check.found)))
        if check.mend:
            found.append(charset.text(f"\n→ {printable(check.mend)}"), style="cyan")
        table.add_row(Text(f"  {check.state}", style=style), Text(printable(check.what)), found)
    return TextScreen("doctor: what this machine allows and lacks", Group(table), charset)


def log_screen(state: LiveState, charset: Charset) -> TextScreen:
    """The session's messages, the newest last."""
    text = Text()
    for entry in state.log.entries:
        text.append(f"  {f.clock(entry.t):>7}  ", style="dim")
        word = f"{entry.level}: " if entry.level in ("error", "warning") else ""
        text.append(charset.text(f"{word}{entry.text}\n"), style=STYLES.get(entry.level, ""))
    if not state.log.entries:
        text.append("  There are no messages yet.\n", style="dim")
    step = state.step
    if step is not None:
        text.append("\n  The last run's command:\n", style="bold")
        text.append("  " + charset.text(_command(step.command)) + "\n")
    return TextScreen("messages", text, charset)


def _command(command: tuple[str, ...]) -> str:
    import shlex

    return printable(shlex.join(command))
