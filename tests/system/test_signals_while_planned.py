"""Signals before anything runs, while fio is asked what a job means."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from program import UNHURRIED, WITHIN_S, family, gone, start

HANGS = """#!/bin/sh
case "$*" in *--debug=*) exec sleep 1000;; esac
exec {fio} "$@"
"""
OWN = "[a]\nfilename={here}/data\nrw=read\nsize=1m\n"


@pytest.fixture
def here(tmp_path: Path, fio: str) -> Path:
    for name in ("work", "runtime"):
        (tmp_path / name).mkdir(mode=0o700)
    hangs = tmp_path / "fio"
    hangs.write_text(HANGS.format(fio=fio))
    hangs.chmod(0o755)
    (tmp_path / "own.fio").write_text(OWN.format(here=tmp_path))
    return tmp_path / "work"


def wait_until_asked(pid: int, within: float = 60.0) -> list[psutil.Process]:
    """All below ``pid``, once the fio that hangs is among them; it may make no file to tell."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        below = family(pid)
        for one in below:
            with contextlib.suppress(psutil.Error):
                if one.cmdline() == ["sleep", "1000"]:
                    return below
        time.sleep(0.02)
    raise AssertionError("fio was not asked")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize(
    "words",
    [
        ("run", "--job", "randread-4k", "--size", "4m"),
        ("run", "--job", "../own.fio"),
        ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2", "--size", "4m"),
        ("compare", "--job", "../own.fio", "--variant", "iodepth=1", "--variant", "iodepth=2"),
    ],
    ids=["run", "run-own", "sweep", "compare"],
)
def test_nothing_is_left(words: tuple[str, ...], number: int, here: Path) -> None:
    process = start(
        *words, cwd=here, XDG_RUNTIME_DIR=str(here.parent / "runtime"),
        IOPSTUI_FIO=str(here.parent / "fio"),
    )  # fmt: skip
    below = wait_until_asked(process.pid)
    process.send_signal(number)
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert gone(below) == []
    assert list((here.parent / "runtime").iterdir()) == []
    assert list(here.iterdir()) == []
    assert "Traceback" not in err and "interrupted" in err


def test_nohup_is_obeyed(here: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start("run", "--job", "randread-4k", "--set", "runtime=1", "--size", "4m",
                        *UNHURRIED, cwd=here, nohup=True)  # fmt: skip
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.stderr is not None
    process.stderr.readline()
    os.kill(process.pid, signal.SIGHUP)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "fio's final figures" in out
