"""The order to start a run, until the run has begun."""

from __future__ import annotations

from dataclasses import dataclass

from iopstui.model.experiment.run_request import RunRequest
from iopstui.preflight.shared_scratch import LentScratch


@dataclass(frozen=True, slots=True)
class RunOrder:
    """``announce``: report first what would be laid out, and wait for permission. ``hand_over``: a
    running job continues until this one has done its first I/O, if that is safe. ``mark`` is put on
    all charts when the run begins."""

    request: RunRequest
    lent: LentScratch | None = None
    announce: bool = False
    hand_over: bool = False
    mark: str = ""
