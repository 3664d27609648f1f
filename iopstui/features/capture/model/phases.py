"""Phases of a captured workload: spans of time that differ, such as day, night and backup.

A capture is cut into spans of equal length. A span that is like the current phase belongs to it;
one that is not begins a new phase."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from iopstui.features.capture.model.counting import (
    MAX_CGROUPS,
    MAX_PROCESSES,
    MAX_REGIONS,
    MAX_SIZES,
    OTHER_PROCESSES,
    binned,
)
from iopstui.features.capture.model.fidelity import kolmogorov
from iopstui.features.capture.model.workload import WINDOW_NS, Arrivals, Stream, Workload

MAX_PHASES = 8
"""If there are more, neighbours are joined, first those that are shortest together."""
_RATE_FACTOR, _MAX_DISTANCE = 2.0, 0.25
_SMALL_SHARE = 0.1
_KINDS = ("read", "write", "flush", "discard")


@dataclass(frozen=True, slots=True)
class Phase:
    """``workload`` began ``start_s`` seconds after the capture."""

    start_s: float
    workload: Workload

    @property
    def end_s(self) -> float:
        """Seconds after the capture's begin."""
        return self.start_s + self.workload.seconds


class Phases:
    """Collects the phases of a capture that is cut into spans."""

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
        """In the order of time."""
        return tuple(self._phases)

    @property
    def combined(self) -> Workload:
        """All phases as one workload. ValueError if there is none."""
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
    """Whether requests and bytes a second differ by less than a factor of 2, and sizes and order by
    less than 0.25. A direction in which both did little does not count."""
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
    """Join successive workloads of one capture into one, which is no larger than a single one may
    be (``counting``). Raises ValueError if there is none."""
    if not workloads:
        raise ValueError("no workloads to join")
    # all streams of a workload are equally long
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
    """The seconds that rates are counted over: fewer than the workload's if the capture lost
    requests."""
    return workload.streams[0].seconds if workload.streams else workload.seconds


def _windows(workload: Workload) -> int:
    if workload.streams:
        return workload.streams[0].arrivals.windows
    return round(workload.seconds * 1e9 / WINDOW_NS)


def _ios(workload: Workload) -> int:
    return sum(stream.ios for stream in workload.totals.values())


def _by_process(workloads: Sequence[Workload]) -> Iterable[Sequence[Stream]]:
    """The streams grouped by process and direction; if there are too many, those of the last
    processes are joined."""
    processes = [*dict.fromkeys(stream.process for w in workloads for stream in w.streams)][
        :MAX_PROCESSES
    ]
    grouped: dict[tuple[str, str], list[Stream]] = {}
    for original in (s for workload in workloads for s in workload.streams):
        process = original.process if original.process in processes else OTHER_PROCESSES
        grouped.setdefault((process, original.kind), []).append(replace(original, process=process))
    return grouped.values()


def _join_streams(streams: Sequence[Stream], seconds: float, windows: int) -> Stream:
    """Several streams of ``seconds`` as one."""
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
    """The most frequent sizes as they are, the others in bins."""
    exact = _most_frequent(sizes, MAX_SIZES)
    binned_sizes = ({binned(size): count} for size, count in sizes.items() if size not in exact)
    return _sum([exact, *binned_sizes])


def _regions(streams: Sequence[Stream]) -> tuple[dict[int, int], int]:
    """The regions of all streams, and how many bytes each has: so many that MAX_REGIONS regions
    suffice."""
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
