"""Do one run of a session and pass its events to a sink."""

from __future__ import annotations

from iopstui.cli.terminal import kill_without_waiting, print_message
from iopstui.events import Notice, StepFinished
from iopstui.model.experiment.run_request import RunRequest
from iopstui.output.sinks import EventSink
from iopstui.safety.signals import StopSignals
from iopstui.session.live import LiveSession
from iopstui.session.run_loop import RunLoop


def run_until_finished(
    session: LiveSession, request: RunRequest, sink: EventSink
) -> StepFinished | None:
    """Starts the session, and the run in it. Its end; ``None``: the session ended before it. The
    session and the sink are closed. The first signal lets fio write its last document."""
    loop = RunLoop(session, sink.handle)
    StopSignals(loop.stop, kill_without_waiting(loop.kill))
    loop.start()
    try:
        finished = loop.run(lambda: session.run_job(request.job, request.overrides))
        loop.close()
    except BrokenPipeError:
        session.close()
        for event in loop.rest():  # what could not be undone, even to a reader who has gone
            if isinstance(event, Notice) and event.level == "error":
                print_message(event.text)
        raise
    finally:
        session.close()
        sink.close()
    return finished
