"""The device's queue and MiB/s as charts where they fit; elsewhere they cost nothing."""

from __future__ import annotations

import pytest
import ui_fakes as fakes
from test_app import make, running, screen_text, settle

from iopstui.model.block.target import DIRECTORY, Target
from iopstui.ui.state.live import QUEUE, READ_MIB, WRITE_MIB

SHARE = Target(
    DIRECTORY, "/mnt/n", None, (), "nfs4 files are on another machine", "nfs4", "/mnt/n",
    share="srv:/export",
)  # fmt: skip


@pytest.mark.parametrize(
    ("size", "visible"),
    [((250, 70), True), ((200, 50), True), ((199, 50), False), ((160, 45), False)],
)
async def test_more_charts_are_below_the_others_or_beside_them_on_wide_screens(
    size: tuple[int, int], visible: bool
) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        await running(app, pilot, 12)
        assert app.dashboard is not None
        queue, bandwidth = app.dashboard.more_charts.charts
        text = screen_text(app)
        assert queue.shown is bandwidth.shown is ("Device queue" in text) is visible
        assert (any(tile.text().strip() for tile in queue.tiles)) is visible
        # an overlay of two runs has no chart of the queue, and a single pane fills the screen
        for steps, alone in (((1, 2), None), ((), 0)):
            app.dashboard.overlay.steps = steps
            app.dashboard.show_fullscreen(alone)
            await settle(pilot)
            assert not queue.shown


async def test_a_share_has_no_queue_to_draw() -> None:
    app = make(fakes.FakeController(target=SHARE))
    async with app.run_test(size=(250, 70)) as pilot:
        await settle(pilot)
        assert app.dashboard is not None
        assert not any(chart.shown for chart in app.dashboard.more_charts.charts)


async def test_more_charts_show_the_kernel_s_counts() -> None:
    app = make()
    async with app.run_test(size=(250, 70)) as pilot:
        await running(app, pilot, 3)
        state = app.state
        disk = state.frame.combined(state.devices) if state.frame is not None else None
        assert disk is not None and disk.r_bytes_s is not None and disk.w_bytes_s is not None
        expected = (disk.aqu_sz, disk.r_bytes_s / 2**20, disk.w_bytes_s / 2**20)
        for name, value in zip((QUEUE, READ_MIB, WRITE_MIB), expected, strict=True):
            assert state.history.window(name, 2.0, 1.0, 1) == [value]


@pytest.mark.parametrize("width", [200, 201, 202, 203, 260])
async def test_charts_side_by_side_show_the_same_time_span(width: int) -> None:
    app = make()
    async with app.run_test(size=(width, 50)) as pilot:
        await running(app, pilot, 3)
        assert app.dashboard is not None
        iops, latency = app.dashboard.charts[0], app.dashboard._latencies["fio"]
        queue, bandwidth = app.dashboard.more_charts.charts
        assert queue.dots == bandwidth.dots and iops.dots == latency.dots
        assert 0 <= queue.dots - iops.dots <= 2 * 2
        boxes = [chart.title.box for chart in (iops, latency, queue)]
        ends = [box.x + box.width for box in boxes]
        assert [box.x for box in boxes] == [0, *ends[:2]] and ends[2] == width
        # an overlay of two runs uses the whole width
        app.dashboard.overlay.steps = (1, 2)
        app.dashboard.relayout()
        await settle(pilot)
        assert (
            max(tile.box.x + tile.box.width for tile in app.dashboard.overlay.charts[0].tiles) > 90
        )
