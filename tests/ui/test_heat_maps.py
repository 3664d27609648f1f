"""With the probe there are two heat maps: fio's and the device's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import ui_fakes as fakes
from session_frames import whole_frames
from test_app import WIDE, make, running, settle, shows
from textual.pilot import Pilot

from iopstui.events import FrameReady
from iopstui.ui.app import IopstuiApp
from iopstui.ui.dashboard.heat_maps import BOTH, DEVICE, FIO


async def probed(app: IopstuiApp, pilot: Pilot[int]) -> fakes.FakeController:
    """Play seconds of a run that the probe has counted, too."""
    fake = await running(app, pilot)
    for n, frame in enumerate(whole_frames("3.42-p-both", probed=True)):
        renamed = None if frame.probe is None else replace(
            frame.probe, disks={"nvme0n1": frame.probe.disks["vda"]}
        )  # fmt: skip
        fake.sink(FrameReady(4.0 + n, replace(frame, t=4.0 + n, probe=renamed, step=1)))
    await settle(pilot)
    return fake


@pytest.mark.parametrize("size", [WIDE, (80, 24), (200, 50)])
async def test_h_cycles_through_the_maps_of_fio_the_device_and_both(size: tuple[int, int]) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        await probed(app, pilot)
        await pilot.press("2")
        assert app.dashboard is not None
        heats, placements = app.dashboard.heat_maps, []
        for _ in range(4):
            await pilot.press("h")
            await settle(pilot)
            visible = [heat for heat in (heats.fio, heats.device) if heat.shown]
            assert all("share" in heat.title.text() for heat in visible)
            placements.append((heats.placed, len(visible)))
        assert placements == [(FIO, 1), (DEVICE, 1), (BOTH, 2), ("", 0)]


async def test_both_maps_share_one_scale_and_time_span() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await probed(app, pilot)
        for _ in range(3):
            await pilot.press("h")
        assert app.dashboard is not None
        heats = app.dashboard.heat_maps
        for seconds in (0, 1, 30):
            fake.tick(seconds)
            await settle(pilot)
            if heats.placed == BOTH:
                assert heats.fio.scale == heats.device.scale is not None
                assert heats.fio.dots == heats.device.dots
        # half a minute later the probe has long ended: only fio's is left
        assert heats.placed == FIO and not heats.device.shown


async def test_few_rows_show_one_map_and_no_probe_means_one_map() -> None:
    app = make()
    async with app.run_test(size=(80, 18)) as pilot:
        fake = await running(app, pilot)
        await pilot.press("2", "h")
        assert app.dashboard is not None and app.dashboard.heat_maps.placed == FIO
        await pilot.press("h")
        assert app.dashboard.heat_maps.placed == "" and not app.dashboard.heat_enabled
        await pilot.press("r")
        assert ("stop",) in fake.calls
        await probed(app, pilot)
        placed = []
        for _ in range(3):
            await pilot.press("h")
            await settle(pilot)
            placed.append(app.dashboard.heat_maps.placed)
        assert placed == [FIO, DEVICE, ""]


SCENES = {"160x45-both": WIDE}


@pytest.mark.parametrize("name", SCENES)
def test_looks(name: str, snap_compare: Callable[..., bool]) -> None:
    app = make()

    async def before(pilot: Pilot[int]) -> None:
        await probed(app, pilot)
        await pilot.press("h", "h", "h", "p")
        await settle(pilot)

    assert snap_compare(app, terminal_size=SCENES[name], run_before=before)


@pytest.mark.parametrize("size", [WIDE, (80, 24)])
async def test_before_the_first_job_the_kernel_s_means_are_shown(
    size: tuple[int, int],
) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        fake: fakes.FakeController = app.fake  # type: ignore[attr-defined]
        await settle(pilot)
        fake.tick(4)
        await settle(pilot)
        await pilot.press("h")
        await settle(pilot)
        board = app.dashboard
        assert board is not None and board.heat_enabled and not board.heat_visible
        assert shows(app, "r_await") and shows(app, "the heat map begins with a job")
        await pilot.press("r")
        fake.tick(4)
        await settle(pilot)
        assert board.heat_visible and shows(app, "share of I/Os")
