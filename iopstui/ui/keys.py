"""All keys: the parts of the screen whose actions they do. `python -m iopstui.ui.keys` prints
the table of them that stands in docs/reference/keys.md."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding

from iopstui.ui.core.actions import (
    Action,
    Part,
    bindings,
    bindings_of_screen,
    helped,
    press,
)
from iopstui.ui.experiment.part import ExperimentKeys
from iopstui.ui.fleet.part import WITHOUT, FleetKeys
from iopstui.ui.fleet.sweep import SweepKeys
from iopstui.ui.lesson.part import LessonKeys
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.parts.kernel import KernelKeys
from iopstui.ui.parts.leave import LeaveKeys
from iopstui.ui.parts.picture import PictureKeys
from iopstui.ui.parts.record import RecordKeys
from iopstui.ui.parts.replay import REPLACED, ReplayKeys
from iopstui.ui.parts.target import TargetKeys
from iopstui.ui.parts.view import ViewKeys

PARTS: tuple[type[Part], ...] = (
    JobKeys, TargetKeys, ViewKeys, ExperimentKeys, LessonKeys, KernelKeys, RecordKeys,
    PictureKeys, LeaveKeys,
)  # fmt: skip

LIVE_ACTIONS = tuple(action for part in PARTS for action in part.ACTIONS)
REPLAY_ONLY = ReplayKeys.ACTIONS
REPLAY_ACTIONS = tuple(one for one in LIVE_ACTIONS if one.id not in REPLACED) + REPLAY_ONLY

FLEET_PARTS: tuple[type[Part], ...] = (JobKeys, ViewKeys, KernelKeys, PictureKeys, LeaveKeys)
FLEET_ONLY = (*FleetKeys.ACTIONS, *SweepKeys.ACTIONS)
FLEET_ACTIONS = (
    *FLEET_ONLY,
    *(one for part in FLEET_PARTS for one in part.ACTIONS if one.id not in WITHOUT),
)

LIVE_BINDINGS = bindings(LIVE_ACTIONS)
REPLAY_BINDINGS = bindings(REPLAY_ONLY)
DASHBOARD_BINDINGS = bindings(LIVE_ACTIONS, on_dashboard=True)
"""The dashboard's own, because a screen binds these keys to its focus."""
FLEET_BINDINGS = bindings(FLEET_ACTIONS)
FLEET_REPLAY_BINDINGS = bindings((*FLEET_ACTIONS, *REPLAY_ONLY))
FLEET_SCREEN_BINDINGS = bindings_of_screen((*FLEET_ACTIONS, *REPLAY_ONLY))
HOST_SCREEN_BINDINGS = [*DASHBOARD_BINDINGS, Binding("escape,q", "app." + press("close_host"))]


def closing(*actions: str) -> str:
    """For a screen's binding: Esc, q, and the keys that have opened it."""
    opened = [key.names for one in LIVE_ACTIONS if one.id in actions for key in one.keys]
    return ",".join(("escape", "q", *opened))


def markdown(actions: Iterable[Action] = LIVE_ACTIONS) -> str:
    """The table of keys in docs/reference/keys.md."""
    rows = ["| key | what it does |", "|---|---|"]
    for written, help_ in helped(actions):
        keys = " ".join(f"`{key}`" for key in written.replace(",", " ").split())
        rows.append(f"| {keys} | {help_} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
