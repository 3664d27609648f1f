"""The current run of a session: its number, and its fio while that runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iopstui.session.fio.fio_run import FioRun


@dataclass(slots=True)
class CurrentRun:
    """``step`` numbers the runs of a session from 1 (0: none yet); ``fio`` is the running one,
    ``None`` between two runs. ``Runs`` alone changes it; sampling reads it at every tick."""

    step: int = 0
    fio: FioRun | None = None
