"""How often does a comparison claim what isn't so? `make simulate`: many made-up comparisons.

Each simulated comparison has the real plan's order of runs and the real test, on figures of known
noise and no difference: what it claims is false. 5 % is what it promises. A second table has how
often a true difference is found.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from iopstui.model.experiment.baseline import MOST, BaselineFigure, ratio_interval, spread
from iopstui.model.experiment.plan import Plan, expand, parse_variant
from iopstui.model.metrics.statistics import CONFIDENCE, paired

VARIANTS = (parse_variant("iodepth=1"), parse_variant("iodepth=2"))
Noise = Callable[[random.Random], Iterator[float]]
LEVEL, SPREAD = 10.0, 0.03


def independent(rng: random.Random) -> Iterator[float]:
    while True:
        yield rng.gauss(LEVEL, SPREAD)


def drift(rng: random.Random) -> Iterator[float]:
    step = 0
    while True:
        yield rng.gauss(LEVEL, SPREAD) - 0.01 * step
        step += 1


def outliers(rng: random.Random) -> Iterator[float]:
    while True:
        yield rng.gauss(LEVEL, SPREAD) - (0.5 if rng.random() < 0.1 else 0.0)


def autocorrelated(rng: random.Random) -> Iterator[float]:
    """AR(0.5)."""
    last = rng.gauss(0, SPREAD / math.sqrt(1 - 0.25))
    while True:
        yield LEVEL + last
        last = 0.5 * last + rng.gauss(0, SPREAD)


def rhythm(rng: random.Random) -> Iterator[float]:
    """Something takes a tenth in two of every four runs, from any of them on."""
    step = rng.randrange(4)
    while True:
        yield rng.gauss(LEVEL, SPREAD / 3) - (0.105 if step % 4 in (1, 2) else 0.0)
        step += 1


NOISES: dict[str, Noise] = {
    "independent, 3 %": independent, "a drift of 1 % a run": drift,
    "one run in ten is 40 % slower": outliers, "AR(0.5)": autocorrelated,
    "-10 % in two of every four runs": rhythm,
}  # fmt: skip


def claims(noise: Noise, repeats: int, trials: int, chance: bool, true: float = 0.0) -> float:
    """The share of comparisons that claim a difference; ``true`` is the one there is."""
    rng = random.Random(20)
    found = 0
    for _ in range(trials):
        seed = rng.randrange(1 << 30) if chance else None
        plan = Plan(("j",), variants=VARIANTS, repeats=repeats, seed=seed)
        figures = noise(rng)
        runs: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for point in expand(plan):
            shift = math.log(1 + true) if point.variant else 0.0
            runs[point.variant][point.repeat] = math.exp(next(figures) + shift)
        both = [[one[n] for n in range(repeats)] for one in runs]
        difference = paired(both[0], both[1])
        found += difference is not None and difference.p < 1 - CONFIDENCE
    return found / trials


def seconds(like: float, count: int, rng: random.Random) -> list[float]:
    """A run's seconds, AR(``like``) with a deviation of 5 %."""
    last, found = rng.gauss(0, 1), []
    for _ in range(count):
        found.append(100 + 5 * last)
        last = like * last + rng.gauss(0, math.sqrt(1 - like * like))
    return found


def gate(like: float, count: int, trials: int, spread_of_base: bool = True) -> float:
    """The share of runs that a gate at 100 % fails although they do not differ."""
    rng, failed = random.Random(5), 0
    for _ in range(trials):
        runs = [seconds(like, count, rng) for _ in range(2)]
        (own, one), (base, other) = (
            (sum(run) / count, spread(joined(run, len(run)))) for run in runs
        )
        interval = ratio_interval(
            own, one, BaselineFigure(base, other if spread_of_base else None, "x")
        )
        failed += interval is not None and interval[1] < 1
    return failed / trials


def joined(values: list[float], count: int) -> list[float]:
    """Neighbours joined until there are at most MOST, as ``Batches`` does."""
    while count > MOST:
        values = [(a + b) / 2 for a, b in zip(values[::2], values[1::2], strict=False)]
        count = len(values)
    return values


def gates(trials: int) -> None:
    """The table of docs/statistics.md."""
    print("\n| seconds of a run | independent | AR(0.5) | AR(0.8) | AR(0.5), baseline without "
          "interval |\n|---|---|---|---|---|")  # fmt: skip
    for count in (8, 30, 120, 600):
        shares = [gate(like, count, trials) for like in (0.0, 0.5, 0.8)]
        shares.append(gate(0.5, count, trials, spread_of_base=False))
        print(f"| {count} | " + " | ".join(f"{100 * one:.1f} %" for one in shares) + " |")


MOST_LOOKS = 30


class Looked(NamedTuple):
    """Shares of comparisons: with a claim by the plain t-test at any look, with one by the
    sequential test, with the truth in the interval at the end; and the mean number of repeats."""

    naive: float
    false: float
    right: float
    repeats: float


def looked_at(noise: Noise, trials: int, within: float) -> Looked:
    """Comparisons of at most MOST_LOOKS repeats that are looked at after each of them; there is no
    difference."""
    rng = random.Random(21)
    naive = false = right = repeats = 0
    for _ in range(trials):
        figures = noise(rng)
        sides: tuple[list[float], list[float]] = ([], [])
        claimed_naive = claimed = False
        stopped = 0
        for look in range(1, MOST_LOOKS + 1):
            for side in [0, 1] if rng.random() < 0.5 else [1, 0]:
                sides[side].append(math.exp(next(figures)))
            plain, found = paired(*sides), paired(*sides, sequential=True)
            claimed_naive |= plain is not None and plain.p < 1 - CONFIDENCE
            claimed |= found is not None and found.p < 1 - CONFIDENCE
            if found is None or stopped:
                continue
            width = math.log1p(found.high) - math.log1p(found.low)
            if look == MOST_LOOKS or width <= 2 * math.log1p(within):
                stopped = look
                right += found.low <= 0 <= found.high
        naive, false, repeats = naive + claimed_naive, false + claimed, repeats + stopped
    return Looked(naive / trials, false / trials, right / trials, repeats / trials)


def sequential_table(trials: int) -> bool:
    """Print it; True if more is false than promised."""
    bad = False
    margin = 2 * math.sqrt(0.05 * 0.95 / trials)
    print("| noise | plain t at every look: false claims | --until: false claims | the interval "
          "at the end is right | repeats |\n|---|---|---|---|---|")  # fmt: skip
    for name, noise in NOISES.items():
        found = looked_at(noise, trials, 0.02)
        bad = bad or found.false > 0.05 + margin or found.right < 0.95 - margin
        cells = " | ".join(f"{100 * share:.1f} %" for share in found[:3])
        print(f"| {name} | {cells} | {found.repeats:.1f} |")
    return bad


def main() -> int:
    """Exit code 0; 1 if more than 6 % of the claims under the order by chance are false, or a
    comparison with --until is wrong more often than it says."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--sequential", action="store_true", help="that table alone")
    arguments = parser.parse_args()
    trials = arguments.trials
    bad = sequential_table(trials)
    if arguments.sequential:
        return 1 if bad else 0
    print()
    print("| noise | runs of each | false claims, forth and back | false claims, by chance |")
    print("|---|---|---|---|")
    for name, noise in NOISES.items():
        for repeats in (3, 5, 10):
            fixed, chance = (claims(noise, repeats, trials, by) for by in (False, True))
            # with three repeats there are too few orders for what comes in a fixed rhythm
            most = 0.2 if noise is rhythm and repeats == 3 else 0.06
            bad = bad or chance > most + 2 * math.sqrt(0.05 * 0.95 / trials)
            print(f"| {name} | {repeats} | {100 * fixed:.1f} % | {100 * chance:.1f} % |")
    print("\n| true difference (noise 3 %) | 3 runs of each | 5 | 10 |\n|---|---|---|---|")
    for true in (0.02, 0.05, 0.1, 0.2):
        shares = [claims(independent, n, trials // 5, True, true) for n in (3, 5, 10)]
        cells = " | ".join(f"found in {100 * share:.0f} %" for share in shares)
        print(f"| {100 * true:.0f} % | {cells} |")
    gates(trials // 5)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
