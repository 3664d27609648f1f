"""How close one workload is to another: the distances between their figures, and how large each may
be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from iopstui.features.capture.model.workload import OPEN, Stream, Workload
from iopstui.format import number, or_dash, size

_RATES = ("s/s", " burstiness")
SIZE_BOUND, SHARE_BOUND, RATIO_BOUND = 0.05, 0.05, 1.15
DEPTH_BOUND, SPREAD_BOUND = 1.5, 2.0
"""Workloads count as close with distances of shares and sizes up to 5 points, and ratios up to
1.15; for the depth (in an open loop it is a result of the disk) up to 1.5, for burstiness up to
2."""
MIN_SHARE = 0.01
"""A direction with a smaller share of the requests in both is not compared, because chance would
decide."""


@dataclass(frozen=True, slots=True)
class Distance:
    """One figure of both workloads: ``captured`` and ``replayed`` as text, their ``distance`` (for
    shares the difference, from 0 to 1; for other figures the ratio of the larger to the smaller),
    and the ``bound`` of that. The distance is ``None`` if one of them has no such figure, or too
    few requests. A figure without a bound is a result of the job, not something it imitates."""

    name: str
    captured: str
    replayed: str
    distance: float | None
    bound: float | None
    ratio: bool = False

    @property
    def is_close(self) -> bool | None:
        """Whether it is within the bound."""
        if self.distance is None or self.bound is None:
            return None
        return self.distance <= self.bound


def kolmogorov(first: Mapping[int, int], second: Mapping[int, int]) -> float | None:
    """The largest difference between two cumulative distributions; ``None`` if one is empty."""
    n, m = sum(first.values()), sum(second.values())
    if not n or not m:
        return None
    worst = below = above = 0.0
    for value in sorted({*first, *second}):
        below += first.get(value, 0) / n
        above += second.get(value, 0) / m
        worst = max(worst, abs(below - above))
    return worst


def distances(captured: Workload, replayed: Workload, loop: str = OPEN) -> list[Distance]:
    """All figures that are compared, of reads and of writes. A closed loop does not keep to the
    captured rate and bursts: in it they are results."""
    compared = _distances(captured, replayed)
    if loop == OPEN:
        return compared
    return [
        replace(distance, bound=None) if distance.name.endswith(_RATES) else distance
        for distance in compared
    ]


def _distances(captured: Workload, replayed: Workload) -> list[Distance]:
    compared = [_mix(captured, replayed)]
    for kind in ("read", "write"):
        source, replay = captured.total(kind), replayed.total(kind)
        if source.ios or replay.ios:
            too_few = max(source.ios, replay.ios) < MIN_SHARE * max(captured.ios, replayed.ios)
            compared += _direction_distances(kind, source, replay, too_few)
    source, replay = captured.total("flush"), replayed.total("flush")
    if source.ios or replay.ios:
        compared.append(_ratio("flushes/s", source.rate, replay.rate, number))
    return compared


def _mix(captured: Workload, replayed: Workload) -> Distance:
    return _share("reads", _reads(captured), _reads(replayed))


def _reads(workload: Workload) -> float | None:
    ios = workload.total("read").ios + workload.total("write").ios
    return workload.total("read").ios / ios if ios else None


def _direction_distances(
    kind: str, captured: Stream, replayed: Stream, too_few: bool
) -> Iterator[Distance]:
    for distance in _figures(kind, captured, replayed):
        yield replace(distance, distance=None) if too_few else distance


def _figures(kind: str, captured: Stream, replayed: Stream) -> Iterator[Distance]:
    yield _ratio(f"{kind}s/s", captured.rate or None, replayed.rate or None, number)
    yield Distance(f"{kind} sizes", _mean_size(captured), _mean_size(replayed),
                   kolmogorov(captured.sizes, replayed.sizes), SIZE_BOUND)  # fmt: skip
    yield _share(f"{kind} sequential", captured.sequential_share, replayed.sequential_share)
    yield _ratio(f"{kind} depth", captured.depth, replayed.depth, "{:.1f}".format, DEPTH_BOUND)
    yield _ratio(f"{kind} burstiness", captured.dispersion, replayed.dispersion, "{:.1f}".format,
                 SPREAD_BOUND)  # fmt: skip
    yield _ratio(
        f"{kind} working set", captured.working_set or None, replayed.working_set or None, size
    )


def _mean_size(stream: Stream) -> str:
    return size(stream.bytes / stream.ios if stream.ios else None)


def _share(name: str, captured: float | None, replayed: float | None) -> Distance:
    distance = None if captured is None or replayed is None else abs(captured - replayed)
    return Distance(name, _percent(captured), _percent(replayed), distance, SHARE_BOUND)


def _percent(share: float | None) -> str:
    return or_dash(None if share is None else 100 * share, "{:.1f} %")


def _ratio(
    name: str, captured: float | None, replayed: float | None, form: Callable[[float], str],
    bound: float = RATIO_BOUND,
) -> Distance:  # fmt: skip
    distance = None
    if captured is not None and replayed is not None:
        # below 0.1 both count as nothing
        low, high = sorted((max(captured, 0.1), max(replayed, 0.1)))
        distance = high / low
    texts = [or_dash(None) if value is None else form(value) for value in (captured, replayed)]
    return Distance(name, texts[0], texts[1], distance, bound, ratio=True)
