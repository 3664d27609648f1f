"""A fleet beside a screen: its runs, one after another, in a thread of their own.

A run is a whole ``Fleet``: launched, started together, ended with nothing left behind. Changing
something means another run. What happens is told in one stream (told.py), from this thread.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_OK,
    EXIT_VERDICT,
    Interrupted,
    IopstuiError,
)
from iopstui.fleet import member as states
from iopstui.fleet.fleet import Fleet, Voices
from iopstui.fleet.member import Member
from iopstui.fleet.merger import Merger, Second
from iopstui.fleet.scene import CONNECTS, DONE, FAILED, LATE, LOST, OUT, READY, RUNS, STOPPED
from iopstui.fleet.told import Begun, Over, Row, Said, State, Told, host_second
from iopstui.records import dataclass
from iopstui.safety.crash import crash_sentence

Object = dict[str, Any]
STATES_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Planned:
    """A run that is about to begin: its fleet, what adds up, what is told of it; ``row`` is asked
    to keep each line of a host's, ``stop`` whether to end with this second, and ``judge`` for the
    exit code, what is said and what is printed in the end."""

    fleet: Callable[[Voices], Fleet]
    merger: Merger
    begun: Begun
    second: Callable[[Second], None]
    row: Callable[[str, Object], None]
    stop: Callable[[Second], str]
    judge: Callable[[Fleet], tuple[int, tuple[str, ...], tuple[str, ...]]]


Plan = Callable[[int, str, Mapping[str, str]], Planned]
"""Of a run's number, its job and its changed options. Raises IopstuiError."""


class FleetSession:
    """``run`` begins a run, after the one that goes on was stopped; ``start`` is called once.
    ``frames`` are the hosts' newest, of which only those of a host in detail are told."""

    live = True

    def __init__(self, plan: Plan, note: Callable[[Object], None] = lambda row: None) -> None:
        self._plan = plan
        self._note = note
        self._tell: Callable[[Told], None] = lambda told: None
        self._orders: queue.SimpleQueue[tuple[str, dict[str, str]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, name="fleet", daemon=True)
        self._fleet: Fleet | None = None
        self._number = 0
        self._next_look = 0.0
        self._closing = self._watching = False
        self.frames: dict[str, Object] = {}
        self._had: dict[str, tuple[str, str]] = {}
        self._detailed: set[str] = set()

    # -- from the screen

    def start(self, tell: Callable[[Told], None]) -> None:
        """``tell`` is called in the thread of the runs."""
        self._tell = tell
        self._thread.start()

    @property
    def running(self) -> bool:
        """From the beginning of a run until nothing of it is left."""
        return self._fleet is not None

    def run(self, job: str, options: Mapping[str, str]) -> None:
        """Run ``job`` ("": watch) with these options changed, after what runs has stopped."""
        # first: what begins by the order must not be stopped
        self.stop()
        self._orders.put((job, dict(options)))

    def stop(self) -> None:
        """Have all hosts stop; their last figures still come."""
        fleet = self._fleet
        if fleet is not None:
            fleet.interrupt()

    def mark(self, text: str) -> None:
        """Keep a mark in the recording."""
        self._note({"event": "mark", "text": text, "wall_ms": time.time() * 1000})

    def detail(self, name: str, wanted: bool) -> None:
        """Have this host send all of its figures, or only those of the totals again."""
        (self._detailed.add if wanted else self._detailed.discard)(name)
        fleet = self._fleet
        if fleet is not None:
            fleet.tell(name, {"op": "detail", "on": wanted})

    def close(self) -> None:
        """Stop what runs and wait until nothing is left of it."""
        self._closing = True
        self._orders.put(None)
        self.stop()
        if self._thread.is_alive():
            self._thread.join()

    def kill(self) -> None:
        """Don't wait for the hosts any more; they stop by themselves."""
        fleet = self._fleet
        if fleet is not None:
            fleet.kill()

    # -- in the thread

    def _main(self) -> None:
        while (order := self._orders.get()) is not None:
            if self._closing:
                return
            # of several that were asked for meanwhile the last one counts
            while not self._orders.empty():
                newer = self._orders.get()
                if newer is None:
                    return
                order = newer
            try:
                self._one(*order)
            except Exception as error:  # of a thread nobody would hear of it
                words = crash_sentence(error)
                self._tell(Over(FAILED, EXIT_JOB_FAILED, (words,), (words,)))

    def _one(self, job: str, options: dict[str, str]) -> None:
        self._number += 1
        try:
            planned = self._plan(self._number, job, options)
        except IopstuiError as error:
            self._tell(Over(FAILED, error.exit_code, (_words(error),), (_words(error),)))
            return
        planned.merger.on_slot = lambda name, slot, counted: self._tell(
            host_second(name, slot, counted)
        )
        voices = Voices(self.say, lambda s: self._second(planned, s),
                        lambda name, row: self._row(planned, name, row), planned.stop)  # fmt: skip
        self._had, self._watching = {}, planned.begun.watching
        fleet = self._fleet = planned.fleet(voices)
        fleet.on_turn = self._look
        self._tell(planned.begun)
        self._tell(self._ran(fleet, planned))

    def _ran(self, fleet: Fleet, planned: Planned) -> Over:
        try:
            fleet.run()
        except IopstuiError as error:
            self._states(fleet)
            how = STOPPED if isinstance(error, Interrupted) else FAILED
            return Over(how, error.exit_code, (_words(error),), (_words(error),))
        finally:
            self._fleet = None
        self._states(fleet)
        code, said, words = planned.judge(fleet)
        how = how_of(code)
        return Over(how, code, said, words, planned.merger.rated())

    def say(self, text: str) -> None:
        """Tell the screen a warning."""
        self._tell(Said("warning", text))

    def _second(self, planned: Planned, second: Second) -> None:
        planned.second(second)
        self._tell(second)

    def _row(self, planned: Planned, name: str, row: Object) -> None:
        planned.row(name, row)
        if row["event"] == "frame":
            # of a thousand hosts nobody looks at: what counts of it comes with its second
            self.frames[name] = row
            if name not in self._detailed:
                return
        self._tell(Row(name, row))
        if row["event"] == "session" and name in self._detailed:
            self.detail(name, True)

    def _look(self) -> None:
        now = time.monotonic()
        if self._fleet is not None and now >= self._next_look:
            self._next_look = now + STATES_EVERY_S
            self._states(self._fleet)

    def _states(self, fleet: Fleet) -> None:
        """Who is how far, where that has changed."""
        for name, one in fleet.members.items():
            now = (state_of(one, self._watching), one.error)
            if self._had.get(name) != now:
                self._had[name] = now
                self._tell(State(name, *now))


def state_of(member: Member, watching: bool) -> str:
    """How far a host is, as a screen says it."""
    if member.state == states.OVER:
        started = member.executed_ns is not None
        if member.lost:
            return LOST
        return (FAILED if started else OUT) if member.error else DONE
    if member.late:
        return LATE
    if member.state == states.STARTED:
        return RUNS
    ready = (states.ARMED, states.GREETED) if watching else (states.ARMED,)
    return READY if member.state in ready else CONNECTS


def how_of(code: int) -> str:
    """What a run's exit code says of it. A verdict that was missed is no failure of the run."""
    if code in (EXIT_OK, EXIT_VERDICT):
        return DONE
    return STOPPED if code == EXIT_INTERRUPTED else FAILED


def _words(error: IopstuiError) -> str:
    return f"{error.message} {error.hint}".strip()
