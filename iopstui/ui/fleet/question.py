"""Before something is changed on many hosts: who they are, what it is now, and yes or no."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from iopstui.fleet.hosts.settings import Turn
from iopstui.fleet.scene import natural
from iopstui.format import counted
from iopstui.text import printable
from iopstui.ui.draw.style import Charset

MOST = 5
RESTORED = (
    "Each host does it by its own rules, and restores what it has now when its session ends, in"
    " whatever way; each later run sets it again."
)


class Question(Screen[bool]):
    """Asks for ``turn``; True if it is to be done."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
    ]
    about = "A change on many hosts: y makes it, n or Esc leaves everything as it is."

    def __init__(self, turn: Turn, charset: Charset) -> None:
        super().__init__()
        self._turn = turn
        self._charset = charset

    def compose(self) -> ComposeResult:
        """What is asked, each host with its disks, the keys."""
        turn, text = self._turn, self._charset.text
        hosts = counted(len(turn.hosts), "host")
        yield Static(Text(text(f" {title(turn)}?"), style="bold"), id="text-head")
        with VerticalScroll(id="text-body"):
            yield Static(self._text())
        foot = f" y changes it on {hosts}   n or Esc changes nothing   up/down scroll"
        yield Static(Text(text(foot), style="dim"), id="text-foot")

    def on_mount(self) -> None:
        """The arrows scroll at once."""
        self.query_one(VerticalScroll).focus()

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)

    def _text(self) -> Text:
        turn, made = self._turn, Text()
        for host, one in sorted(turn.hosts, key=lambda pair: natural(pair[0])):
            made.append(f"  {printable(host)}", style="bold")
            for disk, now in one.each:
                made.append(f"  {disk}: ")
                made.append(now, style="yellow")
                made.append(self._charset.text(f" → {printable(turn.value)}"))
            made.append("\n")
        if turn.same:
            made.append(f"\n  It is {turn.value} already on: {', '.join(turn.same)}\n")
        if turn.out:
            made.append("\n  Left out, nothing is changed there:\n", style="bold yellow")
        for host, why in turn.out:
            made.append(self._charset.text(f"  {printable(host)}: {printable(why)}\n"))
        made.append(f"\n  {RESTORED}\n", style="dim")
        return made


def title(turn: Turn) -> str:
    """What is asked for, in words."""
    befores = dict.fromkeys(one.now for _, one in turn.hosts)
    hosts = counted(len(turn.hosts), "host")
    return printable(f"{turn.name} {'/'.join(befores)} → {turn.value} on {hosts}")


def nobody(turn: Turn) -> str:
    """Why there is nothing to ask."""
    if not turn.out:
        return f"{turn.name} is {turn.value} on all hosts already"
    return f"no host can set {turn.name} to {turn.value}: {some_reasons(turn.out)}"


def some_of(hosts: Sequence[str]) -> str:
    """ "3 hosts: node1, node2, node3", of many the first."""
    more = f" and {len(hosts) - MOST} more" if len(hosts) > MOST else ""
    return f"{counted(len(hosts), 'host')}: {', '.join(hosts[:MOST])}{more}"


def some_reasons(found: Sequence[tuple[str, str]]) -> str:
    """The hosts by why: "node2, node3 (its disk has no wbt_lat_usec)"."""
    by_why: dict[str, list[str]] = {}
    for host, why in found:
        by_why.setdefault(why.rstrip("."), []).append(host)
    return "; ".join(f"{', '.join(hosts)} ({why})" for why, hosts in by_why.items())
