"""A sweep on a fleet's screen: its form, its page, its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from test_app import screen_text, settle, shows
from test_experiment_view import unbound_keys
from test_fleet_screen import (
    JOB,
    START_S,
    Runs,
    four_hosts,
    frame,
    make_app,
    wait_until,
)
from textual.pilot import Pilot

from iopstui.features.fleet.controller import FleetController
from iopstui.features.fleet.fleet_events import FleetEvent, FleetRunFinished, FleetRunStarted
from iopstui.features.fleet.host_sweep import SweepEvents, host_point
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.screen.app import FleetApp
from iopstui.model.experiment.host_sweep import HostPlan, HostPoint
from iopstui.model.experiment.plan import expand_plan, parse_axis
from iopstui.ui.draw.style import UTF8
from iopstui.ui.experiment.screen import full_text
from iopstui.ui.state.experiment import ExperimentState


def plan(axis: str) -> HostPlan:
    return HostPlan((JOB,), {}, (parse_axis(axis),), settle=0, measure=9)


def point(hosts: int, seconds: int = 3) -> HostPoint:
    """Hosts that slow each other down: contention 2 %, coherency 0.5 %."""
    merger = Merger()
    host_iops = 10_000 / (1 + 0.02 * (hosts - 1) + 0.005 * hosts * (hosts - 1))
    for at in range(hosts):
        for t in range(1, seconds + 1):
            # equal hosts: only the scaling law makes a difference
            merger.feed(f"node{at + 1:02d}", frame(0, t, int(host_iops), 300_000))
    list(merger.finish())
    return host_point(hosts, hosts, merger)


def tell_sweep(runs: Runs, axis: str) -> None:
    """All points of a sweep."""
    swept = SweepEvents(plan(axis), runs.tell)
    for step in expand_plan(plan(axis)):
        swept.begin(step)
        swept.finish(step, point(int(step.settings[0].value)))
    swept.end()


def plan_text(app: FleetApp) -> str:
    """The text below the form's fields."""
    return str(getattr(app.screen, "plan_text", ""))


def recorded(names: list[str]) -> tuple[FleetApp, Runs]:
    """The screen of a replay, on which no sweep can be started."""
    runs = Runs(names)
    return FleetApp(FleetController(runs, "node[01-99]", JOB), (), JOB, replay=True), runs


async def test_the_form_starts_a_sweep_and_its_page_fills_up() -> None:
    app, runs = make_app(four_hosts())
    runs.live = True
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        runs.play(6)
        await settle(pilot)
        titles = [title for title, *_ in app.actions.palette("dashboard")]
        assert "Sweep" in titles and "Compare" not in titles
        await pilot.press("w")
        await wait_until(pilot, lambda: "4 points, about" in plan_text(app))
        await wait_until(pilot, lambda: "node01, node02, node03, node04" in plan_text(app))
        await pilot.press("tab", "tab", *"hosts=1,5")
        await wait_until(pilot, lambda: "hosts=5: there are 4 hosts" in plan_text(app))
        await pilot.press("enter", "backspace", "4", "tab", "tab", "tab", "9")
        await wait_until(pilot, lambda: "2 points, about" in plan_text(app))
        await pilot.press("enter")
        await wait_until(pilot, lambda: bool(runs.swept))
        (asked,) = runs.swept
        assert (asked.jobs, asked.axes) == ((JOB,), (parse_axis("hosts=1,4"),))
        assert asked.options == {"runtime": "9000ms"} and asked.measure == 9
        runs.tell(FleetRunFinished("stopped", 130))
        swept = SweepEvents(asked, runs.tell)
        first, second = expand_plan(asked)
        swept.begin(first)
        runs.tell(FleetRunStarted(2, tuple(four_hosts()[:1]), START_S + 20.0, JOB))
        await wait_until(pilot, lambda: shows(app, "point 1 of 2"))
        swept.finish(first, point(1))
        swept.begin(second)
        await wait_until(pilot, lambda: shows(app, "point 2 of 2"))
        assert shows(app, "it needs 4 points, but there is 1 point")
        assert unbound_keys(app.screen) == []
        # the sweep continues without its page, and no key disturbs it
        await pilot.press("escape", "right_square_bracket", "K")
        await wait_until(pilot, lambda: shows(app, "is running; x stops it"))
        assert runs.asked == 0 and shows(app, "Show the sweep") and shows(app, "idle")
        await pilot.press("r")
        assert runs.stops == 1
        await pilot.press("w")
        swept.end(stopped=True)
        await wait_until(pilot, lambda: shows(app, "stopped after 1 of 2 points"))
        await pilot.press("x")
        # a sweep that a key has stopped has not failed
        assert runs.stops == 1 and app.fleet.last is not None and app.fleet.last.code == 0
        await pilot.press("n")
        await wait_until(pilot, lambda: "about" in plan_text(app))
        await pilot.press("escape", "q")
    assert app.return_code == 0


async def test_an_axis_of_the_command_line_runs_at_once() -> None:
    runs = Runs(four_hosts())
    runs.live = True
    app = FleetApp(FleetController(runs, "node[01-04]", JOB), (), JOB, plan=plan("hosts=1,2"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert runs.ran == [] and [one.points for one in runs.swept] == [2]
        swept = SweepEvents(runs.swept[0], runs.tell)
        swept.begin(next(expand_plan(runs.swept[0])))
        await wait_until(pilot, lambda: shows(app, "point 1 of 2"))
        await pilot.press("x")
        assert runs.stops == 1


async def test_one_host_sweeps_options_and_hosts_that_are_watched_nothing() -> None:
    alone, runs = make_app(four_hosts()[:1])
    runs.live = True
    async with alone.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("w")
        await wait_until(pilot, lambda: "7 points" in plan_text(alone))
        await pilot.press("escape", "q")
    watched, runs = make_app(four_hosts(), None)
    runs.live = True
    async with watched.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("w")
        assert "a sweep needs a job" in screen_text(watched)
        await pilot.press("q")


async def test_hovering_a_point_shows_its_values_and_a_click_sorts() -> None:
    app, runs = recorded(four_hosts())
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        tell_sweep(runs, "hosts=1,2,4")
        await settle(pilot)
        await pilot.press("w")
        await wait_until(pilot, lambda: shows(app, "IOPS against hosts"))
        rows = screen_text(app).split("\n")
        top = next(y for y, row in enumerate(rows) if "IOPS against hosts" in row)
        x, y = next((row.index("o", 8), y) for y, row in enumerate(rows)
                    if y > top + 1 and "o" in row[8:76])  # fmt: skip
        await pilot.hover(offset=(x, y))
        await wait_until(pilot, lambda: shows(app, "hosts "))
        y = next(y for y, row in enumerate(rows) if "a host" in row and "linear" in row)
        await pilot.click(offset=(rows[y].index("a host") + 2, y))
        await wait_until(pilot, lambda: shows(app, "by a host, largest first"))


def swept(whole: HostPlan) -> ExperimentState:
    """The state after a sweep over hosts."""
    events: list[FleetEvent] = []
    sweep = SweepEvents(whole, events.append)
    for step in expand_plan(whole):
        sweep.begin(step)
        sweep.finish(step, point(int(step.settings[0].value)))
    sweep.end()
    state = ExperimentState(whole, 0.0)
    for event in events:
        state.apply(event)  # type: ignore[arg-type]
    return state


def test_what_is_printed_after_the_screen_fits_into_80_columns() -> None:
    state = swept(plan("hosts=1,2,4,8"))
    lines = full_text(state, "node[01-08]", UTF8, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "randread-4k on node[01-08]: sweep: done, 4 points"
    head = next(line for line in lines if "IOPS" in line and "#" in line).split()
    assert head[:2] == ["#", "hosts"] and head[-1] == "linear"
    assert lines[-1].split()[:2] == ["4", "8"]


@pytest.mark.parametrize(("repeats", "advice"), [
    (1, "Next: n opens the form to measure again, with Repeats 3 for 95 % intervals"), (3, ""),
])  # fmt: skip
def test_the_advice_to_repeat_promises_intervals_and_no_scaling_law(
    repeats: int, advice: str
) -> None:
    state = swept(replace(plan("hosts=1,2"), repeats=repeats))
    law = "no scaling law fits: it needs 4 points, but there are 2 points"
    assert state.sentences()[0] == law, "repeats are no other points"
    assert state.repeat_advice == advice


SCENES = {"120x36-24-hosts": (120, 36)}


@pytest.mark.parametrize("name", SCENES)
def test_looks(name: str, snap_compare: Callable[..., bool]) -> None:
    app, runs = recorded([f"node{n:02d}" for n in range(1, 25)])
    app.fleet._own_cpu = lambda: 2.5  # type: ignore[method-assign]

    async def before(pilot: Pilot[int]) -> None:
        await settle(pilot)
        runs.tell(FleetRunStarted(1, tuple(runs.names), float(START_S), JOB))
        tell_sweep(runs, "hosts=1,2,4,8,16,24")
        await settle(pilot)
        await pilot.press("w")
        await wait_until(pilot, lambda: shows(app, "6 points"))

    assert snap_compare(app, terminal_size=SCENES[name], run_before=before)
