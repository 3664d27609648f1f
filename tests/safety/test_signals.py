from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from iopstui.cli import main
from iopstui.errors import EXIT_INTERRUPTED, EXIT_USAGE
from iopstui.linux.counters import signal_flag
from iopstui.safety import signals, streams
from iopstui.safety.signals import (
    SAME_SIGNAL_S,
    STOP_SIGNALS,
    StopSignals,
    handle_stop_signals,
    interrupt,
    repeat_lost_interrupts,
)

WITHIN_S = 60.0
"""Reached only on failure."""


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    kept = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def handler(number: int, frame: object) -> None:
    raise AssertionError("no signal is sent here")


def test_what_nohup_ignores_stays_ignored_but_not_an_interrupt() -> None:
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    before = handle_stop_signals(handler)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN and signal.SIGHUP not in before
    assert signal.getsignal(signal.SIGINT) is handler
    assert before[signal.SIGINT] is signal.SIG_IGN


def test_what_there_was_before_is_given_back() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    before = handle_stop_signals(handler)
    assert before[signal.SIGTERM] is signal.SIG_DFL
    handle_stop_signals(signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_comes_twice_at_once_does_not_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(signals.time, "monotonic", lambda: now[0])
    did: list[str] = []
    StopSignals(lambda: did.append("stop"), lambda: did.append("kill"))
    for seconds in (0.0, 0.0, SAME_SIGNAL_S / 2):
        now[0] = 100.0 + seconds
        signal.raise_signal(signal.SIGINT)
    assert did == ["stop"], "as timeout(1) sends it"
    now[0] = 100.01 + SAME_SIGNAL_S
    signal.raise_signal(signal.SIGTERM)
    assert did == ["stop", "kill"]


def test_a_signal_behind_the_end_changes_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C is pressed twice: the first one has ended the program before the second arrives."""
    did: list[object] = []
    monkeypatch.setattr(signal_flag, "_disabled", False)
    monkeypatch.setattr(sys, "argv", ["iopstui", "run", "--no-such-option"])
    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: did.append("undone"))
    monkeypatch.setattr(os, "_exit", did.append)
    last: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", last.append)
    monkeypatch.setattr(streams, "drop_stuck", lambda: did.append("not waited for"))
    assert main() == EXIT_USAGE
    interrupt(signal.SIGINT, None)  # called by a handler that has been replaced meanwhile
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        assert callable(signal.getsignal(number))
        signal.raise_signal(number)
    assert did == ["undone", EXIT_USAGE] * 3
    last[-1]()
    assert did[-1] == "not waited for"
    # Python's own end would set other signals to their default
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


class Finalized:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_amid_a_finalizer_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reports an exception in a finalizer, and continues."""
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    handle_stop_signals(interrupt)
    repeat_lost_interrupts()
    with pytest.raises(KeyboardInterrupt):
        Finalized().__doc__  # noqa: B018
        time.sleep(WITHIN_S)
    assert told == []


def test_an_import_is_not_broken_off_amid_python_s_own_steps() -> None:
    """Otherwise the import locks would stay locked."""
    handle_stop_signals(interrupt)
    steps = "signal.raise_signal(signal.SIGTERM)\ndid.append('lock released')"
    did: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        code = compile(steps, "<frozen importlib._bootstrap>", "exec")
        exec(code, {"signal": signal, "did": did})
        time.sleep(WITHIN_S)
    assert did == ["lock released"]


AMID_A_CLASS = """
import os, signal, sys
from iopstui.cli import program
class Named:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(10000))
def load(*arguments):
    class Event:
        one = Named()
program._main = load
sys.argv = ["iopstui"]
sys.exit(program.main())
"""


def test_a_signal_while_a_class_is_being_made_is_no_error_of_ours() -> None:
    """Python 3.10 and 3.11 raise a RuntimeError instead of the interrupt."""
    done = subprocess.run(
        [sys.executable, "-c", AMID_A_CLASS], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (EXIT_INTERRUPTED, "iopstui: interrupted.\n")


WHILE_LOADED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "iopstui.cli.program":
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Finder())
# what runs in the background is started with it ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal({ignored}, signal.SIG_IGN)
sys.argv = ["iopstui", "--version"]
from iopstui.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("number", "ignored", "ends"),
    [
        (signal.SIGINT, signal.SIGHUP, (EXIT_INTERRUPTED, "iopstui: interrupted.\n")),
        (signal.SIGTERM, signal.SIGHUP, (EXIT_INTERRUPTED, "iopstui: interrupted.\n")),
        (signal.SIGHUP, signal.SIGHUP, (0, "")),
    ],
    ids=["SIGINT", "SIGTERM", "ignored"],
)
def test_a_signal_while_the_program_is_being_loaded(
    number: int, ignored: int, ends: tuple[int, str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WHILE_LOADED.format(number=int(number), ignored=int(ignored))],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == ends
