"""All keys: the parts of the screen with their actions. `python -m iopstui.ui.keys` prints
their table for docs/reference/keys.md."""

from __future__ import annotations

from collections.abc import Iterable

from iopstui.discovery import feature_modules
from iopstui.ui.actions import LESSON, Action, Part, bindings, help_rows
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.parts.experiment import ExperimentKeys
from iopstui.ui.parts.feature import FeaturePart
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.parts.kernel import KernelKeys
from iopstui.ui.parts.panel import LeaveKeys, PanelKeys
from iopstui.ui.parts.ramp import RampKeys
from iopstui.ui.parts.record import PictureKeys, RecordKeys
from iopstui.ui.parts.replay import ReplayKeys
from iopstui.ui.parts.target import TargetKeys
from iopstui.ui.parts.view import ViewKeys

FEATURE_PARTS: tuple[type[FeaturePart], ...] = tuple(
    module.PART for module in feature_modules("screen_part")
)
PARTS: tuple[type[Part], ...] = (
    JobKeys, RampKeys, ViewKeys, ExperimentKeys, *FEATURE_PARTS, KernelKeys, RecordKeys, PanelKeys,
    PictureKeys, TargetKeys, LeaveKeys,
)  # fmt: skip

LIVE_ACTIONS = tuple(action for part in PARTS for action in part.ACTIONS)
REPLAY_ONLY = ReplayKeys.ACTIONS

LIVE_BINDINGS = bindings(LIVE_ACTIONS)
REPLAY_BINDINGS = bindings(REPLAY_ONLY)
DASHBOARD_BINDINGS = bindings(LIVE_ACTIONS, on_dashboard=True)
"""Bindings that the dashboard needs itself, because a Textual screen uses these keys to move the
focus."""

REFUSED_IN_LESSON = frozenset(
    key.label for action in LIVE_ACTIONS if LESSON in action.disturbs for key in action.keys
)
"""The labels of the keys that are refused during a lesson."""


def markdown(actions: Iterable[Action] = LIVE_ACTIONS) -> str:
    """The table of keys in docs/reference/keys.md."""
    rows = ["| key | what it does |", "|---|---|"]
    for key_text, help_ in help_rows(actions):
        keys = " ".join(f"`{key}`" for key in key_text.replace(",", " ").split())
        rows.append(f"| {keys} | {help_} |")
    return "\n".join(rows) + "\n"


class LiveDashboard(Dashboard):
    """The dashboard of a live or replayed session, with the bindings that it needs itself."""

    BINDINGS = DASHBOARD_BINDINGS


if __name__ == "__main__":
    print(markdown(), end="")
