"""Bad input: the message says what, why and what to do; the exit code is the documented one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from program import UNHURRIED, command, environment, iopstui


def assert_refused(
    code: int, messages: tuple[str, ...], workdir: Path, *arguments: str, **more: str
) -> None:
    before = sorted(workdir.rglob("*"))
    result = iopstui(*arguments, cwd=workdir, **more)
    assert result.returncode == code, result.stderr
    for message in messages:
        assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(workdir.rglob("*")) == before, "nothing lost, nothing left"


@pytest.mark.parametrize(
    ("code", "messages", "arguments"),
    [
        (2, ("No shipped job or file",), ("run", "--job", "nosuch")),
        (2, ("does not exist",), ("run", "--job", "./nosuch.fio")),
        (2, ("The file none.json does not exist", "fio's JSON"), ("report", "none.json")),
        (
            2,
            ("The file none.iops does not exist", "replay demo"),
            ("replay", "none.iops", "--format", "csv"),
        ),
        (2, ("The file none does not exist", "Check its name"), ("merge", "none", "none2")),
        (2, ("The file none does not exist", "--trace"), ("run", ".", "--replay", "none")),
        (2, ("does not exist",), ("run", "/nowhere/at/all", "--job", "randread-4k")),
        (2, ("does not exist", "iopstui devices"), ("run", "/dev/nosuch", "--job", "randread-4k")),
        (2, ("character device",), ("run", "/dev/null", "--job", "randread-4k")),
        (2, ("OPTION=VALUE",), ("run", "--job", "randread-4k", "--set", "iodepth")),
        (2, ("bogus",), ("run", "--job", "randread-4k", "--set", "bogus=1")),
        (2, ("(the job randread-4k with bs=x)",), ("run", "--job", "randread-4k", "--set", "bs=x")),
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
def test_bad_input_is_refused_with_a_message_and_an_exit_code(
    code: int, messages: tuple[str, ...], arguments: tuple[str, ...], workdir: Path
) -> None:
    assert_refused(code, messages, workdir, *arguments)


@pytest.mark.parametrize(
    ("content", "message"),
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
def test_bad_job_files_are_refused(content: bytes, message: str, workdir: Path) -> None:
    (workdir / "my.fio").write_bytes(content)
    assert_refused(2, (message,), workdir, "run", "--job", "my.fio")


def test_without_fio(workdir: Path) -> None:
    messages = ("apt install fio", "dnf", "zypper", "pacman", "apk")
    assert_refused(5, messages, workdir, "run", "--job", "randread-4k", PATH=str(workdir))
    messages = ("no-such-fio, which IOPSTUI_FIO names", "unset IOPSTUI_FIO")
    assert_refused(5, messages, workdir, "run", "--job", "randread-4k", IOPSTUI_FIO="no-such-fio")


def test_a_fio_too_old(workdir: Path, tmp_path: Path) -> None:
    old = tmp_path / "fio"
    old.write_text("#!/bin/sh\necho fio-2.21\n")
    old.chmod(0o755)
    assert_refused(
        5, ("fio-2.21", "3.1"), workdir, "run", "--job", "randread-4k", IOPSTUI_FIO=str(old)
    )


def test_no_scratch_file_in_a_read_only_directory(workdir: Path) -> None:
    messages = ("Refusing to create a scratch file in /proc", "Choose a directory you can write to")
    assert_refused(2, messages, workdir, "run", "/proc", "--job", "randread-4k")


def test_a_mistyped_device_inside_a_job_file(workdir: Path) -> None:
    (workdir / "my.fio").write_text("[x]\nrw=randwrite\nsize=1m\nfilename=/dev/nosuchdisk\n")
    assert_refused(2, ("/dev/nosuchdisk", "does not exist"), workdir, "run", "--job", "my.fio")
    assert not os.path.exists("/dev/nosuchdisk")


def test_a_dumb_terminal(workdir: Path) -> None:
    script = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    import sys

    from program import command, environment

    result = subprocess.run(
        [sys.executable, "-c", script, *command("live")],
        cwd=workdir, env=environment(workdir.parent, TERM="dumb"), capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert result.returncode == 2
    assert "TERM=dumb" in result.stdout


def test_a_locale_that_is_not_utf_8(workdir: Path) -> None:
    result = iopstui(
        "run", "--job", "measuring-iops", "--set", "runtime=1", "--size", "256k", *UNHURRIED,
        cwd=workdir, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.isascii() and result.stderr.isascii()


@pytest.mark.parametrize(
    "args",
    [
        ("run", "--job", "randread-4k"),
        ("doctor",),
        ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2"),
    ],
)
def test_a_deleted_current_directory_is_refused(args: tuple[str, ...], tmp_path: Path) -> None:
    removed = tmp_path / "gone"
    removed.mkdir()
    result = subprocess.run(
        ["bash", "-c", 'rmdir "$0"; exec "$@"', str(removed), *command(*args)], cwd=removed,
        env=environment(tmp_path), capture_output=True, text=True, stdin=subprocess.DEVNULL,
        timeout=60,
    )  # fmt: skip
    assert result.returncode == 2
    assert result.stderr.startswith("iopstui: Cannot determine the current directory")
