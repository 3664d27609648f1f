"""A fio that crashes, prints garbage, hangs, fills its disk or loses a job."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from machine import loop, mounted, sh
from program import events, iopstui, start, survivors, wait_for_fio


@pytest.fixture
def script(here: Path) -> Path:
    """The fake fio. Its first line names the Python of these tests, because env can't search PATH
    behind the fence."""
    text = Path(__file__).with_name("fake_fio.py").read_text()
    script = here.parent / "fake_fio.py"
    script.write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable}"))
    script.chmod(0o755)
    return script


def fake(script: Path, here: Path, how: str, code: str = "0") -> subprocess.CompletedProcess[str]:
    real = shutil.which("fio")
    assert real
    return iopstui("run", "--job", "randread-4k", "--size", "8m", "--set", "runtime=2",
                   cwd=here, IOPSTUI_FIO=str(script), FAKE_FIO=how, FAKE_FIO_REAL=real,
                   FAKE_FIO_CODE=code)  # fmt: skip


@pytest.mark.parametrize("how", ["garbage", "endless", "abort", "silent"])
@pytest.mark.parametrize("code", ["0", "1"])
def test_it_ends_in_a_sentence(how: str, code: str, here: Path, script: Path) -> None:
    done = fake(script, here, how, code)
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr
    assert "\x1b" not in done.stdout + done.stderr and "\x07" not in done.stderr
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert done.stderr.strip()
    assert list(here.iterdir()) == []


def test_a_fio_that_answers_nothing_can_be_stopped(here: Path, script: Path) -> None:
    real = shutil.which("fio")
    assert real
    process = start("run", "--job", "randread-4k", "--size", "8m", cwd=here, FAKE_FIO="deaf",
                    IOPSTUI_FIO=str(script), FAKE_FIO_REAL=real)  # fmt: skip
    time.sleep(3.0)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert time.monotonic() - asked < 3.0
    assert process.returncode in (1, 130)
    assert list(here.iterdir()) == []


def test_a_stopped_fio_shows_its_age_and_can_be_stopped(here: Path) -> None:
    process = start("run", "--job", "randread-4k", "--size", "8m", "--set", "runtime=60",
                    "--format", "jsonl", cwd=here)  # fmt: skip
    fio = wait_for_fio(process.pid)
    time.sleep(2.2)
    for one in fio:
        one.suspend()
    time.sleep(4.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert survivors(fio, 0.5) == []
    assert process.returncode == 130, err
    frames = [line for line in events(out) if line["event"] == "frame"]
    late = [frame for frame in frames if frame["fio"] is None]
    assert len(late) >= 2
    assert max(frame["fio_age_s"] for frame in late) > 2


def test_a_full_disk(here: Path) -> None:
    with loop(here / "disk.img") as node:
        sh("mkfs.ext4", "-q", node)
        job = here / "fill.fio"
        with mounted(node, here / "mnt") as place:
            job.write_text(f"[a]\nrw=write\nbs=64k\nfilename={place}/f\nfilesize=200m\n")
            done = iopstui("run", "--job", str(job), cwd=here)
            assert done.returncode == 1, done.stderr
            # it is stopped before the disk is full, by a file's limit or by the check of free space
            assert re.search("5 % (of the file system .*stays free|free space left)", done.stderr)
        job.unlink()


def test_no_memory(here: Path) -> None:
    job = here / "huge.fio"
    job.write_text("[a]\nrw=read\nioengine=null\niodepth=4096\nbs=1g\nsize=4t\nruntime=2\n")
    done = iopstui("run", "--job", str(job), "--size", "1g", cwd=here)
    job.unlink()
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr and done.stderr.strip()
