"""Judge iopstui's figures of the kernel against counters that were read beside it.

Both read the same growing counters at slightly different instants. So a figure of iopstui's, summed
up, must lie between what the counter grew by in a slightly shorter and in a slightly longer time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import lt
from typing import Any

from iopstui.selftest.check import Check, not_made, within
from iopstui.selftest.evidence import Evidence

SLACK_MS = 100.0
AGAIN = "the counters began again meanwhile, as after a reset of the disk's controller"
RATES = "the device's rates would be wrong"
SECTOR = 512
MIB = 1 << 20
ROUNDING = 1e-3
TICKS_MS = 20.0
"""The kernel counts busy time by its timer: up to 10 ms at each end."""
Frame = dict[str, Any]
Reading = tuple[float, list[float]]


def judge_kernel(found: Evidence) -> Iterator[Check]:
    """The device's counts, times and use, then interrupts and softirqs by CPU."""
    frames = [one for one in found.frames if one["disk"] is not None and one["seconds"]]
    if "device" in found.missing or not found.counters or not frames:
        yield not_made("device", found.missing.get("device", "the disk was not seen in the run"))
        return
    yield from _device(found, frames)
    yield from _softirqs(found, frames)
    yield from _interrupts(found, frames)


def _device(found: Evidence, frames: Sequence[Frame]) -> Iterator[Check]:
    stats = _readings(found, "diskstats", 3)
    # the ninth is what is in flight
    if _began_again([(at, row[:8] + row[9:]) for at, row in stats]):
        yield not_made("device", AGAIN)
        return
    span = _begin(frames[0]), float(frames[-1]["wall_ms"])
    for name, field, measured, meaning, more in _device_sums(frames):
        low, high = _growth(stats, field, *span)
        yield within(f"device: {name}", _down(low) - more, _up(high) + more, measured, meaning)
    odd = 0
    for frame in frames:
        each = (_growth(stats, field, _begin(frame), frame["wall_ms"]) for field in (0, 4))
        low, high = map(sum, zip(*each, strict=True))
        odd += not low <= frame["disk"]["reads"] + frame["disk"]["writes"] <= high
    yield within("device: seconds with wrong counts", 0, 0, odd, RATES)


def _device_sums(frames: Sequence[Frame]) -> Iterator[tuple[str, int, float, str, float]]:
    """(name, field of /proc/diskstats behind the name, sum over the frames, meaning of a failure,
    what the kernel may count more or less)."""
    disks = [(one["disk"], one["seconds"]) for one in frames]
    for key, field, letter in (("reads", 0, "r"), ("writes", 4, "w")):
        yield key, field, sum(disk[key] for disk, _ in disks), RATES, 0.0
        moved = sum(disk[f"{letter}MB/s"] * seconds for disk, seconds in disks)
        yield f"sectors of {letter}MB/s", field + 2, moved * MIB / SECTOR, RATES, 0.0
        waited = sum((disk[f"{letter}_await"] or 0.0) * disk[key] for disk, _ in disks)
        yield f"ms of {letter}_await", field + 3, waited, "await would be wrong", 1.0
    busy = sum(disk["util"] / 100 * seconds for disk, seconds in disks)
    yield "busy ms (util)", 9, 1000 * busy, "util would be wrong", TICKS_MS
    waiting = sum(disk["aqu-sz"] * seconds for disk, seconds in disks)
    yield "ms of aqu-sz", 10, 1000 * waiting, "aqu-sz would be wrong", TICKS_MS


def _softirqs(found: Evidence, frames: Sequence[Frame]) -> Iterator[Check]:
    readings = _readings(found, "softirqs", 1)
    cpus = sorted(frames[0]["cpus"], key=int)
    if not readings or len(readings[0][1]) != len(cpus):
        yield not_made("BLOCK softirqs by CPU", "the columns of /proc/softirqs are not these CPUs")
        return
    span = _begin(frames[0]), float(frames[-1]["wall_ms"])
    for column, cpu in enumerate(cpus):
        low, high = _growth(readings, column, *span)
        measured = sum(
            (one["cpus"].get(cpu, {}).get("block/s") or 0.0) * one["seconds"] for one in frames
        )
        yield within(f"BLOCK softirqs of CPU {cpu}", _down(low), _up(high), measured,
                     "completions would be shown on the wrong CPU")  # fmt: skip


def _interrupts(found: Evidence, frames: Sequence[Frame]) -> Iterator[Check]:
    """Of all vectors of the disk together, by CPU."""
    vectors = sorted({irq for frame in frames for irq in frame["irqs"]}, key=int)
    rows = {irq: _readings(found, "interrupts", 1, f"{irq}:") for irq in vectors}
    rows = {irq: readings for irq, readings in rows.items() if readings}
    if not rows:
        yield not_made("interrupts by CPU", "the disk has no interrupts of its own")
        return
    if any(map(_began_again, rows.values())):
        yield not_made("interrupts by CPU", AGAIN)
        return
    cpus = sorted(frames[0]["cpus"], key=int)
    for column, cpu in enumerate(cpus):
        low = high = measured = 0.0
        for irq, readings in rows.items():
            least, most = _growth(readings, column, _begin(frames[0]), frames[-1]["wall_ms"])
            low, high = low + least, high + most
            measured += sum((f["irqs"].get(irq, {}).get(cpu) or 0.0) * f["seconds"] for f in frames)
        yield within(f"interrupts of the disk on CPU {cpu}", _down(low), _up(high), measured,
                     "interrupts would be shown on the wrong CPU")  # fmt: skip


def _readings(found: Evidence, name: str, skip: int, label: str = "") -> list[Reading]:
    """The numbers of each line of this kind, behind the first ``skip`` words."""
    readings = []
    for at, kind, line in found.counters:
        words = str(line).split()
        if kind == name and (not label or words[0] == label):
            numbers = []
            for word in words[skip:]:
                if not word.isdecimal():
                    break
                numbers.append(float(word))
            readings.append((float(at), numbers))
    return readings


def _began_again(readings: Sequence[Reading]) -> bool:
    """Whether a counter was lower than before, or there were others."""
    return any(
        len(now) != len(then) or any(map(lt, now, then))
        for (_, then), (_, now) in pairwise(readings)
    )


def _begin(frame: Frame) -> float:
    return float(frame["wall_ms"] - 1000 * frame["seconds"])


def _growth(
    readings: Sequence[Reading], field: int, begin: float, end: float
) -> tuple[float, float]:
    """The least and the most that a counter can have grown by between two instants."""

    def before(at: float) -> float:
        return max((row[field] for t, row in readings if t <= at), default=readings[0][1][field])

    def after(at: float) -> float:
        return min((row[field] for t, row in readings if t >= at), default=readings[-1][1][field])

    return (max(0.0, before(end - SLACK_MS) - after(begin + SLACK_MS)),
            after(end + SLACK_MS) - before(begin - SLACK_MS))  # fmt: skip


def _down(value: float) -> float:
    return max(0.0, value * (1 - ROUNDING) - 1)


def _up(value: float) -> float:
    return value * (1 + ROUNDING) + 1
