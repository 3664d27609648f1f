"""Sweeps whose points are run several times: their order, means, intervals and knees."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import made_sweeps
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy_scipy import stats

from iopstui.events import PointFinished
from iopstui.model.experiment.load_curve import (
    LoadCurve,
    conclusions,
    curve_text,
    failure_lines,
    load_curves,
    measured_points,
    other_load,
)
from iopstui.model.experiment.plan import Plan, expand_plan, parse_axis
from iopstui.model.experiment.point import (
    geometric_mean,
    merge_runs,
)
from iopstui.model.metrics.statistics import knee_within

PLAN = Plan(("j", "k"), {}, (parse_axis("iodepth=1,2,4"), parse_axis("numjobs=1,4")), repeats=3)
LINE = Plan(("j",), {}, (parse_axis("iodepth=1,2,4..64"),))


def scaled(event: PointFinished, by: float, **more: object) -> PointFinished:
    one = event.point
    point = replace(one, iops=one.iops * by, latency_ns=(one.latency_ns or 0) / by, **more)
    return replace(event, point=point)


def noisy(plan: Plan, spread: float, seed: int = 1) -> list[PointFinished]:
    rng = random.Random(seed)
    return [scaled(one, rng.lognormvariate(0, spread)) for one in made_sweeps.finished(plan)]


# -- the order


def test_every_round_has_every_point_and_a_job_its_rounds_at_once() -> None:
    points = list(expand_plan(PLAN))
    assert len(points) == PLAN.points == 36
    assert [one.job for one in points] == ["j"] * 18 + ["k"] * 18
    labels = [one.label for one in points[:6]]
    for first in range(0, 18, 6):
        assert [one.label for one in points[first : first + 6]] == labels
    assert [one.repeat for one in points[:18:6]] == [0, 1, 2]


@given(st.integers(0, 999_999_999))
def test_chance_orders_each_round_anew_and_a_seed_gives_it_again(seed: int) -> None:
    long = replace(LINE, repeats=6, seed=seed)
    points = list(expand_plan(long))
    assert points == list(expand_plan(long)) and [one.index for one in points] == list(range(42))
    rounds = [[one.label for one in points if one.repeat == n] for n in range(6)]
    assert all(sorted(one) == sorted(rounds[0]) for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1


# -- means


@given(st.lists(st.integers(1, 10**6).map(float), min_size=2, max_size=9, unique=True))
def test_the_interval_is_student_s_on_the_logarithms(values: list[float]) -> None:
    found = geometric_mean(values)
    logs = [math.log(value) for value in values]
    error = stats.tstd(logs) / math.sqrt(len(logs))
    assert found.value == pytest.approx(stats.gmean(values)) and found.within is not None
    half = stats.t.ppf(0.975, len(logs) - 1) * error
    middle = sum(logs) / len(logs)
    assert found.within == pytest.approx((math.exp(middle - half), math.exp(middle + half)))


def test_figures_of_several_runs() -> None:
    one = made_sweeps.device(8, 1)
    first = replace(one, steady=True, iops_low=5.0, iops_high=9.0, busy={0: 50.0}, max_ns=3)
    second = replace(one, steady=None, iops_low=4.0, iops_high=8.0, busy={0: 30.0, 1: 10.0},
                     aqu_sz=None, max_ns=7)  # fmt: skip
    found = merge_runs([first, second])
    assert (found.seconds, found.ios) == (2 * one.seconds, 2 * one.ios)
    assert (found.iops_low, found.iops_high, found.max_ns) == (4.0, 9.0, 7)
    assert found.busy == {0: 40.0, 1: 5.0} and found.aqu_sz == one.aqu_sz
    assert (
        found.steady is None and merge_runs([first, replace(second, steady=False)]).steady is False
    )
    assert merge_runs([first]) is first, "a single run stays as it is"
    assert geometric_mean([0.0, 2.0]).within is None


# -- knees


def test_a_knee_says_which_others_it_may_be() -> None:
    plan = replace(LINE, repeats=5)
    runs = noisy(plan, 0.001)
    (curve,) = load_curves(plan, runs)
    assert curve.knee is not None and curve.knee_within == (curve.knee.index,) * 2
    assert (
        "exclude every other measured value (95 %)"
        in conclusions(measured_points(plan, runs), [curve])[0]
    )
    (curve,) = load_curves(plan, noisy(plan, 0.2))
    first, last = curve.knee_within or (0, 0)
    assert first < last, "noise leaves several"
    depths = [dict(curve.points[n].settings)["iodepth"] for n in (first, last)]
    assert f"leave open any value from {' to '.join(depths)} (95 %)" in curve_text(curve)
    single = replace(LINE, repeats=1)
    (curve,) = load_curves(single, noisy(single, 0.001))
    assert curve.knee is not None and curve.knee_within is None


def test_points_whose_intervals_overlap_are_named() -> None:
    plan = replace(LINE, repeats=5)
    (curve,) = load_curves(plan, noisy(plan, 0.3))
    match = re.search(
        r"The 95 % interval of the IOPS of iodepth=(\d+) overlaps th\w+ of ([^.]*)\.",
        curve_text(curve),
    )
    assert match is not None
    of = {dict(p.settings)["iodepth"]: p.point.iops_within or (0.0, 0.0) for p in curve.points}
    low, high = of.pop(match[1])
    assert re.split(", | and ", match[2]) == [
        name for name, other in of.items() if other[0] <= high and low <= other[1]
    ]
    single = replace(LINE, repeats=1)
    assert "95 % interval of" not in curve_text(load_curves(single, noisy(single, 0.001))[0])


@pytest.mark.parametrize(("last", "rising"), [(42_700, True), (37_000, False), (20_000, False)])
def test_a_curve_that_still_rises_at_its_end_says_so(last: int, rising: bool) -> None:
    """5.6k, 12.0k ... 36.3k, 42.7k IOPS: a deeper queue may do more."""
    made = noisy(replace(LINE, repeats=1), 0.0)
    iops = [5_600, 12_000, 18_100, 24_100, 29_700, 36_300 if last > 30_000 else 9_000, last]
    events = [
        replace(event, point=replace(event.point, iops=value, latency_ns=1e9 * 2**place / value))
        for place, (event, value) in enumerate(zip(made, iops, strict=True))
    ]
    (curve,) = load_curves(replace(LINE, repeats=1), events)
    text = curve_text(curve)
    rises = "Take iodepth=64 for the most IOPS (still rising: try larger values): "
    assert text.startswith(rises) is rising, text
    # 2 % more IOPS are not worth twice the latency
    enough = "Take iodepth=32 for the most IOPS (the smallest value with 95 % of the highest"
    assert text.startswith(enough) is (last == 37_000), text


def test_a_sweep_answers_for_most_iops_and_for_the_best_ratio() -> None:
    """Asked for the best throughput, somebody took the point with the best ratio for it."""
    figures = (15_000, 66_000), (34_500, 115_000), (56_400, 283_000), (64_000, 499_000)
    plan = replace(LINE, axes=(replace(LINE.axes[0], values=("1", "4", "16", "32")),))
    runs = made_sweeps.finished(plan)

    def text(most: int, *disturbed: int) -> str:
        why, rates = ("another program",), (*figures[:3], (most, figures[3][1]))
        events = [
            replace(run, point=replace(
                run.point, iops=iops, bw=4096 * iops, latency_ns=latency,
                disturbed=why * (n in disturbed), others=0.3, others_on=("vda",)))
            for n, (run, (iops, latency)) in enumerate(zip(runs, rates, strict=True))
        ]  # fmt: skip
        return curve_text(load_curves(plan, events)[0])

    both = (
        "take iodepth=32 for the most IOPS (still rising: try larger values): 64.0k IOPS, 250 "
        "MiB/s at 499 µs (mean); or iodepth=4 (best ratio of IOPS to latency): 34.5k IOPS, 135 "
        "MiB/s at 115 µs (mean), 46 % fewer IOPS with 23 % of the latency."
    )
    assert (
        text(64_000) == f"T{both[1:]} Each point ran once: 3 repeats would show how sure this is."
    )
    of_vda = "others did up to 30 % of the I/Os or bytes of vda."
    assert text(64_000, 0) == f"T{both[1:]} Not sure: {of_vda}"
    assert text(64_000, 0, 1, 2) == (f"Can't tell for sure; as measured, {both} Not sure: {of_vda}")
    assert text(37_000).startswith("Take iodepth=16 for the most IOPS: 56.4k IOPS")
    assert text(60_000).startswith(
        "Take iodepth=32 for the most IOPS (the largest measured: try larger values): 60.0k"
    )
    enough = (
        "Take iodepth=16 for the most IOPS (the smallest value with 95 % of the highest IOPS, "
        "those of iodepth=32, the largest measured): 56.4k IOPS"
    )
    assert text(58_000).startswith(enough), "3 % more are not worth twice the latency"


def test_the_true_knee_is_within_in_95_of_100_sweeps() -> None:
    rng, missed = random.Random(8), 0
    true = [1.0, 1.3, 1.6, 1.55, 1.2]
    for _ in range(1000):
        powers = [[one * rng.lognormvariate(0, 0.1) for _ in range(4)] for one in true]
        first, last = knee_within(powers) or (9, 9)
        missed += not first <= 2 <= last
    assert missed <= 50 + 2 * math.sqrt(1000 * 0.05 * 0.95)
    assert knee_within([[1.0], [2.0]]) is None and knee_within([[1.0, 2.0]]) is None


def test_no_knee_is_claimed_of_a_curve_that_dips() -> None:
    runs = made_sweeps.finished(LINE)
    assert not load_curves(LINE, runs)[0].doubt
    runs[4] = scaled(runs[4], 0.5)
    (curve,) = load_curves(LINE, runs)
    assert curve.knee is None and curve.uncertain_knee is not None
    (words, *_) = conclusions(measured_points(LINE, runs), [curve])
    assert "; or iodepth=8 (best ratio of" in words and "Not sure: IOPS fall at iodepth=16" in words
    # a device may do less under the deepest queues
    falling = [scaled(one, 0.5**n) if n else one for n, one in enumerate(runs[:3])]
    assert not load_curves(LINE, falling)[0].doubt


def test_what_the_repeats_explain_is_no_dip() -> None:
    plan = replace(LINE, repeats=3)
    runs = [
        scaled(one, (0.3, 1.7, 0.8)[one.repeat]) if one.label == "iodepth=16" else one
        for one in noisy(plan, 0.01)
    ]
    assert not load_curves(plan, runs)[0].doubt
    runs = [scaled(one, 0.5) if one.label == "iodepth=16" else one for one in noisy(plan, 0.01)]
    assert "by more than its repeats differ" in load_curves(plan, runs)[0].doubt


def test_no_knee_is_claimed_under_other_load() -> None:
    runs = made_sweeps.finished(LINE)
    runs[2] = scaled(runs[2], 1.0, device_bw=1.5 * runs[2].point.bw)
    (curve,) = load_curves(LINE, runs)
    assert curve.knee is None
    assert "at iodepth=4 the device moved up to 50 % more than fio did" in curve.doubt
    slow = replace(made_sweeps.device(1, 1), bw=4096.0, device_bw=900_000.0)
    assert other_load(slow) == 0, "a log's writes are no load"


def test_disturbed_points_show_no_knee_but_a_recommendation_with_its_doubt() -> None:
    runs = made_sweeps.finished(LINE)
    calm = conclusions(measured_points(LINE, runs), load_curves(LINE, runs))
    why = ("54.6k of 82.2k I/Os a second on vda were not this job's (reads)",)
    runs[2] = scaled(runs[2], 1.0, disturbed=why, others=0.664, others_on=("vda",))
    curves = load_curves(LINE, runs)
    assert curves[0].knee is None and "Not sure" not in " ".join(calm)
    first, second, *_ = conclusions(measured_points(LINE, runs), curves)
    assert second == (
        f"disturbed: #3: 1 of {len(runs)} points, others did 66 % of the I/Os or bytes of vda; "
        f"{why[0]}"
    )
    assert first.startswith("Take iodepth=16 ")
    assert first.endswith("Not sure: others did up to 66 % of the I/Os or bytes of vda.")
    most = [scaled(run, 1.0, disturbed=why, others=0.664, others_on=("vda",)) if n else run
            for n, run in enumerate(runs)]  # fmt: skip
    first, *_ = conclusions(measured_points(LINE, most), load_curves(LINE, most))
    assert first.startswith("Can't tell for sure; as measured, take iodepth=16 ")
    assert first.endswith("Not sure: others did up to 66 % of the I/Os or bytes of vda.")


def test_a_sweep_without_a_knee_ends_with_a_recommendation() -> None:
    two = replace(LINE, axes=(replace(LINE.axes[0], values=("1", "64")),))
    (words, *_) = conclusions(*_two_sided(two))
    assert words.startswith("Take iodepth=64 (the smallest value with 95 % of the highest IOPS): ")
    assert words.endswith("only 2 values measured.")
    plan = Plan(("j",), {}, (parse_axis("ioengine=libaio,io_uring,psync"),))
    made = made_sweeps.finished(LINE)[:3]
    engines = [
        replace(one, settings=(("ioengine", name),), point=replace(one.point, iops=iops))
        for one, name, iops in zip(made, plan.axes[0].values, (950.0, 1000.0, 500.0), strict=True)
    ]
    (words, *_) = conclusions(measured_points(plan, engines), [])
    assert words.startswith("Take ioengine=io_uring: 1.00k IOPS")
    assert "the most IOPS; within 10 %: ioengine=libaio. Each point ran once" in words
    assert "any value" in conclusions(measured_points(plan, engines[:2]), [])[0]
    assert not any("ake ioengine" in line for line in conclusions(engines, [], complete=False))


def _two_sided(plan: Plan) -> tuple[list[PointFinished], list[LoadCurve[PointFinished]]]:
    runs = made_sweeps.finished(plan)
    return measured_points(plan, runs), load_curves(plan, runs)


def test_which_points_failed_and_why() -> None:
    from iopstui.events import PointFailed

    steps = list(expand_plan(replace(PLAN, seed=3)))
    failed = [
        PointFailed(1.0, one.index, 36, one.label, one.job,
                    tuple((s.name, s.value) for s in one.settings), one.repeat, "too deep")
        for one in steps if ("iodepth", "4") in [(s.name, s.value) for s in one.settings]
    ]  # fmt: skip
    assert failure_lines(PLAN, failed) == ["failed: #3, #6, #9, #12: too deep"]


@pytest.mark.parametrize(
    ("held", "busy", "words"),
    [
        ({}, 99.0, ""),
        ({64: 0.1}, 99.0, ""),
        ({64: 0.37}, 99.0, "At iodepth=64 37 % of the I/Os in flight wait for a CPU, not for the "
                           "disk: the CPUs are full."),
        ({64: 0.37}, 60.0, "At iodepth=64 37 % of the I/Os in flight wait for a CPU, not for the "
                           "disk."),
        ({4: 0.5}, 99.0, ""),
        ({1: 0.3, 2: 0.25, 4: 0.5, 8: 0.4}, 99.0,
         "At 4 of 7 points 25 to 50 % of the I/Os in flight wait for a CPU, not for the disk: the "
         "CPUs are full."),
    ],
)  # fmt: skip
def test_a_sweep_says_that_its_points_wait_for_a_cpu(
    held: dict[int, float], busy: float, words: str
) -> None:
    """The dashboard's answer said so during the points, and the sweep's result did not."""
    plan = Plan(("j",), {}, (parse_axis("iodepth=1,2,4..64"),))
    events = []
    for n, event in enumerate(made_sweeps.finished(plan)):
        depth = 2**n
        waits = depth * held.get(depth, 0.0)
        point = replace(event.point, iops=1000.0 * depth, latency_ns=1e6, wait_cpu=waits,
                        busy={0: busy, 1: busy})  # fmt: skip
        events.append(replace(event, point=point))
    text = curve_text(load_curves(plan, events)[0])
    assert text.startswith("Take iodepth=64 ")
    assert (words in text) if words else ("wait for a CPU" not in text)
