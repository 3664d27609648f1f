"""What a comparison's repeats can find, in words: before it runs, while it does, and after it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from iopstui.model.experiment.comparison import METRICS, pairs
from iopstui.model.experiment.plan import Plan
from iopstui.model.experiment.point import Point
from iopstui.model.metrics.power import (
    MOST_REPEATS,
    repeats_for,
    smallest,
    spread_of,
)
from iopstui.model.metrics.sequential import runs_needed
from iopstui.model.metrics.statistics import CONFIDENCE

ASSUMED = 0.03
"""From run to run, where nothing is known: a quiet disk's (docs/statistics.md)."""
KNOWN_FROM = 3
"""Repeats from which on the spread seen says something: two give one difference of differences."""
ROUND = (
    0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07,
    0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0,
)  # fmt: skip
Runs = Sequence[Mapping[int, Point]]


def before(plan: Plan, spread: float | None, option: str = "--spread says it") -> str:
    """What the planned repeats will find. ``spread`` is what is said of the runs (0.03: 3 %
    from run to run); ``None``: ASSUMED, and ``option`` tells how to say it ("": it can't be)."""
    known = ASSUMED if spread is None else spread
    told = f"{_percent(known)} from run to run"
    if spread is None:
        later = "from the third repeat on it is known" if plan.repeats >= KNOWN_FROM else ""
        known_by = ", and ".join(filter(None, (option, later)))
        told += f" (assumed; {known_by})" if known_by else " (assumed)"
    return f"if runs of one setting spread by {told}, {_expected(plan, known)}"


def so_far(plan: Plan, runs: Runs) -> str:
    """The same with the spread seen in the first KNOWN_FROM repeats; "" where it can't be said."""
    spread = seen(runs)
    if spread is None:
        return ""
    return f"runs of one setting spread by about {_percent(spread)}: {_expected(plan, spread)}"


def after(plan: Plan, runs: Runs, repeats: int) -> str:
    """What ``repeats`` could have found in IOPS, and how many would find more; "" where it can't
    be said."""
    spread = seen(runs)
    if spread is None:
        return ""
    finds = _finds(plan, repeats, spread)
    return f"with the spread seen, {_percent(spread)} from run to run, {finds}"


def stopped(plan: Plan, runs: Runs, repeats: int, reached: bool) -> str:
    """Why a comparison with ``plan.until`` ended after so many repeats."""
    within = f"to within ±{_percent(plan.until or 0.0)}"
    if reached:
        return f"the difference in IOPS is known {within} after {repeats} repeats"
    at = "interrupted after" if repeats < plan.repeats else "after"
    words = f"{at} {repeats} of at most {plan.repeats} repeats it is not known {within}"
    spread = seen(runs)
    if spread is None:
        return words
    told = f"with the spread seen, {_percent(spread)} from run to run"
    return f"{words}; {told}, {_takes(plan, spread)}"


def _expected(plan: Plan, spread: float) -> str:
    if plan.until is None:
        return _finds(plan, plan.repeats, spread)
    return (
        f"{_takes(plan, spread)} until the difference in IOPS is known to within "
        f"±{_percent(plan.until)} (at most {plan.repeats} are run)"
    )


def _takes(plan: Plan, spread: float) -> str:
    apart, within = spread * math.sqrt(2), math.log1p(plan.until or 0.0)
    needed = runs_needed(apart, within, 1 - CONFIDENCE, MOST_REPEATS)
    return (
        f"it takes {f'more than {MOST_REPEATS}' if needed is None else f'about {needed}'} repeats"
    )


def seen(runs: Runs) -> float | None:
    """The IOPS' spread of one run around what its repeat and its setting make of it, as a share;
    the largest of all variants. ``None`` with fewer than two complete repeats."""
    found = [spread_of([(a.iops, b.iops) for a, b in pairs(runs[0], other)]) for other in runs[1:]]
    known = [one / math.sqrt(2) for one in found if one is not None]
    return max(known) if len(known) == len(found) and known else None


def _finds(plan: Plan, repeats: int, spread: float) -> str:
    """ "5 repeats find a difference of 20 %, not of 10 % (that takes 9)". Corrected as if one
    figure alone differed: where several do, less is enough."""
    alpha = (1 - CONFIDENCE) / (len(METRICS) * (len(plan.variants) - 1))
    apart = spread * math.sqrt(2)
    least = smallest(apart, repeats, alpha)
    found = next((one for one in ROUND if math.log1p(one) >= least), None)
    missed = next((one for one in reversed(ROUND) if math.log1p(one) < least), None)
    what = f"{repeats} repeats find a difference "
    what += f"of {_percent(found)}" if found else f"only beyond {_percent(ROUND[-1])}"
    if missed is None:
        return what
    enough = repeats_for(math.log1p(missed), apart, alpha)
    takes = f"more than {MOST_REPEATS}" if enough is None else f"{enough}"
    if found is None:
        return f"{what} (that takes {takes})"
    return f"{what}, not of {_percent(missed)} (that takes {takes})"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"
