"""Key y copies through the terminal (OSC 52); the end of a run and findings notify the terminal."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest
import ui_fakes as fakes
from test_app import do, make, running, settle, shows
from textual.widgets._toast import Toast

from iopstui.events import AnswerGiven, FindingReported
from iopstui.model.answer.answer import WARNING, Answer
from iopstui.model.block.device import BlockDevice, Mount
from iopstui.model.block.target import DEVICE, DIRECTORY, FILE, Target, combine_targets
from iopstui.model.findings.finding import Finding
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Appearance, Backend
from iopstui.ui.core.clipboard import place_and_time
from iopstui.ui.core.list_table import ListTable
from iopstui.ui.core.preferences import PREFERENCES
from iopstui.ui.draw.style import UTF8

FOUND = Finding("saturated", "iodepth 32 → 64: IOPS 65.2k → 69.7k", "go back to iodepth 32", "[")
BUSY = Answer(
    "nvme0n1", "queue", WARNING, "nvme0n1 is busy", "waits", "fio (965) does all of its bytes"
)


async def test_y_copies_the_answer_the_findings_and_the_run() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 5)
        fake.sink(AnswerGiven(5.0, BUSY))
        fake.sink(FindingReported(5.0, FOUND))
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        first, answer, found, run = app.clipboard.split("\n")
        assert first.startswith("host db1, 20") and " UTC, nvme0n1 (" in first
        assert "mixed-4k: randrw 4k iodepth 32 × 2 jobs, runs for " in first
        assert answer == "▲ nvme0n1 is busy · fio (965) does all of its bytes"
        assert "IOPS 65.2k → 69.7k" in found and found.endswith("go back to iodepth 32")
        assert run.startswith("run 1") and "IOPS" in run
        assert all(f", {name} " in run for name in ("mean", "p50", "p99", "p99.9"))
        assert shows(app, f"{len(app.clipboard)} characters copied, if this terminal allows it")


async def test_a_finding_that_is_the_answer_is_copied_once() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 5)
        fake.sink(AnswerGiven(5.0, replace(BUSY, rule="finding-saturated", text=FOUND.text)))
        fake.sink(FindingReported(5.0, FOUND))
        fake.finish()
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert app.clipboard.count("IOPS 65.2k → 69.7k") == 1
        head, answer, *_ = app.clipboard.split("\n")
        time = re.search(r", ended at (\d\d:\d\d:\d\d UTC)$", head)
        assert time is not None and f"Run 1 ended at {time[1]}: " in answer
        assert " ago" not in app.clipboard, "it is read later"


def test_the_first_line_names_the_disk_and_what_it_lies_on() -> None:
    loop = BlockDevice("loop2", "/dev/loop2", 7, 2, "loop", 1 << 26, backing_file="/srv/disk.img")
    target = Target(DEVICE, "/dev/loop2", "loop2", ("loop2", "vda1", "vda"))
    text = place_and_time("db1", 1.5e12, target, {"loop2": loop})
    assert text == (
        "host db1, 2017-07-14 02:40:00 UTC, loop2 (64 MiB, /srv/disk.img, on vda1, vda)"
    )
    scratch = Target(DIRECTORY, "/srv", "vda1", ("vda1", "vda"), fstype="ext4")
    text = place_and_time("db1", None, combine_targets([target, scratch]), {})
    assert text == (
        "host db1, loop2 (on vda1, vda) and scratch file in /srv (ext4, on vda1, on vda)"
    )
    ram = Target(FILE, "/dev/shm/x", None, no_device="tmpfs has no block device", fstype="tmpfs")
    assert "/dev/shm/x (tmpfs, tmpfs has no block device)" in place_and_time("a", 1e99, ram, {})


async def test_y_copies_the_page_and_the_row_under_the_cursor() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 5)
        fake.sink(FindingReported(5.0, FOUND))
        await pilot.press("f")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        first, answer, title, *rest = app.clipboard.split("\n")
        assert first.startswith("host db1, 20") and answer.startswith("● fio does ")
        assert (
            title == "Findings"
            and "IOPS 65.2k → 69.7k" in "".join(rest)
            and "Excluded" in app.clipboard
        )
        await pilot.press("escape", "v")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert app.clipboard.startswith("# 1, CHANGE ") and "\n" not in app.clipboard
        names = "IOPS", "mean", "p50", "p99", "p99.9", "aqu-sz"
        assert all(f", {name} " in app.clipboard for name in names)
        assert "p99.9" not in app.screen.query_one(ListTable).widths, "there is no room for it"
        # in a filter, y is a letter
        before = app.clipboard
        await pilot.press("slash", "y")
        await settle(pilot)
        assert app.clipboard == before


async def test_a_page_is_copied_below_the_answer_and_its_title() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 5)
        fake.sink(AnswerGiven(5.0, BUSY))
        await settle(pilot)
        await pilot.press("u")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        first, answer, title, *rest = app.clipboard.split("\n")
        assert first.startswith("host db1, 20") and answer == BUSY.sentence
        assert title == "Who › Processes" and "busiest first" in rest[0]


async def test_the_messages_are_copied_whole_or_those_that_the_filter_leaves() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot, 5)
        fake.finish(error=f"fio failed: {'very ' * 30}late")
        await settle(pilot)
        await do(pilot, "log")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        lines = app.clipboard.split("\n")
        assert lines[0].startswith("host db1, 20") and "Messages" in lines
        assert app.clipboard.count("very ") == 30 and "late" in app.clipboard
        await pilot.press("slash", *"nowhere")
        await settle(pilot)
        await do(pilot, "copy")
        await settle(pilot)
        assert "Messages" in app.clipboard and "very" not in app.clipboard


async def test_the_home_screen_copies_whole_names_however_narrow_it_is() -> None:
    model, mountpoint = "Sparrow SN 850 Enterprise Edition", "/srv/backups/of/everything/there/is"
    disk = replace(fakes.NVME, model=model, mounts=(Mount(mountpoint, "xfs"),))
    backend = Backend(fakes.FakeController, lambda: {disk.name: disk}, fakes.JOBS)
    app = IopstuiApp(backend, appearance=Appearance(UTF8))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settle(pilot)
        assert not shows(app, mountpoint)
        await pilot.press("y")
        await settle(pilot)
        first, row = app.clipboard.split("\n")
        assert first.startswith(f"host {os.uname().nodename}, 20") and first.endswith(" UTC")
        assert row.startswith(f"NAME nvme0n1, MODEL {model}, SIZE ")
        assert row.endswith(f"MOUNTED {mountpoint}"), "no titles without figures"
        # the message reaches the right edge, so no single letters of the rows below remain beside
        # it
        assert app.screen.query_one(Toast).region.right == app.size.width


@pytest.mark.parametrize("wanted", [False, True])
async def test_the_terminal_is_told_of_ends_and_findings_on_request(
    monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    monkeypatch.setattr(PREFERENCES, "notify", wanted)
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 5)
        written: list[str] = []
        assert app._driver is not None
        monkeypatch.setattr(app._driver, "write", written.append)
        for _ in range(2):  # a finding that is still true is reported again
            fake.sink(FindingReported(5.0, FOUND))
        fake.finish()
        await settle(pilot)
        told = [text for text in written if text.startswith("\x1b]9;")]
        assert [text.endswith("\a") for text in told] == [True, True] * wanted
        assert all("iopstui: " in text for text in told)
        assert not wanted or told[1] == "\x1b]9;iopstui: run 1 ended\a"
