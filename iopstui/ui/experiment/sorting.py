"""The order of a table of points or runs, which a click on a column's title changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from iopstui.events import PointFinished
from iopstui.model.experiment.plan import PlannedPoint
from iopstui.ui.draw.rows import Table

VALUES: Mapping[str, Callable[[PointFinished], float | None]] = {
    "IOPS": lambda one: one.point.iops,
    "MiB/s": lambda one: one.point.bw,
    "mean": lambda one: one.point.latency_ns,
    "p50": lambda one: one.point.p50_ns,
    "p99": lambda one: one.point.p99_ns,
    "p99.9": lambda one: one.point.p999_ns,
    "aqu-sz": lambda one: one.point.aqu_sz,
    "N=X*R": lambda one: one.little.seen,
    "of": lambda one: one.little.asked,
    "CPU/IO": lambda one: one.point.cpu_us,
    "most on": lambda one: max(one.point.completions.values(), default=None),
}
"""What a column of this title is sorted by."""


@dataclass(frozen=True, slots=True)
class Order:
    """Sorted by the column ``title``; ``down``: the largest first."""

    title: str
    down: bool = True

    @property
    def words(self) -> str:
        """For the border of the table."""
        return f"by {self.title}, {'largest' if self.down else 'smallest'} first"


def clicked(order: Order | None, title: str) -> Order | None:
    """The order after a click on a title: the largest first, then the smallest, then as planned."""
    if title not in VALUES:
        return None
    if order is None or order.title != title:
        return Order(title)
    return Order(title, down=False) if order.down else None


def title_at(made: Table[PointFinished], column: int) -> str:
    """The title of the column at this cell; "": the number of the point."""
    return next((title for begin, end, title in made.spans("") if begin <= column < end), "")


def in_order(
    steps: Sequence[PlannedPoint], measured: Mapping[int, PointFinished], order: Order | None
) -> list[PlannedPoint]:
    """What is not measured comes last, in the order of the plan."""
    if order is None:
        return list(steps)
    value = VALUES[order.title]

    def key(step: PlannedPoint) -> tuple[bool, float]:
        done = measured.get(step.index)
        found = value(done) if done is not None else None
        return found is None, 0.0 if found is None else -found if order.down else found

    return sorted(steps, key=key)
