"""A capture is cut into phases where the workload changes, and only there."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from iopstui.features.capture.model.phases import MAX_PHASES, Phases, are_alike, join
from iopstui.features.capture.model.workload import (
    MAX_PROCESSES,
    MAX_REGIONS,
    MAX_SIZES,
    OTHER_PROCESSES,
    Arrivals,
    Stream,
    Workload,
)

READS = Stream("db", "read", 60.0, 60_000, 60_000 * 4096, 3000, sizes={4096: 60_000},
               depths={4: 60_000}, regions={1: 30_000, 9: 30_000},
               arrivals=Arrivals(600))  # fmt: skip
BACKUP = Stream("tar", "read", 60.0, 12_000, 12_000 << 18, 11_900, sizes={1 << 18: 12_000},
                depths={1: 12_000}, regions={3: 12_000}, arrivals=Arrivals(600))  # fmt: skip


def span(*streams: Stream) -> Workload:
    reads = [one for one in streams if one.kind == "read"]
    totals = {one.kind: replace(one, process="") for one in streams}
    if len(reads) > 1:
        totals["read"] = replace(_both(*reads), process="")
    return Workload("vda", 60.0, streams, totals)


def _both(one: Stream, other: Stream) -> Stream:
    return replace(
        one, ios=one.ios + other.ios, bytes=one.bytes + other.bytes,
        sequential=one.sequential + other.sequential, sizes={**one.sizes, **other.sizes},
    )  # fmt: skip


def noisy(stream: Stream, chance: Random) -> Stream:
    ios = round(stream.ios * chance.uniform(0.8, 1.25))
    size = next(iter(stream.sizes))
    return replace(stream, ios=ios, bytes=ios * size, sizes={size: ios}, depths={2: ios},
                   sequential=round(stream.sequential * ios / stream.ios))  # fmt: skip


def test_what_only_varies_stays_one_phase() -> None:
    chance, found = Random(37), Phases()
    for _ in range(60):
        found.add(span(noisy(READS, chance)))
    (phase,) = found.all
    assert (phase.start_s, phase.end_s) == (0.0, 3600.0)


def test_day_backup_and_night_are_three() -> None:
    chance, found = Random(37), Phases()
    day = [span(noisy(READS, chance)) for _ in range(10)]
    backup = [span(noisy(READS, chance), noisy(BACKUP, chance)) for _ in range(3)]
    night = [Workload("vda", 60.0, (), {}) for _ in range(5)]
    for one in (*day, *backup, *night):
        found.add(one)
    assert [(phase.start_s, phase.end_s) for phase in found.all] == [
        (0.0, 600.0), (600.0, 780.0), (780.0, 1080.0)
    ]  # fmt: skip
    assert [len(phase.workload.streams) for phase in found.all] == [1, 2, 0]
    assert found.combined.ios == sum(one.ios for one in (*day, *backup))
    assert found.combined.seconds == 1080.0


def test_a_little_of_something_else_is_no_phase() -> None:
    few = replace(READS, kind="write", ios=600, bytes=600 * 4096, sizes={4096: 600})
    more = replace(few, ios=2400, sizes={65536: 2400})
    assert are_alike(span(READS, few), span(READS, more))
    assert not are_alike(span(READS, few), span(READS, replace(few, ios=30_000)))
    idle = Workload("vda", 60.0, (), {})
    assert are_alike(idle, idle) and not are_alike(idle, span(READS))


def test_of_too_many_the_shortest_are_joined() -> None:
    found = Phases()
    spans = [span(replace(READS, ios=4**n, sizes={4096: 4**n})) for n in range(MAX_PHASES + 3)]
    for one in spans:
        found.add(one)
    assert len(found.all) == MAX_PHASES
    assert found.all[0].start_s == 0.0 and found.all[-1].end_s == 60.0 * len(spans)
    assert found.combined.ios == sum(one.ios for one in spans)
    with pytest.raises(ValueError, match="no workloads"):
        join([])


def test_joined_spans_stay_within_the_bounds_of_one() -> None:
    """A capture of a day has a hundred spans, each with processes, sizes and regions of its own."""
    spans = [
        span(*(
            replace(READS, process=f"{name}{n}", ios=100,
                    regions={1000 * n + at: 1 for at in range(100)},
                    sizes={512 * (50 * n + at + 1): 2 for at in range(50)})
            for name in ("db", "log")
        ))
        for n in range(100)
    ]  # fmt: skip
    whole = join(spans)
    assert len(whole.processes) == MAX_PROCESSES + 1 and OTHER_PROCESSES in whole.processes
    assert sum(one.ios for one in whole.streams) == sum(one.ios for w in spans for one in w.streams)
    for one in (*whole.streams, *whole.totals.values()):
        assert one.seconds == whole.seconds == 6000.0
        assert len(one.regions) <= MAX_REGIONS and len(one.sizes) < MAX_SIZES + 200
    others = whole.streams_of(OTHER_PROCESSES)["read"]
    # 200 processes less the 48 that are kept apart
    assert sum(others.sizes.values()) == 152 * 100 and sum(others.regions.values()) == 152 * 100


def test_idle_spans_count_as_time_without_arrivals() -> None:
    busy = span(replace(READS, arrivals=Arrivals(600, 6_060_000, 120, 6000, 1)))
    whole = join([busy, Workload("vda", 60.0, (), {})])
    for one in (*whole.streams, *whole.totals.values()):
        assert (one.arrivals.windows, one.seconds) == (1200, 120.0)
