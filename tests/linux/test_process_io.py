"""What processes read and write, against a process that does so."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from iopstui.linux.process import process_io
from iopstui.linux.process.process_io import ProcessIo

WRITES = """
import os, sys, time
with open(sys.argv[1], "wb", buffering=0) as file:
    print("ready", flush=True)
    sys.stdin.readline()
    file.write(bytes(1 << 20))
    print("done", flush=True)
    sys.stdin.readline()
"""


def test_what_a_process_writes_is_its_own(tmp_path: Path) -> None:
    source = ProcessIo(least_s=0.0)
    child = subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path / "f")], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    try:
        child.stdout.readline()
        before = time.monotonic()
        assert source.rates() is None, "one reading has no rate"
        began = time.monotonic()
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.readline()
        least = time.monotonic() - began
        found = {one.pid: one for one in source.rates() or ()}
        most = time.monotonic() - before
    finally:
        child.stdin.close()
        child.wait()
    io = found[child.pid]
    assert io.write_s * least <= 1 << 20 <= io.write_s * most
    assert io.comm.startswith("python") and io.read_s * least < 1 << 20


def test_asked_too_soon_it_says_the_same_again() -> None:
    source = ProcessIo(least_s=60.0)
    assert source.rates() is None and source.rates() is None


def test_processes_that_are_closed_gone_or_strange(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd:
        def __init__(self, pid: int, error: Exception) -> None:
            self.pid, self._error = pid, error

        def io_counters(self) -> object:
            raise self._error

    odd = [Odd(1, psutil.AccessDenied(1)), Odd(2, psutil.NoSuchProcess(2)),
           Odd(3, FileNotFoundError()), Odd(4, psutil.AccessDenied(4))]  # fmt: skip
    monkeypatch.setattr(process_io.psutil, "process_iter", lambda: odd)
    source = ProcessIo(least_s=0.0)
    assert source.rates() is None and source.closed == 2 and source.rates() == []


def test_a_number_that_is_given_again_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ProcessIo(least_s=0.0)
    counts = iter([{(7, 1.0): (100, 0)}, {(7, 2.0): (900, 0)}, {(7, 2.0): (500, 0)}])
    monkeypatch.setattr(source, "_read", lambda: (next(counts), {7: "x"}))
    assert source.rates() is None
    assert source.rates() == [] and source.rates() == [], "and counters that fall are a gap"
