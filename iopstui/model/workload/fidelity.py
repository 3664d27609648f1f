"""How close one workload is to another: distances of what was captured, with their bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from iopstui.format import number, or_dash, size
from iopstui.model.workload.workload import OPEN, Stream, Workload

_RATES = ("s/s", " burstiness")
SIZE_BOUND, SHARE_BOUND, RATIO_BOUND = 0.05, 0.05, 1.15
DEPTH_BOUND, SPREAD_BOUND = 1.5, 2.0
"""Close: distances of shares and sizes up to 5 points, ratios up to 1.15, of the depth (which is
the disk's answer in an open loop) up to 1.5, of burstiness up to 2."""
FEW_SHARE = 0.01
"""A direction with a smaller share of the requests of both is not compared: chance decides."""


@dataclass(frozen=True, slots=True)
class Distance:
    """One figure of both: ``captured`` and ``replayed`` as text, the ``distance`` (of shares: a
    difference from 0 to 1; of others: the ratio of the larger to the smaller) and its ``bound``.
    ``None``: one of them has no such figure, or too few requests. Without a bound it is what the
    job was to find out."""

    name: str
    captured: str
    replayed: str
    distance: float | None
    bound: float | None
    ratio: bool = False

    @property
    def close(self) -> bool | None:
        """Whether it is within the bound."""
        if self.distance is None or self.bound is None:
            return None
        return self.distance <= self.bound


def kolmogorov(one: Mapping[int, int], other: Mapping[int, int]) -> float | None:
    """The largest difference of two cumulative distributions; ``None`` if one is empty."""
    n, m = sum(one.values()), sum(other.values())
    if not n or not m:
        return None
    worst = below = above = 0.0
    for value in sorted({*one, *other}):
        below += one.get(value, 0) / n
        above += other.get(value, 0) / m
        worst = max(worst, abs(below - above))
    return worst


def distances(captured: Workload, replayed: Workload, loop: str = OPEN) -> list[Distance]:
    """All figures that are compared, of reads and of writes. A closed loop does not keep the rate
    and its bursts: they are its result."""
    found = _distances(captured, replayed)
    if loop == OPEN:
        return found
    return [replace(one, bound=None) if one.name.endswith(_RATES) else one for one in found]


def _distances(captured: Workload, replayed: Workload) -> list[Distance]:
    found = [_mix(captured, replayed)]
    for kind in ("read", "write"):
        one, other = captured.total(kind), replayed.total(kind)
        if one.ios or other.ios:
            few = max(one.ios, other.ios) < FEW_SHARE * max(captured.ios, replayed.ios)
            found += _of_kind(kind, one, other, few)
    one, other = captured.total("flush"), replayed.total("flush")
    if one.ios or other.ios:
        found.append(_ratio("flushes/s", one.rate, other.rate, number))
    return found


def _mix(captured: Workload, replayed: Workload) -> Distance:
    return _share("reads", _reads(captured), _reads(replayed))


def _reads(one: Workload) -> float | None:
    both = one.total("read").ios + one.total("write").ios
    return one.total("read").ios / both if both else None


def _of_kind(kind: str, one: Stream, other: Stream, few: bool) -> Iterator[Distance]:
    for distance in _figures(kind, one, other):
        yield replace(distance, distance=None) if few else distance


def _figures(kind: str, one: Stream, other: Stream) -> Iterator[Distance]:
    yield _ratio(f"{kind}s/s", one.rate or None, other.rate or None, number)
    yield Distance(f"{kind} sizes", _mean_size(one), _mean_size(other),
                   kolmogorov(one.sizes, other.sizes), SIZE_BOUND)  # fmt: skip
    yield _share(f"{kind} sequential", one.sequential_share, other.sequential_share)
    yield _ratio(f"{kind} depth", one.depth, other.depth, "{:.1f}".format, DEPTH_BOUND)
    yield _ratio(f"{kind} burstiness", one.dispersion, other.dispersion, "{:.1f}".format,
                 SPREAD_BOUND)  # fmt: skip
    yield _ratio(f"{kind} working set", one.working_set or None, other.working_set or None, size)


def _mean_size(stream: Stream) -> str:
    return size(stream.bytes / stream.ios if stream.ios else None)


def _share(name: str, one: float | None, other: float | None) -> Distance:
    distance = None if one is None or other is None else abs(one - other)
    return Distance(name, _percent(one), _percent(other), distance, SHARE_BOUND)


def _percent(share: float | None) -> str:
    return or_dash(None if share is None else 100 * share, "{:.1f} %")


def _ratio(
    name: str, one: float | None, other: float | None, form: Callable[[float], str],
    bound: float = RATIO_BOUND,
) -> Distance:  # fmt: skip
    distance = None
    if one is not None and other is not None:
        # below 0.1 both are as good as nothing
        low, high = sorted((max(one, 0.1), max(other, 0.1)))
        distance = high / low
    texts = [or_dash(None) if it is None else form(it) for it in (one, other)]
    return Distance(name, texts[0], texts[1], distance, bound, ratio=True)
