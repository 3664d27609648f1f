"""Cells of the heat map: chosen with keys and the mouse, and the requests kept of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import ui_fakes as fakes
from slow_requests import exemplar
from test_app import WIDE, make, running, screen_text, settle, shows
from test_replay_screen import replay, until
from test_slow_list import READ_NS, column, probe, tick
from textual.pilot import Pilot

from iopstui.model.histogram import bucket_key
from iopstui.model.metrics.probe import LatencyStats, RequestStats
from iopstui.model.samples import Exemplar
from iopstui.ui.app import IopstuiApp
from iopstui.ui.dashboard.heat_cursor import ChosenCell
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.dialogs.slow_list import SlowList
from iopstui.ui.draw.charts.chart import AXIS_WIDTH
from iopstui.ui.draw.style import ASCII

DISK = "nvme0n1"
SMALL = (80, 24)
FAST_NS, SLOW_NS = 200_000, 30_000_000


def requests(slow: int) -> list[Exemplar]:
    """So many slow reads and a random one that were kept of a second."""
    ends = [READ_NS - n * 10**6 for n in range(slow)]
    kept = [exemplar(SLOW_NS, end, disk=DISK, inserted_ns=None, issued_ns=end - SLOW_NS)
            for end in ends]  # fmt: skip
    fast = exemplar(FAST_NS, READ_NS, disk=DISK, slow=False, sampled=True,
                    inserted_ns=None, issued_ns=READ_NS - FAST_NS)  # fmt: skip
    return [*kept, fast]


async def probed(app: IopstuiApp, pilot: Pilot[int]) -> fakes.FakeController:
    """Two seconds of 412 reads each, 3 and 4 of which took 30 ms."""
    fake = await running(app, pilot, 3)
    for slow in (3, 4):
        bins = {bucket_key(FAST_NS): 412 - slow, bucket_key(SLOW_NS): slow}
        counted = {DISK: {"read": RequestStats(1.0, LatencyStats.from_bins(bins))}}
        tick(fake, replace(probe(*requests(slow)), disks=counted))
    await settle(pilot)
    return fake


def board(app: IopstuiApp) -> Dashboard:
    assert app.dashboard is not None
    return app.dashboard


def cell(app: IopstuiApp) -> ChosenCell:
    found = board(app).chosen_cell
    assert found is not None
    return found


@pytest.mark.parametrize("size", [WIDE, SMALL, (200, 50)])
async def test_keys_choose_a_cell_and_list_its_requests(size: tuple[int, int]) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        await probed(app, pilot)
        await pilot.press("up")
        assert board(app).chosen_cell is None, "there is no heat map"
        await pilot.press("2", "h", "h", "up")
        await settle(pilot)
        # the slowest of the newest second: 4 of them
        assert board(app).frozen_at == 5.0 and cell(app).by_device and cell(app).cell.count == 4
        assert shows(app, "4 I/Os, 4 kept") and "+" in screen_text(app)
        await pilot.press("left")
        await settle(pilot)
        assert board(app).frozen_at == 4.0 and cell(app).cell.count == 3
        await pilot.press("down", "down")
        await settle(pilot)
        assert cell(app).cell.count == 409 and shows(app, "409 I/Os, 1 kept")
        await pilot.press("enter")
        await settle(pilot)
        page = app.screen
        assert isinstance(page, SlowList)
        assert shows(app, "1 of the cell's 409 requests are kept")
        assert column(page, "CELL") == ["in", "", "", ""]
        assert column(page, "TOTAL") == ["200 µs", *["30.0 ms"] * 3]
        assert column(page, "KEPT") == ["random", *["slow"] * 3]
        await pilot.press("escape", "escape")
        await settle(pilot)
        assert board(app).chosen_cell is None and board(app).frozen_at == 4.0
        await pilot.press("escape")
        assert board(app).frozen_at is None


async def test_clicks_choose_a_cell_and_list_its_requests() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await probed(app, pilot)
        await pilot.press("h", "h")
        await settle(pilot)
        heat = board(app).heat_maps.device
        place = (heat.axis.box.x + AXIS_WIDTH + 3, heat.axis.box.y + heat.cells(4.0)[0].row)
        await pilot.click(offset=place)
        await settle(pilot)
        assert board(app).frozen_at == 4.0 and cell(app).cell.count == 3
        await pilot.click(offset=place)
        await settle(pilot)
        assert isinstance(app.screen, SlowList) and shows(app, "3 of the cell's 3 requests")
        await pilot.press("escape")
        # nothing is counted there: only the second is shown
        await pilot.click(offset=(place[0] + 1, place[1] + 2))
        await settle(pilot)
        assert board(app).frozen_at == 5.0 and board(app).chosen_cell is None


async def test_of_fio_s_map_the_list_says_what_is_compared() -> None:
    app = make(charset=ASCII)
    async with app.run_test(size=WIDE) as pilot:
        await probed(app, pilot)
        await pilot.press("h", "up", "enter")
        await settle(pilot)
        page = app.screen
        assert isinstance(page, SlowList) and shows(app, "fio measured")
        # no request of 30 ms is of a cell of less
        assert "in" not in column(page, "CELL")
        assert shows(app, "from allocation to completion")


async def test_both_maps_are_one_column_of_cells() -> None:
    app = make()
    async with app.run_test(size=(200, 60)) as pilot:
        await probed(app, pilot)
        await pilot.press("h", "h", "h", "down")
        await settle(pilot)
        # it begins in the device's, whose I/Os are the requests
        assert cell(app).by_device and cell(app).cell.count == 4
        await pilot.press("up")
        await settle(pilot)
        assert not cell(app).by_device


async def test_without_the_probe_it_says_how_to_keep_them() -> None:
    app = make()
    async with app.run_test(size=SMALL) as pilot:
        await running(app, pilot, 5)
        await pilot.press("2", "h", "up")
        await settle(pilot)
        assert shows(app, "requests not kept")
        await pilot.press("enter")
        await settle(pilot)
        assert shows(app, "P switches on the probe") and not isinstance(app.screen, SlowList)


async def test_the_chosen_cell_is_shown_reversed_and_its_column_stays_visible() -> None:
    app = make()
    async with app.run_test(size=SMALL) as pilot:
        await probed(app, pilot)
        await pilot.press("2", "h", "h", "up")
        await settle(pilot)
        heat = board(app).heat_maps.device
        assert heat.chosen is not None
        ((text, style),) = heat.tiles[0].part(heat.chosen.row, 4, 5)
        assert text == "+" and style is not None and style.reverse
        beside = [style for _, style in heat.tiles[0].part(heat.chosen.row, 5, 12)]
        assert not any(style is not None and style.reverse for style in beside)
        ((text, _),) = heat.tiles[0].part(heat.cells(5.0)[1].row, 4, 5)
        assert text == "█"


async def test_in_a_replay_the_arrow_keys_go_second_by_second_in_a_cell() -> None:
    app = replay(paused=True)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app.state.frame is not None)
        await pilot.press("right", "right")
        await until(pilot, lambda: app.state.t > 19)
        await pilot.press("h", "up")
        await settle(pilot)
        begun = board(app).frozen_at
        assert begun is not None and cell(app).cell.count > 0 and shows(app, "leave the cell")
        await pilot.press("left")
        await settle(pilot)
        assert board(app).frozen_at == pytest.approx(begun - 1, abs=0.2)
        await pilot.press("enter")
        await settle(pilot)
        assert shows(app, "the probe was off at this time")
        await pilot.press("escape", "escape", "right")
        await until(pilot, lambda: app.state.t > 29)
