"""Counts by CPU kept as text, compared with a reader that parses each word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.counters.interrupts import (
    SHORT_NUMBER_CHARS,
    PerCpuCount,
    next_per_cpu_count,
    parse_per_cpu_count,
)

WIDE = 192


def text_of(row: list[int]) -> bytes:
    return ",".join(map(str, row)).encode() + b"\n"


def differences(now: PerCpuCount, before: PerCpuCount) -> dict[int, int]:
    """The differences, word by word."""
    then = parse_per_cpu_count(before.text, before.cpus) or {}
    counts = parse_per_cpu_count(now.text, now.cpus) or {}
    return {cpu: n - then[cpu] for cpu, n in counts.items() if n != then[cpu]}


@pytest.mark.parametrize(
    ("data", "possible", "counts"),
    [
        (b"3,0,17\n", [0, 1, 2], {0: 3, 1: 0, 2: 17}),
        (b"3,0\n", [], {0: 3, 1: 0}),
        (b"3,0\n", [0, 4], {0: 3, 4: 0}),
        (b"3,0\n", [0, 1, 2], None),
        (b"3,0,17", [0, 1, 2], None),
        (b"", [0], None),
        (b"x\n", [0], None),
        (b"3,\n", [0, 1], None),
        (b",3\n", [0, 1], None),
        (b"3,,0\n", [0, 1, 2], None),
        (b"3,0\n7", [0, 1], None),
        (b"3,0\n77", [0, 1], None),
        (b"\n", [0], None),
    ],
)
def test_per_cpu_count(data: bytes, possible: list[int], counts: dict[int, int] | None) -> None:
    assert parse_per_cpu_count(data, possible) == counts
    found = next_per_cpu_count(data, possible, None)
    assert (None if found is None else found.counts()) == counts


WORD = st.text("0123456789", min_size=1, max_size=4)
ODD = st.sampled_from(["", " ", "\n", ",", "x", "-", "_", ",,", "\n7", "9" * 4301, "\x0b"])


@given(st.lists(WORD, max_size=6), st.integers(0, 30), ODD, st.integers(0, 7), st.booleans())
def test_a_text_is_one_if_each_word_of_it_is(
    words: list[str], at: int, odd: str, cpus: int, end: bool
) -> None:
    text = ",".join(words) + "\n" * end
    data = (text[:at] + odd + text[at:]).encode()
    for possible in ([], list(range(cpus))):
        found = next_per_cpu_count(data, possible, None)
        counts = parse_per_cpu_count(data, possible)
        assert (None if found is None else found.counts()) == counts
        assert found is None or list(found.cpus) == list(counts or ())


@given(st.binary(max_size=60), st.integers(0, 5))
def test_no_bytes_make_it_fail(data: bytes, cpus: int) -> None:
    found = next_per_cpu_count(data, range(cpus), None)
    assert (None if found is None else found.counts()) == parse_per_cpu_count(data, range(cpus))


@pytest.mark.parametrize(
    "digits", [SHORT_NUMBER_CHARS - 1, 2 * SHORT_NUMBER_CHARS, 4300, 4301, 9000]
)
@pytest.mark.parametrize("place", [0, 3, 700])
def test_a_number_that_python_does_not_read_is_none(digits: int, place: int) -> None:
    words = [b"1234567"] * 701
    words[place] = b"7" * digits
    data = b",".join(words) + b"\n"
    found = next_per_cpu_count(data, [], None)
    assert (None if found is None else found.counts()) == parse_per_cpu_count(data, [])
    assert (found is None) == (digits > 4300)


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 1 << 33), min_size=5, max_size=5), st.booleans()),
        min_size=1,
    )
)
def test_counts_that_are_read_one_after_the_other(rows: list[tuple[list[int], bool]]) -> None:
    """Whichever of them are parsed, in any order."""
    cpus = [0, 1, 2, 5, 7]
    found: list[PerCpuCount] = []
    for row, look in rows:
        one = next_per_cpu_count(text_of(row), cpus, found[-1] if found else None)
        assert one is not None
        assert not look or one.counts() == dict(zip(cpus, row, strict=True))
        found.append(one)
    for one, (row, _) in zip(found[::-1], rows[::-1], strict=True):
        assert one.counts() == dict(zip(cpus, row, strict=True))


# numbers that keep their number of digits, and numbers that may not
VALUE = st.integers(10**6, 10**7 - 1) | st.integers(0, 1 << 33)
CHANGES = st.lists(
    st.dictionaries(st.integers(0, 100), VALUE, min_size=1, max_size=5) | st.just({}),
    min_size=1, max_size=6,
)  # fmt: skip


@given(CHANGES, st.integers(1, WIDE), st.booleans())
def test_what_changed_on_a_wide_machine(
    rows: list[dict[int, int]], width: int, again: bool
) -> None:
    """From each reading to the next, and back; also with the same columns again."""
    cpus = list(range(0, 2 * width, 2))
    row = [10**6 + cpu for cpu in cpus]
    found: list[PerCpuCount] = []
    for changed in [one for one in rows for _ in range(1 + again)]:
        for column, count in changed.items():
            row[column * width // 101] = count + len(found)
        one = next_per_cpu_count(text_of(row), cpus, found[-1] if found else None)
        assert one is not None
        for before in found[-2:]:
            for _ in range(2):
                assert one.increase_since(before) == differences(one, before)
            assert before.increase_since(one) == differences(before, one)
        found.append(one)
    assert found[-1].counts() == dict(zip(cpus, row, strict=True))
    assert list(found[-1].counts()) == cpus


@pytest.mark.parametrize(
    ("before", "now"),
    [(b"10,5\n", b"1,50\n"), (b"1,2,30\n", b"1,20,3\n"), (b"07,1\n", b"7,01\n"),
     (b"7,007\n", b"7,7\n"), (b" 7,1\n", b"7,1 \n"), (b"1,1\n", b"2,1 ")],
)  # fmt: skip
def test_columns_that_moved_in_a_text_of_one_length(before: bytes, now: bytes) -> None:
    for wide in (b"", b"5," * WIDE):
        first = next_per_cpu_count(wide + before, [], None)
        second = next_per_cpu_count(wide + now, [], first)
        if first is None or second is None:
            assert None in (parse_per_cpu_count(wide + one, []) for one in (before, now))
        else:
            assert second.increase_since(first) == differences(second, first)


@pytest.mark.parametrize(
    "torn", [b" 111,22\n", b"111,222", b"1111,22\n", b"111 222\n", b"111,2x2\n", b"1,1,222\n"]
)
def test_a_text_as_long_as_before_is_read_as_if_it_were_the_first(torn: bytes) -> None:
    first = next_per_cpu_count(b"111,222\n", [0, 1], None)
    found = next_per_cpu_count(torn, [0, 1], first)
    assert (None if found is None else found.counts()) == parse_per_cpu_count(torn, [0, 1])


def test_counts_before_are_not_touched() -> None:
    first = next_per_cpu_count(b"1,2\n", [0, 1], None)
    assert first is not None
    counts = first.counts()
    second = next_per_cpu_count(b"1,3\n", [0, 1], first)
    assert second is not None
    assert (second.counts(), counts, first.counts()) == ({0: 1, 1: 3}, {0: 1, 1: 2}, {0: 1, 1: 2})
    assert next_per_cpu_count(b"1,3\n", [0, 1], second) is second


def test_readings_of_other_cpus_can_not_be_compared() -> None:
    first = next_per_cpu_count(b"1,2\n", [0, 1], None)
    second = next_per_cpu_count(b"1,3\n", [0, 2], first)
    assert first is not None and second is not None
    assert second.increase_since(first) is None and second.increase_since({0: 1}) is None
    assert second.counts() == {0: 1, 2: 3}
    third = next_per_cpu_count(b"1,3\n", [0, 1], second)
    assert third is not None and third.counts() == {0: 1, 1: 3}


@pytest.mark.parametrize("data", [b"", b"1\n", b"1,x\n", b"1,-2\n", b"1,2,3\n", b"1,1_0\n"])
def test_malformed_counts_after_valid_ones_give_none(data: bytes) -> None:
    before = next_per_cpu_count(b"1,2\n", [0, 1], None)
    assert next_per_cpu_count(data, [0, 1], before) is None
