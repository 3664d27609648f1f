"""Another machine's clock: the truth is within offset ± error, however long messages take."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iopstui.features.fleet.hosts.conversation import MAX_DRIFT, ClockOffset, start_spread

WAYS = st.tuples(st.integers(0, 10**7), st.integers(0, 10**7))
MS, SECOND = 10**6, 10**9
WALL_MS = 1_800_000_000_000.0


def test_starts_are_as_far_apart_as_the_first_and_the_last_can_be_together() -> None:
    assert start_spread([(5.0, 0.1), (6.5, 211.0), (5.5, 2.0)]) == (1.5, 213.0)


class Far:
    """A machine whose clock is ``ahead`` of ours (ns) at our 0 and runs by ``drift`` faster.
    Messages there and back take any time."""

    def __init__(self, ahead: int, drift: float = 0.0) -> None:
        self.ahead = ahead
        self.drift = drift
        self.set_ns = 0
        self.offset = ClockOffset()

    def is_ahead(self, now_ns: int) -> float:
        return self.ahead + self.set_ns + self.drift * now_ns

    def ask(self, sent_ns: int, there: int, back: int, wall_ms: float = 0.0) -> int:
        number = self.offset.make_ping()["id"]
        self.offset.pending[number] = (sent_ns, WALL_MS + sent_ns / 1e6)
        read_ns = sent_ns + there
        row = {"id": number, "mono_ns": read_ns + round(self.is_ahead(read_ns)),
               "wall_ms": WALL_MS + read_ns / 1e6 + wall_ms}  # fmt: skip
        assert self.offset.take_answer(row, read_ns + back)
        return read_ns + back

    def wrong_by(self, now_ns: int) -> float:
        return abs(self.offset.mono_ns - self.is_ahead(now_ns))


@given(st.lists(WAYS, min_size=1, max_size=9), st.integers(-(10**15), 10**15))
@example([(0, 3993), (0, 4000)], 0)
def test_the_offset_is_within_its_error(ways: list[tuple[int, int]], ahead: int) -> None:
    far, now_ns = Far(ahead), 0
    for there, back in ways:
        now_ns = far.ask(now_ns, there, back)
        assert far.wrong_by(now_ns) <= far.offset.error_ns
    # the error is that of the fastest answer, plus the largest drift since then
    best = min((there + back + 1) // 2 for there, back in ways)
    assert best <= far.offset.error_at(now_ns) <= best + MAX_DRIFT * now_ns + 1
    assert far.offset.answers == len(ways)


@given(
    st.lists(st.tuples(WAYS, st.integers(0, 3600 * SECOND)), min_size=1, max_size=9),
    st.integers(-(10**15), 10**15),
    st.floats(-MAX_DRIFT, MAX_DRIFT),
    st.integers(0, 3600 * SECOND),
)
def test_a_clock_that_drifts_stays_within_it(
    asked: list[tuple[tuple[int, int], int]], ahead: int, drift: float, later_ns: int
) -> None:  # fmt: skip
    far, now_ns = Far(ahead, drift), 0
    for (there, back), pause in asked:
        now_ns = far.ask(now_ns + pause, there, back)
        # one nanosecond for each rounding
        assert far.wrong_by(now_ns) <= far.offset.error_at(now_ns) + 3
    then_ns = now_ns + later_ns
    assert far.wrong_by(then_ns) <= far.offset.error_at(then_ns) + 3


def test_what_was_known_long_ago_is_not_what_is_known_now() -> None:
    far = Far(5 * SECOND, 100e-6)
    far.ask(0, 20_000, 30_000)
    # ten minutes of laying out files, with a ping each second over a link that is slower meanwhile
    now_ns = 0
    for second in range(1, 601):
        now_ns = far.ask(second * SECOND, 300_000, 200_000)
    assert far.wrong_by(now_ns) < MS
    assert far.offset.error_at(now_ns) < MS


@given(WAYS, WAYS, st.sampled_from([-1, 1]), st.integers(21 * MS, 10**15))
def test_a_clock_that_jumps_is_seen_with_the_next_answer(
    first: tuple[int, int], second: tuple[int, int], sign: int, jump: int
) -> None:
    far = Far(SECOND)
    now_ns = far.ask(0, *first)
    far.set_ns = sign * jump
    now_ns = far.ask(now_ns, *second)
    assert far.wrong_by(now_ns) <= far.offset.error_ns


@pytest.mark.parametrize("by_ms", [-3_600_000.0, 25.0, 3_600_000.0])
def test_a_wall_clock_that_is_set_is_seen_though_the_other_one_is_not(by_ms: float) -> None:
    far = Far(0)
    now_ns = far.ask(0, 10_000, 10_000)
    assert far.offset.wall_ms == pytest.approx(0, abs=0.01)
    far.ask(now_ns + SECOND, 9 * MS, 9 * MS, by_ms)
    assert far.offset.wall_ms == pytest.approx(by_ms, abs=9)
    assert abs(far.offset.mono_ns) <= far.offset.error_ns


@pytest.mark.parametrize("row", [{}, {"id": 9, "mono_ns": 1, "wall_ms": 1.0}, {"id": 1},
                                 {"id": 1, "mono_ns": "x", "wall_ms": 1.0},
                                 {"id": 1, "mono_ns": 1, "wall_ms": None}])  # fmt: skip
def test_an_answer_to_nothing_is_none(row: dict[str, object]) -> None:
    offset = ClockOffset()
    offset.make_ping()
    assert not offset.take_answer(row, time.monotonic_ns())
    assert offset.answers == 0
