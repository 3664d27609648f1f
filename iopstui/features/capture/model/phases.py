"""How close one workload is to another, and the phases of a captured one.

A capture is divided into spans of equal length. A span that resembles the current phase belongs to
it; another one begins a new phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from iopstui.features.capture.model.workload import (
    MAX_CGROUPS,
    MAX_PROCESSES,
    MAX_REGIONS,
    MAX_SIZES,
    OPEN,
    OTHER_PROCESSES,
    WINDOW_NS,
    Arrivals,
    Stream,
    Workload,
    binned,
)
from iopstui.format import number, or_dash, size

_RATES = ("s/s", " burstiness")
SIZE_BOUND, SHARE_BOUND, RATIO_BOUND = 0.05, 0.05, 1.15
DEPTH_BOUND, SPREAD_BOUND = 1.5, 2.0
"""Two workloads count as close if shares and sizes differ by up to 5 points, and other figures by a
ratio of up to 1.15. For the depth, which in an open loop depends on the disk, the ratio may be 1.5;
for burstiness 2."""
MIN_SHARE = 0.01
"""A direction with less than this share of the requests in both workloads is not compared, because
its figures would be a matter of chance."""


@dataclass(frozen=True, slots=True)
class Distance:
    """One figure of both workloads: ``captured`` and ``replayed`` as text, their ``distance`` (for
    shares the difference, from 0 to 1; for other figures the ratio of the larger to the smaller),
    and the ``bound`` of that. The distance is ``None`` if one workload lacks the figure or has too
    few requests. A figure without a bound is a result of the job, which it does not imitate."""

    name: str
    captured: str
    replayed: str
    distance: float | None
    bound: float | None
    ratio: bool = False

    @property
    def is_close(self) -> bool | None:
        """Whether the distance is within the bound."""
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
    """All compared figures, of reads and of writes. In a closed loop, rate and bursts are only
    results, because the job does not keep to the captured ones."""
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
        # values below 0.1 count as 0.1
        low, high = sorted((max(captured, 0.1), max(replayed, 0.1)))
        distance = high / low
    texts = [or_dash(None) if value is None else form(value) for value in (captured, replayed)]
    return Distance(name, texts[0], texts[1], distance, bound, ratio=True)


MAX_PHASES = 8
"""Limit for the number of phases. If there are more, neighbours are joined, beginning with the pair
that is shortest together."""
_RATE_FACTOR, _MAX_DISTANCE = 2.0, 0.25
_SMALL_SHARE = 0.1
_KINDS = ("read", "write", "flush", "discard")


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase. ``workload`` began ``start_s`` seconds after the capture's start."""

    start_s: float
    workload: Workload

    @property
    def end_s(self) -> float:
        """The phase's end, in seconds after the capture's start."""
        return self.start_s + self.workload.seconds


class Phases:
    """Collects the phases of a capture that is divided into spans."""

    def __init__(self) -> None:
        self._phases: list[Phase] = []

    def add(self, span: Workload) -> None:
        last = self._phases[-1] if self._phases else None
        if last is not None and are_alike(last.workload, span):
            self._phases[-1] = replace(last, workload=join([last.workload, span]))
            return
        self._phases.append(Phase(last.end_s if last is not None else 0.0, span))
        if len(self._phases) > MAX_PHASES:
            self._join_shortest()

    @property
    def all(self) -> Sequence[Phase]:
        """All phases in the order of time."""
        return tuple(self._phases)

    @property
    def combined(self) -> Workload:
        """All phases joined to one workload. Raises ValueError if there is none."""
        return join([phase.workload for phase in self._phases])

    def _join_shortest(self) -> None:
        phases = self._phases
        at = min(
            range(len(phases) - 1),
            key=lambda n: phases[n].workload.seconds + phases[n + 1].workload.seconds,
        )
        joined = join([phases[at].workload, phases[at + 1].workload])
        phases[at : at + 2] = [Phase(phases[at].start_s, joined)]


def are_alike(first: Workload, second: Workload) -> bool:
    """Whether requests and bytes per second differ by less than a factor of 2, and sizes and the
    share of sequential requests by less than 0.25. A direction in which both did little is
    ignored."""
    pairs = [(first.total(kind), second.total(kind)) for kind in _KINDS]
    rates = [(a.rate, b.rate) for a, b in pairs]
    bytes_s = [(_bytes_s(a), _bytes_s(b)) for a, b in pairs]
    threshold = _negligible(rates)
    return (
        not _differ(rates)
        and not _differ(bytes_s)
        and all(
            max(_shape_distances(a, b)) <= _MAX_DISTANCE
            for a, b in pairs
            if min(a.rate, b.rate) > threshold
        )
    )


def _negligible(pairs: Sequence[tuple[float, float]]) -> float:
    return _SMALL_SHARE * max(sum(a for a, _ in pairs), sum(b for _, b in pairs))


def _differ(pairs: Sequence[tuple[float, float]]) -> bool:
    threshold = _negligible(pairs)
    return any(max(pair) + threshold > _RATE_FACTOR * (min(pair) + threshold) for pair in pairs)


def _bytes_s(stream: Stream) -> float:
    return stream.bytes / stream.seconds if stream.seconds else 0.0


def _shape_distances(first: Stream, second: Stream) -> tuple[float, float]:
    order = abs((first.sequential_share or 0.0) - (second.sequential_share or 0.0))
    return kolmogorov(first.sizes, second.sizes) or 0.0, order


def join(workloads: Sequence[Workload]) -> Workload:
    """Join successive workloads of one capture. The result is no larger than a single workload may
    be (``counting``). Raises ValueError if there is none."""
    if not workloads:
        raise ValueError("no workloads to join")
    # all streams of a workload have the same length
    length = sum(_stream_length(workload) for workload in workloads)
    windows = sum(_windows(workload) for workload in workloads)
    streams = sorted((_join_streams(group, length, windows) for group in _by_process(workloads)),
                     key=lambda stream: -stream.ios)  # fmt: skip
    totals = {
        kind: _join_streams(
            [w.totals[kind] for w in workloads if kind in w.totals], length, windows
        )
        for kind in dict.fromkeys(kind for w in workloads for kind in w.totals)
    }
    depths = [
        (workload.depth, _ios(workload)) for workload in workloads if workload.depth is not None
    ]
    ios = sum(count for _, count in depths)
    return replace(
        workloads[0], seconds=sum(w.seconds for w in workloads), streams=tuple(streams),
        totals=totals, depth=sum(depth * count for depth, count in depths) / ios if ios else None,
        cgroups=_most_frequent(_sum(w.cgroups for w in workloads), MAX_CGROUPS),
        lost=sum(w.lost for w in workloads), missed=sum(w.missed for w in workloads),
        requeued=sum(w.requeued for w in workloads), unknown=sum(w.unknown for w in workloads),
    )  # fmt: skip


def _stream_length(workload: Workload) -> float:
    """The time in seconds to which rates refer. It is shorter than the workload if the capture lost
    requests."""
    return workload.streams[0].seconds if workload.streams else workload.seconds


def _windows(workload: Workload) -> int:
    if workload.streams:
        return workload.streams[0].arrivals.windows
    return round(workload.seconds * 1e9 / WINDOW_NS)


def _ios(workload: Workload) -> int:
    return sum(stream.ios for stream in workload.totals.values())


def _by_process(workloads: Sequence[Workload]) -> Iterable[Sequence[Stream]]:
    """The streams grouped by process and direction. If there are too many processes, the last ones
    form one group."""
    processes = [*dict.fromkeys(stream.process for w in workloads for stream in w.streams)][
        :MAX_PROCESSES
    ]
    grouped: dict[tuple[str, str], list[Stream]] = {}
    for original in (s for workload in workloads for s in workload.streams):
        process = original.process if original.process in processes else OTHER_PROCESSES
        grouped.setdefault((process, original.kind), []).append(replace(original, process=process))
    return grouped.values()


def _join_streams(streams: Sequence[Stream], seconds: float, windows: int) -> Stream:
    ios = sum(stream.ios for stream in streams)
    regions, region_bytes = _regions(streams)
    return Stream(
        streams[0].process, streams[0].kind, seconds, ios,
        sum(stream.bytes for stream in streams), sum(stream.sequential for stream in streams),
        sum(stream.fua for stream in streams), sum(stream.sync for stream in streams),
        sum(stream.workers * stream.ios for stream in streams) / ios if ios else 1.0,
        _sizes(_sum(stream.sizes for stream in streams)), _sum(stream.depths for stream in streams),
        regions, region_bytes, _arrivals([stream.arrivals for stream in streams], windows),
    )  # fmt: skip


def _sizes(sizes: Mapping[int, int]) -> dict[int, int]:
    """The most frequent sizes unchanged, the others in bins."""
    exact = _most_frequent(sizes, MAX_SIZES)
    binned_sizes = ({binned(size): count} for size, count in sizes.items() if size not in exact)
    return _sum([exact, *binned_sizes])


def _regions(streams: Sequence[Stream]) -> tuple[dict[int, int], int]:
    """The regions of all streams, and their size in bytes, which is so large that there are at most
    MAX_REGIONS."""
    region_bytes = max(stream.region_bytes for stream in streams)
    while True:
        regions = _sum(
            {number // (region_bytes // stream.region_bytes): count}
            for stream in streams for number, count in stream.regions.items()
        )  # fmt: skip
        if len(regions) <= MAX_REGIONS:
            return regions, region_bytes
        region_bytes *= 2


def _arrivals(arrivals: Sequence[Arrivals], windows: int) -> Arrivals:
    return Arrivals(
        windows, sum(part.squares for part in arrivals), max(part.busiest for part in arrivals),
        sum(part.active for part in arrivals), sum(part.bursts for part in arrivals),
    )  # fmt: skip


def _most_frequent(counts: Mapping[int, int], number: int) -> dict[int, int]:
    return dict(nlargest(number, counts.items(), key=lambda pair: pair[1]))


def _sum(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for part in counts:
        for value, count in part.items():
            total[value] = total.get(value, 0) + count
    return dict(sorted(total.items()))
