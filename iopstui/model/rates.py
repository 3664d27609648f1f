"""Differences of counters, and means. A reset or a gap gives ``None``, never an invented
number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum, sqrt

from iopstui.model.samples import CpuTimes


def fmean(values: Iterable[float]) -> float:
    """The arithmetic mean. Raises ZeroDivisionError if there are no values."""
    numbers = list(values)
    return fsum(numbers) / len(numbers)


def pstdev(values: Iterable[float]) -> float:
    """The standard deviation of a whole population, not of a sample. Raises ZeroDivisionError if
    there are no values."""
    numbers = list(values)
    middle = fmean(numbers)
    return sqrt(fsum((number - middle) ** 2 for number in numbers) / len(numbers))


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two middle values. Raises IndexError if there are no
    values."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


WRAP_32 = 1 << 32


def delta(current: int | None, previous: int | None) -> int | None:
    """The growth of a counter; ``None`` if a reading is missing or the counter went backwards."""
    if current is None or previous is None or current < previous:
        return None
    return current - previous


def delta_ms(current: int | None, previous: int | None) -> int | None:
    """The growth of a time in diskstats (ms), which the kernel prints with 32 bits, so it may wrap.
    A step backwards counts as a wrap only if the growth across the wrap would be small; otherwise
    it is a reset."""
    if current is None or previous is None:
        return None
    if current >= previous:
        return current - previous
    wrapped = current + WRAP_32 - previous
    return wrapped if 0 <= wrapped < WRAP_32 // 4 else None


def ratio(part: float | None, total: float | None) -> float | None:
    """``part`` / ``total``, or ``None`` if there is nothing to divide by."""
    if part is None or not total:
        return None
    return part / total


@dataclass(frozen=True, slots=True)
class CpuLoad:
    """Times of one CPU, in percent of the interval's ticks (/proc/stat)."""

    usr: float
    sys: float
    iowait: float
    irq: float
    soft: float
    idle: float
    steal: float


def cpu_load(current: CpuTimes, previous: CpuTimes) -> CpuLoad | None:
    """The load of one CPU; ``None`` if no tick passed, or the counters were reset (the CPU went
    offline and online). iowait (and idle with it) may step back a little by design (proc(5)); it
    counts as 0 then."""
    usr = current.user + current.nice - previous.user - previous.nice
    system = current.system - previous.system
    irq = current.irq - previous.irq
    soft = current.softirq - previous.softirq
    steal = current.steal - previous.steal
    if usr < 0 or system < 0 or irq < 0 or soft < 0 or steal < 0:
        return None
    iowait = max(0, current.iowait - previous.iowait)
    idle = max(0, current.idle - previous.idle)
    total = usr + system + irq + soft + steal + iowait + idle
    if total <= 0:
        return None
    scale = 100.0 / total
    return CpuLoad(
        usr=usr * scale,
        sys=system * scale,
        iowait=iowait * scale,
        irq=irq * scale,
        soft=soft * scale,
        idle=idle * scale,
        steal=steal * scale,
    )


def per_second(
    current: Mapping[int, int] | None, previous: Mapping[int, int] | None, seconds: float
) -> dict[int, float]:
    """The rates of a per-CPU counter, for CPUs that are in both readings and whose counter was not
    reset."""
    if current is None or previous is None or seconds <= 0:
        return {}
    before = previous.get
    return {
        cpu: (count - earlier) / seconds
        for cpu, count in current.items()
        if (earlier := before(cpu)) is not None and count >= earlier
    }
