"""Targets on a file system whose server is gone: a FUSE mount without a server process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import needs, sh
from program import iopstui

LONGEST_S = 45.0
"""A busy machine may need that long; a command without a time limit would wait for ever."""
JOB = ("--job", "randread-4k")


@pytest.fixture
def dead(here: Path) -> Iterator[Path]:
    """The mount point. Any access below it hangs."""
    needs(modules=("fuse",))
    place = here / "dead"
    place.mkdir()
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    assert ctypes.CDLL(None).mount(b"host:/gone", bytes(place), b"fuse", 0, options) == 0
    try:
        yield place
    finally:
        with contextlib.suppress(OSError):
            os.close(fuse)
        sh("umount", "-l", str(place))


@pytest.mark.parametrize(
    "words",
    [
        ("watch", "{}/x"),
        ("watch", "--record", "{}/x", "--for", "1s"),
        ("run", "{}", *JOB),
        ("run", "link/x", *JOB, "--format", "jsonl"),
        ("live", "--plain", "{}"),
        ("sweep", "{}", *JOB, "--axis", "iodepth=1,2"),
        ("devices", "{}/x"),
        ("report", "{}/x"),
        ("replay", "{}/x"),
    ],
)
def test_a_command_says_what_does_not_answer(
    words: tuple[str, ...], dead: Path, here: Path
) -> None:
    (here / "link").symlink_to("dead")
    began = time.monotonic()
    done = iopstui(*(word.format(dead) for word in words), cwd=here, timeout=90)
    assert time.monotonic() - began < LONGEST_S
    assert done.returncode == 2, done
    assert f"{dead} (fuse of host:/gone) does not answer within 5 s" in done.stderr
    assert f"umount -f -l {dead}" in done.stderr


def test_other_targets_work_and_doctor_names_it(dead: Path, here: Path) -> None:
    done = iopstui("run", str(here), *JOB, "--set", "runtime=1", cwd=here, timeout=90)
    assert done.returncode == 0, done
    done = iopstui("doctor", cwd=here, timeout=90)
    assert "no answer from" in done.stdout
    assert "umount -f -l" in " ".join(done.stdout.split())


def test_a_job_file_that_names_a_file_there(dead: Path, here: Path) -> None:
    (here / "own.fio").write_text(f"[one]\nrw=read\nsize=1m\nfilename={dead}/x\n")
    began = time.monotonic()
    done = iopstui("run", "--job", "own.fio", cwd=here, timeout=90)
    assert time.monotonic() - began < LONGEST_S
    assert done.returncode == 2, done
    assert "does not answer" in done.stderr
