"""An agent's connection: orders, heartbeats, and the offset of the other machine's clock.

Orders are JSON lines on standard input. The first is ``{"op": "begin", ...}``. ``ping`` is answered
at once with both clocks, and counts as a heartbeat; so does ``beat``, which is not answered. ``go``
names an instant of this machine's CLOCK_MONOTONIC, ``stop`` stops. The first heartbeat arms the
dead man's switch: after ``HEARTBEAT_TIMEOUT_S`` without another one, the run is stopped, because
nobody else could stop it. The end of standard input stops it at once.

The fastest answer is the most precise one: if the round trip took twice ``error_ns``, the clock was
read in its middle, plus or minus ``error_ns``, however different the two ways were. Clocks drift,
so an answer loses precision with time and is replaced by a newer one. An answer that contradicts
the known one means that a clock was set."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from iopstui.features.fleet.hosts.host_tunables import are_settings, is_setting
from iopstui.untrusted import check_memory, is_plain, parse_json

Object = dict[str, Any]
HEARTBEAT_TIMEOUT_S = 5.0
POLL_S = 0.2
LONGEST_LINE = 4 << 20

OrderHandler = Callable[[Object], None]
DisconnectHandler = Callable[[str], None]


class Conversation:
    """An agent's side of the connection: listens for orders and heartbeats. ``on_order`` is called
    with every order that is not handled here, ``on_disconnect`` once with the reason why the
    connection ended, ``on_poll`` every ``POLL_S`` until then; all in threads of this class.
    ``send`` sends the answer to a ping."""

    def __init__(
        self,
        fd: int,
        send: OrderHandler,
        on_order: OrderHandler,
        on_disconnect: DisconnectHandler,
        on_poll: Callable[[], None] = lambda: None,
    ) -> None:
        self._fd = fd
        self._send = send
        self._on_order = on_order
        self._on_disconnect = on_disconnect
        self._on_poll = on_poll
        self._last_heartbeat_s: float | None = None
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to listen."""
        for target in (self._listen, self._watch_heartbeats):
            threading.Thread(target=target, daemon=True).start()

    def abort(self, reason: str = "") -> None:
        """Ignore everything that follows, and pass the first reason to ``on_disconnect``."""
        if not self._ended.is_set():
            self._ended.set()
            if reason:
                self._on_disconnect(reason)

    def _listen(self) -> None:
        for line in read_lines(self._fd):
            order = parse_order(line)
            if order is None:
                self.abort("standard input is not a valid order")
                return
            if order["op"] == "ping":
                self._last_heartbeat_s = time.monotonic()
                self._send({
                    "event": "pong", "id": order.get("id"), "mono_ns": time.monotonic_ns(),
                    "wall_ms": time.time() * 1000,
                })  # fmt: skip
            elif order["op"] == HEARTBEAT:
                self._last_heartbeat_s = time.monotonic()
            else:
                self._on_order(order)
        self.abort("standard input has ended")

    def _watch_heartbeats(self) -> None:
        while not self._ended.wait(POLL_S):
            self._on_poll()
            # time in which this process itself was stopped counts as silence, too
            if (
                self._last_heartbeat_s is not None
                and time.monotonic() - self._last_heartbeat_s > HEARTBEAT_TIMEOUT_S
            ):
                self.abort(f"no heartbeat for {HEARTBEAT_TIMEOUT_S:g} s")


def parse_order(line: bytes) -> Object | None:
    order = parse_object(line, exact=True)
    return order if order is not None and is_order(order) else None


def read_lines(fd: int) -> Iterator[bytes]:
    """The complete lines from a descriptor, until its end or a line that is too long. Python's own
    buffers are not used, because a thread that waits in them keeps the process from ending."""
    rest = b""
    while len(rest) < LONGEST_LINE:
        try:
            data = os.read(fd, 1 << 16)
        except OSError:
            return
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


# Parse and validate the orders that an agent accepts.


Row = Mapping[str, Any]
MAX_MONOTONIC_NS = 1 << 63
"""Above any instant of CLOCK_MONOTONIC."""
MAX_WALL_MS = 1e15
SUMS, LINES = "sums", "lines"
"""How frames are sent: as sums (encoded_frame.py), or as complete JSON lines, for a recording."""
HEARTBEAT = "beat"
CAPABILITIES = (HEARTBEAT, SUMS)
"""Abilities that an agent lists in its first line; an older agent lists none."""


def is_order(row: Row) -> bool:
    """Whether the object has the form of an order. Unknown orders are ignored later."""
    op = row.get("op")
    if op == "begin":
        return _is_begin_order(row)
    if op == "ping":
        # the id is sent back, so it must be an int, not a structure nested too deeply to encode
        return row.get("id") is None or type(row["id"]) is int
    if op == "go":
        at_ns = row.get("at_ns")
        valid = type(at_ns) is int and 0 <= at_ns < MAX_MONOTONIC_NS
        return valid and all(_is_time(row.get(name)) for name in ("offset_ms", "error_ms"))
    if op == "look":
        names = row.get("names")
        return isinstance(names, list) and all(map(_is_word, names))
    if op == "turn":
        number = row.get("id")
        return type(number) is int and is_setting(row.get("name"), row.get("value"))
    return isinstance(op, str)


def _is_begin_order(row: Row) -> bool:
    arguments, job, host = row.get("arguments", []), row.get("job"), row.get("host", "")
    if not (isinstance(arguments, list) and all(map(_is_word, arguments)) and _is_word(host)):
        return False
    if not are_settings(row.get("tunables", [])):
        return False
    if isinstance(job, dict):
        return _is_word(job.get("name")) and _is_text(job.get("text"))
    return job is None or _is_word(job)


def _is_time(value: object) -> bool:
    # NaN is refused, too, because it is not less than anything
    return value is None or (type(value) in (int, float) and abs(value) < MAX_WALL_MS)  # type: ignore[arg-type]


def _is_text(value: object) -> bool:
    """Whether it is a text that can be written to a file, with surrogates for bytes that are not
    UTF-8."""
    try:
        return isinstance(value, str) and bool(value.encode("utf-8", "surrogateescape") or True)
    except UnicodeEncodeError:
        return False


def _is_word(value: object) -> bool:
    """Whether the text can be an argument of a program or the name of a file."""
    return _is_text(value) and "\0" not in str(value)


# Parse JSON objects from a link or a file.


_DECODER = json.JSONDecoder()
# like raw_decode, but without its error messages
_SCAN: Callable[[str, int], tuple[Any, int]] = vars(_DECODER)["scan_once"]
_FRAME, _SUMS, _END = b'{"event":"frame",', b',"sums":"', b"}"


def parse_object(line: bytes, exact: bool = False) -> Object | None:
    """The JSON object in a line; ``None`` if there is none, or it is too large. Its strings are
    made safe to print, unless ``exact``."""
    if line.startswith(_FRAME):
        row = _with_sums(line)
        if row is not None:
            return row
    try:
        row = parse_json(line, is_large=False, exact=exact)
    except ValueError:
        return None
    return row if type(row) is dict else None


def _with_sums(line: bytes) -> Object | None:
    """Parse a frame whose last field is the text of its sums, without scanning that long text
    (encoded_frame.py refuses a malformed one). Returns ``None`` if the line must be parsed like any
    other."""
    key_start = line.find(_SUMS)
    start = key_start + len(_SUMS)
    # the string must end at the first quote, just before the line's closing brace
    end = line.find(b'"', start)
    if key_start < 0 or end != len(line) - 2 or line[-1:] != _END or not is_plain(line):
        return None
    try:
        check_memory(line)
        head = line[:key_start].decode("ascii") + "}"
        parsed, stop = _SCAN(head, 0)
        sums = line[start:end].decode("ascii")
    except (ValueError, RecursionError, StopIteration):
        return None
    if stop != len(head):
        return None
    row: Object = parsed
    row["sums"] = sums
    return row


MAX_DRIFT = 500e-6
"""The share of the time by which two clocks may drift apart: the kernel's maximum when it slews a
clock (adjtimex(2)). Quartz alone drifts a tenth of it."""
CLOCK_SET_MS = 1.0
"""A larger difference means that the wall clock was set; a smaller one may come from reading the
two clocks one after the other."""


def start_spread(starts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """How far apart these instants (time, error) of several clocks are, and the error of that: the
    sum of the two largest errors, because any two hosts may be the first and the last."""
    times = [start for start, _ in starts]
    return max(times) - min(times), sum(nlargest(2, (error for _, error in starts)))


@dataclass(slots=True)
class ClockOffset:
    """The clock offset of a host. ``mono_ns``: its CLOCK_MONOTONIC minus ours; ``wall_ms``: its
    wall clock minus ours; ``error_ns``: the maximum error of both at ``at_ns`` (our
    CLOCK_MONOTONIC). ``answers`` is the number of answers so far."""

    answers: int = 0
    mono_ns: int = 0
    wall_ms: float = 0.0
    error_ns: int = 1 << 62
    at_ns: int = 0
    pending: dict[int, tuple[int, float]] = field(default_factory=dict)
    _next: int = 0

    def make_ping(self) -> dict[str, Any]:
        """Make an order to send at once."""
        self._next += 1
        self.pending[self._next] = (time.monotonic_ns(), time.time() * 1000)
        # forget pings that were never answered
        self.pending.pop(self._next - 64, None)
        return {"op": "ping", "id": self._next}

    def error_at(self, now_ns: int) -> int:
        """The maximum error of both offsets at another instant of our CLOCK_MONOTONIC, in ns."""
        return self.error_ns + int(MAX_DRIFT * abs(now_ns - self.at_ns))

    def take_answer(self, row: dict[str, Any], now_ns: int) -> bool:
        """Use the answer, which was received at ``now_ns``. Returns False if it answers no pending
        ping."""
        number, mono, wall = row.get("id"), row.get("mono_ns"), row.get("wall_ms")
        if not isinstance(number, int) or not isinstance(mono, int):
            return False
        if not isinstance(wall, int | float) or number not in self.pending:
            return False
        # this is also false for NaN
        if not (abs(mono) < MAX_MONOTONIC_NS and 0 <= wall < MAX_WALL_MS):
            return False
        sent_ns, sent_ms = self.pending.pop(number)
        half_ns = (now_ns - sent_ns + 1) // 2
        mono_ns = mono - (sent_ns + half_ns)
        wall_ms = wall - (sent_ms + half_ns / 1e6)
        if not self.answers or self._is_better(mono_ns, wall_ms, half_ns, now_ns):
            self.mono_ns, self.wall_ms = mono_ns, wall_ms
            # the error counts from the send time: the clock may have been read right then, and have
            # drifted since
            self.error_ns, self.at_ns = half_ns, sent_ns
        self.answers += 1
        return True

    def _is_better(self, mono_ns: int, wall_ms: float, half_ns: int, now_ns: int) -> bool:
        """Whether this answer is more precise than the known offset, or shows that a clock was
        set."""
        known_ns = self.error_at(now_ns)
        both_ns = half_ns + known_ns
        was_set = abs(mono_ns - self.mono_ns) > both_ns
        was_set |= abs(wall_ms - self.wall_ms) > both_ns / 1e6 + CLOCK_SET_MS
        # add the drift during the answer's way back
        return was_set or half_ns + int(MAX_DRIFT * 2 * half_ns) <= known_ns
