"""Single requests: their way through the kernel, and their times."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from slow_requests import exemplar, reads
from test_probe_figures import EMPTY
from watch_frames import frame

from iopstui.model.metrics.probe import ProbeInterval, ProbeIntervals
from iopstui.model.metrics.slow.slow_requests import (
    COMPARED_COUNT,
    SlowestTotal,
    completion_second,
    slowest,
    stages_text,
)
from iopstui.output.jsonl import frame_object

PROBE = ProbeInterval(1.0, 0.0, (), {}, {}, (), None, None, 0, 0, 0, None, None)


def test_the_parts_of_its_way_add_up() -> None:
    one = exemplar(total_ns=5_000_000)
    assert (one.plugged_ns, one.queued_ns, one.device_ns) == (1000, 10_000, 4_989_000)
    assert one.total_ns == 5_000_000
    at_once = replace(one, inserted_ns=None)
    assert (at_once.plugged_ns, at_once.queued_ns) == (None, 11_000)
    unknown = replace(at_once, allocated_ns=None)
    assert (unknown.queued_ns, unknown.total_ns) == (None, unknown.device_ns)


def test_it_has_a_second_of_the_session() -> None:
    kept = (exemplar(9_000, ended_ns=1_250_000_000), exemplar(8_000, slow=False, sampled=True))
    intervals = ProbeIntervals()
    assert intervals.feed(replace(EMPTY, time_ns=10**9, arrived_ns=10**9), 10**9) is None
    read = replace(EMPTY, time_ns=2 * 10**9, arrived_ns=2 * 10**9, exemplars=kept)
    # the frame ends half a second after the reading
    probe = intervals.feed(read, 2_500_000_000)
    assert probe is not None
    of = replace(frame(7.5, {}), probe=probe)
    assert abs(completion_second(kept[0], probe, of.t) - 6.25) < 1e-9
    rows = frame_object(of)["device"]["slowest"]
    assert [(row["t"], row["total"], row["slow"], row["sampled"]) for row in rows] == [
        (6.25, 9000, True, False), (6.0, 8000, False, True),
    ]  # fmt: skip
    assert rows[0]["plugged"] + rows[0]["queued"] + rows[0]["device"] == rows[0]["total"]


def test_a_sample_of_many_seconds_is_random_and_the_same_in_parts() -> None:
    chance = Random(38)
    of = [
        replace(frame(float(n + 1), {}), probe=replace(PROBE, disks=reads(500), read_ns=10**9 * n,
                                              exemplars=tuple(
            exemplar(1000 * n, chance.randrange(10**9 * n, 10**9 * (n + 1)), slow=one < 3,
                     sampled=one > 1, pid=n)
            for one in range(12)
        )))
        for n in range(400)
    ]  # fmt: skip
    whole, parts = SlowestTotal(), [SlowestTotal() for _ in range(3)]
    for place, one in enumerate(of):
        whole.add(one)
        parts[place // 150].add(one)
    parts[0].join(parts[1])
    parts[0].join(parts[2])
    compared = whole.selection()
    assert parts[0].selection() == compared
    slow = [one for one in compared if one.slow]
    assert [one.pid for one in slow] == [399 - n // 3 for n in range(COMPARED_COUNT)]
    sample = [one for one in compared if not one.slow]
    assert all(one.sampled for one in sample) and len(sample) > COMPARED_COUNT - 5
    # every second has the same chance to be in the sample
    assert 5 < sum(one.pid < 100 for one in sample) < 22
    assert 5 < sum(one.pid >= 300 for one in sample) < 22


def test_the_slowest_of_many() -> None:
    many = [exemplar(1000 * n) for n in (3, 9, 1, 7)]
    assert [one.total_ns for one in slowest(many, 2)] == [9000, 7000]


def test_what_was_sent_back_was_tried_before() -> None:
    one = exemplar(4 * 10**9, 10**10, inserted_ns=None, requeued_ns=8 * 10**9,
                   issued_ns=10**10 - 10**6)  # fmt: skip
    assert stages_text(one) == "2.00 s tried before, 2.00 s queued, 1.00 ms device"
