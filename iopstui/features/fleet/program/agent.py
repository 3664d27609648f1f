"""Run one host of a fleet: read orders from standard input, write answers to standard output, both
as JSON lines."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from iopstui import __version__
from iopstui.cli.options import run_request
from iopstui.cli.terminal import print_message
from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, IopstuiError, UsageError
from iopstui.events import Event, FrameReady, RunPlanned, RunReady, SessionEnded, StepFinished
from iopstui.features.fleet.hosts.conversation import CAPABILITIES, SUMS, Conversation
from iopstui.features.fleet.hosts.free_space import find_marks, measure_space_needs
from iopstui.features.fleet.hosts.host_disks import describe_disks
from iopstui.features.fleet.hosts.host_tunables import tunables_object
from iopstui.features.fleet.merging.encoded_frame import encode_frame
from iopstui.features.fleet.merging.sums import MalformedRow, frame_sums, to_wire
from iopstui.fio.inspect import find_fio
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import private_directory, remove, write_text
from iopstui.model.block.tunable import TunableRequest
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.figures.figure import DEVICE
from iopstui.model.metrics.probe import KINDS
from iopstui.output.jsonl import dumps, event_object, session_object
from iopstui.preflight.targets import choose_targets, choose_watch_target
from iopstui.safety.journal import boot_id
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.safety.signals import StopSignals
from iopstui.safety.tunables import queued_disks
from iopstui.session.live import LiveSession
from iopstui.session.run_preparation import StartSignal
from iopstui.session.tick.context import NOBODY, Viewer

Object = dict[str, Any]
FLUSH_WITHIN_S = 2.0
KILL_AFTER_S = 1.0
# only these fields are sent, because the merger reads no others
_SENT_FIELDS = ("event", "seq", "step", "t", "wall_ms", "seconds", "flags", "own_cpu")
_SENT_DEVICE_FIELDS = ("seconds", "missed", "skipped", "lost", "full")
_SENT_FIO_FIELDS = ("seconds", "read", "write", "trim", "mixed", "total", "errors")


class LineWriter:
    """Writes lines to standard output in a background thread, so that a broken link blocks nothing
    else."""

    def __init__(self, on_lost: Callable[[str], None]) -> None:
        self.host = ""
        self._on_lost = on_lost
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="lines", daemon=True)
        self._thread.start()

    def write_row(self, row: Object) -> None:
        """Write an object as a line; any thread may call this."""
        line = dumps({"event": row["event"], "host": self.host, **row}) + "\n"
        self.write(line.encode("ascii"))

    def write(self, line: bytes) -> None:
        """Write a complete line with its newline; any thread may call this."""
        self._queue.put(line)

    def close(self) -> None:
        """Wait until everything is written, but not for long."""
        self._queue.put(None)
        self._thread.join(FLUSH_WITHIN_S)

    def _write(self) -> None:
        while (line := self._queue.get()) is not None:
            try:
                while line:
                    line = line[os.write(1, line) :]
            except OSError:
                self._on_lost("standard output is closed")
                return


class Agent:
    """The agent on one host. ``serve`` returns the exit code."""

    def __init__(self, parse: ParseArguments) -> None:
        self._parse = parse
        self.lines = LineWriter(lambda reason: self.conversation.abort(reason))
        self.conversation = Conversation(
            0, self.lines.write_row, self._handle_order, self._stop_everything, self._note_heartbeat
        )
        self._first_order: queue.SimpleQueue[Object | None] = queue.SimpleQueue()
        self._session: LiveSession | None = None
        self._stop_reason = ""
        self._probe_problem = ""
        self._sends_detail = self._sends_sums = self._completed = False
        self._directories: tuple[str, ...] = ()

    def serve(self) -> int:
        """Serve until everything is done or the connection is lost."""
        self.lines.write_row({
            "event": "hello", "iopstui": __version__, "python": platform.python_version(),
            "pid": os.getpid(), "boot": boot_id(), "speaks": CAPABILITIES,
        })  # fmt: skip
        self.conversation.start()
        order = self._first_order.get()
        try:
            if order is None:
                return EXIT_OK
            self.lines.host = str(order.get("host") or "")
            self._sends_sums = order.get("frames") == SUMS
            with contextlib.ExitStack() as stack:
                job = AgentJob(order, stack, self._parse)
                return self._run(job, order.get("plan") is True)
        except IopstuiError as error:
            self.lines.write_row({
                "event": "failed", "exit_code": error.exit_code, "error": error.message,
                "hint": error.hint,
            })  # fmt: skip
            return error.exit_code
        finally:
            self.conversation.abort()
            self.lines.close()

    def _run(self, job: AgentJob, plan: bool) -> int:
        session = self._session = job.session()
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        StopSignals(session.stop_job, session.kill_job)
        self.lines.write_row(session_object(self.lines.host, session.target))
        session.start(events.put)
        try:
            if job.name is not None:
                session.run_job(job.name, job.request.overrides, plan)
            else:
                for tunable in job.tunables:
                    session.set_tunable(tunable.name, tunable.value)
            if self._stop_reason:  # the request to stop may have come before there was a session
                self._stop(session)
            code = self._send_events(events, job.name is None)
        finally:
            session.close()
        while not events.empty():
            self._send_event(events.get())
        return code

    def _send_events(self, events: queue.SimpleQueue[Event], watching: bool) -> int:
        while True:
            event = events.get()
            self._send_event(event)
            if isinstance(event, StepFinished):
                if self._is_completed(event):
                    return EXIT_OK
                return EXIT_INTERRUPTED if event.interrupted else event.exit_code
            if isinstance(event, SessionEnded):
                return EXIT_OK if watching else event.exit_code

    def _send_event(self, event: Event) -> None:
        row = event_object(event)
        if isinstance(event, FrameReady) and not self._sends_detail:
            row = compact_frame(row) if self._sends_sums else trim_frame(row)
        if isinstance(event, StepFinished) and self._is_completed(event):
            row |= {"exit_code": EXIT_OK, "interrupted": False}
        if isinstance(event, RunPlanned):
            self._directories = tuple(event.layout)
            row["needs"] = [need.as_object() for need in measure_space_needs(event.layout, Roots())]
        if isinstance(event, RunReady):
            row["disks"] = describe_disks(event.writes, Roots())
        if isinstance(event, RunReady | FrameReady):
            self._report_missing_probe()
        self.lines.write_row(row)

    def _is_completed(self, event: StepFinished) -> bool:
        """Whether the run was stopped because the fleet's job is complete."""
        return self._completed and event.interrupted and not event.error

    def _report_missing_probe(self) -> None:
        reason = self._session.no_probe if self._session is not None else ""
        if reason != self._probe_problem:
            self._probe_problem = reason
            self.lines.write_row({"event": "no_probe", "why": reason})

    # -- called in threads of the conversation

    def _handle_order(self, order: Object) -> None:
        session = self._session
        if order["op"] == "begin":
            self._first_order.put(order)
        elif order["op"] == "go" and session is not None:
            session.start_run(
                StartSignal(int(order["at_ns"]), order.get("offset_ms"), order.get("error_ms"))
            )
        elif order["op"] == "lay_out" and session is not None:
            session.lay_out()
        elif order["op"] == "look":
            # in a thread of its own, so that a server that does not answer delays nothing else
            threading.Thread(target=self._report_marks, args=(order["names"],), daemon=True).start()
        elif order["op"] == "detail":
            self._sends_detail = bool(order.get("on"))
        elif order["op"] == "tunables" and session is not None:
            self._send_tunables(session)
        elif order["op"] == "turn" and session is not None:
            self._change_tunable(session, order)
        elif order["op"] == "stop":
            self._completed = order.get("completed") is True
            self._stop_everything("it was told to stop")

    def _note_heartbeat(self) -> None:
        if self._session is not None:
            self._session.send_heartbeat()

    def _report_marks(self, names: list[str]) -> None:
        self.lines.write_row({"event": "seen", "names": find_marks(self._directories, names)})

    def _send_tunables(self, session: LiveSession) -> None:
        self.lines.write_row({
            "event": "tunables", "states": tunables_object(session.knobs(), _first_disk(session))
        })  # fmt: skip

    def _change_tunable(self, session: LiveSession, order: Object) -> None:
        name = str(order["name"])
        before = _tunable_values(session, name)

        def done(error: IopstuiError | None) -> None:
            now = _tunable_values(session, name)
            self.lines.write_row({
                "event": "turned", "id": order["id"], "name": name,
                "each": [[disk, value, now.get(disk, "")] for disk, value in before.items()],
                "error": error.message if error else "", "hint": error.hint if error else "",
            })  # fmt: skip
            self._send_tunables(session)

        session.change_tunable(name, str(order["value"]), done)

    def _stop_everything(self, reason: str) -> None:
        self._stop_reason = reason
        print(f"iopstui agent: {reason}: everything stopped", file=sys.stderr)
        self._first_order.put(None)
        if self._session is not None:
            self._stop(self._session)

    def _stop(self, session: LiveSession) -> None:
        if session.running:
            session.stop_job()
            timer = threading.Timer(KILL_AFTER_S, session.kill_job)
            timer.daemon = True
            timer.start()
        else:
            threading.Thread(target=session.close, daemon=True).start()


def _first_disk(session: LiveSession) -> str:
    disks = queued_disks(session.target, session.devices)
    return disks[0].name if disks else ""


def _tunable_values(session: LiveSession, name: str) -> dict[str, str]:
    state = next((knob for knob in session.knobs() if knob.name == name), None)
    return {} if state is None else dict(state.by_disk or ((_first_disk(session), state.now),))


def serve(parse: ParseArguments) -> int:
    """Run the agent. Returns the exit code. ``parse`` parses the command lines that it receives."""
    if sys.stdin.isatty():
        raise UsageError("The agent takes its orders from iopstui fleet, on standard input.",
                         "For one host: iopstui run --hold")  # fmt: skip
    return Agent(parse).serve()


def trim_frame(row: Object) -> Object:
    """A frame with only the fields that the totals need."""
    fio, total = row["fio"], row["kernel"]["total"]
    return {
        **{name: row[name] for name in _SENT_FIELDS},
        "fio": {name: _pack_bins(fio[name]) for name in _SENT_FIO_FIELDS} if fio else None,
        "kernel": {"total": total},
        DEVICE: _probe_sums(row.get(DEVICE)),
    }


def _probe_sums(part: Any) -> Any:
    if part is None:
        return None
    kinds = {kind: part[kind] for kind in KINDS}
    return {
        **{name: part[name] for name in _SENT_DEVICE_FIELDS},
        **{
            kind: {"ios": figures["ios"], "packed": _packed(figures)} if figures else None
            for kind, figures in kinds.items()
        },
    }


def compact_frame(row: Object) -> Object:
    """A frame as sums only; if that is not possible, the same as ``trim_frame``."""
    fio = row["fio"]
    seconds = fio["seconds"] if fio else row["seconds"]
    try:
        text = encode_frame(frame_sums("", row, seconds)) if seconds else ""
    except MalformedRow:
        text = ""
    if not text:
        return trim_frame(row)
    total, device = row["kernel"]["total"], _probe_sums(row.get(DEVICE))
    return {
        **{name: row[name] for name in _SENT_FIELDS}, "seconds": seconds,
        "util": total["util"] if total else None, "sums": text,
        **({} if device is None else {DEVICE: device}),
    }  # fmt: skip


def _pack_bins(part: Any) -> Any:
    """A direction with its histogram packed; other values are unchanged."""
    if not isinstance(part, dict) or "bins" not in part:
        return part
    figures = {name: value for name, value in part.items() if name != "bins"}
    return {**figures, "packed": _packed(part)}


def _packed(part: Object) -> str:
    return to_wire({int(key): count for key, count in part["bins"].items()})


# The job that an agent receives: arguments of a command line, and perhaps a job file.


ParseArguments = Callable[[Sequence[str]], argparse.Namespace]
"""Parses a command line (CommandLine.parse)."""
COMMANDS = ("run", "watch")
DEADLINE_S = 4.0
"""If an agent is stopped (SIGSTOP), it can't notice that its controller is gone. After this time,
plus the time that fio has to write its last document, fio's guard ends fio."""


class AgentJob:
    """A job that an agent was ordered to run, or a watch. ``order`` has ``arguments`` of the
    command `iopstui run` or `iopstui watch`, and ``job``: a shipped job's name, or ``{"name",
    "text"}`` of a file, which is kept in a private directory until ``stack`` is closed; ``parse``
    parses the arguments. Raises UsageError for what the command itself would refuse. ``name`` is
    the job for the session; ``None`` for a watch. ``tunables`` are earlier changes on this host: a
    run makes them itself, in a watch the agent makes them."""

    def __init__(self, order: Object, stack: contextlib.ExitStack, parse: ParseArguments) -> None:
        args = [str(arg) for arg in order.get("arguments") or ()]
        job = order.get("job")
        if isinstance(job, dict):
            job = str(_write_job_file(job, stack))
        self.name: str | None = job
        self.tunables = [TunableRequest(name, value) for name, value in order.get("tunables", ())]
        options = _parse_options(args, job, parse)
        # after the tunables of the command line, so that changes on the screen win
        knobs = (*options.knobs, *self.tunables)
        self.request: RunRequest = replace(options, hold=job is not None, knobs=knobs)

    def session(self) -> LiveSession:
        """A session, not started yet. Raises the same errors as the command itself."""
        roots = Roots()
        devices = read_devices(roots)
        if self.name is None:
            target = choose_watch_target(self.request.targets, devices, roots)
            viewer = Viewer(short_first_interval=False)
            return LiveSession(target, devices, target, self.request, viewer)
        find_fio()
        clean_up_and_report(print_message, roots)
        target, job_target = choose_targets(self.request.targets, self.name, devices, roots)
        return LiveSession(target, devices, job_target, self.request, NOBODY, deadline_s=DEADLINE_S)


def _write_job_file(job: Object, stack: contextlib.ExitStack) -> Path:
    private = private_directory()
    stack.callback(remove, private)
    name = Path(str(job.get("name") or "job")).name
    write_text(private, name, str(job.get("text")))
    return private / name


def _parse_options(args: list[str], job: str | None, parse: ParseArguments) -> RunRequest:
    command = "watch" if job is None else "run"
    line = [command, *args] if job is None else [command, "--job", job, *args]
    try:
        # e.g. --help: standard output is reserved for JSON lines
        with contextlib.redirect_stdout(sys.stderr):
            arguments = parse(line)
    except SystemExit as error:
        raise UsageError(
            "The options are not from the same version: iopstui " + command + "."
        ) from error
    if job is None:
        return RunRequest(targets=tuple(arguments.target), interval_s=arguments.interval,
                          own_cpus=(), probe=arguments.probe)  # fmt: skip
    options = run_request(arguments, job)
    if options.precondition:
        raise UsageError("--precondition cannot be used with several machines at once.",
                         "Run the job `precondition` on each of them first.")  # fmt: skip
    return options
