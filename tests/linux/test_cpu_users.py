"""Which program uses the CPUs, on made-up processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.cpu_users import CpuUsers

TICKS = os.sysconf("SC_CLK_TCK")
Process = tuple[int, float, str, int, int]
"""Arguments of ``put``."""


def put(base: Path, pid: int, user_s: float, comm: str = "hog", parent: int = 1, start: int = 5,
        command: str = "", kernel_s: float = 0) -> None:  # fmt: skip
    place = base / "proc" / str(pid)
    place.mkdir(parents=True, exist_ok=True)
    fields = ["0"] * 20
    fields[0], fields[1], fields[11], fields[19] = (
        "R",
        str(parent),
        str(int(user_s * TICKS)),
        str(start),
    )
    fields[12] = str(int(kernel_s * TICKS))
    (place / "stat").write_text(f"{pid} ({comm}) {' '.join(fields)}\n")
    (place / "cmdline").write_bytes(command.replace(" ", "\0").encode())


def users(base: Path, times: list[float]) -> CpuUsers:
    return CpuUsers(Roots.under(base), lambda: times.pop(0), own_pid=10)


def test_the_busiest_program_is_named_with_its_arguments(tmp_path: Path) -> None:
    put(tmp_path, 965, 100, command="/usr/bin/hog --all")
    put(tmp_path, 11, 0, comm="idle")
    found = users(tmp_path, [0.0, 10.0])
    put(tmp_path, 965, 109, command="/usr/bin/hog --all")
    assert found.busiest() == "hog --all (965) with 90 %"


def test_time_in_the_kernel_counts_if_asked(tmp_path: Path) -> None:
    """A neighbour's I/O costs time in the kernel, which is no reason why a job's CPU is full."""
    for with_kernel, words in ((False, ""), (True, "hog (965) with 50 %")):
        put(tmp_path, 965, 0)
        times = [0.0, 10.0]
        found = CpuUsers(
            Roots.under(tmp_path), lambda times=times: times.pop(0), 10, with_kernel
        )  # fmt: skip
        put(tmp_path, 965, 1, kernel_s=4)
        assert found.busiest() == words


def test_processes_of_one_program_count_together(tmp_path: Path) -> None:
    put(tmp_path, 20, 0, comm="one")
    found = users(tmp_path, [0.0, 10.0])
    put(tmp_path, 20, 9, comm="one")
    put(tmp_path, 21, 8, comm="cc1")
    put(tmp_path, 22, 7, comm="cc1")
    assert found.busiest() == "cc1 (2 processes) with 150 %"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([(10, 0, "iopstui", 1, 5)],
                     [(10, 9, "iopstui", 1, 5), (12, 9, "fio", 10, 5), (30, 2, "small", 1, 5)],
                     id="own processes, and an idle one"),
        pytest.param([(30, 50, "hog", 1, 5)], [(30, 1, "hog", 1, 900)],
                     id="a reused number is another process"),
    ],
)  # fmt: skip
def test_nobody_is_named(tmp_path: Path, before: list[Process], after: list[Process]) -> None:
    for process in before:
        put(tmp_path, *process)
    found = users(tmp_path, [0.0, 10.0])
    for process in after:
        put(tmp_path, *process)
    assert found.busiest() == ""
