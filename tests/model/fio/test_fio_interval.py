from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from fio_recordings import NAMES, OFF, frames, samples, statuses
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.intervals import FioIntervals
from iopstui.model.fio.rows import was_reset
from iopstui.model.histogram import (
    bucket_key,
    merge,
)
from iopstui.model.metrics.frame import FINAL, NO_LATENCY, PARTIAL, FrameBuilder
from iopstui.model.metrics.summary import FramesTotal
from iopstui.model.samples import DirectionStatus, FioStatus, JobStatus, LatencySum


def direction(ios: int, runtime_ms: int, **changes: Any) -> DirectionStatus:
    """A direction that did ``ios`` I/Os of 4 KiB, all of 1000 ns."""
    bins = {bucket_key(1000): ios} if ios else None
    status = DirectionStatus(
        issued=ios,
        completed=ios,
        io_bytes=4096 * ios,
        runtime_ms=runtime_ms,
        slat=None,
        clat=LatencySum(1000.0, ios),
        lat=LatencySum(1100.0, ios),
        bins=bins,
        bins_of="clat",
        iops=0.0,
        bw_bytes=0.0,
    )
    return replace(status, **changes)


def job(ios: int, runtime_ms: int, **changes: Any) -> JobStatus:
    read = changes.pop("read", None) or direction(ios, runtime_ms)
    status = JobStatus(
        name="job",
        group=0,
        error=0,
        elapsed_s=runtime_ms // 1000,
        eta_s=5,
        job_start=None,
        job_runtime_ms=runtime_ms,
        usr_cpu=10.0,
        sys_cpu=20.0,
        ctx=ios,
        iodepth_level={"4": 100.0},
        directions={"read": read},
        options={},
        block_size=4096,
        has_ramp=False,
        measures_latency=True,
    )
    return replace(status, **changes)


def unmixed(directions: Mapping[str, DirectionStatus]) -> list[DirectionStatus]:
    """A row's directions, each I/O once."""
    split = [part for name, part in directions.items() if name != "mixed" and part.issued]
    return split or list(directions.values())


def document(timestamp_ms: int, *jobs: JobStatus) -> FioStatus:
    return FioStatus("fio-3.33", timestamp_ms, jobs)


def intervals(
    documents: list[FioStatus], arrivals_s: list[float] | None = None, final: bool = False
) -> list[FioInterval | None]:
    """The intervals of documents that arrive once a second unless told otherwise."""
    feed = FioIntervals()
    times = arrivals_s or [float(number) for number in range(len(documents))]
    return [
        feed.feed(status, int(time * 1e9), 1.0, final and status is documents[-1])
        for status, time in zip(documents, times, strict=True)
    ]


def last(*args: Any, **kwargs: Any) -> FioInterval:
    found = intervals(*args, **kwargs)[-1]
    assert found is not None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_frames_of_every_recording_sum_to_fio_final_count(name: str) -> None:
    total = FramesTotal()
    for frame in frames(name):
        total.add(frame.fio)
    directions = [d for job_ in statuses(name)[-1].jobs for d in unmixed(job_.directions)]
    off = 4096 * abs(OFF.get(name, 0))
    assert abs(total.bytes - sum(d.io_bytes for d in directions)) <= off
    assert total.ios == sum(d.completed for d in directions if d.completed) or any(
        not d.completed or d.completed != d.issued for d in directions
    )
    assert total.frames > 0 or not total.ios


@pytest.mark.parametrize("name", NAMES)
def test_the_histograms_of_every_recording_sum_to_the_final_one(name: str) -> None:
    """Since the counters last began again, the bins of all frames add up to the last document's."""
    built = [frame.fio for frame in frames(name) if frame.fio]
    if any(interval.reset for interval in built):
        start = max(number for number, interval in enumerate(built) if interval.reset)
        built = built[start:]
    final = statuses(name)[-1]
    for key in {key for job_ in final.jobs for key in job_.directions}:
        whole = merge(
            job_.directions[key].bins or {} for job_ in final.jobs if key in job_.directions
        )
        parts = [interval.directions[key].bins for interval in built if key in interval.directions]
        assert merge(parts) == whole, key


@pytest.mark.parametrize("name", ["3.1-a-randread-grp", "3.33-p-mixed", "3.42-c-numjobs4-nogroup"])
def test_the_means_of_the_frames_join_to_fio_final_mean(name: str) -> None:
    built = [part for frame in frames(name) if frame.fio for part in [frame.fio.total]]
    final = [d for j in statuses(name)[-1].jobs for d in j.directions.values() if d.completed]
    for kind in ("slat", "clat", "lat"):
        stated = [total for d in final for total in [getattr(d, kind)] if total]
        expected = sum(s.mean_ns * s.count for s in stated) / sum(s.count for s in stated)
        known = [part for part in built if kind in part.samples]
        count = sum(part.samples[kind] for part in known)
        joined = sum(getattr(part, f"{kind}_ns") * part.samples[kind] for part in known) / count
        assert joined == pytest.approx(expected, rel=1e-6)
        assert count == sum(s.count for s in stated)


@pytest.mark.parametrize("name", NAMES)
def test_the_slowest_of_all_frames_is_exactly_fio_maximum(name: str) -> None:
    """If no counter began again, the largest maximum of all frames is fio's."""
    built = [frame.fio for frame in frames(name) if frame.fio]
    if any(interval.reset for interval in built):
        return
    final = [d for job_ in statuses(name)[-1].jobs for d in unmixed(job_.directions) if d.bins]
    seen = [interval.total.max_ns for interval in built if interval.total.max_ns is not None]
    assert max(seen, default=None) == max((d.lat_max_ns or 0 for d in final), default=None)


@pytest.mark.parametrize("name", NAMES)
def test_no_frame_of_a_recording_has_an_absurd_figure(name: str) -> None:
    for frame in frames(name):
        interval = frame.fio
        if interval is None or not interval.seconds:
            continue
        assert 0.05 <= interval.seconds < 20
        assert interval.total.iops is not None
        assert 0 <= interval.total.iops < 4_000_000
        assert sum(interval.iodepth_level.values()) == pytest.approx(100) or not (
            interval.iodepth_level
        )
        assert interval.usr_cpu is None or 0 <= interval.usr_cpu < 1000


@pytest.mark.parametrize("ppm", [-200, 200])
def test_clocks_that_drift_apart_do_not_shorten_the_last_interval(ppm: int) -> None:
    """An hour in which the wall clock is slewed; 0.5 s after the last full second the job ends."""
    clock = [round(1e6 + n * (1000 + ppm / 1000)) for n in range(1, 3601)]
    documents = [document(at, job(1000 * n, 1000 * n)) for n, at in enumerate(clock, 1)]
    documents.append(document(clock[-1] + 700, job(3_600_500, 3_600_500)))
    times = [(document.timestamp_ms - clock[0]) / 1000 for document in documents]
    found = intervals(documents, times, final=True)[-1]
    assert found is not None and found.seconds == pytest.approx(0.5, abs=0.002)


@pytest.mark.parametrize("held_s", [0, 5, 30])
def test_an_earlier_document_that_was_held_up_changes_nothing(held_s: int) -> None:
    """The document has an old runtime, and the next one has all of it. The same happens to the last
    document but one."""
    ran = [(1000 * n, 1000 * n) for n in range(1, 11)]
    clock = 10_000 + 1000 * held_s
    ran += [(clock, 10_000)] if held_s else []
    ran += [(clock + 1000 * n, clock + 1000 * n) for n in range(1, 7)]
    end = clock + 6000
    documents = [document(at, job(runtime, runtime)) for at, runtime in ran]
    documents += [
        document(end + 700, job(end + 5, end)),
        document(end + 1150, job(end + 9, end + 900)),
    ]
    times = [one.timestamp_ms / 1000 for one in documents]
    found = intervals(documents, times, final=True)[-1]
    assert found is not None and found.seconds == 0.2


def test_what_is_known_of_a_run_is_known_from_its_last_half_minute() -> None:
    """Two jobs one after the other, the first one over for minutes: a reader of the last half
    minute has the same state as a reader of all."""
    documents = [
        document(1000 * n + n % 3, job(10 * min(n, 60), 1000 * min(n, 60)),
                 *([job(7 * (n - 60), 1000 * (n - 60))] if n > 60 else [job(0, 0)]))
        for n in range(1, 301)
    ]  # fmt: skip
    whole, part = FioIntervals(), FioIntervals()
    for n, status in enumerate(documents):
        whole.feed(status, n * 10**9, 1.0, False)
        if n >= 270:
            part.feed(status, n * 10**9, 1.0, False)
    assert whole.state == part.state
    other = FioIntervals()
    other.feed(documents[-1], 299 * 10**9, 1.0, False)
    assert whole.state != other.state


def test_after_a_document_that_was_held_up_the_last_interval_is_what_was_left() -> None:
    """The second document came 0.7 s late, with the runtime and bytes from before the delay; 0.2 s
    after it should have come the job ended."""
    held_up = direction(2600, 1900, io_bytes=1900 * 4096)
    documents = [
        document(10_000, job(900, 900)), document(11_700, job(2600, 1900, read=held_up)),
        document(12_100, job(2800, 2800)),
    ]  # fmt: skip
    built = [i for i in intervals(documents, [0.0, 1.7, 2.1], final=True) if i]
    assert [i.seconds for i in built] == pytest.approx([0.9, 1.7, 0.2])
    assert [i.total.bw for i in built] == pytest.approx([4096e3] * 3), "bytes are of the I/Os"


def test_a_document_just_behind_another_gives_counts_but_no_rates() -> None:
    interval = last(
        [document(10_000, job(1000, 1000)), document(10_004, job(1003, 1004))], [0.0, 0.004]
    )
    assert interval.seconds is None
    assert interval.total.iops is None
    assert interval.total.ios == 3
    assert interval.partial


def test_a_stall_is_a_long_interval() -> None:
    built = [frame.fio for frame in frames("3.33-x-stall4s") if frame.fio]
    longest = max(interval.seconds or 0 for interval in built)
    assert longest > 3.5


def test_while_fio_lays_out_there_is_no_interval() -> None:
    laying = document(10_000, job(0, 0, read=direction(0, 0)))
    assert intervals([laying, laying]) == [None, None]
    assert last([laying, laying, document(11_000, job(900, 900))]).seconds == 0.9


@pytest.mark.parametrize("step_ms", [-3_600_000, -700, -130, 130, 700, 3_600_000])
def test_a_step_of_the_wall_clock_does_not_change_the_rates(step_ms: int) -> None:
    documents = list(statuses("3.42-a-randread-grp"))
    stepped = [
        replace(doc, timestamp_ms=doc.timestamp_ms + (step_ms if number >= 2 else 0))
        for number, doc in enumerate(documents)
    ]
    arrivals: list[float] = [doc.timestamp_ms for doc in documents]
    plain, moved = FrameBuilder(), FrameBuilder()
    for one, other in zip(samples(documents), samples(stepped, arrivals), strict=True):
        assert other.fio is not None
        other = replace(other, wall_ms=other.fio.timestamp_ms)
        expected, found = plain.feed(one).fio, moved.feed(other).fio
        assert (expected is None) == (found is None)
        if expected and found and expected.seconds and found.seconds:
            assert found.seconds == pytest.approx(expected.seconds, abs=0.01)


@pytest.mark.parametrize("name", ["3.1-e-ramp", "3.33-e-ramp", "3.36-e-ramp", "3.42-e-ramp"])
def test_a_ramp_has_bytes_but_no_latencies_and_then_begins_again(name: str) -> None:
    built = [frame.fio for frame in frames(name) if frame.fio]
    states = [(interval.ramp, interval.reset) for interval in built]
    assert states[0] == (True, False)
    assert sum(reset for _, reset in states) == 1
    at = next(number for number, (_, reset) in enumerate(states) if reset)
    assert all(ramp for ramp, _ in states[:at])
    assert not any(ramp for ramp, _ in states[at:])
    for interval in built[:at]:
        assert interval.total.ios > 0
        assert interval.total.percentiles == {}
        assert interval.total.clat_ns is None
        assert interval.total.max_ns is None
    assert all(interval.total.percentiles for interval in built[at:] if interval.total.ios)


def test_without_latencies_completions_come_from_the_bytes() -> None:
    for name in ("3.1-b-randrw-gtod", "3.16-b-randrw-gtod", "3.42-b-randrw-gtod"):
        for frame in frames(name):
            assert frame.fio is not None
            assert not frame.fio.measures_latency
            assert not frame.fio.counts_submissions
            for part in frame.fio.directions.values():
                assert part.ios * 4096 == part.bytes
                assert part.percentiles == {}
                assert (part.clat_ns, part.lat_ns, part.max_ns) == (None, None, None)


def test_a_counter_that_was_no_evidence_is_not_taken_again() -> None:
    """Switching to a counter that lags behind would count I/Os twice or not at all."""

    def seen(issued: int, completed: int) -> JobStatus:
        read = direction(issued, 1000, completed=completed)
        return job(0, 1000, read=replace(read, io_bytes=4096 * (issued - 10)), in_flight=16)

    documents = [seen(1000, 100), seen(2000, 1999), seen(3000, 2999)]
    built = intervals([document(10_000 + 1000 * n, row) for n, row in enumerate(documents)])
    assert [i.jobs[0].counted_by for i in built if i] == ["bytes"] * 3
    assert [i.total.ios for i in built if i] == [990, 1000, 1000]


def test_mixed_is_the_total_only_where_it_is_alone() -> None:
    alone = next(frame.fio for frame in frames("3.33-p-mixed") if frame.fio)
    assert set(alone.directions) == {"mixed"}
    assert alone.total.ios == alone.directions["mixed"].ios
    both = next(frame.fio for frame in frames("3.42-p-both") if frame.fio)
    assert set(both.directions) == {"read", "write", "mixed"}
    assert both.total.ios == both.directions["read"].ios + both.directions["write"].ios


def test_stages_of_a_stonewalled_job_follow_one_another() -> None:
    built = [frame.fio for frame in frames("3.42-d-stonewall") if frame.fio]
    active = [[job_.index for job_ in interval.jobs if job_.ios] for interval in built]
    assert active[0] == [0]
    assert active[-1] == [1]
    assert "\t" in built[-1].jobs[1].name


def test_cpu_and_context_switches_are_of_the_interval() -> None:
    before = job(1000, 1000)
    after = job(3000, 2000, usr_cpu=30.0, sys_cpu=20.0)
    interval = last([document(10_000, before), document(11_000, after)])
    assert interval.usr_cpu == pytest.approx(50.0)
    assert interval.sys_cpu == pytest.approx(20.0)
    assert interval.ctx_s == 2000


def test_depths_are_of_the_interval() -> None:
    before = job(1000, 1000, iodepth_level={"1": 100.0})
    after = job(2000, 2000, iodepth_level={"1": 50.0, "2": 50.0})
    interval = last([document(10_000, before), document(11_000, after)])
    assert interval.iodepth_level == {"1": 0.0, "2": 100.0}


def test_progress_is_known_only_with_an_end() -> None:
    assert last([document(1, job(1, 5000))]).progress == 0.5
    assert last([document(1, job(1, 5000, eta_s=None))]).progress is None


def test_an_error_is_of_its_row() -> None:
    interval = last([document(10_000, job(10, 1000, error=5), job(10, 1000))])
    assert [row.error for row in interval.jobs] == [5, 0]


@pytest.mark.parametrize(
    ("changes", "reset"),
    [
        ({}, False),
        ({"read": direction(10, 2000)}, True),
        ({"read": direction(2000, 2000, io_bytes=1)}, True),
        ({"directions": {}}, True),
        ({"job_start": 9, "read": direction(2000, 2000)}, True),
        ({"job_start": 7, "read": direction(2000, 2000)}, False),
    ],
)
def test_what_is_a_reset(changes: dict[str, Any], reset: bool) -> None:
    old = job(1000, 1000, job_start=7)
    now = replace(job(2000, 2000, job_start=7), **{"job_start": 7})
    if "read" in changes:
        now = replace(now, directions={"read": changes.pop("read")})
    assert was_reset(replace(now, **changes), old) is reset


def test_after_a_reset_only_the_new_counts_count() -> None:
    interval = last([document(10_000, job(5000, 5000)), document(11_000, job(300, 400))])
    assert interval.reset
    assert interval.total.ios == 300
    assert interval.seconds == 0.4


@pytest.mark.parametrize(("ios_before", "ios_now"), [(5000, 6000), (5000, 5000), (0, 0)])
def test_where_only_some_counters_began_again_the_interval_has_no_rates(
    ios_before: int, ios_now: int
) -> None:
    # the first row did I/Os before its counters began again, which fio has forgotten
    before = document(10_000, job(5000, 5000), job(ios_before, 5000))
    interval = last([before, document(11_000, job(300, 400), job(ios_now, 6000))])
    goes_on = ios_now > ios_before
    assert (interval.seconds is None) == (interval.total.iops is None) == goes_on
    assert interval.total.ios == 300 + ios_now - ios_before


def warming(runtime_ms: int, **changes: Any) -> JobStatus:
    """A row without latencies that does 1000 I/Os a second and has a ramp of 2 s."""
    ios = changes.pop("ios", runtime_ms)
    read = direction(ios, runtime_ms, completed=None, bins=None, clat=None, lat=None)
    return job(0, runtime_ms, read=read, has_ramp=True, measures_latency=False,
               options={"ramp_time": "2"}, **changes)  # fmt: skip


def ramps(*rows: JobStatus) -> list[tuple[bool, bool, int]]:
    """(ramp, reset, I/Os) of rows that are seen once a second."""
    documents = [document(10_000 + 1000 * number, row) for number, row in enumerate(rows)]
    return [(i.ramp, i.reset, i.total.ios) for i in intervals(documents) if i]


def test_a_ramp_without_latencies_ends_where_the_counters_begin_again() -> None:
    assert ramps(warming(900), warming(1900), warming(2900), warming(1000), warming(2000)) == [
        (True, False, 900), (True, False, 1000), (True, False, 1000),
        (False, True, 1000), (False, False, 1000),
    ]  # fmt: skip


def test_counters_that_began_again_and_are_higher_already() -> None:
    """The ramp ends in the third interval, and the disk is faster from then on."""
    faster = warming(950, ios=5000)
    assert ramps(warming(900), warming(1900), faster)[-1] == (False, True, 5000)


def test_a_ramp_shorter_than_the_first_interval_is_over_in_it() -> None:
    short = {"ramp_time": "500ms"}
    first, second = replace(warming(400), options=short), replace(warming(1400), options=short)
    assert ramps(first, second) == [(False, False, 400), (False, False, 1000)]


def test_a_ramp_whose_end_was_not_seen_is_over_some_time() -> None:
    assert [ramp for ramp, *_ in ramps(*(warming(900 + 1000 * n) for n in range(6)))] == [
        True, True, True, True, False, False
    ]  # fmt: skip


def test_a_recording_that_begins_behind_the_ramp_has_none() -> None:
    assert ramps(warming(9000, elapsed_s=12))[0][0] is False


@pytest.mark.parametrize(("name", "resets"), [("3.42-q-ramp-gtod", 1), ("3.19-q-ramp-gtod", 1)])
def test_no_second_of_a_ramp_without_latencies_holds_all_of_it(name: str, resets: int) -> None:
    """rate_iops=1000: fio 3.42 ends a ramp of 2 s after 2.9 s. No second may show all of its 2,894
    I/Os."""
    built = [frame.fio for frame in frames(name) if frame.fio]
    rates = [interval.total.iops for interval in built if not interval.partial]
    assert rates[:-1] == pytest.approx([1000] * (len(rates) - 1), rel=0.01)
    assert sum(interval.reset for interval in built) == resets


def test_a_verify_phase_takes_the_time_it_takes() -> None:
    """Only fio's last document has the time of the reading: 0.09 s more than that of the writing,
    but the jobs worked for 0.389 s."""
    final = [frame.fio for frame in frames("3.33-q-verify-at-the-end") if frame.fio][-1]
    assert final.seconds == pytest.approx(1.282 - 0.893, abs=0.001)
    whole = frames("3.33-q-verify-short")[0].fio
    assert whole is not None
    assert whole.seconds == pytest.approx(0.704)


@pytest.mark.parametrize(("version", "seconds"), [("3.33", None), ("3.42", 5.762)])
def test_a_first_document_that_a_job_held_up(version: str, seconds: float | None) -> None:
    """The job was stopped from 0.5 to 6 s. fio's runtime is from before that, its counters are from
    after it; before 3.36 nothing shows how long after."""
    first = next(frame.fio for frame in frames(f"{version}-q-first-held-up") if frame.fio)
    assert first.seconds == (seconds and pytest.approx(seconds, abs=0.5))


def test_three_ios_of_six_seconds_took_six_seconds() -> None:
    slow = job(3, 860, job_start=4_000, elapsed_s=7)
    assert last([document(10_020, slow)]).seconds == 6.02
    assert last([document(10_020, replace(slow, job_start=None))]).total.iops is None


def test_a_stage_whose_first_document_is_late_began_when_the_stage_did() -> None:
    waiting = job(0, 0, read=direction(0, 0))
    assert last([document(10_000, waiting), document(15_000, job(9, 900))]).seconds == 4.9


def test_the_last_document_that_says_the_same_is_marked_as_such() -> None:
    built = frames("3.19-q-said-twice")
    assert built[-1].fio is None
    assert {FINAL, PARTIAL} <= built[-1].flags


def test_a_last_word_said_again_is_no_second_without_io() -> None:
    same = [document(10_000, job(900, 900)), document(10_250, job(900, 900))]
    assert intervals(same, [0.0, 0.25], final=True)[1] is None
    stuck = [document(10_000, job(900, 900)), document(11_000, job(900, 1900))]
    assert last(stuck, final=True).total.iops == 0


@pytest.mark.parametrize("name", ["3.7-q-disable-clat", "3.16-q-disable-clat"])
def test_an_old_fio_without_clat_has_no_latencies(name: str) -> None:
    for frame in frames(name):
        assert NO_LATENCY in frame.flags
        assert frame.fio is not None
        assert frame.fio.total.ios * 4096 == frame.fio.total.bytes


def test_rows_that_mix_beside_rows_that_split_are_all_in_the_total() -> None:
    built = [frame.fio for frame in frames("3.33-q-unified-beside") if frame.fio]
    assert sum(interval.total.ios for interval in built) == 30000
    assert [interval.total.iops for interval in built] == pytest.approx([10000] * 4, rel=0.03)


growths = st.lists(st.tuples(st.integers(0, 5000), st.integers(200, 3000)), min_size=1, max_size=8)


@given(growths)
def test_however_it_grew_the_intervals_sum_to_the_whole(steps: list[tuple[int, int]]) -> None:
    ios = time = 0
    documents, arrivals = [], []
    for grown, passed in steps:
        ios, time = ios + grown, time + passed
        documents.append(document(1_000_000 + time, job(ios, time, job_start=1_000_000)))
        arrivals.append(time / 1000)
    built = [interval for interval in intervals(documents, arrivals) if interval]
    assert sum(interval.total.ios for interval in built) == ios
    assert sum(interval.total.bytes for interval in built) == 4096 * ios
    assert merge(interval.total.bins for interval in built) == (
        {bucket_key(1000): ios} if ios else {}
    )
    whole = sum((i.total.iops or 0) * (i.seconds or 0) for i in built)
    assert whole == pytest.approx(ios)


def test_more_ios_than_the_depth_allows() -> None:
    """Depth 1 and 1 ms each: 1000 IOPS at most (N = X·R)."""

    def second(ios: int) -> FioInterval:
        read = direction(ios, 900, clat=LatencySum(1e6, ios), lat=None)
        begun = job(0, 0, read=direction(0, 0), in_flight=1, job_start=49_000)
        now = job(0, 900, read=read, in_flight=1, job_start=49_000)
        return last([document(49_000, begun), document(50_000, now)])

    assert second(1000).within_depth and not second(1200).within_depth
    assert second(1200).latency_possible


def test_bytes_that_are_not_those_of_the_ios() -> None:
    """fio 3.36 states when it copied the bytes: at the same time, so bytes and I/Os have to
    agree."""

    def second(moved: int) -> FioInterval:
        first, then = (
            job(0, ran, read=direction(ios, ran, io_bytes=4096 * blocks), job_start=49_000)
            for ran, ios, blocks in ((1000, 1000, 1000), (2000, 2000, 1000 + moved))
        )
        return last([document(50_000, first), document(51_000, then)])

    assert second(1000).bytes_agree and second(950).bytes_agree
    assert not second(800).bytes_agree


def test_a_late_reader_is_no_step_of_the_clock() -> None:
    """A reading comes 0.1 s late, and by chance fio's run time is too long by as much."""
    first = document(10_000, job(1000, 1000, read=direction(3000, 1000)))
    second = document(11_000, job(2100, 2100, read=direction(6000, 2100)))
    fold = FioIntervals()
    fold.feed(first, 10_000 * 10**6, 1.0, False, None, 10_000.0)
    interval = fold.feed(second, 11_100 * 10**6, 1.0, False, None, 11_100.0)
    assert interval is not None and interval.seconds == pytest.approx(1.0)
