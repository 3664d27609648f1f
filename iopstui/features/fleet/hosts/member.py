"""One host of a fleet: its link, clock and progress."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from iopstui import __version__
from iopstui.errors import EXIT_JOB_FAILED, EXIT_MISSING
from iopstui.features.fleet.hosts.conversation import (
    CAPABILITIES,
    HEARTBEAT,
    MAX_MONOTONIC_NS,
    SUMS,
    ClockOffset,
    parse_object,
)
from iopstui.features.fleet.hosts.free_space import SpaceNeed, parse_space_needs
from iopstui.features.fleet.hosts.nodes import Node
from iopstui.features.fleet.hosts.program_copy import bundle
from iopstui.text import printable

Object = dict[str, Any]
LAUNCHED, GREETED, ARMED, STARTED, OVER = "launched", "greeted", "armed", "started", "over"
MIN_CLOCK_ANSWERS, START_CLOCK_ANSWERS = 12, 6
"""How many answers to ping make a comparison of clocks precise enough, and how many more are
requested right before the start."""
MAX_INVALID_LINES = 100
MAX_TEXT = 400
MAX_BURST_BYTES, MAX_BYTES_PER_S = 64 << 20, 8 << 20
"""Limits for the bytes of lines from a host, because a recording keeps them: at first, and per
second."""
FLEET_EVENTS = frozenset({"fleet", "fleet_over", "total", "merged"})
"""Events that only a merger writes. A host must not send them, because in a recording they would
look like the merger's own."""
INTERRUPTED = "interrupted"
"""The error of a host that was told to stop, which is not a failure."""
SILENT_AFTER_S = 1.1
_HEARTBEAT = json.dumps({"op": HEARTBEAT}).encode() + b"\n"


class Member:
    """A host. ``take_rows`` parses received data and returns the lines that others need. ``error``
    says why the host ended early; it is "" if it ended normally, and ``exit_code`` is then the
    host's own. ``executed_ns`` is when fio was executed, by our CLOCK_MONOTONIC, plus or minus
    ``error_ns``. ``probe_problem`` says why its device's percentiles are missing although they were
    requested."""

    def __init__(self, node: Node, command: Sequence[str], order: Object) -> None:
        self.name = node.name
        self.state = LAUNCHED
        self.offset = ClockOffset()
        self.error = ""
        self.hint = ""
        self.exit_code = 0
        self.needs: list[SpaceNeed] | None = None
        self.seen_marks: list[str] | None = None
        self.disks: list[Object] = []
        self.probe_problem = ""
        self.invalid_lines = 0
        self.executed_ns: int | None = None
        self.error_ns = 0
        self.last_row_ns = time.monotonic_ns()
        self.is_late = False
        self.is_lost = False
        self.link = Link(command)
        self._order = order
        self._start_ns: int | None = None
        self._expected_answers = MIN_CLOCK_ANSWERS
        self._capabilities: frozenset[str] = frozenset()
        self.boot_id = ""
        """Identifies the machine: hosts with the same one are the same machine. "": not sent."""
        self._ended = False
        self._received_bytes, self._is_flooding = 0, False
        self._compare_start_ns = 0
        self._launched_ns = self.last_row_ns

    @property
    def silent_s(self) -> float:
        """Seconds since its last line."""
        return (time.monotonic_ns() - self.last_row_ns) / 1e9

    @property
    def since_start_signal_s(self) -> float | None:
        """Seconds since the host's start time; ``None`` if it has no start order."""
        return None if self._start_ns is None else (time.monotonic_ns() - self._start_ns) / 1e9

    def send_order(self, order: Object) -> None:
        self.link.send(json.dumps(order).encode() + b"\n")

    def ask_time(self) -> None:
        """Ask for the time of its clock, which is also a heartbeat."""
        if self.state not in (LAUNCHED, OVER):
            self.send_order(self.offset.make_ping())

    def send_heartbeat(self) -> None:
        """Send a heartbeat without a question; enough for a host that sends rows."""
        if HEARTBEAT not in self._capabilities or self.silent_s > SILENT_AFTER_S:
            self.ask_time()
        elif self.state not in (LAUNCHED, OVER):
            self.link.send(_HEARTBEAT)

    @property
    def is_compared(self) -> bool:
        """Whether the host has answered each question for its time."""
        return self.offset.answers >= self._expected_answers

    @property
    def comparing_s(self) -> float:
        """How long its clock has been compared (s); 0 if that is not going on."""
        if self.is_compared or self.state not in (GREETED, ARMED):
            return 0.0
        return (time.monotonic_ns() - self._compare_start_ns) / 1e9

    def compare_clock(self) -> None:
        """Ask the host for its time several times again, because the known offset is old."""
        self._compare_start_ns = time.monotonic_ns()
        self._expected_answers = self.offset.answers + START_CLOCK_ANSWERS
        self.ask_time()

    def take_rows(self, data: bytes | None) -> list[Object]:
        """The lines that others need, from the data of its link (``Link.receive``)."""
        if data is None:
            self._connection_ended()
            return []
        rows, received = [], False
        self._received_bytes += len(data)
        since_s = (time.monotonic_ns() - self._launched_ns) / 1e9
        if (
            self._received_bytes > MAX_BURST_BYTES + since_s * MAX_BYTES_PER_S
            and not self._is_flooding
        ):
            self._is_flooding = True
            self.fail(f"it sends too much ({self._received_bytes >> 20} MiB in {since_s:.0f} s)")
            self.link.kill()
        if self._is_flooding:
            # ignore its data until the link has ended
            return []
        for line in self.link.split_lines(data):
            row = self._parse_row(line)
            if row is None:
                self._count_invalid_lines()
                continue
            received = True
            if row["event"] == "frame" or self._handle_host_event(row):
                rows.append(row)
        if received:
            self.last_row_ns = time.monotonic_ns()
        if self.link.dropped_lines:
            self.link.dropped_lines = 0
            self._count_invalid_lines(MAX_INVALID_LINES)
        return rows

    def _parse_row(self, line: bytes) -> Object | None:
        row = parse_object(line)
        kind = row.get("event") if row is not None else None
        return row if isinstance(kind, str) and kind not in FLEET_EVENTS else None

    def _handle_host_event(self, row: Object) -> bool:
        """Handle a line. Returns whether others need it."""
        kind = row["event"]
        handlers: dict[str, Callable[[Object], None]] = {
            "send": self._send_program, "hello": self._handle_hello, "lacks": self._report_missing,
            "failed": self._handle_failure, "pong": self._measure_offset,
            "planned": self._take_space_needs, "seen": self._take_seen_marks,
            "armed": self._handle_armed, "no_probe": self._take_probe_problem,
        }  # fmt: skip
        if kind in handlers:
            handlers[kind](row)
            return False
        if kind == "executed":
            self._handle_executed(row)
        elif kind == "step_finished" and (row.get("error") or row.get("exit_code")):
            self._handle_failure(row)
        elif kind == "ended":
            self._ended = True
        return True

    def _handle_executed(self, row: Object) -> None:
        at_ns = row.get("monotonic_ns")
        if isinstance(at_ns, int) and 0 <= at_ns < MAX_MONOTONIC_NS:
            self.state = STARTED
            self.executed_ns = at_ns - self.offset.mono_ns
            self.error_ns = self.offset.error_at(self.executed_ns)

    def _send_program(self, row: Object) -> None:
        self.link.send(bundle())

    def _handle_hello(self, row: Object) -> None:
        if self.state != LAUNCHED:
            return
        if row.get("iopstui") != __version__:
            version = _text_of(row, "iopstui")
            self.fail(f"it has iopstui {version}, this machine has {__version__}",
                      "To copy this version there: --bring")  # fmt: skip
            return
        self.state = GREETED
        self._compare_start_ns = time.monotonic_ns()
        self.boot_id = _text_of(row, "boot")
        capabilities = row.get("speaks")
        self._capabilities = frozenset(
            name for name in CAPABILITIES if type(capabilities) is list and name in capabilities
        )
        self.ask_time()
        self.send_order(
            {"op": "begin", "host": self.name, "plan": True, "frames": SUMS, **self._order}
        )

    def _report_missing(self, row: Object) -> None:
        missing, reason = _text_of(row, "what"), _text_of(row, "why")
        hint = ""
        if row.get("user"):
            line = f"{_text_of(row, 'user')} ALL=(root) NOPASSWD: ALL"
            hint = f"There: echo '{line}' | sudo EDITOR='tee -a' visudo, or name root@{self.name}."
        self.fail(f"it lacks {missing}{f' ({reason})' if reason else ''}", hint, EXIT_MISSING)

    def _handle_failure(self, row: Object) -> None:
        code = row.get("exit_code")
        message = _text_of(row, "error")
        interrupted = bool(row.get("interrupted")) and not message
        self.fail(INTERRUPTED if interrupted else message, _text_of(row, "hint"),
                  code if isinstance(code, int) else EXIT_JOB_FAILED)  # fmt: skip

    def _measure_offset(self, row: Object) -> None:
        answer = self.offset.take_answer(row, time.monotonic_ns())
        if answer and not self.is_compared:
            self.ask_time()

    def _take_space_needs(self, row: Object) -> None:
        self.needs = parse_space_needs(row)
        if self.needs is None:
            self._count_invalid_lines(MAX_INVALID_LINES)

    def search_marks(self, names: Sequence[str]) -> None:
        """Ask the host which of these scratch directories it sees beside its own
        (``seen_marks``)."""
        self.send_order({"op": "look", "names": [*names]})

    def _take_seen_marks(self, row: Object) -> None:
        names = row.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            self.seen_marks = names
        else:
            self._count_invalid_lines(MAX_INVALID_LINES)

    def _handle_armed(self, row: Object) -> None:
        disks = row.get("disks")
        if type(disks) is not list:
            disks = []
        self.disks = [disk for disk in disks if isinstance(disk, dict)]
        if self.state == GREETED:
            self.state = ARMED

    def _take_probe_problem(self, row: Object) -> None:
        self.probe_problem = _text_of(row, "why")

    def _count_invalid_lines(self, weight: int = 1) -> None:
        self.invalid_lines += weight
        if self.invalid_lines >= MAX_INVALID_LINES and self.state != OVER:
            self.fail("it sent something that is not an agent's answer", code=EXIT_JOB_FAILED)
            self.link.kill()

    def _connection_ended(self) -> None:
        if self._ended or self.error:
            self.state = OVER
            return
        if self.link.err_fd >= 0:
            # the output has ended, and the reason is on standard error
            self.link.read_stderr()
        stderr = printable(self.link.last_error_line)
        self.fail(f"its connection has ended{f': {stderr}' if stderr else ''}")
        self.is_lost = True

    def fail(self, error: str, hint: str = "", code: int = EXIT_JOB_FAILED) -> None:
        """Mark the host as failed; only the first reason is kept."""
        self.error, self.hint = self.error or error or "it failed", self.hint or hint
        self.exit_code = self.exit_code or code
        self.state = OVER

    def start(self, at_ns: int) -> None:
        """Order the host to start at this instant of our CLOCK_MONOTONIC."""
        self._start_ns = at_ns
        self.send_order({
            "op": "go", "at_ns": at_ns + self.offset.mono_ns,
            "offset_ms": round(self.offset.wall_ms, 6),
            "error_ms": round(self.offset.error_at(at_ns) / 1e6, 6),
        })  # fmt: skip

    def stop(self, completed: bool = False) -> None:
        """Order the host to stop; it restores everything itself. ``completed``: its job counts as
        done."""
        self.send_order({"op": "stop", **({"completed": True} if completed else {})})

    def give_up(self, reason: str, hint: str = "") -> None:
        """Mark the host as lost, because it does not answer."""
        self.fail(reason, hint)
        self.is_lost = True
        self.link.kill()


def _text_of(row: Object, key: str) -> str:
    """A text from the host, safe to print; "" if there is none."""
    return printable(str(row.get(key) or "")[:MAX_TEXT])


# A pipe to a host through a local process, which is ssh or another launcher.


LONGEST_LINE = 4 << 20
MAX_UNSENT = 16 << 20
READ_BYTES = WRITE_BYTES = 1 << 16
STDERR_BYTES = 4096


class Link:
    """Starts ``command``, a link to a host; never blocks. ``dropped_lines`` is the number of
    discarded lines.

    ``out_fd`` and ``err_fd`` are the descriptors to wait for; -1 after they have ended. While there
    is ``unsent`` data, call ``flush``."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # Ctrl-C must reach only iopstui, which stops the hosts
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.in_fd = self.process.stdin.fileno()
        self.out_fd = self.process.stdout.fileno()
        self.err_fd = self.process.stderr.fileno()
        for fd in (self.in_fd, self.out_fd, self.err_fd):
            os.set_blocking(fd, False)
        self.dropped_lines = 0
        self.unsent = bytearray()
        self._partial_line = bytearray()
        self._skipping = False
        self._stderr = b""

    def send(self, data: bytes) -> None:
        """Send data now, or as soon as the other side reads."""
        if self.in_fd < 0 or len(self.unsent) >= MAX_UNSENT:
            return
        self.unsent += data
        self.flush()

    def flush(self) -> bool:
        """Send more of the unsent data. Returns False if some remains."""
        while self.unsent and self.in_fd >= 0:
            try:
                sent = os.write(self.in_fd, self.unsent[:WRITE_BYTES])
            except BlockingIOError:
                return False
            except OSError:
                self.hang_up()
                break
            del self.unsent[:sent]
        return True

    def hang_up(self) -> None:
        """Close the input of the other side: nothing more is sent."""
        self.unsent.clear()
        if self.in_fd >= 0 and self.process.stdin is not None:
            self.in_fd = -1
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def receive(self) -> bytes | None:
        """The received data; ``None`` at the end of the stream."""
        try:
            data = os.read(self.out_fd, READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.out_fd = -1
            return None
        return data

    def split_lines(self, data: bytes) -> list[bytes]:
        """The lines that this data completes; a line that is too long is left out."""
        complete = data.split(b"\n")
        rest = complete.pop()
        lines = []
        for line in complete:
            if not self._skipping:
                lines.append(bytes(self._partial_line) + line)
            self._skipping = False
            self._partial_line.clear()
        if not self._skipping:
            self._partial_line += rest
        if len(self._partial_line) > LONGEST_LINE:
            self.dropped_lines += 1
            self._skipping = True
            self._partial_line.clear()
        return lines

    def read_stderr(self) -> None:
        try:
            data = os.read(self.err_fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.err_fd = -1
        self._stderr = (self._stderr + data)[-STDERR_BYTES:]

    @property
    def last_error_line(self) -> str:
        lines = self._stderr.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def kill(self) -> None:
        """Ask the launcher to end; its children notice that their pipes are closed. ``close``
        kills a launcher that does not end."""
        self.hang_up()
        with contextlib.suppress(OSError):
            self.process.terminate()

    def close(self) -> int:
        """Wait for the launcher's end, or kill it, and return its exit code."""
        self.hang_up()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        self.out_fd = self.err_fd = -1
        try:
            return self.process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
