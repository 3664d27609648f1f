"""`iopstui run --diskspd` with real fio."""

from __future__ import annotations

from pathlib import Path

import pytest
from program import UNHURRIED, events, iopstui


@pytest.mark.parametrize(
    ("command", "direction"),
    [
        ("diskspd -c200G -w100 -b8K -F4 -r -o128 -W30 -d30 -Sh testfile.dat", "write"),
        ("diskspd -c200G -b4K -F4 -r -o128 -W7200 -d30 -Sh testfile.dat", "read"),
    ],
)
def test_azure_s_diskspd_commands_run_on_a_scratch_file(
    command: str, direction: str, workdir: Path
) -> None:
    result = iopstui("run", "--diskspd", command, "--size", "16m", "--set", "ramp_time=0",
                     "--set", "runtime=1", *UNHURRIED, "--format", "jsonl",
                     cwd=workdir)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "a scratch file of 16m (--size) replaces testfile.dat" in result.stderr
    assert "numjobs=4" in result.stderr and "iodepth=128" in result.stderr, "the job is shown"
    final = next(row for row in events(result.stdout) if row["event"] == "step_finished")["summary"]
    assert list(final["total"]) == [direction] and final["total"][direction]["iops"] > 0
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("size", [(), ("--size", "32m")])
def test_threads_with_offsets_stay_within_the_file(size: tuple[str, ...], workdir: Path) -> None:
    result = iopstui("run", "--diskspd", "diskspd -T4M -c16M -t4 -W0 -d1 -b64K x", *size,
                     *UNHURRIED, "--format", "jsonl", cwd=workdir)  # fmt: skip
    assert result.returncode == 0, result.stderr
    final = next(row for row in events(result.stdout) if row["event"] == "step_finished")["summary"]
    assert final["total"]["read"]["iops"] > 0
    assert list(workdir.iterdir()) == []


def test_an_existing_file_is_not_overwritten_without_permission(workdir: Path) -> None:
    file = workdir / "data"
    file.write_bytes(b"x" * (1 << 20))
    result = iopstui("run", "--diskspd", "diskspd -w100 -W0 -d1 data", cwd=workdir)
    assert result.returncode == 3 and "--destroy-data" in result.stderr
    assert file.read_bytes() == b"x" * (1 << 20)
    reading = iopstui("run", "--diskspd", "diskspd -L -W0 -d1 data", cwd=workdir)
    assert reading.returncode == 0, reading.stderr
    assert "-L has no equivalent" in reading.stderr


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("names no file", ("--diskspd", "diskspd -d5")),
        ("not a known switch", ("--diskspd", "diskspd -q x")),
        ("not allowed with", ("--diskspd", "diskspd x", "--job", "mixed-4k")),
        ("--job or --diskspd or --replay is missing", ()),
    ],
)
def test_bad_input(message: str, arguments: tuple[str, ...], workdir: Path) -> None:
    result = iopstui("run", *arguments, cwd=workdir)
    assert result.returncode == 2 and message in result.stderr
    assert list(workdir.iterdir()) == []
