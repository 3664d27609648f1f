"""Differences of counters. A reset or a gap gives ``None``, never a made-up number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import ne
from typing import Any

from iopstui.model.samples import CpuTimes, DiskCounters

SECTOR = 512
MIB = 1 << 20
WRAP_32 = 1 << 32


def delta(current: int | None, previous: int | None) -> int | None:
    """Growth of a counter; ``None`` if either side is missing or it went backwards."""
    if current is None or previous is None or current < previous:
        return None
    return current - previous


def delta_ms(current: int | None, previous: int | None) -> int | None:
    """Growth of a diskstats time (ms), which the kernel prints with 32 bits: it may wrap.

    A step backwards is a wrap only if it is a short way through the top of the range;
    anything else is a reset.
    """
    if current is None or previous is None:
        return None
    if current >= previous:
        return current - previous
    wrapped = current + WRAP_32 - previous
    return wrapped if 0 <= wrapped < WRAP_32 // 4 else None


def ratio(part: float | None, total: float | None) -> float | None:
    """part / whole, or ``None`` where there is nothing to divide by."""
    if part is None or not total:
        return None
    return part / total


@dataclass(frozen=True, slots=True)
class DiskRates:
    """Rates of a device over one interval, in iostat's terms (man iostat, sysstat). Requests and
    merges are per second, throughput in bytes per second, awaits in ms, sizes in bytes, ``util`` in
    percent; ``in_flight`` is the counter at the end of the interval. ``reads``, ``writes`` ... are
    the interval's plain counts. An await with no completed request is ``None``."""

    seconds: float
    reads: int | None
    writes: int | None
    discards: int | None
    r_s: float | None
    w_s: float | None
    d_s: float | None
    f_s: float | None
    r_bytes_s: float | None
    w_bytes_s: float | None
    d_bytes_s: float | None
    rrqm_s: float | None
    wrqm_s: float | None
    drqm_s: float | None
    r_await: float | None
    w_await: float | None
    d_await: float | None
    f_await: float | None
    rareq_size: float | None
    wareq_size: float | None
    dareq_size: float | None
    aqu_sz: float | None
    util: float | None
    in_flight: int | None

    @property
    def ios(self) -> int | None:
        """The count behind ``ios_s``."""
        count = _total(self.reads, self.writes, self.discards)
        return None if count is None else int(count)

    @property
    def waited_ms(self) -> float | None:
        """Total waiting time of all these I/Os in ms (await times count)."""
        waits = ((self.r_await, self.reads), (self.w_await, self.writes),
                 (self.d_await, self.discards))  # fmt: skip
        waiting = [wait * count for wait, count in waits if wait is not None and count]
        return sum(waiting) if waiting else None

    @property
    def ios_s(self) -> float | None:
        """I/Os completed per second: reads, writes and discards (iostat's tps). An empty flush
        is among the writes already (Linux's blk-flush.c counts the request that holds it), so
        ``f_s`` is not added."""
        return _total(self.r_s, self.w_s, self.d_s)

    @property
    def bytes_s(self) -> float | None:
        """Bytes of these I/Os per second; those discarded count, as in fio's bandwidth."""
        return _total(self.r_bytes_s, self.w_bytes_s, self.d_bytes_s)

    @property
    def merges_s(self) -> float | None:
        """Requests per second that were merged into others."""
        return _total(self.rrqm_s, self.wrqm_s, self.drqm_s)


def _total(reads: float | None, writes: float | None, discards: float | None) -> float | None:
    """Return the sum; ``None`` if reads or writes are missing. Kernels before 4.18 count no
    discards."""
    if reads is None or writes is None:
        return None
    return reads + writes + (discards or 0.0)


def disk_rates(current: DiskCounters, previous: DiskCounters, seconds: float) -> DiskRates | None:
    """Rates of one device; ``None`` without a positive interval or for another device number."""
    same_disk = (current.major, current.minor) == (previous.major, previous.minor)
    if seconds <= 0 or not same_disk:
        return None
    reads = delta(current.reads, previous.reads)
    writes = delta(current.writes, previous.writes)
    discards = delta(current.discards, previous.discards)
    flushes = delta(current.flushes, previous.flushes)
    read_bytes = _bytes(delta(current.read_sectors, previous.read_sectors))
    write_bytes = _bytes(delta(current.write_sectors, previous.write_sectors))
    discard_bytes = _bytes(delta(current.discard_sectors, previous.discard_sectors))
    io_ms = delta_ms(current.io_ms, previous.io_ms)
    util = ratio(io_ms, seconds * 10)
    return DiskRates(
        seconds=seconds,
        reads=reads,
        writes=writes,
        discards=discards,
        r_s=ratio(reads, seconds),
        w_s=ratio(writes, seconds),
        d_s=ratio(discards, seconds),
        f_s=ratio(flushes, seconds),
        r_bytes_s=ratio(read_bytes, seconds),
        w_bytes_s=ratio(write_bytes, seconds),
        d_bytes_s=ratio(discard_bytes, seconds),
        rrqm_s=ratio(delta(current.read_merges, previous.read_merges), seconds),
        wrqm_s=ratio(delta(current.write_merges, previous.write_merges), seconds),
        drqm_s=ratio(delta(current.discard_merges, previous.discard_merges), seconds),
        r_await=ratio(delta_ms(current.read_ms, previous.read_ms), reads),
        w_await=ratio(delta_ms(current.write_ms, previous.write_ms), writes),
        d_await=ratio(delta_ms(current.discard_ms, previous.discard_ms), discards),
        f_await=ratio(delta_ms(current.flush_ms, previous.flush_ms), flushes),
        rareq_size=ratio(read_bytes, reads),
        wareq_size=ratio(write_bytes, writes),
        dareq_size=ratio(discard_bytes, discards),
        aqu_sz=ratio(delta_ms(current.weighted_ms, previous.weighted_ms), seconds * 1000),
        util=None if util is None else min(util, 100.0),
        in_flight=current.in_flight,
    )


def sum_rates(parts: Sequence[DiskRates]) -> DiskRates | None:
    """Several devices over the same interval as one; ``None`` of none. One alone stays as it is.

    Counts, rates, aqu-sz and in-flight add up; an await is all their waiting over all their
    requests, a size all bytes over all requests: no mean is averaged. ``util`` is ``None``:
    shares of time do not add up. What one of them lacks the sum lacks, too.
    """
    if len(parts) < 2:
        return parts[0] if parts else None
    sums = {name: _sum_known([getattr(part, name) for part in parts]) for name in _SUMMED_FIELDS}
    return DiskRates(
        seconds=parts[0].seconds,
        **sums,
        r_await=_mean([(p.r_await, p.reads) for p in parts]),
        w_await=_mean([(p.w_await, p.writes) for p in parts]),
        d_await=_mean([(p.d_await, p.discards) for p in parts]),
        f_await=_mean([(p.f_await, p.f_s) for p in parts]),
        rareq_size=ratio(sums["r_bytes_s"], sums["r_s"]),
        wareq_size=ratio(sums["w_bytes_s"], sums["w_s"]),
        dareq_size=ratio(sums["d_bytes_s"], sums["d_s"]),
        util=None,
    )


_SUMMED_FIELDS = (
    "reads", "writes", "discards", "r_s", "w_s", "d_s", "f_s", "r_bytes_s", "w_bytes_s",
    "d_bytes_s", "rrqm_s", "wrqm_s", "drqm_s", "aqu_sz", "in_flight",
)  # fmt: skip


def _sum_known(values: Sequence[Any]) -> Any:
    return None if None in values else sum(values)


def _mean(parts: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Return the mean of all from pairs (mean, count). A device without any has no part."""
    total = count = 0.0
    for mean, number in parts:
        if number is None or (number and mean is None):
            return None
        total += (mean or 0.0) * number
        count += number
    return total / count if count else None


def _bytes(sectors: int | None) -> int | None:
    return None if sectors is None else sectors * SECTOR


@dataclass(frozen=True, slots=True)
class CpuLoad:
    """Time of one CPU, in percent of the interval's ticks (/proc/stat)."""

    usr: float
    sys: float
    iowait: float
    irq: float
    soft: float
    idle: float
    steal: float


def cpu_load(current: CpuTimes, previous: CpuTimes) -> CpuLoad | None:
    """Load of one CPU; ``None`` if no tick passed or it was reset (CPU off- and online)."""
    ticks = _tick_growth(current, previous)
    if ticks is None:
        return None
    usr, system, iowait, irq, soft, idle, steal, scale = ticks
    return CpuLoad(
        usr=usr * scale,
        sys=system * scale,
        iowait=iowait * scale,
        irq=irq * scale,
        soft=soft * scale,
        idle=idle * scale,
        steal=steal * scale,
    )


def cpu_busy(current: CpuTimes, previous: CpuTimes) -> float | None:
    """Busy time in percent: ``cpu_load`` without idle and iowait; ``None`` as there."""
    ticks = _tick_growth(current, previous)
    if ticks is None:
        return None
    _, _, iowait, _, _, idle, _, scale = ticks
    return 100 - idle * scale - iowait * scale


def _tick_growth(
    current: CpuTimes, previous: CpuTimes
) -> tuple[int, int, int, int, int, int, int, float] | None:
    """The ticks of each field of ``CpuLoad``, and what makes percents of them.

    iowait (and idle with it) may step back a little by design (proc(5)); it counts as 0 then.
    """
    usr = current.user + current.nice - previous.user - previous.nice
    system = current.system - previous.system
    irq = current.irq - previous.irq
    soft = current.softirq - previous.softirq
    steal = current.steal - previous.steal
    if usr < 0 or system < 0 or irq < 0 or soft < 0 or steal < 0:
        return None
    # hundreds of CPUs: no call for each figure
    iowait = current.iowait - previous.iowait
    iowait = iowait if iowait > 0 else 0
    idle = current.idle - previous.idle
    idle = idle if idle > 0 else 0
    total = usr + system + irq + soft + steal + iowait + idle
    if total <= 0:
        return None
    return usr, system, iowait, irq, soft, idle, steal, 100.0 / total


def per_second(
    current: Mapping[int, int] | None, previous: Mapping[int, int] | None, seconds: float
) -> dict[int, float]:
    """Rates of a per-CPU counter, for the CPUs that both sides have and that did not reset."""
    if current is None or previous is None or seconds <= 0:
        return {}
    if current is previous:
        return dict.fromkeys(current, 0.0)
    # hundreds of queues times hundreds of CPUs: no call for each, and most don't change
    columns = [*current]
    if columns == [*previous]:
        per_cpu = dict.fromkeys(current, 0.0)
        for cpu in compress(columns, map(ne, current.values(), previous.values())):
            increase = current[cpu] - previous[cpu]
            if increase > 0:
                per_cpu[cpu] = increase / seconds
            else:
                del per_cpu[cpu]
        return per_cpu
    before = previous.get
    return {
        cpu: (count - earlier) / seconds
        for cpu, count in current.items()
        if (earlier := before(cpu)) is not None and count >= earlier
    }
