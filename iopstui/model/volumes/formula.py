"""A published figure as a function of a volume's size and purchased options."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

UNITS = {"IOPS": 1.0, "MB/s": 1e6, "MiB/s": float(1 << 20), "I/Os": 1.0, "MiB": float(1 << 20)}
"""Factors to I/Os, bytes, and both per second."""
MAX_AGE = datetime.timedelta(days=730)


@dataclass(frozen=True, slots=True)
class Source:
    """A provider's page: its title, its address, and the day of its text (YYYY-MM-DD), or the day
    on which we ``read`` it if it has no date of its own."""

    page: str
    url: str
    date: str
    read: bool = False

    @property
    def text(self) -> str:
        """The page and its date, for people."""
        return f"{self.page} ({'read' if self.read else 'of'} {self.date})"

    def outdated(self, today: datetime.date) -> bool:
        """Whether the text is so old that its figures may have changed."""
        return today - datetime.date.fromisoformat(self.date) > MAX_AGE


@dataclass(frozen=True, slots=True)
class Formula:
    """``base + per_gib x size + per_iops x IOPS + per_provisioned x bought IOPS``, at most
    ``high``, at least ``low``; or ``steps`` of (up to GiB, value). It is in ``unit``; ``value_at``
    returns I/Os or bytes."""

    unit: str
    source: str
    base: float = 0.0
    per_gib: float = 0.0
    per_iops: float = 0.0
    per_provisioned: float = 0.0
    low: float | None = None
    high: float | None = None
    steps: tuple[tuple[float, float], ...] = ()

    def value_at(self, size_gib: float, iops: float = 0.0, provisioned: float = 0.0) -> float:
        """The figure for a volume of ``size_gib`` with ``iops`` altogether, of which
        ``provisioned`` were bought in addition; in I/Os or bytes (per second)."""
        if self.steps:
            return self._step(size_gib) * UNITS[self.unit]
        value = self.base + self.per_gib * size_gib + self.per_iops * iops
        if self.high is not None:
            value = min(value, self.high)
        if self.low is not None:
            value = max(value, self.low)
        # what was bought is added to the capped baseline
        return (value + self.per_provisioned * provisioned) * UNITS[self.unit]

    def _step(self, size_gib: float) -> float:
        for up_to, value in self.steps:
            if size_gib <= up_to:
                return value
        return self.steps[-1][1]

    @property
    def needs_size(self) -> bool:
        """Whether the figure differs from size to size."""
        return bool(self.per_gib or len(self.steps) > 1)

    def text(self) -> str:
        """The figure as a formula: "min(1,800 + 50 × GiB, 50,000) IOPS"."""
        if self.steps:
            parts = [
                f"{_number_text(value)} up to {_number_text(gib)} GiB" for gib, value in self.steps
            ]
            return f"{', '.join(parts)} ({self.unit})" if len(parts) > 1 else self._plain(
                self.steps[0][1])  # fmt: skip
        terms = [_number_text(self.base)] if self.base else []
        terms += [f"{_number_text(self.per_gib)} × GiB"] if self.per_gib else []
        terms += [f"{_number_text(self.per_iops)} × IOPS"] if self.per_iops else []
        formula = " + ".join(terms) or "0"
        if self.high is not None:
            formula = f"min({formula}, {_number_text(self.high)})"
        if self.low is not None:
            formula = f"max({formula}, {_number_text(self.low)})"
        if self.per_provisioned:
            formula += f" + {_number_text(self.per_provisioned)} × provisioned IOPS"
        return f"{formula} {self.unit}"

    def _plain(self, value: float) -> str:
        return f"{_number_text(value)} {self.unit}"


def _number_text(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.6f}".rstrip("0")


def is_monotonic(steps: Sequence[tuple[float, float]]) -> bool:
    """Whether sizes rise, and values do not fall."""
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(steps))
