"""Runs of a comparison made by hand."""

from __future__ import annotations

import random

from iopstui.events import PointFinished
from iopstui.model.experiment.plan import Plan, expand_plan, parse_variant
from iopstui.model.experiment.point import SOFTIRQS, LittlesLaw, Point

Runs = list[dict[int, Point]]


def point(rng: random.Random, iops: float, share: float = 0.5, noise: float = 0.03) -> Point:
    def about(value: float) -> float:
        return value * rng.lognormvariate(0, noise)

    first = min(1.0, max(0.0, share + rng.gauss(0, noise)))
    return Point(
        8.0, int(8 * iops), about(iops), about(iops * 4096), latency_ns=about(16 / iops * 1e9),
        latency_of="lat", p50_ns=about(1e5), p99_ns=about(3e5), p999_ns=about(1e6),
        aqu_sz=16.0, util=90.0, cpu_us=about(20.0),
        busy={0: about(100 * share), 1: about(100 * (1 - share) + 5)},
        completions={0: first, 1: 1 - first}, completions_of=SOFTIRQS,
    )  # fmt: skip


def runs(rng: random.Random, repeats: int, *iops: float, shares: tuple[float, ...] = ()) -> Runs:
    chosen = shares or (0.5,) * len(iops)
    return [
        {n: point(rng, rate, share) for n in range(repeats)}
        for rate, share in zip(iops, chosen, strict=True)
    ]


def plan(repeats: int, *texts: str) -> Plan:
    return Plan(("j",), {}, variants=tuple(map(parse_variant, texts)), repeats=repeats)


def finished(chosen: Plan, found: Runs) -> list[PointFinished]:
    return [
        PointFinished(1.0, s.index, chosen.points, s.label, s.job,
                      tuple((one.name, one.value) for one in s.settings), s.variant, s.repeat,
                      found[s.variant][s.repeat], LittlesLaw(16, 16.0, True))
        for s in expand_plan(chosen)
    ]  # fmt: skip
