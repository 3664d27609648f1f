"""Rows of figures: values, the way back, sums over seconds and over devices."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.figures.disk import DISK, NOT_ADDED, DiskRates
from iopstui.model.figures.figure import Totals, added, as_object, figures_of, from_object

COUNTS = [field.name for field in fields(DiskRates) if field.name not in ("seconds", "in_flight")]
NEEDED = {"read": "reads", "write": "writes", "discard": "discards", "flush": "flushes"}


def possible(disk: DiskRates) -> DiskRates:
    """The same row, with no bytes and no time in a direction without requests."""
    return replace(disk, **{
        name: 0
        for name in COUNTS
        if (count := NEEDED.get(name.split("_")[0])) and not getattr(disk, count)
    })  # fmt: skip


disks = st.builds(
    DiskRates,
    st.floats(0.05, 10),
    **{name: st.integers(0, 10**7) for name in COUNTS},
    in_flight=st.integers(0, 999),
).map(possible)


@given(disk=disks)
def test_a_row_comes_back_from_what_it_shows(disk: DiskRates) -> None:
    again = from_object(DiskRates, as_object(DISK, disk), disk.seconds)
    for figure in figures_of(DiskRates):
        assert figure.value(again) == pytest.approx(figure.value(disk), rel=1e-9), figure.name


@given(rows=st.lists(disks, min_size=1, max_size=6))
def test_seconds_add_up_as_if_they_were_one(rows: list[DiskRates]) -> None:
    class All(Totals):
        FIGURES = tuple(f for f in figures_of(DiskRates) if f.whole and f.most is None)

    totals, first = All(), All()
    for row in rows:
        totals.add(row)
        part = All()
        part.add(row)
        first.join(part)
    growths: dict[str, Any] = {
        name: sum(getattr(row, name) for row in rows) for name in (*COUNTS, "seconds")
    }
    one = DiskRates(**growths)
    for figure in All.FIGURES:
        assert totals.mean(figure) == pytest.approx(figure.value(one)), figure.name
        assert first.mean(figure) == totals.mean(figure), figure.name
        highest = [value for row in rows if (value := figure.value(row)) is not None]
        if highest:
            assert totals.most(figure) == pytest.approx(max(highest)), figure.name


@given(rows=st.lists(disks, min_size=2, max_size=4))
def test_siblings_add_up_as_their_counters_do(rows: list[DiskRates]) -> None:
    rows = [replace(row, seconds=rows[0].seconds) for row in rows]
    total = added(rows, NOT_ADDED)
    assert total is not None and total.util is None
    for name in COUNTS:
        if name not in NOT_ADDED:
            assert getattr(total, name) == sum(getattr(row, name) for row in rows)
    assert added([rows[0], replace(rows[1], reads=None)], NOT_ADDED).r_await is None  # type: ignore[union-attr]


def test_nothing_is_made_up() -> None:
    unknown = DiskRates(1.0)
    assert all(figure.value(unknown) is None for figure in figures_of(DiskRates))
    assert added([]) is None and Totals().empty
    idle = DiskRates(1.0, reads=0, read_ms=0)
    assert idle.r_s == 0 and idle.r_await is None
