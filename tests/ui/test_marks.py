"""Marks with labels, and means between marks: on the chart, and in the table after q."""

from __future__ import annotations

from dataclasses import replace

from test_app import make, running, screen_text, settle

from iopstui.events import StallFound
from iopstui.model.metrics.run_figures import MarkInterval
from iopstui.model.metrics.slow.stalls import Stall
from iopstui.ui.dialogs.questions import Prompt
from iopstui.ui.draw.charts.axis_rows import mark_label_rows
from iopstui.ui.draw.style import UTF8
from iopstui.ui.start import mark_intervals_text


async def test_a_mark_shows_its_text_and_the_means_after_it() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot, 8)
        assert "⌀" not in screen_text(app) and "╌" not in screen_text(app)
        await pilot.press("m")
        assert isinstance(app.screen, Prompt)
        await pilot.press(*"off", "enter")
        fake.tick(12)
        await settle(pilot)
        assert ("mark", "off") in fake.calls
        mean = app.state.mark_intervals.all[-1].iops
        assert mean is not None and f"▾off: ⌀ {mean / 1000:.1f}k" in screen_text(app)
        assert "╌" in screen_text(app)
        # Escape sets no mark; a mark without a label gets the first number
        before = len(fake.calls)
        await pilot.press("m", "x", "escape")
        assert len(fake.calls) == before
        await pilot.press("m", "enter")
        await settle(pilot)
        assert fake.calls[-1] == ("mark", "mark 1")


async def test_a_stall_is_a_band_on_every_chart_with_its_length() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot, 8)
        lines = screen_text(app).count(UTF8.mark)
        stall = Stall("vda", fake.second - 4.0, 3.0, None, 7, ended=False)
        fake.sink(StallFound(fake.second, stall))
        await settle(pilot)
        band = screen_text(app)
        assert "▾stall 3.0 s" in band and "vda completed nothing for 3.0 s so far" in band
        assert band.count(UTF8.mark) > lines + 10
        fake.sink(StallFound(fake.second, replace(stall, seconds=4.0, at_most=6.0, ended=True)))
        await settle(pilot)
        assert "▾stall 4.0 s" in screen_text(app) and "stall 3.0 s" not in screen_text(app)
        assert screen_text(app).count(UTF8.mark) > band.count(UTF8.mark)


async def test_a_small_terminal_shows_the_field_before_its_explanation() -> None:
    app = make()
    async with app.run_test(size=(20, 5)) as pilot:
        await settle(pilot)
        await pilot.press("m", "x")
        await settle(pilot)
        assert isinstance(app.screen, Prompt)
        field = app.screen.query_one("#prompt-input").region
        assert field.height == 1 and field.width >= 12
        assert app.screen.region.contains_region(field)
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert app.screen.query_one("#prompt-words").region.height == 2


def words(columns: int) -> str:
    (row,) = mark_label_rows([(0, "QD 32")], 8, columns, 8 + columns, 1, UTF8, {0: "⌀ 48.2k"})
    return "".join(text for text, _ in row).strip()


def test_the_mean_is_dropped_before_the_text_of_the_mark() -> None:
    assert [words(columns) for columns in (30, 12, 8, 3, 1)] == [
        "▾QD 32: ⌀ 48.2k", "▾QD 32", "▾QD 32", "▾32", "▾",
    ]  # fmt: skip


def test_the_table_after_q_keeps_to_80_columns() -> None:
    from test_runs_panel import DISK

    intervals = [
        MarkInterval(0.0, 31.0, "from the beginning", True, 29.0, 35100.0, 137 * 2.0**20, 264e3),
        MarkInterval(31.0, 7264.0, "x" * 60, False, 33.0, 12.4, 0.0, None),
    ]
    lines = mark_intervals_text([(DISK, intervals), (DISK, [])]).splitlines()
    assert lines[0] == f"marks on {DISK.name}:" and len(lines) == 5
    assert all(len(line) <= 80 for line in lines)
    assert lines[2].split()[:1] == ["0:00-0:31"] and "35.1k" in lines[2] and "264" in lines[2]
    assert "12.4 d" in lines[3] and lines[4].strip() == "d: of the device, as no job ran"
    assert len(mark_intervals_text([(DISK, intervals[:1])]).splitlines()) == 3, "nothing to explain"
