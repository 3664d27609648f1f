"""A captured workload: sizes, order, depth, arrivals and places by process and direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iopstui.features.capture.model.packing import KINDS

SHORT_WINDOW_NS, WINDOW_NS = 10_000_000, 100_000_000
"""Windows in which arrivals are counted: bursts by the short ones, the rate by the others."""
REGION_BYTES = 1 << 20
OPEN, CLOSED = "open", "closed"
"""Loops of a job: an open one keeps the rate, a closed one the requests in flight."""
MIN_WINDOWS = 20


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How requests arrive. In windows of 100 ms: how many ``windows`` there were, the sum of the
    ``squares`` of their request counts, and the count of the ``busiest``. In windows of 10 ms: how
    many had a request (``active``), and in how many ``bursts`` without a gap."""

    windows: int = 0
    squares: int = 0
    busiest: int = 0
    active: int = 0
    bursts: int = 0


@dataclass(frozen=True, slots=True)
class Stream:
    """What the processes of one name did in one direction; ``process`` is empty for all processes.
    Requests are counted by ``sizes`` (bytes), by ``depths`` (how many of the process's requests
    were in flight when one was sent, with that one), and by ``regions`` (parts of the disk,
    ``region_bytes`` each). ``workers``: processes of this name that were active in the same 100 ms
    (mean)."""

    process: str
    kind: str
    seconds: float
    ios: int
    bytes: int
    sequential: int = 0
    fua: int = 0
    sync: int = 0
    workers: float = 1.0
    sizes: Mapping[int, int] = field(default_factory=dict)
    depths: Mapping[int, int] = field(default_factory=dict)
    regions: Mapping[int, int] = field(default_factory=dict)
    region_bytes: int = REGION_BYTES
    arrivals: Arrivals = Arrivals()

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.ios / self.seconds if self.seconds else 0.0

    @property
    def sequential_share(self) -> float | None:
        """Share of requests that begin where a recent one of the process ended."""
        return self.sequential / self.ios if self.ios else None

    @property
    def depth(self) -> float | None:
        """Mean requests in flight when one is sent."""
        count = sum(self.depths.values())
        return sum(d * n for d, n in self.depths.items()) / count if count else None

    @property
    def working_set(self) -> int:
        """Bytes of the regions that were touched."""
        return len(self.regions) * self.region_bytes

    @property
    def dispersion(self) -> float | None:
        """The index of dispersion: the variance of the number of requests in a window, divided by
        its mean. 1 means arrivals by chance (Poisson), more means bursts, less means even arrivals.
        ``None`` with too few windows."""
        count = self.arrivals.windows
        if count < MIN_WINDOWS or not self.ios:
            return None
        mean = self.ios / count
        return max(0.0, self.arrivals.squares / count - mean * mean) / mean


@dataclass(frozen=True, slots=True)
class Workload:
    """What was captured in ``seconds`` on ``device``: ``streams`` of single processes, busiest
    first, and ``totals`` of all by kind. ``lost`` requests were counted but not looked at,
    ``missed`` ones were seen only when they ended, and the process of ``unknown`` ones is not
    certain."""

    device: str
    seconds: float
    streams: tuple[Stream, ...]
    totals: Mapping[str, Stream]
    depth: float | None = None
    cgroups: Mapping[int, int] = field(default_factory=dict)
    lost: int = 0
    missed: int = 0
    requeued: int = 0
    unknown: int = 0
    filtered: bool = False

    @property
    def ios(self) -> int:
        """Requests with data: reads, writes, discards."""
        return sum(stream.ios for kind, stream in self.totals.items() if kind != KINDS[-1])

    def total(self, kind: str) -> Stream:
        """All processes' requests of this kind."""
        return self.totals.get(kind) or Stream("", kind, self.seconds, 0, 0)

    def streams_of(self, process: str) -> dict[str, Stream]:
        return {stream.kind: stream for stream in self.streams if stream.process == process}

    @property
    def processes(self) -> tuple[str, ...]:
        """Names, the busiest first."""
        return tuple(dict.fromkeys(stream.process for stream in self.streams))
