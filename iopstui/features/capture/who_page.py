"""The page "Workload" on who uses a disk: what applications ask of it, while it is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from iopstui.ui.core import pages

if TYPE_CHECKING:
    from iopstui.ui.core.modal import Modal
    from iopstui.ui.port import Port

TITLE, SUBJECT = "Workload", "what they ask for"


def open_page(port: Port) -> tuple[Modal[None], Callable[[], None]]:
    """The page, and what ends what it has begun."""
    from iopstui.features.capture import workload_view
    from iopstui.features.capture.kernel.live_capture import LiveCapture
    from iopstui.linux.roots import Roots
    from iopstui.ui.dialogs.live_rows import LiveRows

    live, charset = port.live, port.charset
    running = None if live is None else LiveCapture(live.target.devices_below, Roots())
    page = LiveRows(
        TITLE,
        lambda width: workload_view.rows(
            running.workload if running is not None else None,
            running.problem if running is not None else "", width, charset, running is None,
        ),
        charset, pages.USERS,
    )  # fmt: skip
    return page, (lambda: None) if running is None else running.close
