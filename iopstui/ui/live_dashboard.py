"""The dashboard with the keys that it has to bind itself."""

from __future__ import annotations

from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.keys import DASHBOARD_BINDINGS


class LiveDashboard(Dashboard):
    """The dashboard of a session, live or replayed."""

    BINDINGS = DASHBOARD_BINDINGS
