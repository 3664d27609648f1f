"""Convert a captured stream to values of fio's options: sizes, randomness, regions, arrivals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui.features.capture.model.workload import SHORT_WINDOW_NS, Stream

MAX_SPLIT = 24
"""Limit for the sizes in a bssplit; fio accepts 64."""
_ZONE_CUTS = (1, 2, 5, 10, 20, 40, 70, 100)
# with a smaller mean number of requests per region, no region can be called hotter than another
_MIN_PER_REGION = 5
_HOT_DISPERSION = 2.0
_EVEN, _BURSTY = 0.5, 3.0
_MIN_BURST, _MIN_IDLE_SHARE = 4, 0.1
# with fewer bursts the pause cannot be estimated, and a pause that is too long would delay the end
# of fio
_FEWEST_BURSTS = 5
_PERCENT, _BY_CHANCE = 100, 2
_MIN_RANDOM = 20
"""If a smaller percentage of the requests is random, regions are hot only because of sequential
runs."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Bursts: ``ios`` requests at ``rate`` per second, then ``pause_us`` without requests."""

    ios: int
    rate: int
    pause_us: int


def percentages(weights: Sequence[float]) -> list[int]:
    """Whole percentages that add up to 100, by the method of the largest remainders."""
    total = sum(weights)
    exact = [_PERCENT * weight / total for weight in weights]
    percents = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda at: percents[at] - exact[at])
    for at in by_remainder[: _PERCENT - sum(percents)]:
        percents[at] += 1
    return percents


def split(sizes: Mapping[int, int]) -> list[tuple[int, int]]:
    """Sizes (bytes) with their percentages, all above 0, for the MAX_SPLIT most frequent sizes. A
    size that is left out is added to the next larger one that is kept."""
    total = sum(sizes.values())
    rank = sorted(sizes, key=lambda size: -sizes[size])[:MAX_SPLIT]
    chosen = (
        sorted(candidate for candidate in rank if 2 * _PERCENT * sizes[candidate] >= total)
        or rank[:1]
    )
    grouped = dict.fromkeys(chosen, 0)
    for size, count in sizes.items():
        grouped[next((candidate for candidate in chosen if candidate >= size), chosen[-1])] += count
    parts = percentages([grouped[candidate] for candidate in chosen])
    return [(size, part) for size, part in zip(chosen, parts, strict=True) if part]


def random_percentage(stream: Stream) -> int:
    """How many of 100 requests are random. Values near 0 or 100 are rounded to these, because a
    random request may by chance begin where another one ended."""
    share = stream.sequential_share
    if share is None:
        return _PERCENT
    if stream.ios > 1:
        # the first request has no predecessor
        share = min(1.0, stream.sequential / (stream.ios - 1))
    percent = round(_PERCENT * (1 - share))
    if percent <= _BY_CHANCE:
        return 0
    return _PERCENT if percent >= _PERCENT - _BY_CHANCE else percent


def zones(regions: Mapping[int, int], random: int = _PERCENT) -> list[tuple[int, int]]:
    """Pairs (percentage of the requests, percentage of the working set), hottest first; empty if
    all regions are used equally, or if too little is known. ``random`` is the percentage of random
    requests: sequential requests come in runs, which alone make regions differ."""
    if random < _MIN_RANDOM:
        return []
    counts = sorted(regions.values(), reverse=True)
    mean = sum(counts) / len(counts) if counts else 0.0
    if mean < _MIN_PER_REGION or len(counts) < 2:
        return []
    variance = sum((count - mean) ** 2 for count in counts) / len(counts)
    if variance / mean < _HOT_DISPERSION * _PERCENT / random:
        return []
    return _cut_zones(counts)


def _cut_zones(counts: Sequence[int]) -> list[tuple[int, int]]:
    sizes, weights, begin, covered = [], [], 0, 0
    for cut in _ZONE_CUTS:
        end = math.ceil(len(counts) * cut / _PERCENT)
        upto = round(_PERCENT * end / len(counts))
        if upto > covered:
            sizes.append(upto - covered)
            weights.append(sum(counts[begin:end]))
            begin, covered = end, upto
    parts = percentages(weights)
    # fio accepts no zone of 0 %: regions with so few requests are added to the zone before
    pairs: list[tuple[int, int]] = []
    for part, size in zip(parts, sizes, strict=True):
        if part or not pairs:
            pairs.append((max(part, 1), size))
        else:
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + size)
    short = _PERCENT - sum(part for part, _ in pairs)
    pairs[0] = (pairs[0][0] + short, pairs[0][1])
    return pairs if len(pairs) > 1 else []


def process_of(stream: Stream) -> str:
    """How requests arrive: "poisson", "linear" or "bursts"."""
    index = stream.dispersion
    if index is None or index < _EVEN:
        return "linear"
    return "poisson" if index < _BURSTY else "bursts"


def pause_of(stream: Stream) -> Pause | None:
    """The bursts and pauses of a stream; ``None`` if it has no noticeable pauses."""
    arrivals = stream.arrivals
    short_s = SHORT_WINDOW_NS / 1e9
    idle = stream.seconds - arrivals.active * short_s
    if arrivals.bursts < _FEWEST_BURSTS or idle < _MIN_IDLE_SHARE * stream.seconds:
        return None
    ios = round(stream.ios / arrivals.bursts)
    if ios < _MIN_BURST:
        return None
    # bursts begin and end within a window, so about one window of each burst is idle
    busy = max(arrivals.active - arrivals.bursts, arrivals.bursts / 2) * short_s
    pause = (stream.seconds - busy) / arrivals.bursts
    return Pause(ios, max(1, round(stream.ios / busy)), max(1, round(pause * 1e6)))


def percentile_depth(stream: Stream, share: float) -> int:
    """The depth that a ``share`` of the requests does not exceed."""
    total, cumulative = sum(stream.depths.values()), 0
    for depth, count in sorted(stream.depths.items()):
        cumulative += count
        if cumulative >= share * total:
            return depth
    return 1
