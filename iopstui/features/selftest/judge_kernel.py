"""Judge iopstui's figures of the kernel by counters that were read beside it.

Both read the same growing counters, but at slightly different instants. So the sum of a figure of
iopstui must be between the counter's growth in a slightly shorter time and in a slightly longer
time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import lt
from typing import Any

from iopstui.features.selftest.evidence import Check, Evidence, check_within, unchecked

COUNTERS_RESET = "the counters began again meanwhile, as after a reset of the disk's controller"
WRONG_RATES = "the device's rates would be wrong"
SECTOR = 512
MIB = 1 << 20
TICKS_MS = 20.0
"""The tolerance for busy time, which the kernel counts by its timer: up to 10 ms at each end."""


def judge_kernel(evidence: Evidence) -> Iterator[Check]:
    """Check the device's counts, times and use, then interrupts and softirqs by CPU."""
    frames = [frame for frame in evidence.frames if frame["disk"] is not None and frame["seconds"]]
    if "device" in evidence.missing or not evidence.counters or not frames:
        yield unchecked(
            "device", evidence.missing.get("device", "the disk was not seen in the run")
        )
        return
    yield from _device(evidence, frames)
    yield from _softirqs(evidence, frames)
    yield from _interrupts(evidence, frames)


def _device(evidence: Evidence, frames: Sequence[Frame]) -> Iterator[Check]:
    stats = readings(evidence.counters, "diskstats", 3)
    # without the ninth field (I/Os in flight), which may also decrease
    if was_reset([(at, row[:8] + row[9:]) for at, row in stats]):
        yield unchecked("device", COUNTERS_RESET)
        return
    span = begin_ms(frames[0]), float(frames[-1]["wall_ms"])
    for name, field, measured, meaning, slack in _device_sums(frames):
        low, high = growth(stats, field, *span)
        yield check_within(
            f"device: {name}", round_down(low) - slack, round_up(high) + slack, measured, meaning
        )
    wrong_seconds = 0
    for frame in frames:
        bounds = (growth(stats, field, begin_ms(frame), frame["wall_ms"]) for field in (0, 4))
        low, high = map(sum, zip(*bounds, strict=True))
        wrong_seconds += not low <= frame["disk"]["reads"] + frame["disk"]["writes"] <= high
    yield check_within("device: seconds with wrong counts", 0, 0, wrong_seconds, WRONG_RATES)


def _device_sums(frames: Sequence[Frame]) -> Iterator[tuple[str, int, float, str, float]]:
    """Tuples: a name, the index of its field in /proc/diskstats, the sum over the frames, the
    meaning of a failure, and the tolerance of the kernel's count."""
    disks = [(frame["disk"], frame["seconds"]) for frame in frames]
    for key, field, letter in (("reads", 0, "r"), ("writes", 4, "w")):
        yield key, field, sum(disk[key] for disk, _ in disks), WRONG_RATES, 0.0
        moved = sum(disk[f"{letter}MB/s"] * seconds for disk, seconds in disks)
        yield f"sectors of {letter}MB/s", field + 2, moved * MIB / SECTOR, WRONG_RATES, 0.0
        waited = sum((disk[f"{letter}_await"] or 0.0) * disk[key] for disk, _ in disks)
        yield f"ms of {letter}_await", field + 3, waited, "await would be wrong", 1.0
    busy = sum(disk["util"] / 100 * seconds for disk, seconds in disks)
    yield "busy ms (util)", 9, 1000 * busy, "util would be wrong", TICKS_MS
    waiting = sum(disk["aqu-sz"] * seconds for disk, seconds in disks)
    yield "ms of aqu-sz", 10, 1000 * waiting, "aqu-sz would be wrong", TICKS_MS


def _softirqs(evidence: Evidence, frames: Sequence[Frame]) -> Iterator[Check]:
    counts = readings(evidence.counters, "softirqs", 1)
    cpus = sorted(frames[0]["cpus"], key=int)
    if not counts or len(counts[0][1]) != len(cpus):
        yield unchecked("BLOCK softirqs by CPU", "the columns of /proc/softirqs are not these CPUs")
        return
    span = begin_ms(frames[0]), float(frames[-1]["wall_ms"])
    for column, cpu in enumerate(cpus):
        low, high = growth(counts, column, *span)
        measured = sum(
            (frame["cpus"].get(cpu, {}).get("block/s") or 0.0) * frame["seconds"]
            for frame in frames
        )
        yield check_within(
            f"BLOCK softirqs of CPU {cpu}", round_down(low), round_up(high), measured,
            "completions would be shown on the wrong CPU",
        )  # fmt: skip


def _interrupts(evidence: Evidence, frames: Sequence[Frame]) -> Iterator[Check]:
    """The interrupts of all vectors of the disk together, by CPU."""
    vectors = sorted({irq for frame in frames for irq in frame["irqs"]}, key=int)
    rows = {irq: readings(evidence.counters, "interrupts", 1, f"{irq}:") for irq in vectors}
    rows = {irq: counts for irq, counts in rows.items() if counts}
    if not rows:
        yield unchecked("interrupts by CPU", "the disk has no interrupts of its own")
        return
    if any(map(was_reset, rows.values())):
        yield unchecked("interrupts by CPU", COUNTERS_RESET)
        return
    cpus = sorted(frames[0]["cpus"], key=int)
    for column, cpu in enumerate(cpus):
        low = high = measured = 0.0
        for irq, counts in rows.items():
            least, most = growth(counts, column, begin_ms(frames[0]), frames[-1]["wall_ms"])
            low, high = low + least, high + most
            measured += sum((f["irqs"].get(irq, {}).get(cpu) or 0.0) * f["seconds"] for f in frames)
        yield check_within(
            f"interrupts of the disk on CPU {cpu}", round_down(low), round_up(high), measured,
            "interrupts would be shown on the wrong CPU",
        )  # fmt: skip


# By how much the kernel's counters grew, at least and at most, according to the self-test's own
# readings.


SLACK_MS = 100.0
ROUNDING = 1e-3
Frame = dict[str, Any]
Reading = tuple[float, list[float]]


def readings(rows: Sequence[Sequence[Any]], name: str, skip: int, label: str = "") -> list[Reading]:
    """The numbers in each line that was read from the file ``name``, after ``skip`` words."""
    samples = []
    for at, kind, line in rows:
        words = str(line).split()
        if kind == name and (not label or words[0] == label):
            numbers = []
            for word in words[skip:]:
                if not word.isdecimal():
                    break
                numbers.append(float(word))
            samples.append((float(at), numbers))
    return samples


def was_reset(readings: Sequence[Reading]) -> bool:
    """Whether a counter has decreased, or the number of counters has changed."""
    return any(
        len(now) != len(earlier) or any(map(lt, now, earlier))
        for (_, earlier), (_, now) in pairwise(readings)
    )


def begin_ms(frame: Frame) -> float:
    """The begin of a frame of iopstui, in ms of the wall clock."""
    return float(frame["wall_ms"] - 1000 * frame["seconds"])


def growth(
    readings: Sequence[Reading], field: int, begin: float, end: float
) -> tuple[float, float]:
    """The least and the most by which a counter can have grown between two instants (ms of the wall
    clock)."""

    def before(at: float) -> float:
        return max((row[field] for t, row in readings if t <= at), default=readings[0][1][field])

    def after(at: float) -> float:
        return min((row[field] for t, row in readings if t >= at), default=readings[-1][1][field])

    return (max(0.0, before(end - SLACK_MS) - after(begin + SLACK_MS)),
            after(end + SLACK_MS) - before(begin - SLACK_MS))  # fmt: skip


def round_down(value: float) -> float:
    """A lower bound that allows for rounding."""
    return max(0.0, value * (1 - ROUNDING) - 1)


def round_up(value: float) -> float:
    """An upper bound that allows for rounding."""
    return value * (1 + ROUNDING) + 1
