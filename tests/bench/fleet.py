"""What merging a fleet costs: the stream of a recording, played as many hosts.

Each host's lines are the demo's frames as an agent sends them, moved to the same seconds. They are
read from pipes, parsed, merged and printed as JSON lines, as in `iopstui fleet`; launching (ssh's
own cost) is not measured. A process of its own, so that its memory is only its own."""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from iopstui.events import FrameReady
from iopstui.features.fleet.hosts.conversation import LINES, SUMS, parse_object
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.output.sinks import TotalLines
from iopstui.features.fleet.program.agent import compact_frame, trim_frame
from iopstui.output.jsonl import event_object
from iopstui.recording.reader import Recording, recording_path
from iopstui.recording.replay import replay_events

Object = dict[str, Any]
START_MS = 1.8e12
TURN = 200
"""Number of hosts, of a thousand, that are read in one turn."""


def frames(made: Callable[[Object], Object] = compact_frame) -> list[Object]:
    """The demo's frames with a whole second of fio, as an agent sends them: their sums, or JSON
    lines (``made`` is trim_frame)."""
    found = []
    with Recording(recording_path("demo")) as recording:
        for event in replay_events(recording):
            if isinstance(event, FrameReady) and event.frame.fio and not event.frame.flags:
                found.append(made(event_object(event)))
    return found


def demo() -> dict[str, list[Object]]:
    """The demo's frames by the name of their form (fleet/hosts/conversation.py)."""
    return {SUMS: frames(), LINES: frames(trim_frame)}


def line_of(row: Object) -> bytes:
    """A frame's line as an agent writes it."""
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def second(made: list[Object], number: int, hosts: int) -> Iterator[bytes]:
    """The lines of one second; each host has another frame."""
    cache = [
        line_of({**row, "t": number + 1.0, "wall_ms": START_MS + (number + 1) * 1000})
        for row in made
    ]
    for host in range(hosts):
        yield cache[(host + number) % len(cache)]


def feed(merger: Merger, came: list[tuple[str, bytes]], near_s: float) -> None:
    """Feed the merger with what one turn has read."""
    rows = [(name, parse_object(line[:-1]) or {}) for name, line in came]
    merger.feed_all(rows, near_s, lambda name, error: None)


def play(hosts: int, seconds: int) -> dict[str, float]:
    """CPU time (% of a CPU), memory and bytes on the wire for ``hosts`` hosts."""
    made = frames()
    merger = Merger()
    out = io.StringIO()
    sink = TotalLines(out, io.StringIO(), "all")
    names = [f"node{n:04d}" for n in range(hosts)]
    for name in names:
        merger.feed(name, {"event": "session"})
    read, write = os.pipe()
    used, size, packed = 0.0, 0, 0
    squeeze = zlib.compressobj()
    for number in range(seconds):
        lines = list(second(made, number, hosts))
        size += sum(map(len, lines))
        # each host has a stream of its own; the first one's compressed size stands for all
        packed += len(squeeze.compress(lines[0])) + len(squeeze.flush(zlib.Z_SYNC_FLUSH))
        came = []
        for name, line in zip(names, lines, strict=True):
            os.write(write, line)
            began = time.process_time()
            came.append((name, os.read(read, 1 << 16)))
            if len(came) == TURN or name == names[-1]:
                feed(merger, came, START_MS / 1000 + number + 1)
                came.clear()
            used += time.process_time() - began
        began = time.process_time()
        for one in merger.close_seconds():
            sink.second(one)
        used += time.process_time() - began
        out.seek(0)
        out.truncate()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "hosts": hosts, "cpu": 100 * used / seconds, "mib": peak / 1024,
        "bytes": size / hosts / seconds, "packed": packed / seconds,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(play(int(sys.argv[1]), int(sys.argv[2]))))
