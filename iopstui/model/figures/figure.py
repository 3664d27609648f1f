"""A figure is a row: what it is called, what it says, and how it is made from growths.

A subject (a disk, a CPU, an operation of a share) is a frozen dataclass of growths over one
interval: counts, bytes, times. Its figures are attributes of the class: ``disk.r_await`` is the
value, ``DiskRates.r_await`` the row. JSON, its schema, CSV, tables, the screen, meters over a run
and sums of devices are made from the rows; none of them names a figure again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar, overload

from iopstui.format import number

SECONDS = "seconds"
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """One figure of a subject.

    ``name`` is its key in JSON, with ``unit`` and ``meaning``. Its value is ``part`` over
    ``per`` times ``whole``, at most ``most``; both are growths of the row (fields, or properties
    made of fields). Without ``whole`` it is the growth itself, or a gauge: a value at
    the interval's end. JSON, CSV and tables give the value divided by ``scale``. ``form`` makes
    its text for people, ``width`` is that of a column, and a narrow table leaves out those with
    the highest ``rank`` first (0: never). ``inner``: of the program alone, in no JSON.

    Over seconds and over devices the parts and the wholes are added, never the values.
    """

    name: str
    unit: str
    meaning: str
    part: str
    whole: str = SECONDS
    per: float = 1.0
    scale: float = 1.0
    most: float | None = None
    title: str = ""
    width: int = 6
    form: Callable[[Any], str] = number
    rank: int = 0
    inner: bool = False

    @overload
    def __get__(self, row: None, owner: type) -> Figure: ...
    @overload
    def __get__(self, row: object, owner: type) -> float | None: ...
    def __get__(self, row: object | None, owner: type) -> Figure | float | None:
        return self if row is None else self.value(row)

    def value(self, row: object | None) -> Any:
        """The value of a row; ``None`` where a growth is not known or there is nothing to divide
        by."""
        part = getattr(row, self.part, None)
        if part is None or not self.whole:
            return part
        whole = getattr(row, self.whole)
        if not whole:
            return None
        value = part / (whole * self.per)
        return value if self.most is None else min(value, self.most)

    def shown(self, row: object | None) -> Any:
        """The value in its ``unit``."""
        value = self.value(row)
        return value if value is None or self.scale == 1.0 else value / self.scale

    def text(self, row: object | None) -> str:
        """The value for people."""
        return self.form(self.value(row))

    def parts(self, row: object) -> tuple[float, float] | None:
        """What is added up over seconds: the value is the first over the second; ``None`` where it
        has no value. A value without a whole counts by the seconds in which it was so."""
        value = self.value(row)
        if value is None:
            return None
        if not self.whole or self.most is not None:
            weight = getattr(row, self.whole or SECONDS)
            return value * weight, weight
        return getattr(row, self.part) / self.per, getattr(row, self.whole)

    def growths(self, value: float | None, row: Mapping[str, float | None]) -> float | None:
        """The part that gives this value in ``unit`` with the whole of ``row``: the way back, for
        rows of other machines."""
        if not self.whole or value is None:
            return value
        whole = row.get(self.whole)
        return None if whole is None else value * self.scale * self.per * whole


class FigureTotal:
    """Adds a figure up over seconds: parts and wholes."""

    __slots__ = ("_figure", "part", "whole")

    def __init__(self, figure: Figure) -> None:
        self._figure = figure
        self.part = self.whole = 0.0

    def add(self, row: object) -> None:
        """Count the figure of an interval, if it has one."""
        parts = self._figure.parts(row)
        if parts is not None:
            self.part += parts[0]
            self.whole += parts[1]

    def join(self, other: FigureTotal) -> None:
        """Count those of another total, too."""
        self.part += other.part
        self.whole += other.whole

    @property
    def value(self) -> float | None:
        """The figure over all of them; ``None`` of none."""
        return self.part / self.whole if self.whole else None


@cache
def figures_of(subject: Any) -> tuple[Figure, ...]:
    """All figures of a subject that others see, in their order."""
    return tuple(f for f in vars(subject).values() if isinstance(f, Figure) and not f.inner)


@cache
def by_name(subject: Any) -> Mapping[str, Figure]:
    """The figures of a subject, those of the program alone too, by name."""
    return {f.name: f for f in vars(subject).values() if isinstance(f, Figure)}


def as_object(row: Any) -> dict[str, Any]:
    """A row as JSON has it."""
    return {figure.name: figure.shown(row) for figure in figures_of(row.__class__)}


def from_object(subject: type[Row], values: Mapping[str, Any], seconds: float) -> Row:
    """The row that a JSON object was made from: growths from its figures, of counts and means
    before rates, which have fewer digits. What no figure tells is ``None``."""
    made: Any = subject
    growths: dict[str, Any] = dict.fromkeys(field.name for field in fields(made))
    growths[SECONDS] = seconds
    counts, means, rates = (
        [f for f in figures_of(made) if (f.whole == "", f.whole == SECONDS) == kind]
        for kind in ((True, False), (False, False), (False, True))
    )
    for figure in (*counts, *means, *rates, *means):
        if growths.get(figure.part, 0) is None:
            # the mean of none: it took no time
            none = figure.whole and growths.get(figure.whole) == 0
            growths[figure.part] = 0 if none else figure.growths(values.get(figure.name), growths)
    return made(**growths)  # type: ignore[no-any-return]


def added(rows: Sequence[Row], apart: Iterable[str] = ()) -> Row | None:
    """Rows of siblings over the same interval as one; ``None`` of none. One alone stays as it is.

    Growths are added, so no mean is averaged; ``apart`` are those that do not add up (shares of
    time), which the sum lacks. What one of them lacks the sum lacks, too.
    """
    if len(rows) < 2:
        return rows[0] if rows else None
    subject: Any = type(rows[0])
    growths: dict[str, Any] = {}
    for field in fields(subject):
        values = [getattr(row, field.name) for row in rows]
        growths[field.name] = None if None in values or field.name in apart else sum(values)
    growths[SECONDS] = rows[0].seconds  # type: ignore[attr-defined]
    return subject(**growths)  # type: ignore[no-any-return]
