"""What the next run takes over from the run that it replaces: locks, devices, processes."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopstui.errors import Interrupted, Refused
from iopstui.fio.inspect import JobFacts, SectionFiles
from iopstui.linux.kernel_files import Roots
from iopstui.safety import locks, refusals
from iopstui.safety.locks import ActiveRun, HeldLock
from iopstui.safety.write_guard import CheckedJob, WriteGuard


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(locks, "_TIMEOUT_S", 0.0)
    path = tmp_path / "f"
    path.write_text("x" * 4096)
    return path


@pytest.fixture
def writer(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose child has the file open for writing, like a guard and its fio."""
    child = f"f = open({str(file)!r}, 'r+'); print(flush=True); input()"
    above = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {child!r}])"
    process = subprocess.Popen(
        [sys.executable, "-c", above], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None
    process.stdout.readline()
    yield process
    process.stdin.close()
    process.wait()


def guard(file: Path, active: ActiveRun | None = None) -> WriteGuard:
    facts = JobFacts((SectionFiles("a", (str(file),)),), True, ())
    job = CheckedJob(facts, (str(file),), file.parent)
    return WriteGuard(job, (str(file),), Roots(), active)


def is_locked(file: Path) -> bool:
    with open(file) as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_lock_passes_from_one_run_to_the_next_without_a_gap(file: Path) -> None:
    first = guard(file)
    first.engage({})
    with pytest.raises(Refused):
        guard(file).engage({})
    active = first.active_run(os.getpid())
    second = guard(file, active)
    second.engage({})
    first.close()
    active.close()
    assert is_locked(file) and second.writes
    second.close()
    assert not is_locked(file)


def test_the_lock_stays_if_the_run_ends_while_the_next_one_is_prepared(file: Path) -> None:
    first = guard(file)
    first.engage({})
    active = first.active_run(os.getpid())
    first.close()
    assert is_locked(file)
    active.close()
    active.close()
    assert not is_locked(file)


def test_a_file_that_took_the_name_meanwhile_is_locked_anew(file: Path) -> None:
    first = guard(file)
    first.engage({})
    active = first.active_run(os.getpid())
    file.unlink()
    file.write_text("another one")
    with open(file) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Refused):
            guard(file, active).engage({})
    first.close()
    active.close()


@pytest.mark.parametrize("shared", [True, False])
def test_a_lock_of_another_kind_is_not_adopted(shared: bool, file: Path) -> None:
    held = HeldLock(locks.lock(str(file), Roots(), shared=shared), shared)
    own = locks.lock(str(file), Roots(), shared=shared, adopted=[held])
    os.close(own)
    with pytest.raises(Refused):
        locks.lock(str(file), Roots(), shared=not shared, adopted=[held])
    os.close(held.fd)


def test_only_the_active_runs_processes_are_no_other_users(
    file: Path, writer: subprocess.Popen[bytes]
) -> None:
    with pytest.raises(Refused, match="has it open for writing"):
        guard(file).check({})
    active = ActiveRun((), (), writer.pid)
    guard(file, active).check({})
    active.close()
    with pytest.raises(Interrupted):
        guard(file, ActiveRun((), (), writer.pid, lambda: True)).check({})
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with pytest.raises(Refused, match="has it open for writing"):
            guard(file, ActiveRun((), (), other.pid)).check({})
    finally:
        other.communicate()


def test_a_device_held_exclusively_is_adopted_by_its_numbers_alone(
    file: Path, tmp_path: Path
) -> None:
    fd = os.open(file, os.O_RDONLY)
    active = ActiveRun((), (fd,), os.getpid())
    link = tmp_path / "link"
    link.symlink_to(file)
    duplicate = refusals.adopted_hold(str(link), active)
    assert duplicate is not None and locks.same_file(duplicate, fd)
    (tmp_path / "g").write_text("")
    assert refusals.adopted_hold(str(tmp_path / "g"), active) is None
    assert refusals.adopted_hold(str(file), None) is None
    active.close()
    os.close(duplicate)
    os.close(fd)
