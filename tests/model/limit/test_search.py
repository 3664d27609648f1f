"""The search for a rate, on simulated devices whose limit queueing theory gives."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import pytest
from simulated_queue import Queue, search_on

from iopstui.features.limit.model import (
    NEVER,
    NO_LIMIT,
    UNSURE,
    Run,
    Search,
    Second,
    conclude,
    estimate,
)

BOUND = "read.clat.p99<=10ms"


def run(rate: float, share: float, seconds: int = 10, **more: float) -> Run:
    each = Second(round(rate), round(rate * share))
    return replace(Run(rate, rate, (each,) * seconds, 0.01, 0.01, 2000.0), **more)  # type: ignore[arg-type]


def test_the_interval_holds_the_limit_of_an_m_m_1_queue() -> None:
    # P(sojourn > b) = exp(-(mu - rate) b), so p99 = b at mu - ln(100) / b
    queue = Queue(mean_s=1 / 1000, bound_s=0.01)
    limit = 1000 - math.log(100) / 0.01
    held = 0
    for seed in range(3):
        answer = conclude(search_on(queue, seed, 180)[0], BOUND, ())
        assert answer.low is not None and answer.high is not None
        held += answer.low <= limit <= answer.high
        assert (answer.high - answer.low) / (answer.high + answer.low) < 0.12
    assert held == 3


def test_a_wide_interval_says_which_time_makes_it_narrower() -> None:
    queue = Queue(1 / 500, 0.02, constant=True)
    short = conclude(search_on(queue, 4, 180)[0], BOUND, ())
    longer = re.search(r"--time (\d+)", short.notes[-1])
    assert longer is not None and int(longer[1]) > 180, short.notes
    search = search_on(queue, 4, float(longer[1]))[0]
    found = search.estimate()
    assert found is not None and found.half_width < 0.085
    assert not any("--time" in note for note in conclude(search, BOUND, ()).notes)


def test_a_stall_is_no_limit() -> None:
    # one bad second at 2,276/s does not mean too fast: without it, 3,083/s is reached
    stalled = Run(2276, 2276, (*[Second(2276, 0)] * 9, Second(2276, 2200)), 0.01, 0.01, 5000.0)
    assert stalled.is_stalled and not run(2276, 0.02).is_stalled
    search = Search(2276, 50, 5000)
    for each in (stalled, run(3083, 0.0), run(2400, 0.0), run(4500, 0.9)):
        if not each.is_stalled:
            search.add(each)
    found = search.estimate()
    assert found is not None and found.best > 3083


def test_a_burst_that_ends_is_said_and_what_it_did_does_not_count() -> None:
    search = Search(3000, 50, 4000)
    for each in (run(3000, 0.0), run(1000, 0.9), run(500, 0.0), run(800, 0.3), run(600, 0.0)):
        search.add(each)
    answer = conclude(search, BOUND, ())
    assert answer.high is not None and answer.high < 900
    assert "3,000/s kept the bound, and later 1,000/s did not" in answer.notes[0]
    for each in (run(450, 0.9), run(300, 0.0)):
        search.add(each)
    assert conclude(search, BOUND, ()).kind == UNSURE


def test_the_limit_of_a_burst_is_never_given() -> None:
    fast, slow = Queue(1 / 1500, 0.02, constant=True), Queue(1 / 500, 0.02, constant=True)
    for seed in range(2):
        answer = conclude(search_on(fast, seed, 180, slow, 45.0)[0], BOUND, ())
        assert answer.notes and "later" in answer.notes[0]
        assert (answer.low or 0) <= slow.limit <= (answer.high or 0)


def test_a_bound_that_is_never_kept() -> None:
    search = Search(1500, 40, 2000)
    for _ in range(20):
        step = search.next()
        if step is None:
            break
        search.add(run(step.rate, 0.3, round(step.seconds) * 4))
    answer = conclude(search, BOUND, ())
    assert answer.kind == NEVER and "not even at 40/s" in answer.text


def test_a_limit_that_nothing_reaches() -> None:
    search = Search(1500, 40, 2000)
    for each in (run(1500, 0.0), run(1900, 0.001)):
        search.add(each)
    answer = conclude(search, BOUND, (), "fio itself can't send more")
    assert answer.kind == NO_LIMIT and answer.text == (
        "no limit found up to 1,900/s: fio itself can't send more"
    )


def test_a_device_that_falls_behind_fails_however_fast_the_rest_is() -> None:
    behind = Run(2000, 1500.0, (Second(1500, 0),) * 10, 0.01, 0.01, 1500.0)
    assert behind.is_behind and behind.keeps is False
    assert not run(1500, 0.0).is_behind
    # 5 % less of 100 I/Os is chance
    assert not Run(20, 19.0, (Second(19, 0),) * 5, 0.01, 0.01, 1500.0).is_behind


def test_what_does_not_depend_on_the_rate_has_no_limit() -> None:
    rng = random.Random(3)
    search = Search(100, 20, 1000)
    for rate in (100, 200, 300, 400, 500, 150, 250, 350):
        share = rng.choice((0.0, 0.04))
        search.add(run(rate, share))
    assert conclude(search, BOUND, ()).kind == UNSURE


@pytest.mark.parametrize("allowed", [0.001, 0.01, 0.05, 0.5])
def test_the_interval_is_around_the_rate_at_which_the_share_is_allowed(allowed: float) -> None:
    runs = []
    for rate in (600, 800, 900, 1000, 1100, 1200, 1500):
        odds = allowed / (1 - allowed) * (rate / 1000) ** 8
        count = round(rate * 100 * odds / (1 + odds))
        seconds = (Second(rate * 100, count),) * 10
        runs.append(Run(rate, rate, seconds, allowed, 0.0001, 5000.0))
    found = estimate(runs)
    assert found is not None and found.low is not None and found.high is not None
    assert found.low <= 1000 <= found.high
    assert math.isclose(found.best, 1000, rel_tol=0.03) and found.half_width < 0.1
