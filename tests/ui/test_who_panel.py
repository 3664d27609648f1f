"""The panel of the programs that use the target's disks, while fio has no figures yet."""

from __future__ import annotations

from dataclasses import replace

import pytest
import ui_fakes as fakes
from hypothesis import given
from hypothesis import strategies as st
from test_app import make, running, settle, shows
from watch_frames import rates as disk_rates

from iopstui.events import AnswerGiven
from iopstui.linux.process.process_io import ProcessIo, ProcessRates
from iopstui.model.answer.answer import GOOD, Answer
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.model.answer.who import (
    SAME_PART,
    Share,
    combined_shares,
    programs,
    shares,
    who_rows,
    who_text,
)
from iopstui.model.block.target import DEVICE, DeviceLinks, Target
from iopstui.model.metrics.probe import LATENCY, PROCESSES, ProbeInterval, TaskIo
from iopstui.ui.dashboard.panels import who_panel
from iopstui.ui.draw.rows import cells
from iopstui.ui.draw.style import ASCII, UTF8
from iopstui.ui.home.rows import users_text

MIB = 1 << 20
NVME, SDA = frozenset({"nvme0n1"}), frozenset({"sda"})
HOG = DiskUser(965, "fio", "fio --name=hog", "root", 64.0 * MIB, 0.0, NVME, "db.service")
BACKUP = DiskUser(1204, "tar", "tar -cf /b.tar", "amanda", 0.0, 22.0 * MIB, NVME)
OTHER_DISK = DiskUser(7, "dd", "dd if=/dev/sda", "root", 500.0 * MIB, 0.0, SDA)
USE = DiskUse(
    9.0, 1.0, (OTHER_DISK, HOG, BACKUP), as_root=True,
    disks={"nvme0n1": (64.0 * MIB, 36.0 * MIB, 1.0), "sda": (500.0 * MIB, 0.0, 1.0)},
)  # fmt: skip
PROBE = ProbeInterval(1.0, 0.0, (LATENCY, PROCESSES), {}, {}, (), None, None, 0, 0, 0,
                      None, None)  # fmt: skip
TARGET = Target(DEVICE, "/dev/nvme0n1", "nvme0n1", ("nvme0n1",))


def panel(use: DiskUse, width: int = 100, height: int = 8) -> list[str]:
    rows = who_panel.rows(use, TARGET, width, height, UTF8, "mixed-4k")
    assert len(rows) == height
    assert all(sum(cells(text) for text, _ in row) == width for row in rows)
    return ["".join(text for text, _ in row) for row in rows]


def test_users_of_this_disk_are_listed_with_their_shares() -> None:
    lines = panel(USE)
    assert "Who uses nvme0n1" in lines[0]
    assert "64 %" in lines[2] and "fio --name=hog" in lines[2] and lines[2].rstrip()[-4:] == "64.0"
    assert "22 %" in lines[3] and "amanda" in lines[3] and "tar -cf" in lines[3]
    assert "14 %  by nobody that can be named" in lines[4]
    assert not any("dd if=" in line for line in lines), "it has only another disk open"
    assert lines[-1].split("·")[0].strip() == "u all processes"
    replayed = who_panel.rows(USE, TARGET, 100, 8, UTF8, "", is_live=False)
    assert not any("u all" in text for text, _ in replayed[-1]), "it has no such page"
    reaped = replace(USE, users=(replace(HOG, command="bash -c " + "x" * 80, children=True),))
    assert "xxx" in (line := panel(reaped)[2]) and " + children" in line


def test_wide_characters_push_no_figure_out() -> None:
    wide = replace(HOG, command="fio --name=" + "数据库" * 30, group="容器" * 20)
    for width in (80, 100, 140):
        assert "64.0" in panel(replace(USE, users=(wide,)), width)[2].split()


def test_an_ordinary_user_reads_what_is_hidden() -> None:
    rest = panel(replace(USE, as_root=False, hidden=137))[4]
    assert "by nobody that can be named (other users, the kernel, ended processes)" in rest
    lines = panel(DiskUse(9.0, 8.2, (), hidden=137, disks=USE.disks), 60)
    text = " ".join(" ".join(lines).split())
    assert "has files open there and did I/O in 8 s (last reading)" in text
    assert "137 processes of others hidden" in lines[-1]


def test_what_nobody_can_read_is_told_only_where_a_user_is_missing() -> None:
    closed = replace(USE, hidden=1)
    lines = panel(closed)
    assert "(1 process closed even to root, the kernel, ended processes)" in lines[4]
    assert "to root" not in " ".join([*lines[:4], *lines[5:]])
    known = replace(closed, disks={"nvme0n1": (64.0 * MIB, 22.0 * MIB, 1.0)})
    for use in (known, replace(known, hidden=137, as_root=False)):
        assert "hidden" not in (text := " ".join(panel(use))) and "process that" not in text
    idle = replace(known, users=(), disks={"nvme0n1": (0.0, 0.0, 0.0)}, as_root=False)
    assert "hidden" not in " ".join(panel(idle)), "nobody did anything"


def test_a_long_command_uses_the_row() -> None:
    long = replace(USE, users=(replace(HOG, command="fio " + "--option=value " * 7 + "--end"),))
    assert "--end" in panel(long, 200)[2] and "--end" not in long.users[0].name


def test_a_quiet_disk_is_used_by_nobody() -> None:
    stacked = Target(DEVICE, "/dev/loop0", "loop0", ("loop0", "sda"))
    quiet = replace(USE, users=(), disks={"loop0": (0.0, 0.0, 0.0), "sda": (5e6, 0.0, 0.0)})
    rows = who_panel.rows(quiet, stacked, 100, 8, UTF8, "")
    assert any("Nobody read or wrote" in text for row in rows for text, _ in row), "sda is below it"
    lines = panel(DiskUse(9.0, 1.0, (), as_root=True, disks={"nvme0n1": (0.0, 0.0, 0.0)}))
    assert "Nobody read or wrote in 1 s (last reading)." in " ".join(lines)


def test_the_container_stands_where_there_is_room() -> None:
    assert "db.service" in " ".join(panel(USE, 140)) and "db.service" not in " ".join(panel(USE))


def test_the_latencies_of_their_own_requests_are_shown() -> None:
    def line(ios: int, width: int = 140) -> str:
        task = TaskIo(965, "fio", "", "nvme0n1", 1, 1, 0, 1, 0, 0, {500_000: ios, 9_000_000: ios})
        probe = replace(PROBE, tasks=(replace(task, pid=7, bins={1: 1000}), task))
        rows = who_panel.rows(USE, TARGET, width, 8, UTF8, "", probe)
        assert all(sum(cells(text) for text, _ in row) == width for row in rows)
        return "".join(text for text, _ in rows[2])

    assert line(100).split()[-5:] == ["64.0", "500", "µs", "9.00", "ms"]
    assert line(20).split()[-4:] == ["64.0", "500", "µs", "–"], "99 % of 40 is no percentile"
    assert line(2).split()[-1] == "64.0"
    assert line(100, 90).split()[-1] == "64.0"


def test_a_dash_is_explained() -> None:
    task = TaskIo(965, "fio", "", "nvme0n1", 1, 1, 0, 1, 0, 0, {500_000: 20})
    for ios, explained in ((20, True), (1000, False)):
        probe = replace(PROBE, tasks=(replace(task, bins={500_000: ios}),))
        use = replace(USE, users=(HOG,))
        rows = who_panel.rows(use, TARGET, 116, 8, UTF8, "mixed-4k", probe)
        foot = "".join(text for text, _ in rows[-1])
        assert ("–: too few requests of its own" in foot) is explained
        assert "r runs mixed-4k" in foot


def test_a_dash_beside_a_loop_device_s_user_names_who_sends_its_requests() -> None:
    """The requests on the disk below are those of kernel threads."""
    disks = {"nvme0n1": (64.0 * MIB, 0.0, 1.0), "loop3": (64.0 * MIB, 0.0, 1.0)}
    user = replace(HOG, devices=frozenset({"loop3", "nvme0n1"}))
    direct = DiskUser(8, "dd", "dd", "root", 20.0 * MIB, 0.0, NVME)
    use = replace(USE, users=(user, direct), links=(DeviceLinks("loop3", ("nvme0n1",)),),
                  disks=disks | {"nvme0n1": (84.0 * MIB, 0.0, 1.0)})  # fmt: skip
    task = TaskIo(8, "dd", "", "nvme0n1", 1, 1, 0, 1, 0, 0, {500_000: 1000})
    rows = who_panel.rows(use, TARGET, 116, 8, UTF8, "", replace(PROBE, tasks=(task,)))
    lines = ["".join(text for text, _ in row) for row in rows]
    assert "through loop3" in lines[2] and lines[2].split()[-2:] == ["–", "–"]
    assert "–: sent by the kernel's threads of loop3" in lines[-1]


async def test_the_page_begins_with_this_disk_s_processes_and_a_key_shows_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everywhere = [ProcessRates(7, "dd", 500.0 * MIB, 0.0), ProcessRates(965, "fio", 64.0 * MIB, 0)]
    monkeypatch.setattr(ProcessIo, "rates", lambda self: everywhere)
    app = make(fakes.FakeController(disk_use=USE))
    async with app.run_test(size=(80, 24)) as pilot:
        app.fake.tick(3)  # type: ignore[attr-defined]
        await settle(pilot)
        await pilot.press("u")
        await settle(pilot)
        assert shows(app, "Who uses nvme0n1, in 1 s") and shows(app, "fio --name=hog")
        assert shows(app, "64 %") and shows(app, "14 % by nobody") and not shows(app, "dd if=")
        assert shows(app, "a All disks") and shows(app, "Esc Close")
        await pilot.press("greater_than_sign", "greater_than_sign")
        assert shows(app, "sorted by pid")
        await pilot.press("a")
        assert (
            shows(app, "all disks together") and shows(app, "500") and shows(app, "busiest first")
        )
        await pilot.press("a", "slash", *"tar")
        assert shows(app, "Who uses nvme0n1") and shows(app, "tar -cf") and not shows(app, "--name")
        await pilot.press(*"x")
        assert shows(app, "no process matches 'tarx'")


def test_a_long_command_is_cut_only_where_its_column_ends() -> None:
    command = "fio --name=db --directory=/srv/data --size=64m --rw=randrw --bs=4k --iodepth=4"
    use = replace(USE, users=(replace(HOG, command=command),))
    assert command in panel(use, 129)[2]
    assert f"{command[:17]}…" in panel(use, 64)[2]
    assert combined_shares({"nvme0n1": ["nvme0n1"]}, use)[0].name == f"{command[:47]}… (965)"


def test_a_narrow_panel_leaves_out_whole_parts() -> None:
    """On 80 columns the border has three columns less than the rows in it."""
    lines = panel(replace(USE, as_root=False, hidden=1), 68)
    assert lines[4].strip() == "14 %  by nobody that can be named"
    assert lines[-1].strip() == "1 process of others hidden (root sees them) · u all processes"


def test_a_mirror_s_writes_count_once() -> None:
    links = DeviceLinks("md0", ("sda", "sdb"), "raid1"), DeviceLinks("sda"), DeviceLinks("sdb")
    mirror = Target(DEVICE, "/dev/md0", "md0", ("md0", "sda", "sdb"), links=links)
    user = DiskUser(7, "cp", "", "root", 0.0, 20.0 * MIB, frozenset({"md0", "sda", "sdb"}))
    moved = (0.0, 20.0 * MIB, 1.0)
    use = DiskUse(9.0, 1.0, (user,), as_root=True, disks={"sda": moved, "sdb": moved})
    rates = disk_rates(writes=5120, seconds=1.0)
    second = dict.fromkeys(("md0", "sda", "sdb"), rates)
    assert who_panel.value(use, who_panel.shares_of(use, mirror, [second, second]))[0][0] == "100 %"


@given(st.integers(60, 200), st.integers(3, 20))
def test_it_fits_every_size(width: int, height: int) -> None:
    panel(USE, width, height)
    who_panel.rows(USE, TARGET, width, height, ASCII, "")


RATES = st.floats(0, 1e9)


@given(st.lists(st.tuples(RATES, RATES, st.sets(st.sampled_from("ab"))), max_size=5),
       st.tuples(RATES, RATES), st.tuples(RATES, RATES))  # fmt: skip
def test_no_share_exceeds_what_the_disks_did(
    users: list[tuple[float, float, set[str]]], a: tuple[float, float], b: tuple[float, float]
) -> None:
    read = tuple(
        DiskUser(pid, "x", "", "", read_s, write_s, frozenset(disks))
        for pid, (read_s, write_s, disks) in enumerate(users, 1)
    )
    use = DiskUse(1.0, 1.0, read, disks={"a": (*a, 0.0), "b": (*b, 0.0)})
    found = combined_shares({"a": ("a",), "b": ("b",)}, use)
    assert sum(one.share for one in found) <= 1.000001
    assert sum(one.bytes_s for one in found) <= 1.000001 * (sum(a) + sum(b))


@given(st.lists(st.tuples(st.floats(0, 1e8), st.floats(0, 1e8)), min_size=1, max_size=5))
def test_nobody_is_given_more_than_it_did_on_the_disk(users: list[tuple[float, float]]) -> None:
    """A program's other writes went to the page cache, or to a disk that was not watched."""
    seen = tuple(
        DiskUser(pid, "x", "", "", 0.0, on_disk + elsewhere, frozenset("a"))
        for pid, (on_disk, elsewhere) in enumerate(users, 1)
    )
    moved = sum(on_disk for on_disk, _ in users)
    use = DiskUse(1.0, 1.0, seen, disks={"a": (0.0, moved, 0.0)})
    for one in combined_shares({"a": ("a",)}, use):
        on_disk, elsewhere = users[(one.pid or 0) - 1]
        assert one.bytes_s <= on_disk + 1e-3
        most = min(on_disk + elsewhere, moved)
        assert one.at_least or one.bytes_s >= most - SAME_PART * moved - 1e-3


def test_a_share_is_told_in_the_same_words_everywhere() -> None:
    """A process and a disk are not read at the same moment, so their bytes differ a little."""

    def told(read_s: float, others_s: float) -> tuple[str, str, str]:
        user = DiskUser(9, "fio", read_s=read_s, devices=frozenset({"vda", "vdb"}))
        disks = {"vda": (100.0, 0.0, 1.0), "vdb": (others_s, 0.0, 1.0)}
        use = DiskUse(5.0, 1.0, (user,), disks=disks)
        found = shares("vda", {"vda"}, use)
        (row,) = who_rows(found, ("vda",), ())
        target = Target(DEVICE, "/dev/vda", "vda", ("vda",))
        return who_text(found, None, "vda"), row, users_text(target, use)

    for read_s, others_s, part in ((99.0, 0.0, "99 %"), (100.4, 1.4, "99 %"),
                                   (99.0, 10.0, "at least 89 %")):  # fmt: skip
        sentence, row, home = told(read_s, others_s)
        assert sentence == f"fio (9) does {part} of its bytes"
        assert row == f"fio (9) {part}" and home == f"fio (9) {part} of its bytes"


def test_of_long_requests_a_share_is_a_bound_at_home_and_in_the_answer() -> None:
    user = DiskUser(9, "fio", read_s=80.0, devices=frozenset({"vda"}))
    use = DiskUse(1.0, 1.0, (user,), disks={"vda": (100.0, 0.0, 1.0)})
    target = Target(DEVICE, "/dev/vda", "vda", ("vda",))
    for ms, part in ((1, "80 %"), (900, "at least 80 %")):
        seconds = [{"vda": disk_rates(100, 0, ms)}]
        assert users_text(target, use, seconds) == f"fio (9) {part} of its bytes"
        assert f"does {part} of its bytes" in who_panel.sentence(use, target, seconds)


def test_little_that_many_processes_may_have_done_more_is_a_bound_of_their_program() -> None:
    many = [Share(f"dd ({pid})", 0.1, 10.0, pid, "dd", may_be_more=0.01) for pid in range(1, 8)]
    assert not any(one.at_least for one in many)
    assert programs(many)[0].percent_text == "at least 70 %"


async def test_fio_s_figures_take_its_place_with_the_first_job() -> None:
    app = make(fakes.FakeController(disk_use=USE))
    async with app.run_test(size=(120, 36)) as pilot:
        fake: fakes.FakeController = app.fake  # type: ignore[attr-defined]
        fake.tick(2)
        await settle(pilot)
        assert shows(app, "Who uses nvme0n1") and shows(app, "fio --name=hog")
        for who in ("", "fio --name=hog (965) does all of its bytes"):
            fake.sink(
                AnswerGiven(2.0, Answer("nvme0n1", "cpu", GOOD, "The CPUs are full", who=who))
            )
            await settle(pilot)
            await pilot.press("y")
            assert app.clipboard.count("fio --name=hog") == 1, "in the panel or in the answer"
        fake.disk_use = None
        await running(app, pilot)
        assert shows(app, "3 fio") and not shows(app, "Who uses")


async def test_zoomed_it_takes_the_rows_that_the_device_leaves() -> None:
    users = tuple(
        replace(HOG, pid=pid, command=f"hog-{pid}", read_s=4.0 * MIB, write_s=2.0 * MIB)
        for pid in range(1, 13)
    )
    app = make(fakes.FakeController(disk_use=replace(USE, users=users)))
    async with app.run_test(size=(120, 36)) as pilot:
        fake: fakes.FakeController = app.fake  # type: ignore[attr-defined]
        fake.tick(2)
        await settle(pilot)
        assert not shows(app, "hog-12")
        await pilot.press("3")
        await settle(pilot)
        assert shows(app, "hog-12") and shows(app, "Device (iostat)")


async def test_on_a_small_terminal_the_tab_and_the_key_lead_to_who_it_is() -> None:
    app = make(fakes.FakeController(disk_use=USE))
    async with app.run_test(size=(80, 24)) as pilot:
        app.fake.tick(2)  # type: ignore[attr-defined]
        await settle(pilot)
        assert shows(app, "3 Who, numbers") and shows(app, "u Who")
        await pilot.press("u")
        await settle(pilot)
        assert shows(app, "Who uses nvme0n1, in 1 s")
        await pilot.press("a")
        assert shows(app, "nvme0n1: fio --name=hog (965) does 64 % of its bytes (in 1 s)")
        await pilot.press("escape")
        await settle(pilot)
        await pilot.click(offset=(35, 4))  # the last word is clickable as far as it is drawn
        await settle(pilot)
        assert shows(app, "[ 3 Who, numbers ]") and shows(app, "Who uses nvme0n1")
        await running(app, pilot)
        assert shows(app, "3 Numbers") and not shows(app, "3 Who")


def test_only_who_does_half_of_it_is_named_in_a_sentence() -> None:
    assert who_panel.sentence(None, TARGET) == ""
    assert who_panel.sentence(replace(USE, users=(BACKUP,)), TARGET) == ""


def test_a_row_that_no_unknown_rest_needs_shows_one_more_user() -> None:
    small = [replace(HOG, pid=n, read_s=25.0 * MIB) for n in range(4)]
    use = DiskUse(9.0, 1.0, tuple(small), as_root=True,
                  disks={"nvme0n1": (100.0 * MIB, 0.0, 1.0)})  # fmt: skip
    lines = panel(use, height=7)
    assert sum("fio --name=hog" in line for line in lines) == 4
    known = panel(replace(use, disks={"nvme0n1": (200.0 * MIB, 0.0, 1.0)}), height=7)
    assert sum("fio --name=hog" in line for line in known) == 3
    assert "by nobody that can be named" in known[-2]
