"""The agent's side of the connection: receive orders, and stop if heartbeats cease.

JSON lines on standard input: ``{"op": "begin", ...}`` first; ``ping`` is answered at once with both
clocks and counts as a heartbeat, as does ``beat``, which is not answered; ``go`` names an instant
of this machine's CLOCK_MONOTONIC; ``stop``. The first heartbeat arms the dead man's switch: after
``HEARTBEAT_TIMEOUT_S`` without another, the run is stopped, because nobody else could stop it. The
end of standard input stops it at once."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
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
    """``on_order`` is called with every other order, ``on_disconnect`` once with the reason why the
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
        """Listen from now on."""
        for target in (self._listen, self._watch_heartbeats):
            threading.Thread(target=target, daemon=True).start()

    def abort(self, reason: str = "") -> None:
        """Ignore everything that follows; the first reason is passed to ``on_disconnect``."""
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
            # a process that was itself stopped has heard nothing either: that counts, too
            if (
                self._last_heartbeat_s is not None
                and time.monotonic() - self._last_heartbeat_s > HEARTBEAT_TIMEOUT_S
            ):
                self.abort(f"no heartbeat for {HEARTBEAT_TIMEOUT_S:g} s")


def parse_order(line: bytes) -> Object | None:
    """The order in a line; ``None`` if the line is not an order."""
    order = parse_object(line, exact=True)
    return order if order is not None and is_order(order) else None


def read_lines(fd: int) -> Iterator[bytes]:
    """The complete lines from a descriptor, until its end or a line that is too long. Python's own
    buffers are not used: a thread waiting in them keeps the process from ending."""
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
"""An instant of CLOCK_MONOTONIC is below."""
MAX_WALL_MS = 1e15
SUMS, LINES = "sums", "lines"
"""How frames are sent: as sums (encoded_frame.py), or as whole JSON lines, to record them."""
HEARTBEAT = "beat"
CAPABILITIES = (HEARTBEAT, SUMS)
"""Abilities that an agent lists in its first line; an older one lists none."""


def is_order(row: Row) -> bool:
    """Whether the object has the form of an order (unknown orders are ignored later)."""
    op = row.get("op")
    if op == "begin":
        return _is_begin_order(row)
    if op == "ping":
        # the id is sent back, so it must not be nested too deeply to encode
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
    # NaN is in no order of size
    return value is None or (type(value) in (int, float) and abs(value) < MAX_WALL_MS)  # type: ignore[arg-type]


def _is_text(value: object) -> bool:
    """Whether it is a text that can be written to a file, with surrogates for odd bytes."""
    try:
        return isinstance(value, str) and bool(value.encode("utf-8", "surrogateescape") or True)
    except UnicodeEncodeError:
        return False


def _is_word(value: object) -> bool:
    """Whether the text can be a program's argument or a file's name."""
    return _is_text(value) and "\0" not in str(value)


# Parse JSON objects from a link or a file.


_DECODER = json.JSONDecoder()
# raw_decode without its words for people
_SCAN: Callable[[str, int], tuple[Any, int]] = vars(_DECODER)["scan_once"]
_FRAME, _SUMS, _END = b'{"event":"frame",', b',"sums":"', b"}"


def parse_object(line: bytes, exact: bool = False) -> Object | None:
    """The JSON object in a line; ``None`` if there is none, or it is too large. Its texts are safe
    to print unless ``exact``."""
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
    (encoded_frame.py refuses a malformed one). ``None``: parse it like any other line."""
    key_start = line.find(_SUMS)
    start = key_start + len(_SUMS)
    # the first quote must end the text, and the text must end the line
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
