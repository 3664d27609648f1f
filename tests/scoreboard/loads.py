"""Load beside a session: plain fio, which iopstui knows nothing of."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from devices import settled
from drive import COMMON
from effect import parse_disk
from scenario import Bench, Beside, Recipe


def fio(on: Recipe | None = None, **options: object) -> Beside:
    """It goes on until the scenario ends. Without ``on`` it works on the session's own device."""

    def begin(bench: Bench) -> None:
        node = bench.node if on is None else _other(bench, on)
        words: Mapping[str, object] = {**COMMON, "filename": node, "runtime": 600, **options}
        command = ["fio", "--name=beside", *(f"--{name}={value}" for name, value in words.items())]
        process = subprocess.Popen(
            command, cwd=bench.here, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        bench.stack.callback(_end, process)
        before = _ios(node)
        settled(lambda: _ios(node) != before)

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
        found = parse_disk(file.read(), node.rpartition("/")[2])
    return found["reads"], found["writes"]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
