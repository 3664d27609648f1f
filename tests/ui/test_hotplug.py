from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import ui_fakes as fakes
from test_app import finish_workers, settle, wait_until
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from iopstui.model.block.device import BlockDevice
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Appearance, Backend
from iopstui.ui.draw.style import UTF8
from iopstui.ui.home import screen as home

USB = replace(fakes.ODD, name="sdb", path="/dev/sdb", model="stick")


class Watch:
    """A hotplug listener that counts its starts and stops."""

    def __init__(self, works: bool = True) -> None:
        self.works = works
        self.calls: list[str] = []

    def __call__(self, callback: Callable[[str, str], None]) -> Watch:
        self.callback = callback
        return self

    def start(self) -> bool:
        self.calls.append("start")
        return self.works

    def stop(self) -> None:
        self.calls.append("stop")


def make(watch: Watch, devices: dict[str, BlockDevice]) -> IopstuiApp:
    fake = fakes.FakeController()
    return IopstuiApp(
        Backend(lambda path: fake, lambda: dict(devices), fakes.JOBS, watch=watch),
        appearance=Appearance(UTF8),
    )


async def rest(pilot: Pilot[int]) -> None:
    await pilot.pause()
    assert isinstance(pilot.app.screen, home.HomeScreen)
    pilot.app.screen._rescan_now()
    await settle(pilot)
    await finish_workers(pilot.app)
    await settle(pilot)


def names(app: IopstuiApp) -> list[str]:
    table = app.screen.query_one(DataTable)
    return [str(table.get_row_at(row)[0]).strip("└ ") for row in range(table.row_count)]


def cursor(app: IopstuiApp) -> str:
    return names(app)[app.screen.query_one(DataTable).cursor_row]


def words(app: IopstuiApp) -> str:
    return str(app.screen.query_one("#picker-words", Static).content)


async def test_devices_come_and_go_and_the_cursor_stays_on_its_device() -> None:
    watch, devices = Watch(), dict(fakes.DEVICES)
    app = make(watch, devices)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await finish_workers(app)
        await settle(pilot)
        await pilot.press("p", "down", "down")
        assert cursor(app) == "sda"
        del devices["nvme0n1p1"]
        devices["sdb"] = USB
        watch.callback("add", "sdb")
        await rest(pilot)
        assert names(app) == ["nvme0n1", "sda", "sdb"] and cursor(app) == "sda"
        assert words(app) == "new: sdb; gone: nvme0n1p1"
        del devices["sda"]
        watch.callback("remove", "sda")
        await rest(pilot)
        assert names(app) == ["nvme0n1", "sdb"] and cursor(app) == "sdb"
        assert "gone: sda" in words(app)
        await pilot.press("q")
    assert watch.calls == ["start", "stop"]


async def test_a_new_disk_moves_no_row() -> None:
    """Somebody looked at the rows, and went down as many as there were when a loop device came."""
    watch, devices = Watch(), dict(fakes.DEVICES)
    app = make(watch, devices)
    usb = replace(USB, name="aaa", path="/dev/aaa")

    async def plug(*order: str) -> None:
        found = {**fakes.DEVICES, "aaa": usb, "sdb": USB}
        devices.clear()
        devices.update((name, found[name]) for name in order)
        await rest(pilot)

    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await finish_workers(app)
        await plug("aaa", "nvme0n1", "sda")
        assert names(app) == ["nvme0n1", "sda", "aaa"]
        await pilot.press("down")
        assert cursor(app) == "sda"
        await plug("aaa", "nvme0n1", "sda", "sdb")
        assert names(app) == ["nvme0n1", "sda", "aaa", "sdb"] and cursor(app) == "sda"
        await plug("aaa", "nvme0n1", "sdb")
        await plug("aaa", "nvme0n1", "sda", "sdb")
        assert names(app) == ["nvme0n1", "aaa", "sdb", "sda"]
        await pilot.press("greater_than_sign", "less_than_sign")
        await settle(pilot)
        assert names(app) == ["aaa", "nvme0n1", "sda", "sdb"]


async def test_no_listener_remains_after_a_device_is_chosen() -> None:
    watch = Watch()
    app = make(watch, dict(fakes.DEVICES))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await finish_workers(app)
        await pilot.press("enter")
        await settle(pilot)
        assert watch.calls == ["start", "stop"]
        await pilot.press("escape")
        await settle(pilot)
        assert watch.calls == ["start", "stop", "start"]


async def test_many_events_cause_one_scan() -> None:
    watch, scans = Watch(), []
    app = make(watch, dict(fakes.DEVICES))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, home.HomeScreen)
        timers: list[object] = []
        app.screen.set_timer = lambda *a: timers.append(a)  # type: ignore[method-assign, assignment, return-value]
        for _ in range(20):
            watch.callback("change", "sda")
        await settle(pilot)
        assert len(timers) == 1 and not scans


async def test_without_events_the_devices_are_rescanned_periodically() -> None:
    watch, devices = Watch(works=False), dict(fakes.DEVICES)
    before, home.RESCAN_S = home.RESCAN_S, 0.01
    app = make(watch, devices)
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            devices["sdb"] = USB
            await wait_until(pilot, lambda: "sdb" in names(app))
    finally:
        home.RESCAN_S = before


async def test_several_devices_are_marked_and_opened_together() -> None:
    chosen: list[object] = []
    fake = fakes.FakeController()

    def build(paths: object) -> fakes.FakeController:
        chosen.append(paths)
        return fake

    devices = {**fakes.DEVICES, "sdb": USB}
    app = IopstuiApp(Backend(build, lambda: dict(devices), fakes.JOBS), appearance=Appearance(UTF8))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await finish_workers(app)
        await settle(pilot)
        # marks are listed in the order of marking; marking a disk again removes its mark
        await pilot.press("p", "down", "down", "down", "space")
        assert "marked: sdb; Enter opens it" in words(app)
        await pilot.press("up", "space", "up", "space")
        await pilot.press("space")
        assert names(app)[-2:] == ["● sda", "● sdb"] and "nvme0n1p1" in names(app)
        assert "marked: sdb, sda;" in words(app)
        await pilot.press("enter")
        await settle(pilot)
    assert chosen == [("/dev/sdb", "/dev/sda")]


async def test_a_removed_device_is_no_longer_marked() -> None:
    watch, devices = Watch(), {**fakes.DEVICES, "sdb": USB}
    app = make(watch, devices)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await finish_workers(app)
        await settle(pilot)
        await pilot.press("down", "space", "down", "space")
        del devices["sdb"]
        watch.callback("remove", "sdb")
        await rest(pilot)
        assert names(app)[-1] == "● sda" and isinstance(app.screen, home.HomeScreen)
        assert app.screen._marked == ["/dev/sda"]
