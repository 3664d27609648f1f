"""Watch disks until the time is over or a signal arrives; print figures on standard output."""

from __future__ import annotations

import argparse
import os
import queue
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic

from iopstui.cli.runs.check_files import exporting_sessions
from iopstui.cli.terminal import print_message
from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, JobFailed
from iopstui.events import Event, FrameReady, SessionEnded
from iopstui.format import print_line
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.watch.trigger import parse_trigger
from iopstui.output.sinks import PLAIN, EventSink, make_watch_sink
from iopstui.output.watch import watch_sentences, watch_summary
from iopstui.preflight.targets import choose_watch_target
from iopstui.safety.signals import StopSignals
from iopstui.safety.streams import drop, drop_stuck
from iopstui.session.live import LiveSession
from iopstui.session.tick.context import Viewer
from iopstui.session.watch import TriggeredRecordings, Watch

Attach = Callable[[LiveSession, Callable[[], None]], object]

# the least part of an interval that the last sample must cover
MIN_LAST_SAMPLE_SHARE = 0.25
LAST_SAMPLE_TIMEOUT_S = 1.0
BEFORE_S = AFTER_S = 60.0
FEW_DISKS, JUDGE_EVERY = 8, 5
"""With more disks, an unattended recorder looks for answers and findings only in every fifth
sample, because they would take most of its CPU time."""


def watch(
    request: RunRequest, kind: str, arguments: argparse.Namespace,
    attach: Attach | None = None,
) -> int:  # fmt: skip
    """Watch the disks. Returns the exit code. Data goes to stdout as ``kind`` ("table", "jsonl",
    "csv", "influx" or "plain"), everything else to stderr, and a summary at the end (below a table:
    to stdout). ``attach`` is called with each session before its start, and with a function that
    replaces it by a new session; with ``attach``, the session also reads who uses the disks, as for
    a screen."""
    watches: list[Watch] = []
    signals: StopSignals | None = None
    left_s = getattr(arguments, "length", None)
    with exporting_sessions(arguments) as export:
        while True:
            session, disk_watch = _new_watch(request, arguments, on_screen=attach is not None)
            watches[:] = [disk_watch]
            export(session)
            if attach is not None:
                attach(session, disk_watch.begin_again)
            plain_every_s = arguments.plain_every if kind == PLAIN else 0.0
            sink = make_watch_sink(kind, sys.stdout, sys.stderr, session.target,
                                   os.uname().nodename, bool(request.probe),
                                   plain_every_s)  # fmt: skip
            if signals is None:
                signals = StopSignals(lambda: watches[-1].events.put(None), drop_stuck)
            elif signals.requests:  # a signal came while the watch was made
                disk_watch.events.put(None)
            began_s = monotonic()
            code = _watch(kind, sink, left_s, session, disk_watch)
            if not disk_watch.is_to_begin_again or signals.requests:
                return code
            left_s = None if left_s is None else max(0.0, left_s - (monotonic() - began_s))


def _watch(
    kind: str, sink: EventSink, for_s: float | None, session: LiveSession, disk_watch: Watch
) -> int:
    try:
        disk_watch.begin(session)
        reached = _handle_events(disk_watch, sink, for_s)
        _last_sample(session, disk_watch, sink, session.interval_s)
        disk_watch.close()
        _drain(disk_watch, sink)
        if not disk_watch.is_to_begin_again:
            _print_summary(session, disk_watch, kind)
        sink.close()
    except BrokenPipeError:  # the reader has closed the pipe
        drop()
        return EXIT_OK
    finally:
        disk_watch.close()
    return EXIT_OK if reached or for_s is None else EXIT_INTERRUPTED


def _new_watch(
    request: RunRequest, arguments: argparse.Namespace, on_screen: bool
) -> tuple[LiveSession, Watch]:
    devices = read_devices(Roots())
    target = choose_watch_target(request.targets, devices, Roots())
    triggers = [
        parse_trigger(text, target.tree, target.opened, bool(request.probe))
        for text in getattr(arguments, "trigger", ())
    ]
    parts, keep_s = None, 0.0
    if request.record and triggers:
        parts = TriggeredRecordings(Path(request.record), arguments.after or AFTER_S)
        keep_s = arguments.before or BEFORE_S
        request = replace(request, record=None)
    often = JUDGE_EVERY if on_screen and len(target.tree) > FEW_DISKS else 1
    viewer = Viewer(
        short_first_interval=False, keep_s=keep_s, on_screen=on_screen, judge_every=often
    )
    session = LiveSession(target, devices, target, request, viewer)
    if not request.targets:
        print_message(f"watching all disks that have done I/O: {', '.join(target.devices_below)}")
    return session, Watch(target, request.interval_s, triggers, parts)


def _handle_events(disk_watch: Watch, sink: EventSink, for_s: float | None) -> bool:
    """Pass events on until the time is over (returns True) or a signal comes (False)."""
    deadline: float | None = None
    while True:
        remaining_s = None if deadline is None else max(0.0, deadline - monotonic())
        try:
            event = disk_watch.events.get(timeout=remaining_s)
        except queue.Empty:
            return True
        if event is None:
            return False
        _handle(event, sink)
        if deadline is None and for_s is not None and isinstance(event, FrameReady):
            deadline = monotonic() + for_s - event.t


def _handle(event: Event, sink: EventSink) -> None:
    sink.handle(event)
    if isinstance(event, SessionEnded):
        raise JobFailed("The session ended unexpectedly; see the message above.")


def _last_sample(
    session: LiveSession, disk_watch: Watch, sink: EventSink, interval_s: float
) -> None:
    """Take a last sample, for the time since the previous one, and pass it on."""
    if monotonic() - disk_watch.sampled_at < MIN_LAST_SAMPLE_SHARE * interval_s:
        return
    session.sample()
    give_up = monotonic() + LAST_SAMPLE_TIMEOUT_S
    while (remaining_s := give_up - monotonic()) > 0:
        try:
            event = disk_watch.events.get(timeout=remaining_s)
        except queue.Empty:
            return
        if event is not None:
            _handle(event, sink)
        if isinstance(event, FrameReady):
            return


def _drain(disk_watch: Watch, sink: EventSink) -> None:
    while not disk_watch.events.empty():
        event = disk_watch.events.get()
        if event is not None:
            sink.handle(event)


def _print_summary(session: LiveSession, disk_watch: Watch, kind: str) -> None:
    if kind == PLAIN:
        for sentence in watch_sentences(disk_watch.totals):
            print_line(sentence, sys.stdout)
    else:
        stream = sys.stdout if kind == "table" else sys.stderr
        print_line("\n" + watch_summary(disk_watch.totals), stream)
    if session.recorded is not None and session.recorded.exists():
        print_message(f"recorded to {session.recorded}")
