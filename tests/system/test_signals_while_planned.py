"""Signals during planning, while fio is parsing the job."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from program import UNHURRIED, WITHIN_S, child_processes, start, survivors, wait_for_fio_io

HANGS = """#!/bin/sh
case "$*" in *--debug=*) exec sleep 1000;; esac
exec {fio} "$@"
"""
OWN_JOB = "[a]\nfilename={workdir}/data\nrw=read\nsize=1m\n"


@pytest.fixture
def workdir(tmp_path: Path, fio: str) -> Path:
    for name in ("work", "runtime"):
        (tmp_path / name).mkdir(mode=0o700)
    hangs = tmp_path / "fio"
    hangs.write_text(HANGS.format(fio=fio))
    hangs.chmod(0o755)
    (tmp_path / "own.fio").write_text(OWN_JOB.format(workdir=tmp_path))
    return tmp_path / "work"


def wait_for_fio_query(pid: int, within: float = 60.0) -> list[psutil.Process]:
    """Wait for the hanging fio below ``pid`` and return all children."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        below = child_processes(pid)
        for process in below:
            with contextlib.suppress(psutil.Error):
                if process.cmdline() == ["sleep", "1000"]:
                    return below
        time.sleep(0.02)
    raise AssertionError("fio was not asked")


@pytest.mark.parametrize(
    ("args", "number"),
    [
        (("run", "--job", "randread-4k", "--size", "4m"), signal.SIGTERM),
        (("run", "--job", "../own.fio"), signal.SIGHUP),
        (("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2", "--size", "4m"), signal.SIGINT),
        (("compare", "--job", "../own.fio", "--variant", "iodepth=1", "--variant", "iodepth=2"),
         signal.SIGTERM),
    ],
    ids=["run", "run-own", "sweep", "compare"],
)  # fmt: skip
def test_a_signal_during_planning_leaves_nothing_behind(
    args: tuple[str, ...], number: int, workdir: Path
) -> None:
    process = start(
        *args, cwd=workdir, XDG_RUNTIME_DIR=str(workdir.parent / "runtime"),
        IOPSTUI_FIO=str(workdir.parent / "fio"),
    )  # fmt: skip
    below = wait_for_fio_query(process.pid)
    process.send_signal(number)
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert survivors(below) == []
    assert list((workdir.parent / "runtime").iterdir()) == []
    assert list(workdir.iterdir()) == []
    assert "Traceback" not in err and "interrupted" in err


def test_nohup_is_respected(workdir: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start("run", "--job", "randread-4k", "--set", "runtime=3", "--size", "4m",
                        *UNHURRIED, cwd=workdir, nohup=True)  # fmt: skip
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.stderr is not None
    process.stderr.readline()
    os.kill(process.pid, signal.SIGHUP)
    wait_for_fio_io(process.pid)
    os.kill(process.pid, signal.SIGHUP)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "fio's final figures" in out
