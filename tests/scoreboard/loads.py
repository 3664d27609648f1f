"""Load beside a session: plain fio that iopstui did not start."""

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
# of load that a killed scoreboard could not end; every scenario is shorter
LONGEST_S = 300
# pages of files are reclaimed and read again, endlessly
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
    """fio beside the session until the scenario ends. Without ``on`` it works on the session's
    device."""

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
    """fio beside the session, on the first device below the session's own."""

    def begin(bench: Bench) -> None:
        lower = sorted(path.name for path in Path("/sys/block", bench.disk, "slaves").iterdir())
        fio(lambda _: f"/dev/{lower[0]}", **options)(bench)

    return begin


def hogs(*cpus: int) -> Beside:
    """An endless loop on each of these CPUs."""

    def begin(bench: Bench) -> None:
        start_hogs(*cpus)(bench)

    return begin


def start_hogs(*cpus: int) -> Action:
    """Start an endless loop on each of these CPUs in mid run."""

    def act(bench: Bench) -> None:
        for cpu in cpus:
            # only taskset and sh, so that ending this process ends the loop; otherwise the kernel
            # ends it after LONGEST_S seconds of CPU time
            process = subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c",
                                        f"ulimit -t {LONGEST_S}; {HOG}"])  # fmt: skip
            bench.stack.callback(_end, process)

    return act


def short_of_memory(mib: int = 24) -> Beside:
    """A process in a cgroup v2 whose memory.high is too small for it."""

    def begin(bench: Bench) -> None:
        group = group2(bench, "memory", "-memory")
        (group / "memory.high").write_text(str(mib << 20))
        process = subprocess.Popen([sys.executable, "-c", GREEDY, str(group), str(8 * mib)])
        bench.stack.callback(_end, process)

    return begin


def _other(bench: Bench, on: Recipe) -> str:
    """A further device made on the bench, whose own ``node`` stays the same."""
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
