"""Frozen: one second in all panes, and steps back and forth in time."""

from __future__ import annotations

import re

import pytest
import ui_fakes as fakes
from evidence_frames import frame
from test_app import WIDE, make, running, screen_text, settle, shows

from iopstui import format as f
from iopstui.events import FindingReported, FrameReady
from iopstui.model.findings.finding import Finding
from iopstui.ui.app import IopstuiApp
from iopstui.ui.dialogs.slow_list import LiveRows
from iopstui.ui.draw.charts.chart import TimeWindow
from iopstui.ui.state.findings import MAX_SECONDS, SecondHistory
from iopstui.ui.state.live import LiveState


def state_after(seconds: int) -> LiveState:
    state = LiveState(("nvme0n1",))
    for t in range(1, seconds + 1):
        state.apply(FrameReady(float(t), frame(t=float(t))))
    return state


def times(moments: SecondHistory) -> list[float]:
    return [moment.t for moment in moments]


def test_only_the_last_minutes_are_kept() -> None:
    remaining = times(state_after(MAX_SECONDS + 7).recent_seconds)
    assert remaining == [float(t) for t in range(8, MAX_SECONDS + 8)]


def test_moments_are_found_by_step_and_by_time() -> None:
    moments = state_after(30).recent_seconds
    steps = [(15.0, 0), (15.4, 1), (15.0, -99), (15.0, 99)]
    by_step = [moments.near(t, step) for t, step in steps]
    assert [moment.t for moment in by_step if moment is not None] == [15.0, 16.0, 1.0, 30.0]
    by_time = [moments.at(t) for t in (5.0, 5.2, -1e9, 1e9)]
    assert [moment.t for moment in by_time if moment is not None] == [5.0, 6.0, 1.0, 30.0]
    assert SecondHistory().near(1.0, 0) is None and SecondHistory().at(1.0) is None


def test_percentiles_are_kept_without_their_histograms() -> None:
    fake, state = fakes.FakeController(), LiveState(("nvme0n1",))
    fake.start(state.apply)
    fake.run_job("mixed-4k", {})
    fake.tick(3)
    current_frame, last = state.frame, state.recent_seconds.near(3.0, 0)
    assert (
        current_frame is not None and current_frame.fio is not None and current_frame.fio.total.bins
    )
    assert last is not None and last.frame.fio is not None and last.run.fio is last.frame
    assert not last.frame.fio.total.bins and not last.frame.fio.directions["read"].bins
    assert last.frame.fio.total.percentiles == current_frame.fio.total.percentiles


def test_a_snapshot_does_not_change() -> None:
    state = state_after(5)
    snapshot = state.snapshot()
    state.apply(FrameReady(6.0, frame(t=6.0)))
    state.apply(FindingReported(6.0, Finding("one-cpu", "CPU 1 alone completes", "")))
    state.add_message("info", "frozen")
    state.next_run.note_change("iodepth", "iodepth 64")
    assert times(snapshot.recent_seconds) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert not snapshot.current_findings() and state.current_findings()
    assert snapshot.visible_notice() is None and not snapshot.next_run.pending


def test_now_is_at_the_right_edge_and_the_axis_spans_what_there_is() -> None:
    window, moves = TimeWindow(), 0
    for t in range(1, 301):
        moves += window.follow(float(t), 80, 1.0)
        end = window.start + window.length
        # never more than a few columns are empty at the right, none at the left after ten seconds
        assert t <= end <= t + 0.1 * window.length + 1.0, t
        assert window.length == pytest.approx(min(80.0, max(10.0, end))), t
        assert t < 10 or window.start >= 0.0
    assert moves < 100  # each move draws everything again
    assert window.follow(300.0, 80, 10.0) and window.length == pytest.approx(312.0)


async def test_charts_of_all_widths_have_the_same_times_on_their_axes() -> None:
    app = make()
    async with app.run_test(size=(250, 70)) as pilot:
        await running(app, pilot, 90)
        assert app.dashboard is not None
        axes = {tuple(re.findall(r"\d:\d\d", chart.time.text()))
                for chart in app.dashboard.charts if chart.shown}  # fmt: skip
        # only the last label may be missing for lack of room
        longest = max(axes, key=len)
        assert len(longest) >= 3 and all(labels == longest[: len(labels)] for labels in axes)
        assert all(len(labels) >= len(longest) - 1 for labels in axes)


def test_the_window_moves_back_and_follows_again() -> None:
    window = TimeWindow(start=100.0, length=80.0)
    window.extend_to(130.0)
    assert window.start == 100.0
    window.extend_to(60.0)
    assert window.start < 60.0 < window.start + 80
    assert window.follow(170.0, 80, 1.0) and window.start < 170.0 < window.start + 80


def iops_at(app: IopstuiApp) -> str:
    sample = app.dashboard and app.dashboard.shown_state.fio
    assert sample and sample.fio
    return f.number(sample.fio.total.iops)


async def test_all_panes_show_the_selected_second() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 20)
        assert app.dashboard is not None
        iops = {t: round(app.dashboard.state.recent_seconds.near(float(t), 0).frame.fio.total.iops)  # type: ignore[union-attr]
                for t in (8, 19)}  # fmt: skip
        await pilot.press("left")
        await settle(pilot)
        assert app.dashboard.frozen_at == 19.0 and shows(app, "FROZEN at 0:19")
        assert "┃" in screen_text(app)
        newer = [app.dashboard.panels[name].text() for name in ("fio", "kernel", "cpus")]
        await pilot.press("pageup", "left")
        fake.tick(5)
        await settle(pilot)
        assert app.dashboard.frozen_at == 8.0
        assert shows(app, "FROZEN at 0:08") and shows(app, "0:17 ago")
        assert round(app.dashboard.shown_state.fio.fio.total.iops) == iops[8] != iops[19]  # type: ignore[union-attr]
        assert shows(app, f"⠒⠒ fio {iops_at(app)}")
        older = [app.dashboard.panels[name].text() for name in ("fio", "kernel", "cpus")]
        assert older[0] != newer[0]
        # moves stop at the ends; seconds measured while frozen are not included
        await pilot.press("end", "right")
        await settle(pilot)
        assert app.dashboard.frozen_at == 20.0 and shows(app, "second of the freeze")
        await pilot.press("home", "left")
        await settle(pilot)
        assert app.dashboard.frozen_at == 1.0 and shows(app, "oldest kept second")
        await pilot.press("space")
        await settle(pilot)
        assert not shows(app, "FROZEN") and "┃" not in screen_text(app)
        assert app.dashboard.shown_state.t == 25.0


async def test_the_finding_shown_is_that_of_the_selected_second() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 4)
        fake.sink(FindingReported(4.0, Finding("first", "CPU 1 is full", since=2.0, until=4.0)))
        fake.tick(3)
        fake.sink(
            FindingReported(7.0, Finding("then", "iodepth is not reached", since=5.0, until=7.0))
        )
        fake.tick(2)
        await settle(pilot)
        texts = []
        for keys in (("left",), ("left", "left", "left"), ("home",), ("end",)):
            await pilot.press(*keys)
            await settle(pilot)
            texts.append(app.dashboard and app.dashboard.panels["finding"].text())
        newest, earlier, oldest, end = (str(text) for text in texts)
        assert (
            "(since 0:05)" in newest and "iodepth is not reached" in newest and "1 of 2" in newest
        )
        assert "(since 0:02)" in earlier and "CPU 1 is full" in earlier and "1 of" not in earlier
        assert "No findings: every rule" in oldest and end == newest


async def test_lists_show_the_frozen_second_and_right_returns_to_now() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 6)
        await pilot.press("right")
        await settle(pilot)
        assert app.dashboard is not None and app.dashboard.frozen_at is None
        assert shows(app, "this is now")
        await pilot.press("h", "left", "left")
        await settle(pilot)
        await pilot.press("o")
        await settle(pilot)
        listed = app.screen
        assert isinstance(listed, LiveRows)
        before = listed.body.text().rstrip()
        fake.tick(4)
        await settle(pilot)
        assert listed.body.text().rstrip() == before
