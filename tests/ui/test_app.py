from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import ui_fakes as fakes
from rich.text import Text
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, OptionList, Static
from textual.worker import WorkerCancelled

from iopstui.errors import UsageError
from iopstui.events import AnswerGiven
from iopstui.model.answer.answer import WARNING, Answer
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.model.findings.evidence import ENOUGH_SECONDS
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Appearance, Backend, FirstView
from iopstui.ui.core.clipboard import render_pictures
from iopstui.ui.core.modal import Modal
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.dialogs.jobs import JobChooser
from iopstui.ui.dialogs.questions import Choice, Confirm, Prompt
from iopstui.ui.dialogs.text import TextScreen
from iopstui.ui.draw.canvas import Lines
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.home.beside import BesideScreen, DiskNow
from iopstui.ui.home.screen import HomeScreen

WIDE = (160, 45)


def make(
    controller: fakes.FakeController | None = None,
    target: str | None = "/dev/nvme0n1",
    job: str | None = None,
    overrides: Mapping[str, str] | None = None,
    charset: Charset = UTF8,
    theme: str = "dark",
) -> IopstuiApp:
    fake = controller or fakes.FakeController()

    def discover() -> Mapping[str, BlockDevice]:
        return fakes.DEVICES

    app = IopstuiApp(
        Backend(lambda path: fake, discover, fakes.JOBS),
        FirstView(
            [target] if target else [],
            job or fakes.FIRST_JOB,
            overrides or {},
            run_at_once=job is not None,
        ),
        Appearance(charset, theme),
    )
    app.fake = fake  # type: ignore[attr-defined]
    return app


def screen_text(app: IopstuiApp) -> str:
    """The text of the dashboard, or of the screen on top of it."""
    canvas = getattr(app.screen, "canvas", None)
    if isinstance(app.screen, Modal) or canvas is None:
        return render_pictures(app)[".txt"]
    width, height = app.size
    grid = [[" "] * width for _ in range(height)]
    for widget in canvas.lines:
        box = widget.box
        if not widget.shown:
            continue
        for y, line in enumerate(widget.text().split("\n")[: box.height]):
            for x, char in enumerate(line[: box.width]):
                grid[box.y + y][box.x + x] = char
    return "\n".join("".join(row) for row in grid)


def words(app: IopstuiApp) -> str:
    """The text without line ends; ``shows`` paints it again for each question."""
    return " ".join(screen_text(app).split())


def shows(app: IopstuiApp, text: str) -> bool:
    return text in words(app)


async def settle(pilot: Pilot[int]) -> None:
    for _ in range(3):
        await pilot.pause()


async def wait_until(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    """Wait for the effects of a thread, a timer or a process. Fails after far more time than they
    need."""
    for _ in range(3000):
        await settle(pilot)
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError(screen_text(pilot.app))  # type: ignore[arg-type]


async def finish_workers(app: App[int]) -> None:
    """Wait until all background work is done, including work that later work replaced."""
    while app.workers:
        with contextlib.suppress(WorkerCancelled):
            await app.workers.wait_for_complete()
        await asyncio.sleep(0)


async def do(pilot: Pilot[int], action: str, number: int = 0) -> None:
    """Do an action of the palette, which has no key."""
    await pilot.app.run_action(f"do({action!r}, {number})")


async def running(app: IopstuiApp, pilot: Pilot[int], seconds: int = 3) -> fakes.FakeController:
    fake: fakes.FakeController = app.fake  # type: ignore[attr-defined]
    await settle(pilot)
    await pilot.press("r")
    fake.tick(seconds)
    await settle(pilot)
    return fake


async def test_from_the_picker_to_the_end() -> None:
    app = make(target=None)
    fake = app.fake  # type: ignore[attr-defined]
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await app.workers.wait_for_complete()
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
        table = app.screen.query_one(DataTable)
        assert table.row_count == 2, "partitions are hidden"
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard)
        fake.tick(2)
        await settle(pilot)
        assert shows(app, "no job: press r to run mixed-4k, j to choose")
        await pilot.press("r")
        fake.tick(3)
        await settle(pilot)
        assert ("run", "mixed-4k", {}) in fake.calls
        assert shows(app, "total") and shows(app, "r Stop")
        await pilot.press("r")
        await settle(pilot)
        assert ("stop",) in fake.calls and shows(app, "r Run")
        await pilot.press("j")
        await settle(pilot)
        assert isinstance(app.screen, JobChooser)
        await pilot.press("s", "e", "q", "enter")
        await settle(pilot)
        assert fake.calls[-1] == ("run", "seqread-1m", {})
        await pilot.press("question_mark")
        await settle(pilot)
        assert isinstance(app.screen, TextScreen)
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard)
        await pilot.press("q")
        await settle(pilot)
    assert fake.calls[-1] == ("close",)
    assert app.return_value == 0


async def test_the_home_screen_asks_for_the_directory_of_a_scratch_file(tmp_path: Path) -> None:
    chosen: list[object] = []
    fake = fakes.FakeController()

    def build(path: object) -> fakes.FakeController:
        chosen.append(path)
        return fake

    app = IopstuiApp(Backend(build, lambda: fakes.DEVICES, fakes.JOBS), appearance=Appearance(UTF8))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("s")
        await settle(pilot)
        assert isinstance(app.screen, Prompt), "it asks where"
        for wrong, words in (("nowhere", "not a directory"), ("", "not a directory")):
            app.screen.query_one(Input).value = wrong
            await pilot.press("enter")
            await settle(pilot)
            assert shows(app, words) and not chosen
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
        await pilot.press("s")
        await settle(pilot)
        app.screen.query_one(Input).value = str(tmp_path)  # type: ignore[union-attr]
        await pilot.press("enter")
        await settle(pilot)
        assert chosen == [(str(tmp_path),)] and isinstance(app.screen, Dashboard)
    app = make(target=None)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("q")
        await settle(pilot)
    assert app.return_value == 0 and not app.fake.calls  # type: ignore[attr-defined]


async def test_a_refused_target_is_explained_in_the_picker() -> None:
    def refuse(path: object) -> fakes.FakeController:
        raise UsageError("That device can't be read.", "Use sudo.")

    app = IopstuiApp(
        Backend(refuse, lambda: fakes.DEVICES, fakes.JOBS), appearance=Appearance(UTF8)
    )
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("s", "enter")
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
        text = str(app.screen.query_one("#picker-words", Static).content)
        assert "That device can't be read. Use sudo." in text


async def test_a_refused_target_of_the_command_line_ends_with_its_exit_code() -> None:
    def refuse(path: object) -> fakes.FakeController:
        raise UsageError("No such thing.")

    app = IopstuiApp(
        Backend(refuse, lambda: {}, fakes.JOBS), FirstView(["/nope"]), Appearance(UTF8)
    )
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
    assert app.return_value == 2


async def test_a_job_from_the_command_line_runs_at_once_with_its_options() -> None:
    app = make(job="randread-4k", overrides={"bs": "8k"})
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert ("run", "randread-4k", {"bs": "8k"}) in app.fake.calls  # type: ignore[attr-defined]


async def test_events_are_coalesced_but_no_frame_is_lost() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 1)
        painted: list[int] = []
        assert app.dashboard is not None
        paint = app.dashboard.paint
        app.dashboard.paint = lambda *a: (painted.append(1), paint(*a))  # type: ignore[method-assign]
        fake.tick(20)
        await settle(pilot)
        assert len(app.state.history) == 21
        assert len(painted) == 1


async def test_events_from_another_thread_arrive() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 1)
        await asyncio.to_thread(fake.tick, 5)
        await settle(pilot)
        assert len(app.state.history) == 6


async def test_nothing_is_sent_if_nothing_changed() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot, 5)
        assert app.dashboard is not None
        changed = 0
        for widget in app.dashboard.canvas.lines:
            if widget.shown and widget._rows:
                changed += widget.show(list(widget._rows))
        assert changed == 0


async def test_a_second_repaints_one_tile_of_each_chart() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 100)
        assert app.dashboard is not None
        touched: set[int] = set()
        for chart in app.dashboard.charts:
            for tile in chart.tiles:
                show = tile.show

                def spy(rows: list[object], tile: Lines = tile, show=show) -> int:  # type: ignore[no-untyped-def]
                    touched.add(id(tile))
                    return int(show(rows))

                tile.show = spy  # type: ignore[method-assign, assignment]
        counts = []
        for _ in range(6):
            touched.clear()
            fake.tick(1)
            await settle(pilot)
            counts.append(len(touched))
        # a curve's name at the end of a line may be in the next tile; now and then all tiles move
        assert sum(2 <= count <= 3 for count in counts) >= 4


async def test_freezing_stops_the_display_but_not_the_measurement() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 3)
        await pilot.press("space")
        await settle(pilot)
        assert app.dashboard is not None
        before = app.dashboard.panels["fio"].text()
        fake.tick(5)
        await settle(pilot)
        assert app.dashboard.panels["fio"].text() == before
        assert shows(app, "FROZEN at 0:03") and shows(app, "space Continue")
        assert len(app.state.history) == 8
        await pilot.press("space")
        await settle(pilot)
        assert not shows(app, "FROZEN")
        assert app.dashboard.panels["fio"].text() != before


def figures(app: IopstuiApp) -> str:
    """Text of the dashboard without header, messages and footer, which change meanwhile."""
    return "\n".join(screen_text(app).split("\n")[2:-4])


@pytest.mark.parametrize("tab", range(4))
async def test_frozen_figures_survive_another_pane_and_size(tab: int) -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot, 3)
        await pilot.press(str(tab + 1), "h", "space")
        await pilot.press(str(tab + 1))
        await settle(pilot)
        before = figures(app)
        fake.tick(9)
        fake.finish()
        await settle(pilot)
        await pilot.press("1", "2", "h", "h", "3", "4", str(tab + 1))
        await settle(pilot)
        assert figures(app) == before
        for size in (WIDE, (20, 5), (120, 36), (80, 24)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert figures(app) == before
        await pilot.press("space")
        await settle(pilot)
        assert figures(app) != before


async def test_marks_are_drawn_on_both_charts() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 8)
        await pilot.press("m", "enter")
        fake.tick(2)
        await settle(pilot)
        assert ("mark", "mark 1") in fake.calls
        assert screen_text(app).count("▾mark 1") == 2


async def test_changed_options_restart_the_job_after_a_pause_with_a_mark() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        before = len(fake.calls)
        await pilot.press("right_square_bracket", "right_square_bracket")
        assert shows(app, "iodepth 128: preparing the next run")
        assert len(fake.calls) == before
        app.jobs.restart_with_changes()
        await settle(pilot)
        assert fake.calls[before:] == [
            ("mark", "QD 32 → 128"), ("run", "mixed-4k", {"iodepth": "128"}),
        ]  # fmt: skip
        await pilot.press("left_curly_bracket")
        app.jobs.restart_with_changes()
        assert fake.calls[-1] == ("run", "mixed-4k", {"iodepth": "128", "numjobs": "1"})
        await pilot.press("left_curly_bracket")
        await settle(pilot)
        assert shows(app, "numjobs is already the smallest")


async def test_block_size_is_chosen_from_a_list() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        await pilot.press("b")
        await settle(pilot)
        assert isinstance(app.screen, Choice)
        assert app.screen.query_one(OptionList).highlighted == 1
        await pilot.press("down", "enter")
        await settle(pilot)
        app.jobs.restart_with_changes()
        assert fake.calls[-1] == ("run", "mixed-4k", {"bs": "8k"})


async def test_options_changed_without_a_job_apply_to_the_next_run() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("right_square_bracket")
        await settle(pilot)
        assert shows(app, "iodepth 2 applies to the next run")
        await pilot.press("r")
        await settle(pilot)
        assert app.fake.calls[-1] == ("run", "mixed-4k", {"iodepth": "2"})  # type: ignore[attr-defined]


async def test_errors_are_shown_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.finish(error="fio failed: no space left in [job].")
        await settle(pilot)
        assert shows(app, "error: fio failed: no space left in [job].")
        assert shows(app, "failed mixed-4k")
        await do(pilot, "log")
        await settle(pilot)
        assert isinstance(app.screen, TextScreen)
        await pilot.press("escape", "q")
        await settle(pilot)
    assert app.return_value == 1
    assert "iopstui: run 1 failed: fio failed: no space left in [job]." in capsys.readouterr().err


async def test_a_job_without_latencies_says_so() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 0)
        fake.tick(3, latencies=False)
        await settle(pilot)
        assert screen_text(app).count("this job measures no latency (gtod_reduce)") == 2


async def test_a_target_without_block_device_says_so() -> None:
    app = make(fakes.FakeController(target=fakes.ON_TMPFS))
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        assert shows(app, "No disk figures: tmpfs has no block device.")
        assert shows(app, "no block device")


async def test_sixty_four_cpus_fit_every_size() -> None:
    app = make(fakes.FakeController(cpus=64))
    async with app.run_test(size=(80, 24)) as pilot:
        await running(app, pilot)
        await pilot.press("4")
        for size in ((80, 24), (120, 36), (160, 45), (200, 50)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert shows(app, "busy ·▃▆▂") and shows(app, "CPU 17 89 %, CPU 34 88 %"), size


async def test_tabs_open_one_pane_at_a_time_and_hidden_panes_are_not_painted() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        assert "[ 1 IOPS ]" in screen_text(app) and shows(app, "fio 4")
        await pilot.press("3")
        await settle(pilot)
        assert shows(app, "fio, this second") and shows(app, "r_await")
        assert app.dashboard is not None and not app.dashboard.panels["cpus"].shown
        fake.tick(1)
        await settle(pilot)
        assert app.dashboard.panels["cpus"].text() == ""
        await pilot.press("tab")
        await settle(pilot)
        assert "[ 4 CPUs ]" in screen_text(app) and shows(app, "BLOCK/s")
        await pilot.press("tab")
        await settle(pilot)
        assert "[ 5 Runs ]" in screen_text(app) and shows(app, "what was changed")
        await pilot.press("tab", "tab")
        await settle(pilot)
        assert "[ 1 IOPS ]" in screen_text(app)


async def test_a_key_zooms_one_of_the_visible_panes() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)

        async def pressed(key: str) -> str:
            await pilot.press(key)
            await settle(pilot)
            return screen_text(app)

        assert "Device (iostat)" in screen_text(app)
        alone = await pressed("2")
        assert "[ 2 Latency ]" in alone and "Device (iostat)" not in alone
        assert "[ 3 Numbers ]" in await pressed("tab")
        assert "Device (iostat)" in await pressed("escape")
        assert "Device (iostat)" in await pressed("tab"), "the focus alone has moved"
        assert "Device (iostat)" not in await pressed("enter")
        assert "[ 4 CPUs ]" in await pressed("4") and "[ 4 CPUs ]" not in await pressed("4")
        assert "[ 4 CPUs ]" in await pressed("4")
        everything = await pressed("0")
        assert "Device (iostat)" in everything and "[ 4 CPUs ]" not in everything
        assert "Device (iostat)" in await pressed("0")


@pytest.mark.parametrize("size", [(40, 10), (1, 1), (59, 50), (200, 14)])
async def test_a_tiny_terminal_shows_a_message(size: tuple[int, int]) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        await running(app, pilot)
        if size == (40, 10):
            assert shows(app, "the dashboard needs 60×15")
        await pilot.press("j")
        await settle(pilot)
        await pilot.press("escape", "q")
        await settle(pilot)
    assert app.return_value == 0


def laid_out(app: IopstuiApp) -> bool:
    """Whether the panes are laid out for the terminal's current size."""
    canvas = getattr(app.screen, "canvas", None)
    boxes = [line.box for line in canvas.lines if line.shown] if canvas is not None else []
    width, height = app.size
    return all(box.x + box.width <= width and box.y + box.height <= height for box in boxes)


async def test_resizing_passes_through_every_layout() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        for size in ((160, 45), (40, 10), (120, 36), (60, 15), (300, 90), (80, 24)):
            await pilot.resize_terminal(*size)
            fake.tick(1)
            await wait_until(pilot, lambda: laid_out(app))
            lines = screen_text(app).split("\n")
            assert len(lines) == size[1] and {len(line) for line in lines} == {size[0]}
            if size != (40, 10):
                assert shows(app, "q Quit") and shows(app, "nvme0n1")
        assert len(app.state.history) == 9


async def test_job_chooser_filters_and_explains() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("j")
        await settle(pilot)
        chooser = app.screen
        assert isinstance(chooser, JobChooser)
        chooser.query_one(Input).value = "random"
        await settle(pilot)
        assert chooser.query_one(OptionList).option_count == 2, "a heading and a job"
        text = str(chooser.query_one("#jobs-text", Static).content)
        assert "4k random reads, QD 32" in text and "IOPS against r/s" in text
        chooser.query_one(Input).value = "nonsense"
        await settle(pilot)
        assert "No job has all of these words" in str(
            chooser.query_one("#jobs-text", Static).content
        )
        await pilot.press("enter", "escape")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard)


async def test_the_cursor_of_the_job_chooser_skips_headings() -> None:
    jobs = (
        fakes.FakeJob("mixed-4k", "plain"), fakes.FakeJob("seqread-1m", "plain"),
        fakes.FakeJob("azure-read", "read", source="Microsoft Azure, a page"),
    )  # fmt: skip
    fake = fakes.FakeController()
    app = IopstuiApp(
        Backend(lambda path: fake, lambda: fakes.DEVICES, jobs),
        FirstView(["/dev/nvme0n1"]),
        Appearance(UTF8),
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("j")
        await settle(pilot)
        options = app.screen.query_one(OptionList)
        assert options.option_count == 5 and options.highlighted == 1
        headings = [i for i in range(5) if options.get_option_at_index(i).disabled]
        assert headings == [0, 3]
        await pilot.press("down", "down")
        await settle(pilot)
        assert "read" in str(app.screen.query_one("#jobs-text", Static).content)
        await pilot.press("up", "down", "enter")
        await settle(pilot)
        assert fake.calls[-1] == ("run", "azure-read", {})


async def go_home(app: IopstuiApp, pilot: Pilot[int]) -> None:
    await pilot.press("escape")
    await settle(pilot)
    await app.workers.wait_for_complete()
    await settle(pilot)
    assert isinstance(app.screen, HomeScreen)


async def test_a_running_job_goes_on_below_the_home_screen() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        await go_home(app, pilot)
        assert shows(app, "mixed-4k runs") and ("stop",) not in fake.calls
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen), "home is the root: Esc does nothing"
        fake.tick(1)
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard) and fake.calls[-1] == ("run", "mixed-4k", {})


async def open_beside(app: IopstuiApp, pilot: Pilot[int]) -> BesideScreen:
    await go_home(app, pilot)
    await pilot.press("down", "enter")
    await settle(pilot)
    assert isinstance(app.screen, BesideScreen)
    return app.screen


async def test_a_second_and_its_answer_are_painted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        paints: list[Dashboard] = []
        monkeypatch.setattr(Dashboard, "paint", lambda self: paints.append(self))
        fake.tick()
        for _ in range(9):  # the screen is woken before the answer comes
            await asyncio.sleep(0)
        fake.sink(AnswerGiven(5.0, Answer("sda", "busy", WARNING, "sda is busy")))
        await wait_until(pilot, lambda: app.state.answer is not None)
        assert len(paints) == 1


@pytest.mark.parametrize("size", [WIDE, (80, 24)])
async def test_another_disk_can_be_looked_at_while_a_job_runs(size: tuple[int, int]) -> None:
    app = make()
    loads = {"sda": fakes.disk(300.0, 0.0), "nvme0n1": fakes.disk(5e4, 0.0)}
    app.targets._backend = replace(app.targets._backend, loads=lambda names: loads)
    async with app.run_test(size=size) as pilot:
        fake = await running(app, pilot)
        calls = list(fake.calls)
        page = await open_beside(app, pilot)
        for _ in range(ENOUGH_SECONDS):
            app.screen_stack[-2]._tick()  # type: ignore[attr-defined]
        page._show()
        await settle(pilot)
        text = page.copied_text()
        assert "sda" in str(page.box.border_title) and "mixed-4k" in str(page.box.border_title)
        assert text.startswith("●") and "sda" in text.splitlines()[0]
        figures = next(line for line in text.splitlines() if "reads" in line).split()
        assert figures[1] == "300" and "nvme0n1" not in text, "only this disk's"
        assert page._charts.display and "Esc Close" in screen_text(app)
        for key in ("r", "w", "b", "bracketright"):
            await pilot.press(key)
        await settle(pilot)
        assert app.screen is page, "keys of the job and the home screen do nothing here"
        await pilot.press("u")
        await settle(pilot)
        assert shows(app, "› Who"), "all who use it, as on other pages"
        await pilot.press("f", "escape")
        await settle(pilot)
        assert app.screen is page
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen) and fake.calls == calls
        await pilot.press("up", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard), "the job's own disk leads back to the job"
        assert fake.calls == calls


async def test_without_room_for_charts_another_disk_s_page_is_as_low_as_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await running(app, pilot)
        page = await open_beside(app, pilot)
        whole = page.box.size.height
        assert page._charts.display
        words = page._text

        def longer(now: DiskNow, width: int) -> Text:
            return words(now, width).append("\nmore" * 6)

        monkeypatch.setattr(page, "_text", longer)
        page._show()
        await settle(pilot)
        assert not page._charts.display
        rows = [line for line in screen_text(app).splitlines() if line.startswith("│")]
        assert "Esc Close" in rows[-1] and page.box.size.height < whole
        monkeypatch.setattr(page, "_text", words)
        page._show()
        await settle(pilot)
        assert page._charts.display and page.box.size.height == whole


async def test_another_disk_is_opened_only_after_the_running_job_may_be_stopped() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        for key in ("enter", "escape"):
            await open_beside(app, pilot)
            await pilot.press("enter")
            await settle(pilot)
            assert isinstance(app.screen, Confirm) and shows(app, "Stop what is running?")
            await pilot.press(key)
            await settle(pilot)
            assert isinstance(app.screen, HomeScreen) and ("close",) not in fake.calls
            await pilot.press("enter")
            await settle(pilot)
            assert isinstance(app.screen, Dashboard)
        await open_beside(app, pilot)
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert fake.calls.count(("close",)) == 1 and fake.calls[-1] == ("start",)


async def test_without_a_job_another_disk_is_opened_at_once() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.finish()
        await settle(pilot)
        await go_home(app, pilot)
        await pilot.press("down", "enter")
        await settle(pilot)
        assert fake.calls.count(("close",)) == 1 and fake.calls[-1] == ("start",)
        fake.tick(2)
        await settle(pilot)
        assert isinstance(app.screen, Dashboard) and shows(app, "no job: press r")


async def test_s_is_a_scratch_file_also_on_the_row_of_the_open_disk() -> None:
    app = make()
    asked: list[Sequence[str]] = []
    backend = app.targets._backend
    app.targets._backend = replace(
        backend,
        make_controller=lambda paths: (asked.append(paths), backend.make_controller(paths))[1],
    )
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.finish()
        await settle(pilot)
        await go_home(app, pilot)
        assert shows(app, "Enter returns to it"), "the cursor is on its row"
        await pilot.press("s", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard) and asked[-1] == (".",)


async def test_the_time_span_of_the_charts_can_be_widened() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot, 5)
        await pilot.press("minus")
        await settle(pilot)
        assert shows(app, "2 s per column")
        await pilot.press("plus")
        await settle(pilot)
        assert shows(app, "1 s per column")


async def test_a_page_beside_a_job_does_not_name_one_that_has_ended() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        page = await open_beside(app, pilot)
        assert "mixed-4k" in str(page.box.border_title) and "job" not in page.keys.text
        fake.finish()
        await settle(pilot)
        page._show()
        assert str(page.box.border_title) == "sda"
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard), "nothing is left to ask about"


async def test_quitting_from_home_asks_before_it_ends_a_job() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        await go_home(app, pilot)
        for key in ("enter", "escape", "q"):
            await pilot.press("q")
            await settle(pilot)
            assert isinstance(app.screen, Confirm) and shows(app, "mixed-4k runs")
            await pilot.press(key)
            await settle(pilot)
            assert isinstance(app.screen, HomeScreen) and ("close",) not in fake.calls
        await pilot.press("q", "y")
        await settle(pilot)
    assert fake.calls[-1] == ("close",) and app.return_value == 0


async def test_quitting_from_home_asks_nothing_while_no_job_runs() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.finish()
        await settle(pilot)
        await go_home(app, pilot)
        await pilot.press("q")
        await settle(pilot)
    assert fake.calls[-1] == ("close",) and app.return_value == 0


async def test_every_action_is_in_the_palette() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert titles[0] == "Stop the job" and "Quit" in titles and len(titles) >= 14


async def test_quitting_stops_a_running_job() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        await pilot.press("ctrl+c")
        await settle(pilot)
    assert fake.calls[-1] == ("close",) and app.return_value == 0


async def test_ascii_screens_are_ascii() -> None:
    app = make(charset=ASCII)
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot, 20)
        assert screen_text(app).isascii()


async def test_a_changed_option_is_shown_until_a_run_uses_it() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        fake.slow = True
        await pilot.press("right_square_bracket")
        assert shows(app, "QD 32 × 2 jobs → iodepth 64")
        await pilot.press("right_curly_bracket")
        assert shows(app, "→ iodepth 64, numjobs 4")
        app.jobs.restart_with_changes()
        await settle(pilot)
        assert shows(app, "→ iodepth 64, numjobs 4"), "the old run is still being stopped"
        await pilot.press("right_square_bracket")
        assert shows(app, "→ iodepth 128, numjobs 4")
        fake.finish(interrupted=True)
        await settle(pilot)
        assert shows(app, "→ iodepth 128, numjobs 4")
        fake.begin("randrw 4k QD 64 × 4 jobs")
        await settle(pilot)
        assert shows(app, "QD 64 × 4 jobs → iodepth 128") and not shows(app, "128, numjobs")
        app.jobs.restart_with_changes()
        fake.finish(interrupted=True)
        fake.begin("randrw 4k QD 128 × 4 jobs")
        await settle(pilot)
        assert shows(app, "QD 128 × 4 jobs") and not shows(app, "→ iodepth")
        assert fake.calls[-1] == ("run", "mixed-4k", {"iodepth": "128", "numjobs": "4"})


async def test_an_option_changed_between_two_runs_applies_to_the_next() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.slow = True
        await pilot.press("right_square_bracket")
        app.jobs.restart_with_changes()
        fake.finish(interrupted=True)
        await settle(pilot)
        await pilot.press("right_square_bracket")
        assert shows(app, "iodepth 128: preparing the next run")
        app.jobs.restart_with_changes()
        fake.begin("randrw 4k QD 64 × 2 jobs")
        await settle(pilot)
        assert shows(app, "→ iodepth 128"), "that run was asked for before"


@pytest.mark.parametrize("sent", [False, True])
async def test_r_stops_the_run_that_an_option_would_restart(sent: bool) -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.slow = True
        await pilot.press("right_square_bracket")
        if sent:
            app.jobs.restart_with_changes()
            fake.finish(interrupted=True)
            await settle(pilot)
        before = len(fake.calls)
        await pilot.press("r")
        app.jobs.restart_with_changes()
        await settle(pilot)
        assert fake.calls[before:] == [("stop",)]
        assert not shows(app, "→ iodepth") and app.jobs.overrides == {"iodepth": "64"}


async def test_a_run_that_cannot_start_leaves_nothing_pending() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.slow = True
        await pilot.press("right_square_bracket")
        app.jobs.restart_with_changes()
        fake.finish(interrupted=True)
        fake.step += 1
        fake.finish("fio: it can't")
        await settle(pilot)
        assert not app.state.next_run.requested and not app.state.next_run.pending


async def test_a_run_started_before_the_key_is_followed_by_one_with_the_option() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.slow = True
        await pilot.press("right_square_bracket")
        app.jobs.restart_with_changes()
        fake.finish(interrupted=True)
        await pilot.press("right_square_bracket")
        app.jobs.restart_with_changes()
        fake.begin("randrw 4k QD 64 × 2 jobs")
        fake.tick()
        await settle(pilot)
        assert shows(app, "QD 64 × 2 jobs → iodepth 128")
        fake.finish(interrupted=True)
        await settle(pilot)
        assert shows(app, "QD 64 × 2 jobs → iodepth 128")
        fake.begin("randrw 4k QD 128 × 2 jobs")
        await settle(pilot)
        assert not shows(app, "→ iodepth") and not app.state.next_run.requested


async def test_an_option_that_the_run_s_title_contradicts_is_no_longer_pending() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.slow = True
        await pilot.press("right_square_bracket")
        app.jobs.restart_with_changes()
        fake.finish(interrupted=True)
        fake.begin("randrw 4k QD 32 × 2 jobs")
        fake.tick(3)
        await settle(pilot)
        assert not app.state.next_run.pending and not app.state.next_run.requested


async def test_before_r_the_screen_says_with_which_options_it_runs() -> None:
    """A run with an iodepth left over from before surprised a newcomer."""
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("right_square_bracket")
        await settle(pilot)
        assert shows(app, "r runs mixed-4k with iodepth=2")
        fake = await running(app, pilot)
        assert not shows(app, "→ iodepth")
        fake.finish()
        await settle(pilot)
        await pilot.press("right_square_bracket")
        await settle(pilot)
        assert shows(app, "next: iodepth 4")
        await pilot.press("j")
        await settle(pilot)
        assert isinstance(app.screen, JobChooser)
        assert app.screen.heading == "Run a job · nvme0n1"
        text = str(app.screen.query_one("#jobs-text", Static).content)
        assert "Changed by you: iodepth=4" in text
        await pilot.press("enter")
        await settle(pilot)
        assert fake.calls[-1] == ("run", "mixed-4k", {"iodepth": "4"})


async def test_before_the_first_run_an_option_starts_at_the_job_file_s_value() -> None:
    app = make()
    app.jobs.jobs = [fakes.FakeJob("mixed-4k", "x", text="[global]\nbs=16k\niodepth=32\n[a]\n")]
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("right_square_bracket")
        assert shows(app, "iodepth 64 applies to the next run")
        await pilot.press("b")
        await settle(pilot)
        assert app.screen.query_one(OptionList).highlighted == 3


@pytest.mark.parametrize(
    ("target", "job"),
    [(fakes.ON_DISK, "randread-4k"), (fakes.ON_PARTITION, "randread-4k"),
     (replace(fakes.ON_TMPFS, kind=DIRECTORY), "mixed-4k")],
)  # fmt: skip
async def test_the_first_job_of_a_device_or_file_only_reads(target: Target, job: str) -> None:
    fake = fakes.FakeController(target=target)
    app = IopstuiApp(
        Backend(lambda path: fake, lambda: fakes.DEVICES, fakes.JOBS),
        FirstView([target.path]),
        Appearance(UTF8),
    )
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert shows(app, f"r runs {job}")
        await pilot.press("r")
        assert ("run", job, {}) in fake.calls
