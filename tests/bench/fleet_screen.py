"""What the screen of many hosts costs: made-up hosts whose lines come each second.

``fleet_screen.py HOSTS SECONDS [COLUMNS ROWS]`` measures the CPU time of the whole process (making
up lines, merging, the screen), the same without making up lines, that of the screen's thread, and
the bytes sent to the terminal. ``fleet_screen.py show HOSTS [FILE]`` is the measured program, for
looking at it in a terminal. One of its hosts is slow, two share a path, and one is lost after a
while."""

from __future__ import annotations

import copy
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import fleet
from terminal import Terminal, cpu_s

from iopstui.features.fleet.fleet_events import (
    FleetEvent,
    FleetRunStarted,
    HostFiguresBatch,
    HostRow,
    collect_figures,
)
from iopstui.features.fleet.hosts.host_tunables import HostTunableChange, HostTunables
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.program.agent import compact_frame, trim_frame

Object = dict[str, Any]
SLOW, PAIR, LOST = 17, (3, 7), 11
LOST_AFTER = 20


def scaled(row: Object, share: float, slower: float) -> Object:
    """A frame with a ``share`` of the I/Os, whose highest latencies are ``slower`` times as
    long."""
    made = copy.deepcopy(row)
    for name in ("read", "write", "total"):
        part = made["fio"][name]
        if not part:
            continue
        for key in ("ios", "bytes"):
            part[key] = round(part[key] * share)
        for key in ("iops", "bw"):
            part[key] = part[key] * share
        clat = part["clat"]
        clat["p99"] = round((clat["p99"] or 0) * slower)
    total = made["kernel"]["total"]
    for name in ("r_await", "w_await"):
        if total and total[name]:
            total[name] *= slower
    return made


class MadeUp:
    """Runs of many hosts (features/fleet/fleet_events.py)."""

    live = True

    def __init__(self, hosts: int, spent: int = -1) -> None:
        """``spent`` is the descriptor of a file for the CPU seconds of making up lines; -1: no
        file."""
        self.names = [f"node{n:0{len(str(hosts))}d}" for n in range(1, hosts + 1)]
        self.hosts = self.names
        self.settings = HostTunables()
        self.running = True
        self.frames: dict[str, Object] = {}
        self._spent = spent
        self._made_s = 0.0
        self._tell: Callable[[FleetEvent], None] = lambda told: None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._main, daemon=True)

    def start(self, tell: Callable[[FleetEvent], None]) -> None:
        self._tell = tell
        self._thread.start()

    def run(self, job: str, options: Mapping[str, str]) -> None:
        return

    def sweep(self, counts: Sequence[int], job: str, options: Mapping[str, str]) -> None:
        return

    def request_settings(self) -> bool:
        return False

    def change_tunable(self, turn: HostTunableChange) -> None:
        return

    def stop(self) -> None:
        return

    def mark(self, text: str) -> None:
        return

    def detail(self, name: str, wanted: bool) -> None:
        return

    def close(self) -> None:
        self._over.set()

    def _main(self) -> None:
        made = fleet.frames(trim_frame)
        merger = Merger()
        self._figures = collect_figures(merger)
        self._tell(FleetRunStarted(1, tuple(self.names), time.time(), "randread-4k"))
        for at, name in enumerate(self.names):
            session = {"event": "session", "device": "vda", "devices": ["vda"], "opened": ["vda"],
                       "target": "/mnt/shared"}  # fmt: skip
            self._row(merger, name, session)
            self._row(merger, name, {
                "event": "step_started", "t": 0.0, "step": 1, "job": "randread-4k",
                "title": "randread 4k QD 32 × 1 job", "phase": "run", "read_only": True,
                "options": {"runtime": "600"}, "command": [], "fio_version": "fio-3.33",
            })  # fmt: skip
            self._row(merger, name, {
                "event": "executed", "t": 0.0, "step": 1, "wall_ms": time.time() * 1000 + at % 9,
                "monotonic_ns": 0, "late_ms": 0.1, "offset_ms": 0.0, "error_ms": 0.2,
            })  # fmt: skip
        begun, number = time.monotonic(), 0
        while not self._over.wait(max(0.0, begun + number + 1 - time.monotonic())):
            self._second(merger, made, number)
            number += 1

    def _row(self, merger: Merger, name: str, row: Object) -> None:
        self._tell(HostRow(name, row))
        merger.feed(name, row)

    def _second(self, merger: Merger, made: list[Object], number: int) -> None:
        chance, began = random.Random(number), time.thread_time()
        wall_ms = time.time() * 1000
        both = chance.uniform(0.3, 0.7)
        odd = {SLOW: (0.4, 5.0), PAIR[0]: (both, 1.6), PAIR[1]: (1 - both, 1.6)}
        lines = {
            key: [self._line(scaled(row, *scale), number, wall_ms) for row in made[:6]]
            for key, scale in {**odd, -1: (1.0, 1.0)}.items()
        }
        self._made_s += time.thread_time() - began
        if self._spent >= 0:
            os.pwrite(self._spent, f"{self._made_s:20.6f}".encode(), 0)
        came = []
        for at, name in enumerate(self.names):
            if at != LOST or number <= LOST_AFTER:
                mine = lines.get(at, lines[-1])
                came.append((name, mine[(at + number) % len(mine)]))
        fleet.feed(merger, came, wall_ms / 1000)
        self._tell(HostFiguresBatch(tuple(self._figures)))
        self._figures.clear()
        until = int(time.time() - 1.5) - 1
        for second in merger.close_seconds(until):
            self._tell(second)

    def _line(self, row: Object, number: int, wall_ms: float) -> bytes:
        return fleet.line_of(
            {**compact_frame(row), "t": number + 1.0, "wall_ms": wall_ms, "step": 1}
        )


def show(hosts: int, spent: str = "") -> None:
    from iopstui.features.fleet.controller import FleetController
    from iopstui.features.fleet.screen.app import FleetApp

    runs = MadeUp(hosts, os.open(spent, os.O_WRONLY) if spent else -1)
    fleet_controller = FleetController(runs, f"node[1-{hosts}]", "randread-4k")
    FleetApp(fleet_controller, (), "randread-4k").run(mouse=False)
    runs.close()


def screen_s(pid: int) -> float:
    """CPU seconds of the thread that has the screen (schedstat of proc(5))."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def measure(hosts: int, seconds: int, columns: int = 160, rows: int = 45) -> dict[str, float]:
    """Percent of a CPU: of the process, without making up lines, of the screen's thread; bytes a
    second."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"0")
        file.flush()
        return _measured(hosts, seconds, columns, rows, Path(file.name))


def _measured(hosts: int, seconds: int, columns: int, rows: int, file: Path) -> dict[str, float]:
    words = [sys.executable, __file__, "show", str(hosts), str(file)]
    terminal = Terminal(words, columns, rows)
    # until all hosts are there, and findings have enough seconds
    time.sleep(25 + hosts / 200)
    used, own, sent = cpu_s(terminal.pid), screen_s(terminal.pid), terminal.total
    made = float(file.read_text())
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    used, made = cpu_s(terminal.pid) - used, float(file.read_text()) - made
    found = {
        "hosts": hosts, "cpu": 100 * used / took, "all": 100 * (used - made) / took,
        "screen": 100 * (screen_s(terminal.pid) - own) / took,
        "bytes_s": (terminal.total - sent) / took,
    }  # fmt: skip
    terminal.end()
    return found


if __name__ == "__main__":
    if sys.argv[1] == "show":
        show(int(sys.argv[2]), *sys.argv[3:])
    else:
        print(json.dumps(measure(*map(int, sys.argv[1:]))))
