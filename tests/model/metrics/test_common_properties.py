"""Properties that slow requests share: found where they are real, and none invented."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy_scipy import stats
from slow_requests import exemplar, reads
from slow_seconds import Cause, bursts, independent, kept
from watch_frames import frame

from iopstui.model.metrics.probe import ProbeInterval
from iopstui.model.metrics.slow.common_properties import MAX_FALSE_SHARE, common_properties, tail
from iopstui.model.metrics.slow.slow_requests import SlowestTotal
from iopstui.model.samples import Exemplar

SECOND = 10**9
CHANCE = Random(38)
PROBE = ProbeInterval(1.0, 0.0, (), {}, {}, (), None, None, 0, 0, 0, None, None)


def some(chance: Random, slow: bool, ended_ns: int | None = None, **more: object) -> Exemplar:
    """A request of any of three processes and four CPUs, anywhere on the disk."""
    sector = 8 * chance.randrange(1 << 24)
    group = chance.choice(("/a", "/b"))
    made = exemplar(
        chance.randrange(20_000_000, 30_000_000) if slow else chance.randrange(100_000, 300_000),
        ended_ns if ended_ns is not None else SECOND + chance.randrange(SECOND),
        slow=slow, sampled=not slow, sector=sector, offset=sector << 9,
        pid=chance.choice((70, 71, 72)), group=group, cpu=chance.randrange(4),
        cpu_done=chance.randrange(4), hctx=chance.randrange(2),
        size=chance.choice((4096, 8192, 65536)), flags=chance.choice(("R", "RS")),
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def second(chance: Random, **of_slow: object) -> list[Exemplar]:
    return [
        *(some(chance, True, **of_slow) for _ in range(10)),
        *(some(chance, False) for _ in range(10)),
    ]


def test_where_most_requests_are_alike_anyway_nothing_is_said() -> None:
    seconds, false = 200, 0
    for _ in range(seconds):
        made = [replace(one, pid=70, cpu=0 if CHANCE.random() < 0.8 else 1, cpu_done=0)
                for one in second(CHANCE)]  # fmt: skip
        false += bool(common_properties(made))
    assert false <= MAX_FALSE_SHARE * seconds


def claims(**of_slow: object) -> list[str]:
    return [one.words for one in common_properties(second(Random(7), **of_slow))]


def test_slow_requests_of_one_event_are_one_observation() -> None:
    """They share a process and a CPU, too, but nothing shows that it made them slow."""
    made = second(Random(7), ended_ns=SECOND + 5, pid=99, cpu=9)
    [found] = common_properties(made)
    assert (found.words, found.events, found.chance) == ("completed within the same 10 ms", 1, None)
    assert found.text.endswith(": one event, as if the disk or its CPU had paused")


@pytest.mark.parametrize(
    ("slow_ms", "usual_ms", "said"), [(19, 0.2, False), (21, 2.2, False), (21, 2, True)]
)
def test_a_short_or_usual_delay_is_no_pause(slow_ms: int, usual_ms: float, said: bool) -> None:
    """A quiet machine has delays of 3 ms in every second, a full queue of large requests 300 ms."""
    made = [exemplar(slow_ms * 10**6, SECOND + n, slow=True) for n in range(10)]
    made += [exemplar(int(usual_ms * 10**6), SECOND + n * SECOND // 10, slow=False, sampled=True)
             for n in range(1, 11)]  # fmt: skip
    assert bool(common_properties(made)) is said


@pytest.mark.parametrize("make", [bursts, independent])
def test_seconds_without_a_cause_are_silent(make: Callable[[Random], list[Exemplar]]) -> None:
    chance, seconds = Random(38), 100
    made = [common_properties(kept(make(chance), chance)) for _ in range(seconds)]
    false = sum(any(one.chance is not None for one in claims) for claims in made)
    assert false <= MAX_FALSE_SHARE * seconds


def test_of_two_properties_of_the_same_requests_one_is_said() -> None:
    assert claims(cpu_done=9, hctx=7, cpu=9) == ["were sent on CPU 9"]


def test_requests_beside_a_flush_are_told_from_others() -> None:
    flush = exemplar(400_000_000, SECOND + 500_000_000, kind="flush", sector=None, offset=None)
    made = second(Random(3))
    beside = [
        replace(one, completed_ns=flush.completed_ns - 20_000_000 * n, allocated_ns=None,
                inserted_ns=None, issued_ns=flush.completed_ns - 20_000_000 * n - 1_000_000)
        if one.slow else replace(one, completed_ns=flush.completed_ns + 25_000_000 * n + 9,
                                 issued_ns=flush.completed_ns + 25_000_000 * n,
                                 allocated_ns=None, inserted_ns=None)
        for n, one in enumerate(made)
    ]  # fmt: skip
    assert "were in flight together with a flush" in [
        one.words for one in common_properties([*beside, flush])
    ]


def test_over_many_seconds_a_region_is_certain_and_nothing_is_invented() -> None:
    chance = Random(38)
    quiet, slow = SlowestTotal(), SlowestTotal()
    for second in range(20):
        add(quiet, second, independent(chance), chance)
        add(slow, second, independent(chance), chance, _region)
    assert common_properties(quiet.selection()) == []
    [found] = common_properties(slow.selection())
    assert found.words.startswith("lie at 4") and found.slow_with >= 40
    assert found.text.endswith("separate events, by chance: less than 1 in 1,000,000)")


def test_phases_with_other_rates_and_processes_are_no_cause() -> None:
    """The busier phase has more of the slowest requests, and more of the random ones."""
    chance = Random(38)
    for _ in range(5):
        total = SlowestTotal()
        for second in range(20):
            pid, count = (90, 40) if second < 10 else (91, 1000)
            requests = [replace(one, pid=pid) for one in independent(chance, count)]
            add(total, second, requests, chance)
        assert common_properties(total.selection()) == []


def add(
    total: SlowestTotal, second: int, requests: list[Exemplar], chance: Random,
    cause: Cause | None = None,
) -> None:  # fmt: skip
    """Add these requests, completed in second ``second`` of the run."""
    later = second * SECOND
    moved = tuple(
        replace(one, completed_ns=one.completed_ns + later, issued_ns=one.issued_ns + later,
                allocated_ns=one.began_ns + later, inserted_ns=None)
        for one in kept(requests, chance, cause)
    )  # fmt: skip
    probe = replace(PROBE, exemplars=moved, disks=reads(len(requests)))
    total.add(replace(frame(second + 1.0, {}), probe=probe))


def _region(one: Exemplar) -> int:
    return 3_000_000 if 40 << 30 <= (one.offset or 0) < 48 << 30 else 0


def test_without_others_to_compare_with_nothing_is_said() -> None:
    slow = [one for one in second(CHANCE, cpu=3) if one.slow]
    assert common_properties(slow) == [] and common_properties([]) == []


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_chances_are_those_of_the_hypergeometric_distribution(
    drawn: int, others: int, data: st.DataObject
) -> None:
    of = drawn + others
    with_it = data.draw(st.integers(0, of))
    least = data.draw(st.integers(max(0, drawn + with_it - of), min(with_it, drawn)))
    expected = float(stats.hypergeom.sf(least - 1, of, with_it, drawn))
    assert abs(tail(least, with_it, drawn, of) - expected) < 1e-9


def stacked(chance: Random, cause: Cause | None = None) -> list[Exemplar]:
    """I/Os of dm-0 with a request each on one of its two paths."""
    made = []
    for one in independent(chance):
        path = replace(one, disk=chance.choice(("sda", "sdb")), level=1)
        later = cause(path) if cause is not None else 0
        path = replace(path, completed_ns=path.completed_ns + later)
        above = replace(one, disk="dm-0", completed_ns=path.completed_ns + 2000)
        made += [path, above]
    return kept(made, chance)


def test_an_i_o_is_not_compared_with_its_own_request_below() -> None:
    chance, total = Random(38), SlowestTotal()
    for n in range(12):
        of = replace(PROBE, disks=reads(500), exemplars=tuple(stacked(chance)),
                     read_ns=2 * SECOND)  # fmt: skip
        total.add(replace(frame(n + 1.0, {}), probe=of))
        assert common_properties(of.exemplars) == []
    assert common_properties(total.selection()) == []


def test_a_slow_path_is_found_in_the_seconds_of_a_run() -> None:
    chance, total = Random(38), SlowestTotal()
    for n in range(12):
        slow = stacked(chance, lambda one: 5_000_000 if one.disk == "sdb" else 0)
        of = replace(PROBE, disks=reads(500), exemplars=tuple(slow), read_ns=2 * SECOND)
        total.add(replace(frame(n + 1.0, {}), probe=of))
    [found] = common_properties(total.selection())
    assert found.words == "are on sdb" and found.disks == "sda, sdb" and found.slow_with == 50
    assert found.text.startswith("50 of the 50 slowest reads of sda, sdb are on sdb, of ")
    # the whole list has the slowest of each level
    assert {one.disk for _, one in total.slowest_of("read")} == {"dm-0"} and len(total.all()) == 20


def test_a_process_and_its_cgroup_are_said_together() -> None:
    assert claims(pid=80, group="/tenant") == [
        "were sent by fio (80) and are of the cgroup /tenant"
    ]


def later(one: Exemplar, ns: int) -> Exemplar:
    assert one.allocated_ns and one.inserted_ns
    return replace(
        one, allocated_ns=one.allocated_ns + ns, inserted_ns=one.inserted_ns + ns,
        issued_ns=one.issued_ns + ns, completed_ns=one.completed_ns + ns,
    )  # fmt: skip


def test_requests_beside_flushes_are_found_in_the_seconds_of_a_run() -> None:
    chance, total = Random(38), SlowestTotal()
    flush = exemplar(20_000_000, SECOND, kind="flush", sector=None, offset=None, size=0)
    for n in range(10):
        flushes = [later(flush, n * SECOND + k * 200_000_000) for k in range(5)]
        spans = [(one.began_ns, one.completed_ns) for one in flushes]

        def waits(one: Exemplar, spans: Sequence[tuple[int, int]] = spans) -> int:
            return 5_000_000 * any(begin < one.completed_ns <= end for begin, end in spans)

        some = kept([later(one, (n - 1) * SECOND) for one in independent(chance)], chance, waits)
        of = replace(PROBE, disks=reads(500), exemplars=(*some, *flushes),
                     read_ns=(n + 1) * SECOND)  # fmt: skip
        total.add(replace(frame(n + 1.0, {}), probe=of))
    found = [one.words for one in common_properties(total.selection()) if one.kind == "read"]
    assert found == ["were in flight together with a flush"]
