"""The options of a report besides its format: to add one, add a field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iopstui.model.volumes.promised import PromisedFigures


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """``redact``: leave out what says whose machine it is of (redact.py). ``against``: a bought
    volume whose limits stand beside what was measured."""

    redact: bool = False
    against: PromisedFigures | None = None


DEFAULT_OPTIONS = ReportOptions()
