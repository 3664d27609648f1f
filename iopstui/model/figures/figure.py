"""A figure is declared as a row: its name, its meaning, and how it is made from growths.

A growth is the increase of a counter in an interval. A subject (a disk, a CPU, an operation of a
share) is a dataclass of growths over one interval: counts, bytes, times. Its figures are rows, some
of them attributes of its class: ``disk.r_await`` is the value, ``DiskRates.r_await`` the row. A
``Part`` is an object within another: a frame is a tree of parts (model/metrics/fields.py). JSON,
its schema, the list of fields, CSV, tables, the screen, meters over a run and sums of devices are
all made from these rows, so each figure is named only here.

A subject with them has ``percentiles`` by name, ``max_ns`` and ``bins``: for several seconds,
devices or hosts, percentiles are made from the sum of their bins, never from other percentiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, overload

from iopstui import format as f
from iopstui.format import DENSE, number
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.tables import Column, path_reader

SCHEMA = 1
"""Schema version in a frame object and in each JSON line."""
ANY = "*"
"""In a path, stands for any key: a device, a CPU, a job."""
TOTAL = "total"
"""The key of all directions, or of all devices, together."""
DEVICE = "device"
"""The key of latencies in the device, which the probe measures."""
WAIT = "wait"
"""The key of figures on where I/Os wait."""


SECONDS = "seconds"
NUMBER, TEXT, BOOLEAN = "number", "string", "boolean"
OF = "{of}"
"""Placeholder in a meaning for the subject of the part that contains the figure."""
ONE, BY_KEY, IN_LIST = "one", "by key", "in a list"
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """One figure of a subject.

    ``name`` is its key in JSON, with ``unit`` and ``meaning``. Its value is ``part`` divided by
    ``per`` times ``whole``, at most ``most``; ``part`` and ``whole`` are growths of the row
    (fields, or properties made of fields; a slash leads into the object in a field). Without
    ``whole`` it is ``part`` itself. Over a run, a figure that has a mean is weighted by ``over``
    (``added`` is what to add up then, if it is not the value times its weight), or it is made from
    its readings by ``join``. JSON, CSV and tables show the value divided by ``scale``. ``form``
    makes its text for people, ``width`` is that of its column, and a narrow table leaves out the
    figures with the highest ``rank`` first (0: never).

    ``kind`` is its type in JSON; ``always``: it is never null there; ``keys`` is the number of
    levels of data keys above its numbers (1 for a histogram). ``inner``: used only in the program,
    and not in JSON; ``bulky``: left out if only main figures are wanted.

    To sum over seconds or devices, the parts and the wholes are added, never the values."""

    name: str
    unit: str
    meaning: str
    part: str | Callable[[Any], Any] = ""
    whole: str = ""
    per: float = 1.0
    scale: float = 1.0
    most: float | None = None
    over: str = ""
    added: str = ""
    join: Callable[[Sequence[float]], float] | None = None
    title: str = ""
    width: int = 6
    form: Callable[[Any], str] = number
    rank: int = 0
    inner: bool = False
    kind: str = NUMBER
    always: bool = False
    keys: int = 0
    bulky: bool = False
    source: str = ""
    get: Callable[[Any], Any] = field(init=False, repr=False)
    """Reads ``part`` of a row."""
    weigh: Callable[[Any], Any] = field(init=False, repr=False)
    """Reads the weight of the value from a row."""
    _of_row: Callable[[Any], Any] = field(init=False, repr=False)
    """Reads the value from a row of its subject."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "get", reader(self.part or self.name))
        object.__setattr__(self, "weigh", reader(self.over or self.whole or SECONDS))
        object.__setattr__(self, "_of_row", self._quick_reader())

    @overload
    def __get__(self, row: None, owner: type) -> Figure: ...
    @overload
    def __get__(self, row: object, owner: type) -> float | None: ...
    def __get__(self, row: object | None, owner: type) -> Figure | float | None:
        return self if row is None else self._of_row(row)

    def _quick_reader(self) -> Callable[[Any], Any]:
        """A faster ``value`` for attributes of the row itself: with 50 disks it is called 2,000
        times a second."""
        part = self.part or self.name
        if not isinstance(part, str) or not part.isidentifier():
            return self.value
        get = attrgetter(part)
        if not self.whole:
            return get
        get_whole, per, most = attrgetter(self.whole), self.per, self.most

        def read(row: Any) -> Any:
            growth, whole = get(row), get_whole(row)
            if growth is None or not whole:
                return None
            value = growth / (whole * per)
            return value if most is None or value < most else most

        return read

    def value(self, row: object | None) -> Any:
        """The figure's value in a row; ``None`` if a growth is not known or there is nothing to
        divide by."""
        part = self.get(row)
        if part is None or not self.whole:
            return part
        whole = getattr(row, self.whole)
        if not whole:
            return None
        value = part / (whole * self.per)
        return value if self.most is None else min(value, self.most)

    def shown(self, row: object | None) -> Any:
        """The value of the figure in a row, in its ``unit``."""
        value = self.value(row)
        return value if value is None or self.scale == 1.0 else value / self.scale

    def meaning_of(self, about: str) -> str:
        """The meaning together with the subject ``about``. The meaning of a text stays as it is: it
        names its subject itself."""
        if OF in self.meaning or not about or self.kind == TEXT:
            return self.meaning.replace(OF, about)
        return f"{about}: {self.meaning}"

    @property
    def is_of_run(self) -> bool:
        """Whether a whole run can have a value of this figure."""
        return bool(self.whole or self.over or self.join)

    def parts(self, row: object, *owners: object) -> tuple[float, float] | None:
        """The pair that is added up over seconds: the value is the first divided by the second;
        ``None`` if there is no value. ``owners`` are the objects that contain the row, the nearest
        first: one of them may have the weight."""
        value = self.value(row)
        if value is None:
            return None
        if self.whole and self.most is None:
            return self.get(row) / self.per, getattr(row, self.whole)
        weight = next(
            (self.weigh(each) for each in (row, *owners)
             if hasattr(each, (self.over or self.whole).partition("/")[0])), None,
        )  # fmt: skip
        if not weight:
            return None
        return (getattr(row, self.added) if self.added else value * weight), weight

    def column(self, of: str = "", **different: Any) -> Column:
        """The figure as a column of a table; ``of`` is the part of a row that has it. ``different``
        has properties that replace the figure's own in this table."""
        part = reader(of) if of else None
        read = self.value if part is None else lambda row: self.value(part(row))
        return Column(**{
            "id": self.name, "title": self.title or self.name, "width": self.width,
            "form": self.form, "read": read, "rank": self.rank, "unit": self.unit,
            "source": self.source, "meaning": self.meaning, **different,
        })  # fmt: skip

    def screen_column(self, style: Any = None, **different: Any) -> Column:
        """``column`` for the screen, where times have their unit directly after the number."""
        form = DENSE.get(self.form, self.form)
        return self.column(**{"form": form, "style": style, **different})

    def growths(self, value: float | None, row: Mapping[str, float | None]) -> float | None:
        """The growths behind ``value`` (in ``unit``), for rows from other machines: ``value`` times
        the whole, which ``row`` has."""
        if not self.whole or value is None:
            return value
        whole = row.get(self.whole)
        return None if whole is None else value * self.scale * self.per * whole


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """An object within another: its ``rows``, and where it is read from (``part``, else its name):
    ``ONE`` object, several ``BY_KEY``, or ``IN_LIST``. ``about`` says, in the meanings of its
    figures, what they are about; ``source`` says where they come from. ``always``: it exists,
    perhaps empty, whenever the object around it exists. ``none`` replaces a missing one in the
    figures of a run: nothing was done, so the figures are 0."""

    name: str
    rows: tuple[Figure | Part, ...]
    part: str | Callable[[Any], Any] = ""
    many: str = ONE
    about: str = ""
    source: str = ""
    always: bool = False
    bulky: bool = False
    none: object = None
    value: Callable[[Any], Any] = field(init=False, repr=False)
    """Reads the object, or the objects, from a row."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", reader(self.part or self.name))


Rows = tuple["Figure | Part", ...]


@cache
def reader(part: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function that reads a part of a row, given as a path or as a function. It returns
    ``None`` if the part is missing."""
    if isinstance(part, str):
        return path_reader(part, or_none=True)
    return lambda row: None if row is None else part(row)


class Totals:
    """The ``FIGURES`` of a subject over many intervals: their means, and the highest of each.
    ``sums`` has two numbers for each name: the mean is the first divided by the second."""

    FIGURES: ClassVar[tuple[Figure, ...]] = ()

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        # keyed by name, not by Figure: totals are passed between processes
        self.sums = {figure.name: (0.0, 0.0) for figure in self.FIGURES}
        self._most = {figure.name: 0.0 for figure in self.FIGURES}

    def add(self, row: object, *owners: object, is_complete: bool = True) -> None:
        """Count an interval. ``is_complete``: it also counts for the highest values. ``owners`` are
        those of ``Figure.parts``."""
        for figure in self.FIGURES:
            parts = figure.parts(row, *owners)
            if parts is not None:
                self._add(figure.name, *parts)
                if is_complete:
                    self._most[figure.name] = max(self._most[figure.name], parts[0] / parts[1])

    def join(self, later: Totals) -> None:
        """Count the intervals of another total, too."""
        for name, parts in later.sums.items():
            self._add(name, *parts)
            self._most[name] = max(self._most[name], later._most[name])

    def _add(self, name: str, part: float, whole: float) -> None:
        parts = self.sums[name]
        self.sums[name] = parts[0] + part, parts[1] + whole

    @property
    def empty(self) -> bool:
        """Whether no figure was measured yet."""
        return not any(whole for _, whole in self.sums.values())

    def mean(self, figure: Figure) -> float | None:
        """The figure over all intervals; ``None`` if there are none."""
        part, whole = self.sums[figure.name]
        return part / whole if whole else None

    def most(self, figure: Figure) -> float | None:
        """The highest value of a whole interval; at least the mean, which partial intervals may
        have raised."""
        mean = self.mean(figure)
        return None if mean is None else max(self._most[figure.name], mean)


@cache
def figures_of(subject: Any) -> tuple[Figure, ...]:
    """All figures of a subject that are visible outside of the program, in their order."""
    return tuple(f for f in vars(subject).values() if isinstance(f, Figure) and not f.inner)


@cache
def by_name(subject: Any) -> Mapping[str, Figure]:
    """The figures of a subject, or of rows, by name, including those that are used only in the
    program."""
    rows = subject if isinstance(subject, tuple) else vars(subject).values()
    return {f.name: f for f in rows if isinstance(f, Figure)}


def as_object(rows: Rows, thing: Any, is_full: bool = True) -> dict[str, Any]:
    """An object as it appears in JSON; without ``is_full`` the bulky parts are empty."""
    made: dict[str, Any] = {}
    for row in rows:
        if isinstance(row, Figure):
            if not row.inner and (is_full or not row.bulky):
                made[row.name] = row.shown(thing)
        elif row.bulky and not is_full:
            made[row.name] = {} if row.many == BY_KEY else []
        else:
            made[row.name] = _part_object(row, row.value(thing), is_full)
    return made


def _part_object(part: Part, value: Any, is_full: bool) -> Any:
    if value is None:
        return None
    if part.many == ONE:
        return as_object(part.rows, value, is_full)
    if part.many == IN_LIST:
        return [as_object(part.rows, each, is_full) for each in value]
    return {key: as_object(part.rows, each, is_full) for key, each in value.items()}


def walk(
    rows: Rows, path: tuple[str, ...] = (), about: str = "", source: str = ""
) -> Iterator[tuple[tuple[str, ...], Figure, str, str]]:
    """All figures of a tree, each as (path, figure, meaning, source)."""
    for row in rows:
        if isinstance(row, Figure):
            if row.inner:
                continue
            yield (
                (*path, row.name, *(ANY,) * row.keys),
                row,
                row.meaning_of(about),
                row.source or source,
            )
        else:
            below = (*path, row.name) if row.many == ONE else (*path, row.name, ANY)
            yield from walk(row.rows, below, row.about or about, row.source or source)


def from_object(subject: type[Row], values: Mapping[str, Any], seconds: float) -> Row:
    """The row that a JSON object was made from: growths are computed from its figures, from counts
    and means rather than from rates, which have fewer digits. A growth that no figure gives is
    ``None``."""
    made: Any = subject
    growths: dict[str, Any] = dict.fromkeys(each.name for each in fields(made))
    growths[SECONDS] = seconds
    counts, means, rates = (
        [f for f in figures_of(made) if (f.whole == "", f.whole == SECONDS) == kind]
        for kind in ((True, False), (False, False), (False, True))
    )
    for figure in (*counts, *means, *rates, *means):
        name = str(figure.part or figure.name)
        if growths.get(name, 0) is None:
            # a mean of no requests: they took no time
            none = figure.whole and growths.get(figure.whole) == 0
            growths[name] = 0 if none else figure.growths(values.get(figure.name), growths)
    return made(**growths)  # type: ignore[no-any-return]


def added(rows: Sequence[Row], apart: Iterable[str] = ()) -> Row | None:
    """Rows of siblings over the same interval as one row; ``None`` if there are none. A single row
    stays as it is. Growths are added, so no means are averaged; ``apart`` names growths that do not
    add up (shares of time); the sum lacks these, and growths that one of the rows lacks."""
    if len(rows) < 2:
        return rows[0] if rows else None
    subject: Any = type(rows[0])
    growths: dict[str, Any] = {}
    names = [each.name for each in fields(subject)]
    # column by column, because with 50 disks there are a thousand values
    for name, values in zip(names, zip(*map(attrgetter(*names), rows), strict=True), strict=True):
        growths[name] = None if None in values or name in apart else sum(values)
    growths[SECONDS] = rows[0].seconds  # type: ignore[attr-defined]
    return subject(**growths)  # type: ignore[no-any-return]


MAX = "max"
BY_PERCENTILE = {percentile_name(p): p for p in PERCENTILES}
OF_BINS = frozenset((MAX, *BY_PERCENTILE))
"""Figures that come from a histogram and not from a sum."""


SHOWN = ("p50", "p99", "p99.9")
"""The percentiles that tables show if there is room for only a few."""
RANKS = {
    name: Figure(name, "ns", f"{p:g} % took at most this", f"percentiles/{name}", width=7,
                 form=f.latency)
    for name, p in BY_PERCENTILE.items()
}  # fmt: skip
HIGHEST = Figure(MAX, "ns", "the longest", "max_ns", width=7, form=f.latency)


def latency_rows(most: str, within: str, highest: str) -> Rows:
    """Figures for all percentiles and the maximum, in ns. Their meanings are made of the arguments:
    "99 % ``most`` ``within``" and "``highest``", after the subject."""
    ranks = (replace(row, meaning=f"{OF}: {BY_PERCENTILE[row.name]:g} % {most} {within}")
             for row in RANKS.values())  # fmt: skip
    return (*ranks, replace(HIGHEST, meaning=f"{OF}: {highest}"))
