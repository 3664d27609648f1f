"""`iopstui run`: a session whose events go to standard output."""

from __future__ import annotations

import argparse
import queue
import socket
import sys
from collections.abc import Mapping

from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_VERDICT,
    JobFailed,
    UsageError,
    error_of,
)
from iopstui.model.expectation import parse_tolerance
from iopstui.output.signals import StopSignals
from iopstui.output.sinks import EventSink, make_sink
from iopstui.output.verdict import VerdictSink
from iopstui.session.asked import Choose, asked_session
from iopstui.session.events import Ended, Event, StepFinished
from iopstui.session.leftovers import clean_up
from iopstui.session.promises import expectations_of, job_sections
from iopstui.sources.fio_inspect import find_fio
from iopstui.sources.roots import Roots
from iopstui.sources.sysfs import read_devices


def run_headless(
    arguments: argparse.Namespace, overrides: Mapping[str, str], choose: Choose
) -> int:
    """Run one job to its end; the exit code. Data on stdout, everything else on stderr."""
    find_fio()
    for line in (line for lines in clean_up(Roots()) for line in lines):
        print(f"iopstui: left by a crash: {line}", file=sys.stderr)
    devices = read_devices(Roots())
    target, job_target = choose(arguments.target, arguments.job, devices)
    expected = expectations_of(
        arguments.expect,
        parse_tolerance(arguments.tolerance),
        target,
        [job_sections(arguments.job, overrides)] if arguments.expect else [],
    )
    session = asked_session(
        arguments, target, job_target, devices, arguments.record, expected, idle_frames=False
    )
    data = make_sink(arguments.format, sys.stdout, sys.stderr, target, socket.gethostname())
    words = sys.stdout if arguments.format == "table" else sys.stderr
    sink = VerdictSink(data, words)
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    signals = StopSignals(session.stop_job, session.kill_job)
    session.start(events.put)
    session.run_job(arguments.job, overrides)
    if signals.asked:  # perhaps before there was anything to stop
        session.stop_job()
    try:
        finished = _until_finished(events, sink)
        session.close()
        while not events.empty():  # which settings were put back, or could not be
            sink.handle(events.get())
    finally:
        session.close()
        sink.close()
    code = _verdict(finished)
    return _judged(sink) if code == EXIT_OK else code


def _judged(sink: VerdictSink) -> int:
    """The exit code of a whole run: were its expectations met?"""
    for judged in sink.judged:
        if judged.measured is None:
            raise UsageError(
                f"--expect {judged.expectation!r} can't be judged: the run has no such figure.",
                "See what it measures with --format jsonl.",
            )
    return EXIT_OK if all(judged.passed for judged in sink.judged) else EXIT_VERDICT


def _until_finished(events: queue.SimpleQueue[Event], sink: EventSink) -> StepFinished | None:
    while True:
        event = events.get()
        sink.handle(event)
        if isinstance(event, StepFinished):
            return event
        if isinstance(event, Ended):
            return None


def _verdict(finished: StepFinished | None) -> int:
    if finished is None:
        raise JobFailed("The session ended before the job did; see the message above.")
    if finished.error:
        raise error_of(finished.exit_code, finished.error, finished.hint)
    return EXIT_INTERRUPTED if finished.interrupted else EXIT_OK
