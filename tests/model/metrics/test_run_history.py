"""Runs as rows: what was changed, what was measured, and the difference to other runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from evidence_frames import disk, fio, frame, seconds
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model import histogram
from iopstui.model.metrics.frame import FINAL, PARTIAL, RAMP, SOME_HOSTS, Frame
from iopstui.model.metrics.run_history import (
    DONE,
    FAILED,
    RUNS,
    STOPPED,
    UNCHANGED_TEXT,
    RunHistory,
    RunRow,
    percent_change,
)

TITLE = "randread 4k  QD {} × {} jobs"
RATES = st.lists(
    st.tuples(st.integers(0, 10**6), st.floats(0.01, 2.0), st.floats(0, 500)), min_size=1,
    max_size=8,
)  # fmt: skip


def play(history: RunHistory, step: int, iops: float | None, depth: int = 8, **job: object) -> None:
    """A whole run of three seconds."""
    job = {"job": "randread-4k", "title": TITLE.format(depth, 1), "ended": STOPPED, **job}
    history.start_run(step, str(job["job"]), str(job["title"]), job.get("options"))  # type: ignore[arg-type]
    if iops is not None:
        for one in seconds(3, interval=fio(iops), step=step, disks={"vda": disk(iops)}):
            history.add_frame(one)
    history.finish_run(step, str(job["ended"]))


def runs(*iops: float | None) -> list[RunRow]:
    history = RunHistory()
    for step, one in enumerate(iops, 1):
        play(history, step, one, 8 * step)
    return history.rows


@given(RATES)
def test_means_are_weighted_by_time_and_ramps_left_out(
    parts: list[tuple[int, float, float]],
) -> None:
    history = RunHistory()
    history.start_run(1, "j", "t")
    history.add_frame(frame(0.5, fio(9e9), flags=frozenset({RAMP}), disks={"vda": disk(9e9)}))
    for n, (ios, length, aqu) in enumerate(parts):
        flags = frozenset({PARTIAL}) if length < 0.5 else frozenset()
        interval = replace(fio(0, seconds=length), seconds=length)
        interval = replace(interval, total=replace(interval.total, ios=ios, bytes=512 * ios))
        history.add_frame(frame(n + 1, interval, flags=flags, disks={"vda": disk(aqu=aqu)}))
    (row,) = history.rows
    whole = sum(length for _, length, _ in parts)
    assert row.seconds == pytest.approx(whole)
    assert row.iops == pytest.approx(sum(ios for ios, _, _ in parts) / whole)
    assert row.bw == pytest.approx(512 * sum(ios for ios, _, _ in parts) / whole)
    # each frame's kernel interval is a second
    assert row.aqu_sz == pytest.approx(sum(aqu for _, _, aqu in parts) / len(parts))


@given(st.lists(st.lists(st.integers(0, 10**9), min_size=1, max_size=30), min_size=1, max_size=5))
def test_percentiles_are_those_of_all_ios_together(latencies: list[list[int]]) -> None:
    history = RunHistory()
    history.start_run(1, "j", "t")
    for n, part in enumerate(latencies):
        bins: dict[int, int] = {}
        for one in part:
            bins[histogram.bucket_key(one)] = bins.get(histogram.bucket_key(one), 0) + 1
        interval = fio(len(part))
        interval = replace(interval, total=replace(interval.total, bins=bins))
        history.add_frame(frame(n + 1, interval))
    (row,) = history.rows
    ranked = sorted(histogram.bucket_key(one) for part in latencies for one in part)
    assert row.p50_ns == ranked[-(-len(ranked) // 2) - 1]
    assert row.p99_ns is not None and row.p50_ns <= row.p99_ns <= ranked[-1]


def test_what_was_not_measured_is_not_zero() -> None:
    history = RunHistory()
    history.start_run(1, "j", "t")
    (row,) = history.rows
    figures = (row.seconds, row.iops, row.bw, row.p50_ns, row.p99_ns, row.util, row.aqu_sz)
    assert figures == (None,) * 7 and row.ended == RUNS
    history.add_frame(frame(1, fio(0.0)))
    (row,) = history.rows
    assert row.iops == 0 and row.p99_ns is None and row.util is None


def test_the_idle_rest_behind_fio_s_last_second_is_not_the_device_s() -> None:
    history = RunHistory()
    history.start_run(1, "j", "t")
    history.add_frame(frame(1, fio(100), disks={"vda": disk(util=90.0)}))
    last = fio(100, seconds=0.1)
    flags = frozenset({FINAL, PARTIAL})
    history.add_frame(frame(2, last, flags=flags, disks={"vda": disk(util=1.0)}))
    (row,) = history.rows
    assert row.util == 90 and row.seconds == pytest.approx(1.1)


@given(st.floats(1e-3, 1e9), st.floats(0, 1e9))
def test_a_change_is_what_the_first_must_grow_by(before: float, now: float) -> None:
    percent = percent_change(before, now)
    assert percent is not None
    assert before * (1 + percent / 100) == pytest.approx(now, abs=1e-9 * max(before, now))


@pytest.mark.parametrize(("before", "now"), [(None, 1.0), (1.0, None), (0.0, 1.0)])
def test_nothing_is_no_reference(before: float | None, now: float | None) -> None:
    assert percent_change(before, now) is None


def test_each_run_is_held_against_the_one_before_and_the_base() -> None:
    history = RunHistory()
    for step, iops in enumerate((1000.0, 1500.0, 750.0), 1):
        play(history, step, iops, 8 * step)
        if step == 1:
            assert history.toggle_base() == history.rows[0] and history.base == 1
    assert [row.to_before for row in history.rows] == [None, 50.0, -50.0]
    assert [row.to_base for row in history.rows] == [None, 50.0, -25.0]
    assert history.toggle_base() is not None and history.base == 3
    assert [row.to_base for row in history.rows] == [pytest.approx(100 / 3), 100.0, None]
    assert history.toggle_base() is None and history.base is None
    assert [row.to_base for row in history.rows] == [None] * 3


def test_another_sequence_of_random_blocks_is_no_change() -> None:
    history = RunHistory()
    for step, seed in enumerate(("", "11", "12"), 1):
        blocks = {"randrepeat": "0", "randseed": seed} if seed else {}
        play(history, step, 1.0, options={"direct": "1", **blocks})
    assert [row.what for row in history.rows[1:]] == [UNCHANGED_TEXT] * 2


def test_a_run_under_way_is_held_against_the_one_before_but_is_no_base() -> None:
    history = RunHistory()
    assert history.toggle_base() is None
    play(history, 1, 1000.0)
    history.start_run(2, "randread-4k", TITLE.format(16, 1))
    history.add_frame(frame(5, fio(1200.0), step=2))
    assert history.rows[-1].to_before == pytest.approx(20) and history.rows[-1].ended == RUNS
    found = history.toggle_base()
    assert found is not None and found.step == 1


def test_what_was_changed_is_told_in_words() -> None:
    first, second, third = runs(1.0, 1.0, 1.0)
    assert first.changed is None and first.what == TITLE.format(8, 1)
    assert second.changed == ("iodepth 8 → 16",) and third.changed == ("iodepth 16 → 24",)
    history = RunHistory()
    play(history, 1, 1.0)
    play(history, 2, 1.0)
    assert history.rows[1].what == "the same again"
    play(history, 3, 1.0, job="seqread-1m", title="read 1m  QD 8 × 1 job")
    assert history.rows[2].changed == ("job randread-4k → seqread-1m",)
    play(history, 4, 1.0, job="two", title="2 jobs: a, b")
    play(history, 5, 1.0, job="two", title="2 jobs: a, c")
    assert history.rows[4].changed == ("2 jobs: a, c",)


def options(**changes: str) -> dict[str, str]:
    return {"readwrite": "randread", "bs": "4k", "direct": "1", "rate_iops": "500", **changes}


def test_options_that_no_title_has_are_told_too() -> None:
    history = RunHistory()
    play(history, 1, 1.0, options=options())
    play(history, 2, 1.0, 16, options=options(direct="0", bind="queues"))
    assert history.rows[1].changed == ("iodepth 8 → 16", "direct 1 → 0", "bind queues")
    without = {name: value for name, value in options().items() if name != "rate_iops"}
    play(history, 3, 1.0, 16, options={**without, "direct": "0"})
    assert history.rows[2].changed == ("rate_iops unset", "bind unset")
    # an older recording has no options: a missing option is no difference
    play(history, 4, 1.0, 32)
    assert history.rows[3].changed == ("iodepth 16 → 32",)


def test_an_option_without_a_value_is_on() -> None:
    history = RunHistory()
    play(history, 1, 100, options={"time_based": "1", "runtime": "11"})
    play(history, 2, 100, options={"time_based": "", "runtime": "60"})
    play(history, 3, 100, options={"runtime": "60", "fsync": ""})
    assert [row.changed for row in history.rows][1:] == [
        ("runtime 11s → 60s",), ("fsync 1", "time_based unset"),
    ]  # fmt: skip


def test_times_are_compared_in_one_unit() -> None:
    history = RunHistory()
    for step, runtime in enumerate(("60", "1m", "10000ms", "60"), 1):
        play(history, step, 100, options={"runtime": runtime})
    assert [row.changed for row in history.rows] == [
        None, (), ("runtime 60s → 10s",), ("runtime 10s → 60s",),
    ]  # fmt: skip


def test_a_run_that_measured_nothing_is_passed_over() -> None:
    history = RunHistory()
    play(history, 1, 1000.0, 8)
    history.note_tunable_change("vda", "nomerges", "0", "2")
    play(history, 2, None, 16)
    history.note_tunable_change("vda", "scheduler", "none", "bfq")
    play(history, 3, 1100.0, 32)
    assert [row.step for row in history.rows] == [1, 3]
    assert history.rows[1].changed == ("iodepth 8 → 32", "nomerges 0 → 2", "scheduler none → bfq")
    assert history.rows[1].to_before == pytest.approx(10)
    play(history, 4, None, 32, ended=FAILED)
    assert (history.rows[2].step, history.rows[2].ended) == (4, FAILED)
    assert history.last is not None and history.last.step == 3


def test_a_job_that_never_started_is_no_run() -> None:
    history = RunHistory()
    history.finish_run(1, FAILED)
    assert history.rows == [] and history.last is None


def test_a_recording_that_begins_within_a_run_has_what_is_in_it() -> None:
    history = RunHistory()
    for one in seconds(2, interval=fio(700), step=4):
        history.add_frame(one)
    history.finish_run(4, DONE)
    history.add_frame(frame(9, fio(1), step=4))
    (row,) = history.rows
    assert (row.step, row.iops, row.seconds, row.ended) == (4, 700, 2, DONE)
    play(history, 5, 700)
    assert history.rows[1].to_before == 0


def idle(t: float) -> Frame:
    return frame(t, disks={"vda": disk(5.0)})


def test_a_copy_stands_still() -> None:
    history = RunHistory()
    history.start_run(1, "j", "t")
    still = history.copy()
    history.add_frame(frame(1, fio(5)))
    assert still.rows[0].iops is None and history.rows[0].iops == 5


@given(st.lists(st.one_of(st.none(), st.floats(1, 1e6)), max_size=6))
def test_only_what_measured_something_is_a_row(iops: Sequence[float | None]) -> None:
    found = runs(*iops)
    assert [row.step for row in found] == [n for n, one in enumerate(iops, 1) if one is not None]
    assert all(row.to_before is not None for row in found[1:])


def test_seconds_without_all_hosts_are_no_part_of_a_run_s_iops() -> None:
    history = RunHistory()
    history.start_run(1, "randread-4k", TITLE.format(8, 1))

    def some(iops: float) -> None:
        for one in seconds(2, interval=fio(iops), step=1, disks={"vda": disk(iops)}):
            history.add_frame(replace(one, flags=one.flags | {SOME_HOSTS}))

    some(2000)
    # nothing else is known yet
    assert history.rows[0].iops == pytest.approx(2000)
    for one in seconds(3, interval=fio(4000), step=1, disks={"vda": disk(4000)}):
        history.add_frame(one)
    some(1000)
    (row,) = history.rows
    assert row.iops == pytest.approx(4000) and row.seconds == pytest.approx(7)
