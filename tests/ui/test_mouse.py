"""The mouse does what keys do: focus, zoom, a second of a chart, a span of time, the footer."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import pytest
from test_app import WIDE, make, running, screen_text, settle, shows, wait_until
from textual.events import Key, MouseDown, MouseScrollDown, MouseUp
from textual.pilot import Pilot

from iopstui import format as f
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.key import KeyHint
from iopstui.ui.core.terminal.driver import NonBlockingDriver
from iopstui.ui.core.terminal.terminal_input import TerminalInput
from iopstui.ui.dashboard import bars, mouse, screen
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.draw.charts.chart import AXIS_WIDTH, Chart
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.style import UTF8

SMALL = (80, 24)
SIGNALS = (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)


def board(app: IopstuiApp) -> Dashboard:
    assert app.dashboard is not None
    return app.dashboard


def find_text(app: IopstuiApp, label: str) -> tuple[int, int]:
    """Cell where the text begins."""
    for y, line in enumerate(screen_text(app).split("\n")):
        if label in line:
            return line.index(label), y
    raise AssertionError(label)


async def click(pilot: Pilot[int], at: tuple[int, int], times: int = 1) -> None:
    await pilot.click(offset=at, times=times)
    await settle(pilot)


def place(app: IopstuiApp, chart: Chart, t: float) -> int:
    """Column of the screen with the second that ends at ``t``."""
    window = board(app).window
    return chart.axis.box.x + AXIS_WIDTH + window.column(t, chart.column_s(window))


def middle(box: Box) -> tuple[int, int]:
    return box.x + box.width // 2, box.y + box.height // 2


async def test_a_click_focuses_a_panel_and_a_double_click_zooms_it() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        at = middle(board(app).panels["cpus"].box)
        await click(pilot, at)
        assert board(app).focus_shown and board(app).tab == 3 and not board(app).fullscreen
        await click(pilot, at, 2)
        assert board(app).fullscreen and shows(app, "[ 4 CPUs ]")
        await click(pilot, find_text(app, "3 Numbers"))
        assert board(app).fullscreen and shows(app, "[ 3 Numbers ]")
        await pilot.press("escape")
        await settle(pilot)
        assert not board(app).fullscreen


async def test_a_click_on_a_chart_shows_that_second_in_all_panels() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot, 20)
        chart = board(app).charts[0]
        await click(pilot, (place(app, chart, 10.0), chart.axis.box.y + 3))
        assert board(app).frozen_at == 10.0 and shows(app, "FROZEN at 0:10")
        await click(pilot, (place(app, chart, 5.0), chart.axis.box.y + 3))
        assert board(app).frozen_at == 5.0
        await pilot.press("escape")
        await settle(pilot)
        assert board(app).frozen_at is None


def row_with(app: IopstuiApp, title: str) -> str:
    """The row of the screen with this text."""
    return screen_text(app).split("\n")[find_text(app, title)[1]]


@pytest.mark.parametrize("size", [WIDE, SMALL, (250, 70)])
async def test_the_values_of_the_second_under_the_mouse_are_shown(size: tuple[int, int]) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        fake = await running(app, pilot, 20)
        chart = board(app).charts[0]
        at, y = place(app, chart, 10.0), chart.axis.box.y + 3
        newest = row_with(app, "IOPS" if size != SMALL else "── IOPS")
        await pilot.hover(offset=(at, y))
        await settle(pilot)
        assert 9.0 < (board(app).mouse_t or 0.0) < 10.5 and board(app).frozen_at is None
        top = row_with(app, "at 0:10")
        frame = board(app).state.recent_seconds.at(10.0).frame
        disk = frame.combined(board(app).state.devices)
        assert f.number(disk.ios_s) in top and f.number(frame.fio.total.iops) in top
        if size != SMALL:
            p99 = f.latency(frame.fio.total.percentiles["p99"], "")
            assert f"p99 {p99:>6}" in top
            assert screen_text(app).count("at 0:10") == (4 if size[1] > 50 else 2)
        if size[1] > 50:
            assert f"aqu-sz {f.number(disk.aqu_sz):>6}" in screen_text(app)
        fake.tick(1)
        await settle(pilot)
        assert "at 0:10" in screen_text(app)
        # there is no chart
        await pilot.hover(offset=(chart.axis.box.x + 2, y))
        await settle(pilot)
        assert board(app).mouse_t is None and "at 0:" not in screen_text(app)
        await pilot.hover(offset=(at, y))
        await pilot.hover(offset=(5, 0))
        await settle(pilot)
        assert "at 0:" not in screen_text(app) and newest != top


async def test_the_heat_map_has_the_percentiles_of_the_second_under_the_mouse() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot, 20)
        await pilot.press("h")
        await settle(pilot)
        chart = board(app).heat_maps.fio
        assert shows(app, "share of I/Os")
        at = (place(app, chart, 5.0), chart.axis.box.y + 3)
        await pilot.hover(offset=at)
        await settle(pilot)
        frame = board(app).state.recent_seconds.at(5.0).frame
        p99 = f.latency(frame.fio.total.percentiles["p99"], "")
        assert f"p99 {p99:>6}" in row_with(app, "2 Latency") and not shows(app, "share of I/Os")


async def test_a_resting_mouse_returns_to_the_newest_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(screen, "TOOLTIP_S", 0.01)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot, 20)
        chart = board(app).charts[0]
        await pilot.hover(offset=(place(app, chart, 10.0), chart.axis.box.y + 3))
        await wait_until(pilot, lambda: board(app).mouse_t is None)
        assert "at 0:10" not in screen_text(app)


async def test_a_drag_over_a_chart_shows_that_span_until_escape() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 30)
        window, chart = board(app).window, board(app)._latencies["fio"]
        first, last = place(app, chart, 10.0), place(app, chart, 20.0)
        y = chart.axis.box.y + 4
        await pilot.mouse_down(offset=(first, y))
        await pilot.hover(offset=(last, y))
        await pilot.mouse_up(offset=(last, y))
        await settle(pilot)
        span = board(app).span
        assert span is not None and span == pytest.approx((10.0, 20.0), abs=1.0)
        assert board(app).frozen_at is None
        assert (window.start, window.start + window.length) == pytest.approx(span)
        fake.tick(3)
        await settle(pilot)
        assert window.start == span[0]
        await pilot.press("escape")
        await settle(pilot)
        now = board(app).window
        assert board(app).span is None and now.start == 0.0 and 33.0 <= now.length < 36.0


async def test_the_wheel_over_a_chart_changes_its_time() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot, 200)
        chart = board(app).charts[0]
        at = middle(chart.tiles[0].box)
        length = board(app).window.length
        await pilot._post_mouse_events([MouseScrollDown], offset=at)
        await settle(pilot)
        assert board(app).window.length == 2 * length


async def test_a_click_in_the_footer_presses_the_key() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        x, y = find_text(app, "h Heat map")
        await click(pilot, (x + 4, y))
        assert board(app).heat_enabled
        x, y = find_text(app, "[ ] iodepth")
        await click(pilot, (x + 2, y))
        assert "iodepth" in app.state.next_run.pending
        await click(pilot, find_text(app, "r Stop"))
        assert ("stop",) in app.fake.calls, "not the action of the capital R"  # type: ignore[attr-defined]
        await click(pilot, find_text(app, "? Help"))
        assert app.screen is not board(app)


async def test_on_a_small_screen_a_click_opens_a_tab() -> None:
    app = make()
    async with app.run_test(size=SMALL) as pilot:
        await running(app, pilot)
        await click(pilot, find_text(app, "2 Latency"))
        assert board(app).tab == 1 and shows(app, "[ 2 Latency ]")
        chart = board(app)._latencies["fio"]
        await click(pilot, (place(app, chart, 3.0), chart.axis.box.y + 2))
        assert board(app).frozen_at == 3.0


HINTS = (KeyHint("r", "Stop"), KeyHint("[ ]", "iodepth"), KeyHint("space", "Freeze"))


@pytest.mark.parametrize("width", range(20, 80, 3))
def test_clickable_keys_are_at_their_places_in_the_footer(width: int) -> None:
    row: Sequence[tuple[str, object]] = bars.footer_line(HINTS, width, UTF8)
    text = "".join(part for part, _ in row)
    spans = mouse.footer_keys(HINTS, width)
    for begin, end, key in spans:
        label = text[begin:end]
        assert label == key or label[1:] in ("Stop", "iodepth", "Freeze", "Help", "Quit"), width
    assert {"?", "q"} <= {key for _, _, key in spans}
    assert {"[", "]"} <= {key for _, _, key in spans} or width < 40


@pytest.mark.parametrize("on", [True, False])
async def test_mouse_reports_reach_the_screen_only_if_the_mouse_is_on(
    on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived: list[object] = []
    # Textual handles these signals itself
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        driver = NonBlockingDriver(make(), mouse=on)
        monkeypatch.setattr(driver, "process_message", arrived.append)
        driver._deliver(TerminalInput().feed("\x1b[<0;10;5M\x1b[<0;10;5mx"))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    kinds = [type(event) for event in arrived]
    assert kinds == ([MouseDown, MouseUp, Key] if on else [Key])
