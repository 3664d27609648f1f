"""What replays of one host and of many share: items are shown at their times."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from iopstui.recording.player import Player

WAIT_S = 30.0


class Item(NamedTuple):
    t: float


class Toy(Player[Item, tuple[float, float]]):
    """Records each item's second, and the player's position then."""

    marks = ()
    lookback_s = 50.0
    longest_pause_s = 5.0

    def __init__(self, seconds: Sequence[float], speed: float = 1000.0) -> None:
        super().__init__(speed)
        self.seconds = seconds
        self.goals: list[float | None] = []
        self.shown: queue.SimpleQueue[tuple[float, float]] = queue.SimpleQueue()

    @property
    def end(self) -> float:
        return self.seconds[-1]

    def _items(self, goal: float | None) -> Iterator[Item]:
        self.goals.append(goal)
        yield from map(Item, self.seconds)

    def _show(self, item: Item) -> None:
        self._sink((item.t, self.at))

    def play(self, count: int) -> list[tuple[float, float]]:
        if self._thread is None:
            self.start(self.shown.put)
        return [self.shown.get(timeout=WAIT_S) for _ in range(count)]


def test_a_long_pause_of_the_recording_is_cut() -> None:
    toy = Toy([0.0, 1e6, 2e6])
    assert [t for t, _ in toy.play(3)] == [0.0, 1e6, 2e6]
    assert toy.at == toy.end
    toy.close()


def test_only_a_jump_back_or_far_ahead_begins_elsewhere() -> None:
    toy = Toy([float(second) for second in range(200)])
    toy.pause(True)
    assert toy.play(1) == [(0.0, 0.0)]
    toy.step()
    assert toy.play(1) == [(1.0, 1.0)]
    toy.seek_by(40)
    assert toy.play(40)[-1] == (41.0, 41.0) and toy.goals == [None]
    toy.seek(150)
    assert toy.play(151)[-1] == (150.0, 150.0) and toy.goals == [None, 150.0]
    toy.seek_by(-1)
    assert toy.play(150)[-1] == (149.0, 149.0) and toy.goals == [None, 150.0, 149.0]
    toy.close()
