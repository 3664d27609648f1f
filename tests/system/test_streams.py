"""Closed, full and slow standard streams: a sentence, the right exit code, nothing left."""

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
    "doctor": ("doctor",),
    "replay": ("replay", "demo", "--format", "jsonl"),
    "run": ("run", "--job", "randread-4k", "--set", "runtime=1", "--size", "4m", *UNHURRIED),
    "dry": ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2", "--dry-run"),
    "sweep": ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2", "--settle", "0",
              "--measure", "1", "--size", "4m", *UNHURRIED),
}  # fmt: skip
# one that only prints, one that reads a file, one that starts fio
KINDS = ("doctor", "replay", "run")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "runtime").mkdir(mode=0o700)
    return tmp_path / "work"


def shell(text: str, name: str, here: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell's line in which "$@" is the command; nothing may be left."""
    done = subprocess.run(
        ["bash", "-c", text, "bash", *command(*COMMANDS[name])],
        cwd=here,
        env=environment(here.parent, XDG_RUNTIME_DIR=str(here.parent / "runtime")),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    assert list(here.iterdir()) == []
    assert list((here.parent / "runtime").iterdir()) == []
    for word in ("Traceback", "internal error", "Exception ignored"):
        assert word not in done.stderr
    return done


@pytest.mark.parametrize("name", [*KINDS, "dry"])
def test_a_closed_standard_output_is_told_before_anything_is_done(name: str, here: Path) -> None:
    done = shell('"$@" >&-', name, here)
    assert done.returncode == 2
    assert "Standard output is closed" in done.stderr and "> /dev/null" in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("name", ["version", "help"])
def test_help_into_a_closed_standard_output(name: str, here: Path) -> None:
    done = shell('"$@" >&-', name, here)
    assert done.returncode == 1
    assert done.stderr == "iopstui: cannot write to standard output: Bad file descriptor.\n"


@pytest.mark.parametrize("name", ["help", *KINDS])
def test_a_full_standard_output_is_told(name: str, here: Path) -> None:
    done = shell('"$@" > /dev/full', name, here)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == "iopstui: cannot write to standard output: No space left on device."
    assert done.stderr.count(last) == 1


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("how", ["2> /dev/full", "<&- 2>&-"])
def test_what_nobody_hears_changes_nothing(how: str, name: str, here: Path) -> None:
    done = shell(f'"$@" {how}', name, here)
    assert done.returncode == 0
    assert done.stdout


@pytest.mark.parametrize("name", ["replay", "run", "sweep"])
def test_a_pipe_that_is_closed(name: str, here: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        command(*COMMANDS[name]),
        cwd=here,
        env=environment(here.parent),
        stdin=subprocess.DEVNULL,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(write)
    assert done.returncode == 0
    assert "iopstui:" not in done.stderr and "interrupted" not in done.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", ["run", "replay"])
def test_a_reader_that_has_read_enough_ends_it_without_a_word(name: str, here: Path) -> None:
    long = 'set -- "$@" --set runtime=600;' if name == "run" else ""
    done = shell(f'{long} "$@" | head -n 1; exit ${{PIPESTATUS[0]}}', name, here)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1 and "iopstui:" not in done.stderr


def test_an_answer_that_nobody_waited_for_is_no_success(here: Path) -> None:
    text = '"$@" --set runtime=600 --expect "iops>=1" | head -n 1; exit ${PIPESTATUS[0]}'
    done = shell(text, "run", here)
    assert done.returncode == 130
    assert done.stderr.endswith("closed it before --expect was checked.\n")


def test_an_output_that_does_not_block_gets_all_of_it(here: Path) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen(
        command("fields", "--format", "json"), cwd=here, env=environment(here.parent),
        stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(write)
    whole = shell('"$@" --format json', "fields", here).stdout
    assert len(whole) > 8192, "it would fit into the pipe"
    with os.fdopen(read, "rb") as stdout:
        assert stdout.read().decode() == whole
    assert process.wait(timeout=60) == 0


def test_a_signal_ends_what_waits_for_its_reader(here: Path) -> None:
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    env = environment(here.parent)
    process = subprocess.Popen(command(*COMMANDS["replay"]), cwd=here, env=env, stdout=writes,
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        os.read(reads, 1)  # it has begun
        while select.select([], [writes], [], 0)[1] and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == 130
    finally:
        process.kill()
        process.wait()
        os.close(reads)
        os.close(writes)
