"""How long an interval of fio's documents was, its ramp, and what counts its completions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iopstui.model.fio.interval_time import (
    RowPair,
    Windows,
    copies_bytes_first,
    document_lag_s,
    first_windows,
    is_repetition,
    next_windows,
    pair_rows,
    ran_ms,
    runtime_growth,
    whole_ms,
)
from iopstui.model.fio.rows import (
    BYTES,
    SAMPLES,
    SUBMISSIONS,
    Ramps,
    active,
    completions,
    counted_by,
    duration_s,
    in_ramp,
    longest_runtime,
    max_in_flight,
    was_reset,
)
from iopstui.model.samples import DirectionStatus, FioStatus, JobStatus


def direction(ms: int = 0, ios: int = 0, **more: Any) -> DirectionStatus:
    known: dict[str, Any] = {
        "issued": ios, "completed": ios, "io_bytes": ios * 4096, "runtime_ms": ms, "slat": None,
        "clat": None, "lat": None, "bins": None, "bins_of": "clat", "iops": 0.0, "bw_bytes": 0.0,
        "percentiles": {}, "lat_max_ns": None,
    }  # fmt: skip
    return DirectionStatus(**known | more)


def job(read: DirectionStatus | None = None, write: DirectionStatus | None = None, **more: Any
        ) -> JobStatus:  # fmt: skip
    parts = {"read": read, "write": write}
    known: dict[str, Any] = {
        "name": "a", "group": 0, "error": 0, "elapsed_s": None, "eta_s": None, "job_start": None,
        "job_runtime_ms": 0, "usr_cpu": 0.0, "sys_cpu": 0.0, "ctx": 0, "iodepth_level": {},
        "directions": {name: part for name, part in parts.items() if part is not None},
        "options": {}, "block_size": 4096, "has_ramp": False, "measures_latency": True,
        "times_all": True, "in_flight": 1, "members": None, "failed": None,
    }  # fmt: skip
    return JobStatus(**known | more)


def status(ms: int, *jobs: JobStatus) -> FioStatus:
    return FioStatus("fio-3.36", ms, jobs)


def seconds(
    clock_ms: int, before: JobStatus, now: JobStatus, arrival: float, final: bool = False,
    since: dict[int, float] | None = None,
) -> float | None:  # fmt: skip
    first, second = status(10_000, before), status(10_000 + clock_ms, now)
    pairs = pair_rows(second, first, Ramps())
    return next_windows(second, first, pairs, arrival, final, since or {}, None).counted_s


@pytest.mark.parametrize(
    ("clock_ms", "grown_ms", "arrival", "length"),
    [
        (1000, 1000, 1.0, 1.0),
        (1010, 1000, 1.2, 1.01),
        # a late reader, a stuck job: up to a quarter of a second the clock is believed
        (1200, 1000, 1.4, 1.2),
        (3600_000, 1000, 1.3, 1.3),  # the clock was set
        (-5000, 1000, 1.0, 1.0),
        (0, 1000, 0.2, None),
        (0, 1000, 0.26, 0.26),
        (1061, 1000, 1.0, 1.061),  # both may be late; a clock that was set differs by more
        (1070, 1000, 1.03, 1.07),
        (5250, 4000, 4.1, 5.25),  # in long intervals up to a quarter of their length
        (5600, 4000, 4.1, 4.1),
    ],
)  # fmt: skip
def test_the_clock_tells_unless_it_was_set(
    clock_ms: int, grown_ms: int, arrival: float, length: float | None
) -> None:
    before, now = job(direction(5000, 5)), job(direction(5000 + grown_ms, 6))
    assert seconds(clock_ms, before, now, arrival) == length


def test_a_row_that_begins_has_its_own_runtime() -> None:
    before, now = job(), job(direction(400, 5))
    old = job(direction(5000, 5))
    first, second = status(0, before), status(1000, now)
    pairs = [RowPair(0, now, None, True)]

    def length(pairs: list[RowPair]) -> float | None:
        return next_windows(second, first, pairs, 1.0, False, {}, None).counted_s

    assert length(pairs) == 0.4
    grew_too = [*pairs, RowPair(1, job(direction(5400, 6)), old, False)]
    assert length(grew_too) == 1.0
    stood = [*pairs, RowPair(1, old, old, False)]
    assert length(stood) == 0.4
    longer = [RowPair(0, job(direction(1400, 5)), None, True)]
    assert length(longer) == 1.0


def test_the_last_interval_ends_with_the_jobs() -> None:
    before, now = job(direction(5000, 5)), job(direction(5600, 6))
    assert seconds(800, before, now, 0.8, final=True) == 0.6
    assert seconds(800, before, now, 0.8) == 0.8
    # the intervals so far add up to 0.1 s more than fio's runtime
    assert seconds(800, before, now, 0.8, final=True, since={0: 5.1}) == 0.5
    assert seconds(800, before, now, 0.8, final=True, since={0: 5.6}) is None
    started = {"job_start": 4900}
    before, now = job(direction(5000, 5), **started), job(direction(5600, 6), **started)
    assert seconds(800, before, now, 0.8, final=True) == 0.5, "by the job's own clock"
    assert seconds(500, before, now, 0.5, final=True) == 0.5, "no longer than the clock says"
    assert seconds(800, before, before, 0.8, final=True) is None


def test_the_first_document_is_counted_after_its_runtime() -> None:
    """fio reads its clock, then waits for the slowest job, then counts."""

    def first(version: str = "fio-3.33", since: dict[str, float] | None = None, **row: Any
              ) -> Windows:  # fmt: skip
        read = direction(800, 500, io_bytes=400 * 4096)
        now = job(row.pop("read", read), **row)
        document = FioStatus(version, 10_000, (now,))
        return first_windows(document, [RowPair(0, now, None, False)], False, **(since or {}))

    assert first(job_start=8900).counted_s == 1.1, "since the job began"
    assert first(job_start=8900, options={"job_start_clock_id": "1"}).counted_s == 1.0
    assert first().counted_s == pytest.approx(1.0), "100 of its 500 I/Os came in the lag"
    few = direction(800, 50, io_bytes=40 * 4096)
    assert first(read=few).counted_s is None, "too few I/Os to tell"
    assert first(read=few, since={"waited_s": 0.3}).counted_s == 1.1
    assert first(read=few, since={"first_io_ms": 9190.0}) == Windows(0.81, 0.8)
    doubtful = first(read=few, since={"first_io_ms": 8000.0})
    assert doubtful.counted_s == 2.0 and not doubtful.sure, "it may be another program's I/O"
    assert first("fio-3.42").counted_s is None, "it copies the bytes late"
    assert first(job_runtime_ms=1600).counted_s is None, "of sections that are not known"
    assert first(block_size=None).counted_s is None
    assert first(block_size=None, block_sizes={"read": 4096}).counted_s == pytest.approx(1.0)


def test_the_two_moments_of_a_document() -> None:
    def pair(ran: int, lag_ios: int, **row: Any) -> RowPair:
        old = job(direction(1000, 1000), **row)
        new = direction(1000 + ran, 2000 + lag_ios, io_bytes=2000 * 4096)
        return RowPair(0, job(new, **row), old, False)

    def lag(pairs: list[RowPair], version: str = "fio-3.33") -> float | None:
        return document_lag_s(FioStatus(version, 10_000, tuple(p.now for p in pairs)), pairs)

    assert lag([pair(1000, 300)]) == pytest.approx(0.3)
    assert lag([pair(1000, 300)], "fio-3.42-135-gf5344") is None
    clock = {"job_start": 7700, "job_runtime_ms": 2000}
    assert lag([pair(1000, 0, **clock)], "fio-3.42") == 0.3
    assert lag([pair(1000, 300, **{**clock, "job_start": 8100})]) == pytest.approx(0.3), (
        "the wall clock was set back"
    )
    assert copies_bytes_first(status(0)) and copies_bytes_first(FioStatus("", 0, ()))
    assert not copies_bytes_first(FioStatus("fio-4.0", 0, ()))


def test_a_groups_clock_when_its_jobs_take_turns() -> None:
    """The longest runtime of its two jobs grew by 0.1 s, that of both together by a second."""
    turns = {"members": 2, "options": {"group_reporting": "1"}}
    before = job(direction(3000, 5), job_runtime_ms=3000, **turns)
    now = job(direction(3100, 6), job_runtime_ms=4002, **turns)
    first, second = status(0, before), status(1000, now)
    pairs = [RowPair(0, now, before, False)]
    assert next_windows(second, first, pairs, 1.0, False, {}, None).copied_s == 1.002


def test_a_job_that_ends_before_it_is_counted_does_not_lengthen_the_copied_window() -> None:
    """fio's clock was read at 2838 ms; one job ended at 3003 ms, and then they were counted."""
    before = job(direction(1838, 7), job_runtime_ms=1838)
    ended = RowPair(0, job(direction(3003, 10), job_runtime_ms=2838), before, False)
    other = RowPair(1, job(direction(2838, 10), job_runtime_ms=2838), before, False)
    assert runtime_growth([ended, other]) == 1.0
    assert runtime_growth([ended]) == 1.165, "its CPU time is that of all its time"
    later = RowPair(0, ended.now, ended.now, False)
    assert runtime_growth([later]) == 0.0
    assert runtime_growth([later, replace(other, old=before)]) == 1.0
    assert runtime_growth([RowPair(0, job(direction(3003, 10)), None, False)]) == 3.003, "fio 3.1"


def test_rates_of_two_windows() -> None:
    windows = Windows(1.0, 0.5)
    assert windows.rate(30, 0) == 30.0 and windows.rate(30, 10) == 40.0 and windows.differ
    assert Windows(None, 1.0).rate(1, 0) is None and Windows(1.0, None).rate(1, 1) is None
    assert Windows(1.0, 1.04).differ is False and Windows(1.0, 1.06).differ is True
    assert Windows(1.0, 1.0, 0.3, 0.3).differ, "as long, but other seconds"


@pytest.mark.parametrize(
    ("row", "ms"),
    [
        (job(direction(300), direction(200)), 300),
        (job(direction(300), direction(200), options={"verify": "md5"}), 300),
        (job(direction(300), direction(200), options={"verify": "md5", "rw": "write"}), 500),
        (job(direction(300), direction(200), options={"verify": "1", "readwrite": "randwrite:2"}),
         500),
        (job(direction(300), direction(200), options={"verify": "1", "rw": "write",
                                                      "do_verify": "0"}), 300),
        (job(direction(300), direction(200), options={"verify": "1", "rw": "write",
                                                      "do_verify": " 1"}), 500),
        (job(direction(300), direction(200), options={"verify": "1"}, job_runtime_ms=400), 400),
        (job(direction(300), direction(200), options={"verify": "1"}, job_runtime_ms=900), 500),
        (job(direction(300), direction(200), options={"verify": "1", "rw": "write"},
             job_runtime_ms=300), 500),
        (job(direction(300), direction(200), options={"verify": "1"}, job_runtime_ms=900,
             members=3), 300),
        (job(direction(300), direction(200), options={"verify": "1", "rw": "write",
                                                      "verify_backlog": "8"}), 300),
    ],
)  # fmt: skip
def test_with_verify_the_reading_follows_the_writing(row: JobStatus, ms: float) -> None:
    assert ran_ms(row) == ms


def test_a_row_that_grew_and_one_that_says_again_the_same() -> None:
    one, more = job(direction(1, 5)), job(direction(2, 5))
    assert not RowPair(0, more, one, False).has_grown and RowPair(0, one, None, False).has_grown
    assert RowPair(0, job(write=direction(1, 1)), one, False).has_grown
    assert is_repetition(status(2, more), status(1, one)), "only clocks went on"
    for change in ({"issued": 6}, {"completed": 6}, {"io_bytes": 6}):
        assert not is_repetition(status(2, job(direction(1, 5, **change))), status(1, one))


# -- the ramp


@pytest.mark.parametrize(
    ("text", "length"),
    [("30", 30.0), ("90s", 90.0), ("2m", 120.0), ("500ms", 0.5), ("7us", 7e-6), ("7 usec", 7e-6),
     ("5msec", 0.005), ("1h", 3600.0), ("1d", 86400.0), (" 1.5S ", 1.5), ("1.5h", 5400.0),
     ("10 s", 10.0), ("1w", None), ("", None), ("-1", None), ("x", None), ("nan", None)],
)  # fmt: skip
def test_durations_as_fio_writes_them(text: str, length: float | None) -> None:
    assert duration_s(text) == (None if length is None else pytest.approx(length))


def ramping(read: DirectionStatus, **more: Any) -> JobStatus:
    return job(read, has_ramp=True, options={"ramp_time": "2"}, **more)


def test_a_ramp_is_where_bytes_are_counted_and_latencies_are_not() -> None:
    warming = direction(500, 0, io_bytes=4096)
    assert in_ramp(ramping(warming))
    assert not in_ramp(job(warming)) and not in_ramp(ramping(direction(500, 5)))
    assert not in_ramp(ramping(warming, measures_latency=False))
    assert not in_ramp(ramping(direction(500)))


def test_counters_that_begin_again() -> None:
    old = job(direction(1000, 10))
    assert not was_reset(job(direction(2000, 20)), old)
    assert not was_reset(job(direction(900, 10)), old), "without a ramp the runtime may stand"
    assert was_reset(job(direction(2000, 9)), old)
    assert was_reset(job(direction(2000, 10, io_bytes=9)), old)
    assert was_reset(job(), old)
    assert was_reset(job(direction(2000, 20), job_start=2), job(direction(1, 1), job_start=1))
    assert not was_reset(job(direction(2000, 20), job_start=2), old)
    warming = ramping(direction(1000, 0, io_bytes=4096))
    assert was_reset(ramping(direction(900, 10)), ramping(direction(1000, 10)))
    assert not was_reset(ramping(direction(900, 10)), ramping(direction(1000, 10)), 0.0, True)
    assert was_reset(ramping(direction(1500, 10)), warming)
    assert not was_reset(ramping(direction(1500, 10)), warming, ramp_over=True)


def test_a_row_without_latencies_outgrows_its_ramp() -> None:
    """All of the runtime lies within the interval, and the ramp's time was over before."""

    def reset(before_ms: int, after_ms: int, clock: float) -> bool:
        blind = {"measures_latency": False}
        old, now = (ramping(direction(ms, ms), **blind) for ms in (before_ms, after_ms))
        return was_reset(now, old, clock)

    assert reset(1900, 2000, 2.5)
    assert not reset(1900, 2600, 2.5), "more than the time in between"
    assert reset(1900, 2550, 2.5)
    assert not reset(99, 100, 2.5), "hardly begun"
    assert reset(3250, 3300, 3.3) and not reset(3251, 3300, 3.3)
    assert not reset(1000, 1700, 2.5), "the ramp's time was not over"


def test_rows_without_latencies_are_followed() -> None:
    blind = {"measures_latency": False}
    ramps = Ramps()
    first = ramping(direction(500, 5), **blind)
    assert not ramps.feed(0, ramping(direction(), **blind), False, 1.0, False), "not begun"
    assert ramps.feed(0, first, False, 1.0, False)
    assert not ramps.is_over(0, ramping(direction(500, 0), **blind))
    assert not ramps.feed(0, ramping(direction(300, 3), **blind), True, 1.0, False)
    assert ramps.is_over(0, ramping(direction(500, 0), **blind))
    late = Ramps()
    assert late.feed(0, ramping(direction(4500, 9), **blind), False, 1.0, False)
    assert not late.feed(0, ramping(direction(4501, 9), **blind), False, 1.0, False)
    seen_late = ramping(direction(500, 5), elapsed_s=3, **blind)
    assert Ramps().feed(0, seen_late, False, 1.0, True)
    assert not Ramps().feed(0, ramping(direction(499, 5), elapsed_s=3, **blind), False, 1.0, True)
    assert not Ramps().feed(0, first, False, 2.45, False)
    assert Ramps().feed(0, first, False, 2.44, False)
    assert Ramps().is_over(0, job(direction(1, 1)))


# -- what counts


@pytest.mark.parametrize(
    ("changes", "more", "by", "found"),
    [
        ({}, {}, SAMPLES, 100),
        ({"completed": 74}, {}, SAMPLES, 74),  # one I/O under way, a quarter not copied yet
        ({"completed": 73}, {}, BYTES, 100),
        ({"completed": 73}, {"failed": 1}, SAMPLES, 73),
        ({"completed": 73}, {"error": 5}, SAMPLES, 73),
        ({}, {"measures_latency": False}, BYTES, 100),
        ({}, {"times_all": False}, BYTES, 100),
        ({"completed": None}, {}, BYTES, 100),
        ({"completed": 0}, {}, BYTES, 100),
        ({"completed": None, "io_bytes": 0, "issued": 0}, {}, SAMPLES, 0),
        ({"completed": 0, "io_bytes": 126 * 4096}, {}, BYTES, 126),
        ({"completed": 0, "io_bytes": 127 * 4096}, {}, SUBMISSIONS, 100),
        ({"completed": 0, "io_bytes": 74 * 4096}, {}, BYTES, 74),
        ({"completed": 0, "io_bytes": 73 * 4096}, {}, SUBMISSIONS, 100),
        ({"completed": 0, "io_bytes": 4097}, {}, SUBMISSIONS, 100),
        ({"completed": 0, "io_bytes": 0}, {"measures_latency": False}, BYTES, 0),
        ({"completed": 0}, {"block_size": None}, SUBMISSIONS, 100),
    ],
)  # fmt: skip
def test_the_best_evidence_counts(
    changes: dict[str, Any], more: dict[str, Any], by: str, found: int
) -> None:
    part = direction(1, 100, **changes)
    row = job(part, **more)
    assert (counted_by(row, part), completions(row, part)) == (by, found)


def test_what_a_row_may_have_under_way() -> None:
    assert max_in_flight(job(in_flight=7)) == 7
    known = {"iodepth": "4", "numjobs": "3"}
    assert max_in_flight(job(in_flight=None, options=known)) == 12
    assert max_in_flight(job(in_flight=None, options={"iodepth": "x"})) == 1
    assert longest_runtime(job()) == 0 and longest_runtime(job(direction(3), direction(4))) == 4
    assert not active(job(direction()))
    for one in ({"issued": 1}, {"io_bytes": 1}, {"runtime_ms": 1}):
        assert active(job(direction(**{"completed": 0, **one})))


def test_groups_at_the_same_time_are_not_added_up() -> None:
    staged = [job(direction(2004, 5), group=n, elapsed_s=5) for n in (0, 1)]
    assert whole_ms(staged) == 4008
    assert whole_ms([replace(row, elapsed_s=3) for row in staged]) == 2004, "new_group"
    assert whole_ms([replace(row, elapsed_s=None) for row in staged]) == 4008
    both = [*staged, replace(staged[0], group=7)]
    assert whole_ms([replace(row, elapsed_s=5) for row in both]) == 4008, "stonewall and new_group"
    assert whole_ms([]) == 0
