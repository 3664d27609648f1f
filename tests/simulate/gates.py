"""How often does `iopstui run --baseline` fail a run that does not differ from the baseline?

The seconds of the runs are simulated; the batches, the intervals and the judgement are the
program's own (``BatchMeans`` and ``ExpectationChecker``)."""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

from made_seconds import run

from iopstui.model.experiment.baseline import BaselineFigure, BatchMeans
from iopstui.model.experiment.expectation import ExpectationChecker, parse_expectation

FIGURES = ("iops", "clat.mean", "clat.p50", "clat.p95", "clat.p99", "clat.p99.9", "clat.p99.99",
           "clat.max")  # fmt: skip


class Kind(NamedTuple):
    """A kind of run: ``like`` is the correlation of successive seconds, ``stalls`` are stalls per
    second."""

    seconds: int
    iops: int
    like: float
    stalls: float

    def __str__(self) -> str:
        stalls = f", {self.stalls:g} stalls/s" if self.stalls else ""
        return f"{self.seconds} s, {self.iops} IOPS, AR({self.like:g}){stalls}"


KINDS = (
    Kind(20, 200, 0.0, 0.0), Kind(20, 200, 0.5, 0.0), Kind(30, 300, 0.5, 0.5),
    Kind(30, 300, 0.8, 0.0), Kind(60, 300, 0.5, 0.5), Kind(60, 300, 0.8, 0.5),
    Kind(60, 2000, 0.5, 0.0), Kind(60, 2000, 0.5, 2.0),
)  # fmt: skip


def _spell(name: str) -> str:
    return f"{name}{'>=' if name == 'iops' else '<='}100%"


def gate(kind: Kind, trials: int, spread_of_base: bool = True) -> dict[str, tuple[float, float]]:
    """For each figure: the share of runs that fail at a limit of 100 %, and the share of those not
    judged."""
    rng = random.Random(5)
    failed: Counter[str] = Counter()
    unjudged: Counter[str] = Counter()
    expectations = {name: parse_expectation(_spell(name)) for name in FIGURES}
    for _ in range(trials):
        before = {name: BatchMeans(expectation.path) for name, expectation in expectations.items()}
        for frame in run(rng, *kind):
            for batches in before.values():
                batches.add(frame)
        baselines = {name: baseline for name, baseline in before.items() if not baseline.why}
        unjudged.update(before.keys() - baselines.keys())
        judge = ExpectationChecker([
            expectations[name].relative_to(BaselineFigure(
                baseline.whole.value or 0.0, baseline.spread if spread_of_base else None, "x"))
            for name, baseline in baselines.items()
        ])  # fmt: skip
        for frame in run(rng, *kind):
            judge.add(frame)
        for outcome in judge.outcomes():
            failed[outcome.expectation.name] += outcome.passed is False
            unjudged[outcome.expectation.name] += outcome.passed is None
    return {name: (failed[name] / trials, unjudged[name] / trials) for name in FIGURES}


def gates_table(trials: int) -> bool:
    """Print the table. Returns whether more runs fail than docs/statistics.md says."""
    bad = False
    head = [name.removeprefix("clat.") for name in FIGURES]
    print(f"\n| both runs | {' | '.join(head)} |\n|{'---|' * (len(head) + 1)}")
    for spread_of_base in (True, False):
        for kind in KINDS if spread_of_base else (Kind(30, 300, 0.5, 0.5),):
            shares = gate(kind, trials, spread_of_base)
            cells = []
            for failed, unjudged in shares.values():
                bad |= failed > 0.08
                text = f"{100 * failed:.1f} %"
                if unjudged > 0.995:
                    text = "not judged"
                elif unjudged > 0.005:
                    text += f" ({100 * unjudged:.0f} % not judged)"
                cells.append(text)
            variant = "" if spread_of_base else ", baseline without interval"
            print(f"| {kind}{variant} | {' | '.join(cells)} |", flush=True)
    return bad
