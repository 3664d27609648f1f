"""Play a recording, of one host or of many, at any speed and from any second."""

from __future__ import annotations

import math
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from iopstui.errors import UsageError
from iopstui.format import clock
from iopstui.text import printable

SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
SLOWEST, FASTEST = 0.1, 1000.0
_CLOCK = re.compile(r"([0-9]{1,4}:){0,2}[0-9]{1,7}([.][0-9]{1,3})?")


class Timed(Protocol):
    """An item of a recording."""

    @property
    def t(self) -> float:
        """The item's time, in seconds of the recording."""


Item = TypeVar("Item", bound=Timed)
Event = TypeVar("Event")


class Player(ABC, Generic[Item, Event]):
    """Shows each item at its time, in a separate thread. Subclasses define the items (``_items``),
    how to show one (``_show``), and the length of the recording (``end``).

    ``on_failure`` is called in the thread with the exception that ends the replay."""

    lookback_s: float
    """After a jump, this many seconds before the goal are played at once, so that charts show what
    came before."""
    longest_pause_s = math.inf
    """Longer pauses in the recording are shortened to this (s)."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.paused = False
        self.on_failure: Callable[[Exception], None] = lambda error: None
        self._sink: Callable[[Event], None] = lambda event: None
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._goal: float | None = None
        self._stepping = False
        self._t = 0.0
        self._since = 0.0
        self._due = 0.0

    # -- the content

    @property
    @abstractmethod
    def end(self) -> float:
        """The recording's length in seconds."""

    @property
    @abstractmethod
    def marks(self) -> Sequence[tuple[float, str]]:
        """(second, text) of all marks, and of the starts of jobs without a mark."""

    @abstractmethod
    def _items(self, goal: float | None) -> Iterator[Item | None]:
        """The items after a jump to ``goal``, or from the beginning; a ``None`` means: wait for
        more."""

    @abstractmethod
    def _show(self, item: Item) -> None:
        """Send the item's events to ``_sink``."""

    def _ends_step(self, item: Item) -> bool:
        return True

    def _wait_for_more(self) -> float | None:
        """Wait for a recording to grow; return the goal of a jump as soon as one is requested."""
        return None

    def time_text(self, t: float) -> str:
        """A second of the recording, as text for people."""
        return clock(t)

    time_example = "1:30, 1:02:03, 90"

    def time_of(self, text: str) -> float:
        """The second of the recording that a user's text means. Raises UsageError if it is not a
        time, or not in the recording."""
        t = self._second_of(text.strip())
        if not 0.0 <= t < self.end + 1.0:
            raise UsageError(f"Nothing was recorded at {printable(text)}.",
                             f"{self.time_text(0.0)} to {self.time_text(self.end)}")  # fmt: skip
        return t

    def _second_of(self, text: str) -> float:
        if not _CLOCK.fullmatch(text):
            raise UsageError(f"{printable(text)!r} is not a time.", f"Like {self.time_example}")
        seconds = 0.0
        for part in text.split(":"):
            seconds = 60 * seconds + float(part)
        return seconds

    # -- requests of the screen

    @property
    def running(self) -> bool:
        """Always False: nothing runs in a replay."""
        return False

    @property
    def growing(self) -> bool:
        """Whether the recording is still being written (follow.py)."""
        return False

    @property
    def at(self) -> float:
        """The position, in seconds from the recording's beginning."""
        with self._condition:
            return self._shown_position()

    def start(self, sink: Callable[[Event], None]) -> None:
        """Start playing; every event goes to ``sink``."""
        self._sink = sink
        self._since = time.monotonic()
        self._thread = threading.Thread(target=self._main, name="replay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. Idempotent."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()

    def pause(self, paused: bool) -> None:
        """Pause or continue. At the end, continuing begins again, or follows a recording that is
        still being written."""
        with self._condition:
            self._move_to(self._shown_position())
            self.paused = paused
            if not paused and self._t >= self.end:
                self._goal = self.end if self.growing else 0.0
            self._condition.notify()

    def step(self) -> None:
        """Show the next item and pause there."""
        with self._condition:
            self._move_to(self._shown_position())
            self.paused = self._stepping = True
            self._condition.notify()

    def set_speed(self, speed: float) -> None:
        """Play this many seconds of the recording per second of time."""
        with self._condition:
            self._move_to(self._position())
            self.speed = min(FASTEST, max(SLOWEST, speed))
            self._condition.notify()

    def change_speed(self, up: bool) -> float:
        """Switch to the next speed of ``SPEEDS`` and return it."""
        others = [s for s in SPEEDS if (s > self.speed if up else s < self.speed)]
        if others:
            self.set_speed(others[0] if up else others[-1])
        return self.speed

    def seek(self, t: float) -> None:
        """Go to this second; a time outside the recording means its beginning or end."""
        with self._condition:
            self._goal = min(max(t, 0.0), self.end)
            self._condition.notify()

    def seek_by(self, seconds: float) -> None:
        """Go this many seconds forward (negative: back). The steps of keys pressed in a row add
        up."""
        with self._condition:
            self.seek((self._shown_position() if self._goal is None else self._goal) + seconds)

    # -- positions; call these with the lock held

    def _position(self) -> float:
        """The second up to which items may be shown by now."""
        if self.paused or self._thread is None:
            return self._t
        return self._t + (time.monotonic() - self._since) * self.speed

    def _shown_position(self) -> float:
        """The second up to which items are shown; at a high speed it may lag behind."""
        return min(max(self._t, min(self._position(), self._due)), self.end)

    def _move_to(self, t: float) -> None:
        self._t, self._since = t, time.monotonic()

    def _take_goal(self) -> float | None:
        goal, self._goal = self._goal, None
        if goal is not None:
            self._move_to(goal)
        return goal

    # -- the thread

    def _main(self) -> None:
        goal: float | None = None
        try:
            while not self._closing:
                goal = self._play(self._items(goal))
        except Exception as error:  # report the failure instead of losing it with the thread
            self.on_failure(error)

    def _play(self, items: Iterator[Item | None]) -> float | None:
        """Play until a jump is requested (return its goal) or until it is closed (``None``)."""
        shown_t = -1.0
        for item in items:
            while (goal := self._wait_for(item)) is not None:
                if not shown_t <= goal <= shown_t + self.lookback_s:
                    return goal
            if self._closing:
                return None
            if item is not None:
                shown_t = max(shown_t, item.t)
                self._show(item)
        while not self._closing:
            goal = self._wait_for_goal()
            if goal is not None and goal < self.end:
                return goal
        return None

    def _wait_for(self, item: Item | None) -> float | None:
        """Wait for this item's time. Returns a jump's goal as soon as one is requested."""
        if item is None:
            self._due = math.inf
            return self._wait_for_more()
        with self._condition:
            # the end is the last sample: do not wait for events after it
            self._due = due = min(item.t, self.end)
            while not self._closing:
                if self._goal is not None:
                    return self._take_goal()
                left_s = due - self._position()
                if left_s <= 0:
                    return None
                if self._stepping:
                    self._stepping = not self._ends_step(item)
                    self._t = due
                    return None
                if left_s > self.longest_pause_s and not self.paused:
                    left_s = self.longest_pause_s
                    self._move_to(due - left_s)
                self._condition.wait(None if self.paused else left_s / self.speed)
        return None

    def _wait_for_goal(self) -> float | None:
        with self._condition:
            self._due = math.inf
            while not self._closing and self._goal is None:
                self._condition.wait()
            return self._take_goal()
