"""Sorting of lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iopstui.tables import DOWN, UP, Column, in_order

Item = dict[str, float | None]
ITEMS = st.lists(st.fixed_dictionaries({"n": st.none() | st.integers(-3, 3), "m": st.integers()}))


@given(ITEMS, st.sampled_from([UP, DOWN]), st.booleans())
def test_what_has_no_value_is_last_and_equal_ones_stay_as_they_come(
    items: list[Item], sorts: int, reverse: bool
) -> None:
    ordered = in_order(items, [Column("n", "N", sorts=sorts), Column("m", "M")], "N", reverse)
    values = [item["n"] for item in ordered]
    known = [value for value in values if value is not None]
    assert values == known + [None] * (len(values) - len(known))
    assert known == sorted(known, reverse=(sorts == DOWN) != reverse)
    for value in {*values}:
        assert [i for i in ordered if i["n"] == value] == [i for i in items if i["n"] == value]
    # a column that is missing or can't be sorted by changes nothing
    assert in_order(items, [Column("m", "M")], "M") == in_order(items, [], "N") == items


def test_a_column_reads_attributes_keys_and_parts_that_are_not_there() -> None:
    column = Column("part/p99.9", "p99.9")
    assert column.text({"part": {"p99.9": 7}}) == "7"
    assert column.text({"part": None}) == column.text(None) == "–"
    assert Column("real", "").get(3) == 3
