"""A sweep over hosts on a fleet's screen: its form, its page, its keys."""

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
    static_text,
    wait_until,
)
from textual.pilot import Pilot

from iopstui.fleet.fleet_events import FleetRunFinished, FleetRunStarted
from iopstui.fleet.merging.merger import Merger
from iopstui.fleet.scaling_curve import ScalePoint, ScalingCurve, SweepPosition, scale_point
from iopstui.ui.fleet.controller import FleetController
from iopstui.ui.fleet_app import FleetApp


def point(hosts: int, seconds: int = 3) -> ScalePoint:
    """Hosts that slow each other down: contention 2 %, coherency 0.5 %."""
    merger = Merger()
    host_iops = 10_000 / (1 + 0.02 * (hosts - 1) + 0.005 * hosts * (hosts - 1))
    for at in range(hosts):
        for t in range(1, seconds + 1):
            # equal hosts: only the scaling law makes a difference
            merger.feed(f"node{at + 1:02d}", frame(0, t, int(host_iops), 300_000))
    list(merger.finish())
    return scale_point(hosts, merger)


def swept(*counts: int) -> ScalingCurve:
    return ScalingCurve(JOB, counts, None, {n: point(hosts) for n, hosts in enumerate(counts)})


async def test_the_form_starts_a_sweep_and_its_page_fills_up() -> None:
    app, runs = make_app(four_hosts())
    runs.live = True
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        runs.play(6)
        await settle(pilot)
        assert "Sweep over hosts" in [title for title, *_ in app.actions.palette("dashboard")]
        await pilot.press("w")
        await wait_until(pilot, lambda: "4 points, one after another" in static_text(app))
        await pilot.press(*["backspace"] * 7, *"1,5")
        await wait_until(pilot, lambda: "hosts=5: there are 4 hosts" in static_text(app))
        await pilot.press("enter", "backspace", "4", "tab", *["backspace"] * 2, "9", "enter")
        await settle(pilot)
        assert runs.swept == [((1, 4), JOB, {"runtime": "9"})]
        curve = ScalingCurve(JOB, (1, 4))
        runs.tell(FleetRunFinished("stopped", 130))
        runs.tell(curve)
        runs.tell(
            FleetRunStarted(
                2,
                tuple(four_hosts()[:1]),
                START_S + 20.0,
                JOB,
                sweep_position=SweepPosition((1, 4), 0),
            )
        )
        await wait_until(pilot, lambda: shows(app, "point 1 of 2: 1 host"))
        runs.tell(replace(curve, point_number=1, points={0: point(1)}))
        await wait_until(pilot, lambda: shows(app, "point 2 of 2: 4 hosts"))
        assert shows(app, "it needs 4 points, but there is 1 point")
        assert unbound_keys(app.screen) == []
        # it continues without its page, and no key disturbs it
        await pilot.press("escape", "right_square_bracket", "K")
        await wait_until(pilot, lambda: shows(app, "is running; x stops it"))
        assert runs.asked == 0 and shows(app, "show the sweep") and shows(app, "idle")
        await pilot.press("r")
        assert runs.stops == 1
        await pilot.press("w")
        ended = replace(curve, point_number=None, points={0: point(1)}, notes={1: "stopped"},
                        end_reason="stopped", exit_lines=("hosts",))  # fmt: skip
        runs.tell(ended)
        await wait_until(pilot, lambda: shows(app, "1 of 2 points measured, ended early"))
        await pilot.press("x")
        assert (
            runs.stops == 1
            and app.fleet.last is not None
            and app.fleet.last.exit_lines == ("hosts",)
        )
        await pilot.press("n")
        await wait_until(pilot, lambda: "one after another" in static_text(app))
        await pilot.press("escape", "q")
    assert app.return_code == 0


async def test_an_axis_of_the_command_line_runs_at_once_and_one_host_has_none() -> None:
    runs = Runs(four_hosts())
    runs.live = True
    app = FleetApp(FleetController(runs, "node[01-04]", JOB), (), JOB, counts=(1, 2))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert runs.ran == [] and runs.swept == [((1, 2), JOB, {})]
        runs.tell(ScalingCurve(JOB, (1, 2)))
        await wait_until(pilot, lambda: shows(app, "point 1 of 2: 1 host"))
        await pilot.press("x")
        assert runs.stops == 1
    alone, runs = make_app(four_hosts()[:1])
    runs.live = True
    async with alone.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("w")
        assert "needs two hosts or more" in screen_text(alone)
        assert not any("Sweep" in title for title, *_ in alone.actions.palette("dashboard"))


async def test_hovering_a_point_shows_its_values_and_a_click_presses_a_key() -> None:
    app, runs = make_app(four_hosts())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        runs.tell(swept(1, 2, 4))
        await settle(pilot)
        await pilot.press("w")
        await wait_until(pilot, lambda: shows(app, "─ Points ─"))
        rows = screen_text(app).split("\n")
        x, y = next((row.rindex("o"), y) for y, row in enumerate(rows) if y > 3 and "o" in row)
        await pilot.hover(offset=(x, y))
        await wait_until(pilot, lambda: shows(app, "hosts: "))
        assert " IOPS ─" in screen_text(app).split("\n")[2]
        await pilot.hover(offset=(2, 33))
        await wait_until(pilot, lambda: not shows(app, "hosts: "))
        page, foot = app.screen, screen_text(app).split("\n")[-1]
        await pilot.click(offset=(foot.index("Esc"), 35))
        await wait_until(pilot, lambda: app.screen is not page)


SCENES = {"120x36-24-hosts": (120, 36)}


@pytest.mark.parametrize("name", SCENES)
def test_looks(name: str, snap_compare: Callable[..., bool]) -> None:
    app, runs = make_app([f"node{n:02d}" for n in range(1, 25)])
    app.fleet._own_cpu = lambda: 2.5  # type: ignore[method-assign]

    async def before(pilot: Pilot[int]) -> None:
        await settle(pilot)
        runs.tell(FleetRunStarted(1, tuple(runs.names), float(START_S), JOB))
        runs.tell(swept(1, 2, 4, 8, 16, 24))
        await settle(pilot)
        await pilot.press("w")
        await wait_until(pilot, lambda: shows(app, "6 of 6 points measured"))

    assert snap_compare(app, terminal_size=SCENES[name], run_before=before)
