from __future__ import annotations

import pytest
import ui_fakes as fakes
from test_app import WIDE, do, make, running, screen_text, settle, shows

from iopstui.format import axis_latency
from iopstui.model.metrics.history import History
from iopstui.model.metrics.latency_history import LatencyHistory
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.chart import ChartSpec, Curve, TimeWindow
from iopstui.ui.draw.charts.heat import HeatMap
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.style import ASCII, CONSOLE, P50, UTF8, Charset
from iopstui.ui.state.live import LATENCIES


def heat_map(charset: Charset = UTF8, width: int = 80, height: int = 20) -> HeatMap:
    curves = tuple(Curve(name, name, plotting.LINE, P50, "max") for name in reversed(LATENCIES))
    heat = HeatMap(ChartSpec("heat", "latency", curves, True, axis_latency, 6), charset)
    heat.place(Box(0, 0, width, height))
    return heat


class Past:
    """Seconds with a histogram and its percentiles."""

    def __init__(self) -> None:
        self.latencies = LatencyHistory()
        self.history = History(LATENCIES)
        self.window = TimeWindow(0.0, 66.0)

    def add(self, t: int, bins: dict[int, int], p50: float = 2e5) -> None:
        self.latencies.add(float(t), 1.0, bins)
        self.history.add(float(t), 1.0, {"p50": p50, "p99": 1e6, "p99.9": 5e6})

    def show(self, heat: HeatMap, lines: bool = False) -> int:
        return heat.show(self.latencies, self.history, self.window, (), lines)


def plot(heat: HeatMap) -> list[str]:
    tiles = [tile.text().split("\n") for tile in heat.tiles if tile.shown]
    return ["".join(parts) for parts in zip(*tiles, strict=True)]


def column(heat: HeatMap, index: int) -> str:
    return "".join(line[index] for line in plot(heat))


def test_darker_is_more_and_one_io_is_visible() -> None:
    past, heat = Past(), heat_map()
    past.add(1, {200_000: 80_000, 1_000_000: 19_000, 10_000_000: 1980, 90_000_000: 1})
    past.show(heat)
    assert column(heat, 0).replace(" ", "") == "·▒▓█"


def test_gaps_are_blank() -> None:
    past, heat = Past(), heat_map()
    past.add(1, {200_000: 10})
    past.add(4, {200_000: 10})
    past.show(heat)
    assert [column(heat, index).strip() != "" for index in range(5)] == [
        True, False, False, True, False,
    ]  # fmt: skip


def test_only_the_newest_columns_are_computed() -> None:
    past, heat = Past(), heat_map()
    for t in range(1, 31):
        past.add(t, {200_000: 100, 50_000_000: 1})
        past.show(heat)
    past.add(31, {200_000: 100})
    assert past.show(heat) <= 3
    assert past.show(heat) == 0
    past.add(32, {200_000: 100, 2_000_000_000: 1})
    assert past.show(heat) > 30


def test_columns_look_the_same_a_second_later() -> None:
    past, step_by_step, at_once = Past(), heat_map(), heat_map()
    for t in range(1, 60):
        past.add(t, {150_000 + 3000 * t: 100, 40_000 * t: 3})
        past.window.follow(float(t), step_by_step.columns, 1.0)
        past.show(step_by_step)
    past.show(at_once)
    assert plot(step_by_step) == plot(at_once)


@pytest.mark.parametrize(("charset", "chars"), [(UTF8, "━─┄"), (CONSOLE, "=-~"), (ASCII, "=-~")])
def test_percentiles_are_drawn_over_the_map_on_request(charset: Charset, chars: str) -> None:
    past, heat = Past(), heat_map(charset)
    past.add(1, {200_000: 100, 5_000_000: 1})
    past.show(heat)
    assert not set(chars) & set(column(heat, 0))
    past.show(heat, lines=True)
    assert [char for char in column(heat, 0) if char in chars] == [*reversed(chars)]
    assert "p99.9" in heat.labels.text()


def test_marks_are_drawn_where_no_io_is() -> None:
    past, heat = Past(), heat_map()
    past.history.mark(0.5, "here")
    past.add(1, {200_000: 10, 20_000_000: 10})
    past.show(heat)
    assert "▾here" in heat.title.text() and "│" in column(heat, 0) and "█" in column(heat, 0)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), WIDE])
async def test_h_shows_the_heat_map_and_p_the_lines(size: tuple[int, int]) -> None:
    app = make(fakes.FakeController())
    async with app.run_test(size=size) as pilot:
        fake = await running(app, pilot, 20)
        await pilot.press("h")
        await settle(pilot)
        assert shows(app, "share of I/Os · any ░ .1 ▒ 1 ▓ 10 █ 30 %")
        assert "━" not in screen_text(app)
        await do(pilot, "percentiles")
        fake.tick(1)
        await settle(pilot)
        assert "━━━" in screen_text(app)
        await pilot.press("h")
        await settle(pilot)
        assert not shows(app, "share of I/Os") and shows(app, "p99.9")


async def test_a_job_without_latencies_says_so_in_the_heat_map_too() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 0)
        fake.tick(3, latencies=False)
        await pilot.press("h")
        await settle(pilot)
        assert shows(app, "Heat map") and shows(app, "this job measures no latency")
