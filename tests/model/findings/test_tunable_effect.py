from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import device, disk, fio, frame
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.findings.tunable_effect import (
    TunableChange,
    frames_around,
    moved_share,
    tunable_effect,
)
from iopstui.model.metrics.frame import RAMP, Frame

CHANGE = TunableChange(10.0, "vda", "rq_affinity", "1", "2")
COUNTS = st.dictionaries(st.integers(0, 7), st.floats(0, 1e6), max_size=8)


def some(iops: list[float], start: float = 1.0, **same: object) -> list[Frame]:
    return [
        frame(start + n, fio(x), disks={"vda": disk(x)}, **same)  # type: ignore[arg-type]
        for n, x in enumerate(iops)
    ]


def text(before: list[Frame], after: list[Frame], change: TunableChange = CHANGE) -> str:
    found = tunable_effect(change, [*before, *after], [device()])
    assert found is not None
    return found.text


def test_softirqs_that_went_to_the_submitters() -> None:
    before = some([10_000, 10_500, 9_500], block={3: 10_000.0}, ipi={0: 20.0})
    after = some([9_900, 10_400, 10_100], 20.0, block=dict.fromkeys(range(4), 2_500.0),
                 ipi=dict.fromkeys(range(4), 2_400.0))  # fmt: skip
    said = text(before, after)
    assert said.startswith("rq_affinity 1 → 2 on vda: 75 % of the BLOCK softirqs moved")
    assert "from CPU 3 (100 %) to CPU 0, 1, 2, 3 (25 % each), 10.0k → 10.0k/s" in said
    assert "function-call interrupts 20.0 → 9.60k/s" in said
    assert "IOPS 10.0k (9.50k-10.5k) → 10.1k (9.90k-10.4k): no change beyond their spread" in said


def test_work_that_moved_and_iops_that_fell() -> None:
    before = some([172_000, 165_000, 176_000], block={1: 1e5}, ipi={0: 23_000.0})
    after = some([124_000, 119_000, 126_000], 20.0, block={0: 1e5}, ipi={0: 133_000.0})
    assert "fell by 28 %, more than they varied before" in text(before, after)


def test_completions_that_began_to_raise_softirqs() -> None:
    said = text(some([9_000] * 3, block={}), some([9_000] * 3, 20.0, block={0: 4e3, 1: 4e3}))
    assert "BLOCK softirqs began on CPU 0, 1 (50 % each), 8.00k/s" in said
    back = text(some([9_000] * 3, block={0: 4e3}), some([9_000] * 3, 20.0, block={}))
    assert "BLOCK softirqs ended (were 4.00k/s on CPU 0 (100 %))" in back


def test_each_of_a_few_cpus_is_named_with_its_share() -> None:
    said = text(some([90_000] * 3, block={0: 2.9e4, 1: 7.1e4}),
                some([90_000] * 3, 20.0, block={0: 8e4, 1: 2e4}))  # fmt: skip
    assert "51 % of the BLOCK softirqs moved, from CPU 1 71 %, CPU 0 29 % to CPU 0 80 %" in said
    spread = {n: 1e3 + n * 10 for n in range(8)}
    many = text(some([90_000] * 3, block={7: 9e4}, cpus=8),
                some([90_000] * 3, 20.0, block=spread, cpus=8))  # fmt: skip
    assert "to CPU 0, 1, 2, 3, 4, 5 ... (8 CPUs) (12-13 % each)" in many


def test_softirqs_of_other_disks_are_not_told_as_this_one_s() -> None:
    """3,000/s of them at 1,000 I/Os/s: most are another disk's."""
    before = some([1_000] * 3, block={3: 3_000.0})
    said = text(before, some([1_000] * 3, 20.0, block={0: 3_000.0}))
    assert "most BLOCK softirqs are other disks'" in said and "moved" not in said
    said = text(some([1_000] * 3, block={3: 1_000.0}), some([1_000] * 3, 20.0, block={0: 1e3}))
    assert "100 % of the BLOCK softirqs moved" in said


def test_nothing_moved_is_said_as_such() -> None:
    same = {"block": {0: 4e3, 1: 4e3}}
    assert "BLOCK softirqs stayed on CPU 0, 1" in text(
        some([9_000] * 3, **same), some([9_000] * 3, 20.0, **same)
    )
    none = text(some([9_000] * 3, block={}), some([9_000] * 3, 20.0, block={}))
    assert "no BLOCK softirqs before or after" in none


def test_function_calls_that_were_not_read_are_not_zero() -> None:
    said = text(some([9_000] * 3, block={0: 4e3}), some([9_000] * 3, 20.0, block={1: 4e3}))
    assert "function-call" not in said


def test_function_calls_read_over_the_change_are_left_out() -> None:
    frames = some([9_000] * 4, block={0: 4e3}) + some([9_000] * 4, 20.0, block={0: 4e3})
    for place, rate in ((0, 7.0), (3, 100.0), (5, 9_999.0), (7, 500.0)):
        old = frames[place]
        frames[place] = frame(old.t, old.fio, block={0: 4e3}, ipi={0: rate})
    assert "function-call interrupts 100 → 500/s" in text(frames[:4], frames[4:])


def test_function_calls_that_were_counted_before_their_frame() -> None:
    """On a machine with many CPUs these calls come with the next sample, so those of the last
    second before the change may be in a frame after it."""
    frames = some([9_000] * 3, block={0: 4e3}) + some([9_000] * 4, 20.0, block={0: 4e3})
    for place, rate, age in ((0, 7.0, 0.9), (2, 100.0, 0.9), (3, 9_999.0, 11.0),
                             (4, 300.0, 0.9), (6, 500.0, 0.9)):  # fmt: skip
        old = frames[place]
        new = frame(old.t, old.fio, block={0: 4e3}, ipi={0: rate})
        frames[place] = replace(new, ipi_age_s=age)
    # 9,999 was counted before the change, 300 over it
    assert "function-call interrupts 7.77k → 500/s" in text(frames[:3], frames[3:])


def test_an_interrupt_that_was_sent_elsewhere() -> None:
    change = TunableChange(10.0, "sdb", "irq/52", "0-3", "3")
    said = text(some([9_000] * 3, irqs={52: {1: 4e3}}),
                some([9_000] * 3, 20.0, irqs={52: {3: 4e3}}), change)  # fmt: skip
    assert "100 % of the interrupt 52 moved, from CPU 1 (100 %) to CPU 3 (100 %)" in said


@pytest.mark.parametrize(
    ("name", "words"),
    [("nomerges", "merges 0 → 0/s"), ("max_sectors_kb", "requests 4 KiB → 4 KiB"),
     ("nr_requests", "the device's I/Os 9.00k → 8.00k/s")],
)  # fmt: skip
def test_other_knobs_have_their_own_figure(name: str, words: str) -> None:
    change = TunableChange(10.0, "vda", name, "1", "2")
    assert words in text(some([9_000] * 3), some([8_000] * 3, 20.0), change)
    assert "not measured" in text(
        [frame(float(n), fio(9_000)) for n in range(3)],
        [frame(20.0 + n, fio(9_000)) for n in range(3)],
        change,
    )


def test_too_few_seconds_say_nothing() -> None:
    enough, few = some([9_000] * 3), some([9_000] * 2, 20.0)
    assert tunable_effect(CHANGE, [*enough, *few], [device()]) is None
    assert (
        tunable_effect(CHANGE, [*some([9_000] * 2), *some([9_000] * 3, 20.0)], [device()]) is None
    )


def test_only_whole_seconds_on_their_own_side_are_used() -> None:
    frames = some([9_000] * 20, 1.5)
    frames[2] = frame(3.5, fio(9_000), flags=frozenset({RAMP}))
    before, after = frames_around(frames, CHANGE)
    assert [f.t for f in before] == [5.5, 6.5, 7.5, 8.5, 9.5]
    # the frame at 10.5 began before the change
    assert [f.t for f in after] == [11.5, 12.5, 13.5, 14.5, 15.5]
    assert [f.t for f in frames_around(frames, CHANGE, since=7.0)[0]] == [8.5, 9.5]


@given(COUNTS, COUNTS)
def test_a_share_that_moved_is_between_none_and_all(
    then: dict[int, float], now: dict[int, float]
) -> None:
    share = moved_share(then, now)
    assert 0 <= share <= 1
    assert share == pytest.approx(moved_share(now, then))
    assert moved_share(then, then) == pytest.approx(0)


@given(
    st.lists(st.floats(1, 1e6), min_size=3, max_size=5),
    st.lists(st.floats(1, 1e6), min_size=3, max_size=5),
    COUNTS,
    COUNTS,
)
def test_iops_are_only_said_to_change_beyond_their_spread(
    then: list[float], now: list[float], block_then: dict[int, float], block_now: dict[int, float]
) -> None:
    then, now = [float(round(x)) for x in then], [float(round(x)) for x in now]
    said = text(some(then, block=block_then, cpus=8), some(now, 50.0, block=block_now, cpus=8))
    apart = max(then) < min(now) or max(now) < min(then)
    assert ("no change beyond" in said) is not apart
    if apart:
        assert ("rose" in said) is (max(then) < min(now))
    assert "nan" not in said and "inf " not in said
