"""Describe the smallest difference that a comparison can detect: before, during and after it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from iopstui.model.experiment.comparison import MIN_REPEATS, metric_named, paired_runs
from iopstui.model.experiment.plan import Plan
from iopstui.model.experiment.point import Point
from iopstui.model.metrics.statistics import (
    CONFIDENCE,
    MAX_REPEATS,
    repeats_for,
    runs_needed,
    smallest_detectable,
    spread_of,
)

ASSUMED_NOISE = 0.03
"""Assumed noise from run to run: that of a quiet disk (docs/statistics.md)."""
NOISE_KNOWN_FROM = 3
"""Repeats needed to use the measured noise: two give only one difference."""
ROUND_SHARES = (
    0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07,
    0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0,
)  # fmt: skip
TOO_FEW_REPEATS = f"at least {MIN_REPEATS} repeats are needed to claim a difference"
Runs = Sequence[Mapping[int, Point]]


def planned_sensitivity(plan: Plan, spread: float | None) -> str:
    """Describe the difference that the planned repeats can detect. ``spread`` is the run-to-run
    noise as the user knows it (0.03: 3 %); ``None``: ASSUMED_NOISE."""
    noise = f"{_percent_text(ASSUMED_NOISE if spread is None else spread)} noise"
    if spread is None:
        noise += f" (estimate, updated after repeat {NOISE_KNOWN_FROM})"
    return _expected_text(plan, ASSUMED_NOISE if spread is None else spread, noise)


def sensitivity_so_far(plan: Plan, runs: Runs) -> str:
    """Return the sensitivity with the noise of the first NOISE_KNOWN_FROM repeats; "" if not
    known."""
    spread = measured_noise(runs, plan.figure)
    if spread is None:
        return ""
    return _expected_text(plan, spread, f"{_percent_text(spread)} noise (measured so far)")


def final_sensitivity(plan: Plan, runs: Runs, repeats: int) -> str:
    """Describe the difference that ``repeats`` could detect, and the repeats for a smaller one;
    "" if unknown."""
    spread = measured_noise(runs, plan.figure)
    if spread is None:
        return ""
    return _detectable_text(plan, repeats, spread, f"{_percent_text(spread)} noise (measured)")


def why_stopped(plan: Plan, runs: Runs, repeats: int, reached: bool) -> str:
    """Why a comparison with ``plan.until`` ended after ``repeats``."""
    subject = f"the difference in {plan.figure} is"
    within = f"known to within ±{_percent_text(plan.until or 0.0)}"
    if reached:
        return f"{subject} {within} after {repeats} repeats"
    at = "interrupted after" if repeats < plan.repeats else "after"
    text = f"{at} {repeats} of at most {plan.repeats} repeats {subject} not {within}"
    spread = measured_noise(runs, plan.figure)
    if spread is None:
        return text
    noise = f"with {_percent_text(spread)} noise (measured)"
    return f"{text}; {noise} that takes {_runs_text(plan, spread)}"


def _expected_text(plan: Plan, spread: float, noise: str) -> str:
    if plan.until is None:
        return _detectable_text(plan, plan.repeats, spread, noise)
    return (
        f"With {noise} it takes {_runs_text(plan, spread)} until the difference in {plan.figure} "
        f"is known to within ±{_percent_text(plan.until)}. At most {plan.repeats} are run."
    )


def _runs_text(plan: Plan, spread: float) -> str:
    pair_spread, within = spread * math.sqrt(2), math.log1p(plan.until or 0.0)
    needed = runs_needed(pair_spread, within, 1 - CONFIDENCE, MAX_REPEATS)
    return f"more than {MAX_REPEATS} repeats" if needed is None else f"about {needed} repeats"


def measured_noise(runs: Runs, figure: str) -> float | None:
    """The noise of a figure from run to run, within a variant and a repeat, as a share; the largest
    of all variants. ``None`` with fewer than two complete repeats."""
    read = metric_named(figure).read
    spreads = []
    for variant in runs[1:]:
        values = [(read(a), read(b)) for a, b in paired_runs(runs[0], variant)]
        present = [(a, b) for a, b in values if a is not None and b is not None]
        spreads.append(spread_of(present) if len(present) == len(values) else None)
    noise = [spread / math.sqrt(2) for spread in spreads if spread is not None]
    return max(noise) if len(noise) == len(spreads) and noise else None


def _detectable_text(plan: Plan, repeats: int, spread: float, noise: str) -> str:
    """ "With 5 repeats and 3 % noise this can detect a 10 % difference in IOPS. For 7 % use 6
    repeats." "Detect" means: found in four of five comparisons."""
    if repeats < MIN_REPEATS:
        return f"With {repeats} repeats no difference is claimed: {TOO_FEW_REPEATS}."
    metric = metric_named(plan.figure)
    alpha = (1 - CONFIDENCE) / (len(plan.variants) - 1)
    # figures with a resolution differ by a step, however quiet the disk is
    pair_spread = max(spread * math.sqrt(2), metric.resolution / math.sqrt(6))
    least = smallest_detectable(pair_spread, repeats, alpha)
    detected = next((share for share in ROUND_SHARES if math.log1p(share) >= least), None)
    missed = next((share for share in reversed(ROUND_SHARES) if math.log1p(share) < least), None)
    size = (
        f"a {_percent_text(detected)} difference"
        if detected
        else f"only more than {_percent_text(ROUND_SHARES[-1])}"
    )
    text = f"With {repeats} repeats and {noise} this can detect {size} in {plan.figure}."
    if missed is None:
        return text
    enough = repeats_for(math.log1p(missed), pair_spread, alpha)
    use = f"more than {MAX_REPEATS}" if enough is None else f"{enough}"
    return f"{text} For {_percent_text(missed)} use {use} repeats."


def _percent_text(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"
