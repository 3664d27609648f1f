"""What the kernel reports about the probes' own programs."""

from __future__ import annotations

import os
from pathlib import Path

from iopstui.linux.probe.bpf_probe import BpfPrograms, BpfRunStats, RunTimeStats


def program(place: Path, fd: int, **figures: int) -> None:
    place.mkdir(parents=True, exist_ok=True)
    rows = {"pos": 0, "prog_id": fd, **figures}
    (place / str(fd)).write_text("".join(f"{name}:\t{value}\n" for name, value in rows.items()))


def test_programs_that_run_for_each_i_o_are_added_up(tmp_path: Path) -> None:
    place = tmp_path / "77" / "fdinfo"
    program(place, 5, run_cnt=1000, run_time_ns=200_000, recursion_misses=3)
    program(place, 6, run_cnt=990, run_time_ns=300_000, recursion_misses=4)
    program(place, 7, run_cnt=2, run_time_ns=900_000)
    (place / "0").write_text("pos:\t0\nflags:\t02\n")
    assert BpfPrograms(77, tmp_path).read() == BpfRunStats(500_000, 1000, 7)


def test_a_kernel_that_does_not_say_and_a_process_that_is_gone(tmp_path: Path) -> None:
    assert BpfPrograms(77, tmp_path).read() is None
    place = tmp_path / "77" / "fdinfo"
    program(place, 5)
    assert BpfPrograms(77, tmp_path).read() is None
    program(place, 5, run_cnt=10, run_time_ns=1)
    assert BpfPrograms(77, tmp_path).read() == BpfRunStats(1, 10, 0)


def test_counting_leaves_nothing_open() -> None:
    before = os.listdir("/proc/self/fd")
    one = RunTimeStats()
    one.enable()
    one.enable()
    one.end()
    one.end()
    assert not one.enabled and os.listdir("/proc/self/fd") == before
