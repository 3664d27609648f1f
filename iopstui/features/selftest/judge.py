"""Judge the evidence of a self-test. The first checks compare iopstui's figures of fio with fio's
per-I/O log. Nothing is read from this machine here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.features.selftest.evidence import (
    FAIL,
    OK,
    Check,
    Evidence,
    check_equal,
    check_within,
    read_bundle,
    unchecked,
)
from iopstui.features.selftest.judge_kernel import (
    Reading,
    begin_ms,
    growth,
    judge_kernel,
    readings,
    round_down,
    round_up,
    was_reset,
)
from iopstui.fio.stream.framing import Document, Framer
from iopstui.fio.stream.status import parse_status
from iopstui.model import histogram
from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.interval_time import is_repetition
from iopstui.model.fio.jobfile import effective_sections
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.samples import FioStatus, RawSample

INTERVAL_S = 1.0
MEAN_ERROR = 1e-4
REPEAT_WINDOW_MS = 300
MIN_SAMPLES = {50.0: 20, 99.0: 1000}
"""A percentile is only compared if there are at least this many I/Os."""
WRONG_COUNTS = "IOPS and bandwidth would be wrong"
WRONG_LATENCIES = "latencies would be wrong"


def judge_fio(evidence: Evidence) -> Iterator[Check]:
    """Check I/Os, bytes, mean, percentiles and maximum."""
    intervals = _intervals(evidence)
    if not intervals or not evidence.log:
        yield unchecked("fio: I/Os", "fio wrote no intervals or no log")
        return
    yield check_equal(
        "fio: I/Os",
        len(evidence.log),
        sum(interval.total.ios for interval in intervals),
        WRONG_COUNTS,
    )
    moved = sum(size for _, _, size in evidence.log)
    yield check_equal(
        "fio: bytes", moved, sum(interval.total.bytes for interval in intervals), WRONG_COUNTS
    )
    values = sorted(value for _, value, _ in evidence.log)
    mean = sum(values) / len(values)
    parts = [interval.total for interval in intervals if interval.total.clat_ns is not None]
    count = sum(part.ios for part in parts)
    joined = sum((part.clat_ns or 0.0) * part.ios for part in parts) / count if count else 0.0
    yield check_within(
        "fio: mean latency, ns",
        mean * (1 - MEAN_ERROR),
        mean * (1 + MEAN_ERROR),
        joined,
        WRONG_LATENCIES,
    )
    yield from _percentiles(values, histogram.merge(interval.total.bins for interval in intervals))
    highest = max((interval.total.max_ns or 0 for interval in intervals), default=0)
    yield check_equal("fio: slowest I/O, ns", values[-1], highest, WRONG_LATENCIES)


def _percentiles(values: list[int], bins: histogram.Bins) -> Iterator[Check]:
    reported = histogram.percentiles(bins, MIN_SAMPLES)
    for share, least in MIN_SAMPLES.items():
        if len(values) < least:
            continue
        rank = max(1, math.ceil(round(share / 100 * len(values), 6)))
        # allow the next value, too: fio computes the rank in floating point, slightly above a whole
        # number
        exact = values[rank - 1 : rank + 1]
        error = histogram.MAX_RELATIVE_ERROR
        yield check_within(
            f"fio: p{share:g}, ns",
            min(exact) * (1 - error),
            max(exact) * (1 + error),
            float(reported[share]),
            WRONG_LATENCIES,
        )


def _intervals(evidence: Evidence) -> list[FioInterval]:
    framer, statuses = Framer(), list[FioStatus]()
    sections = effective_sections(evidence.job)
    for item in (*framer.feed(evidence.stream.encode()), *framer.close()):
        status = parse_status(item.data, sections) if isinstance(item, Document) else None
        if status is None:
            continue
        # skip the last document if fio has written it twice
        is_soon_after = (
            statuses and status.timestamp_ms - statuses[-1].timestamp_ms < REPEAT_WINDOW_MS
        )
        if is_soon_after and is_repetition(status, statuses[-1]):
            statuses.pop()
        statuses.append(status)
    builder = FrameBuilder()
    frames = [
        builder.feed(
            RawSample(number, status.timestamp_ms * 1_000_000, status.timestamp_ms, None, status,
                      number == len(statuses) - 1, 1, interval_s=INTERVAL_S)
        )
        for number, status in enumerate(statuses)
    ]  # fmt: skip
    return [frame.fio for frame in frames if frame.fio is not None]


CLOCK_MS = 50.0
OWN_SHARE = 10.0
"""Limit for iopstui's own CPU use, in percent of all CPUs together."""
LATENCY_ERROR = 0.3
"""By this share, a measured latency may exceed the known one, because timers, interrupts and fio
itself take time."""
MAX_CPU = 1 << 16
_QUEUE_OF = (re.compile(r"virtio\d+-req\.(\d+)"), re.compile(r"nvme\d+q(\d+)"))


def judge_bundle(path: Path) -> tuple[list[Check], Evidence]:
    """The checks of a bundle, and its evidence. Raises UsageError if the bundle is damaged."""
    evidence = read_bundle(path)
    try:
        return judge(evidence), evidence
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is damaged: its figures are not those of a self-test.") from error


def judge(evidence: Evidence) -> list[Check]:
    """All checks, in the order of the table."""
    return [
        *judge_fio(evidence), *judge_kernel(evidence), *judge_iostat(evidence), *_queues(evidence),
        *judge_probe(evidence), *_latency(evidence), *_fence(evidence), *_restore(evidence),
        *_clock(evidence), *_cost(evidence),
    ]  # fmt: skip


def _queues(evidence: Evidence) -> Iterator[Check]:
    if "queues" in evidence.missing:
        yield unchecked("queue map", evidence.missing["queues"])
        return
    text = {queue: _cpus(cpu_text) for queue, cpu_text in evidence.queue_text.items()}
    yield check_equal("queue map: CPUs of each queue", _map_text(text),
                      _map_text({queue: set(cpus) for queue, cpus in evidence.queues.items()}),
                      "the queue map would be wrong")  # fmt: skip
    expected: dict[str, int] = {}
    for irq, name in evidence.vector_names.items():
        for offset, pattern in enumerate(_QUEUE_OF):
            match = pattern.fullmatch(name)
            if match is not None and int(match[1]) - offset >= 0:
                expected[irq] = int(match[1]) - offset
    reported = {
        str(vector["irq"]): vector["hctx"]
        for vector in evidence.vectors
        if str(vector["irq"]) in expected
    }
    if expected:
        yield check_equal(
            "queue map: queue of each interrupt",
            _pairs_text(expected),
            _pairs_text(reported),
            "interrupts would be shown at the wrong queue",
        )
    else:
        yield unchecked("queue map: queue of each interrupt", "their names do not say it")
    affinity = {irq: _cpus(cpu_text) for irq, cpu_text in evidence.affinity.items()}
    if affinity:
        shown = {str(vector["irq"]): set(vector["cpus"]) for vector in evidence.vectors
                 if str(vector["irq"]) in affinity}  # fmt: skip
        yield check_equal("queue map: CPU of each interrupt", _map_text(affinity), _map_text(shown),
                          "interrupts would be shown on the wrong CPU")  # fmt: skip


def _latency(evidence: Evidence) -> Iterator[Check]:
    if not evidence.known_latency:
        yield unchecked("known latency", evidence.missing.get("latency", "not measured"))
        return
    expected = evidence.known_latency["expected_ns"]
    for key, name in (("clat_ns", "fio"), ("await_ns", "device")):
        measured = evidence.known_latency.get(key)
        if measured is None:
            yield Check(f"known latency: {name}, ns", f"{expected:,}", "–", FAIL,
                        "nothing was measured")  # fmt: skip
        else:
            yield check_within(
                f"known latency: {name}, ns",
                float(expected),
                expected * (1 + LATENCY_ERROR),
                measured,
                "latencies would be wrong, or this machine's timers are",
            )


def _fence(evidence: Evidence) -> Iterator[Check]:
    if not evidence.fence:
        yield unchecked("fence", evidence.missing.get("fence", "not tried"))
        return
    yield check_equal(
        "fence: write where it is allowed",
        "done",
        "done" if evidence.fence["inside"] else "refused",
        "jobs that write fail",
    )
    yield check_equal("fence: write outside", "refused",
                      "done" if evidence.fence["outside"] else "refused",
                      "a job could overwrite other files")  # fmt: skip


def _restore(evidence: Evidence) -> Iterator[Check]:
    if not evidence.restore:
        yield unchecked("tunables", evidence.missing.get("restore", "not tried"))
        return
    yield check_equal(
        "tunables: changed for a run",
        evidence.restore["wanted"],
        evidence.restore["during"],
        "--knob has no effect",
    )
    yield check_equal(
        "tunables: restored after it",
        evidence.restore["before"],
        evidence.restore["after"],
        "a setting stays changed",
    )


def _clock(evidence: Evidence) -> Iterator[Check]:
    if len(evidence.frames) < 2:
        yield unchecked("clock", "fewer than two seconds were measured")
        return
    first = evidence.frames[0]
    error_ms = max(abs(frame["wall_ms"] - first["wall_ms"] - 1000 * (frame["t"] - first["t"]))
                   for frame in evidence.frames)  # fmt: skip
    yield check_within("clock: wall against monotonic, ms", 0.0, CLOCK_MS, error_ms,
                       "the clock was set meanwhile, or seconds have the wrong length")  # fmt: skip


def _cost(evidence: Evidence) -> Iterator[Check]:
    loads = [frame["own_cpu"] for frame in evidence.frames[1:] if frame["own_cpu"] is not None]
    if not loads:
        yield unchecked("own CPU use", "not measured")
        return
    share = sum(loads) / len(loads) / max(1, len(evidence.frames[0]["cpus"]))
    verdict = OK if share <= OWN_SHARE else FAIL
    yield Check("own CPU use, of all CPUs", f"at most {OWN_SHARE:g} %", f"{share:.2f} %", verdict,
                "iopstui disturbs what it measures")  # fmt: skip


def _cpus(text: str) -> set[int]:
    """The CPUs in a list such as "0-2, 5", as in sysfs."""
    numbers: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            # check the numbers, because a bundle may come from anybody
            if int(last or first) > MAX_CPU:
                raise ValueError(f"no machine has CPU {last or first}")
            numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def _map_text(cpus: dict[str, set[int]]) -> str:
    return "; ".join(f"{key}: {','.join(map(str, sorted(cpus[key])))}"
                     for key in sorted(cpus, key=int))  # fmt: skip


def _pairs_text(queues: dict[str, int]) -> str:
    return ", ".join(f"{irq}→{queues[irq]}" for irq in sorted(queues, key=int))


# Judge the probe's counts by /proc/diskstats, and iopstui's figures by those of iostat.


NS_PER_MS = 1e6
SECOND_MS, LATE_MS = 1000.0, 100.0
MAX_QUEUE_RATIO = 64
"""At least 1 / N of the time until a request's completion must be spent in the device."""
WRONG_PROBE_LATENCIES = "the probe would show wrong latencies of the device"
SECTOR_BYTES = 512
FLUSHES, FLUSHED_TOGETHER = 15, 8
"""The field of /proc/diskstats for flushes, and how many programs' flushes may reach the device as
one. /proc/diskstats also counts each program's flush as a write without sectors, which the probe
leaves out."""
ROUNDING_ERROR = 0.005
"""The rounding error of iostat, which prints two decimals."""
COUNTERS_RESET = "the counters began again meanwhile"
COLUMNS = {"r/s", "rkB/s", "r_await", "w/s", "wkB/s", "w_await"}
_NUMBER = re.compile(r"\d+(\.\d+)?")
Frame = dict[str, Any]


def judge_probe(evidence: Evidence) -> Iterator[Check]:
    """Check the number of requests that the probe counted, and their time in the device."""
    frames = evidence.probe_frames
    if "probe" in evidence.missing or not frames:
        yield unchecked("probe", evidence.missing.get("probe", "it counted nothing on this disk"))
        return
    stats = readings(evidence.probe_counters, "diskstats", 3)
    if not stats or was_reset([(at, row[:8]) for at, row in stats]):
        yield unchecked("probe", COUNTERS_RESET)
        return
    begin, end = _begin(frames[0]), _end(frames[-1])
    # the share of requests that the probe itself says it has missed
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
            WRONG_PROBE_LATENCIES,
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
                WRONG_PROBE_LATENCIES,
            )
    full = sum(frame["full"] or 0 for frame in frames)
    if full:
        yield Check("probe: requests without room", "0", f"{full:,}", FAIL, WRONG_PROBE_LATENCIES)


def _end(frame: Frame) -> float:
    return float(frame["wall_ms"] - 1000 * frame["age_s"])


def _begin(frame: Frame) -> float:
    return _end(frame) - 1000 * float(frame["seconds"])


def judge_iostat(evidence: Evidence) -> Iterator[Check]:
    """Compare iopstui's sums over a whole run with iostat's sums over most of it, plus what the
    kernel counted before and after that."""
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
    # iostat's rates are over its own seconds, whose ends are known only by when it prints
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
    """The begin, the end and the figures (by iostat's names) of each report of iostat between
    ``begin`` and ``end``."""
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
    """Tuples: a name, the index of its field in /proc/diskstats, iopstui's sum, iostat's sum, and
    the error by iostat's rounding."""
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
    """By how much the counter grew, at least and at most, in the part of iopstui's time that
    iostat's time does not cover."""
    first, last = reports[0][0], reports[-1][1]
    ends = growth(stats, field, span[0], first), growth(stats, field, last, span[1])
    low, high = map(sum, zip(*ends, strict=True))
    # no allowance of its own: both ends of iostat's time are as uncertain as those of iopstui's
    return float(low), float(high)
