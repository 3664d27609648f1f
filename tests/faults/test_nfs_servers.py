"""An NFS server that dies or is cut off while iopstui works on its export."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from nfs_server import NfsServer, mounted_share, nfs_server
from program import events, run_in_new_python, start, survivors

pytestmark = pytest.mark.long
HARD = "vers=4.2,hard"
SOFT = "vers=4.2,soft,timeo=10,retrans=1"
_FIO = shutil.which("fio")
AWAY_S = 10.0
LONGEST_S = 150.0
"""A busy machine may need that long; a command without a time limit would wait for ever."""
JOB = ("--job", "randread-4k", "--set", "size=4m", "--set", "iodepth=4", "--format", "jsonl")


@pytest.fixture
def server(here: Path) -> Iterator[NfsServer]:
    with nfs_server(here.parent / "exported") as found:
        yield found


def run(share: Path, here: Path, seconds: int) -> subprocess.Popen[str]:
    """Start a job on the share, and wait until it reads."""
    job = start("run", str(share), *JOB, "--set", f"runtime={seconds}", cwd=here)
    deadline = time.monotonic() + LONGEST_S
    while not any("--status-interval=1" in one for one in _commands(job.pid)):
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(5)
    return job


def _commands(pid: int) -> list[str]:
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        try:
            found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def ended(job: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]], str]:
    out, said = job.communicate(timeout=LONGEST_S)
    return job.returncode, events(out), said


def found(lines: list[dict[str, Any]]) -> set[str]:
    """The rules of all findings."""
    return {one["finding"]["rule"] for one in lines if one["event"] == "found"}


WAYS: dict[str, tuple[Callable[[NfsServer], None], Callable[[NfsServer], None]]] = {
    "killed": (NfsServer.stop, NfsServer.start),
    "cut off": (NfsServer.cut, NfsServer.connect),
}


@pytest.mark.parametrize("way", list(WAYS))
def test_a_hard_mount_goes_on_when_the_server_is_back(
    way: str, server: NfsServer, here: Path
) -> None:
    away, back = WAYS[way]
    with mounted_share(here / "share", HARD) as share:
        job = run(share, here, 25)
        away(server)
        time.sleep(AWAY_S)
        back(server)
        code, lines, said = ended(job)
    assert code == 0, said
    seconds = [one for one in lines if one["event"] == "frame"]
    assert len(seconds) >= 20, "the figures went on"
    assert "nfs-stalled" in found(lines), said


@pytest.mark.parametrize("way", list(WAYS))
def test_a_hard_mount_without_a_server_can_be_left(way: str, server: NfsServer, here: Path) -> None:
    with mounted_share(here / "share", HARD) as share:
        job = run(share, here, 300)
        WAYS[way][0](server)
        time.sleep(5)
        fio = psutil.Process(job.pid).children(recursive=True)
        os.kill(job.pid, signal.SIGINT)
        code, _, said = ended(job)
        left = survivors(fio)
        WAYS[way][1](server)
        run_in_new_python("doctor", cwd=here, timeout=LONGEST_S)
        scratch = list(share.glob(".iopstui-*"))
    assert code in (1, 130), said
    assert not left or "hang" in said, said
    assert "does not answer" in said, "the scratch directory could not be removed"
    assert scratch == [], "doctor removes it once the server is back"


def test_a_soft_mount_ends_the_job_with_its_error(server: NfsServer, here: Path) -> None:
    with mounted_share(here / "share", SOFT) as share:
        job = run(share, here, 300)
        server.cut()
        code, _, said = ended(job)
        server.connect()
        run_in_new_python("doctor", cwd=here, timeout=LONGEST_S)
    assert code == 1, said
    assert "Input/output error" in said or "timed out" in said, said


def test_a_server_that_dies_while_the_job_is_checked_is_named(
    server: NfsServer, here: Path
) -> None:
    slow = here / "fio"
    slow.write_text(f'#!/bin/sh\ncase "$*" in *--debug*) sleep 5;; esac\nexec {_FIO} "$@"\n')
    slow.chmod(0o755)
    with mounted_share(here / "share", HARD) as share:
        job = start("run", str(share), *JOB, cwd=here, IOPSTUI_FIO=str(slow))
        deadline = time.monotonic() + LONGEST_S
        while not any("--debug" in one for one in _commands(job.pid)):
            assert time.monotonic() < deadline and job.poll() is None, job.communicate()
            time.sleep(0.05)
        server.cut()
        began = time.monotonic()
        code, _, said = ended(job)
        took = time.monotonic() - began
        server.connect()
        run_in_new_python("doctor", cwd=here, timeout=LONGEST_S)
        scratch = list(share.glob(".iopstui-*"))
    assert code == 2, said
    assert f"{here / 'share'} (nfs4 of" in said and "does not answer" in said, said
    assert took < 60, took
    assert scratch == []
