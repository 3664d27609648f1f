"""Standard output closed by its reader: who has read enough is left alone, but not deceived."""

from __future__ import annotations

import queue
from typing import cast

import pytest

from iopstui.cli.runs.to_the_end import to_the_end
from iopstui.cli.terminal import answering
from iopstui.errors import EXIT_INTERRUPTED, Interrupted
from iopstui.events import Event, Notice, StepFinished
from iopstui.output.sinks import EventSink
from iopstui.session.live import LiveSession


class Session:
    """What could not be put back is known when it is closed."""

    def __init__(self, events: queue.SimpleQueue[Event]) -> None:
        self._events = events
        self.closed = 0

    def close(self) -> None:
        self.closed += 1
        if self.closed == 1:
            self._events.put(Notice(1, "info", "the changed tunables have their old values again"))
            self._events.put(Notice(1, "error", "rq_affinity could not be put back"))


class Closed:
    def handle(self, event: Event) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    def close(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")


def test_what_could_not_be_undone_is_said_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    events.put(StepFinished(1, 1, False, "", False))
    session = Session(events)
    with pytest.raises(BrokenPipeError):
        to_the_end(cast(LiveSession, session), events, cast(EventSink, Closed()))
    assert session.closed and events.empty()
    assert capsys.readouterr().err == "iopstui: rq_affinity could not be put back\n"


def test_an_expectation_that_was_not_judged_is_no_success() -> None:
    with pytest.raises(Interrupted, match="before --expect was judged") as caught, answering(["x"]):
        raise BrokenPipeError
    assert caught.value.exit_code == EXIT_INTERRUPTED
    with pytest.raises(BrokenPipeError), answering([]):
        raise BrokenPipeError
