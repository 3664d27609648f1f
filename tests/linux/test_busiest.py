"""The process with the most I/O, and how seldom it is looked for."""

from __future__ import annotations

import pytest

from iopstui.linux.process.process_io import MIN_INTERVAL_S, BusiestProcess, ProcessRates

BUSY, IDLE = ProcessRates(812, "postgres", 5e7, 1e7), ProcessRates(9, "dd", 1.0, 0.0)


@pytest.mark.parametrize(("cost_s", "every_s"), [(0.001, MIN_INTERVAL_S), (0.05, 100.0)])
def test_a_dear_reading_is_made_seldom(cost_s: float, every_s: float) -> None:
    now, used = [100.0], [0.0]

    def rates() -> list[ProcessRates]:
        used[0] += cost_s
        return [BUSY, IDLE]

    busiest = BusiestProcess(rates, lambda: now[0], lambda: used[0])
    assert busiest.due and busiest() == BUSY
    now[0] += every_s - 0.1
    assert not busiest.due
    now[0] += 0.2
    assert busiest.due


def test_the_first_reading_and_an_idle_machine_have_none() -> None:
    found: list[list[ProcessRates] | None] = [None, []]
    busiest = BusiestProcess(lambda: found.pop(0))
    assert busiest() is None and busiest() is None


def test_the_real_processes_are_read() -> None:
    busiest = BusiestProcess()
    busiest()
    assert not busiest.due
