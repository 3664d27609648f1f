"""The mouse on the screen of a sweep: values of a point, tabs, panes, keys, the wheel."""

from __future__ import annotations

import re

import experiment_fakes as lab
import pytest
from test_app import screen_text, settle, shows
from test_experiment_view import LARGE, SMALL, begin
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot

from iopstui.model.experiment.plan import Plan
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.xy_chart import XYChart, XYLine, XYSpec, linear_axis, nearest
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.experiment.screen import ExperimentScreen


def find_text(pilot: Pilot[int], text: str, after: str = "") -> tuple[int, int]:
    """Cell where the text begins, in a row at or below the one with ``after``."""
    rows = screen_text(pilot.app).split("\n")  # type: ignore[arg-type]
    first = next(y for y, row in enumerate(rows) if after in row)
    y = next(y for y, row in enumerate(rows) if text in row and y >= first)
    return rows[y].index(text), y


async def shown(pilot: Pilot[int], points: int = 7, plan: Plan = lab.SWEEP) -> ExperimentScreen:
    under = await begin(pilot, plan, points, running=False)
    under.end(points)
    await settle(pilot)
    assert isinstance(pilot.app.screen, ExperimentScreen)
    return pilot.app.screen


async def test_the_mouse_over_a_point_shows_its_values() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        await shown(pilot)
        rows = screen_text(pilot.app).split("\n")  # type: ignore[arg-type]
        x, y = next(
            (marker.start() + 1, y)
            for y, row in enumerate(rows)
            if "┈" in row and (marker := re.search("[┈⣀-⣿ ]o ?[┈⠀-⣿]", row[:60]))
        )
        await pilot.hover(offset=(x + 1, y))
        await settle(pilot)
        top = next(row for row in screen_text(pilot.app).split("\n") if "against iodepth" in row)  # type: ignore[arg-type]
        assert "iodepth " in top and " IOPS ─" in top[:60], top
        await pilot.hover(offset=find_text(pilot, "Points"))
        await settle(pilot)
        after = next(row for row in screen_text(pilot.app).split("\n") if "against iodepth" in row)  # type: ignore[arg-type]
        assert " IOPS ─" not in after[:60]


async def test_tabs_panes_and_keys_can_be_clicked() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        screen = await shown(pilot)
        await pilot.click(offset=find_text(pilot, "3 Latency"))
        await settle(pilot)
        assert screen.shown_pane == "latency"
        await pilot.click(offset=find_text(pilot, "0 All"))
        await settle(pilot)
        assert screen.shown_pane == "all"
        await pilot.click(offset=find_text(pilot, "Points"), times=2)
        await settle(pilot)
        assert screen.shown_pane == "points"
        await pilot.click(offset=(20, 10), times=2)
        await settle(pilot)
        assert screen.shown_pane == "all"
        await pilot.click(offset=find_text(pilot, "Esc Dashboard"))
        await settle(pilot)
        assert isinstance(pilot.app.screen, Dashboard)


async def test_the_wheel_scrolls_the_table() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=(80, 15)) as pilot:
        await shown(pilot, 9, lab.CURVES)
        await pilot._post_mouse_events([MouseScrollUp], offset=(10, 6))
        await settle(pilot)
        before = screen_text(pilot.app)  # type: ignore[arg-type]
        await pilot._post_mouse_events([MouseScrollDown], offset=(10, 6))
        await settle(pilot)
        assert screen_text(pilot.app) != before  # type: ignore[arg-type]


async def test_small_screens_have_no_boxes() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=SMALL) as pilot:
        await shown(pilot)
        assert not shows(pilot.app, "╭") and shows(pilot.app, "── Points")  # type: ignore[arg-type]


SPEC = XYSpec(
    "t", linear_axis(100, str), plotting.Scale(0.0, 100.0, False), str,
    (XYLine("o", ((0.0, 0.0), (100.0, 100.0)), None), XYLine("", ((50.0, 50.0),), None)),
    value_text=lambda point: f"at {point[0]:g}",
)  # fmt: skip


@pytest.mark.parametrize(
    ("at", "point"),
    [((8, 20), (0.0, 0.0)), ((67, 2), (100.0, 100.0)), ((65, 3), (100.0, 100.0)), ((38, 11), None)],
)
def test_the_nearest_point_of_a_line_with_points(
    at: tuple[int, int], point: tuple[float, float] | None
) -> None:
    assert nearest(SPEC, 70, 24, at) == point


def test_no_point_is_near_without_space_for_a_chart() -> None:
    assert nearest(SPEC, 10, 5, (8, 2)) is None


@pytest.mark.parametrize("charset", [UTF8, ASCII])
def test_each_labelled_value_has_a_grid_line(charset: Charset) -> None:
    rows = XYChart(charset).rows(SPEC, 70, 24)
    lines = ["".join(text for text, _ in row) for row in rows[2:-1]]
    for line in lines:
        labelled = bool(line[:8].strip())
        assert (charset.grid * 3 in line) == labelled, line


def point_numbers(pilot: Pilot[int]) -> list[str]:
    """Numbers of the points, from top to bottom."""
    rows = screen_text(pilot.app).split("\n")  # type: ignore[arg-type]
    first = next(n for n, row in enumerate(rows) if " # " in row and "IOPS" in row)
    cells = [row.strip("│ ").split() for row in rows[first + 1 :]]
    return [row[0] for row in cells if len(row) > 5 and row[0].isdigit()]


@pytest.mark.parametrize("size", [LARGE, SMALL])
async def test_a_click_on_a_title_sorts_the_points(size: tuple[int, int]) -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=size) as pilot:
        await shown(pilot)
        planned = [str(n) for n in range(1, 8)]
        assert point_numbers(pilot) == planned
        for number, order in (("7", "largest first"), ("1", "smallest first"), ("1", "")):
            await pilot.click(offset=find_text(pilot, "mean", " # "))
            await settle(pilot)
            assert point_numbers(pilot)[0] == number, order
            assert shows(pilot.app, f"by mean, {order}") is bool(order)  # type: ignore[arg-type]
        await pilot.click(offset=find_text(pilot, "p99", " # "))
        await pilot.click(offset=find_text(pilot, "iodepth", " # "))
        await settle(pilot)
        assert point_numbers(pilot) == planned, "the number's title brings back the plan's order"


async def test_a_click_on_a_title_sorts_the_runs_of_a_comparison() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        await shown(pilot, 8, lab.COMPARE)
        await pilot.press("2")
        assert point_numbers(pilot)[:3] == ["1", "2", "3"]
        await pilot.click(offset=find_text(pilot, "IOPS", " # "))
        await settle(pilot)
        letters = [row.split()[1] for row in screen_text(pilot.app).split("\n")  # type: ignore[arg-type]
                   if len(row.split()) > 6 and row.split()[1] in "AB"]  # fmt: skip
        assert shows(pilot.app, "by IOPS, largest first") and len(set(letters[:4])) <= 1  # type: ignore[arg-type]


@pytest.mark.parametrize(("plan", "points"), [(lab.SWEEP, 7), (lab.COMPARE, 8)])
async def test_a_finished_experiment_shows_figures_and_findings_in_a_small_terminal(
    plan: Plan, points: int
) -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=SMALL) as pilot:
        screen = await shown(pilot, points, plan)
        word = screen.state.sentences()[0].split()[0]
        text = screen_text(pilot.app)  # type: ignore[arg-type]
        assert "── Result ─" in text and word in text and "4 Result" in text
        await pilot.press("4")
        assert "── Result ─" in screen_text(pilot.app)  # type: ignore[arg-type]
        assert "── Points ─" not in screen_text(pilot.app)  # type: ignore[arg-type]
