"""Stalls in made-up seconds of a disk whose every request is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from disks import changed
from hypothesis import given
from hypothesis import strategies as st
from watch_frames import frame

from iopstui.model.figures.disk import DiskRates, disk_rates
from iopstui.model.metrics.slow.stalls import MIN_STALL_S, Stall, StallWatch
from iopstui.model.samples import DiskCounters

Requests = Sequence[tuple[float, float]]
"""Arrival and completion of each, in seconds."""


def counters(requests: Requests, now: float) -> DiskCounters:
    """What /proc/diskstats shows of these requests at ``now``."""
    done = sum(end <= now for _, end in requests)
    waiting = sum(begin <= now < end for begin, end in requests)
    busy, last = 0.0, 0.0
    for begin, end in sorted(requests):
        busy += max(0.0, min(end, now) - max(begin, last)) if begin < now else 0.0
        last = max(last, end)
    return DiskCounters(
        "vda", 254, 0, done, 0, 8 * done, 0, 0, 0, 0, 0, waiting, round(1000 * busy), 0,
        *[0] * 6,
    )  # fmt: skip


def seen(requests: Requests, seconds: int) -> list[Stall]:
    watch, found = StallWatch(), []
    for n in range(seconds):
        rates = disk_rates(counters(requests, n + 1.0), counters(requests, float(n)), 1.0)
        assert rates is not None
        found += watch.feed(frame(n + 1.0, {"vda": rates}))
    return [*found, *watch.ongoing()]


def true_stalls(requests: Requests) -> list[tuple[float, float]]:
    """The longest spans in which something was in flight all the time and nothing completed."""
    spans = []
    for _, end in requests:
        before = max((other for _, other in requests if other < end), default=0.0)
        begin = min((b for b, e in requests if e >= end and b < end), default=end)
        spans.append((max(before, begin), end))
    return spans


@given(st.lists(st.tuples(st.floats(0.01, 8.0), st.floats(0.01, 4.0)), min_size=1, max_size=6))
def test_the_bounds_of_a_stall_are_true(made: list[tuple[float, float]]) -> None:
    requests = [(begin, begin + lasts) for begin, lasts in made]
    found = [one for one in seen(requests, 14) if one.ended]
    truth = true_stalls(requests)
    for stall in found:
        held = [
            end - begin for begin, end in truth
            if begin <= stall.start + 0.002 and end >= stall.start + stall.seconds - 0.002
        ]  # fmt: skip
        assert held and stall.seconds <= max(held) + 0.002
        assert stall.at_most is None or stall.at_most >= min(held) - 0.002
    for begin, end in truth:
        if end - begin >= 2 + MIN_STALL_S:
            assert any(begin <= one.start + 0.002 and one.start < end for one in found)


def test_a_stall_of_a_busy_disk_has_bounds_on_both_sides() -> None:
    steady = [(n / 10, n / 10 + 0.05) for n in range(25)]
    [stall] = seen([*steady, (2.45, 5.2), (2.5, 5.3)], 7)
    assert (stall.disk, stall.start, stall.seconds, stall.at_most) == ("vda", 3.0, 2.0, 4.0)
    assert stall.in_flight == 2 and stall.ended
    assert stall.text == (
        "vda completed nothing for 2.0 to 4.0 s from 0:03 on, 2 requests in flight"
    )


def test_a_long_one_is_told_before_its_end_and_one_that_has_no_end_at_the_end() -> None:
    begun, ended = seen([(1.0, 9.5)], 12)
    assert not begun.ended and begun.seconds == 3.0 and "3.0 s so far" in begun.text
    assert ended.ended and (ended.start, ended.seconds) == (begun.start, 8.0)
    *_, last = seen([(1.0, 99.0)], 12)
    assert not last.ended and last.seconds == 11.0 and last.at_most is None


def test_before_the_first_frame_nothing_is_known() -> None:
    [stall] = seen([(-5.0, 2.5)], 5)
    assert (stall.start, stall.seconds, stall.at_most) == (0.0, 2.0, None)
    assert "for at least 2.0 s" in stall.text
    [stall] = seen([(0.2, 2.5)], 5)
    assert abs(stall.start - 0.2) < 0.001 and stall.at_most is not None


def test_a_disk_that_goes_ends_its_stall() -> None:
    waits = disk_rates(counters([(0.0, 9.0)], 2.0), counters([(0.0, 9.0)], 1.0), 1.0)
    assert waits is not None
    watch = StallWatch()
    assert not list(watch.feed(frame(1.0, {"vda": waits, "vdb": waits})))
    assert not list(watch.feed(frame(2.0, None)))
    [stall] = watch.feed(frame(2.5, {"vdb": waits}))
    assert (stall.disk, stall.ended, stall.at_most) == ("vda", True, None)


def test_flushes_are_completions_and_unknown_counts_are_no_stall() -> None:
    waits = disk_rates(counters([(0.0, 9.0)], 2.0), counters([(0.0, 9.0)], 1.0), 1.0)
    assert waits is not None

    def stalls(rates: DiskRates) -> list[Stall]:
        watch = StallWatch()
        return [one for n in range(5) for one in watch.feed(frame(n + 1.0, {"vda": rates}))]

    assert len(stalls(waits)) == 1
    assert stalls(changed(waits, f_s=2.0)) == []
    assert stalls(replace(waits, reads=None)) == []
    assert stalls(changed(waits, in_flight=None)) == []
