"""What a comparison's repeats can detect, in words."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import pytest
from made_comparisons import plan, runs

from iopstui.model.experiment.comparison import (
    RESOLUTION,
    final_sensitivity,
    measured_noise,
    planned_sensitivity,
    sensitivity_so_far,
)
from iopstui.model.experiment.comparison_text import ComparisonResults
from iopstui.model.metrics.statistics import POWER, power

TEXTS = ("bs=4k", "bs=8k")
DETECTS = re.compile(
    r"With (\d+) repeats and (.+) % noise this can detect a (.+) % difference in IOPS. "
    r"For (.+) % use (\d+) repeats\."
)


@pytest.mark.parametrize("variants", [2, 3])
@pytest.mark.parametrize("spread", [0.005, 0.03, 0.1])
@pytest.mark.parametrize("repeats", [5, 6, 20])
def test_each_number_of_the_sentence_is_the_power_s(
    repeats: int, spread: float, variants: int
) -> None:
    texts = [f"bs={4 << n}k" for n in range(variants)]
    found = DETECTS.fullmatch(planned_sensitivity(plan(repeats, *texts), spread))
    assert found is not None
    number, noise, finds, misses, takes = (float(word) for word in found.groups())
    alpha, apart = 0.05 / (variants - 1), spread * math.sqrt(2)
    assert number == repeats and noise == 100 * spread
    assert power(math.log1p(finds / 100), apart, repeats, alpha) >= POWER - 1e-3
    assert power(math.log1p(misses / 100), apart, repeats, alpha) < POWER
    assert power(math.log1p(misses / 100), apart, int(takes), alpha) >= POWER


def test_an_estimate_is_called_one() -> None:
    assert planned_sensitivity(plan(5, *TEXTS), None) == (
        "With 5 repeats and 3 % noise (estimate, updated after repeat 3) this can detect a 10 % "
        "difference in IOPS. For 7 % use 6 repeats."
    )
    assert "estimate" not in planned_sensitivity(plan(5, *TEXTS), 0.02)


@pytest.mark.parametrize("repeats", [2, 4])
def test_too_few_repeats_are_named_before_they_are_run(repeats: int) -> None:
    assert planned_sensitivity(plan(repeats, *TEXTS), None) == (
        f"With {repeats} repeats no difference is claimed: at least 5 repeats are needed to claim "
        "a difference."
    )


def test_the_noise_of_the_primary_figure() -> None:
    found = runs(random.Random(1), 400, 1000.0, 2000.0)
    assert measured_noise(found, "IOPS") == pytest.approx(0.03, rel=0.1), (
        "the helper's, whatever differs"
    )
    assert measured_noise(found, "p99") == pytest.approx(0.03, rel=0.1)
    assert measured_noise(found, "p99") != measured_noise(found, "IOPS")
    assert measured_noise(runs(random.Random(1), 1, 1000.0, 2000.0), "IOPS") is None
    assert sensitivity_so_far(plan(9, *TEXTS), [*found[:1], {}]) == ""
    first = replace(found[1][0], p99_ns=None)
    assert measured_noise([found[0], {**found[1], 0: first}], "p99") is None


def test_steps_of_a_percentile_limit_what_can_be_detected() -> None:
    of_p99 = replace(plan(5, *TEXTS), figure="p99")
    words = planned_sensitivity(of_p99, 0.0001)
    finds = re.search(r"detect a (.+) % difference in p99", words)
    assert finds is not None
    least = float(finds[1]) / 100
    assert power(math.log1p(least), RESOLUTION / math.sqrt(6), 5) >= POWER - 1e-3
    assert "0.1 % difference in IOPS" in planned_sensitivity(plan(5, *TEXTS), 0.0001)


def test_it_is_said_after_a_comparison_that_shows_nothing() -> None:
    equal = runs(random.Random(3), 5, 1000.0, 1000.0)
    words = list(ComparisonResults(plan(5, *TEXTS), equal).verdicts())
    assert words[-1] == final_sensitivity(plan(5, *TEXTS), equal, 5)
    assert "noise (measured) this can detect" in words[-1]
    apart = runs(random.Random(3), 5, 1000.0, 2000.0)
    assert "noise (measured)" not in " ".join(ComparisonResults(plan(5, *TEXTS), apart).verdicts())


def test_noise_that_hides_everything() -> None:
    assert "can detect only more than 500 % in IOPS" in planned_sensitivity(plan(5, *TEXTS), 2.0)
    assert planned_sensitivity(plan(20, *TEXTS), 0.0001).endswith("a 0.1 % difference in IOPS.")
