"""The order of a table of points or runs, which a click on a column's title changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui.events import PointFinished
from iopstui.model.experiment.plan import PlannedPoint
from iopstui.model.experiment.point import POINT
from iopstui.ui.draw.rows import Table

VALUES = {figure.title: figure for figure in POINT.values() if figure.title}
"""What a click on a title sorts by."""


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Sorted by the column ``title``; ``descending``: the largest first."""

    title: str
    descending: bool = True

    @property
    def text(self) -> str:
        """Text for the border of the table."""
        return f"by {self.title}, {'largest' if self.descending else 'smallest'} first"


def next_order(order: SortOrder | None, title: str) -> SortOrder | None:
    """The order after a click on a title: the largest first, then the smallest, then as planned."""
    if title not in VALUES:
        return None
    if order is None or order.title != title:
        return SortOrder(title)
    return SortOrder(title, descending=False) if order.descending else None


def title_at(table: Table[PointFinished], column: int) -> str:
    """The title of the column at this cell; "": the number of the point."""
    return next((title for begin, end, title in table.spans("") if begin <= column < end), "")


def sort_points(
    steps: Sequence[PlannedPoint], measured: Mapping[int, PointFinished], order: SortOrder | None
) -> list[PlannedPoint]:
    """Sort the points; those without a value come last, in the order of the plan."""
    if order is None:
        return list(steps)
    value = VALUES[order.title].value

    def key(step: PlannedPoint) -> tuple[bool, float]:
        event = measured.get(step.index)
        figure = value(event) if event is not None else None
        return figure is None, 0.0 if figure is None else -figure if order.descending else figure

    return sorted(steps, key=key)
