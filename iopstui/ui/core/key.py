"""Keys, with Textual's names and their labels; the protocol of a session; messages to the
application."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from textual.message import Message

from iopstui.events import Event
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology

if TYPE_CHECKING:
    from iopstui.model.answer.use import DiskUse
    from iopstui.safety.tunables import TunableState


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an action. ``names`` are Textual's names of the key, joined by commas; ``label`` is
    how the key is written.

    Without ``names`` and ``label``, the action is only in the palette. If an action has several
    keys, each has an ``argument`` for the action, and a ``title`` for the command palette.
    ``on_dashboard``: the dashboard itself binds the key, because a Textual screen would otherwise
    use it to move the focus."""

    names: str
    label: str
    argument: object = None
    title: str = ""
    on_dashboard: bool = False


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A key in the footer, and what it does."""

    key: str
    description: str


def press(action: str, number: int = 0) -> str:
    """Textual's action for the ``number``-th key of an action (IopstuiApp.action_do)."""
    return f"do({action!r}, {number})"


HELP = "app." + press("help")
"""The help action for a dialog over another screen, which lacks the application's bindings."""


class Controller(Protocol):
    """A session, as the screen uses it. Failures arrive as events, never as exceptions."""

    @property
    def target(self) -> Target:
        """The target of the jobs."""

    @property
    def devices(self) -> Mapping[str, BlockDevice]:
        """All block devices by kernel name."""

    @property
    def running(self) -> bool:
        """True from a run's start to its end."""

    @property
    def disk_use(self) -> DiskUse | None:
        """Who used the disks in the last second; None while a job runs, or if it is not read."""

    @property
    def host(self) -> str:
        """The name of the machine that is measured."""

    bind: bool
    """Whether the next run's jobs are bound to hardware queues."""

    @property
    def job(self) -> str | None:
        """The job that is running or ran last."""

    @property
    def overrides(self) -> dict[str, str]:
        """The fio options that were changed in that job."""

    def start(self, sink: Callable[[Event], None]) -> None:
        """Start the session's thread, which calls ``sink`` for every event."""

    def run_job(self, job: str, overrides: Mapping[str, str], *, mark: str = "") -> None:
        """Run a shipped job or a job file, in place of a running one. The text ``mark`` is put on
        every chart when the run begins."""

    def stop_job(self) -> None:
        """Stop the running job."""

    def mark(self, text: str) -> None:
        """Put a mark on every chart."""

    def set_tunable(self, name: str, value: str) -> None:
        """Change a setting of the target's disks (model/block/tunable.py)."""

    def knobs(self) -> Sequence[TunableState]:
        """Every tunable with its current value; empty if there is none."""

    def topology(self) -> Topology:
        """The machine's CPUs, and which of them belong together."""

    def close(self) -> None:
        """Stop fio, remove scratch files, join the thread. May be called twice."""


MakeController = Callable[[Sequence[str]], Controller]
Discover = Callable[[], Mapping[str, BlockDevice]]


class Watch(Protocol):
    """Reports devices that are added or removed (linux/devices/udev.py, HotplugMonitor)."""

    def start(self) -> bool:
        """Start reporting. Returns False if that is impossible."""

    def stop(self) -> None:
        """Stop reporting."""


MakeWatch = Callable[[Callable[[str, str], None]], Watch]


class EventsWaiting(Message):
    """The session's thread has queued events. Sent once; again only after the queue was emptied."""


class KeyClicked(Message):
    """A key in the footer was clicked; ``label`` is how the footer writes it."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label


class StripClicked(Message):
    """The rows above the message were clicked, at ``column`` of ``width``."""

    def __init__(self, column: int, width: int) -> None:
        super().__init__()
        self.column, self.width = column, width


class ViewChanged(Message):
    """The mouse has changed the view, so the footer may need other keys."""


FINDINGS = Key("f", "f")
HELP_KEY = Key("question_mark,f1", "?")
PLACES = Key("o", "o")
RUNS = Key("v", "v")
SETTINGS = Key("k", "k")
USERS = Key("u", "u")
PAGES = {"findings": FINDINGS, "places": PLACES, "runs": RUNS, "users": USERS}
"""The keys that lead to a page of the dashboard, also from another page; by their action."""
