"""Held against the rates of all columns of all interrupts, added up one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.metrics.irq_rates import IrqRates
from iopstui.model.rates import per_second
from iopstui.model.samples import Change, IrqCounts

ROW = st.dictionaries(st.integers(0, 5), st.integers(0, 1000), max_size=6)
CHANGE = st.dictionaries(st.integers(0, 5), st.integers(0, 1000), max_size=2)


def eager(now: dict[int, dict[int, int]], before: dict[int, dict[int, int]]) -> dict[int, float]:
    total: dict[int, float] = {}
    for irq, counts in now.items():
        for cpu, rate in per_second(counts, before[irq], 0.7).items() if irq in before else ():
            total[cpu] = total.get(cpu, 0.0) + rate
    return total


@given(st.dictionaries(st.integers(30, 34), st.tuples(ROW, CHANGE, st.sampled_from("sfpn"))))
def test_rates_by_interrupt_and_by_cpu(
    rows: dict[int, tuple[dict[int, int], dict[int, int], str]],
) -> None:
    before: dict[int, dict[int, int]] = {}
    now: dict[int, dict[int, int]] = {}
    first, second = dict[int, Change](), dict[int, Change]()
    for irq, (old, change, how) in rows.items():
        change = {cpu: count for cpu, count in change.items() if cpu in old}
        if how != "n":  # an interrupt that is new
            before[irq] = old
            first[irq] = Change(object(), None, {})
        # "s": the very same reading; "f": one that follows; "p": one of which that is not known
        now[irq] = old if how == "s" else {**old, **change}
        after = first[irq].reading if how == "f" else None
        second[irq] = first[irq] if how == "s" else Change(object(), after, change)
    found = IrqRates(IrqCounts(now, second), IrqCounts(before, first), 0.7)
    assert found.by_cpu() == eager(now, before)
    assert found == {irq: per_second(now[irq], before[irq], 0.7) for irq in before}
    assert repr(found) == repr(dict(found)) and len(found) == len(before)
    assert (
        found == IrqRates(now, before, 0.7)
        and found.by_cpu() == IrqRates(now, before, 0.7).by_cpu()
    )


def test_what_changed_is_known_only_of_the_reading_before() -> None:
    first = IrqCounts({30: {0: 1}}, {30: Change(one := object(), None, {})})
    second = IrqCounts({30: {0: 2}}, {30: Change(object(), one, {0: 2})})
    assert second.grown(30, first) == {0: 2}
    assert second.grown(31, first) is None
    assert second.grown(30, second) is None
    assert second.grown(30, {30: {0: 1}}) is None
    assert first.grown(30, second) is None
    assert (first, second) == ({30: {0: 1}}, {30: {0: 2}})
