"""A captured workload: packed requests are counted in bounded memory and summed up.

Equal packed values are counted together (``Counter``). Each distinct value is unpacked later, which
takes ten times as long; at most MAX_PACKED values wait for it. At most MAX_PROCESSES names are
distinguished, and for each stream MAX_SIZES exact sizes (further ones in bins of an eighth of an
octave) and MAX_REGIONS regions (then regions of twice the size): at most about 40 MiB."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

READ, WRITE, DISCARD, FLUSH = range(4)
KINDS = ("read", "write", "discard", "flush")

SECTOR_BYTES = 512
REGION_SECTORS_BITS = 11
"""Binary logarithm of a region's sectors: a region is 1 MiB of a disk."""

# a packed word: process << 32 | kind << 30 | the counted value
PID_AT, KIND_AT = 32, 30
LOW_BITS = (1 << KIND_AT) - 1
METADATA = 1 << 30
"""Added to the process number of a metadata request, because the application did not ask for this
I/O. The number of no process is that large (PID_MAX_LIMIT)."""
METADATA_PROCESS = "file system metadata"
"""The name under which metadata requests are counted, whichever process sent them."""
# the shape of a request: flags, then the length in sectors
SEQUENTIAL, FUA, SYNC = 1 << 29, 1 << 28, 1 << 27
SECTORS_BITS = 27
MAX_SECTORS = (1 << SECTORS_BITS) - 1


SHORT_WINDOW_NS, WINDOW_NS = 10_000_000, 100_000_000
"""The windows in which arrivals are counted: the short ones for bursts, the others for the rate."""
REGION_BYTES = 1 << 20
OPEN, CLOSED = "open", "closed"
"""The loops of a job: an open one keeps the rate, a closed one keeps the number of requests in
flight."""
MIN_WINDOWS = 20


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How requests arrive. In windows of 100 ms: the number of ``windows``, the sum of the
    ``squares`` of their request counts, and the count of the ``busiest`` window. In windows of 10
    ms: how many had a request (``active``), and how many ``bursts`` without an empty window they
    form."""

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
    ``region_bytes`` each). ``workers`` is the mean number of processes with this name that were
    active in the same 100 ms."""

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
        """Requests per second."""
        return self.ios / self.seconds if self.seconds else 0.0

    @property
    def sequential_share(self) -> float | None:
        """The share of the requests that begin where a recent request of the process ended."""
        return self.sequential / self.ios if self.ios else None

    @property
    def depth(self) -> float | None:
        """The mean number of requests in flight when one is sent."""
        count = sum(self.depths.values())
        return sum(d * n for d, n in self.depths.items()) / count if count else None

    @property
    def working_set(self) -> int:
        """The bytes of the regions that were accessed."""
        return len(self.regions) * self.region_bytes

    @property
    def dispersion(self) -> float | None:
        """The index of dispersion: the variance of the number of requests in a window, divided by
        its mean. 1 means random arrivals (Poisson), more means bursts, less means regular arrivals.
        ``None`` with too few windows."""
        count = self.arrivals.windows
        if count < MIN_WINDOWS or not self.ios:
            return None
        mean = self.ios / count
        return max(0.0, self.arrivals.squares / count - mean * mean) / mean


@dataclass(frozen=True, slots=True)
class Workload:
    """What was captured in ``seconds`` on ``device``: ``streams`` of single processes, busiest
    first, and ``totals`` of all by kind. ``lost`` requests were counted but their records
    overwritten, ``missed`` requests were only seen to end, and the process of ``unknown`` requests
    is not certain."""

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
        """The number of requests with data: reads, writes, discards."""
        return sum(stream.ios for kind, stream in self.totals.items() if kind != KINDS[-1])

    def total(self, kind: str) -> Stream:
        """The requests of this kind by all processes."""
        return self.totals.get(kind) or Stream("", kind, self.seconds, 0, 0)

    def streams_of(self, process: str) -> dict[str, Stream]:
        return {stream.kind: stream for stream in self.streams if stream.process == process}

    @property
    def processes(self) -> tuple[str, ...]:
        """The processes' names, busiest first."""
        return tuple(dict.fromkeys(stream.process for stream in self.streams))


MAX_PACKED = 1 << 15
MAX_PROCESSES, MAX_SIZES, MAX_REGIONS, MAX_CGROUPS = 48, 64, 4096, 256
OTHER_PROCESSES = "other processes"
_EXACT_DEPTH = 64
_SHORT_IN_WINDOW = WINDOW_NS // SHORT_WINDOW_NS


class _Arrivals:
    """Counts the arrivals of one stream, window by window."""

    def __init__(self) -> None:
        self.squares = self.busiest = self.active = self.bursts = 0
        self._short = self._window = -2
        self._count = 0
        self._pids: set[int] = set()
        self.windows_active = self.workers = 0

    def add(self, short: int, count: int, pids: set[int]) -> None:
        """Count ``count`` requests in the short window with this number. Numbers must not
        decrease."""
        if short != self._short:
            self.active += 1
            self.bursts += short != self._short + 1
            self._short = short
        window = short // _SHORT_IN_WINDOW
        if window != self._window:
            self.end()
            self._window = window
        self._count += count
        self._pids |= pids

    def end(self) -> None:
        """Finish the current window."""
        if self._count:
            self.squares += self._count * self._count
            self.busiest = max(self.busiest, self._count)
            self.windows_active += 1
            self.workers += len(self._pids)
        self._count, self._pids = 0, set()


class _Stream:
    """The counts of one process's requests of one kind (READ, WRITE, DISCARD, FLUSH)."""

    def __init__(self) -> None:
        self.ios = self.sectors = self.sequential = self.fua = self.sync = 0
        self.sizes: dict[int, int] = {}
        self.depths: dict[int, int] = {}
        self.regions: dict[int, int] = {}
        self.region_shift = 0
        self.arrivals = _Arrivals()

    def add_shape(self, low: int, count: int) -> None:
        sectors = low & MAX_SECTORS
        self.ios += count
        self.sectors += sectors * count
        if low & SEQUENTIAL:
            self.sequential += count
        if low & FUA:
            self.fua += count
        if low & SYNC:
            self.sync += count
        if sectors not in self.sizes and len(self.sizes) >= MAX_SIZES:
            sectors = binned(sectors)
        self.sizes[sectors] = self.sizes.get(sectors, 0) + count

    def add_depth(self, depth: int, count: int) -> None:
        depth = depth if depth <= _EXACT_DEPTH else binned(depth)
        self.depths[depth] = self.depths.get(depth, 0) + count

    def add_region(self, region: int, count: int) -> None:
        region >>= self.region_shift
        self.regions[region] = self.regions.get(region, 0) + count
        if len(self.regions) > MAX_REGIONS:
            self.region_shift += 1
            halves = self.regions
            self.regions = {}
            for number, n in halves.items():
                self.regions[number >> 1] = self.regions.get(number >> 1, 0) + n

    def result(self, process: str, kind: str, seconds: float, windows: int) -> Stream:
        arrivals = self.arrivals
        arrivals.end()
        return Stream(
            process, kind, seconds, self.ios, self.sectors * SECTOR_BYTES, self.sequential,
            self.fua, self.sync,
            max(1.0, arrivals.workers / arrivals.windows_active if arrivals.windows_active else 1),
            {n * SECTOR_BYTES: count for n, count in sorted(self.sizes.items())},
            dict(sorted(self.depths.items())), dict(self.regions),
            REGION_BYTES << self.region_shift,
            Arrivals(windows, arrivals.squares, arrivals.busiest, arrivals.active,
                     arrivals.bursts),
        )  # fmt: skip


class WorkloadCounter:
    """Counts batches of captured requests. ``name_of`` returns a process's name by its number, so
    that all processes of a name form one stream."""

    def __init__(self, name_of: Callable[[int], str]) -> None:
        self._name_of = name_of
        self._streams: dict[tuple[str, int], _Stream] = {}
        self._names: set[str] = set()
        self._cgroups: dict[int, int] = {}
        # packed shapes, depths, regions and cgroups that are not unpacked yet
        self._packed: tuple[Counter[int], ...] = (Counter(), Counter(), Counter(), Counter())
        self._in_flight = self._request_count = 0
        # the short window that is still open: its number, and its requests by stream
        self._open_window = -1
        self._open_counts: Counter[int] = Counter()
        self._first_window = -1
        self._first_ns = self._last_ns = -1

    @property
    def cells(self) -> int:
        """The number of counts that are kept, which determines the memory."""
        return sum(len(stream.sizes) + len(stream.depths) + len(stream.regions)
                   for stream in self._streams.values())  # fmt: skip

    def begin(self, time_ns: int) -> None:
        self._first_window = time_ns // WINDOW_NS

    def add(
        self, times: Sequence[int], shapes: Sequence[int], depths: Sequence[int],
        regions: Sequence[int], cgroups: Sequence[int], totals: Sequence[int],
    ) -> None:  # fmt: skip
        """Count a batch of requests in the order of their times (ns)."""
        if not times:
            return
        self._first_ns = times[0] if self._first_ns < 0 else self._first_ns
        self._last_ns = times[-1]
        for counter, values in zip(self._packed, (shapes, depths, regions, cgroups), strict=True):
            counter.update(values)
        self._in_flight += sum(totals)
        self._request_count += len(totals) - totals.count(0)
        self._add_arrivals(times, [shape >> KIND_AT for shape in shapes])
        if sum(map(len, self._packed)) > MAX_PACKED:
            self._unpack()

    @property
    def span(self) -> tuple[int, int] | None:
        """The times (ns) of the first and the last request."""
        return (self._first_ns, self._last_ns) if self._first_ns >= 0 else None

    def result(
        self, device: str, end_ns: int, lost: int = 0, missed: int = 0, requeued: int = 0,
        unknown: int = 0, filtered: bool = False, begin_ns: int | None = None,
    ) -> Workload:  # fmt: skip
        """The workload counted until ``end_ns``. Rates are scaled up to include the ``lost``
        requests."""
        self._close_window()
        self._unpack()
        counted_share = (
            self._request_count / (self._request_count + lost) if self._request_count else 1.0
        )
        begin = begin_ns if begin_ns is not None else self._first_window * WINDOW_NS
        seconds = max(0.0, (end_ns - begin) / 1e9)
        windows = max(1, end_ns // WINDOW_NS - begin // WINDOW_NS)
        streams = [stream.result(process, KINDS[kind], seconds * counted_share, windows)
                 for (process, kind), stream in self._streams.items()]  # fmt: skip
        streams.sort(key=lambda stream: -stream.ios)
        return Workload(
            device, seconds, tuple(stream for stream in streams if stream.process),
            {stream.kind: stream for stream in streams if not stream.process},
            self._in_flight / self._request_count if self._request_count else None,
            dict(self._cgroups), lost, missed, requeued, unknown, filtered,
        )  # fmt: skip

    def _unpack(self) -> None:
        """Unpack each distinct value that was counted packed, together with its count."""
        shapes, depths, regions, cgroups = self._packed
        self._packed = (Counter(), Counter(), Counter(), Counter())
        # the value 0 belongs to flushes: they have no sector, and their depth means nothing
        depths.pop(0, None)
        regions.pop(0, None)
        for packed, count in shapes.items():
            for stream in self._streams_of(packed):
                stream.add_shape(packed & LOW_BITS, count)
        for packed, count in depths.items():
            for stream in self._streams_of(packed):
                stream.add_depth(packed & LOW_BITS, count)
        for packed, count in regions.items():
            for stream in self._streams_of(packed):
                stream.add_region(packed & LOW_BITS, count)
        for cgroup, count in cgroups.items():
            if cgroup in self._cgroups or len(self._cgroups) < MAX_CGROUPS:
                self._cgroups[cgroup] = self._cgroups.get(cgroup, 0) + count

    def _streams_of(self, packed: int) -> tuple[_Stream, _Stream]:
        """The stream of a packed value's process and kind, and the stream of all processes for the
        kind."""
        kind = packed >> KIND_AT & 3
        return self._stream(self._name(packed >> PID_AT), kind), self._stream("", kind)

    def _stream(self, name: str, kind: int) -> _Stream:
        stream = self._streams.get((name, kind))
        if stream is None:
            stream = self._streams[name, kind] = _Stream()
        return stream

    def _name(self, pid: int) -> str:
        name = self._name_of(pid)
        if name not in self._names:
            if len(self._names) >= MAX_PROCESSES:
                return OTHER_PROCESSES
            self._names.add(name)
        return name

    def _add_arrivals(self, times: Sequence[int], keys: Sequence[int]) -> None:
        at = 0
        while at < len(times):
            # the time is taken before the place in the ring is reserved, so neighbours may be out
            # of order
            window = max(times[at] // SHORT_WINDOW_NS, self._open_window)
            if window != self._open_window:
                self._close_window()
                self._open_window = window
            end = max(at + 1, bisect_left(times, (window + 1) * SHORT_WINDOW_NS, at))
            self._open_counts.update(keys[at:end])
            at = end

    def _close_window(self) -> None:
        if not self._open_counts:
            return
        arrivals: dict[tuple[str, int], tuple[int, set[int]]] = {}
        for key, count in self._open_counts.items():
            pid, kind = key >> PID_AT - KIND_AT, key & 3
            for name in (self._name(pid), ""):
                before, pids = arrivals.get((name, kind), (0, set()))
                arrivals[name, kind] = before + count, pids | {pid}
        for (name, kind), (count, pids) in arrivals.items():
            self._stream(name, kind).arrivals.add(self._open_window, count, pids)
        self._open_counts = Counter()


def binned(value: int) -> int:
    """``value`` with all bits cleared except its four highest ones: each bin is an eighth of an
    octave wide."""
    shift = max(0, value.bit_length() - 4)
    return value >> shift << shift
