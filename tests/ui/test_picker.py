"""The first screen: what the disks do, what lies on them, what else can be had, and filtering."""

from __future__ import annotations

from dataclasses import replace

import pytest
import ui_fakes as fakes
from evidence_frames import disk
from test_app import settle
from test_hotplug import cursor, names, words
from textual.pilot import Pilot
from textual.widgets import DataTable, OptionList, Static

from iopstui.model.block.device import BlockDevice, Mount
from iopstui.ui.app import IopstuiApp
from iopstui.ui.dialogs.choice import Choice
from iopstui.ui.dialogs.picker import Picker
from iopstui.ui.dialogs.picker_rows import carries, live
from iopstui.ui.dialogs.text import TextScreen
from iopstui.ui.draw.style import UTF8

LOAD = disk(300.0, size=10486, util=42.0)
DISK = replace(fakes.NVME, partitions=("nvme0n1p1", "nvme0n1p2"))
SWAP = replace(fakes.PART, name="nvme0n1p2", path="/dev/nvme0n1p2", mounts=(), swap=True)
LVM = replace(fakes.PART, mounts=(), holders=("dm-0",))
DM = BlockDevice("dm-0", "/dev/dm-0", 253, 0, "dm", 1 << 30, mounts=(Mount("/srv", "xfs"),))


def table(*devices: BlockDevice) -> dict[str, BlockDevice]:
    return {device.name: device for device in devices}


@pytest.mark.parametrize(
    ("whole", "devices", "said"),
    [
        (DISK, table(DISK, fakes.PART, SWAP), "carries /, swap"),
        (DISK, table(DISK, LVM, DM), "carries /srv"),
        (fakes.PART, table(DISK, fakes.PART), "mounted at /"),
        (DISK, table(DISK), "2 partitions"),
        (fakes.ODD, table(fakes.ODD), "free"),
    ],
)
def test_what_a_disk_carries(
    whole: BlockDevice, devices: dict[str, BlockDevice], said: str
) -> None:
    assert carries(whole, devices) == said


def test_a_disk_that_is_not_known_yet_has_no_figures() -> None:
    assert live(None) == ("", "", "")


class Wished:
    def __init__(self) -> None:
        self.demo = 0

    def __call__(self) -> None:
        self.demo += 1


def picking(wish: Wished) -> IopstuiApp:
    fake = fakes.FakeController()
    return IopstuiApp(
        lambda paths: fake, [], None, {}, lambda: dict(fakes.DEVICES), fakes.JOBS, charset=UTF8,
        demo=wish, loads=lambda: {"sda": LOAD},
    )  # fmt: skip


async def opened(pilot: Pilot[int]) -> IopstuiApp:
    await settle(pilot)
    await pilot.app.workers.wait_for_complete()
    await settle(pilot)
    assert isinstance(pilot.app.screen, Picker)
    assert isinstance(pilot.app, IopstuiApp)
    return pilot.app


async def test_what_the_disks_do_stands_beside_them() -> None:
    async with picking(Wished()).run_test(size=(160, 45)) as pilot:
        app = await opened(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        row = [str(cell) for cell in app.screen.query_one(DataTable).get_row("/dev/sda")]
        assert row[:4] == ["sda", "300", "3.00", "42"]
        # a list that is filled anew keeps them
        await pilot.press("s", "d", "a")
        row = [str(cell) for cell in app.screen.query_one(DataTable).get_row("/dev/sda")]
        assert row[:4] == ["sda", "300", "3.00", "42"]


async def test_typing_narrows_the_list_and_escape_drops_it() -> None:
    async with picking(Wished()).run_test(size=(160, 45)) as pilot:
        app = await opened(pilot)
        everything = names(app)
        await pilot.press("N", "V", "m", "e")
        assert names(app) == ["nvme0n1", "nvme0n1p1"]
        await pilot.press("space", "p", "a", "r", "t")
        assert names(app) == ["nvme0n1p1"]
        await pilot.press("x")
        assert names(app) == [] and "nothing has all" in words(app)
        await pilot.press("backspace", "escape")
        assert names(app) == everything and app.is_running
        # q leaves; behind a slash it is a letter
        await pilot.press("slash", "q")
        assert names(app) == [] and isinstance(app.screen, Picker)
        foot = str(app.screen.query_one("#picker-foot", Static).content)
        assert "filter: q" in foot
        await pilot.press("backspace", "q")
        await settle(pilot)
    assert app.return_value == 0


async def test_the_demo_and_the_doctor_are_entered_from_here() -> None:
    wish = Wished()
    async with picking(wish).run_test(size=(160, 45)) as pilot:
        app = await opened(pilot)
        await pilot.press("slash", "d", "o", "c", "t", "enter")
        await settle(pilot)
        assert isinstance(app.screen, TextScreen) and "System check" in app.screen.heading
        await pilot.press("escape")
        await opened(pilot)
        await pilot.press("d", "e", "m", "o")
        assert cursor(app) == "demo"
        await pilot.press("enter")
        await settle(pilot)
    assert wish.demo == 1 and app.return_value == 0


async def test_a_choice_is_narrowed_and_takes_what_is_seen() -> None:
    async with picking(Wished()).run_test(size=(80, 24)) as pilot:
        app = await opened(pilot)
        taken: list[str | None] = []
        await app.push_screen(Choice("block size", ("4k", "16k", "64k"), "4k", UTF8), taken.append)
        await pilot.press("6", "4")
        assert app.screen.query_one(OptionList).option_count == 1
        await pilot.press("enter")
        await settle(pilot)
        assert taken == ["64k"]
