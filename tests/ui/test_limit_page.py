"""The search for a limit on the screen: its curve, its keys, and what cannot be done meanwhile."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
import ui_fakes as fakes
from test_app import WIDE, Appearance, Backend, FirstView, IopstuiApp, do, make, settle, shows

from iopstui.features.limit import runner as limit_runner
from iopstui.features.limit import setup as limit_setup
from iopstui.features.limit.model import FOUND, Answer, Estimate, OpenLoop, Second, Step
from iopstui.features.limit.page import LimitPage, ShownSearch, curve_spec, page_rows
from iopstui.features.limit.runner import LimitRunner, Row
from iopstui.features.limit.setup import LimitSetup
from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.experiment.point import Point
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.findings.evidence import JobShape
from iopstui.ui.draw.charts.xy_chart import XYChart
from iopstui.ui.draw.rows import cells
from iopstui.ui.draw.style import ASCII, UTF8, Charset

KEEP = "read.clat.p99<=20ms"
SETUP = LimitSetup(
    RunRequest(job="randread-4k"), parse_expectation(KEEP), OpenLoop(1, None, 4096), JobShape(),
    180.0, fakes.ON_DISK, None, fakes.DEVICES, "randread 4k", False,
)  # fmt: skip
ANSWER = Answer(FOUND, 918.0, 977.0, 950.0, "918 to 977/s (95 %)", ("Measured for 1 min in all.",))


def run(asked: float | None, p99_ms: float, share: float, left_out: str = "") -> Row:
    done = asked or 1000.0
    point = Point(12.0, round(12 * done), done, done * 4096, latency_ns=1e6)
    return Row(asked, point, 1e6 * p99_ms, share, (Second(round(done), 0),) * 12, 320, 0, "", (),
               left_out)  # fmt: skip


def search(answer: Answer | None = None) -> ShownSearch:
    runner = LimitRunner.__new__(LimitRunner)
    runner.setup, runner.search = SETUP, None
    runner.rows = [run(750, 4, 0.0001), run(1060, 390, 0.8), run(900, 12, 0.004),
                   run(970, 26, 0.015), run(1000, 150, 0.3, "disturbed")]  # fmt: skip
    runner.closed = run(None, 33, 0.9)
    runner.found = Estimate(918.0, 977.0, 950.0, 20.0)
    runner.step = Step(941.0, 12.0)
    return ShownSearch(runner, answer, began=100.0)


def text_of(shown: ShownSearch, width: int, height: int, charset: Charset = UTF8) -> list[str]:
    top, table = page_rows(shown, width, height, XYChart(charset), charset, 172.0)
    for made in (*top, *table):
        assert sum(cells(text) for text, _ in made) == width
    return ["".join(text for text, _ in made) for made in (*top, *table)]


@pytest.mark.parametrize(("width", "height"), [(76, 18), (116, 30)])
def test_a_running_search_says_where_it_is(width: int, height: int) -> None:
    rows = text_of(search(), width, height)
    assert "1:12 of at most 3:00   Run 6: 941/s for 12 s" in rows[1]
    assert rows[2].strip() == "So far: 918 to 977/s at 95 %"
    assert rows[-1].rstrip().endswith("as it is (closed loop)")
    assert len(rows) == height if height == 30 else len(rows) >= height
    # a point for each run, rising from left to right
    begin = next(n for n, row in enumerate(rows) if "P99 against rate" in row) + 2
    plot = [row[8:] for row in rows[begin:]]
    plot = plot[: next(n for n, row in enumerate(rows[begin:]) if "RATE/S" in row) - 1]
    places = sorted((row.index("o"), -n) for n, row in enumerate(plot) if "o" in row)
    assert len(places) >= 3 and places == sorted(places, key=lambda place: place[1])
    assert any("x" in row for row in plot) and any("C" in row for row in plot)


def test_the_curve_has_the_interval_the_bound_and_what_does_not_count() -> None:
    spec = curve_spec(search().runner)
    assert spec.verticals == (918.0, 977.0)
    bound, left_out, counted, closed = spec.lines
    assert {y for _, y in bound.points} == {20e6} and not left_out.joined and not closed.joined
    assert [x for x, _ in counted.points] == [750, 900, 970, 1060]
    assert left_out.points == ((1000, 150e6),) and closed.points == ((1000.0, 33e6),)
    assert spec.x.low <= 750 and spec.x.high >= 1060


def test_before_the_first_run_there_is_a_page_too() -> None:
    shown = search()
    shown.runner.rows, shown.runner.closed = [], None
    shown.runner.found = shown.runner.step = None
    rows = text_of(shown, 76, 18, ASCII)
    assert "Measuring the job as it is" in rows[1]
    assert any("no rate measured yet" in row for row in rows)


def test_an_ended_search_says_its_answer_first() -> None:
    rows = text_of(search(ANSWER), 116, 30)
    assert rows[1].strip() == ANSWER.text
    assert "Measured for 1 min in all." in "".join(rows[2:5])


async def test_the_palette_asks_for_the_latency_and_opens_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    options: list[dict[str, str]] = []
    go_on = threading.Event()

    def set_up(
        targets: object, devices: object, run: RunRequest, keep: str, time_s: float
    ) -> LimitSetup:
        asked.append(keep)
        options.append(dict(run.overrides))
        return SETUP

    def look(runner: LimitRunner) -> Answer:
        made = search().runner
        runner.rows, runner.closed, runner.found = made.rows, made.closed, made.found
        runner.search = None
        go_on.wait(60)
        return replace(ANSWER, notes=())

    monkeypatch.setattr(limit_setup, "set_up_on", set_up)
    monkeypatch.setattr(limit_runner.LimitRunner, "run", look)
    fake = fakes.FakeController()
    fake.interval_s = 1.0  # type: ignore[attr-defined]
    fake.bind = False
    app = IopstuiApp(
        Backend(lambda path: fake, lambda: fakes.DEVICES, fakes.JOBS,
                conditions=lambda session: (fakes.ON_DISK, RunRequest())),
        FirstView(["/dev/nvme0n1"], fakes.FIRST_JOB, {"runtime": "5", "bs": "8k"},
                  run_at_once=False), Appearance(UTF8, "dark"),
    )  # fmt: skip
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await do(pilot, "limit")
        await settle(pilot)
        assert shows(app, "Runs mixed-4k at one rate after another")
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        await settle(pilot)
        assert asked == ["clat.p99<=1ms"] and isinstance(app.screen, LimitPage)
        # the search decides how long it runs
        assert options == [{"bs": "8k"}]
        assert shows(app, "P99 against rate (I/Os per second)") and shows(app, "x Stop")
        await pilot.press("escape")
        # the search goes on, and nothing else may measure meanwhile
        await pilot.press("w")
        await settle(pilot)
        assert shows(app, "the search for a limit is running; r stops it")
        await do(pilot, "limit")
        go_on.set()
        while not shows(app, "918 to 977/s (95 %)"):
            fake.tick()
            await pilot.pause()
        assert shows(app, "n New search")
        await pilot.press("n")
        await settle(pilot)
        assert shows(app, "Latency to keep")


async def test_a_session_without_conditions_looks_for_none() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await do(pilot, "limit")
        await settle(pilot)
        assert shows(app, "this session cannot search for a limit")
