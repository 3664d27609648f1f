"""Before something is changed on many hosts: who they are, what it is now, and yes or no."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from iopstui.fleet.fleet_state import natural_key
from iopstui.fleet.hosts.host_tunables import HostTunableChange
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


class Question(Modal[bool]):
    """Asks for ``turn``; True if it is to be done."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("y", "answer(True)", "Change"),
        Binding("n,q", "answer(False)", "Cancel"),
        Binding("question_mark", HELP, "Help"),
    ]
    size_class = "tall"
    about = "Confirm a change on many hosts: y applies it, n or Esc cancels."

    def __init__(self, turn: HostTunableChange, charset: Charset) -> None:
        hosts = counted(len(turn.hosts), "host")
        hints: tuple[Hint, ...] = (
            ("y", f"Change {hosts}", "screen.answer(True)"),
            ("Esc", "Cancel", "screen.answer(False)"), ("↑ ↓", "Scroll", ""),
        )  # fmt: skip
        super().__init__(f"{title(turn)}?", charset, hints)
        self._turn = turn

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
        turn, made = self._turn, Text()
        for host, one in sorted(turn.hosts, key=lambda pair: natural_key(pair[0])):
            made.append(f"  {printable(host)}", style=BOLD)
            for disk, now in one.each:
                made.append(f"  {disk}: ")
                made.append(now, style=WARNING)
                made.append(self.charset.text(f" → {printable(turn.value)}"))
            made.append("\n")
        if turn.same:
            made.append(f"\n  Already {turn.value} on: {', '.join(turn.same)}\n")
        if turn.out:
            made.append("\n  Left out (nothing is changed there):\n", style=WARNING)
        for host, why in turn.out:
            made.append(self.charset.text(f"  {printable(host)}: {printable(why)}\n"))
        made.append(f"\n  {RESTORED}\n", style=DIM)
        return made


def title(turn: HostTunableChange) -> str:
    """The question's title."""
    befores = dict.fromkeys(one.now for _, one in turn.hosts)
    hosts = counted(len(turn.hosts), "host")
    return printable(f"{turn.name} {'/'.join(befores)} → {turn.value} on {hosts}")


def nobody(turn: HostTunableChange) -> str:
    """Why there is nothing to ask."""
    if not turn.out:
        return f"{turn.name} is already {turn.value} on all hosts"
    return f"no host can set {turn.name} to {turn.value}: {some_reasons(turn.out)}"


def some_of(hosts: Sequence[str]) -> str:
    """ "3 hosts: node1, node2, node3", of many the first."""
    more = f" and {len(hosts) - MAX_LINES} more" if len(hosts) > MAX_LINES else ""
    return f"{counted(len(hosts), 'host')}: {', '.join(hosts[:MAX_LINES])}{more}"


def some_reasons(found: Sequence[tuple[str, str]]) -> str:
    """The hosts by why: "node2, node3 (its disk has no wbt_lat_usec)"."""
    by_why: dict[str, list[str]] = {}
    for host, why in found:
        by_why.setdefault(why.rstrip("."), []).append(host)
    return "; ".join(f"{', '.join(hosts)} ({why})" for why, hosts in by_why.items())
