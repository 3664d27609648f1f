"""The options of a report besides its format: to add one, add a field."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """``redact``: leave out what says whose machine it is of (redact.py)."""

    redact: bool = False


PLAIN = ReportOptions()
