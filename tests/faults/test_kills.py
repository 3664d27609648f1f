"""However iopstui ends: no fio two seconds later, settings as before, nothing left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import termios
import time
from pathlib import Path

import psutil
import pytest
from machine import loop, mounted, sh
from program import command, environment, iopstui, start, survivors, wait_for_fio

LONG = ("--job", "randread-4k", "--set", "runtime=60")


def _affinity(node: str) -> str:
    return Path("/sys/block", Path(node).name, "queue/rq_affinity").read_text().strip()


def _below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


@pytest.mark.parametrize("seed", range(10))
def test_sigkill_at_a_random_moment(seed: int, here: Path) -> None:
    # from before fio starts to the middle of the run
    moment = random.Random(seed).uniform(0.2, 4.0)
    with loop(here / "disk.img") as node:
        before = _affinity(node)
        other = "2" if before != "2" else "0"
        process = start("run", node, *LONG, "--knob", f"rq_affinity={other}", cwd=here)
        time.sleep(moment)
        below = _below(process.pid)
        process.kill()
        process.communicate(timeout=15)
        assert survivors(below, 2.0) == []
        done = iopstui("doctor", cwd=here)
        assert _affinity(node) == before, done.stdout


@pytest.mark.parametrize("message", ["fio for", "iopstui for", "the kernel probe", "queue map"])
def test_a_killed_selftest(message: str, here: Path) -> None:
    place, loops = here / "place", sh("losetup", "--list", "--noheadings", "-O", "NAME")
    place.mkdir()
    process = start("selftest", str(place), cwd=here)
    assert process.stderr is not None
    while message not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(random.Random(message).uniform(0.5, 3.0))
    below = _below(process.pid)
    process.kill()
    process.communicate(timeout=15)
    assert survivors(below, 2.5) == []
    iopstui("doctor", cwd=here)
    assert list(place.iterdir()) == []
    assert sh("losetup", "--list", "--noheadings", "-O", "NAME") == loops


def test_the_guard_killed(here: Path) -> None:
    with loop(here / "disk.img") as node:
        process = start("run", node, *LONG, cwd=here)
        fio = wait_for_fio(process.pid)
        guard = next(p for p in _below(process.pid) if "fio/guard.py" in " ".join(p.cmdline()))
        guard.kill()
        process.communicate(timeout=20)
        assert survivors(fio, 2.0) == []
        assert process.returncode == 1


def test_fio_stopped_and_then_asked_to_end(here: Path) -> None:
    with loop(here / "disk.img") as node:
        process = start("run", node, *LONG, cwd=here)
        fio = wait_for_fio(process.pid)
        for one in fio:
            one.suspend()
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=15)
        assert survivors(fio, 2.0) == []
        assert process.returncode == 130


class Screen:
    """The live screen in a terminal of its own."""

    def __init__(self, here: Path, *words: str) -> None:
        self.master, self.slave = os.openpty()
        os.environ["COLUMNS"], os.environ["LINES"] = "120", "40"
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            command("live", *words), cwd=here, env=environment(here.parent, TERM="xterm"),
            stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
            preexec_fn=_controlling,
        )  # fmt: skip
        self.seen = b""

    def read_for(self, seconds: float, until: str = "") -> None:
        deadline = time.monotonic() + seconds
        os.set_blocking(self.master, False)
        while time.monotonic() < deadline:
            try:
                self.seen += os.read(self.master, 65536)
            except BlockingIOError:
                if until == "end" and self.process.poll() is not None:
                    return
                time.sleep(0.02)
            except OSError:
                return

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def as_before(self) -> bool:
        return termios.tcgetattr(self.slave) == self.before and (
            self.seen.count(b"\x1b[?1049l") >= self.seen.count(b"\x1b[?1049h") > 0
        )

    def close(self) -> None:
        for fd in (self.master, self.slave):
            try:
                os.close(fd)
            except OSError:
                continue


def _controlling() -> None:
    import fcntl

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # under nohup, the program would inherit that SIGHUP is ignored
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _screen_with_fio(here: Path, *words: str) -> tuple[Screen, list[psutil.Process]]:
    screen = Screen(here, *words)
    screen.read_for(4.0)
    fio = wait_for_fio(screen.process.pid)
    screen.read_for(1.0)
    return screen, fio


def test_quitting_leaves_the_terminal_as_it_was(here: Path) -> None:
    with loop(here / "disk.img") as node:
        screen, fio = _screen_with_fio(here, node, *LONG)
        screen.press(b"q")
        screen.read_for(8.0, until="end")
        assert screen.process.wait(timeout=5) in (0, 130)
        assert survivors(fio, 0.1) == []
        assert screen.as_before()
        screen.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_screen(number: signal.Signals, here: Path) -> None:
    with loop(here / "disk.img") as node:
        screen, fio = _screen_with_fio(here, node, *LONG)
        screen.process.send_signal(number)
        screen.read_for(8.0, until="end")
        screen.process.wait(timeout=5)
        assert survivors(fio, 2.0) == []
        assert screen.as_before()
        screen.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_impatient_second_signal(number: signal.Signals, here: Path) -> None:
    with loop(here / "disk.img") as node:
        screen, fio = _screen_with_fio(here, node, *LONG)
        for _ in range(3):
            screen.process.send_signal(number)
            screen.read_for(0.05)
        screen.read_for(8.0, until="end")
        screen.process.wait(timeout=5)
        assert survivors(fio, 2.0) == []
        assert screen.as_before()
        screen.close()


def test_a_closed_terminal(here: Path) -> None:
    with loop(here / "disk.img") as node:
        screen, fio = _screen_with_fio(here, node, *LONG)
        screen.close()
        assert survivors(fio, 2.5) == []
        screen.process.wait(timeout=10)


def test_a_job_that_hangs_in_the_kernel_lets_one_quit(here: Path) -> None:
    with loop(here / "disk.img", 64 << 20) as node:
        sh("mkfs.ext4", "-q", node)
        with mounted(node, here / "mnt") as place:
            words = (str(place), "--job", "randwrite-4k", "--set", "runtime=60", "--size", "8m")
            screen, fio = _screen_with_fio(here, *words)
            sh("fsfreeze", "--freeze", str(place))
            try:
                screen.read_for(2.5)
                asked = time.monotonic()
                screen.press(b"q")
                screen.read_for(10.0, until="end")
                took = time.monotonic() - asked
                code = screen.process.poll()
            finally:
                sh("fsfreeze", "--unfreeze", str(place))
            assert code is not None, "it did not end"
            assert b"hangs in the kernel" in screen.seen
            assert screen.as_before()
            assert took < 4.0
            assert survivors(fio, 3.0) == []
            deadline = time.monotonic() + 3
            while list(place.glob(".iopstui-*")) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert list(place.glob(".iopstui-*")) == []
            screen.close()
            # it clears the note of the scratch directory that the guard has removed
            assert iopstui("doctor", cwd=here).returncode == 0
