"""Closed, full and slow standard streams: a message, the right exit code, no file left."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from program import UNHURRIED, WITHIN_S, command, environment

COMMANDS = {
    "version": ("--version",),
    "help": ("--help",),
    "fields": ("fields",),
    "replay": ("replay", "demo", "--format", "jsonl"),
    "run": ("run", "--job", "randread-4k", "--set", "runtime=1", "--size", "4m", *UNHURRIED),
    "dry": ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2", "--dry-run"),
    "sweep": ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2", "--settle", "0",
              "--measure", "1", "--size", "4m", *UNHURRIED),
}  # fmt: skip


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "runtime").mkdir(mode=0o700)
    return tmp_path / "work"


def run_in_shell(text: str, name: str, workdir: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell command line in which "$@" is iopstui; check that it leaves no file."""
    result = subprocess.run(
        ["bash", "-c", text, "bash", *command(*COMMANDS[name])],
        cwd=workdir,
        env=environment(workdir.parent, XDG_RUNTIME_DIR=str(workdir.parent / "runtime")),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    assert list(workdir.iterdir()) == []
    assert list((workdir.parent / "runtime").iterdir()) == []
    for fragment in ("Traceback", "internal error", "Exception ignored"):
        assert fragment not in result.stderr
    return result


@pytest.mark.parametrize("name", ["replay", "run", "dry"])
def test_a_closed_standard_output_is_refused_before_the_start(name: str, workdir: Path) -> None:
    result = run_in_shell('"$@" >&-', name, workdir)
    assert result.returncode == 2
    assert "Standard output is closed" in result.stderr and "> /dev/null" in result.stderr
    assert len(result.stderr.splitlines()) == 2


@pytest.mark.parametrize("name", ["version", "help"])
def test_help_into_a_closed_standard_output(name: str, workdir: Path) -> None:
    result = run_in_shell('"$@" >&-', name, workdir)
    assert result.returncode == 1
    assert result.stderr == "iopstui: cannot write to standard output: Bad file descriptor.\n"


@pytest.mark.parametrize("name", ["help", "replay", "run"])
def test_a_full_standard_output_is_reported(name: str, workdir: Path) -> None:
    result = run_in_shell('"$@" > /dev/full', name, workdir)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last == "iopstui: cannot write to standard output: No space left on device."
    assert result.stderr.count(last) == 1


@pytest.mark.parametrize(
    ("redirection", "name"),
    [("<&- 2>&-", "run"), ("2> /dev/full", "replay")],
)
def test_unwritable_standard_error_changes_nothing(
    redirection: str, name: str, workdir: Path
) -> None:
    result = run_in_shell(f'"$@" {redirection}', name, workdir)
    assert result.returncode == 0
    assert result.stdout


@pytest.mark.parametrize("name", ["replay", "sweep"])
def test_a_closed_pipe_ends_the_command_quietly(name: str, workdir: Path) -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    result = subprocess.run(
        command(*COMMANDS[name]),
        cwd=workdir,
        env=environment(workdir.parent),
        stdin=subprocess.DEVNULL,
        stdout=write_fd,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(write_fd)
    assert result.returncode == 0
    assert "iopstui:" not in result.stderr and "interrupted" not in result.stderr
    assert list(workdir.iterdir()) == []


def test_a_reader_that_stops_early_ends_the_command_quietly(workdir: Path) -> None:
    """test_endings.py tests this for a run."""
    result = run_in_shell('"$@" | head -n 1; exit ${PIPESTATUS[0]}', "replay", workdir)
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 1 and "iopstui:" not in result.stderr


def test_an_unchecked_expectation_is_no_success(workdir: Path) -> None:
    text = '"$@" --set runtime=600 --expect "iops>=1" | head -n 1; exit ${PIPESTATUS[0]}'
    result = run_in_shell(text, "run", workdir)
    assert result.returncode == 130
    assert result.stderr.endswith("closed it before --expect was checked.\n")


def test_a_non_blocking_output_receives_everything(workdir: Path) -> None:
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    fcntl.fcntl(write_fd, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen(
        command("fields", "--format", "json"), cwd=workdir, env=environment(workdir.parent),
        stdin=subprocess.DEVNULL, stdout=write_fd, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(write_fd)
    expected = run_in_shell('"$@" --format json', "fields", workdir).stdout
    assert len(expected) > 8192, "it would fit into the pipe"
    with os.fdopen(read_fd, "rb") as stdout:
        assert stdout.read().decode() == expected
    assert process.wait(timeout=60) == 0


def test_a_signal_ends_a_command_that_waits_for_its_reader(workdir: Path) -> None:
    read_fd, write_fd = os.pipe()
    fcntl.fcntl(write_fd, fcntl.F_SETPIPE_SZ, 4096)
    env = environment(workdir.parent)
    process = subprocess.Popen(command(*COMMANDS["replay"]), cwd=workdir, env=env, stdout=write_fd,
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        os.read(read_fd, 1)  # the command has begun to write
        while select.select([], [write_fd], [], 0)[1] and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == 130
    finally:
        process.kill()
        process.wait()
        os.close(read_fd)
        os.close(write_fd)
