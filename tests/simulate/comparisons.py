"""How often does `iopstui compare` claim a difference that isn't there, and how often does it find
a real one?

The runs are simulated; their order, the tests and the corrections are the program's own
(``expand_plan`` and ``ComparisonResults``)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from iopstui.model.experiment.comparison import primary_figure
from iopstui.model.experiment.comparison_text import ComparisonResults
from iopstui.model.experiment.plan import Plan, expand_plan, parse_variant
from iopstui.model.experiment.point import Point
from iopstui.model.metrics.statistics import CONFIDENCE, compare_paired

VARIANTS = (parse_variant("iodepth=1"), parse_variant("iodepth=2"))
SPREAD = 0.03
Noise = Callable[[random.Random], Iterator[float]]


def independent(rng: random.Random) -> Iterator[float]:
    """The logarithm of a figure, run by run, around 0."""
    while True:
        yield rng.gauss(0, SPREAD)


def drift(rng: random.Random) -> Iterator[float]:
    step = 0
    while True:
        yield rng.gauss(0, SPREAD / 3) - 0.05 * step
        step += 1


def outliers(rng: random.Random) -> Iterator[float]:
    while True:
        yield rng.gauss(0, SPREAD) - (0.5 if rng.random() < 0.1 else 0.0)


def autocorrelated(rng: random.Random) -> Iterator[float]:
    """The same as an AR(0.5) process."""
    last = rng.gauss(0, SPREAD / math.sqrt(1 - 0.25))
    while True:
        yield last
        last = 0.5 * last + rng.gauss(0, SPREAD)


def rhythm(period: float) -> Noise:
    """Something costs a tenth of the figure in half of every ``period`` runs, starting at a random
    run."""

    def noise(rng: random.Random) -> Iterator[float]:
        at = rng.random() * period
        while True:
            yield rng.gauss(0, SPREAD / 3) - (0.105 if at % period < period / 2 else 0.0)
            at += 1

    return noise


NOISES: dict[str, Noise] = {
    "independent, 3 %": independent, "5 % slower with every run": drift,
    "one run in ten is 40 % slower": outliers, "AR(0.5)": autocorrelated,
    "-10 % in every second run": rhythm(2), "-10 % in half of every 2.2 runs": rhythm(2.2),
    "-10 % in two of every four runs": rhythm(4),
}  # fmt: skip


def run(rng: random.Random, off: float) -> Point:
    """A run whose IOPS are off by ``off`` (a logarithm). Latencies change the opposite way, and
    each figure except IOPS has noise of its own."""

    def latency(ns: float) -> float:
        return ns * math.exp(rng.gauss(0, SPREAD) - off)

    iops = 1e5 * math.exp(off)
    return Point(
        8.0, round(8 * iops), iops, 4096 * iops, latency_ns=latency(1.6e5), p50_ns=latency(1e5),
        p99_ns=latency(3e5), p999_ns=latency(1e6), cpu_us=20 * math.exp(rng.gauss(0, SPREAD)),
        completions={0: min(1.0, 0.5 + abs(rng.gauss(0, SPREAD)))},
    )  # fmt: skip


class Claims(NamedTuple):
    """Shares of comparisons: with a claim about IOPS, and with a claim about any other figure."""

    primary: float
    secondary: float


def claims(noise: Noise, repeats: int, trials: int, true: float = 0.0) -> Claims:
    """Shares of claims if the true difference in IOPS (and latency) is ``true``."""
    rng = random.Random(20)
    primary = secondary = 0
    for _ in range(trials):
        plan = Plan(("j",), variants=VARIANTS, repeats=repeats, seed=rng.randrange(1 << 30))
        figures = noise(rng)
        runs: list[dict[int, Point]] = [{}, {}]
        for step in expand_plan(plan):
            shift = math.log1p(true) if step.variant else 0.0
            runs[step.variant][step.repeat] = run(rng, next(figures) + shift)
        (tested,) = ComparisonResults(plan, runs).tested
        first = primary_figure(tested)
        primary += first is not None and first.shown
        secondary += any(claim.shown for claim in tested if not claim.primary)
    return Claims(primary / trials, secondary / trials)


def false_claims_table(trials: int) -> bool:
    """Print the table. Returns whether there are more false claims than docs/statistics.md says."""
    bad = False
    margin = 2 * math.sqrt(0.05 * 0.95 / trials)
    print("| noise | runs of each | false claims in IOPS | in any other figure |\n"
          "|---|---|---|---|")  # fmt: skip
    for name, noise in NOISES.items():
        for repeats in (3, 5, 6, 10):
            shares = claims(noise, repeats, trials)
            most = 0.05 if repeats > 6 else 0.1
            bad |= max(shares) > most + margin or (repeats < 5 and max(shares) > 0)
            cells = " | ".join(f"{100 * share:.1f} %" for share in shares)
            print(f"| {name} | {repeats} | {cells} |", flush=True)
    return bad


def power_table(trials: int) -> None:
    """Print how often a true difference in IOPS is found."""
    print("\n| true difference (noise 3 %) | 5 runs of each | 7 | 10 |\n|---|---|---|---|")
    for true in (0.02, 0.05, 0.07, 0.1, 0.15, 0.2):
        shares = [claims(independent, n, trials, true).primary for n in (5, 7, 10)]
        cells = " | ".join(f"found in {100 * share:.0f} %" for share in shares)
        print(f"| {100 * true:.0f} % | {cells} |", flush=True)


MAX_LOOKS = 30


class SequentialShares(NamedTuple):
    """Shares of comparisons: with a claim of the plain t-test at any look, with one of the
    sequential test, and with the truth in the interval at the end. Also the mean number of
    repeats."""

    naive: float
    false: float
    right: float
    repeats: float


def sequential_shares(noise: Noise, trials: int, within: float) -> SequentialShares:
    """Comparisons of at most MAX_LOOKS repeats, tested after each repeat, without a true
    difference."""
    rng = random.Random(21)
    naive = false = right = repeats = 0
    for _ in range(trials):
        figures = noise(rng)
        sides: tuple[list[float], list[float]] = ([], [])
        claimed_naive = claimed = False
        stopped = 0
        for look in range(1, MAX_LOOKS + 1):
            for side in [0, 1] if rng.random() < 0.5 else [1, 0]:
                sides[side].append(math.exp(next(figures)))
            plain, sequential = compare_paired(*sides), compare_paired(*sides, sequential=True)
            claimed_naive |= plain is not None and plain.p < 1 - CONFIDENCE
            claimed |= sequential is not None and sequential.p < 1 - CONFIDENCE
            if sequential is None or stopped:
                continue
            width = math.log1p(sequential.high) - math.log1p(sequential.low)
            if look == MAX_LOOKS or width <= 2 * math.log1p(within):
                stopped = look
                right += sequential.low <= 0 <= sequential.high
        naive, false, repeats = naive + claimed_naive, false + claimed, repeats + stopped
    return SequentialShares(naive / trials, false / trials, right / trials, repeats / trials)


def sequential_table(trials: int) -> bool:
    """Print the table. Returns whether more is wrong than promised."""
    bad = False
    margin = 2 * math.sqrt(0.05 * 0.95 / trials)
    print("\n| noise | plain t at every look: false claims | --until: false claims | the interval "
          "at the end is right | repeats |\n|---|---|---|---|---|")  # fmt: skip
    for name, noise in NOISES.items():
        results = sequential_shares(noise, trials, 0.02)
        bad = bad or results.false > 0.06 + margin or results.right < 0.95 - margin
        cells = " | ".join(f"{100 * share:.1f} %" for share in results[:3])
        print(f"| {name} | {cells} | {results.repeats:.1f} |", flush=True)
    return bad
