"""What slow requests have in common: found where it is so, and nothing is made up."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from lazy_scipy import stats
from slow_requests import exemplar

from iopstui.model.metrics.in_common import MAX_FALSE, in_common, tail
from iopstui.model.samples import Exemplar

SECOND = 10**9
CHANCE = Random(38)


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


def test_of_slow_requests_that_differ_in_nothing_hardly_anything_is_said() -> None:
    seconds = 300
    false = sum(bool(in_common(second(CHANCE))) for _ in range(seconds))
    assert false <= MAX_FALSE * seconds


def test_nor_where_most_requests_are_alike_anyway() -> None:
    seconds, false = 200, 0
    for _ in range(seconds):
        made = [replace(one, pid=70, cpu=0 if CHANCE.random() < 0.8 else 1, cpu_done=0)
                for one in second(CHANCE)]  # fmt: skip
        false += bool(in_common(made))
    assert false <= MAX_FALSE * seconds


def claims(**of_slow: object) -> list[str]:
    return [one.words for one in in_common(second(Random(7), **of_slow))]


def test_what_they_share_is_said() -> None:
    assert claims(cpu_done=9) == ["completed on CPU 9"]
    assert claims(pid=99, comm="backup") == ["were sent by backup (99)"]
    assert claims(group="/system.slice/a") == ["are of the cgroup /system.slice/a"]
    assert claims(hctx=7) == ["went through hardware queue 7"]
    assert claims(size=1 << 20) == ["are of 1 MiB"]
    assert claims(disk="vdb") == ["are on vdb"]
    assert claims(ended_ns=SECOND + 5) == ["completed within the same 10 ms"]


def test_of_two_properties_of_the_same_requests_one_is_said() -> None:
    assert claims(cpu_done=9, hctx=7, cpu=9) == ["were sent on CPU 9"]


def test_a_region_of_the_disk_is_named() -> None:
    chance = Random(7)
    # the disk is 128 GiB; the slow ones lie between 40 and 41
    made = [
        replace(one, offset=(40 << 30) + chance.randrange(1 << 30)) if one.slow else one
        for one in second(chance)
    ]
    [found] = in_common(made)
    assert found.words.startswith("lie at ") and "GiB of vda" in found.words
    assert (found.slow_with, found.slow) == (10, 10)
    assert found.text.startswith("10 of the 10 slowest reads lie at ")
    assert "by chance: 1 in " in found.text


def test_requests_beside_a_flush_are_told_from_others() -> None:
    flush = exemplar(400_000_000, SECOND + 500_000_000, kind="flush", sector=None, offset=None)
    made = second(Random(3))
    beside = [
        replace(one, completed_ns=flush.completed_ns - 20_000_000 * n, allocated_ns=None,
                inserted_ns=None, issued_ns=flush.completed_ns - 20_000_000 * n - 1_000_000)
        if one.slow else replace(one, completed_ns=flush.completed_ns + SECOND // 4 + 9 * n,
                                 issued_ns=flush.completed_ns + SECOND // 4,
                                 allocated_ns=None, inserted_ns=None)
        for n, one in enumerate(made)
    ]  # fmt: skip
    assert "were in flight together with a flush" in [
        one.words for one in in_common([*beside, flush])
    ]


def test_without_others_to_compare_with_nothing_is_said() -> None:
    slow = [one for one in second(CHANCE, cpu=3) if one.slow]
    assert in_common(slow) == [] and in_common([]) == []


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_chances_are_those_of_the_hypergeometric_distribution(
    drawn: int, others: int, data: st.DataObject
) -> None:
    of = drawn + others
    with_it = data.draw(st.integers(0, of))
    least = data.draw(st.integers(max(0, drawn + with_it - of), min(with_it, drawn)))
    expected = float(stats.hypergeom.sf(least - 1, of, with_it, drawn))
    assert abs(tail(least, with_it, drawn, of) - expected) < 1e-9
