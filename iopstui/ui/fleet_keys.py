"""The keys of the fleet's screen, separate from ``keys``: modules of a fleet are not loaded for one
machine."""

from __future__ import annotations

from iopstui.ui.actions import Part, bindings, bindings_of_screen
from iopstui.ui.fleet.keys import NOT_IN_FLEET, FleetKeys
from iopstui.ui.fleet.report_keys import FleetReportKeys
from iopstui.ui.keys import REPLAY_ONLY
from iopstui.ui.parts.experiment import ExperimentKeys
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.parts.kernel import KernelKeys
from iopstui.ui.parts.leave import LeaveKeys
from iopstui.ui.parts.panel import PanelKeys
from iopstui.ui.parts.picture import PictureKeys
from iopstui.ui.parts.view import ViewKeys

FLEET_PARTS: tuple[type[Part], ...] = (
    JobKeys, ViewKeys, ExperimentKeys, KernelKeys, PanelKeys, PictureKeys, LeaveKeys,
)  # fmt: skip
HELP = "Keys of the fleet screen (iopstui fleet HOSTS)"
FLEET_ONLY = (*FleetKeys.ACTIONS, *FleetReportKeys.ACTIONS)
FLEET_ACTIONS = (
    *FLEET_ONLY,
    *(action for part in FLEET_PARTS for action in part.ACTIONS if action.id not in NOT_IN_FLEET),
)

FLEET_BINDINGS = bindings(FLEET_ACTIONS)
FLEET_REPLAY_BINDINGS = bindings((*FLEET_ACTIONS, *REPLAY_ONLY))
FLEET_SCREEN_BINDINGS = bindings_of_screen((*FLEET_ACTIONS, *REPLAY_ONLY))
