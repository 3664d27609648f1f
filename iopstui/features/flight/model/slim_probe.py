"""The probe's counts as a flight recording keeps them.

Unchanged, the histograms of one busy disk would take 2 GB a day: all their buckets are written with
each sample, and they are so long that the compression does not find the repetition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from iopstui.model.histogram import EXACT_BELOW, bucket_key
from iopstui.model.samples import ProbeSample, RawSample

STEPS_BITS = 3
"""8 buckets for each power of two, so a percentile is within 6 % of the request's latency."""
MAX_BUCKETS = 6000
"""The most buckets of the probe in each sample. If there are more (many busy disks), only each Nth
sample has them."""
MAX_STRIDE_S = 30.0
MAX_EXEMPLARS = 8
Histograms = Mapping[str, Mapping[str, Mapping[int, int]]]


class SlimProbe:
    """Is fed with each sample of one file. Counts are cumulative, so samples without them lose
    none."""

    def __init__(self) -> None:
        self._keys: dict[int, int] = {}
        self._due_at = 0.0

    def feed(self, t: float, raw: RawSample) -> RawSample:
        """The sample to write; ``t`` is its time in the file."""
        probe = raw.probe
        if probe is None or t < self._due_at:
            return raw if probe is None else replace(raw, probe=None)
        buckets = _count(probe.device) + _count(probe.waiting)
        if buckets > MAX_BUCKETS:
            self._due_at = t + min(MAX_STRIDE_S, buckets / MAX_BUCKETS) - 0.5
        return replace(raw, probe=self._slim(probe))

    def _slim(self, probe: ProbeSample) -> ProbeSample:
        return replace(
            probe, device=self._coarse(probe.device), waiting=self._coarse(probe.waiting),
            exemplars=probe.exemplars[:MAX_EXEMPLARS],
        )  # fmt: skip

    def _coarse(self, histograms: Histograms) -> Histograms:
        return {
            disk: {kind: self._joined(bins) for kind, bins in by_kind.items()}
            for disk, by_kind in histograms.items()
        }

    def _joined(self, bins: Mapping[int, int]) -> dict[int, int]:
        keys, joined = self._keys, dict[int, int]()
        for key, count in bins.items():
            coarse = keys.get(key)
            if coarse is None:
                coarse = keys[key] = coarse_key(key)
            joined[coarse] = joined.get(coarse, 0) + count
        return joined


def coarse_key(key: int) -> int:
    """The key of fio's bucket in the middle of the wider one that has this bucket."""
    if key < EXACT_BELOW:
        return key
    shift = key.bit_length() - 1 - STEPS_BITS
    return bucket_key((key >> shift << shift) + (1 << (shift - 1)))


def _count(histograms: Histograms) -> int:
    return sum(len(bins) for by_kind in histograms.values() for bins in by_kind.values())
