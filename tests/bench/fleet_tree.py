"""A tree of fleets with made-up hosts: ``fleet_tree.py HOSTS GATEWAYS SECONDS``.

`iopstui fleet --gateways` runs as it is; each gateway is the real agent, whose hosts are one other
process that speaks for all of them. Every host has a known number of I/Os in each second, so every
total is compared with what it must be. It prints what the fleet and its gateways cost.
"""

from __future__ import annotations

import json
import os
import random
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fleet"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from fleet_links import SocketLink
from made import finals, frame

from iopstui import __version__
from iopstui.cli.fleet.agent import compact_frame
from iopstui.fleet.hosts import member
from iopstui.output.jsonl import dumps, session_object

Object = dict[str, Any]
HERE = Path(__file__).resolve()
LEAST, SPREAD = 100, 50
BEGIN_S = 10


def ios_of(host: str, number: int) -> int:
    """I/Os of a host in its second ``number``, from 0."""
    return LEAST + (int(host[1:]) * 7 + number * 3) % SPREAD


class Host:
    """One host: what it says to what it is told."""

    def __init__(self, fd: int) -> None:
        self.fd, self.rest, self.name = fd, b"", ""
        self.first_s = 0
        self.number = 0
        self.say({"event": "hello", "iopstui": __version__, "pid": 1, "speaks": ["beat", "sums"]})

    def say(self, row: Object) -> None:
        os.write(self.fd, dumps({"host": self.name, **row}).encode() + b"\n")

    def hear(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        for order in map(json.loads, lines):
            kind = order["op"]
            if kind == "ping":
                self.say({"event": "pong", "id": order["id"], "mono_ns": time.monotonic_ns(),
                          "wall_ms": time.time() * 1000})  # fmt: skip
            elif kind == "begin":
                self.name = order["host"]
                self.say(session_object(self.name, None))
                self.say({"event": "planned", "needs": []})
            elif kind == "lay_out":
                self.say({"event": "armed", "disks": []})
            elif kind == "go":
                ahead_s = (order["at_ns"] - time.monotonic_ns()) / 1e9
                # the same second for all, however late each of them hears it
                self.first_s = (int(time.time() + ahead_s) // BEGIN_S + 1) * BEGIN_S
                self.say({"event": "executed", "monotonic_ns": order["at_ns"]})


def line(ios: int, kept: dict[int, bytes]) -> bytes:
    """A frame with so many I/Os, with room for its host and times."""
    if ios not in kept:
        row = frame("HOST", random.Random(ios), 1e9, 2e12, ios=ios)
        row |= {"own_cpu": None, "device": None}
        row["kernel"]["total"]["util"] = 50.0
        kept[ios] = dumps({**compact_frame(row), "host": "HOST"}).encode() + b"\n"
    return kept[ios]


def end(host: Host, seconds: int) -> None:
    rows = [{"fio": {"read": {"ios": ios_of(host.name, n)}, "write": {"ios": 0}}}
            for n in range(seconds)]  # fmt: skip
    host.say({**finals(host.name, rows), "t": float(seconds)})
    host.say({"event": "ended", "t": 0.0, "exit_code": 0})
    os.close(host.fd)


def hosts(seconds: int, fds: list[int]) -> None:
    """All hosts of a gateway, to their ends."""
    selector, kept = selectors.DefaultSelector(), {}
    there = [Host(fd) for fd in fds]
    for one in there:
        selector.register(one.fd, selectors.EVENT_READ, one)
    while there:
        for key, _ in selector.select(0.1):
            data = os.read(key.fd, 1 << 16)
            if not data:
                return
            key.data.hear(data)
        now = time.time()
        for one in there:
            if one.first_s and now >= one.first_s + one.number + 1:
                wall_ms = (one.first_s + one.number + 1) * 1000
                text = line(ios_of(one.name, one.number), kept)
                one.number += 1
                text = text.replace(b"1000000000.0", b"%d" % one.number)
                text = text.replace(b"2000000000000.0", b"%d" % wall_ms)
                os.write(one.fd, text.replace(b'"HOST"', b'"%s"' % one.name.encode()))
                if one.number == seconds:
                    selector.unregister(one.fd)
                    end(one, seconds)
        there = [one for one in there if one.number < seconds]


def cost() -> Object:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}


def gateway(count: int, seconds: int, note: Path) -> None:
    """The agent, with so many hosts."""
    pairs = [socket.socketpair() for _ in range(count)]
    SocketLink.waiting = [one for one, _ in pairs]
    there = [other.fileno() for _, other in pairs]
    subprocess.Popen(
        [sys.executable, str(HERE), "hosts", str(seconds), *map(str, there)],
        pass_fds=there,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    for _, other in pairs:
        other.close()
    member.Link = SocketLink  # type: ignore[misc]
    from iopstui.cli.program import main

    try:
        main(["agent"])
    finally:
        note.write_text(json.dumps(cost()))


def top(words: list[str], note: Path) -> None:
    from iopstui.cli.program import main

    code = main(words)
    note.write_text(json.dumps(cost()))
    sys.exit(code)


def measure(count: int, gateways: int, seconds: int) -> Object:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        width = len(str(count))
        launcher = f"{sys.executable} {HERE} gateway {count // gateways} {seconds} {place}/{{host}}"
        words = ["fleet", f"h[{1:0{width}d}-{count}]", "/mnt", "--job", "randread-4k",
                 "--gateways", f"g[1-{gateways}]", "--launcher", launcher, "--format",
                 "jsonl"]  # fmt: skip
        done = subprocess.run([sys.executable, str(HERE), "top", str(place / "top"), *words],
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        rows = [json.loads(one) for one in done.stdout.splitlines()]
        notes = {one.name: json.loads(one.read_text()) for one in place.iterdir()}
    totals = [row for row in rows if row["event"] == "total" and row["hosts"]["counted"]]
    (whole,) = [row for row in rows if row["event"] == "merged"]
    names = [f"h{n:0{width}d}" for n in range(1, count + 1)]
    begin = totals[0]["second"]
    full = [row for row in totals if row["hosts"]["counted"] == row["hosts"]["expected"] == count]
    # of a second in which hosts are missing (this machine could not play all of them in time) the
    # totals are those of the others
    exact = all(
        row["fio"]["total"]["ios"] == sum(ios_of(name, row["second"] - begin) for name in names)
        for row in full
    )
    wanted = sum(ios_of(name, n) for name in names for n in range(seconds))
    below = [one for name, one in notes.items() if name != "top"]
    return {
        "hosts": count, "seconds": len(totals), "full": len(full), "exact": exact, "wanted": wanted,
        "count": {key: whole["count"][key] for key in ("ios", "exact")},
        "finished": whole["hosts"]["finished"], "top": notes["top"],
        "gateway_cpu_s": max(one["cpu_s"] for one in below),
        "gateway_mib": max(one["mib"] for one in below), "said": done.stderr[-600:],
    }  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "hosts":
        hosts(int(sys.argv[2]), [*map(int, sys.argv[3:])])
    elif sys.argv[1] == "gateway":
        gateway(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    elif sys.argv[1] == "top":
        top(sys.argv[3:], Path(sys.argv[2]))
    else:
        print(json.dumps(measure(*map(int, sys.argv[1:4])), indent=1))
