"""No matter how a screen ends: terminal restored, no fio left, right exit code."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from program import UNHURRIED, child_processes, survivors, wait_for_fio_io
from screen import WITHIN_S, screen

from iopstui.safety.signals import STOP_SIGNALS

LIVE = ("live", ".", "--job", "randread-4k", "--set", "runtime=60", "--size", "16m",
        *UNHURRIED)  # fmt: skip
NAMED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
         signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM]  # fmt: skip


def test_stop_signals_include_all_that_end_a_process_by_default() -> None:
    assert {*NAMED, signal.SIGPROF, signal.SIGIO, signal.SIGXCPU, signal.SIGABRT,
            signal.SIGRTMIN + 1, signal.SIGRTMAX} <= set(STOP_SIGNALS)  # fmt: skip
    assert not {signal.SIGKILL, signal.SIGSEGV, signal.SIGTSTP, signal.SIGCHLD} & set(STOP_SIGNALS)


def test_a_signal_while_fio_runs(workdir: Path) -> None:
    with screen(workdir, *LIVE) as terminal:
        wait_for_fio_io(terminal.process.pid)
        below = child_processes(terminal.process.pid)
        terminal.wait_for_text("Device (iostat)")
        terminal.process.send_signal(NAMED[0])
        assert terminal.end() == 130
        assert terminal.is_restored
        assert survivors(below) == []
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_scratch_file_kept_for_the_next_run_is_removed(
    number: signal.Signals, workdir: Path
) -> None:
    args = ("live", ".", "--job", "randread-4k", "--set", "runtime=1", "--size", "4m")
    with screen(workdir, *args, *UNHURRIED) as terminal:
        terminal.wait_for_text("Run 1 ended")
        assert len(list(workdir.iterdir())) == 1
        below = child_processes(terminal.process.pid)
        terminal.process.send_signal(number)
        terminal.process.wait(timeout=WITHIN_S)
        assert survivors(below) == []
        terminal.read()
    assert list(workdir.iterdir()) == []
    last = terminal.text.rpartition("runs on ")[2].splitlines()
    shows_table = len(last) > 2 and "IOPS" in last[1] and "randread 4k" in last[2]
    assert shows_table == (number != signal.SIGKILL), (
        "a table of what was run stays in the terminal"
    )


@pytest.mark.parametrize(
    ("args", "number"),
    [
        ((), signal.SIGTERM),
        (("replay", "demo"), signal.SIGQUIT),
        (("lesson", "1", "."), signal.SIGRTMIN + 3),
    ],
    ids=["start", "replay", "lesson"],
)
def test_a_signal_in_another_screen(args: tuple[str, ...], number: int, workdir: Path) -> None:
    with screen(workdir, *args) as terminal:
        terminal.wait_until(lambda: any(text in terminal.text for text in ("Quit", "Help", "Esc")))
        terminal.process.send_signal(number)
        assert terminal.end() == 130
        assert terminal.is_restored
    assert list(workdir.iterdir()) == []


def test_a_signal_while_the_terminal_is_being_set_up(workdir: Path) -> None:
    with screen(workdir, *LIVE) as terminal:
        terminal.wait_until(lambda: terminal.output)
        terminal.process.send_signal(signal.SIGUSR1)
        assert terminal.end() == 130
        assert terminal.is_restored
    assert list(workdir.iterdir()) == []


def test_several_signals_of_several_kinds(workdir: Path) -> None:
    with screen(workdir, *LIVE) as terminal:
        wait_for_fio_io(terminal.process.pid)
        below = child_processes(terminal.process.pid)
        for number in NAMED:
            terminal.process.send_signal(number)
        assert terminal.end() == 130
        assert terminal.is_restored
        assert survivors(below) == []
    assert list(workdir.iterdir()) == []


def test_a_suspended_screen_resumes_and_ends(workdir: Path) -> None:
    with screen(workdir, *LIVE) as terminal:
        wait_for_fio_io(terminal.process.pid)
        terminal.wait_for_text("Device (iostat)")
        terminal.process.send_signal(signal.SIGTSTP)
        process = psutil.Process(terminal.process.pid)
        terminal.wait_until(lambda: process.status() == psutil.STATUS_STOPPED)
        terminal.read_all()
        assert terminal.is_restored
        before = len(terminal.output)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_until(lambda: "Device (iostat)" in terminal.output[before:])
        terminal.process.send_signal(signal.SIGQUIT)
        assert terminal.end() == 130
        assert terminal.is_restored


def test_a_closed_terminal_ends_the_screen_and_fio(workdir: Path) -> None:
    with screen(workdir, *LIVE) as terminal:
        wait_for_fio_io(terminal.process.pid)
        below = child_processes(terminal.process.pid)
        os.close(terminal.master)
        os.close(terminal._slave)
        assert terminal.process.wait(60) == 130
        assert survivors(below) == []
    assert list(workdir.iterdir()) == []


def test_keys_sent_in_one_packet_arrive_in_order(workdir: Path) -> None:
    with screen(workdir, "live", ".", "--size", "16m") as terminal:
        terminal.wait_for_text("no job running")
        terminal.type(b":rwmixread=7x\x7f0\rq")
        assert terminal.end() == 0
        assert "rwmixread=70" in terminal.text and terminal.is_restored


def test_bytes_that_are_not_text_do_not_crash_the_screen(workdir: Path) -> None:
    with screen(workdir, "replay", "demo") as terminal:
        terminal.wait_for_text("Help")
        terminal.type(b"\xe4\xff\x80\x1b]0;title\x07\x1b[999;999Hq\x1b[200~qq\x1b[201~q")
        assert terminal.end() == 0
        assert terminal.is_restored
