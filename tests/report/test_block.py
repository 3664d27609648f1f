"""Blocks of frames, joined, are what the same frames are one by one: each class that is joined is
held against itself fed frame by frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
import recordings as made
from hypothesis import given
from hypothesis import strategies as st
from nearly import assert_nearly
from session_frames import whole_frames

from iopstui.model.fio.interval import FioInterval
from iopstui.model.metrics.frame import FINAL, PARTIAL, RAMP, SOME_HOSTS, Frame
from iopstui.model.metrics.mark_intervals import MarkIntervals, middle_of_frame
from iopstui.model.metrics.run_history import RunHistory
from iopstui.model.metrics.summary import FramesTotal
from iopstui.recording import layout as form
from iopstui.report.folding import series
from iopstui.report.folding.block import Block
from iopstui.report.folding.run import BUSY, COMPLETED, Run

# a mixed run; one with a ramp; one of several jobs; one whose latencies are not measured
RUNS = ("3.33-p-mixed", "3.42-e-ramp", "3.42-a-randread-grp", "3.1-g5-enospc-run")
DURATION = 30.0
DEVICES = made.TARGET.opened
HEADER = form.Header("", "", "", "", 0.0, made.TARGET)

Cuts = st.lists(st.booleans(), min_size=12, max_size=12)


def pieces(frames: Sequence[Frame], cuts: Sequence[bool]) -> list[list[Frame]]:
    """The frames in one or more groups."""
    found: list[list[Frame]] = [[]]
    for place, frame in enumerate(frames):
        if found[-1] and cuts[place % len(cuts)]:
            found.append([])
        found[-1].append(frame)
    return found


def blocks(frames: Sequence[Frame], cuts: Sequence[bool]) -> list[Block]:
    found = []
    for group in pieces(frames, cuts):
        block = Block(HEADER, DURATION)
        for frame in group:
            block.add(frame)
        found.append(block)
    return found


def figures_of(run: Run) -> dict[str, Any]:
    devices = {"": run.device, **run.devices}
    return {
        "frames": run.total.frames, "ios": run.total.ios, "bytes": run.total.bytes,
        "rows": [run.total.row(index) for index in range(4)],
        "begin": run.begin, "end": run.end, "bins_of": run.bins_of, "latencies": run.latencies(),
        "bins": run.bins, "all": run.all_bins, "order": [*run.all_bins],
        "devices": {name: (one.ios, one.mean(COMPLETED), one.mean(BUSY))
                    for name, one in devices.items()},
        "probed": [(kind, one.bins, waited and waited.bins)
                   for kind, one, waited in run.probe.parts()],
        "probed_s": run.probe.seconds, "doubtful": run.probe.doubtful,
    }  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
@given(cuts=Cuts)
def test_a_run(name: str, cuts: list[bool]) -> None:
    frames = whole_frames(name, True)
    whole, joined = Run(1), Run(1)
    for frame in frames:
        whole.add(frame, made.TARGET.tree)
    for block in blocks(frames, cuts):
        joined.join(block.runs[1])
    assert_nearly(figures_of(joined), figures_of(whole))
    assert whole.max_ns and whole.probe.seconds and whole.device.ios


@pytest.mark.parametrize("name", RUNS)
@given(cuts=Cuts)
def test_its_row(name: str, cuts: list[bool]) -> None:
    frames = whole_frames(name)
    whole, joined = RunHistory(DEVICES), RunHistory(DEVICES)
    for history in (whole, joined):
        history.started(1, "j", "randread 4k")
    for frame in frames:
        whole.frame(frame)
    for block in blocks(frames, cuts):
        joined.figures(1, block.figures[1])
    assert_nearly([*map(asdict, joined.rows)], [*map(asdict, whole.rows)])
    assert whole.rows[0].iops and whole.rows[0].util is not None


def follow(
    joined: MarkIntervals, frames: Sequence[Frame], start: float, cuts: Sequence[bool]
) -> None:
    """Whose middle is before the stretch's start is a block of its own (folding.py)."""
    early = [frame for frame in frames if middle_of_frame(frame) < start]
    for frame in early:
        alone = blocks([frame], cuts)[0]
        joined.combined(alone.measured, alone.first)
    rest = [frame for frame in frames if frame not in early]
    for block in blocks(rest, cuts) if rest else ():
        joined.combined(block.measured, block.first)


@given(cuts=Cuts, mark=st.floats(0.0, 5.0))
def test_stretches(cuts: list[bool], mark: float) -> None:
    """A mark comes between two frames, and what began long before it is not behind it."""
    frames = whole_frames(RUNS[2])
    whole, joined = MarkIntervals(DEVICES), MarkIntervals(DEVICES)
    after = next((n for n, frame in enumerate(frames) if frame.t >= mark), len(frames))
    for frame in frames[:after]:
        whole.frame(frame)
    follow(joined, frames[:after], 0.0, cuts)
    for one in (whole, joined):
        one.mark(mark, "here")
    for frame in frames[after:]:
        whole.frame(frame)
    follow(joined, frames[after:], mark, cuts)
    assert_nearly([*map(asdict, joined.all)], [*map(asdict, whole.all)])


def test_what_lies_mostly_before_a_mark_is_not_behind_it() -> None:
    frame = whole_frames(RUNS[2])[2]
    for t, count in ((frame.t - 0.9, 1), (frame.t - 0.1, 0)):
        found = MarkIntervals(DEVICES)
        found.mark(t, "here")
        block = blocks([frame], [False])[0]
        found.combined(block.measured, block.first)
        assert len(found.all) == count


@pytest.mark.parametrize("name", RUNS)
@given(cuts=Cuts)
def test_heat_and_series(name: str, cuts: list[bool]) -> None:
    # with a time in which nothing was measured
    frames = [replace(f, t=f.t + (9 if n > 1 else 0)) for n, f in enumerate(whole_frames(name))]
    whole, joined = Block(HEADER, DURATION), Block(HEADER, DURATION)
    for frame in frames:
        whole.add(frame)
    for block in blocks(frames, cuts):
        joined.heat.join(block.heat)
        series.extend(joined.series, HEADER.interval_s, block.series)
    assert joined.heat.cells == whole.heat.cells and whole.heat.cells
    for column in series.SERIES:
        assert_nearly(list(joined.series[column]), list(whole.series[column]))
    assert any(map(math.isnan, whole.series["seconds"]))


def test_an_idle_end_counts_only_where_there_is_nothing_else() -> None:
    """fio ended in the last interval: the device did nothing in most of it."""
    busy = whole_frames(RUNS[0])[:3]
    end = replace(busy[2], flags=frozenset({FINAL, PARTIAL}))
    for frames in ([*busy[:2], end], [end]):
        whole, joined, history, row = Run(1), Run(1), RunHistory(DEVICES), RunHistory(DEVICES)
        for frame in frames:
            whole.add(frame, made.TARGET.tree)
            history.frame(frame)
            one = blocks([frame], [False])[0]
            joined.join(one.runs[1])
            row.figures(1, one.figures[1])
        assert_nearly(figures_of(joined), figures_of(whole))
        assert row.rows[0].util == pytest.approx(history.rows[0].util)
        assert whole.device.mean(BUSY) is not None


def test_sums_of_many_hosts_are_those_of_seconds_with_all() -> None:
    frames = whole_frames(RUNS[0])[1:5]
    some = [
        replace(f, flags=f.flags | {SOME_HOSTS}) if n in (0, 2) else f for n, f in enumerate(frames)
    ]
    whole, joined = RunHistory(DEVICES), RunHistory(DEVICES)
    for frame in some:
        whole.frame(frame)
        joined.figures(1, blocks([frame], [False])[0].figures[1])
    assert_nearly(asdict(joined.rows[0]), asdict(whole.rows[0]))


def test_a_row_that_began_again_forgets_what_came_before() -> None:
    def interval(ios: int, reset: bool, by: str) -> FioInterval:
        first = whole_frames(RUNS[0])[1].fio
        assert first is not None
        job = replace(first.jobs[0], ios=ios, bytes=10 * ios, reset=reset, counted_by=by)
        return replace(first, jobs=(job,))

    intervals = [interval(5, False, "bytes"), interval(7, True, "samples"),
                 interval(2, False, "samples")]  # fmt: skip
    whole, joined = FramesTotal(), FramesTotal()
    for one in intervals:
        whole.add(one)
        part = FramesTotal()
        part.add(one)
        joined.join(part)
    assert joined.row(0) == whole.row(0) == (9, 90, frozenset({"samples"}))
    assert joined.frames == 3


def test_ramps_are_in_these_runs() -> None:
    assert any(RAMP in frame.flags for frame in whole_frames("3.42-e-ramp"))
