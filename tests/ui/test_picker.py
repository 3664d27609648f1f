"""The first screen: activity and use of the disks, other entries, and filtering."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path

import pytest
import ui_fakes as fakes
from disks import changed, disk_of
from evidence_frames import disk
from test_app import finish_workers, screen_text, settle
from test_hotplug import cursor, names, words
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, OptionList, Static

from iopstui import format as f
from iopstui.linux.activity.disk_use import DiskUseReader, OccasionalUse
from iopstui.model.answer.answer import GOOD, WARNING, Answer
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.model.block.device import BlockDevice, Mount
from iopstui.model.block.target import DEVICE, FILE, Target
from iopstui.model.figures.disk import DiskRates, Loads
from iopstui.model.findings.evidence import ENOUGH_SECONDS
from iopstui.recording.reader import recording_path
from iopstui.recording.recent import RecentRecording
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Appearance, Backend
from iopstui.ui.core.clipboard import render_pictures
from iopstui.ui.core.list_table import ListTable
from iopstui.ui.core.modal import KeyLine
from iopstui.ui.dialogs.questions import Choice, Prompt
from iopstui.ui.dialogs.text import TextScreen
from iopstui.ui.draw.style import UTF8
from iopstui.ui.home import rows
from iopstui.ui.home.memory import BEGAN_S, HomeMemory
from iopstui.ui.home.recent import start_text
from iopstui.ui.home.rows import (
    PLAIN_BARS,
    Activity,
    HomeAnswer,
    column_widths,
    device_tree,
    model_text,
    mount_text,
    use_above,
    users_text,
)
from iopstui.ui.home.screen import HomeScreen, OpenSession
from iopstui.ui.parts.target import TargetKeys

LOAD = disk(300.0, size=10486, util=42.0)
DISK = replace(fakes.NVME, partitions=("nvme0n1p1", "nvme0n1p2"))
SWAP = replace(fakes.PART, name="nvme0n1p2", path="/dev/nvme0n1p2", mounts=(), swap=True)
LVM = replace(fakes.PART, mounts=(), holders=("dm-0",))
DM = BlockDevice("dm-0", "/dev/dm-0", 253, 0, "dm", 1 << 30, mounts=(Mount("/srv", "xfs"),))


RECENT = [
    RecentRecording(Path("/srv/first.iops"), "nvme0n1", 1.7e12, 4096),
    RecentRecording(Path("/srv/broken.iops"), "", None, 12),
]


def table(*devices: BlockDevice) -> dict[str, BlockDevice]:
    return {device.name: device for device in devices}


@pytest.mark.parametrize(
    ("disk", "devices", "use"),
    [
        (DISK, table(DISK, fakes.PART, SWAP), "carries /, swap"),
        (DISK, table(DISK, LVM, DM), "carries /srv"),
        (fakes.PART, table(DISK, fakes.PART), "mounted at /"),
        (DISK, table(DISK), "2 partitions"),
        (fakes.ODD, table(fakes.ODD), "not mounted"),
    ],
)
def test_the_use_of_a_disk(disk: BlockDevice, devices: dict[str, BlockDevice], use: str) -> None:
    assert use_above(disk, devices) == use


def row_of(app: IopstuiApp) -> list[str]:
    row = app.screen.query_one(DataTable).get_row("/dev/sda")
    return [str(cell) for cell in row[-5:-1]]


class PickerCalls:
    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str) -> None:
        self.names.append(name)


def make_picker(
    recorder: PickerCalls,
    devices: Mapping[str, BlockDevice] = fakes.DEVICES,
    loads: Loads = lambda names: {"sda": LOAD},
) -> IopstuiApp:
    fake = fakes.FakeController()
    return IopstuiApp(
        Backend(
            lambda paths: fake,
            lambda: dict(devices),
            fakes.JOBS,
            loads=loads,
            play=recorder,
            recent=lambda: RECENT,
        ),
        appearance=Appearance(UTF8),
    )


async def open_picker(pilot: Pilot[int]) -> IopstuiApp:
    await settle(pilot)
    await finish_workers(pilot.app)
    await settle(pilot)
    assert isinstance(pilot.app.screen, HomeScreen)
    assert isinstance(pilot.app, IopstuiApp)
    return pilot.app


async def test_the_activity_of_disks_is_shown_beside_them() -> None:
    async with make_picker(PickerCalls()).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        assert row_of(app) == ["300", "0", "3.00", "42 %"]
        assert names(app) == ["nvme0n1", "sda"], "by name"
        assert app.screen.query_one(DataTable).cursor_row == 0, "it moves with keys alone"
        # a list that is filled again keeps its figures
        await pilot.press("slash", "s", "d", "a")
        assert names(app) == ["sda"] and row_of(app) == ["300", "0", "3.00", "42 %"]


async def test_a_disk_moves_up_only_when_the_answer_warns_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = Answer("sda", "busy", GOOD, "sda is in use")
    monkeypatch.setattr(HomeAnswer, "now", lambda *_: answer)
    loop = replace(fakes.DEVICES["sda"], name="loop0", path="/dev/loop0", kind="loop")
    busy = cycle([{"sda": LOAD}, {"nvme0n1": LOAD}, {"loop0": LOAD}])
    picker = make_picker(PickerCalls(), {"loop0": loop, **fakes.DEVICES}, lambda _: next(busy))
    async with picker.run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        assert isinstance(app.screen, HomeScreen)
        for _ in range(10):
            app.screen._tick()
            assert names(app) == ["nvme0n1", "sda", "loop0"]
        answer = replace(answer, state=WARNING)
        app.screen._tick()
        assert names(app) == ["sda", "nvme0n1", "loop0"], "in the second of the answer"
        answer = replace(answer, disk="loop0")
        app.screen._tick()
        assert names(app) == ["sda", "nvme0n1", "loop0"], "not every second"
        answer = replace(answer, disk="sda")
        await pilot.press("down")
        row = app.screen._table.selected.key
        for disk_name in ("nvme0n1", "loop0"):
            answer = replace(answer, disk=disk_name)
            for _ in range(10):
                app.screen._tick()
            assert names(app) == ["sda", "nvme0n1", "loop0"], "the cursor is on its way to a row"
        assert app.screen._table.selected.key == row
        await pilot.press("greater_than_sign", "less_than_sign")
        await settle(pilot)
        assert names(app) == ["loop0", "nvme0n1", "sda"], "in order again with a key"
        assert app.screen._table.selected.key == row


async def test_a_key_pressed_before_the_disks_are_there_is_not_lost() -> None:
    app, found = make_picker(PickerCalls()), threading.Event()

    def discover() -> Mapping[str, BlockDevice]:
        found.wait(60)
        return fakes.DEVICES

    app.targets._backend = replace(app.targets._backend, discover=discover)
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        await pilot.press("down")
        found.set()
        await open_picker(pilot)
        assert names(app) == ["nvme0n1", "sda"]
        assert app.screen.query_one(DataTable).cursor_row == 1


async def test_the_axis_of_home_begins_with_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iopstui.ui.home.screen.monotonic", lambda: BEGAN_S + 7)
    async with make_picker(PickerCalls()).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        assert isinstance(app.screen, HomeScreen)
        app.screen._tick()
        assert app.screen._activity["sda"].history.end == pytest.approx(7)


async def watch_and_come_home(pilot: Pilot[int]) -> None:
    await pilot.press("enter")
    await settle(pilot)
    assert not isinstance(pilot.app.screen, HomeScreen)
    await pilot.press("escape")
    await open_picker(pilot)


async def test_no_row_moves_when_one_comes_home(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Answer("sda", "busy", WARNING, "sda is busy")
    monkeypatch.setattr(HomeAnswer, "now", lambda *_: answer)
    loop = replace(fakes.DEVICES["sda"], name="loop0", path="/dev/loop0", kind="loop")
    picker = make_picker(PickerCalls(), {"loop0": loop, **fakes.DEVICES})
    fake = fakes.FakeController(fakes.ON_PARTITION)

    def build(paths: Sequence[str]) -> fakes.FakeController:
        name = paths[0].removeprefix("/dev/")
        fake.target = Target(DEVICE, paths[0], name, (name,))
        return fake

    picker.targets._backend = replace(picker.targets._backend, make_controller=build)
    async with picker.run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        assert names(app) == ["sda", "nvme0n1", "loop0"], "the one that needs attention"
        await pilot.press("down", "down")
        answer = Answer("loop0", "busy", WARNING, "loop0 is busy")
        await watch_and_come_home(pilot)
        assert names(app) == ["sda", "nvme0n1", "▸ loop0"] and cursor(app) == "▸ loop0"
        app.screen._tick()  # type: ignore[attr-defined]
        assert names(app) == ["sda", "nvme0n1", "▸ loop0"]
        assert "loop0 is busy" in screen_text(app), "its row stays, the answer names it"
        await pilot.press("up", "p")
        assert names(app) == ["sda", "nvme0n1", "nvme0n1p1", "▸ loop0"]
        await pilot.press("down")
        await watch_and_come_home(pilot)
        assert names(app) == ["sda", "nvme0n1", "▸ nvme0n1p1", "loop0"], "under its disk"
        assert cursor(app) == "▸ nvme0n1p1"
        await pilot.press("p")
        assert names(app) == ["▸ nvme0n1p1", "sda", "nvme0n1", "loop0"], "no row of its own"
        await pilot.press("greater_than_sign", "R")
        await settle(pilot)
        chosen = ["▸ nvme0n1p1", "sda", "nvme0n1", "loop0"]
        assert names(app) == chosen and "NAME, Z first" in screen_text(app)
        await pilot.press("down")
        await watch_and_come_home(pilot)
        assert names(app) == ["sda", "nvme0n1", "▸ loop0"] and "NAME, Z first" in screen_text(app)


async def test_very_many_disks_are_not_measured_beside_a_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = {f"d{n}": replace(fakes.ODD, name=f"d{n}", path=f"/dev/d{n}") for n in range(101)}
    async with make_picker(PickerCalls(), many).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        await pilot.press("enter")
        await settle(pilot)
        memory = app.targets._memory
        assert memory is not None
        for is_busy, measured in ((True, False), (False, True)):
            monkeypatch.setattr(TargetKeys, "is_busy", is_busy)
            memory.measured_s = None
            app.targets._measure_disks()
            assert (memory.measured_s is not None) == measured


async def test_home_has_present_figures_at_once_after_watching() -> None:
    calls, reads = count(1), lambda: row_of(app)[0]
    loads: Loads = lambda names: {"sda": disk(100.0 * next(calls), size=10486, util=42.0)}  # noqa: E731
    async with make_picker(PickerCalls(), loads=loads).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        for _ in range(ENOUGH_SECONDS):
            app.screen._tick()  # type: ignore[attr-defined]
        before = reads()
        await pilot.press("enter")
        await settle(pilot)
        app.targets._measure_disks()
        assert app.targets._memory is not None
        now = app.targets._memory.activity["sda"].rates
        assert now is not None and f.number(now.r_s) != before
        await pilot.press("escape")
        await open_picker(pilot)
        assert reads() == f.number(now.r_s)
        assert "sda" in screen_text(app).splitlines()[1], "and the answer on all disks"
        app.targets._measure_disks()
        assert app.targets._memory.activity["sda"].rates is now, "home measures itself"


async def test_home_says_that_the_open_disk_is_gone() -> None:
    loop = replace(fakes.ODD, name="loop0", path="/dev/loop0", kind="loop", backing_file="/img")
    devices, loads = {"loop0": loop, **fakes.DEVICES}, {"sda": LOAD, "loop0": LOAD}
    picker = make_picker(PickerCalls(), devices, lambda names: dict(loads))
    target = Target(DEVICE, "/dev/loop0", "loop0", ("loop0",))
    fake = fakes.FakeController(target, {**devices})
    picker.targets._backend = replace(
        picker.targets._backend, discover=lambda: dict(devices), make_controller=lambda paths: fake
    )
    async with picker.run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        await pilot.press("down", "down")
        await watch_and_come_home(pilot)
        for _ in range(ENOUGH_SECONDS + 1):
            app.screen._tick()  # type: ignore[attr-defined]
        assert names(app) == ["nvme0n1", "sda", "▸ loop0"]
        devices["loop0"] = replace(loop, size=0)
        app.screen._rescan_now()  # type: ignore[attr-defined]
        await open_picker(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        assert "loop0 was detached" in screen_text(app)
        assert words(app) == "gone: loop0"
        assert names(app) == ["nvme0n1", "sda", "▸ loop0"], "its row keeps its place"
        row = [str(cell).strip() for cell in app.screen.query_one(DataTable).get_row("/dev/loop0")]
        assert "(gone)" in row and not any(row[3:]), "no figures"
        home = app.screen
        assert isinstance(home, HomeScreen)
        busy = Answer("sda", "busy", WARNING, "sda is busy")
        home._answer.now = lambda *_: busy  # type: ignore[method-assign]
        home._tick()
        assert "sda is busy" in screen_text(app), "what goes on is worse"
        del loads["loop0"], devices["loop0"], home._answer.now
        home._rescan_now()
        await open_picker(pilot)
        home._tick()
        assert "loop0 is gone: the kernel has no such disk" in screen_text(app)
        assert home._activity["loop0"].rates is None, "no figures of the past"


async def test_home_still_shows_the_last_minute_after_watching(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with make_picker(PickerCalls()).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        monkeypatch.setattr("iopstui.ui.home.screen.monotonic", lambda: time.monotonic() + 9)
        await watch_and_come_home(pilot)
        last = str(app.screen.query_one(DataTable).get_row("/dev/sda")[-1])
        assert "▄" in last, "42 % before it watched"
        assert row_of(app) == [""] * 4, "no figures of that time as if they were of now"
        text = render_pictures(app)[".txt"]
        assert "IOPS of nvme0n1" in text and " 0 ┈" in text, "charts don't wait for the next second"
        app.screen._tick()  # type: ignore[attr-defined]
        assert row_of(app) == ["300", "0", "3.00", "42 %"]


async def test_a_dialog_over_home_does_not_stop_its_figures() -> None:
    second = count(1)
    loads: Loads = lambda names: {"sda": disk(100.0 * next(second), size=10486, util=42.0)}  # noqa: E731
    async with make_picker(PickerCalls(), loads=loads).run_test(size=(120, 36)) as pilot:
        app = await open_picker(pilot)
        home = app.screen
        assert isinstance(home, HomeScreen)

        def reads() -> str:
            return str(home.query_one(DataTable).get_row("/dev/sda")[-5])

        home._tick()
        before = reads()
        await pilot.press("x")
        home._tick()
        assert app.screen is not home and reads() != before, "the table is still visible"
        screen_below = reads()
        home._activity["sda"].rates = disk(12345.0)
        await pilot.press("escape")
        await settle(pilot)
        assert reads() not in (before, screen_below), "at once, not with the next second"


async def test_home_has_the_session_s_answer_until_it_has_measured_for_long_enough() -> None:
    async with make_picker(PickerCalls()).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        assert "too short to tell" in screen_text(app)
        await pilot.press("enter")
        await settle(pilot)
        app.port.state.answer = Answer("sda", "busy", GOOD, "sda is in use and quick")
        await pilot.press("escape")
        await open_picker(pilot)
        for _ in range(ENOUGH_SECONDS - 1):
            assert "sda is in use and quick" in screen_text(app)
            app.screen._tick()  # type: ignore[attr-defined]
            await settle(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        await settle(pilot)
        assert "sda is in use and quick" not in screen_text(app)


async def test_of_the_disk_of_a_job_home_says_what_the_job_waits_for() -> None:
    async with make_picker(PickerCalls()).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        home = app.screen
        assert isinstance(home, HomeScreen)
        waits = Answer("sda", "finding-cpu-wait", WARNING, "The job waits for a CPU")
        opened = OpenSession(("/dev/sda",), "sda", "sda", str, str, lambda: waits, lambda: True)
        quick = Answer("sda", "use", GOOD, "sda is in use and quick")
        busy = replace(quick, state=WARNING, text="sda is busy")
        for _ in range(ENOUGH_SECONDS):
            home._tick()
        assert home._is_session_s(opened, quick)
        assert not home._is_session_s(opened, busy)
        assert not home._is_session_s(opened, replace(quick, disk="vda"))
        assert not home._is_session_s(replace(opened, is_busy=lambda: False), quick)


async def test_what_a_thread_finds_while_home_closes_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HomeScreen, "_tick", lambda home: None)
    async with make_picker(PickerCalls()).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        home = app.screen
        assert isinstance(home, HomeScreen)
        await home.query("*").remove()
        home._devices = None
        await asyncio.to_thread(home._scan)
        await asyncio.to_thread(home._read_use, 1.0, {})
        assert home._devices is None


async def test_typing_narrows_the_list_and_escape_drops_it() -> None:
    async with make_picker(PickerCalls()).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        everything = ["nvme0n1", "nvme0n1p1", "sda"]
        await pilot.press("p", "slash", "N", "V", "m", "e")
        assert names(app) == ["nvme0n1", "nvme0n1p1"]
        await pilot.press("space", "p", "a", "r", "t")
        assert names(app) == ["nvme0n1p1"]
        await pilot.press("x")
        assert names(app) == [] and "No disk has all" in words(app)
        await pilot.press("backspace", "escape")
        assert names(app) == everything and app.is_running
        # q leaves the screen; after a slash it is a letter
        await pilot.press("slash", "q")
        assert names(app) == [] and isinstance(app.screen, HomeScreen)
        keys = app.screen.query_one(KeyLine)
        assert "filter: q" in keys.text and "Esc Clear" in keys.text
        assert "r Run" not in keys.text and "q Quit" not in keys.text
        await pilot.press("backspace")
        assert "r Run" in keys.text and "q Quit" in keys.text
        await pilot.press("q")
        await settle(pilot)
    assert app.return_value == 0


async def test_the_demo_and_the_doctor_start_from_the_picker() -> None:
    recorder = PickerCalls()
    async with make_picker(recorder).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        await pilot.press("x")
        await settle(pilot)
        assert isinstance(app.screen, TextScreen) and "System check" in app.screen.heading
        await pilot.press("escape")
        await open_picker(pilot)
        await pilot.press("d")
        await settle(pilot)
    assert recorder.names == ["demo"] and app.return_value == 0


async def test_a_choice_is_filtered_and_enter_takes_the_visible_one() -> None:
    async with make_picker(PickerCalls()).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        answers: list[str | None] = []
        await app.push_screen(
            Choice("block size", ("4k", "16k", "64k"), "4k", UTF8), answers.append
        )
        await pilot.press("6", "4")
        assert app.screen.query_one(OptionList).option_count == 1
        await pilot.press("enter")
        await settle(pilot)
        assert answers == ["64k"]


LEGS = {
    "sda": replace(fakes.ODD, holders=("md0",)),
    "sdb": replace(fakes.ODD, name="sdb", path="/dev/sdb", holders=("md0",)),
    "md0": BlockDevice(
        "md0", "/dev/md0", 9, 0, "md", 1 << 30, slaves=("sda", "sdb"), layer="raid1",
        mounts=(Mount("/backup", "xfs"),),
    ),
    "nvme0n1": DISK,
    "nvme0n1p1": fakes.PART,
}  # fmt: skip


def test_related_disks_are_a_tree() -> None:
    tree = [(depth, device.name) for depth, device in device_tree(LEGS, False)]
    assert tree == [(0, "sda"), (1, "md0"), (0, "sdb"), (0, "nvme0n1")]
    assert (1, "nvme0n1p1") in [(depth, device.name) for depth, device in device_tree(LEGS, True)]
    assert mount_text(LEGS["sdb"], LEGS) == "/backup" and mount_text(LEGS["md0"], LEGS) == "/backup"
    twice = replace(fakes.PART, mounts=(Mount("/", "ext4"), Mount("/srv", "ext4")))
    assert mount_text(twice, {twice.name: twice}) == "/, /srv"
    assert "raid1 on sda, sdb" in model_text(LEGS["md0"])
    # a cycle is shown once
    ring = {"a": replace(DM, name="a", slaves=("b",), holders=("b",)),
            "b": replace(DM, name="b", slaves=("a",), holders=("a",))}  # fmt: skip
    assert sorted(device.name for _, device in device_tree(ring, False)) == ["a", "b"]


@pytest.mark.parametrize("width", [56, 76, 96, 116, 156, 246])
def test_columns_fit_and_never_drop_the_figures(width: int) -> None:
    widths = column_widths(width)
    assert {"NAME", "READ/s", "WRITE/s", "MiB/s", "UTIL", "LAST 60 s"} <= set(widths)
    assert width < 76 or sum(widths.values()) + 2 * len(widths) <= width
    assert width < 200 or (widths["LAST 60 s"], widths["MODEL"]) == (60, 48)


@pytest.mark.parametrize(("width", "cells"), [(76, 11), (156, 16), (246, 24)])
def test_long_names_are_cut_last(width: int, cells: int) -> None:
    widths = rows.column_widths(width, 40)
    assert widths["NAME"] >= cells and sum(widths.values()) + 2 * len(widths) <= width


def test_names_of_a_tree_and_long_paths() -> None:
    assert rows.label("dm-0", 2, False, wide=True) == "  └ dm-0"
    assert rows.label("dm-0", 2, True, wide=False) == " └●dm-0"
    assert rows.label("sda", 0, True, wide=False) == "● sda"
    assert f.shorten("/srv/backup/archive", 9) == "…/archive"
    assert f.shorten("/boot/efi, /, swap", 9) == "/boot/ef…"
    assert f.shorten("short", 9) == "short"
    assert f.shorten("▸ /srv/backup/archive", 11) == "▸ …/archive"
    assert f.shorten("▸ loop0 and others", 9) == "▸ loop0 …"


async def test_the_end_of_an_open_directory_s_path_is_shown() -> None:
    picker = make_picker(PickerCalls())
    path = "/tmp/pictures/of/a/long/path/with/its/end"
    target = Target(FILE, path, "sda", ("sda",), "", "ext4", "/")
    fake = fakes.FakeController(target)
    picker.targets._backend = replace(picker.targets._backend, make_controller=lambda paths: fake)
    async with picker.run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        await watch_and_come_home(pilot)
        assert names(app)[0].endswith("/its/end") and names(app)[0].startswith("▸ …")
        line = str(app.screen.query_one("#home-line", Static).content)
        assert line.endswith("/with/its/end · Watched, no job runs. Enter returns to it.")


def test_only_disks_that_are_there_are_measured() -> None:
    asked: list[Collection[str] | None] = []

    def loads(names: Collection[str] | None) -> dict[str, DiskRates]:
        asked.append(names)
        return {"sda": LOAD, "loop7": LOAD}

    memory = HomeMemory()
    memory.measure(loads, 1.0)
    memory.devices = {**fakes.DEVICES, "loop7": replace(fakes.ODD, name="loop7", size=0)}
    memory.measure(loads, 2.0)
    assert asked == [None, [*fakes.DEVICES]] and memory.activity.keys() == fakes.DEVICES.keys()
    assert memory.activity["sda"].rates == LOAD
    memory.devices = {}
    memory.measure(loads, 3.0)
    assert memory.activity["nvme0n1"].rates is None, "it is gone"


def test_the_last_minute_shows_its_worst_seconds() -> None:
    activity = Activity()
    # nothing is known of the time before the first second
    assert activity.sparkline(10) == " " * 10
    activity.add(changed(LOAD, util=0.0), 1.0)
    assert activity.sparkline(10) == " " * 9 + "▁"
    activity.add(None, 2.0)
    assert activity.mean == 0.0
    for second in range(60):
        activity.add(changed(LOAD, util=100.0 if second == 59 else 0.0), 3.0 + second)
    assert activity.sparkline(10) == "▁" * 9 + "█" and activity.mean == pytest.approx(100 / 60)
    assert activity.sparkline(10, PLAIN_BARS).isascii()
    # nothing was read for half a minute, and then a reading came two seconds late
    activity.add(changed(LOAD, util=100.0), 93.0)
    assert activity.sparkline(60) == "▁" * 28 + "█" + " " * 30 + "█"
    activity.add(disk_of(3.0, util=50.0), 96.0)
    assert activity.sparkline(60).endswith(" █▅▅▅") and activity.mean == pytest.approx(350 / 30)


@pytest.mark.parametrize(("key", "screen"), [("r", "JobChooser"), ("w", "Dashboard")])
async def test_a_key_explains_what_can_be_done_with_the_disk(key: str, screen: str) -> None:
    async with make_picker(PickerCalls()).run_test(size=(120, 36)) as pilot:
        app = await open_picker(pilot)
        await pilot.press(key)
        await settle(pilot)
        assert type(app.screen).__name__ in (screen, "Live" + screen)
        assert app.controller is not None


async def test_a_click_on_a_title_sorts_and_a_click_on_an_action_runs_it() -> None:
    recorder = PickerCalls()
    async with make_picker(recorder).run_test(size=(120, 36)) as pilot:
        app = await open_picker(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        for order in (["nvme0n1", "sda"], ["sda", "nvme0n1"]):
            await pilot.click(DataTable, offset=(2, 0))
            await settle(pilot)
            assert names(app) == order
        at = str(app.screen.query_one("#home-keys", Static).content).split("\n")
        row = next(n for n, line in enumerate(at) if "Demo" in line)
        await pilot.click("#home-keys", offset=(at[row].index("Demo"), row))
        await settle(pilot)
    assert recorder.names == ["demo"]


async def test_keys_sort_by_a_column_and_reverse_the_order() -> None:
    async with make_picker(PickerCalls()).run_test(size=(120, 36)) as pilot:
        app = await open_picker(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        sorted_by = app.screen.query_one("#home-disks")
        assert "Sorted by need for attention, then name" in str(sorted_by.border_subtitle)
        await pilot.press("greater_than_sign")
        assert names(app) == ["nvme0n1", "sda"]
        assert "Sorted by NAME, A first" in str(sorted_by.border_subtitle)
        await pilot.press("R")
        assert names(app) == ["sda", "nvme0n1"]
        await pilot.press("less_than_sign", "less_than_sign")
        assert "Sorted by LAST 60 s, largest first" in str(sorted_by.border_subtitle)
        assert names(app) == ["sda", "nvme0n1"]
        await pilot.press("R")
        assert names(app) == ["nvme0n1", "sda"]


async def test_a_recent_recording_is_played_with_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    async with make_picker(recorder := PickerCalls()).run_test(size=(120, 36)) as pilot:
        app = await open_picker(pilot)
        await pilot.press("tab", "enter")
        await settle(pilot)
        assert "/srv/first.iops" in render_pictures(app)[".txt"] and not recorder.names, "is gone"
    monkeypatch.setattr("iopstui.ui.parts.target.playable", lambda path: None)
    async with make_picker(recorder).run_test(size=(120, 36)) as pilot:
        app = await open_picker(pilot)
        text = render_pictures(app)[".txt"]
        assert "/srv/first.iops" in text and "4 KiB" in text and "unreadable" in text
        await pilot.press("tab", "enter")
        await settle(pilot)
    assert recorder.names == ["/srv/first.iops"] and app.return_value == 0


async def test_low_terminals_show_the_disk_in_a_line_and_no_recordings() -> None:
    async with make_picker(PickerCalls()).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        text = render_pictures(app)[".txt"]
        assert ": not mounted · " in text, text
        assert "Recent" not in text


async def test_no_fact_of_a_disk_is_cut_off() -> None:
    facts = table(DISK, fakes.PART, SWAP)
    async with make_picker(PickerCalls(), facts).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        for size in ((80, 24), (100, 30), (120, 36), (250, 70)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            text = " ".join(render_pictures(app)[".txt"].split())
            assert ("in use, only jobs that read" if size == (80, 24)
                    else "Jobs only those that read") in text, text  # fmt: skip


async def test_the_answer_fits_a_terminal_that_got_narrower_below_a_dialog() -> None:
    async with make_picker(PickerCalls()).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        home = app.screen
        assert isinstance(home, HomeScreen)
        home._last_answer = Answer("sda", "busy", GOOD, "sda is in use: " + "word " * 20)
        await pilot.press("s")
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert app.screen is not home and sum(len(text) for text, _ in home._answer_row) == 80


def test_the_start_time_of_a_recording() -> None:
    assert start_text(None) == "–"
    now = time.mktime((2026, 3, 4, 12, 0, 0, 0, 0, -1))
    assert start_text(1000 * (now - 61), now) == "11:58:59"
    assert start_text(1000 * (now - 86400), now) == "2026-03-03"


async def test_a_recording_is_chosen_or_typed() -> None:
    recorder = PickerCalls()
    async with make_picker(recorder).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        await pilot.press("o")
        await settle(pilot)
        assert listed(app) == [*(str(one.path) for one in RECENT), "Another file ..."]
        await pilot.press(*"nowhere")
        assert listed(app) == ["Another file ..."], "no filter hides it"
        await pilot.press("enter", *"nowhere.iops", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Prompt) and not recorder.names, "there is no such file"
        await pilot.press("escape")
        await open_picker(pilot)
        await pilot.press("o", *"broken", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Prompt) and "broken.iops" in render_pictures(app)[".txt"]
    assert not recorder.names, "a file that can't be read ends no screen"


async def test_a_path_typed_over_the_list_of_recordings_is_no_filter() -> None:
    async with make_picker(PickerCalls()).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        for path in ("/a b", "./a", "../a", "~/a"):
            await pilot.press("o", *path)
            await settle(pilot)
            assert isinstance(app.screen, Prompt)
            assert app.screen.query_one(Input).value == path
            await pilot.press("escape")
            await settle(pilot)
            assert isinstance(app.screen, HomeScreen)


async def test_a_recording_below_the_home_directory_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.iops").write_bytes(recording_path("demo").read_bytes())
    recorder = PickerCalls()
    async with make_picker(recorder).run_test(size=(80, 24)) as pilot:
        await open_picker(pilot)
        await pilot.press("o", *"~/mine.iops", "enter")
        await settle(pilot)
    assert recorder.names == [str(tmp_path / "mine.iops")]


async def test_the_first_letter_replaces_the_offered_directory() -> None:
    async with make_picker(PickerCalls()).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        await pilot.press("s")
        await settle(pilot)
        field = app.screen.query_one(Input)
        assert field.value == "."
        await pilot.press(*"/srv")
        assert field.value == "/srv"
        await pilot.press("f1", "escape", "x")
        assert field.value == "/srvx", "the help selects nothing again"


async def test_the_help_begins_with_the_keys_of_this_screen() -> None:
    async with make_picker(PickerCalls()).run_test(size=(120, 50)) as pilot:
        app = await open_picker(pilot)
        await pilot.press("question_mark")
        await settle(pilot)
        text = screen_text(app)
        assert text.index("Keys of the home screen") < text.index("show partitions, or hide them")
        assert text.index("show partitions") < text.index("Keys of the dashboard")


async def test_a_filter_without_a_match_says_so() -> None:
    async with make_picker(PickerCalls()).run_test(size=(80, 24)) as pilot:
        app = await open_picker(pilot)
        await app.push_screen(Choice("block size", ("4k", "16k"), "4k", UTF8))
        await pilot.press("z", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Choice)
        assert listed(app) == ["Nothing matches."]


def listed(app: IopstuiApp) -> list[str]:
    options = app.screen.query_one(OptionList).options
    return [str(option.prompt) for option in options]


async def test_charts_of_the_selected_disk_use_the_remaining_rows() -> None:
    async with make_picker(PickerCalls()).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        for _ in range(3):
            app.screen._tick()  # type: ignore[attr-defined]
        await pilot.press("down")
        await settle(pilot)
        text = render_pictures(app)[".txt"]
        assert "IOPS of sda" in text and "Await of sda" in text and "reads    300" in text
        await pilot.press("up")
        await settle(pilot)
        assert "IOPS of nvme0n1" in render_pictures(app)[".txt"]
        await pilot.resize_terminal(160, 24)
        await settle(pilot)
        assert "IOPS of" not in render_pictures(app)[".txt"]


async def test_the_open_disk_has_one_row() -> None:
    async with make_picker(PickerCalls()).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("escape")
        await open_picker(pilot)
        assert names(app) == ["▸ nvme0n1", "sda"]
        text = render_pictures(app)[".txt"]
        assert "(open)" not in text and "Watched, no job runs (Enter returns to it)" in text
        await pilot.press("space")
        assert names(app) == ["● ▸ nvme0n1", "sda"], "it can be marked like any other"
        await pilot.press("space", "greater_than_sign", "R")
        await settle(pilot)
        assert names(app) == ["sda", "▸ nvme0n1"], "Z first"


async def test_charts_of_the_open_session_s_disk() -> None:
    async with make_picker(PickerCalls()).run_test(size=(160, 45)) as pilot:
        app = await open_picker(pilot)
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("escape")
        await open_picker(pilot)
        app.screen._tick()  # type: ignore[attr-defined]
        await settle(pilot)
        assert "IOPS of nvme0n1" in render_pictures(app)[".txt"]


async def test_without_disks_the_picker_explains_what_works() -> None:
    async with make_picker(PickerCalls(), {}).run_test(size=(120, 36)) as pilot:
        app = await open_picker(pilot)
        assert "No disk here. A job can still run in a directory" in render_pictures(app)[".txt"]
        await pilot.press("r")
        await settle(pilot)
        assert render_pictures(app)[".txt"].count("No disk here") == 2, "at the top, too"
        # a filter without a match has its own message
        await pilot.press("slash", "x")
        assert "No disk here" not in render_pictures(app)[".txt"]


async def test_dialogs_cover_the_home_screen_which_goes_on() -> None:
    async with make_picker(PickerCalls()).run_test(size=(120, 36)) as pilot:
        app = await open_picker(pilot)
        home = app.screen
        for key in ("o", "x"):
            await pilot.press(key)
            await settle(pilot)
            assert app.screen is not home and "─ Disks ─" in render_pictures(app)[".txt"]
            home._tick()  # type: ignore[attr-defined]
            await pilot.press("escape")
            await settle(pilot)
            assert app.screen is home
        home._tick()  # type: ignore[attr-defined]
        assert row_of(app)[0] == "300"


async def test_a_click_on_a_title_sorts_the_recordings_and_not_the_disks() -> None:
    async with make_picker(PickerCalls()).run_test(size=(120, 36)) as pilot:
        app = await open_picker(pilot)
        table = app.screen.query_one("#home-recordings", DataTable)

        def first() -> str:
            return str(table.get_row_at(0)[0])

        box = app.screen.query_one("#home-recent")
        assert first() == "/srv/first.iops" and "newest first" in str(box.border_subtitle)
        for name, order in (("broken", "A first"), ("first", "Z first")):
            await pilot.click(table, offset=(2, 0))
            await settle(pilot)
            assert first() == f"/srv/{name}.iops" and order in str(box.border_subtitle)
        assert "attention" in str(app.screen.query_one("#home-disks").border_subtitle)


HOG = DiskUse(
    1.0, 2.0, (DiskUser(812, "fio", "fio --name=hog", "bob", 4e6, 0.0, frozenset({"sda"})),),
    disks={"sda": (4e6, 0.0, 1.0), "nvme0n1": (0.0, 0.0, 0.0)}, as_root=True,
)  # fmt: skip


class FakeReader(DiskUseReader):
    def __init__(self, *readings: DiskUse | None) -> None:
        self.readings = [*readings]

    def read(self, t: float, devices: Mapping[str, BlockDevice], tasks: bool) -> DiskUse | None:
        assert not tasks
        return self.readings.pop(0)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_who_uses_the_selected_disk_is_shown(size: tuple[int, int]) -> None:
    reader, now = FakeReader(None, HOG), count(10, 3)
    app = make_picker(PickerCalls())
    app.targets._backend = replace(
        app.targets._backend, use=OccasionalUse(reader, lambda: float(next(now) // 4), lambda: 0.0)
    )
    async with app.run_test(size=size) as pilot:
        await open_picker(pilot)
        for _ in range(6):
            app.screen._tick()  # type: ignore[attr-defined]
            await finish_workers(app)
        await settle(pilot)
        assert not reader.readings
        assert "fio (812): 100 % of bytes" in screen_text(app), "the answer has it without a key"
        await pilot.press("down")
        assert "fio (812, bob) 100 % of its bytes" in " ".join(screen_text(app).split())
        assert "does all of its bytes" in app.screen.copied_text()  # type: ignore[attr-defined]


def test_users_of_a_disk_are_named_only_where_they_are_known() -> None:
    target = HomeAnswer().target(["sda"], fakes.DEVICES)
    assert users_text(target, None) == users_text(target, replace(HOG, disks={})) == ""
    nobody = replace(HOG, users=())
    assert users_text(target, nobody) == "no process that can be seen"
    assert "root sees" in users_text(target, replace(nobody, as_root=False))
    idle = HomeAnswer().target(["nvme0n1"], fakes.DEVICES)
    assert users_text(idle, HOG) == ""
    two = replace(HOG, users=(replace(HOG.users[0], read_s=2e6),
                              replace(HOG.users[0], pid=813, read_s=1e6)))  # fmt: skip
    assert "(812, bob)" in users_text(target, two) and "(813" in users_text(target, two)
    assert "(813" not in users_text(target, two, most=1)


def test_a_reading_over_a_time_in_which_nobody_looked_is_dropped() -> None:
    clock = [100.0]
    reader = FakeReader(None, HOG, HOG, HOG)
    use = OccasionalUse(reader, lambda: clock[0], lambda: 0.0)
    found = []
    for pause_s in (1.0, 5.0, 60.0, 1.0):
        assert use.is_due()
        found.append(use(clock[0], {}))
        assert not use.is_due()
        clock[0] += pause_s
    assert found == [None, HOG, HOG, None]


async def test_the_palette_has_what_the_home_screen_can_do_and_no_more() -> None:
    recorder = PickerCalls()
    app = make_picker(recorder)
    async with app.run_test(size=(120, 36)) as pilot:
        home = (await open_picker(pilot)).screen
        commands = {command.title: command.callback for command in app.get_system_commands(home)}
        assert {"Watch this disk", "Help", "Theme: light", "Quit"} <= commands.keys()
        assert "Stop the job" not in commands and "Block size" not in commands
        commands["Watch this disk"]()
        await settle(pilot)
        assert app.dashboard is not None
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
        over_a_session = {command.title for command in app.get_system_commands(app.screen)}
        assert over_a_session == commands.keys()


async def test_new_figures_are_painted_in_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    second = count(1)
    app = make_picker(
        PickerCalls(),
        loads=lambda names: {"sda": disk(100.0 * next(second), size=10486, util=90.0)},
    )
    async with app.run_test(size=(160, 45)) as pilot:
        home = (await open_picker(pilot)).screen
        assert isinstance(home, HomeScreen)
        # the list is sorted after the first second
        home._tick()
        await settle(pilot)
        layouts: list[object] = []
        monkeypatch.setattr(HomeScreen, "_refresh_layout", lambda *given, **more: layouts.append(1))
        answers, figures = set(), set()
        for _ in range(3):
            home._tick()
            await settle(pilot)
            answers.add(home._answer_row)
            figures.add(tuple(row_of(app)))
        assert len(answers) == len(figures) == 3
        assert not layouts, "all widgets would be placed and drawn again"
        drawn: list[Region] = []
        monkeypatch.setattr(ListTable, "refresh", lambda self, *regions, **_: drawn.extend(regions))
        home._tick()
        assert drawn and {region.height for region in drawn} == {1}, "only changed cells"
