"""A command ends before it writes more than it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.session.write_budget import REACTION_S, WriteBudget, at_most

MIB = 1 << 20


@given(st.integers(1, 1000), st.integers(1, 10_000))
def test_at_a_steady_rate_it_ends_before_the_budget_is_used(rate_mib: int, most_mib: int) -> None:
    budget = WriteBudget(most_mib * MIB)
    written = 0
    assert budget.look(0.0, 0) == "", "looks begin with the run"
    for look in range(1, 1_000_000):
        written = look * rate_mib * MIB // 10
        if budget.look(look / 10, written):
            break
    first = rate_mib * MIB / 10
    assert written + rate_mib * MIB * (REACTION_S - 0.1) <= max(most_mib * MIB, 9 * first)
    assert budget.over


def test_all_runs_together_and_none_that_would_go_beyond() -> None:
    budget = WriteBudget(100 * MIB)
    assert budget.why_not(10 * MIB) == "" and "scratch files take 101" in budget.why_not(101 * MIB)
    budget = WriteBudget(100 * MIB)
    budget.end(30 * MIB, layout=True)
    assert budget.why_not(0) == "", "files are laid out once"
    budget.end(40 * MIB)
    assert budget.used == 70 * MIB and not budget.over
    why = budget.why_not(0)
    assert "runs before it wrote up to 40 MiB" in why and "30 MiB left" in why and budget.over


def test_without_a_budget_everything_goes_and_a_read_costs_nothing() -> None:
    free = WriteBudget()
    assert free.why_not(1 << 60) == "" == free.look(1.0, 1 << 60)
    reads = WriteBudget(1)
    assert reads.look(1.0, 0) == "" == reads.look(2.0, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, False, 9.0, None), "writes at most: nothing"),
        ((MIB, False, 9.0, None), "writes at most: 1 MiB of scratch files, the jobs only read"),
        ((MIB, True, 9.0, 1 << 30), "writes at most: 1 GiB (--write-budget), with 1 MiB of"),
        ((0, True, 90.0, None), "no limit is set: at 1 GB/s 83.8 GiB in 1:30"),
        ((0, True, None, None), "no limit is set (--write-budget 200g sets one)"),
    ],
)
def test_it_is_said_before(arguments: tuple[int, bool, float, int], words: str) -> None:
    assert words in at_most(*arguments)
