"""Rows of latencies: a mean, percentiles of a histogram, the highest.

A subject with them has ``percentiles`` by name, ``max_ns`` and ``bins``: for several seconds,
devices or hosts, percentiles are made from the sum of their bins, never from other percentiles."""

from __future__ import annotations

from dataclasses import replace

from iopstui import format as f
from iopstui.model.figures.figure import OF, Figure, Rows
from iopstui.model.histogram import PERCENTILES, percentile_name

MAX = "max"
BY_PERCENTILE = {percentile_name(p): p for p in PERCENTILES}
OF_BINS = frozenset((MAX, *BY_PERCENTILE))
"""Figures that a histogram has, not a sum."""


SHOWN = ("p50", "p99", "p99.9")
"""The percentiles that tables show if there is room for only a few."""
RANKS = {
    name: Figure(name, "ns", f"{p:g} % took at most this", f"percentiles/{name}", width=7,
                 form=f.latency)
    for name, p in BY_PERCENTILE.items()
}  # fmt: skip
HIGHEST = Figure(MAX, "ns", "the longest", "max_ns", width=7, form=f.latency)


def latency_rows(most: str, within: str, highest: str) -> Rows:
    """All percentiles and the maximum, in ns: "OF: 99 % MOST WITHIN", "OF: HIGHEST"."""
    ranks = (replace(row, meaning=f"{OF}: {BY_PERCENTILE[row.name]:g} % {most} {within}")
             for row in RANKS.values())  # fmt: skip
    return (*ranks, replace(HIGHEST, meaning=f"{OF}: {highest}"))
