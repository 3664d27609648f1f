"""Judge the probe's counts against /proc/diskstats, and iopstui's figures against iostat's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from iopstui.features.selftest.bundle import FAIL, Check, check_within, unchecked
from iopstui.features.selftest.evidence import Evidence
from iopstui.features.selftest.judge_kernel import (
    Reading,
    begin_ms,
    growth,
    readings,
    round_down,
    round_up,
    was_reset,
)

NS_PER_MS = 1e6
SECOND_MS, LATE_MS = 1000.0, 100.0
MAX_QUEUE_RATIO = 64
"""The device takes at least this fraction (1 / N) of the time until a request completes."""
WRONG_LATENCIES = "the probe would show wrong latencies of the device"
SECTOR_BYTES = 512
FLUSHES, FLUSHED_TOGETHER = 15, 8
"""The field of /proc/diskstats, and how many programs' flushes the device gets as one: each counts
there as a write without sectors, which the probe leaves out."""
ROUNDING_ERROR = 0.005
"""iostat prints two decimals."""
COUNTERS_RESET = "the counters began again meanwhile"
COLUMNS = {"r/s", "rkB/s", "r_await", "w/s", "wkB/s", "w_await"}
_NUMBER = re.compile(r"\d+(\.\d+)?")
Frame = dict[str, Any]


def judge_probe(evidence: Evidence) -> Iterator[Check]:
    """Requests that it has counted, and their time in the device."""
    frames = evidence.probe_frames
    if "probe" in evidence.missing or not frames:
        yield unchecked("probe", evidence.missing.get("probe", "it has shown nothing of this disk"))
        return
    stats = readings(evidence.probe_counters, "diskstats", 3)
    if not stats or was_reset([(at, row[:8]) for at, row in stats]):
        yield unchecked("probe", COUNTERS_RESET)
        return
    begin, end = _begin(frames[0]), _end(frames[-1])
    # requests that the probe itself reports as missed
    unseen = max((frame["missed"] or 0.0) / 100 for frame in frames)
    skipped = sum((frame["skipped"] or 0) + (frame["lost"] or 0) for frame in frames)
    knows_flushes = all(len(row) > FLUSHES for _, row in stats)
    empty = FLUSHED_TOGETHER * growth(stats, FLUSHES, begin, end)[1] if knows_flushes else 0.0
    for key, field in (("read", 0), ("write", 4)):
        ios = sum(frame[key]["ios"] for frame in frames)
        low, high = growth(stats, field, begin, end)
        left_out = skipped + (empty if key == "write" else 0.0)
        yield check_within(
            f"probe: {key}s",
            max(0.0, round_down(low * (1 - unseen)) - left_out),
            round_up(high),
            ios,
            WRONG_LATENCIES,
        )
        if ios:
            spent = (
                sum((frame[key]["mean"] or 0.0) * frame[key]["ios"] for frame in frames) / NS_PER_MS
            )
            low, high = growth(stats, field + 3, begin, end)
            yield check_within(
                f"probe: ms of {key}s in the device",
                round_down(low / MAX_QUEUE_RATIO),
                round_up(high),
                spent,
                WRONG_LATENCIES,
            )
    full = sum(frame["full"] or 0 for frame in frames)
    if full:
        yield Check("probe: requests without room", "0", f"{full:,}", FAIL, WRONG_LATENCIES)


def _end(frame: Frame) -> float:
    return float(frame["wall_ms"] - 1000 * frame["age_s"])


def _begin(frame: Frame) -> float:
    return _end(frame) - 1000 * float(frame["seconds"])


def judge_iostat(evidence: Evidence) -> Iterator[Check]:
    """iopstui's sums of a whole run against iostat's of most of it, and what the kernel counted
    before and after those."""
    frames = [frame for frame in evidence.frames if frame["disk"] is not None and frame["seconds"]]
    stats = readings(evidence.counters, "diskstats", 3)
    if not frames or not stats or "device" in evidence.missing:
        return
    if was_reset([(at, row[:8] + row[9:]) for at, row in stats]):
        return
    span = begin_ms(frames[0]), float(frames[-1]["wall_ms"])
    reports = _reports_within(evidence.iostat, *span)
    if len(reports) < 2:
        yield unchecked("iostat", evidence.missing.get("iostat", "fewer than two of its seconds"))
        return
    # its rates are over its own seconds, which begin and end when it prints
    if any(abs(after - before - SECOND_MS) > LATE_MS for before, after, _ in reports):
        yield unchecked("iostat", "its reports came late: this machine is too busy")
        return
    for name, field, measured, reported, rounding in _sums(frames, reports):
        low, high = _growth_outside(stats, field, span, reports)
        yield check_within(
            f"iostat: {name}",
            round_down(reported + low) - rounding,
            round_up(reported + high) + rounding,
            measured,
            "iopstui and iostat would not show the same",
        )


def _reports_within(
    rows: Sequence[Sequence[Any]], begin: float, end: float
) -> list[tuple[float, float, dict[str, float]]]:
    """(begin, end, figures by iostat's own names) of its reports that lie in between."""
    head: list[str] = []
    last: float | None = None
    reports = []
    for at, kind, line in rows:
        cells = str(line).split()[1:]
        if kind == "head":
            head = cells
        elif len(cells) == len(head) and all(map(_NUMBER.fullmatch, cells)):
            if last is not None and begin <= last and at <= end:
                reports.append((last, float(at), dict(zip(head, map(float, cells), strict=True))))
            last = float(at)
    return [report for report in reports if report[2].keys() >= COLUMNS]


def _sums(
    frames: Sequence[Frame], reports: Sequence[tuple[float, float, dict[str, float]]]
) -> Iterator[tuple[str, int, float, float, float]]:
    """(name, field of /proc/diskstats behind the name, iopstui's sum, iostat's sum, what its
    rounding may change)."""
    rows = [(after - before, row) for before, after, row in reports]
    disks = [(frame["disk"], 1000 * frame["seconds"]) for frame in frames]
    for key, field, letter in (("reads", 0, "r"), ("writes", 4, "w")):
        rate, wait, kilobytes = f"{letter}/s", f"{letter}_await", f"{letter}kB/s"
        count = sum(row[rate] * ms for ms, row in rows) / 1000
        yield rate, field, sum(disk[key] for disk, _ in disks), count, len(rows)
        moved = sum(row[kilobytes] * ms for ms, row in rows) * 1024 / SECTOR_BYTES / 1000
        measured = sum(disk[f"{letter}MB/s"] * ms for disk, ms in disks) * 1024 * 1024 / 512 / 1000
        yield f"sectors of {letter}MB/s", field + 2, measured, moved, len(rows)
        waited = sum(row[wait] * row[rate] * ms for ms, row in rows) / 1000
        yield (
            wait, field + 3, sum((disk[wait] or 0.0) * disk[key] for disk, _ in disks), waited,
            ROUNDING_ERROR * count + 1,
        )  # fmt: skip
    for name, field, factor in (("aqu-sz", 10, 1.0), ("util", 9, 0.01)):
        column = next(
            (candidate for candidate in (name, f"%{name}", "avgqu-sz") if candidate in rows[0][1]),
            "",
        )
        if column:
            reported = sum(row[column] * factor * ms for ms, row in rows)
            measured = sum(disk[name] * factor * ms for disk, ms in disks)
            yield (
                f"ms of {name}",
                field,
                measured,
                reported,
                ROUNDING_ERROR * sum(ms for ms, _ in rows) + 20,
            )


def _growth_outside(
    stats: Sequence[Reading],
    field: int,
    span: tuple[float, float],
    reports: Sequence[tuple[float, float, dict[str, float]]],
) -> tuple[float, float]:
    """What the counter grew by, at least and at most, in iopstui's time outside of iostat's."""
    first, last = reports[0][0], reports[-1][1]
    ends = growth(stats, field, span[0], first), growth(stats, field, last, span[1])
    low, high = map(sum, zip(*ends, strict=True))
    # each edge of iostat's time is as uncertain as those of ours
    return float(low), float(high)
