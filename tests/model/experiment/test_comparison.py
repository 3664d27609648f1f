"""Comparisons of settings on synthetic runs whose answer is known."""

from __future__ import annotations

import io
import json
import math
import random
import re
import statistics
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_comparisons import Runs, finished, plan, point, runs

from iopstui.model.experiment import comparison_text as module
from iopstui.model.experiment.comparison import (
    CpuShift,
    compare,
    cpu_shifts,
    differences_are_precise,
    mean,
)
from iopstui.model.experiment.comparison_text import ComparisonResults, cpu_shift_lines
from iopstui.model.experiment.plan import (
    KNOB,
    Plan,
    Setting,
    expand_plan,
    parse_variant,
    with_unvaried_tunables,
)
from iopstui.model.experiment.point import Point
from iopstui.model.metrics.statistics import power
from iopstui.output.experiment.compare import CompareJson, CompareTable, csv_cells
from iopstui.output.experiment.sink import ExperimentCsv, JsonLines


def words(found: Runs, repeats: int = 5) -> str:
    texts = [f"iodepth={n + 1}" for n in range(len(found))]
    return "\n".join(ComparisonResults(plan(repeats, *texts), found).verdicts())


def alarms(make: Callable[[random.Random], Runs], trials: int = 700, primary: bool = True) -> float:
    rng = random.Random(5)
    return (
        sum(
            any(t.shown for g in compare(make(rng)) for t in g if t.primary is primary)
            for _ in range(trials)
        )
        / trials
    )


@pytest.mark.parametrize("primary", [True, False])
def test_without_a_difference_at_most_one_comparison_in_twenty_finds_one(primary: bool) -> None:
    # independent figures are the hardest case; the standard error is 0.8 %
    assert alarms(lambda rng: runs(rng, 5, 1e5, 1e5), primary=primary) < 0.075


@pytest.mark.parametrize("primary", [True, False])
def test_more_variants_give_no_more_false_alarms(primary: bool) -> None:
    assert alarms(lambda rng: runs(rng, 5, 1e5, 1e5, 1e5, 1e5), 400, primary) < 0.085


def test_the_primary_figure_is_tested_by_itself_and_the_others_together() -> None:
    found = runs(random.Random(8), 5, 1e5, 1.1e5, 1e5)
    for primary in ("IOPS", "p99"):
        groups = compare(found, primary=primary)
        flat = [one for group in groups for one in group]
        raw = [one.difference.p for one in flat if one.primary and one.difference]
        assert [one.p for one in flat if one.primary] == pytest.approx(_holm(raw))
        assert {one.metric.name for one in flat if one.primary} == {primary}
        others = [one.difference.p for one in flat if not one.primary and one.difference]
        assert len(others) == 12
        assert [one.p for one in flat if not one.primary] == pytest.approx(_holm(others))


def _holm(values: list[float]) -> list[float]:
    """Holm's correction by its definition: for each value, the largest product of a value up to it
    and the number of values at least as large."""
    return [
        min(1.0, max(v * sum(w >= v for w in values) for v in values if v <= value))
        for value in values
    ]


def test_the_plan_s_power_is_that_of_the_whole_program() -> None:
    """5 repeats, 3 % noise, 10 % more IOPS: 95 % in theory. Correcting the primary figure for all
    seven figures would leave 57 %. The standard error of 300 comparisons is 1.3 %."""
    rng = random.Random(9)
    found = sum(
        next(t.shown for t in compare(runs(rng, 5, 1e5, 1.1e5))[0] if t.primary)
        for _ in range(300)
    ) / 300  # fmt: skip
    assert abs(found - power(math.log1p(0.1), 0.03 * math.sqrt(2), 5)) < 0.045


@pytest.mark.parametrize("repeats", [2, 3, 4])
def test_fewer_than_five_repeats_claim_nothing(repeats: int) -> None:
    found = runs(random.Random(1), repeats, 1e5, 3e5, shares=(0.9, 0.1))
    assert not any(one.shown or one.better is not None for one in compare(found)[0])
    assert not any(shift.shown or shift.moved for shift in cpu_shifts(*found))
    text = words(found, repeats)
    assert text.startswith(
        "B (iodepth=2) against A (iodepth=1): at least 5 repeats are needed to claim a difference; "
        "measured: IOPS +"
    )
    assert not re.search("better|worse|can show|can detect", text)


def test_no_difference_is_said_with_what_could_still_be() -> None:
    text = words(runs(random.Random(2), 5, 1e5, 1e5))
    assert "no difference that 5 runs of each can detect" in text
    assert "lies between -" in text


def test_a_cost_that_no_one_cpu_pays_is_said() -> None:
    # the jobs run on another CPU in every run: the cost is certain, which CPU pays it is not
    rng = random.Random(4)
    found = [
        {
            n: replace(
                point(rng, 1e5), cpu_us=rng.gauss(cost, 0.2), busy={0: 90.0 - away, 1: 80.0 + away}
            )
            for n, away in enumerate((0, 10, 0, 9, 1, 10))
        }
        for cost in (20, 30)
    ]
    for n, one in found[1].items():
        found[1][n] = replace(one, busy={0: 170 - found[0][n].busy[0], 1: 90.0})
    text = words(found, 6)
    assert (
        "cannot tell which CPU does more work: no load differs by more than its noise from run to "
        "run"
        in text
        and "CPU 1 85 → 90 %" in text
    )
    cheap = [found[0], found[0]]
    assert "can't be told" not in words(cheap, 6)


def test_payers_are_named_before_the_relieved_and_the_rest_counted() -> None:
    loads = {0: (50, 90), 1: (50, 80), 2: (50, 70), 3: (50, 60), 4: (90, 10), 5: (50, 50.5)}
    shifts = [
        CpuShift(cpu, (float(a), float(b)), (0.0, 0.0), True, False)
        for cpu, (a, b) in loads.items()
    ]
    assert list(cpu_shift_lines(shifts, "A", "B")) == [
        "CPU 0 does more with B: its load goes from 50 to 90 %",
        "CPU 1 does more with B: its load goes from 50 to 80 %",
        "2 more (CPU 2, 3) do more, too with B, by less",
        "CPU 4 does less with B: its load goes from 90 to 10 %",
    ]


def test_a_share_is_told_before_and_after() -> None:
    text = words(runs(random.Random(3), 6, 1e5, 1e5, shares=(0.9, 0.2)))
    assert "busiest CPU's completions 89 → 79 %, -" in text


def test_chance_moves_no_completions() -> None:
    assert "completions move" not in words(runs(random.Random(4), 5, 1e5, 1e5))


def test_an_interval_is_that_of_the_table_of_student_s_t() -> None:
    """Five pairs with ratios of 1.10 to 1.30. By hand: the logarithms' mean is 0.18058 and their
    standard error 0.029530; t with 4 degrees of freedom is 2.7764 (printed tables)."""
    first, second = runs(random.Random(1), 5, 1e5, 1e5)
    for n, ratio in enumerate((1.10, 1.15, 1.20, 1.25, 1.30)):
        second[n] = replace(second[n], iops=ratio * first[n].iops)
    ((iops, *_),) = compare([first, second])
    found = iops.difference
    assert found is not None and iops.metric.name == "IOPS" and iops.shown
    logs = [math.log(ratio) for ratio in (1.10, 1.15, 1.20, 1.25, 1.30)]
    error = statistics.stdev(logs) / math.sqrt(5)
    assert (statistics.fmean(logs), error) == pytest.approx((0.18058, 0.029530), rel=1e-3)
    bounds = [math.expm1(0.18058 + sign * 2.7764 * 0.029530) for sign in (-1, 0, 1)]
    assert (found.low, found.mean, found.high) == pytest.approx(tuple(bounds), abs=2e-4)


def test_an_interval_that_only_the_correction_overrules_says_so() -> None:
    rng = random.Random(12)
    first, second, third = runs(rng, 5, 1e5, 1e5, 1e5)
    for n, share in enumerate((0.980, 0.905, 0.861, 0.835, 0.741)):
        second[n] = replace(second[n], iops=share * first[n].iops)
    text = words([first, second, third])
    assert "no difference" in text
    assert "IOPS would differ by -2" in text
    assert "with several, one may differ by chance" in text


def test_a_difference_in_secondary_figures_alone() -> None:
    rng = random.Random(13)
    first, second = runs(rng, 5, 1e5, 1e5)
    for n, one in second.items():
        second[n] = replace(one, p99_ns=2 * (first[n].p99_ns or 0.0))
    line = words([first, second]).splitlines()[0]
    assert "no difference in IOPS that 5 runs of each can detect; in IOPS it lies between" in line
    assert "; secondary, worse: p99 +100 %" in line
    chosen = replace(plan(5, "iodepth=1", "iodepth=2"), figure="p99")
    told = next(ComparisonResults(chosen, [first, second]).verdicts())
    assert "): worse: p99 +100 %" in told and "no difference shown in IOPS" in told


def on(rng: random.Random, *cpus: int) -> dict[int, Point]:
    """Runs that differ in nothing but the CPU that completes."""
    return {n: replace(point(rng, 1e5), completions={cpu: 1.0}) for n, cpu in enumerate(cpus)}


def test_completions_that_move_alone_are_part_of_the_verdict() -> None:
    rng = random.Random(6)
    found = [on(rng, 3, 3, 3, 3, 3), on(rng, 0, 0, 0, 0, 0)]
    for runs_of in found:
        for n, one in runs_of.items():
            shares = {cpu: one.completions.get(cpu, 0.0) for cpu in (0, 3)}
            runs_of[n] = replace(one, busy={0: 50.0, 3: 50.0}, completions=shares)
    first, second, *_ = words(found, 5).splitlines()
    assert "completions run elsewhere, but no difference in IOPS, latency or CPU time" in first
    assert second == "completions move from A to B: CPU 0 0 → 100 %, CPU 3 100 → 0 %"


def test_a_job_that_wanders_is_no_move_of_completions() -> None:
    rng = random.Random(7)
    wandered = [on(rng, 1, 1, 1), on(rng, 1, 0, 0)]
    text = words(wandered, 3)
    assert "completions move" not in text and "run elsewhere, but" not in text
    assert "with B completions ran elsewhere on average (CPU 0 0 → 67 %, CPU 1 100 → 33 %)" in text
    assert "cpus_allowed in the job keeps it on the same CPUs" in text
    chosen = replace(plan(3, "iodepth=1", "iodepth=2"), options={"cpus_allowed": "0"})
    assert "cpus_allowed" not in "".join(ComparisonResults(chosen, wandered).verdicts())


def test_two_repeats_tell_nothing_of_single_cpus() -> None:
    rng = random.Random(8)
    text = words([on(rng, 1, 1), on(rng, 0, 0)], 2)
    assert "completions move" not in text and "can't tell" in text


def test_an_interrupted_comparison_says_that_it_is_not_enough() -> None:
    found = runs(random.Random(1), 3, 1e5, 1.5e5)
    del found[1][2]
    text = words(found)
    assert "interrupted after 2 of 5 repeats" in text and "too few for a verdict" in text
    del found[1][1]
    assert words(found).startswith("not enough: 1 complete repeat of 5")
    assert words([{0: found[0][0]}, {}]).startswith("not enough: no complete")


@pytest.mark.parametrize("rates", [(1e5, 1.2e5), (1e5, 40e5), (1e5, 1e5, 2e3)])
def test_the_table_keeps_to_80_columns(rates: tuple[float, ...]) -> None:
    found = runs(random.Random(9), 5, *rates)
    chosen = plan(5, *(f"iodepth={n + 1}" for n in range(len(rates))))
    out = io.StringIO()
    table = CompareTable(chosen, out)
    for event in finished(chosen, found):
        table.point(event)
    table.end(ComparisonResults(chosen, found))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    assert "busiest CPU's completions" in out.getvalue()


def test_json_and_csv() -> None:
    found, chosen = runs(random.Random(9), 2, 1e5, 2e5), plan(2, "iodepth=1", "iodepth=2")
    out, rows = io.StringIO(), io.StringIO()
    sink, table = CompareJson(chosen, JsonLines(out, "h")), ExperimentCsv(csv_cells(chosen), rows)
    for event in finished(chosen, found):
        sink.point(event)
        table.point(event)
    sink.end(ComparisonResults(chosen, found))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["event"] for line in lines[:3]] == ["session", "compare", "point_finished"]
    assert sum(line["event"] == "difference" for line in lines) == 7
    assert lines[1]["primary"] == "IOPS"
    assert [row["figure"] for row in lines[2:] if row.get("primary")] == ["IOPS"]
    assert lines[-1]["complete"] == 2
    assert [row.split(",")[1] for row in rows.getvalue().splitlines()[1:]] == ["A", "B", "B", "A"]


def test_a_knob_that_one_variant_turns_the_others_find_as_it_was() -> None:
    variants = (parse_variant("rq_affinity=2"), parse_variant("iodepth=4"), parse_variant("as-is"))
    first, *others = with_unvaried_tunables(variants, {"rq_affinity": "1"})
    assert first.kept == ()
    assert [one.kept for one in others] == [(Setting(KNOB, "rq_affinity", "1"),)] * 2
    assert [one.label for one in others] == ["iodepth=4", "as-is"], "not part of its name"
    steps = list(expand_plan(Plan(("j",), {}, variants=(first, *others), repeats=2)))
    assert steps[1].settings_of(KNOB) == {"rq_affinity": "1"}


@given(st.integers(0, 2**32), st.integers(2, 6))
def test_any_runs_give_verdicts(seed: int, repeats: int) -> None:
    rng = random.Random(seed)
    found = runs(rng, repeats, rng.uniform(1, 1e6), rng.uniform(1, 1e6))
    assert words(found, repeats).count("against") >= 1


def test_means_of_figures_that_are_not_positive_are_arithmetic() -> None:
    assert mean([4.0, 9.0], geometric=True) == pytest.approx(6.0)
    assert mean([0.0, 9.0], geometric=True) == 4.5
    assert mean([4.0, 9.0], geometric=False) == 6.5


@given(st.floats(-1e6, 1e6))
def test_a_difference_never_widens_the_table(share: float) -> None:
    text = module._signed_text(100 * share)
    assert len(text) <= 6 and text[0] in "+-"


def test_until_a_precision_is_reached() -> None:
    chosen = replace(plan(30, "bs=4k", "bs=8k"), until=0.02)
    rng = random.Random(4)
    found = [{n: point(rng, 1e5, noise=0.005) for n in range(12)} for _ in range(2)]
    first = next(
        n
        for n in range(2, 13)
        if differences_are_precise([{k: r[k] for k in range(n)} for r in found], 0.02)
    )
    results = ComparisonResults(chosen, [{k: r[k] for k in range(first)} for r in found])
    (iops,) = [one.difference for one in results.tested[0] if one.metric.name == "IOPS"]
    assert results.settled and first >= 6 and iops is not None
    assert math.log1p(iops.high) - math.log1p(iops.low) <= 2 * math.log1p(0.02)
    said = list(results.verdicts())
    assert said[-1] == f"the difference in IOPS is known to within ±2 % after {first} repeats"
    assert "interrupted" not in " ".join(said)
    noisy = [{n: point(rng, 1e5, noise=0.1) for n in range(7)} for _ in range(2)]
    (*_, last) = ComparisonResults(chosen, noisy).verdicts()
    assert last.startswith("interrupted after 7 of at most 30 repeats the difference in IOPS")
    assert "noise (measured) that takes about " in last
    few = [{n: one[n] for n in range(3)} for one in noisy]
    assert "at least 6 repeats are needed" in next(iter(ComparisonResults(chosen, few).verdicts()))


def test_a_neighbour_beside_one_setting_alone_is_told_beside_the_difference() -> None:
    """A neighbour reads 500 MiB/s in all five runs of B and halves its IOPS; the setting changes
    nothing."""
    found = runs(random.Random(1), 5, 15_000, 7_500)

    def text(*beside: int) -> str:
        made = [{n: replace(one, others=0.9, disturbed=("much",)) if side in beside else one
                 for n, one in each.items()} for side, each in enumerate(found)]  # fmt: skip
        return words(made)

    assert "much; others did I/O in all of its runs and in none of A's)" in text(1)
    assert "much; others did I/O in all of A's runs and in none of its own)" in text(0)
    assert "in none of" not in text() + text(0, 1)
