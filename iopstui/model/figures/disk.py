"""A disk's figures over one interval, in iostat's terms (man iostat, sysstat).

They are computed from the growth of the counters in /proc/diskstats
(Documentation/admin-guide/iostats.rst)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from operator import attrgetter, ge, mul, sub
from typing import Any

from iopstui import format as f
from iopstui.model.figures.figure import SECONDS, Figure, Rows, added, by_name
from iopstui.model.rates import delta, delta_ms
from iopstui.model.samples import DiskCounters
from iopstui.model.sizes import KIB, MIB
from iopstui.tables import Column

SECTOR = 512
NOT_ADDED = ("io_ms",)
"""Shares of time, which can't be added up over devices."""


def _rate(name: str, part: str, meaning: str, **more: object) -> Figure:
    return Figure(name, "1/s", meaning, part, SECONDS, **more)  # type: ignore[arg-type]


def _bytes(name: str, part: str, meaning: str, **more: object) -> Figure:
    return Figure(name, "MiB/s", meaning, part, SECONDS, scale=MIB, form=f.mib, width=5, **more)  # type: ignore[arg-type]


def _await(name: str, part: str, whole: str, kind: str) -> Figure:
    meaning = f"mean time of a {kind} request, queueing included"
    return Figure(name, "ms", meaning, part, whole, width=7, form=f.milliseconds)


def _size(name: str, part: str, whole: str, meaning: str) -> Figure:
    return Figure(name, "KiB", meaning, part, whole, scale=KIB, form=f.size)


def _count(name: str, part: str, meaning: str) -> Figure:
    return Figure(name, "", meaning, part)


@dataclass(slots=True)  # not frozen, like DiskCounters
class DiskRates:
    """The growth of a device's counters over ``seconds``, and the figures made from it: requests
    and merges per second, throughput in bytes per second, awaits in ms, sizes in bytes, ``util`` in
    percent. If a counter went backwards, its growth is ``None``, and so are figures made from it;
    an await without requests is ``None``, too."""

    seconds: float
    reads: int | None = None
    writes: int | None = None
    discards: int | None = None
    flushes: int | None = None
    read_bytes: int | None = None
    write_bytes: int | None = None
    discard_bytes: int | None = None
    read_merges: int | None = None
    write_merges: int | None = None
    discard_merges: int | None = None
    read_ms: float | None = None
    write_ms: float | None = None
    discard_ms: float | None = None
    flush_ms: float | None = None
    weighted_ms: float | None = None
    io_ms: float | None = None
    in_flight: int | None = None

    r_s = _rate("r/s", "reads", "read requests completed, after merging", width=5)
    r_bytes_s = _bytes("rMB/s", "read_bytes", "read throughput (2^20 bytes, as iostat -m)")
    rrqm_s = _rate("rrqm/s", "read_merges", "read requests merged into others", rank=4)
    r_await = _await("r_await", "read_ms", "reads", "read")
    rareq_size = _size("rareq-sz", "read_bytes", "reads", "mean size of a read request")
    n_reads = _count("reads", "reads", "read requests completed in this interval")
    w_s = _rate("w/s", "writes", "write requests completed, after merging", width=5)
    w_bytes_s = _bytes("wMB/s", "write_bytes", "write throughput (2^20 bytes, as iostat -m)")
    wrqm_s = _rate("wrqm/s", "write_merges", "write requests merged into others", rank=4)
    w_await = _await("w_await", "write_ms", "writes", "write")
    wareq_size = _size("wareq-sz", "write_bytes", "writes", "mean size of a write request")
    n_writes = _count("writes", "writes", "write requests completed in this interval")
    d_s = _rate("d/s", "discards", "discard requests completed, after merging", rank=6, width=5)
    d_bytes_s = _bytes("dMB/s", "discard_bytes", "discard throughput (2^20 bytes, as iostat -m)")
    drqm_s = _rate("drqm/s", "discard_merges", "discard requests merged into others")
    d_await = _await("d_await", "discard_ms", "discards", "discard")
    dareq_size = _size("dareq-sz", "discard_bytes", "discards", "mean size of a discard request")
    n_discards = _count("discards", "discards", "discard requests completed in this interval")
    f_s = _rate("f/s", "flushes", "flush requests completed (whole disks only)", rank=5, width=5)
    f_await = Figure("f_await", "ms", "mean time of a flush request", "flush_ms", "flushes",
                     width=7, form=f.milliseconds)  # fmt: skip
    aqu_sz = Figure("aqu-sz", "", "mean number of requests in flight (kernels since 5.0 count a "
                    "request's whole time when it completes)", "weighted_ms", SECONDS, per=1000,
                    rank=1)  # fmt: skip
    util = Figure(
        "util", "%", "share of the time with at least one request in flight, which kernels since "
        "5.0 sample each tick (1 to 10 ms): wrong for short I/Os in step with the tick; not the "
        "load of a parallel disk", "io_ms", SECONDS, per=10, most=100.0, width=4, form=f.percent,
    )  # fmt: skip
    n_in_flight = Figure("in-flight", "", "requests in flight at the end of the interval",
                         "in_flight", title="infl", width=4, rank=2)  # fmt: skip

    # reads, writes and discards together
    ios_s = _rate("ios/s", "ios", "I/Os completed: reads, writes and discards", inner=True)
    bytes_s = Figure("bytes/s", "B/s", "bytes of these I/Os", "moved", SECONDS, inner=True)
    data_s = Figure("data/s", "B/s", "bytes read and written", "data", SECONDS, inner=True)
    merges_s = _rate("merges/s", "merges", "requests merged into others", inner=True)
    ios_await = Figure("await", "ms", "mean time of an I/O, queueing included", "waited_ms", "ios",
                       inner=True)  # fmt: skip

    @property
    def ios(self) -> int | None:
        """Reads, writes and discards (iostat's tps). Flushes are not added: an empty flush is among
        the writes already, because Linux's blk-flush.c counts the request that carries it."""
        return _total(self.reads, self.writes, self.discards)

    @property
    def moved(self) -> int | None:
        """Bytes of reads, writes and discards; fio's bandwidth, too, includes discards."""
        return _total(self.read_bytes, self.write_bytes, self.discard_bytes)

    @property
    def data(self) -> int | None:
        """Bytes read and written."""
        known = self.read_bytes is not None and self.write_bytes is not None
        return (self.read_bytes or 0) + (self.write_bytes or 0) if known else None

    @property
    def merges(self) -> int | None:
        """Requests that were merged into others."""
        return _total(self.read_merges, self.write_merges, self.discard_merges)

    @property
    def waited_ms(self) -> float | None:
        """Total time of all reads, writes and discards in ms."""
        waits = ((self.read_ms, self.reads), (self.write_ms, self.writes),
                 (self.discard_ms, self.discards))  # fmt: skip
        return sum(ms for ms, count in waits if ms and count) or None


Loads = Callable[[Collection[str] | None], Mapping[str, DiskRates]]
"""Returns the rates of these disks (``None``: of all) since the previous call, by kernel name."""
DISK: Rows = tuple(by_name(DiskRates).values())


def _total(reads: int | None, writes: int | None, discards: int | None) -> int | None:
    """The sum of reads, writes and discards; ``None`` if reads or writes are missing. Discards may
    be missing: kernels before 4.18 don't count them."""
    if reads is None or writes is None:
        return None
    return reads + writes + (discards or 0)


_COUNTS = attrgetter(
    "reads", "writes", "discards", "flushes", "read_sectors", "write_sectors", "discard_sectors",
    "read_merges", "write_merges", "discard_merges", "read_ms", "write_ms", "discard_ms",
    "flush_ms", "weighted_ms", "io_ms",
)  # fmt: skip
"""The counters in the order of the fields of ``DiskRates``."""
_UNITS = (1,) * 4 + (SECTOR,) * 3 + (1,) * 9


def disk_rates(current: DiskCounters, previous: DiskCounters, seconds: float) -> DiskRates | None:
    """The growth of one device's counters; ``None`` if the interval is not positive or the device
    number has changed."""
    same_disk = (current.major, current.minor) == (previous.major, previous.minor)
    if seconds <= 0 or not same_disk:
        return None
    now, before = _COUNTS(current), _COUNTS(previous)
    if None not in now and None not in before and all(map(ge, now, before)):
        growths = [*map(mul, map(sub, now, before), _UNITS), current.in_flight]
        return DiskRates(seconds, *growths)
    return DiskRates(
        seconds=seconds,
        reads=delta(current.reads, previous.reads),
        writes=delta(current.writes, previous.writes),
        discards=delta(current.discards, previous.discards),
        flushes=delta(current.flushes, previous.flushes),
        read_bytes=_sectors(delta(current.read_sectors, previous.read_sectors)),
        write_bytes=_sectors(delta(current.write_sectors, previous.write_sectors)),
        discard_bytes=_sectors(delta(current.discard_sectors, previous.discard_sectors)),
        read_merges=delta(current.read_merges, previous.read_merges),
        write_merges=delta(current.write_merges, previous.write_merges),
        discard_merges=delta(current.discard_merges, previous.discard_merges),
        read_ms=delta_ms(current.read_ms, previous.read_ms),
        write_ms=delta_ms(current.write_ms, previous.write_ms),
        discard_ms=delta_ms(current.discard_ms, previous.discard_ms),
        flush_ms=delta_ms(current.flush_ms, previous.flush_ms),
        weighted_ms=delta_ms(current.weighted_ms, previous.weighted_ms),
        io_ms=delta_ms(current.io_ms, previous.io_ms),
        in_flight=current.in_flight,
    )


def sum_rates(parts: Sequence[DiskRates]) -> DiskRates | None:
    """Treat several devices over the same interval as one (figure.added); the sum has no
    ``util``."""
    return added(parts, NOT_ADDED)


def util_text(rates: DiskRates | None) -> str:
    """Percent busy for people: "0", "12". The kernel samples it in ticks: they may find a disk idle
    that completed I/Os, or busy for longer than its requests took. Then it is the most that it can
    have been: "<5" with 0.05 in flight on average."""
    util = None if rates is None else rates.util
    if rates is None or util is None or not rates.ios_s or rates.aqu_sz is None:
        return f.percent(util)
    if util and not has_too_many_ticks([rates]):
        return f.percent(util)
    most = ceil(100 * rates.aqu_sz)
    return f"<{max(1, most)}" if most < 100 else f.MISSING


def has_too_many_ticks(seconds: Sequence[DiskRates]) -> bool:
    """Whether a disk's ticks in these seconds say that it was busy for clearly longer than all its
    requests took. Requests that go on, and flushes, have no time yet."""
    if not seconds or seconds[-1].in_flight or any(rates.flushes for rates in seconds):
        return False
    known = [(rates.util, rates.aqu_sz) for rates in seconds]
    if any(util is None or aqu_sz is None for util, aqu_sz in known):
        return False
    ticks, taken = sum(util or 0 for util, _ in known), sum(100 * (aqu or 0) for _, aqu in known)
    return ticks > 1.1 * taken + len(known)


def util_column(**different: Any) -> Column:
    """``util`` as a column of a table for people."""
    return DiskRates.util.screen_column(**{
        "read": lambda rates: rates, "form": util_text, "key": lambda rates: rates.util or 0.0,
        **different,
    })  # fmt: skip


def mean_ms(rates: DiskRates) -> float | None:
    """The mean latency (ms) of a second's reads and writes, each counted once; ``None`` if there
    were none."""
    waited = count = 0.0
    for number, ms in ((rates.reads, rates.read_ms), (rates.writes, rates.write_ms)):
        if number and ms is not None:
            waited, count = waited + ms, count + number
    return waited / count if count else None


def _sectors(count: int | None) -> int | None:
    return None if count is None else count * SECTOR


def mean_ms_over(seconds: Iterable[DiskRates]) -> float | None:
    """Mean milliseconds of all reads and writes of these seconds, each counted once."""
    waited = count = 0.0
    for rates in seconds:
        for number, ms in ((rates.reads, rates.read_ms), (rates.writes, rates.write_ms)):
            if number and ms is not None:
                waited += ms / rates.seconds
                count += number / rates.seconds
    return waited / count if count else None
