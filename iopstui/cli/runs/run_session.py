"""Do one run of a session and pass its events to a sink."""

from __future__ import annotations

import queue

from iopstui.cli.terminal import kill_without_waiting, print_message
from iopstui.events import Event, Notice, SessionEnded, StepFinished
from iopstui.model.experiment.run_request import RunRequest
from iopstui.output.sinks import EventSink
from iopstui.safety.signals import StopSignals
from iopstui.session.live import LiveSession

Events = queue.SimpleQueue[Event]


def run_until_finished(
    session: LiveSession, request: RunRequest, sink: EventSink
) -> StepFinished | None:
    """Starts the session, and the run in it. Its end; ``None``: the session ended before it. The
    session and the sink are closed. The first signal lets fio write its last document."""
    events: Events = queue.SimpleQueue()
    signals = StopSignals(session.stop_job, kill_without_waiting(session.kill_job))
    session.start(events.put)
    session.run_job(request.job, request.overrides)
    if signals.requests:  # perhaps before there was anything to stop
        session.stop_job()
    return run_to_end(session, events, sink)


def run_to_end(session: LiveSession, events: Events, sink: EventSink) -> StepFinished | None:
    """Run the session to its end, for a run that was asked for."""
    try:
        finished = _until_finished(events, sink)
        session.close()
        while not events.empty():  # which settings were put back, or could not be
            sink.handle(events.get())
    except BrokenPipeError:
        session.close()
        _print_undo_failures(events)
        raise
    finally:
        session.close()
        sink.close()
    return finished


def _until_finished(events: Events, sink: EventSink) -> StepFinished | None:
    while True:
        event = events.get()
        sink.handle(event)
        if isinstance(event, StepFinished):
            return event
        if isinstance(event, SessionEnded):
            return None


def _print_undo_failures(events: Events) -> None:
    """Report what could not be undone, even to a reader who has closed standard output."""
    while not events.empty():
        event = events.get()
        if isinstance(event, Notice) and event.level == "error":
            print_message(event.text)
