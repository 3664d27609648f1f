"""However a screen ends: the terminal is as before, no fio goes on, the exit code says it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from program import UNHURRIED, family, fio_at_work, gone
from screen import WITHIN_S, screen

from iopstui.safety.signals import STOP_SIGNALS

LIVE = ("live", ".", "--job", "randread-4k", "--set", "runtime=60", "--size", "16m",
        *UNHURRIED)  # fmt: skip
NAMED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
         signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def test_whatever_ends_a_process_by_default_is_a_wish_to_end() -> None:
    assert {*NAMED, signal.SIGPROF, signal.SIGIO, signal.SIGXCPU, signal.SIGABRT,
            signal.SIGRTMIN + 1, signal.SIGRTMAX} <= set(STOP_SIGNALS)  # fmt: skip
    assert not {signal.SIGKILL, signal.SIGSEGV, signal.SIGTSTP, signal.SIGCHLD} & set(STOP_SIGNALS)


def test_a_signal_while_fio_runs(here: Path) -> None:
    with screen(here, *LIVE) as one:
        fio_at_work(one.process.pid)
        below = family(one.process.pid)
        one.shows("Device (iostat)")
        one.process.send_signal(NAMED[0])
        assert one.end() == 130
        assert one.given_back
        assert gone(below) == []
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_file_that_waits_for_the_next_run_is_removed(
    number: signal.Signals, here: Path
) -> None:
    words = ("live", ".", "--job", "randread-4k", "--set", "runtime=1", "--size", "4m")
    with screen(here, *words, *UNHURRIED) as one:
        one.shows("r runs it again")
        assert len(list(here.iterdir())) == 1
        below = family(one.process.pid)
        one.process.send_signal(number)
        one.process.wait(timeout=WITHIN_S)
        assert gone(below) == []
        one.read()
    assert list(here.iterdir()) == []
    last = one.words.rpartition("runs on ")[2].splitlines()
    told = len(last) > 2 and "IOPS" in last[1] and "randread 4k" in last[2]
    assert told == (number != signal.SIGKILL), "a table of what was run stays in the terminal"


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ((), signal.SIGTERM),
        (("replay", "demo"), signal.SIGQUIT),
        (("lesson", "1", "."), signal.SIGRTMIN + 3),
    ],
    ids=["start", "replay", "lesson"],
)
def test_a_signal_in_another_screen(words: tuple[str, ...], number: int, here: Path) -> None:
    with screen(here, *words) as one:
        one.until(lambda: any(word in one.words for word in ("Quit", "help", "Esc")))
        one.process.send_signal(number)
        assert one.end() == 130
        assert one.given_back
    assert list(here.iterdir()) == []


def test_a_signal_while_the_terminal_is_being_set_up(here: Path) -> None:
    with screen(here, *LIVE) as one:
        one.until(lambda: one.seen)
        one.process.send_signal(signal.SIGUSR1)
        assert one.end() == 130
        assert one.given_back
    assert list(here.iterdir()) == []


def test_several_signals_of_several_kinds(here: Path) -> None:
    with screen(here, *LIVE) as one:
        fio_at_work(one.process.pid)
        below = family(one.process.pid)
        for number in NAMED:
            one.process.send_signal(number)
        assert one.end() == 130
        assert one.given_back
        assert gone(below) == []
    assert list(here.iterdir()) == []


def test_suspended_and_resumed_then_ended(here: Path) -> None:
    with screen(here, *LIVE) as one:
        fio_at_work(one.process.pid)
        one.shows("Device (iostat)")
        one.process.send_signal(signal.SIGTSTP)
        one.until(lambda: os.waitpid(one.process.pid, os.WNOHANG | os.WUNTRACED)[0])
        one.read_all()
        assert one.given_back
        shown = len(one.seen)
        one.process.send_signal(signal.SIGCONT)
        one.until(lambda: "Device (iostat)" in one.seen[shown:])
        one.process.send_signal(signal.SIGQUIT)
        assert one.end() == 130
        assert one.given_back


def test_a_terminal_that_is_closed_ends_it_and_fio(here: Path) -> None:
    with screen(here, *LIVE) as one:
        fio_at_work(one.process.pid)
        below = family(one.process.pid)
        os.close(one.master)
        os.close(one._slave)
        assert one.process.wait(60) == 130
        assert gone(below) == []
    assert list(here.iterdir()) == []


def test_q_is_no_interruption(here: Path) -> None:
    with screen(here, "replay", "demo") as one:
        one.shows("help")
        one.type(b"q")
        assert one.end() == 0
        assert one.given_back


def test_a_packet_of_keys_is_taken_as_typed(here: Path) -> None:
    with screen(here, "live", ".", "--size", "16m") as one:
        one.shows("no job running")
        one.type(b":rwmixread=7x\x7f0\rq")
        assert one.end() == 0
        assert "rwmixread=70" in one.words and one.given_back


def test_bytes_that_are_no_text_are_no_crash(here: Path) -> None:
    with screen(here, "replay", "demo") as one:
        one.shows("help")
        one.type(b"\xe4\xff\x80\x1b]0;title\x07\x1b[999;999Hq\x1b[200~qq\x1b[201~q")
        assert one.end() == 0
        assert one.given_back
