"""The probe's histograms in a flight recording: with coarser bins, but without losing a count."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import recordings as made
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.flight.recorder import MAX_BUCKETS, SlimProbe, coarse_key
from iopstui.model.histogram import bucket_key, percentiles
from iopstui.model.samples import ProbeSample, RawSample

LATENCIES = st.lists(st.integers(0, 1 << 36), min_size=1, max_size=50)


def raw_of(bins: dict[int, int], disks: int = 1) -> RawSample:
    histograms = {f"sd{n}": {"read": bins} for n in range(disks)}
    probe = ProbeSample(1, 1, (), 1, histograms, {}, {}, {}, (), {})
    return replace(made.raws(made.RUN)[0], probe=probe)


@given(LATENCIES)
def test_percentiles_stay_within_six_percent(latencies: list[int]) -> None:
    bins: dict[int, int] = {}
    for latency in latencies:
        bins[bucket_key(latency)] = bins.get(bucket_key(latency), 0) + 1
    probe = SlimProbe().feed(0.0, raw_of(bins)).probe
    assert probe is not None
    found = probe.device["sd0"]["read"]
    assert sum(found.values()) == len(latencies)
    true, coarse = percentiles(bins, [50.0, 99.0]), percentiles(found, [50.0, 99.0])
    for percent, value in true.items():
        assert abs(coarse[percent] - value) <= 0.0625 * value + value / 128 + 1


def test_wider_buckets_follow_each_other() -> None:
    keys = [bucket_key(latency) for latency in range(128, 1 << 14)]
    coarse = [coarse_key(key) for key in keys]
    assert all(one <= later for one, later in pairwise(coarse))
    assert len(set(coarse)) == 8 * (14 - 7) and set(map(coarse_key, coarse)) == set(coarse)


def test_of_many_buckets_each_nth_sample_has_them() -> None:
    bins = {bucket_key(1000 + 64 * n): n for n in range(400)}
    disks = 5 * MAX_BUCKETS // len(bins) + 1
    slim = SlimProbe()
    raws = [slim.feed(float(t), raw_of(bins, disks)) for t in range(20)]
    assert sum(raw.probe is not None for raw in raws) == 4
    one = SlimProbe()
    assert all(one.feed(float(t), raw_of(bins)).probe is not None for t in range(20))
