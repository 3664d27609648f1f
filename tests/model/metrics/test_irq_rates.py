"""Rates of interrupts, compared with the rates of all columns added up one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.metrics.cpus import IrqRates
from iopstui.model.rates import per_second
from iopstui.model.samples import IrqCounts, IrqReading

ROW = st.dictionaries(st.integers(0, 5), st.integers(0, 1000), max_size=6)
CHANGE = st.dictionaries(st.integers(0, 5), st.integers(0, 1000), max_size=2)


class Made:
    """A reading that knows its increase since one other reading."""

    def __init__(self, row: Mapping[int, int], before: Made | None = None) -> None:
        self.row, self.before = row, before

    @property
    def cpus(self) -> Sequence[int]:
        return tuple(self.row)

    def counts(self) -> Mapping[int, int]:
        return self.row

    def increase_since(self, before: object) -> Mapping[int, int] | None:
        if before is None or (before is not self.before and before is not self):
            return None
        assert isinstance(before, Made)
        return {cpu: n - before.row[cpu] for cpu, n in self.row.items() if n != before.row[cpu]}


def eager(now: dict[int, dict[int, int]], before: dict[int, dict[int, int]]) -> dict[int, float]:
    total: dict[int, float] = {}
    for irq, counts in now.items():
        for cpu, rate in per_second(counts, before[irq], 0.7).items() if irq in before else ():
            total[cpu] = total.get(cpu, 0.0) + rate
    return total


@given(st.dictionaries(st.integers(30, 34), st.tuples(ROW, CHANGE, st.sampled_from("sfptn"))))
def test_rates_by_interrupt_and_by_cpu(
    rows: dict[int, tuple[dict[int, int], dict[int, int], str]],
) -> None:
    before: dict[int, dict[int, int]] = {}
    now: dict[int, dict[int, int]] = {}
    first, second = dict[int, IrqReading](), dict[int, IrqReading]()
    for irq, (old, change, how) in rows.items():
        change = {cpu: count for cpu, count in change.items() if cpu in old}
        one = Made(old)
        if how != "n":  # "n": a new interrupt
            before[irq] = old
            first[irq] = one
        # "s": the same reading; "f": a reading that knows its increase since the first; "p": one
        # that does not; "t": no reading, only counts
        now[irq] = old if how == "s" else {**old, **change}
        if how == "t":
            first.pop(irq)
        else:
            second[irq] = one if how == "s" else Made(now[irq], one if how == "f" else None)
    found = IrqRates(IrqCounts(second, now), IrqCounts(first, before), 0.7)
    assert found.by_cpu() == eager(now, before)
    assert found == {irq: per_second(now[irq], before[irq], 0.7) for irq in before}
    assert repr(found) == repr(dict(found)) and len(found) == len(before)
    assert (
        found == IrqRates(now, before, 0.7)
        and found.by_cpu() == IrqRates(now, before, 0.7).by_cpu()
    )


def test_a_count_that_went_backwards_has_no_rate() -> None:
    before = Made({0: 7, 1: 9})
    found = IrqRates(IrqCounts({30: Made({0: 8, 1: 2}, before)}), IrqCounts({30: before}), 0.5)
    assert found.by_cpu() == {0: 2}
    assert found == {30: {0: 2}}


def test_counts_are_like_a_dictionary_of_dictionaries() -> None:
    counts = IrqCounts({30: Made({0: 1})}, {30: {0: 9}, 31: {0: 2}})
    plain = {30: {0: 1}, 31: {0: 2}}
    assert counts == plain and plain == counts and repr(counts) == repr(plain)
    assert (len(counts), 30 in counts, 31 in counts, 32 in counts) == (2, True, True, False)
    assert counts.reading(31) is None and counts.reading(30) is not None
    with pytest.raises(KeyError):
        counts[32]
