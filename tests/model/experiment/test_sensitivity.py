"""What a comparison's repeats can find, in words."""

from __future__ import annotations

import math
import random
import re

import pytest
from made_comparisons import plan, runs

from iopstui.model.experiment.comparison import METRICS
from iopstui.model.experiment.sensitivity import after, before, seen, so_far
from iopstui.model.experiment.words import Results
from iopstui.model.metrics.power import POWER, power

TEXTS = ("bs=4k", "bs=8k")
FINDS = re.compile(r"(\d+) repeats find a difference of (.+) %, not of (.+) % \(that takes (\d+)\)")


@pytest.mark.parametrize("spread", [0.005, 0.03, 0.1])
@pytest.mark.parametrize("repeats", [4, 5, 20])
def test_each_number_of_the_sentence_is_the_power_s(repeats: int, spread: float) -> None:
    found = FINDS.search(before(plan(repeats, *TEXTS), spread))
    assert found is not None
    number, finds, misses, takes = (float(word) for word in found.groups())
    alpha, apart = 0.05 / len(METRICS), spread * math.sqrt(2)
    assert number == repeats
    assert power(math.log1p(finds / 100), apart, repeats, alpha) >= POWER - 1e-3
    assert power(math.log1p(misses / 100), apart, repeats, alpha) < POWER
    assert power(math.log1p(misses / 100), apart, int(takes), alpha) >= POWER


def test_an_assumption_is_called_one() -> None:
    assert "3 % from run to run (assumed;" in before(plan(5, *TEXTS), None)
    assert "assumed" not in before(plan(5, *TEXTS), 0.02)
    assert "third repeat" not in before(plan(2, *TEXTS), None)


def test_the_spread_seen() -> None:
    found = runs(random.Random(1), 400, 1000.0, 2000.0)
    assert seen(found) == pytest.approx(0.03, rel=0.1), "the helper's noise, whatever differs"
    assert seen(runs(random.Random(1), 1, 1000.0, 2000.0)) is None
    assert so_far(plan(9, *TEXTS), [*found[:1], {}]) == ""


def test_it_is_said_after_a_comparison_that_shows_nothing() -> None:
    equal = runs(random.Random(3), 5, 1000.0, 1000.0)
    words = list(Results(plan(5, *TEXTS), equal).verdicts())
    assert words[-1] == after(plan(5, *TEXTS), equal, 5) != ""
    apart = runs(random.Random(3), 5, 1000.0, 2000.0)
    assert "with the spread seen" not in " ".join(Results(plan(5, *TEXTS), apart).verdicts())


def test_what_can_t_be_found_at_all() -> None:
    assert "only beyond 500 % (that takes " in before(plan(2, *TEXTS), 0.5)
    assert before(plan(20, *TEXTS), 0.0001).endswith("20 repeats find a difference of 0.1 %")
