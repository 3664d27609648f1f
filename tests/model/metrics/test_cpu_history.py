from __future__ import annotations

import pytest

from iopstui.model.metrics.cpus import MAX_SAMPLES, MAX_VALUES, CpuHistory


def told(*seconds: dict[int, float | None]) -> CpuHistory:
    history = CpuHistory()
    for t, rates in enumerate(seconds, 1):
        history.add(float(t), 1.0, rates)
    return history


def test_columns_hold_the_share_of_each_cpu() -> None:
    history = told({0: 300.0, 1: 100.0}, {0: 0.0, 1: 50.0}, {0: 0.0, 1: 0.0})
    assert history.columns(0.0, 1.0, 4) == [{0: 0.75, 1: 0.25}, {1: 1.0}, {}, None]
    # 300 and 150 of 450 in two seconds of one column
    (both,) = history.columns(0.0, 2.0, 1)
    assert both == {0: pytest.approx(300 / 450), 1: pytest.approx(150 / 450)}


def test_what_is_not_counted_or_not_later_is_left_out() -> None:
    history = told({0: None, 1: None}, {0: 1.0, 1: None})
    history.add(2.0, 1.0, {0: 5.0})
    assert history.cpus == (0,) and history.columns(0.0, 1.0, 3) == [None, {0: 1.0}, None]


@pytest.mark.parametrize("cpus", [2, 400])
def test_it_never_grows_beyond_its_bound(cpus: int) -> None:
    history = CpuHistory()
    most = min(MAX_SAMPLES, MAX_VALUES // cpus)
    for t in range(1, most + 50):
        history.add(float(t), 1.0, dict.fromkeys(range(cpus), 1.0))
    found = history.columns(0.0, 1.0, most + 50)
    assert sum(one is not None for one in found) == most and found[0] is None


def test_a_copy_stays_as_it_was() -> None:
    history = told({0: 1.0})
    still = history.copy()
    history.add(2.0, 1.0, {0: 1.0})
    assert still.end == 1.0 and history.end == 2.0
