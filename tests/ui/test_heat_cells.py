"""Cells of the heat map: chosen with keys and the mouse, with their kept requests."""

from __future__ import annotations

from dataclasses import replace

import pytest
import ui_fakes as fakes
from slow_requests import exemplar
from test_app import WIDE, make, running, screen_text, settle, shows, wait_until
from test_mouse import place as column_of
from test_replay_screen import replay
from test_slow_list import READ_NS, column, probe, tick
from textual.pilot import Pilot

from iopstui.model.histogram import bucket_key
from iopstui.model.metrics.probe import LatencyStats, RequestStats
from iopstui.model.samples import Exemplar
from iopstui.ui.app import IopstuiApp
from iopstui.ui.dashboard.heat_maps import ChosenCell
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.dialogs.slow_list import SlowList
from iopstui.ui.draw.charts.chart import AXIS_WIDTH
from iopstui.ui.draw.charts.plotting import TILE_COLUMNS
from iopstui.ui.draw.style import ASCII

DISK = "nvme0n1"
SMALL = (80, 24)
FAST_NS, SLOW_NS = 200_000, 30_000_000


def requests(slow: int) -> list[Exemplar]:
    """Slow reads and a random one that were kept in a second."""
    ends = [READ_NS - n * 10**6 for n in range(slow)]
    exemplars = [exemplar(SLOW_NS, end, disk=DISK, inserted_ns=None, issued_ns=end - SLOW_NS)
                 for end in ends]  # fmt: skip
    fast = exemplar(FAST_NS, READ_NS, disk=DISK, slow=False, sampled=True,
                    inserted_ns=None, issued_ns=READ_NS - FAST_NS)  # fmt: skip
    return [*exemplars, fast]


async def probed(app: IopstuiApp, pilot: Pilot[int]) -> fakes.FakeController:
    """Two seconds of 412 reads each, 3 and 4 of which took 30 ms."""
    fake = await running(app, pilot, 3)
    for slow in (3, 4):
        bins = {bucket_key(FAST_NS): 412 - slow, bucket_key(SLOW_NS): slow}
        requests_by_disk = {DISK: {"read": RequestStats(1.0, LatencyStats.from_bins(bins))}}
        tick(fake, replace(probe(*requests(slow)), disks=requests_by_disk))
    await settle(pilot)
    return fake


def heat_board(app: IopstuiApp) -> Dashboard:
    assert app.dashboard is not None
    return app.dashboard


def cell(app: IopstuiApp) -> ChosenCell:
    chosen = heat_board(app).chosen_cell
    assert chosen is not None
    return chosen


@pytest.mark.parametrize("size", [WIDE, SMALL, (200, 50)])
async def test_keys_choose_a_cell_and_list_its_requests(size: tuple[int, int]) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        await probed(app, pilot)
        await pilot.press("up")
        assert heat_board(app).chosen_cell is None, "there is no heat map"
        await pilot.press(*["2"] * (size == SMALL), "h", "h", "up")
        await settle(pilot)
        # the slowest cell of the last second has 4 requests
        assert (
            heat_board(app).frozen_at == 5.0 and cell(app).by_device and cell(app).cell.count == 4
        )
        assert shows(app, "4 I/Os, 4 kept") and "+" in screen_text(app)
        await pilot.press("left")
        await settle(pilot)
        assert heat_board(app).frozen_at == 4.0 and cell(app).cell.count == 3
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
        assert heat_board(app).chosen_cell is None and heat_board(app).frozen_at == 4.0
        await pilot.press("escape")
        assert heat_board(app).frozen_at is None


async def test_clicks_choose_a_cell_and_list_its_requests() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await probed(app, pilot)
        await pilot.press("h", "h")
        await settle(pilot)
        heat = heat_board(app).heat_maps.device
        row = heat.axis.box.y + heat.cells(4.0)[0].row
        place = (column_of(app, heat, 4.0), row)
        await pilot.click(offset=place)
        await settle(pilot)
        assert heat_board(app).frozen_at == 4.0 and cell(app).cell.count == 3
        await pilot.click(offset=place)
        await settle(pilot)
        assert isinstance(app.screen, SlowList) and shows(app, "3 of the cell's 3 requests")
        await pilot.press("escape")
        # the cell is empty, so only the second is shown
        await pilot.click(offset=(column_of(app, heat, 5.0), row + 2))
        await settle(pilot)
        assert heat_board(app).frozen_at == 5.0 and heat_board(app).chosen_cell is None


async def test_the_list_of_fio_s_map_explains_the_comparison() -> None:
    app = make(charset=ASCII)
    async with app.run_test(size=WIDE) as pilot:
        await probed(app, pilot)
        await pilot.press("h", "up", "enter")
        await settle(pilot)
        page = app.screen
        assert isinstance(page, SlowList) and shows(app, "fio measured")
        # requests of 30 ms don't belong to a cell of shorter times
        assert "in" not in column(page, "CELL")
        assert shows(app, "from allocation to completion")


async def test_both_maps_share_one_column_of_cells() -> None:
    app = make()
    async with app.run_test(size=(200, 60)) as pilot:
        await probed(app, pilot)
        await pilot.press("h", "h", "h", "down")
        await settle(pilot)
        # the device's map is first, because its I/Os are the requests
        assert cell(app).by_device and cell(app).cell.count == 4
        await pilot.press("up")
        await settle(pilot)
        assert not cell(app).by_device


async def test_without_the_probe_the_list_explains_how_to_keep_requests() -> None:
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
        heat = heat_board(app).heat_maps.device
        assert heat.chosen is not None
        at = column_of(app, heat, 5.0) - heat.axis.box.x - AXIS_WIDTH
        index, at = divmod(at, TILE_COLUMNS)
        ((text, style),) = heat.tiles[index].part(heat.chosen.row, at, at + 1)
        assert text == "+" and style is not None and style.reverse
        beside = [style for _, style in heat.tiles[index].part(heat.chosen.row, at + 1, at + 3)]
        assert not any(style is not None and style.reverse for style in beside)
        ((text, _),) = heat.tiles[index].part(heat.cells(5.0)[1].row, at, at + 1)
        assert text == "█"


async def test_arrow_keys_step_by_second_through_a_cell_of_a_replay() -> None:
    app = replay(paused=True)
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: app.state.frame is not None)
        await pilot.press("right", "right")
        await wait_until(pilot, lambda: app.state.t > 19)
        await pilot.press("h", "up")
        await settle(pilot)
        frozen_at = heat_board(app).frozen_at
        assert frozen_at is not None and cell(app).cell.count > 0 and shows(app, "Leave the cell")
        await pilot.press("left")
        await settle(pilot)
        assert heat_board(app).frozen_at == pytest.approx(frozen_at - 1, abs=0.2)
        await pilot.press("enter")
        await settle(pilot)
        assert shows(app, "the probe was off at this time")
        await pilot.press("escape", "escape", "right")
        await wait_until(pilot, lambda: app.state.t > 29)
