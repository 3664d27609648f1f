"""Joined blocks of frames equal the frames one by one. Each class that can be joined is compared
with an object of the same class that gets every frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
import recordings as made
from hypothesis import given, settings
from hypothesis import strategies as st
from nearly import assert_nearly
from session_frames import whole_frames

from iopstui.features.reports import series
from iopstui.features.reports.blocks import Block
from iopstui.features.reports.run import Run
from iopstui.model.figures.disk import DiskRates
from iopstui.model.fio.interval import FioInterval
from iopstui.model.metrics.frame import (
    APPROX_BW,
    APPROX_IOPS,
    FINAL,
    PARTIAL,
    RAMP,
    SOME_HOSTS,
    Frame,
)
from iopstui.model.metrics.run_figures import MarkIntervals, middle_of_frame
from iopstui.model.metrics.run_history import RunHistory
from iopstui.model.metrics.summary import FramesTotal
from iopstui.recording import layout as form

# a mixed run; one with a ramp; one with several jobs; one without measured latencies
RUNS = ("3.33-p-mixed", "3.42-e-ramp", "3.42-a-randread-grp", "3.1-g5-enospc-run")
DURATION = 30.0
DEVICES = made.TARGET.opened
HEADER = form.Header("", "", "", "", 0.0, made.TARGET)

# each example adds up every frame of a run twice
few_examples = settings(max_examples=10)
Cuts = st.lists(st.booleans(), min_size=12, max_size=12)


def split_frames(frames: Sequence[Frame], cuts: Sequence[bool]) -> list[list[Frame]]:
    """The frames in one or more groups."""
    groups: list[list[Frame]] = [[]]
    for place, frame in enumerate(frames):
        if groups[-1] and cuts[place % len(cuts)]:
            groups.append([])
        groups[-1].append(frame)
    return groups


def blocks(frames: Sequence[Frame], cuts: Sequence[bool]) -> list[Block]:
    all_blocks = []
    for group in split_frames(frames, cuts):
        block = Block(HEADER, DURATION)
        for frame in group:
            block.add(frame)
        all_blocks.append(block)
    return all_blocks


def figures_of(run: Run) -> dict[str, Any]:
    devices = {"": run.measured.device, **run.measured.layers}
    return {
        "frames": run.total.frames, "ios": run.total.ios, "bytes": run.total.bytes,
        "rows": [run.total.row(index) for index in range(4)],
        "begin": run.begin, "end": run.end, "bins_of": run.bins_of, "latencies": run.latencies(),
        "bins": run.bins, "all": run.all_bins, "order": [*run.all_bins],
        "devices": {name: (device.ios, device.mean(DiskRates.ios_s), device.mean(DiskRates.util))
                    for name, device in devices.items()},
        "probed": [(kind, total.bins, waited and waited.bins)
                   for kind, total, waited in run.probe.parts()],
        "probed_s": run.probe.seconds, "doubtful": run.probe.doubtful,
    }  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
@few_examples
@given(cuts=Cuts)
def test_joined_blocks_equal_the_run(name: str, cuts: list[bool]) -> None:
    frames = whole_frames(name, True)
    single, joined = Run(1), Run(1)
    for frame in frames:
        single.add(frame, made.TARGET.tree)
    for block in blocks(frames, cuts):
        joined.join(block.runs[1])
    assert_nearly(figures_of(joined), figures_of(single))
    assert single.max_ns and single.probe.seconds and single.measured.device.ios


@pytest.mark.parametrize("name", RUNS)
@few_examples
@given(cuts=Cuts)
def test_joined_blocks_equal_the_row_of_the_run(name: str, cuts: list[bool]) -> None:
    frames = whole_frames(name)
    single, joined = RunHistory(), RunHistory()
    for history in (single, joined):
        history.start_run(1, "j", "randread 4k")
    for frame in frames:
        single.add_frame(frame)
    for block in blocks(frames, cuts):
        joined.add_figures(1, block.runs[1].measured)
    assert_nearly([*map(asdict, joined.rows)], [*map(asdict, single.rows)])
    assert single.rows[0].iops and single.rows[0].util is not None


def add_block(intervals: MarkIntervals, block: Block) -> None:
    for figures in block.figures:
        intervals.add_figures(figures, block.first)


def join_blocks(
    joined: MarkIntervals, frames: Sequence[Frame], start: float, cuts: Sequence[bool]
) -> None:
    """A frame whose middle is before ``start`` is a block of its own (block_builder.py)."""
    early = [frame for frame in frames if middle_of_frame(frame) < start]
    for frame in early:
        alone = blocks([frame], cuts)[0]
        add_block(joined, alone)
    later_frames = [frame for frame in frames if frame not in early]
    for block in blocks(later_frames, cuts) if later_frames else ():
        add_block(joined, block)


@given(cuts=Cuts, mark=st.floats(0.0, 5.0))
def test_joined_blocks_equal_the_mark_intervals(cuts: list[bool], mark: float) -> None:
    """A mark is set between two frames. Frames that began long before it do not count after it."""
    frames = whole_frames(RUNS[2])
    single, joined = MarkIntervals(), MarkIntervals()
    after = next((n for n, frame in enumerate(frames) if frame.t >= mark), len(frames))
    for frame in frames[:after]:
        single.add_frame(frame)
    join_blocks(joined, frames[:after], 0.0, cuts)
    for intervals in (single, joined):
        intervals.add_mark(mark, "here")
    for frame in frames[after:]:
        single.add_frame(frame)
    join_blocks(joined, frames[after:], mark, cuts)
    assert_nearly([*map(asdict, joined.all)], [*map(asdict, single.all)])


def test_a_frame_mostly_before_a_mark_is_not_in_its_interval() -> None:
    frame = whole_frames(RUNS[2])[2]
    for t, count in ((frame.t - 0.9, 1), (frame.t - 0.1, 0)):
        intervals = MarkIntervals()
        intervals.add_mark(t, "here")
        block = blocks([frame], [False])[0]
        add_block(intervals, block)
        assert len(intervals.all) == count


@pytest.mark.parametrize("name", RUNS)
@few_examples
@given(cuts=Cuts)
def test_joined_blocks_equal_heat_map_and_series(name: str, cuts: list[bool]) -> None:
    # with a gap
    frames = [replace(f, t=f.t + (9 if n > 1 else 0)) for n, f in enumerate(whole_frames(name))]
    single, joined = Block(HEADER, DURATION), Block(HEADER, DURATION)
    for frame in frames:
        single.add(frame)
    for block in blocks(frames, cuts):
        joined.heat.join(block.heat)
        series.extend(joined.series, HEADER.interval_s, block.series)
    assert joined.heat.cells == single.heat.cells and single.heat.cells
    for column in series.SERIES:
        assert_nearly(list(joined.series[column]), list(single.series[column]))
    assert any(map(math.isnan, single.series["seconds"]))


def test_an_idle_end_counts_only_without_other_frames() -> None:
    """fio ended in the last interval: the device did nothing in most of it."""
    busy = whole_frames(RUNS[0])[:3]
    end = replace(busy[2], flags=frozenset({FINAL, PARTIAL}))
    for frames in ([*busy[:2], end], [end]):
        single, joined, history, row = Run(1), Run(1), RunHistory(), RunHistory()
        for frame in frames:
            single.add(frame, made.TARGET.tree)
            history.add_frame(frame)
            block = blocks([frame], [False])[0]
            joined.join(block.runs[1])
            row.add_figures(1, block.runs[1].measured)
        assert_nearly(figures_of(joined), figures_of(single))
        assert row.rows[0].util == pytest.approx(history.rows[0].util)
        assert single.measured.device.mean(DiskRates.util) is not None


def test_sums_of_hosts_use_seconds_with_all_hosts() -> None:
    frames = whole_frames(RUNS[0])[1:5]
    some = [
        replace(f, flags=f.flags | {SOME_HOSTS}) if n in (0, 2) else f for n, f in enumerate(frames)
    ]
    single, joined = RunHistory(), RunHistory()
    for frame in some:
        single.add_frame(frame)
        joined.add_figures(1, blocks([frame], [False])[0].runs[1].measured)
    assert_nearly(asdict(joined.rows[0]), asdict(single.rows[0]))


def test_a_reset_row_discards_earlier_counts() -> None:
    def interval(ios: int, reset: bool, by: str) -> FioInterval:
        first = whole_frames(RUNS[0])[1].fio
        assert first is not None
        job = replace(first.jobs[0], ios=ios, bytes=10 * ios, reset=reset, counted_by=by)
        return replace(first, jobs=(job,))

    intervals = [interval(5, False, "bytes"), interval(7, True, "samples"),
                 interval(2, False, "samples")]  # fmt: skip
    single, joined = FramesTotal(), FramesTotal()
    for fio_interval in intervals:
        single.add(fio_interval)
        part = FramesTotal()
        part.add(fio_interval)
        joined.join(part)
    assert joined.row(0) == single.row(0) == (9, 90, frozenset({"samples"}))
    assert joined.frames == 3


def test_the_recordings_include_a_ramp() -> None:
    assert any(RAMP in frame.flags for frame in whole_frames("3.42-e-ramp"))


def test_rows_whose_rates_do_not_hold_are_gaps_in_the_charts() -> None:
    block = Block(HEADER, DURATION)
    row = next(frame for frame in whole_frames("3.33-p-mixed") if frame.fio is not None)
    for number, marks in enumerate((set(), {APPROX_IOPS}, {APPROX_BW})):
        block.add(replace(row, t=row.t + number, flags=frozenset(marks)))
    gaps = {name: [math.isnan(value) for value in block.series[name]] for name in ("fio", "bw")}
    assert gaps == {"fio": [False, True, False], "bw": [False, True, True]}
