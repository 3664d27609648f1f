"""Latencies that contradict N = X·R: fio 3.33 with io_uring's sqthread_poll at depth 8."""

from __future__ import annotations

from dataclasses import replace

from fio_recordings import ALL, frames, samples, statuses

from iopstui.model.experiment.expectation import (
    WHY_IMPOSSIBLE_LATENCY,
    ExpectationChecker,
    parse_expectation,
)
from iopstui.model.fio.rows import max_in_flight
from iopstui.model.metrics.frame import WRONG_LATENCY, FrameBuilder
from iopstui.model.metrics.summary import fio_summary
from iopstui.session.tick.outcomes import final_rates, outcome_event, outcome_event_text

JOB = "[a]\nioengine=io_uring\nsqthread_poll=1\nrw=randread\nbs=4k\niodepth=8\n"
POLLED = "3.33-q-sqpoll"


def test_no_expectation_is_judged_by_them() -> None:
    """clat.p99 is 3 s in a run of 3 s, at 7,000 IOPS."""
    asked = ("clat.p99<=10s", "a:read.clat.mean<=10s", "lat.mean<=10s", "iops>=1000")
    judge = ExpectationChecker([parse_expectation(one) for one in asked])
    for frame in frames(POLLED, JOB):
        assert WRONG_LATENCY in frame.flags
        judge.add(frame)
    outcomes = judge.outcomes(final_rates(fio_summary(statuses(POLLED, JOB)[-1])))
    assert [one.passed for one in outcomes] == [None, None, None, True]
    text = outcome_event_text(outcome_event(0.0, 1, outcomes[0]))
    assert text == f"NOT MEASURED  clat.p99 <= 10.0 s: {WHY_IMPOSSIBLE_LATENCY}"


def test_no_other_recording_is_doubted() -> None:
    doubted = set()
    for name in ALL:
        builder = FrameBuilder()
        # a group's row says no more than its last section
        documents = [
            replace(one, jobs=tuple(replace(j, in_flight=4 * max_in_flight(j)) for j in one.jobs))
            for one in statuses(name)
        ]
        if any(WRONG_LATENCY in builder.feed(one).flags for one in samples(documents)):
            doubted.add(name)
    assert doubted == {POLLED}


def test_a_deep_queue_may_take_long() -> None:
    deep = JOB.replace("iodepth=8", "iodepth=100000")
    assert not any(WRONG_LATENCY in frame.flags for frame in frames(POLLED, deep))
