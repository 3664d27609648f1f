"""What processes read and write: compared with a real process, and with made-up ones."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.process_io import ProcessIo, ProcessRates

WRITES = """
import os, sys, time
with open(sys.argv[1], "wb", buffering=0) as file:
    print("ready", flush=True)
    sys.stdin.readline()
    file.write(bytes(1 << 20))
    os.fsync(file.fileno())
    print("done", flush=True)
    sys.stdin.readline()
"""
MIB = 1 << 20


def test_what_a_process_writes_is_its_own(tmp_path: Path) -> None:
    source = ProcessIo(least_s=0.0)
    child = subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path / "f")], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    try:
        child.stdout.readline()
        before = time.monotonic()
        assert source.rates() is None, "one reading has no rate"
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.readline()
        found = {one.pid: one for one in source.rates() or ()}
        most = time.monotonic() - before
    finally:
        child.stdin.close()
        child.wait()
    if child.pid in found:  # the temporary directory may be in memory
        assert found[child.pid].write_s * most >= MIB
        assert found[child.pid].comm.startswith("python")


class Machine:
    """A /proc of made-up processes: pid -> (parent, start, counters of children, read, written)."""

    def __init__(self, base: Path) -> None:
        self._proc = base / "proc"
        self._proc.mkdir()
        self.now = 0.0
        self.io = ProcessIo(0.0, Roots.under(base), lambda: self.now)

    def rates(
        self,
        processes: Mapping[int, tuple[int, int, int, int, int]],
        disks: int | None = None,
        faults: int = 0,
    ) -> dict[int, ProcessRates] | None:
        for old in self._proc.glob("[0-9]*"):
            for file in old.iterdir():
                file.write_text("")  # the open file has nothing more to read
                file.unlink()
            old.rmdir()
        if disks is not None:
            line = f"254 0 vda 1 0 {disks // 512} 1 1 0 {disks // 512} 1 0 1 1\n"
            (self._proc / "diskstats").write_text(line)
        for pid, (parent, start, children, read, written) in processes.items():
            place = self._proc / str(pid)
            place.mkdir()
            fields = ["S", parent, 0, 0, 0, 0, 0, 0, children, faults, 0, 0, 0, children, 0, 0, 0,
                      1, 0, start, *[0] * 20]  # fmt: skip
            (place / "stat").write_text(f"{pid} (p (x) y) {' '.join(map(str, fields))}\n")
            if read >= 0:
                (place / "io").write_text(
                    f"rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: {read}\n"
                    f"write_bytes: {written}\ncancelled_write_bytes: 0\n"
                )
        self.now += 1.0
        found = self.io.rates()
        return None if found is None else {one.pid: one for one in found}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_parent_does_not_do_again_what_its_child_did_before(machine: Machine) -> None:
    machine.rates({10: (1, 5, 0, 100, 0), 11: (10, 6, 0, 3000 * MIB, 0)})
    # the child read one more MiB and ended, and its parent waited for it
    found = machine.rates({10: (1, 5, 9, 100 + 3001 * MIB, 0)})
    assert found is not None and found[10].read_s == MIB and found[10].children


def test_grandchildren_and_orphans_are_taken_off_too(machine: Machine) -> None:
    machine.rates({
        1: (0, 1, 0, 0, 0), 10: (1, 5, 0, 0, 0), 11: (10, 6, 0, 0, 0),
        12: (11, 7, 0, 500 * MIB, 0),
    })  # fmt: skip
    found = machine.rates({1: (0, 1, 0, 0, 0), 10: (1, 5, 3, 500 * MIB, 0)})
    assert found == {}, "nothing is new"


def test_only_who_waited_for_pages_may_read_by_a_mapping(machine: Machine) -> None:
    machine.rates({10: (1, 5, 0, 0, 0)}, faults=3)
    for read, start, faults, told in ((1, 5, 3, False), (2, 5, 4, True), (3, 6, 4, True)):
        found = machine.rates({10: (1, start, 0, read, 0)}, faults=faults)
        assert found is not None and found[10].faults is told


def test_what_short_lived_children_did_is_their_parent_s(machine: Machine) -> None:
    machine.rates({10: (1, 5, 0, 0, 0)})
    found = machine.rates({10: (1, 5, 9, 700 * MIB, 0)})
    assert found is not None and found[10].read_s == 700 * MIB


def test_children_that_may_not_be_read_leave_their_parent_unknown(machine: Machine) -> None:
    machine.rates({10: (1, 5, 0, 0, 0), 11: (10, 6, 0, 0, 0)})
    # the child's counters can't be read
    machine.io._before[11].io = None
    assert machine.rates({10: (1, 5, 9, 700 * MIB, 0)}) == {}


def test_no_process_does_more_than_all_disks(machine: Machine) -> None:
    machine.rates({10: (1, 5, 0, 0, 0)}, disks=0)
    found = machine.rates({10: (1, 5, 0, 0, 900 * MIB)}, disks=100 * MIB)
    assert found is not None and found[10].write_s == 100 * MIB


def test_a_number_that_is_given_again_is_another_process(machine: Machine) -> None:
    machine.rates({7: (1, 5, 0, 900, 0)})
    found = machine.rates({7: (1, 6, 0, 300, 0)})
    assert found is not None and found[7].read_s == 300


def test_asked_too_soon_it_says_the_same_again() -> None:
    source = ProcessIo(least_s=60.0)
    assert source.rates() is None and source.rates() is None
