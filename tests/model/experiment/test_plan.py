"""Plans: axes and variants as typed, and the steps they expand to."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iopstui.errors import UsageError
from iopstui.model.experiment.plan import (
    Plan,
    check_axes,
    check_variants,
    expand_plan,
    parse_axis,
    parse_variant,
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("iodepth=1,2,4..256", "1 2 4 8 16 32 64 128 256"),
        ("iodepth=1..8", "1 2 3 4 5 6 7 8"),
        ("iodepth=10,20,30..60", "10 20 30 40 50 60"),
        ("iodepth=10,20..100", "10 20 30 40 50 60 70 80 90 100"),
        ("iodepth=1,3..7", "1 3 5 7"),
        ("iodepth=3,9..81", None),
        ("iodepth=32,64..256", "32 64 128 256"),
        ("numjobs=2,4..8", "2 4 8"),
        ("bs=4k,8k..64k", "4k 8k 16k 32k 64k"),
        ("iodepth=1,2..8", None),
        ("iodepth=10,20..40", None),
        ("rate_iops=32,64..256", None),
        ("hosts=2,4..8", None),
        ("iodepth=1,10,100..10000", "1 10 100 1000 10000"),
        ("iodepth=1,2,4..16,24", "1 2 4 8 16 24"),
        ("numjobs= 1 , 4 ", "1 4"),
        ("bs=4k,8k,16k..1m", "4k 8k 16k 32k 64k 128k 256k 512k 1m"),
        ("bs=4k..7k", "4k 5k 6k 7k"),
        ("bs=512,1k,2k..8k", "512 1k 2k 4k 8k"),
        ("ioengine=libaio,io_uring", "libaio io_uring"),
        ("rq_affinity=0..2", "0 1 2"),
        ("scheduler=none,mq-deadline", "none mq-deadline"),
    ],
)
def test_lists(text: str, values: str | None) -> None:
    if values is None:
        with pytest.raises(UsageError, match="is ambiguous"):
            parse_axis(text)
    else:
        assert parse_axis(text).values == tuple(values.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("iodepth", "form"),
        ("=1,2", "form"),
        ("io depth=1", "form"),
        ("[x]=1", "form"),
        ("iodepth=", "no values"),
        ("iodepth=,", "empty value"),
        ("iodepth=1,,2", "empty value"),
        ("iodepth=banana", "takes a whole number of 1 or more"),
        ("iodepth=0", "takes a whole number of 1 or more"),
        ("iodepth=1..x", "not a number"),
        ("iodepth=..8", "not a number"),
        ("iodepth=8..1", "does not reach"),
        ("iodepth=1,2,4..100", "does not reach"),
        ("iodepth=1,2,5..9", "does not reach"),
        ("iodepth=1,2..8", "is ambiguous"),
        ("iodepth=1,1", "twice"),
        ("iodepth=1..100000", "at most"),
        ("runtime=1,2", "settle"),
        ("timeout=1,2", "settle"),
        ("time_based=0,1", "settle"),
        ("filename=a,b", "target"),
        ("directory=a,b", "target"),
        ("stonewall=0,1", "at once"),
        ("job=a,b", "not an axis"),
        ("rq_affinity=3", "takes"),
        ("nr_requests=1,2", "number of 4 or more"),
        ("nr_requests=many", "number of 4 or more"),
        ("wbt_lat_usec=-2", "number of -1 or more"),
        ("bind=cpus", "queues or none"),
    ],
)
def test_what_is_no_axis(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_axis(text)


@pytest.mark.parametrize(
    ("text", "adds", "multiplies"),
    [
        ("iodepth=1,2..8", "1,2,3..8", "1,2,4..8"),
        ("rate_iops=32,64..256,500", "32,64,96..256,500", "32,64,128..256,500"),
        ("iodepth=3,9..27", "3,9,15..27", "3,9,27"),
        ("iodepth=10,20..40", "10,20,30..40", "10,20,40"),
        ("bs=3k,6k..24k", "3k,6k,9k..24k", "3k,6k,12k..24k"),
        ("size=1g,2g..8g", "1g,2g,3g..8g", "1g,2g,4g..8g"),
    ],
)
def test_the_refusal_of_an_ambiguous_range_has_both_ways_to_write_it(
    text: str, adds: str, multiplies: str
) -> None:
    with pytest.raises(UsageError, match="is ambiguous") as refusal:
        parse_axis(text)
    name = text.partition("=")[0]
    assert f"{name}={adds} (adds " in refusal.value.hint
    assert f" or {name}={multiplies} (" in refusal.value.hint
    assert len(parse_axis(f"{name}={adds}").values) > len(parse_axis(f"{name}={multiplies}").values)


@given(
    st.sampled_from(["iodepth", "numjobs", "bs", "rate_iops"]),
    st.integers(1, 64), st.integers(1, 64), st.integers(1, 9), st.booleans(),
)  # fmt: skip
def test_a_range_that_can_be_read_in_one_way_is_read_so(
    name: str, first: int, step: int, more: int, counts: bool
) -> None:
    second = first + step
    if not counts and second % first:
        second = 3 * first
    step, ratio = second - first, second // first if second % first == 0 else 0
    adds = [first + n * step for n in range(more + 3)]
    times = [first * ratio**n for n in range(more + 3)] if ratio else []
    last = adds[-1] if counts else times[-1]
    is_other = (
        last in [first * ratio**n for n in range(20)] if counts else (last - first) % step == 0
    )
    assume(not (ratio and is_other))
    wanted = adds if counts else times
    assert parse_axis(f"{name}={first},{second}..{last}").values == tuple(map(str, wanted))


@given(st.text(max_size=40))
def test_any_text_is_an_axis_or_a_usage_error(text: str) -> None:
    try:
        axis = parse_axis(text)
    except UsageError:
        return
    assert axis.values and len(set(axis.values)) == len(axis.values)


@given(st.integers(1, 500), st.integers(2, 7), st.integers(1, 9), st.booleans())
def test_three_values_and_an_end_give_the_progression(
    first: int, step: int, more: int, doubles: bool
) -> None:
    def at(n: int) -> int:
        return first * step**n if doubles else first + n * step

    values = [at(n) for n in range(3 + more)]
    text = f"iodepth={values[0]},{values[1]},{values[2]}..{values[-1]}"
    assert parse_axis(text).values == tuple(map(str, values))


def test_axes_that_conflict() -> None:
    for first, second in (("iodepth=1", "iodepth=2"), ("bs=4k", "blocksize=8k"),
                          ("direct=0,1", "buffered=0,1")):  # fmt: skip
        with pytest.raises(UsageError, match="two axes"):
            check_axes([parse_axis(first), parse_axis(second)], {})
    with pytest.raises(UsageError, match="an option of every run"):
        check_axes([parse_axis("bs=4k,8k")], {"blocksize": "4k"})
    with pytest.raises(UsageError, match="at most"):
        check_axes([parse_axis("iodepth=1..1000"), parse_axis("numjobs=1..1000")], {})


def test_only_what_matters_makes_another_experiment() -> None:
    axes = (parse_axis("iodepth=1,2"),)
    plan = Plan(("a",), {}, axes)
    assert plan.key("text") == Plan(("a",), {}, (parse_axis("iodepth=1..2"),)).key("text")
    keys = {
        plan.key("text"), plan.key("other"), Plan(("b",), {}, axes).key("text"),
        Plan(("a",), {"bs": "4k"}, axes).key("text"),
        Plan(("a",), {}, axes, measure=9).key("text"),
        Plan(("a",), {}, (parse_axis("iodepth=1,3"),)).key("text"),
    }  # fmt: skip
    assert len(keys) == 6


@given(st.integers(2, 4), st.integers(1, 9))
def test_a_comparison_goes_forth_and_back(variants: int, repeats: int) -> None:
    chosen = tuple(parse_variant(f"iodepth={n + 1}") for n in range(variants))
    steps = list(expand_plan(Plan(("a",), {}, variants=chosen, repeats=repeats)))
    assert len(steps) == variants * repeats
    order = [step.variant for step in steps]
    for repeat in range(repeats):
        block = order[repeat * variants : (repeat + 1) * variants]
        assert sorted(block) == list(range(variants))
    if repeats >= 2:
        assert order[:variants] == order[variants : 2 * variants][::-1]
        places = [[i for i, v in enumerate(order[: 2 * variants]) if v == n]
                  for n in range(variants)]  # fmt: skip
        assert len({sum(place) for place in places}) == 1, "a straight drift meets all alike"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "form"),
        ("iodepth", "form"),
        ("iodepth=", "form"),
        ("=5", "form"),
        ("iodepth=1,iodepth=2", "twice"),
        ("bs=4k,blocksize=8k", "twice"),
        ("runtime=5", "settle"),
        ("rq_affinity=9", "takes"),
        ("iodepth=many", "takes a whole number of 1 or more"),
    ],
)
def test_what_is_no_variant(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_variant(text)


@given(st.text(max_size=40))
def test_any_text_is_a_variant_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_variant(text).label


def test_variants_that_conflict() -> None:
    one = parse_variant("iodepth=1")
    with pytest.raises(UsageError, match="two variants"):
        check_variants([one], {})
    with pytest.raises(UsageError, match="an option of every run"):
        check_variants([one, parse_variant("iodepth=2")], {"iodepth": "4"})


def test_each_repeat_has_its_own_order_and_a_seed_gives_it_again() -> None:
    variants = tuple(parse_variant(f"iodepth={n}") for n in (1, 2, 4))

    def orders(seed: int | None) -> list[tuple[int, ...]]:
        points = list(expand_plan(Plan(("j",), variants=variants, repeats=40, seed=seed)))
        assert [point.index for point in points] == list(range(120))
        return [tuple(p.variant for p in points if p.repeat == n) for n in range(40)]

    assert all(sorted(one) == [0, 1, 2] for one in orders(7))
    assert orders(7) == orders(7) != orders(8)
    assert len(set(orders(7))) == 6, "every order comes"
    assert orders(None)[:3] == [(0, 1, 2), (2, 1, 0), (0, 1, 2)], "as older recordings have it"


@given(st.integers(0, 10**9))
def test_either_variant_is_first_as_often(seed: int) -> None:
    variants = tuple(parse_variant(f"iodepth={n}") for n in (1, 2))
    points = list(expand_plan(Plan(("j",), variants=variants, repeats=400, seed=seed)))
    first = sum(points[2 * n].variant == 0 for n in range(400))
    assert 130 < first < 270  # seven standard deviations
