"""Each bad input: one sentence that says what, why and what to do, and the documented code."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from program import UNHURRIED, command, environment, iopstui


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def refused(code: int, words: tuple[str, ...], here: Path, *arguments: str, **more: str) -> None:
    before = sorted(here.rglob("*"))
    done = iopstui(*arguments, cwd=here, **more)
    assert done.returncode == code, done.stderr
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(here.rglob("*")) == before, "nothing lost, nothing left"


@pytest.mark.parametrize(
    ("code", "words", "arguments"),
    [
        (2, ("No shipped job or file",), ("run", "--job", "nosuch")),
        (2, ("does not exist",), ("run", "--job", "./nosuch.fio")),
        (2, ("does not exist",), ("run", "/nowhere/at/all", "--job", "randread-4k")),
        (2, ("does not exist", "iopstui devices"), ("run", "/dev/nosuch", "--job", "randread-4k")),
        (2, ("character device",), ("run", "/dev/null", "--job", "randread-4k")),
        (2, ("OPTION=VALUE",), ("run", "--job", "randread-4k", "--set", "iodepth")),
        (2, ("bogus",), ("run", "--job", "randread-4k", "--set", "bogus=1")),
        (2, ("iodepth=banana",), ("run", "--job", "randread-4k", "--set", "iodepth=banana")),
        (3, ("engine",), ("run", "--job", "randread-4k", "--set", "ioengine=nosuch")),
        (2, ("not a size",), ("run", "--job", "randread-4k", "--size", "large")),
        (2, ("free",), ("run", "--job", "randread-4k", "--size", "900t")),
        (2, ("number of seconds",), ("run", "--job", "randread-4k", "--interval", "0")),
        (2, ("needs a terminal", "iopstui run"), ("live",)),
        (2, ("needs a terminal",), ()),
        (2, ("No shipped job",), ("jobs", "nosuch")),
        (2, ("there is no command", "usage: iopstui"), ("nosuch",)),
    ],
)
def test_words_and_codes(
    code: int, words: tuple[str, ...], arguments: tuple[str, ...], here: Path
) -> None:
    refused(code, words, here, *arguments)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"   \n\n", "empty"),
        (b"\x7fELF\x00\x01\x02", "binary data"),
        (b"# only a comment\n", "no job section"),
        (b"[global]\nbs=4k\n", "no job section"),
        (b"bs=4k\n", "before the first"),
        (b"[x]\nbogus=1\n", "bogus"),
        (b"[x]\nrw=read\nsize=1m\ndirectory=/no/such/place\n", "/no/such/place"),
    ],
)
def test_job_files_that_are_none(content: bytes, word: str, here: Path) -> None:
    (here / "my.fio").write_bytes(content)
    refused(2, (word,), here, "run", "--job", "my.fio")


def test_without_fio(here: Path) -> None:
    words = ("apt install fio", "dnf", "zypper", "pacman", "apk")
    refused(5, words, here, "run", "--job", "randread-4k", PATH=str(here))
    words = ("no-such-fio, which IOPSTUI_FIO names", "unset IOPSTUI_FIO")
    refused(5, words, here, "run", "--job", "randread-4k", IOPSTUI_FIO="no-such-fio")


def test_a_fio_too_old(here: Path, tmp_path: Path) -> None:
    old = tmp_path / "fio"
    old.write_text("#!/bin/sh\necho fio-2.21\n")
    old.chmod(0o755)
    refused(5, ("fio-2.21", "3.1"), here, "run", "--job", "randread-4k", IOPSTUI_FIO=str(old))


def test_a_directory_without_the_right_to_write(here: Path) -> None:
    words = ("Refusing to create a scratch file in /proc", "Choose a directory you can write to")
    refused(2, words, here, "run", "/proc", "--job", "randread-4k")


def test_a_mistyped_device_inside_a_job_file(here: Path) -> None:
    (here / "my.fio").write_text("[x]\nrw=randwrite\nsize=1m\nfilename=/dev/nosuchdisk\n")
    refused(2, ("/dev/nosuchdisk", "does not exist"), here, "run", "--job", "my.fio")
    assert not os.path.exists("/dev/nosuchdisk")


def test_a_dumb_terminal(here: Path) -> None:
    script = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    import sys

    from program import command, environment

    done = subprocess.run(
        [sys.executable, "-c", script, *command("live")],
        cwd=here, env=environment(here.parent, TERM="dumb"), capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "TERM=dumb" in done.stdout


def test_a_locale_that_is_not_utf_8(here: Path) -> None:
    done = iopstui(
        "run", "--job", "measuring-iops", "--set", "runtime=1", "--size", "4m", *UNHURRIED,
        cwd=here, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() and done.stderr.isascii()


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--job", "randread-4k"),
        ("doctor",),
        ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2"),
    ],
)
def test_a_current_directory_that_is_gone(words: tuple[str, ...], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["bash", "-c", 'rmdir "$0"; exec "$@"', str(gone), *command(*words)], cwd=gone,
        env=environment(tmp_path), capture_output=True, text=True, stdin=subprocess.DEVNULL,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("iopstui: Cannot determine the current directory")
