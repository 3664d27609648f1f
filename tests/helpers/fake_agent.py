"""A launcher in place of ssh, with an agent that measures nothing: ``fake_agent.py HOST COMMAND``.

The first letters of HOST decide what it does when it is told to start. "good": sends three seconds
of 100 I/Os, and ends. "endless": sends these seconds, and waits to be stopped. "steady": sends six
seconds. "die": sends one second and exits. "deaf": sends nothing. "queued" never starts, as with
srun. "timeless" does not report its time."""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "fleet"), str(Path(__file__).parents[2])]

from made import finals, frame  # noqa: E402

from iopstui import __version__  # noqa: E402

HOST = sys.argv[1]


def say(kind: str, **row: Any) -> None:
    print(json.dumps({"event": kind, "host": HOST, **row}), flush=True)


def started(rows: list[dict[str, Any]]) -> bool:
    """Start as HOST's name says. Returns whether the agent has ended."""
    if HOST.startswith("deaf"):
        return False
    now_ms = time.time() * 1000
    say("executed", t=0.0, step=1, wall_ms=now_ms, monotonic_ns=time.monotonic_ns(), late_ms=0.0,
        offset_ms=0.0, error_ms=0.1)  # fmt: skip
    count = {"die": 1, "steady": 6}.get(HOST.rstrip("0123456789"), 3)
    for second in range(count):
        chance = random.Random(second)
        wall_ms = now_ms + 1000 * (second + 1)
        rows.append(frame(HOST, chance, second + 1.0, wall_ms, ios=100))
        say(**{"kind": rows[-1].pop("event"), **rows[-1]})
    if HOST.startswith("good"):
        ended(rows)
    return HOST.startswith(("good", "die"))


def ended(rows: list[dict[str, Any]], interrupted: bool = False) -> None:
    row = finals(HOST, rows)
    say(**{**row, "kind": row.pop("event"), "interrupted": interrupted})
    say("ended", t=0.0, exit_code=130 if interrupted else 0)


def main() -> None:
    rows: list[dict[str, Any]] = []
    if HOST.startswith("queued"):
        print("srun: job 7 queued and waiting for resources", file=sys.stderr, flush=True)
        sys.stdin.read()
        return
    say("hello", iopstui=__version__)
    for line in sys.stdin:
        order = json.loads(line)
        op = order["op"]
        if op == "ping":
            wall_ms = None if HOST.startswith("timeless") else time.time() * 1000
            say("pong", id=order["id"], mono_ns=time.monotonic_ns(), wall_ms=wall_ms)
        elif op == "begin":
            say("session", schema=1)
            say("planned", needs=[])
        elif op == "lay_out":
            say("armed", disks=[])
        elif op == "go" and started(rows):
            return
        elif op == "stop":
            ended(rows, interrupted=not order.get("completed"))
            return


main()
