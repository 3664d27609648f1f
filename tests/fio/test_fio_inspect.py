from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iopstui.errors import Missing
from iopstui.fio import inspect as fio_inspect
from iopstui.fio.inspect import find_fio
from iopstui.linux.process import processes


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio_inspect, "IDLE_S", 0.4)
    monkeypatch.setattr(fio_inspect, "LOOK_S", 0.05)


def program(path: Path, *lines: str) -> str:
    path.write_text("\n".join([f"#!{sys.executable} -S", "import time", *lines]) + "\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.usefixtures("hurried")
def test_a_fio_that_works_is_waited_for(tmp_path: Path) -> None:
    """As on a machine with too much to do."""
    slow = program(tmp_path / "fio", "while time.process_time() < 1.2: pass", "print('fio-3.39')")
    assert find_fio(slow).version == (3, 39)


@pytest.mark.usefixtures("hurried")
def test_a_fio_that_does_nothing_is_not(tmp_path: Path) -> None:
    stuck = program(tmp_path / "fio", "time.sleep(60)")
    with pytest.raises(Missing, match="does nothing"):
        find_fio(stuck)


@pytest.mark.usefixtures("hurried")
def test_a_fio_that_works_for_ever_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio_inspect, "LONGEST_S", 0.3)
    with pytest.raises(Missing, match="did not answer within"):
        find_fio(program(tmp_path / "fio", "while True: pass"))


def test_what_a_process_has_used() -> None:
    busy = processes.cpu_s(os.getpid())
    assert busy is not None and busy > 0
    assert processes.waits_for_cpu(os.getpid())
    assert processes.start_time(os.getpid())


def test_a_process_that_is_gone() -> None:
    none = 2**22 + 1  # above the highest PID there can be
    assert processes.cpu_s(none) is None
    assert not processes.waits_for_cpu(none)
    assert processes.start_time(none) is None


def test_a_limit_is_not_a_missing_fio(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fio: str
) -> None:
    # one that no other test has asked
    own = tmp_path / "fio"
    own.symlink_to(fio)

    def full(*words: object, **more: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(Missing, match="Too many open files") as told:
        find_fio(str(own))
    assert "ulimit -n" in told.value.hint


def test_a_fio_that_crashes_is_not_one_that_is_missing(tmp_path: Path) -> None:
    crashes = program(tmp_path / "fio", "import os, signal, sys",
                      "sys.stderr.write('smalloc: failed adding pool\\n')",
                      "sys.stderr.flush()", "os.kill(os.getpid(), signal.SIGSEGV)")  # fmt: skip
    with pytest.raises(Missing, match="killed by signal 11, smalloc: failed") as told:
        find_fio(crashes)
    assert "ulimit" in told.value.hint


def test_a_fio_is_asked_for_its_version_once_and_a_new_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, asked = fio_inspect._ask, []

    def counted(*words: object) -> object:
        asked.append(words)
        return ask(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(fio_inspect, "_ask", counted)
    path = program(tmp_path / "fio", "print('fio-3.39')")
    assert find_fio(path) == find_fio(path) and len(asked) == 1
    program(tmp_path / "fio", "print('fio-3.42')")
    os.utime(path, ns=(0, 0))
    assert find_fio(path).version == (3, 42) and len(asked) == 2
