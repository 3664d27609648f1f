"""The guard by itself, around a shell instead of fio: what it starts, obeys, prints and leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopstui.fio import guard as fio_guard
from iopstui.fio.guard import CHECKS_PER_DEADLINE, GRACE_S, KILL_TIMEOUT_S, Guard

STATUS = "grep -E '^Sig(Blk|Ign)' /proc/self/status"


class Run:
    """A guard around ``sh -c script``, with its private directory and a scratch directory."""

    def __init__(self, base: Path, *command: str, spec: str = "-", held: bool = False,
                 deadline: str = "") -> None:  # fmt: skip
        self.private, self.scratch = base / "private", base / "scratch"
        for place in (self.private, self.scratch):
            place.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", fio_guard.__file__, *["--hold"] * held,
             *(["--deadline", deadline] if deadline else []),
             str(self.private), spec,
             str(self.scratch), "--", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None and self.process.stdin is not None
        self.said, self.orders = self.process.stdout, self.process.stdin
        first = self.said.readline()
        self.pid = -1 if held else int(first.removeprefix("started "))

    def order(self, word: str) -> None:
        self.orders.write(word + "\n")
        self.orders.flush()

    def rest(self) -> list[str]:
        lines = self.said.read().splitlines()
        assert self.process.wait(20) == 0
        return lines

    def text(self, name: str) -> str:
        return (self.private / name).read_text()

    def ready(self) -> None:
        """Wait until the script has printed something."""
        while not (self.private / "stdout").exists() or not self.text("stdout"):
            os.sched_yield()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[type[Run]]:
    begun: list[Run] = []

    class Kept(Run):
        def __init__(self, script: str) -> None:
            super().__init__(tmp_path, "sh", "-c", script)
            begun.append(self)

    yield Kept
    for one in begun:
        one.process.kill()
        one.process.wait()
        one.said.close()
        with contextlib.suppress(OSError):
            one.orders.close()


def test_what_it_starts_has_its_streams_in_files_and_nothing_else_open(run: type[Run]) -> None:
    one = run(f"cat; readlink /proc/$$/fd/0; ls /proc/$$/fd; echo bad >&2; {STATUS}; exit 3")
    assert one.rest() == ["exited 3", "over"]
    stdin, *numbers, blocked, ignored = one.text("stdout").splitlines()
    assert (stdin, sorted(numbers)) == ("/dev/null", ["0", "1", "2"])
    assert one.text("stderr") == "bad\n"
    for name in ("stdout", "stderr"):
        assert stat.S_IMODE((one.private / name).stat().st_mode) == 0o600
    # with SIGPIPE's default action fio would be killed before its jobs
    pipe = 1 << signal.SIGPIPE - 1
    mine = {1 << number - 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    assert int(blocked.split()[1], 16) & (pipe | sum(mine)) == 0
    assert int(ignored.split()[1], 16) & (pipe | sum(mine)) == pipe
    assert one.private.exists() and one.scratch.exists(), "iopstui removes them itself"


def test_whatever_is_left_behind_is_killed(run: type[Run]) -> None:
    one = run("setsid sleep 100 & echo $!; setsid sh -c 'sleep 100 & wait' & exit 0")
    assert one.rest() == ["exited 0", "over"]
    assert not Path(f"/proc/{one.text('stdout').strip()}").exists()


@pytest.mark.parametrize("word", ["stop", "kill"])
def test_an_order_is_obeyed(run: type[Run], word: str) -> None:
    one = run("trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done")
    one.ready()
    one.order(word)
    assert one.rest() == [{"stop": "exited 7", "kill": "exited -9"}[word], "over"]
    assert one.private.exists()


def test_a_stopped_one_is_woken_for_its_end(run: type[Run]) -> None:
    one = run("trap 'exit 7' INT; echo ready; kill -STOP $$; while :; do sleep 0.01; done")
    one.ready()
    while fio_guard.state(one.pid) != b"T":
        os.sched_yield()
    one.order("stop")
    assert one.rest() == ["exited 7", "over"]


def test_when_iopstui_has_died_nothing_is_left(run: type[Run]) -> None:
    one = run("trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done")
    one.ready()
    one.orders.close()
    assert one.rest() == ["exited 7", "over"]
    assert not one.private.exists() and not one.scratch.exists()


def test_what_can_t_be_executed_is_said(tmp_path: Path) -> None:
    one = Run(tmp_path, "/none/at-all")
    with contextlib.closing(one.orders):
        assert one.rest() == ["exited 127", "over"]
    assert one.text("stderr") == "fio: /none/at-all: No such file or directory\n"


def test_without_its_fence_nothing_is_executed(tmp_path: Path) -> None:
    gone = "kind none\nown /none/at-all"
    one = Run(tmp_path, "sh", "-c", "echo ran", spec=gone)
    with contextlib.closing(one.orders):
        assert one.rest() == ["exited 127", "over"]
    assert (one.text("stdout"), one.text("stderr")) == (
        "", "fio: sh: No such file or directory\n"
    )  # fmt: skip


# -- its decisions


class Machine:
    """Processes 10 (fio) and 11; records the signals they are sent, and when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.sent: list[tuple[int, int]] = []
        self.lines: list[str] = []
        self.below = [10, 11]
        self.data = b""
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(fio_guard, "report_line", self.lines.append)
        monkeypatch.setattr(fio_guard, "descendants", self._descendants)
        monkeypatch.setattr(fio_guard.os, "kill", lambda *one: self.sent.append(one))
        monkeypatch.setattr(fio_guard.os, "read", self._read)
        monkeypatch.setattr(fio_guard, "state", lambda pid: b"R")
        self.guard = Guard(10, [])

    def _descendants(self, pid: int) -> list[int]:
        return {10: [11], os.getpid(): self.below}[pid]

    def _read(self, fd: int, size: int) -> bytes:
        assert fd == 0
        return self.data

    def order(self, data: bytes) -> None:
        self.data = data
        self.guard.order()

    def enforce(self, at: float) -> list[tuple[int, int]]:
        self.now, self.sent = at, []
        self.guard.enforce()
        return self.sent


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


KILLED = [(11, signal.SIGKILL), (10, signal.SIGKILL)]


def test_a_stop_leaves_fio_the_time_for_its_last_document(machine: Machine) -> None:
    guard = machine.guard
    assert guard.timeout() is None and machine.enforce(1000.0) == []
    machine.now = 100.0
    machine.order(b"stop\n")
    assert machine.sent == [(10, signal.SIGINT), (10, signal.SIGCONT), (11, signal.SIGCONT)]
    assert (guard.listening, guard.orphaned) == (True, False)
    machine.sent = []
    machine.now = 100.5
    machine.order(b"stop\n")
    assert machine.sent == [], "once"
    assert guard.timeout() == 0.2
    machine.now = 100.0 + GRACE_S - 0.1
    assert guard.timeout() == pytest.approx(0.1)
    machine.now = 100.0 + GRACE_S
    assert guard.timeout() == 0.02
    assert machine.enforce(100.0 + GRACE_S - 0.01) == []
    assert machine.enforce(100.0 + GRACE_S) == KILLED, "fio's main process last"


def test_a_kill_leaves_none(machine: Machine) -> None:
    machine.order(b"stop\nkill\n")
    assert machine.sent == [] and machine.enforce(100.0) == KILLED


def test_one_that_has_ended_gets_no_signal(machine: Machine) -> None:
    machine.guard.exit_code = 0
    machine.guard.kill_at = 90.0
    machine.order(b"stop\n")
    assert machine.sent == [] and machine.guard.kill_at == 90.0


def test_the_end_of_orders_is_a_stop(machine: Machine) -> None:
    machine.order(b"")
    assert machine.sent[0] == (10, signal.SIGINT)
    assert (machine.guard.listening, machine.guard.orphaned) == (False, True)


def silence(machine: Machine, *looks: float) -> list[tuple[int, int]]:
    """Let the guard look at each of these seconds, without any order or report. Returns the signals
    sent."""
    for machine.now in looks:
        machine.guard.watch_deadline(False)
    return machine.sent


@pytest.fixture
def watched(machine: Machine) -> Machine:
    machine.guard = Guard(10, [], 60.0)
    return machine


def test_silence_for_the_deadline_is_a_stop(watched: Machine) -> None:
    assert watched.guard.timeout() == 60.0 / CHECKS_PER_DEADLINE
    assert silence(watched, 115.0, 130.0, 145.0, 159.9) == [] and watched.lines == []
    assert silence(watched, 160.0)[0] == (10, signal.SIGINT)
    assert watched.lines == ["deadline"]
    assert watched.guard.timeout() == 0.2
    assert silence(watched, 300.0) and watched.lines == ["deadline"], "once"


def test_whatever_is_heard_begins_the_deadline_anew(watched: Machine) -> None:
    silence(watched, 115.0, 130.0, 145.0)
    watched.guard.watch_deadline(True)
    assert silence(watched, 160.0, 175.0, 190.0) == []


def test_a_pause_of_all_is_no_silence(watched: Machine) -> None:
    assert silence(watched, 4000.0) == []


def test_without_a_deadline_nobody_has_to_say_anything(machine: Machine) -> None:
    assert silence(machine, 1e6) == []


def test_its_deadline_ends_fio_though_iopstui_listens(tmp_path: Path) -> None:
    script = "trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done"
    one = Run(tmp_path, "sh", "-c", script, deadline="0.3")
    with contextlib.closing(one.orders):
        assert one.rest() == ["deadline", "exited 7", "over"]
    assert one.private.exists(), "iopstui may go on, and reads it"


def test_those_that_don_t_die_are_told_once_then_given_up(machine: Machine) -> None:
    machine.order(b"kill\n")
    machine.enforce(105.0)
    assert machine.lines == []
    machine.enforce(105.1)
    machine.enforce(106.0)
    assert machine.lines == ["stuck 10 11"]
    machine.enforce(100.0 + KILL_TIMEOUT_S)
    with pytest.raises(SystemExit) as end:
        machine.enforce(100.1 + KILL_TIMEOUT_S)
    assert end.value.code == 1


def test_directories_are_removed_for_an_iopstui_that_died(tmp_path: Path, machine: Machine) -> None:
    (tmp_path / "one" / "x").mkdir(parents=True)
    guard = Guard(10, [str(tmp_path / "none"), str(tmp_path / "one")])
    guard.clean()
    assert (tmp_path / "one").exists()
    guard.orphaned = True
    guard.clean()
    assert not (tmp_path / "one").exists()


def test_one_that_is_held_starts_at_the_instant_it_is_told(tmp_path: Path) -> None:
    one = Run(tmp_path, "sh", "-c", "echo ran", held=True)
    at_ns = time.monotonic_ns() + 20_000_000
    one.order(f"go {at_ns}")
    started, *rest = one.rest()
    word, _, when = started.split()
    assert word == "started" and at_ns <= int(when) < time.monotonic_ns()
    assert rest == ["exited 0", "over"] and one.text("stdout") == "ran\n"


@pytest.mark.parametrize("word", ["stop", "kill", None])
def test_one_that_is_held_and_not_wanted_starts_nothing(tmp_path: Path, word: str | None) -> None:
    one = Run(tmp_path, "sh", "-c", "echo ran", held=True)
    if word is None:
        one.orders.close()
    else:
        one.order(f"go {time.monotonic_ns() + 3600 * 10**9}")
        one.order(word)
    assert one.rest() == ["over"]
    # after an order iopstui removes the directories, or another run uses them
    left = word is not None
    assert (one.private.exists(), one.scratch.exists()) == (left, left)
