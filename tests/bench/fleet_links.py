"""CPU cost of the whole path of `iopstui fleet`: links, clocks, lines, sums, screen or JSON lines.

``fleet_links.py HOSTS SECONDS screen|lines`` measures only the process of the command. One other
process plays all hosts: it answers as their agents would, through one socket per host. No agent is
launched (each link starts only ``true``). ``show`` runs the measured command, ``hosts`` the other
process.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from fleet import demo
from terminal import Terminal, cpu_s

from iopstui import __version__
from iopstui.features.fleet.hosts import member
from iopstui.features.fleet.hosts.member import Link
from iopstui.output.jsonl import dumps, session_object

Object = dict[str, Any]


class SocketLink(Link):
    """A link to a host of the other process."""

    waiting: list[socket.socket] = []  # noqa: RUF012 - one for all

    def __init__(self, command: object) -> None:
        # instead of a launcher, a process that ends at once
        super().__init__(["true"])
        for fd in (self.in_fd, self.out_fd):
            os.dup2(self.waiting[0].fileno(), fd, inheritable=False)
            os.set_blocking(fd, False)
        self.waiting.pop(0).close()


class Agent:
    """One host: its answers to orders."""

    def __init__(self, fd: int, made: dict[str, list[Object]], lines: dict[Any, bytes]) -> None:
        self.fd = fd
        self.made, self.lines = made, lines
        self.name, self.kind = "", "lines"
        self.rest = b""
        self.number = 0
        self.say({"event": "hello", "iopstui": __version__, "pid": 1,
                  "speaks": ["beat", "sums"]})  # fmt: skip

    def say(self, row: Object) -> None:
        os.write(self.fd, dumps(row).encode() + b"\n")

    def hear(self, data: bytes) -> bool:
        """Answer the orders in ``data``. Returns whether one of them started the run."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        began = False
        for line in lines:
            order = json.loads(line)
            if order["op"] == "ping":
                self.say({"event": "pong", "id": order["id"], "mono_ns": time.monotonic_ns(),
                          "wall_ms": time.time() * 1000})  # fmt: skip
            elif order["op"] == "begin":
                self.name, self.kind = order["host"], order.get("frames", "lines")
                self.say({**session_object(self.name, None), "device": "vda"})
                self.say({"event": "planned", "needs": []})
            elif order["op"] == "lay_out":
                self.say({"event": "armed", "disks": []})
            elif order["op"] == "go":
                began = True
                self._begin()
        return began

    def _begin(self) -> None:
        self.say({
            "event": "step_started", "t": 0.0, "step": 1, "job": "randread-4k", "phase": "run",
            "title": "randread 4k QD 32 × 1 job", "read_only": True, "options": {"runtime": "600"},
            "command": [], "fio_version": "fio-3.33",
        })  # fmt: skip
        self.say({"event": "executed", "t": 0.0, "step": 1, "wall_ms": time.time() * 1000,
                  "monotonic_ns": time.monotonic_ns(), "late_ms": 0.1})  # fmt: skip

    def frame(self, wall_s: float) -> None:
        """Send the next frame."""
        self.number += 1
        made = self.made[self.kind]
        at = (int(self.name[-3:]) + self.number) % len(made)
        key = self.kind, at
        if key not in self.lines:
            # in the order of an agent's keys
            row = {"event": "frame", "host": "HOST", **made[at], "t": 1e9, "wall_ms": 2e12}
            self.lines[key] = dumps(row).encode() + b"\n"
        line = self.lines[key].replace(b"1000000000.0", b"%d" % self.number)
        line = line.replace(b"2000000000000.0", b"%.3f" % (wall_s * 1000))
        os.write(self.fd, line.replace(b'"HOST"', b'"%s"' % self.name.encode()))


def hosts(fds: list[int]) -> None:
    """Run all hosts until nobody reads any more."""
    chance, selector = random.Random(1), selectors.DefaultSelector()
    made: dict[str, list[Object]] = demo()
    lines: dict[Any, bytes] = {}
    due: list[tuple[float, int, Agent]] = []
    for fd in fds:
        selector.register(fd, selectors.EVENT_READ, Agent(fd, made, lines))
    try:
        while True:
            left = due[0][0] - time.time() if due else 1.0
            for key, _ in selector.select(max(0.0, left)):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    return
                if key.data.hear(data):
                    heapq.heappush(due, (time.time() + 1 + chance.random(), key.fd, key.data))
            while due and due[0][0] <= time.time():
                at, fd, agent = heapq.heappop(due)
                agent.frame(at)
                heapq.heappush(due, (at + 1, fd, agent))
    except OSError:
        return


def show(count: int, kind: str) -> None:
    pairs = [socket.socketpair() for _ in range(count)]
    SocketLink.waiting = [one for one, _ in pairs]
    there = [other.fileno() for _, other in pairs]
    subprocess.Popen([sys.executable, __file__, "hosts", *map(str, there)], pass_fds=there,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     start_new_session=True)  # fmt: skip
    for _, other in pairs:
        other.close()
    member.Link = SocketLink  # type: ignore[misc]
    from iopstui.cli.program import main

    width = len(str(count))
    words = ["fleet", f"node[{1:0{width}d}-{count}]", "/mnt", "--job", "randread-4k"]
    if kind == "lines":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        words += ["--format", "jsonl"]
    sys.exit(main(words))


def by_threads(pid: int) -> dict[str, float]:
    """CPU seconds of each thread (schedstat of proc(5)); the thread of the screen is "first"."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        name = "first" if task.name == str(pid) else (task / "comm").read_text().strip()
        used = int((task / "schedstat").read_text().split()[0]) / 1e9
        found[name] = found.get(name, 0.0) + used
    return found


def came(pid: int) -> int:
    """Bytes that the process has read (rchar of proc(5)): on a busy machine the hosts may be too
    slow."""
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


def measure(count: int, seconds: int, kind: str) -> dict[str, Any]:
    """Percent of a CPU, of the whole process and of its first thread; bytes per second and host."""
    terminal = Terminal([sys.executable, __file__, "show", str(count), kind], 160, 45)
    time.sleep(20 + count / 100)
    used, own = cpu_s(terminal.pid), by_threads(terminal.pid)["first"]
    read = came(terminal.pid)
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    found = {
        "hosts": count, "kind": kind, "cpu": 100 * (cpu_s(terminal.pid) - used) / took,
        "first": 100 * (by_threads(terminal.pid)["first"] - own) / took,
        "bytes": (came(terminal.pid) - read) / took / count,
    }  # fmt: skip
    terminal.end(b"\x03\x03" if kind == "lines" else b"q", 30.0)
    return found


if __name__ == "__main__":
    if sys.argv[1] == "hosts":
        hosts([*map(int, sys.argv[2:])])
    elif sys.argv[1] == "show":
        show(int(sys.argv[2]), sys.argv[3])
    else:
        print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
