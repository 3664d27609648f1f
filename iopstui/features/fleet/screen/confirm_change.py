"""Confirmation of a change on many hosts: the hosts, their current values, yes or no."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from iopstui.features.fleet.fleet_state import natural_key
from iopstui.features.fleet.hosts.host_tunables import HostTunableChange
from iopstui.format import counted
from iopstui.text import printable
from iopstui.ui.core.key import HELP
from iopstui.ui.core.modal import Hint, Modal
from iopstui.ui.draw.style import BOLD, DIM, WARNING, Charset

MAX_LINES = 5
RESTORED = (
    "Each host applies its own checks, and restores its present value when its session ends, "
    "however it ends. Later runs set it again."
)


class ConfirmTunableChange(Modal[bool]):
    """Asks for confirmation of ``change``; True if the user agrees."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("y", "answer(True)", "Change"),
        Binding("n,q", "answer(False)", "Cancel"),
        Binding("question_mark", HELP, "Help"),
    ]
    size_class = "tall"
    about = "Confirm a change on many hosts: y applies it, n or Esc cancels."

    def __init__(self, change: HostTunableChange, charset: Charset) -> None:
        hosts = counted(len(change.hosts), "host")
        hints: tuple[Hint, ...] = (
            ("y", f"Change {hosts}", "screen.answer(True)"),
            ("Esc", "Cancel", "screen.answer(False)"), ("↑ ↓", "Scroll", ""),
        )  # fmt: skip
        super().__init__(f"{change_title(change)}?", charset, hints)
        self._change = change

    def content(self) -> ComposeResult:
        """Each host with its disks."""
        with VerticalScroll(id="text-body", classes="modal-fit"):
            yield Static(self._text())

    def on_mount(self) -> None:
        """The arrows scroll at once."""
        self.query_one(VerticalScroll).focus()

    def action_leave(self) -> None:
        """Close without a change."""
        self.dismiss(False)

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)

    def _text(self) -> Text:
        change, text = self._change, Text()
        for host, tunable in sorted(change.hosts, key=lambda pair: natural_key(pair[0])):
            text.append(f"  {printable(host)}", style=BOLD)
            for disk, value in tunable.by_disk:
                text.append(f"  {disk}: ")
                text.append(value, style=WARNING)
                text.append(self.charset.text(f" → {printable(change.value)}"))
            text.append("\n")
        if change.unchanged:
            text.append(f"\n  Already {change.value} on: {', '.join(change.unchanged)}\n")
        if change.excluded:
            text.append("\n  Left out (nothing is changed there):\n", style=WARNING)
        for host, reason in change.excluded:
            text.append(self.charset.text(f"  {printable(host)}: {printable(reason)}\n"))
        text.append(f"\n  {RESTORED}\n", style=DIM)
        return text


def change_title(change: HostTunableChange) -> str:
    """The question's title."""
    old_values = dict.fromkeys(tunable.now for _, tunable in change.hosts)
    hosts = counted(len(change.hosts), "host")
    return printable(f"{change.name} {'/'.join(old_values)} → {change.value} on {hosts}")


def no_hosts_reason(change: HostTunableChange) -> str:
    """Why no host can be changed."""
    if not change.excluded:
        return f"{change.name} is already {change.value} on all hosts"
    return f"no host can set {change.name} to {change.value}: {reasons_text(change.excluded)}"


def host_list_text(hosts: Sequence[str]) -> str:
    """ "3 hosts: node1, node2, node3"; only the first of many."""
    more = f" and {len(hosts) - MAX_LINES} more" if len(hosts) > MAX_LINES else ""
    return f"{counted(len(hosts), 'host')}: {', '.join(hosts[:MAX_LINES])}{more}"


def reasons_text(reasons: Sequence[tuple[str, str]]) -> str:
    """The hosts by reason: "node2, node3 (its disk has no wbt_lat_usec)"."""
    hosts_by_reason: dict[str, list[str]] = {}
    for host, reason in reasons:
        hosts_by_reason.setdefault(reason.rstrip("."), []).append(host)
    return "; ".join(f"{', '.join(hosts)} ({text})" for text, hosts in hosts_by_reason.items())
