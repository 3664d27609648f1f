"""Load beside a session: plain fio, which iopstui knows nothing of."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from devices import settled
from drive import COMMON
from effect import parse_disk
from scenario import Action, Bench, Beside, Recipe, kernel_name
from settings import group2

HOG = "while :; do :; done"
# of load that a killed scoreboard could not end; no scenario takes so long
LONGEST_S = 300
# file pages are reclaimed and read again, for ever
GREEDY = """
import os, sys
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
size = int(sys.argv[2]) << 20
parent = os.getppid()
while os.getppid() == parent:
    held = []
    for _ in range(size >> 20):
        held.append(bytearray(os.urandom(4096) * 256))
"""


def fio(on: Recipe | None = None, **options: object) -> Beside:
    """It goes on until the scenario ends. Without ``on`` it works on the session's own device."""

    def begin(bench: Bench) -> None:
        node = bench.node if on is None else _other(bench, on)
        fio_options: Mapping[str, object] = {
            **COMMON,
            "filename": node,
            "runtime": LONGEST_S,
            **options,
        }
        command = [
            "fio",
            "--name=beside",
            *(f"--{name}={value}" for name, value in fio_options.items()),
        ]
        process = subprocess.Popen(
            command, cwd=bench.here, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        bench.stack.callback(_end, process)
        before = _ios(node)
        settled(lambda: _ios(node) != before)

    return begin


def below(**options: object) -> Beside:
    """The same on the first device below the session's own."""

    def begin(bench: Bench) -> None:
        lower = sorted(path.name for path in Path("/sys/block", bench.disk, "slaves").iterdir())
        fio(lambda _: f"/dev/{lower[0]}", **options)(bench)

    return begin


def hogs(*cpus: int) -> Beside:
    """A loop in each of these CPUs."""

    def begin(bench: Bench) -> None:
        start_hogs(*cpus)(bench)

    return begin


def start_hogs(*cpus: int) -> Action:
    """The same from now on."""

    def act(bench: Bench) -> None:
        for cpu in cpus:
            # by taskset and sh alone, so that the end of this process is the end of the loop; the
            # kernel ends it after so much CPU time if nobody does
            process = subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c",
                                        f"ulimit -t {LONGEST_S}; {HOG}"])  # fmt: skip
            bench.stack.callback(_end, process)

    return act


def short_of_memory(mib: int = 24) -> Beside:
    """A process in a group whose memory.high (cgroup v2) is too small for it."""

    def begin(bench: Bench) -> None:
        group = group2(bench, "memory", "-memory")
        (group / "memory.high").write_text(str(mib << 20))
        process = subprocess.Popen([sys.executable, "-c", GREEDY, str(group), str(8 * mib)])
        bench.stack.callback(_end, process)

    return begin


def _other(bench: Bench, on: Recipe) -> str:
    """Made on the bench, whose own device stays the one that is looked at."""
    node = bench.node
    try:
        return on(bench)
    finally:
        bench.node = node


def _ios(node: str) -> tuple[int, ...]:
    with open("/proc/diskstats") as file:
        counters = parse_disk(file.read(), kernel_name(node))
    return counters["reads"], counters["writes"], counters["discards"]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
