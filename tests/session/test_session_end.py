"""However a session ends, its end is reported to those who wait for it."""

from __future__ import annotations

import errno
import os
import queue
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from iopstui.errors import EXIT_JOB_FAILED, EXIT_MISSING
from iopstui.events import Event, Notice, SessionEnded
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.target import Target
from iopstui.session.live import LiveSession
from iopstui.session.tick import readers


def test_what_fails_at_the_end_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc, no question about a descriptor can be answered."""
    session = LiveSession(Target("file", "/nowhere", None), {}, None)
    done: list[str] = []

    def fails() -> None:
        raise FileNotFoundError(2, "No such file or directory")

    session._runs = session._new_runs()
    monkeypatch.setattr(session._runs, "close", fails)
    monkeypatch.setattr(session._tunable_changes, "restore", lambda: done.append("put back"))
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    session.start(events.put)
    session.close()
    found = [events.get(timeout=30)]
    while not isinstance(found[-1], SessionEnded):
        found.append(events.get(timeout=30))
    assert done == ["put back"]
    assert found[-1] == SessionEnded(found[-1].t, EXIT_JOB_FAILED)
    assert any(isinstance(one, Notice) and "internal error" in one.text for one in found)


def test_a_session_that_may_start_no_thread_ends_with_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    session = LiveSession(Target("file", "/nowhere", None), {}, None)
    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        session.start()
    session.close()


@pytest.mark.parametrize(
    ("error", "is_limit"),
    [
        (MemoryError(), True), (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (ImportError("x.so: failed to map segment from shared object"), True),
        (ValueError("of ours"), False),
    ],
)  # fmt: skip
def test_the_usual_of_this_hour_is_left_out_where_memory_is_short(
    error: Exception, is_limit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: str) -> list[object]:
        raise error

    uncaught: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", uncaught.append)
    monkeypatch.setattr(readers, "feature_modules", fails)
    hours = readers.HourBaseline(Roots())
    hours.ask(readers.FIRST_AT_S, 0.0, {})
    assert hours._thread is not None
    hours._thread.join(10)
    assert not hours.medians and [one.exc_value for one in uncaught] == [error] * (not is_limit)


def test_a_limit_that_is_used_up_is_no_mistake_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    session = LiveSession(Target("file", "/nowhere", None), {}, None)

    def fails() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(session._sampling, "first", fails)
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    session.start(events.put)
    found = [events.get(timeout=30)]
    while not isinstance(found[-1], SessionEnded):
        found.append(events.get(timeout=30))
    said = [one.text for one in found if isinstance(one, Notice)]
    assert said == ["Too many open files. This shell limits the number of open files: "
                    "ulimit -n 1024"]  # fmt: skip
    assert (
        found[-1] == SessionEnded(found[-1].t, EXIT_MISSING) and session.exit_code == EXIT_MISSING
    )


WITHIN_S = 30.0
"""Reached only on failure."""


def at_each_line(do: Callable[[], object], within: Callable[[], object]) -> None:
    """Call ``do`` at each line of ``within``, like a signal handler that arrives there."""

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        do()
        return trace

    sys.settrace(trace)
    try:
        within()
    finally:
        sys.settrace(None)


def test_two_signals_at_the_same_time_end_it_all_the_same() -> None:
    """The second signal's handler is called in the middle of the first one's."""
    session = LiveSession(Target("file", "/nowhere", None), {}, None)

    def ends() -> None:
        at_each_line(session.kill_job, session.stop_job)
        at_each_line(session.stop_job, session.close)

    thread = threading.Thread(target=ends, daemon=True)
    thread.start()
    thread.join(WITHIN_S)
    assert not thread.is_alive()
