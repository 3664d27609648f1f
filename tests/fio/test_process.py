"""How iopstui handles a started fio; the test plays the guard."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iopstui.errors import Missing
from iopstui.fio import process
from iopstui.fio.fence import Fence
from iopstui.fio.process import (
    MAX_UNREAD_BYTES,
    OUTPUT,
    FioProcess,
    GuardMessage,
    private_directory,
)
from iopstui.linux.process.limits import hint_for_limit


class Pipes:
    """In place of a guard: its reports, and the orders to it."""

    def __init__(self, command: list[str], **more: Any) -> None:
        self.command, self.more, self.pid = command, more, os.getpid()
        said, self.say = os.pipe()
        told, order = os.pipe()
        self.stdout, self.stdin = os.fdopen(said, "rb", 0), os.fdopen(order, "wb")
        self.told = told

    def speak(self, text: bytes) -> None:
        os.write(self.say, text)

    def end(self) -> None:
        os.close(self.say)

    def wait(self, timeout: float) -> int:
        raise subprocess.TimeoutExpired("guard", timeout)


Made = tuple[FioProcess, Pipes]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Made]:
    monkeypatch.setattr(process.subprocess, "Popen", Pipes)

    def make(deadline_s: float | None = None, **more: Any) -> Made:
        fio = FioProcess(["/usr/bin/fio", "x"], private_directory(), Fence(**more),
                         deadline_s=deadline_s)  # fmt: skip
        guard = fio._guard
        assert isinstance(guard, Pipes)
        return fio, guard

    return make


def test_a_guard_that_can_t_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(12, "Cannot allocate memory")

    def refused(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(process.subprocess, "Popen", refused)
    monkeypatch.setattr(process.sys, "executable", "/usr/bin/python")
    private = private_directory()
    with pytest.raises(Missing) as caught:
        FioProcess(["/usr/bin/fio"], private, Fence())
    told = "Cannot start /usr/bin/python, which guards fio: Cannot allocate memory."
    assert (caught.value.message, caught.value.hint) == (told, hint_for_limit(error, ""))
    assert not private.exists()


def test_what_the_guard_says(made: Callable[..., Made]) -> None:
    fio, guard = made()
    assert fio.read_guard() == [] and fio.pid is None and fio.jobs_alive() is None
    guard.speak(f"started {os.getpid()}\nstuck 7 8\nexi".encode())
    assert fio.read_guard() == [
        GuardMessage("started", (os.getpid(),)),
        GuardMessage("stuck", (7, 8)),
    ]
    assert fio.pid == os.getpid()
    guard.speak(b"ted -9\nover\n")
    assert fio.read_guard() == [GuardMessage("exited", (-9,)), GuardMessage("over")]
    guard.end()
    assert fio.read_guard() == [GuardMessage("gone")] and fio.read_guard() == []
    fio.close()
    assert not fio.private.exists()


@pytest.mark.parametrize(("over", "same", "killed"), [
    (False, True, [8, 77]), (True, True, []), (False, False, []),
])  # fmt: skip
def test_of_a_guard_that_was_killed_the_fio_is_killed(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch, over: bool, same: bool,
    killed: list[int],
) -> None:  # fmt: skip
    """fio is not killed if it has ended, because its number may be another process's by now."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(process.fio_guard, "send", lambda *one: sent.append(one))
    monkeypatch.setattr(process.fio_guard, "descendants", lambda pid: [8] if pid == 77 else [])
    born = 5
    monkeypatch.setattr(process, "start_time", lambda pid: born)
    fio, guard = made()
    guard.speak(b"started 77\n" + (b"over\n" if over else b""))
    fio.read_guard()
    born = 5 if same else 6
    guard.end()
    fio.read_guard()
    assert sent == [(pid, signal.SIGKILL) for pid in killed]
    fio.close()


def test_orders_go_to_the_guard(made: Callable[..., Made]) -> None:
    fio, guard = made()
    fio.send_order("stop")
    assert os.read(guard.told, 100) == b"stop\n"
    fio.close()
    fio.send_order("kill")


def test_output_is_read_once_and_given_back(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    punched: list[int] = []
    monkeypatch.setattr(process, "_punch", lambda fd, end: punched.append(end))
    fio, _ = made()
    with open(fio.private / OUTPUT, "ab", buffering=0) as file:
        assert fio.read_output() == b""
        file.write(b"one")
        assert fio.read_output() == b"one" and fio.read_output() == b""
        rest = b"x" * (process.PUNCH_HOLE_BYTES - 4)
        file.write(rest)
        assert fio.read_output() == rest and punched == []
        file.write(b"y")
        assert fio.read_output() == b"y" and punched == [process.PUNCH_HOLE_BYTES]
        file.write(b"z")
        assert fio.read_output() == b"z" and len(punched) == 1
    fio.close()


def test_fio_s_main_process_gets_room_for_what_nobody_has_read(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    """prlimit(2): the fence's limit on file sizes is meant for the jobs only."""
    limits: list[Any] = []

    def prlimit(pid: int, kind: int, new: tuple[int, int] | None = None) -> tuple[int, int]:
        assert (pid, kind) == (os.getpid(), resource.RLIMIT_FSIZE)
        limits.extend([new] if new else [])
        return 1, 10**15

    monkeypatch.setattr(process.resource, "prlimit", prlimit)
    fio, guard = made(fsize=1000)
    with open(fio.private / OUTPUT, "ab", buffering=0) as file:
        file.write(b"a")
        fio.read_output()
        assert limits == [], "it has not begun"
        guard.speak(f"started {os.getpid()}\n".encode())
        fio.read_guard()
        file.write(b"a")
        fio.read_output()
        assert limits == [(MAX_UNREAD_BYTES, 10**15)]
        fio._offset = MAX_UNREAD_BYTES // 2 - 2
        os.truncate(fio.private / OUTPUT, fio._offset)
        file.write(b"b")
        fio.read_output()
        assert len(limits) == 1
        file.write(b"b")
        fio.read_output()
        assert limits[1:] == [(MAX_UNREAD_BYTES * 2, 10**15)]
    fio.close()
    bare, guard = made()
    guard.speak(f"started {os.getpid()}\n".encode())
    bare.read_guard()
    (bare.private / OUTPUT).write_bytes(b"a")
    assert bare.read_output() == b"a" and len(limits) == 2, "no limit, so none to raise"
    bare.close()


def test_the_last_lines_that_fio_wrote(made: Callable[..., Made]) -> None:
    fio, _ = made()
    assert fio.messages() == []
    (fio.private / "stdout").write_bytes(b"a\n \n\xff\n")
    (fio.private / "stderr").write_text("".join(f"{n}\n" for n in range(199)))
    assert fio.messages() == ["\ufffd", *map(str, range(199))]
    (fio.private / "stderr").write_text("x" * 70000 + "\nlast\n")
    *_, cut, last = fio.messages()
    assert (len(cut), last) == (65536 - len("\nlast\n"), "last")
    fio.close()


def test_the_guard_is_told_that_we_live_and_is_continued(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(process.fio_guard, "send", lambda *one: sent.append(one))
    now = [100.0]
    monkeypatch.setattr(process.time, "monotonic", lambda: now[0])
    fio, guard = made(deadline_s=60.0)
    assert guard.command[guard.command.index("--deadline") + 1] == "60.0"
    for now[0] in (101.0, 105.0, 106.0, 110.0):
        fio.send_heartbeat()
    assert os.read(guard.told, 99) == b"alive\nalive\n"
    assert sent == [(guard.pid, signal.SIGCONT)] * 2
    fio.close()


def test_of_messages_without_end_the_last_are_kept(made: Callable[..., Made]) -> None:
    """Endless messages must not be kept in memory or on disk."""
    fio, guard = made()
    path = fio.private / "stderr"
    path.write_bytes(b"fio: a complaint\n" * (3 << 16) + b"fio: the last one\n")
    written = path.stat().st_blocks * 512
    guard.speak(b"started 4194304\n")
    fio.read_guard()
    assert fio.read_output() == b""
    assert path.stat().st_blocks * 512 < 256 << 10 < 3 << 20 < written
    assert fio.messages()[-1] == "fio: the last one" and len(fio.messages()) == 200
    fio.close()


def test_where_there_is_no_room(made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
                                ) -> None:  # fmt: skip
    fio, _ = made()
    place = str(fio.private.parent)
    for blocks, free, told in ((9, 15, place), (9, 16, ""), (0, 0, "")):
        room = SimpleNamespace(f_blocks=blocks, f_bavail=free, f_frsize=4096)
        monkeypatch.setattr(process.os, "fstatvfs", lambda fd, room=room: room)
        assert fio.full_directory() == told
    fio.close()
    monkeypatch.undo()
    assert fio.full_directory() == ""


def test_how_the_guard_is_started(made: Callable[..., Made], tmp_path: Path) -> None:
    fio, guard = made()
    assert guard.command[1:3] == ["-I", "-S"]
    place = guard.command.index(str(process.fio_guard.__file__))
    assert guard.command[place + 1] == str(fio.private)
    assert guard.command[-3:] == ["--", "/usr/bin/fio", "x"]
    assert guard.more["start_new_session"] is True and guard.more["pass_fds"] == ()
    assert (guard.more["stdin"], guard.more["stdout"], guard.more["stderr"]) == (
        subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL
    )  # fmt: skip
    assert (guard.more["env"], guard.more["cwd"]) == (None, None)
    fio.close()
    own = FioProcess(["fio"], private_directory(), Fence(), {"A": "1"}, tmp_path,
                     [tmp_path / "s"], [5])  # fmt: skip
    guard = own._guard
    assert isinstance(guard, Pipes)
    assert guard.command[-3:] == [str(tmp_path / "s"), "--", "fio"]
    more = guard.more
    assert (more["env"], more["cwd"], more["pass_fds"]) == ({"A": "1"}, tmp_path, (5,))
    own.close()
