"""An overlay of two runs: samples counted from the beginning of each run; how the runs are
chosen."""

from __future__ import annotations

import pytest
from test_app import do, screen_text, settle, shows
from test_runs_panel import demonstration, make

from iopstui.model.metrics.history import History
from iopstui.model.metrics.run_history import RunRow
from iopstui.ui.dashboard.overlay import Overlay, align_runs
from iopstui.ui.draw.style import UTF8
from iopstui.ui.state.live import SERIES


def row(step: int, begin: float, end: float) -> RunRow:
    return RunRow(step, "job", "title", None, iops=1.0, begin=begin, end=end)


def test_each_run_begins_at_zero_with_its_own_samples() -> None:
    history = History(SERIES)
    for second in range(1, 31):
        history.add(float(second), 1.0, {"fio": second * 10.0, "p99": second * 1e3})
    runs = align_runs(history, [row(1, 2.0, 5.0), row(4, 20.0, 28.0)])
    assert runs.window("iops 0", 0.0, 1.0, 8) == [30.0, 40.0, 50.0, *[None] * 5]
    assert runs.window("iops 1", 0.0, 1.0, 8) == [210.0 + 10 * n for n in range(8)]
    assert runs.window("p99 1", 0.0, 1.0, 2) == [21e3, 22e3]


@pytest.mark.parametrize(
    ("chosen", "steps"), [((1, 2), (1, 2)), ((1, 2, 3), (2, 3)), ((1, 2, 1), (2,)), ((5,), (5,))]
)
def test_the_last_two_chosen_runs_are_overlaid(
    chosen: tuple[int, ...], steps: tuple[int, ...]
) -> None:
    overlay = Overlay(UTF8)
    for step in chosen:
        overlay.choose(step)
    assert overlay.steps == steps and overlay.active == (len(steps) == 2)


async def test_g_overlays_the_newest_two_runs_and_the_list_chooses_others() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        await demonstration(app, pilot, 4)
        assert app.dashboard is not None
        newest = [run.step for run in app.state.runs.rows][-2:]
        await do(pilot, "overlay")
        await settle(pilot)
        text = screen_text(app)
        assert all(f"run {step}" in text for step in newest) and "aligned at start" in text
        await pilot.press("v", "enter", "down", "down", "enter")
        await settle(pilot)
        older_step = app.state.runs.rows[-3].step
        # the newest is deselected, and another one chosen
        assert app.dashboard.overlay.steps == (newest[0], older_step)
        assert f"overlaid: {newest[0]} and {older_step}" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert f"run {older_step} " in screen_text(app)
        await do(pilot, "overlay")
        await settle(pilot)
        assert not app.dashboard.overlay.active and "aligned at start" not in screen_text(app)


async def test_an_overlay_needs_two_runs() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await demonstration(app, pilot, 0)
        await do(pilot, "overlay")
        await settle(pilot)
        assert shows(app, "an overlay needs two runs")
