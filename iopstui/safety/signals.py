"""Turn every terminating signal into a request to stop, so that all changes are undone."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

from iopstui.linux.counters import signal_flag
from iopstui.safety import streams

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

REPEAT_S = 0.01
SAME_SIGNAL_S = 0.1
"""A second signal within this time counts as part of the first: timeout(1) sends a signal to the
process and then to its process group, and nobody presses Ctrl-C that fast."""
_IMPORT_MACHINERY = "<frozen importlib"
Handler = Callable[[int, "FrameType | None"], object]

_UNHANDLED = frozenset(
    getattr(signal, name)
    for name in (
        "SIGKILL", "SIGSTOP",  # can't be handled
        "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL",  # faults: the instruction would be executed again
        "SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH", "SIGTSTP", "SIGTTIN", "SIGTTOU",  # end nothing
        "SIGPIPE", "SIGXFSZ",  # the write fails instead, and says so
    )
)  # fmt: skip
STOP_SIGNALS = tuple(sorted(signal.valid_signals() - _UNHANDLED))
"""Signals whose default action ends the process: SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGALRM ..."""
_ALWAYS = (signal.SIGINT, signal.SIGTERM)
"""Signals that are handled even if they are ignored at the start: a shell starts background jobs
with SIGINT ignored, and a user who sends it anyway wants them to stop."""


def handle_stop_signals(handler: Handler | signal.Handlers) -> dict[int, object]:
    """Install ``handler`` for each of STOP_SIGNALS and return the previous handlers. Signals that
    the parent process ignores (SIGHUP under nohup) stay ignored."""
    before: dict[int, object] = {}
    for number in STOP_SIGNALS:
        now = signal.getsignal(number)
        if now is signal.SIG_IGN and number not in _ALWAYS:
            continue
        # the C library keeps some signals for itself
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, handler)
            before[number] = now
    return before


@contextlib.contextmanager
def handling_stop_signals(stop: Callable[[int], object]) -> Iterator[None]:
    """A context in which ``stop`` is called with the number of each stop signal, in the main
    thread."""

    def handle(number: int, frame: FrameType | None) -> None:
        streams.end_soon()
        stop(number)

    before = handle_stop_signals(handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            # a handler set in C can't be restored
            if handler is not None:
                signal.signal(number, handler)  # type: ignore[arg-type]


class StopSignals:
    """Stop signals of commands without a screen. The first signal lets fio write its last document
    (``stop``); the second does not wait for it (``kill``). Neither waits long for a reader of the
    output that has stopped reading."""

    def __init__(self, stop: Callable[[], None], kill: Callable[[], None]) -> None:
        self.requests = 0
        self._first_s = 0.0
        self._stop = stop
        self._kill = kill
        handle_stop_signals(self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.requests and now - self._first_s < SAME_SIGNAL_S:
            return
        self.requests += 1
        if self.requests == 1:
            self._first_s = now
            self._stop()
            streams.end_soon()
            streams.drop_stuck(patience_s=streams.PATIENCE_S)
        else:
            self._kill()


def interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt like Ctrl-C by default, but not inside code that must complete, so that everything
    is restored on the way out."""
    if frame is not None and frame.f_code.co_filename.startswith(_IMPORT_MACHINERY):
        # an interrupt inside Python's import code would leave a lock taken, and other threads wait
        # for it
        _repeat_soon()
    else:
        signal_flag.interrupt()


def _repeat_soon() -> None:
    """Send the signal again as SIGALRM, to the handler that is set then."""
    signal.setitimer(signal.ITIMER_REAL, REPEAT_S)


def repeat_lost_interrupts() -> None:
    """Make sure from now on that no ``interrupt`` is lost. In the callback of a weak reference or a
    finalizer, Python only reports the exception and goes on; then the signal is soon sent again."""
    before = sys.unraisablehook

    def hook(ignored: UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            _repeat_soon()
        else:
            before(ignored)

    sys.unraisablehook = hook
