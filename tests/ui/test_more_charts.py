"""The device's queue and MiB/s as charts, where the terminal has the rows; elsewhere they cost
nothing."""

from __future__ import annotations

import pytest
from test_app import make, running, screen_text, settle

from iopstui.ui.core.state import QUEUE, READ_MIB, WRITE_MIB


@pytest.mark.parametrize(("size", "there"), [((250, 70), True), ((160, 45), False)])
async def test_they_stand_below_all_others_where_there_is_room(
    size: tuple[int, int], there: bool
) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        await running(app, pilot, 12)
        assert app.dashboard is not None
        queue, bandwidth = app.dashboard.more.charts
        text = screen_text(app)
        assert queue.shown is bandwidth.shown is ("device queue" in text) is there
        assert (any(tile.text().strip() for tile in queue.tiles)) is there
        # two runs over each other have no queue of their own, and one pane has the whole screen
        for steps, alone in (((1, 2), None), ((), 0)):
            app.dashboard.overlay.steps = steps
            app.dashboard.show_alone(alone)
            await settle(pilot)
            assert not queue.shown


async def test_what_they_show_is_what_the_kernel_counted() -> None:
    app = make()
    async with app.run_test(size=(250, 70)) as pilot:
        await running(app, pilot, 3)
        state = app.state
        disk = state.frame.together(state.devices) if state.frame is not None else None
        assert disk is not None and disk.r_bytes_s is not None and disk.w_bytes_s is not None
        wanted = (disk.aqu_sz, disk.r_bytes_s / 2**20, disk.w_bytes_s / 2**20)
        for name, value in zip((QUEUE, READ_MIB, WRITE_MIB), wanted, strict=True):
            assert state.history.window(name, 2.0, 1.0, 1) == [value]
