"""The runs of a session on the screen: panel, list, base, and the message at a run's end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import ui_fakes as fakes
from test_app import do, make, running, screen_text, settle, shows
from textual.pilot import Pilot
from textual.widgets import DataTable

from iopstui.events import ExpectationChecked, StepFinished
from iopstui.model.block.target import DEVICE, FILE, Target
from iopstui.model.metrics import run_history
from iopstui.model.metrics.run_history import RunRow
from iopstui.session import run_rows
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.pace import Overhead
from iopstui.ui.dashboard import bars
from iopstui.ui.dashboard.panels import runs_panel
from iopstui.ui.dialogs.jobs import RunsList
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.start import runs_text
from iopstui.ui.state.live import NEXT_KEYS, LiveState

TITLE = "randrw 4k  QD {} × 2 jobs"


def restart(fake: fakes.FakeController, depth: int, seconds: int = 4) -> None:
    """Stop the run and start the next one, as ``]`` does."""
    fake.finish(interrupted=True)
    fake.mark(f"QD {depth}")
    fake.begin(TITLE.format(depth))
    fake.tick(seconds)


async def demonstration(
    app: IopstuiApp, pilot: Pilot[int], restarts: int = 3
) -> fakes.FakeController:
    fake = await running(app, pilot, 4)
    for n in range(restarts):
        restart(fake, 64 << n)
    await settle(pilot)
    return fake


def played(count: int, base: int | None = None) -> LiveState:
    """A state with some runs, the last one still running."""
    fake = fakes.FakeController(title=TITLE.format(1))
    live_state = LiveState(("nvme0n1",))
    fake.start(live_state.apply)
    for n in range(count):
        fake.run_job("mixed-4k", {})
        fake.tick(2)
        if n + 1 == base:
            fake.finish()
            live_state.runs.toggle_base()
        elif n + 1 < count:
            fake.finish(interrupted=True)
        fake.title = TITLE.format(n + 2)
    return live_state


def text(rows: object) -> list[str]:
    return ["".join(part for part, _ in row) for row in rows]  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [(200, 50), (250, 70), (160, 45)])
async def test_a_large_screen_shows_the_runs(size: tuple[int, int]) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        await demonstration(app, pilot)
        assert app.dashboard is not None
        lines = app.dashboard.panels["runs"].text().splitlines()
        assert len(lines) == runs_panel.HEIGHT and "what was changed" in lines[1]
        assert [line.split()[1] for line in lines[2:6]] == ["4", "3", "2", "1"]
        assert "iodepth 128 → 256" in lines[2] and "randrw 4k QD 32 × 2" in lines[5]
        if size[0] > 200:
            assert "runs now" in lines[2] and "stopped" in lines[5]


async def test_a_small_screen_has_a_tab_for_the_runs_that_costs_no_row() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await demonstration(app, pilot)
        assert app.dashboard is not None and not app.dashboard.panels["runs"].shown
        height = app.dashboard.charts[0].title.box.height
        await pilot.press("5")
        await settle(pilot)
        assert app.dashboard.panels["runs"].shown and shows(app, "iodepth 64 → 128")
        await pilot.press("1")
        await settle(pilot)
        assert app.dashboard.charts[0].title.box.height == height


async def test_a_click_on_a_title_of_the_list_sorts_it() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        await demonstration(app, pilot)
        await pilot.press("v")
        await settle(pilot)
        table = app.screen.query_one(DataTable)
        steps = lambda: [str(table.get_row_at(n)[1]) for n in range(table.row_count)]  # noqa: E731
        assert steps() == ["4", "3", "2", "1"]
        rows = screen_text(app).split("\n")
        y = next(y for y, row in enumerate(rows) if "CHANGE" in row)
        await pilot.click(offset=(rows[y].index(" # ") + 1, y))
        await settle(pilot)
        assert steps() == ["1", "2", "3", "4"] and "sorted by #" in app.screen.note  # type: ignore[attr-defined]
        await pilot.click(offset=(rows[y].index("MiB/s"), y))
        await settle(pilot)
        assert "sorted by MiB/s, largest first" in app.screen.note  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [80, 120])
async def test_the_list_gives_the_change_all_that_is_left(width: int) -> None:
    change = "iodepth 32 → 64, numjobs 4 → 8, bs 4k → 16k, rq_affinity 1 → 2, scheduler none → bfq"
    app = make()
    async with app.run_test(size=(width, 24)) as pilot:
        fake = await running(app, pilot, 2)
        fake.finish(interrupted=True)
        fake.begin(change)
        fake.tick(2)
        await pilot.press("v")
        await settle(pilot)
        table = app.screen.query_one(DataTable)
        assert isinstance(app.screen, RunsList) and not table.show_horizontal_scrollbar
        assert table.virtual_size.width > table.size.width - 3


async def test_v_lists_all_runs_live() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await demonstration(app, pilot)
        await pilot.press("v")
        await settle(pilot)
        assert isinstance(app.screen, RunsList) and shows(app, "BEFORE")
        before = screen_text(app)
        assert before.index("iodepth 128 → 256") < before.index("iodepth 32 → 64")
        restart(fake, 512)
        await settle(pilot)
        assert shows(app, "iodepth 256 → 512")
        await pilot.press("v")
        await settle(pilot)
        assert app.screen is app.dashboard


async def test_an_empty_list_says_what_to_press() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("v")
        await settle(pilot)
        assert shows(app, "no run yet: Esc, then r runs a job")


async def test_no_column_of_the_list_is_cut_on_a_narrow_terminal() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await demonstration(app, pilot, 4)
        await pilot.press("v", "down")
        await settle(pilot)
        row = next(row for row in screen_text(app).split("\n") if "iodepth 64 → 128" in row)
        assert "ms" in row.rstrip("│ ")[-4:] or "µs" in row.rstrip("│ ")[-4:]
        table = app.screen.query_one(DataTable)
        assert table.virtual_size.width <= table.size.width and table.cursor_row == 1
        await pilot.resize_terminal(160, 45)
        await settle(pilot)
        assert shows(app, "UTIL %") and table.cursor_row == 1
        assert table.virtual_size.width <= table.size.width


async def test_shift_v_chooses_the_base_and_clears_it() -> None:
    app = make()
    async with app.run_test(size=(200, 50)) as pilot:
        await running(app, pilot, 0)
        await do(pilot, "base")
        await settle(pilot)
        assert shows(app, "no finished run yet")
        fake = app.controller
        assert isinstance(fake, fakes.FakeController)
        fake.tick(3)
        restart(fake, 64)
        await settle(pilot)
        await do(pilot, "base")
        await settle(pilot)
        assert app.state.runs.base == 1 and shows(app, "run 1 is the base")
        assert app.dashboard is not None
        first = app.dashboard.panels["runs"].text().splitlines()[3]
        assert first.split()[1] == "1" and "base" in first
        await do(pilot, "base")
        await settle(pilot)
        assert app.state.runs.base is None and shows(app, "no base run")


def test_the_base_stays_visible() -> None:
    lines = text(runs_panel.rows(played(12, base=2), 120, 8, UTF8, "j"))
    assert [line.split()[0] for line in lines[2:]] == ["12", "11", "10", "9", "8", "2"]
    assert "v: all 12" in lines[0] and "base" in lines[-1]


@pytest.mark.parametrize("width", [60, 80, 118, 160, 250])
@pytest.mark.parametrize("charset", [UTF8, ASCII])
def test_columns_depend_on_the_width_and_on_a_base(width: int, charset: Charset) -> None:
    heads = []
    for live_state in (played(1), played(3), played(12, base=2)):
        lines = text(runs_panel.rows(live_state, width, 8, charset, "j"))
        assert [len(line) for line in lines] == [width] * 8
        heads.append(lines[1])
        if charset is ASCII:
            assert all(line.isascii() for line in lines)
    first, second, with_base = heads
    assert first == second and "base" not in first, "no column without a figure"
    assert {"IOPS", "before", "p99"} <= set(first.split())
    assert {"IOPS", "before", "base", "p99"} <= set(with_base.split())


def test_without_a_run_the_panel_explains_how_to_start_one() -> None:
    lines = text(runs_panel.rows(LiveState(), 120, 8, UTF8, "mixed-4k"))
    assert "none yet: r runs mixed-4k" in lines[1] and len(lines) == 8


def test_a_replay_before_its_first_run_does_not_say_that_it_has_none() -> None:
    lines = text(runs_panel.rows(LiveState(), 120, 8, UTF8, ""))
    assert lines[1].split() == ["none", "so", "far"]


def test_the_end_of_a_run_shows_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_rows, "COMPARED_S", 1.0)
    live_state = played(2)
    live_state.apply(StepFinished(9.0, 2, 0, "", False))
    line = "".join(part for part, _ in bars.message_line(live_state, None, None, 160, UTF8))
    assert "run 2: 4" in line and " IOPS, " in line and " MiB/s, p99 " in line
    assert "% to run 1" in line and NEXT_KEYS in line
    narrow = "".join(part for part, _ in bars.message_line(live_state, None, None, 80, UTF8))
    assert "% to run 1" in narrow and "r runs" not in narrow, "whole words, or none"


def test_errors_and_outcomes_come_first() -> None:
    live_state = played(1)
    live_state.apply(StepFinished(9.0, 1, 1, "fio failed", False))
    assert live_state.log.notice is not None and live_state.log.notice.text == "fio failed"
    assert live_state.runs.rows[0].ended == "failed"
    live_state = played(1)
    live_state.apply(StepFinished(9.0, 1, 0, "", False))
    live_state.apply(
        ExpectationChecked(9.0, 1, "iops>=1", "fio.total.iops", "1/s", ">=", 1, 1, 5.0, True, 1.0)
    )
    assert live_state.log.notice is not None and live_state.log.notice.level == "PASS"


def test_the_list_of_runs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_history, "MAX_RUNS", 20)
    live_state = LiveState(("nvme0n1",))
    fake = fakes.FakeController()
    fake.start(live_state.apply)
    for _ in range(25):
        fake.run_job("mixed-4k", {})
        fake.tick(1)
        fake.finish()
    assert len(live_state.runs.rows) == 20 and live_state.runs.rows[0].step == 6


SCENES = {
    "80x24-tab": ((80, 24), ("5",)),
    "120x36-list": ((120, 36), ("v",)),
    "200x50-base": ((200, 50), ()),
}


@pytest.mark.parametrize("name", SCENES)
def test_looks(name: str, snap_compare: Callable[..., bool]) -> None:
    size, keys = SCENES[name]
    app = make()

    async def before(pilot: Pilot[int]) -> None:
        await demonstration(app, pilot, 5)
        if name != "80x24-tab":
            await do(pilot, "base")
        await pilot.press(*keys)
        await settle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)


def test_the_end_of_a_run_may_use_the_whole_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_rows, "COMPARED_S", 1.0)
    live_state = played(2)
    live_state.apply(StepFinished(9.0, 2, 0, "", True))
    (row,) = bars.message_rows(live_state, None, Overhead(1.0), 80, 0, UTF8)
    line = "".join(p for p, _ in row)
    assert line.rstrip().endswith("p99 569 µs, +3.0 % to run… f: all") and "CPU" not in line
    wide = "".join(p for p, _ in bars.message_line(live_state, None, Overhead(1.0), 200, UTF8))
    assert NEXT_KEYS in wide and "CPU" in wide
    live_state.request_run()
    assert NEXT_KEYS not in "".join(
        p for p, _ in bars.message_line(live_state, None, None, 200, UTF8)
    )


DISK = Target(DEVICE, "/dev/vda", "vda", ("vda",))


def rows_of(count: int) -> list[RunRow]:
    return [RunRow(n + 1, "j", f"title {n + 1}", None, iops=1000.0) for n in range(count)]


def test_the_table_of_runs_stays_in_the_terminal() -> None:
    target = Target(FILE, "/" + "x" * 90, None, ())
    lines = runs_text([(target, rows_of(3)), (DISK, rows_of(18))]).splitlines()
    assert max(map(len, lines)) == 80
    assert ", the last 2 of 3 runs:" in lines[0] and "title 2" in lines[2]
    assert lines[5] == "runs on vda:" and lines[7].split()[:3] == ["1", "title", "1"]
    assert sum("title" in line for line in lines) == 20
    assert runs_text([]) == "" == runs_text([(DISK, [])])
    assert "the last 20 of 21 runs" in runs_text([(target, rows_of(3)), (DISK, rows_of(21))])


async def test_messages_of_a_closing_session_are_in_its_runs() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 3)
        fake.finish(interrupted=True)
        fake.begin(TITLE.format(64))
        fake.tick(2)
        fake.finish(interrupted=True)
        ((target, rows, *_),) = app.session_runs
    assert target == fake.target
    assert [(row.step, row.ended) for row in rows] == [(1, "stopped"), (2, "stopped")]
