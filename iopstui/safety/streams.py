"""Prepare standard input, output and error for a command, whether files, pipes or terminals.

If one of them were closed, the next file to be opened would get its number, and messages would go
into that file. So all three are open before anything else. If standard output can't be written, the
command ends with a message; if standard error can't be written, the text is lost. A reader that
does not read (a stopped terminal, a full pipe) makes a command wait, but does not delay its end:
after a stop signal (``end_soon``), output that such a reader does not take is dropped."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import select
import sys
import time
from collections.abc import Iterable
from typing import Any, TextIO

STUCK_S = 0.2
"""A reader that takes nothing for this long counts as not reading."""
PATIENCE_S = 1.5
"""How long to wait for such a reader after the first stop signal: the last figures still have to be
written."""
_ending = False


class OutputLost(OSError):
    """Standard output cannot be written (a closed pipe raises BrokenPipeError instead)."""


class _Stdout(io.FileIO):
    """A raw stream that writes everything, even if the descriptor is non-blocking."""

    def write(self, data: Any) -> int:
        while True:
            try:
                written = super().write(_takeable(self, data))
            except BrokenPipeError:
                raise
            except OSError as error:
                raise OutputLost(error.errno, error.strerror or "it fails") from error
            # ``None`` (not in the type hints): the write would block
            if written is not None:
                return written
            select.select([], [self], [])


class _Stderr(io.FileIO):
    """Standard error like ``_Stdout``; a failure can't be reported to anybody."""

    def write(self, data: Any) -> int:
        while True:
            try:
                written = super().write(_takeable(self, data))
            except OSError:
                return len(data)
            if written is not None:
                return written
            select.select([], [self], [])


def _takeable(stream: io.FileIO, data: Any) -> Any:
    """The part of ``data`` that can be written without a long wait (select(2): PIPE_BUF); before
    ``end_soon`` is called, all of it."""
    if not _ending:
        return data
    drop_stuck([stream.fileno()], PATIENCE_S)
    return memoryview(data)[: select.PIPE_BUF]


def prepare() -> bool:
    """Prepare the standard streams once, before a file is opened. False if standard output is
    closed."""
    descriptors = [_open(number) for number in (0, 1, 2)]
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Stdout(1, "w", closefd=False), sys.__stdout__)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Stderr(2, "w", closefd=False), sys.__stderr__)
        sys.stderr.reconfigure(line_buffering=True)
    return descriptors[1]


def finish() -> OSError | None:
    """Flush the rest of the output, and return the error that prevented it, if any."""
    lost: OSError | None = None
    try:
        sys.stdout.flush()
    except OSError as error:
        lost = error
        drop()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    return lost


def _open(number: int) -> bool:
    """Whether the descriptor was open. A closed one is opened as /dev/null, but for standard output
    so that writes fail."""
    try:
        os.fstat(number)
    except OSError:
        # open() takes the lowest free number: called in ascending order, each stream gets its own
        os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
        return False
    return True


def _text(raw: io.FileIO, before: TextIO | None) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None),
        errors=LOOK_ALIKES,
        line_buffering=raw.isatty(),
    )


def _look_alikes(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace a character that the encoding lacks by ASCII that looks like it, or by its number."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from iopstui.format import ascii_look_alike

    characters = error.object[error.start : error.end]
    return "".join(
        ascii_look_alike(character) or character.encode("ascii", "backslashreplace").decode()
        for character in characters
    ), error.end


LOOK_ALIKES = "iopstui-look-alikes"
codecs.register_error(LOOK_ALIKES, _look_alikes)


def drop(number: int = 1) -> None:
    """Discard the unwritten rest of standard output, so that no later flush fails again."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def drop_stuck(numbers: Iterable[int] = (1, 2), patience_s: float = STUCK_S) -> None:
    """Redirect to /dev/null every descriptor whose reader does not read, so that a blocked write
    ends when a stop signal arrives."""
    deadline = time.monotonic() + patience_s
    for number in numbers:
        with contextlib.suppress(OSError, ValueError):
            if not select.select([], [number], [], max(0.0, deadline - time.monotonic()))[1]:
                drop(number)


def end_soon() -> None:
    """From now on wait only ``PATIENCE_S`` for a reader that has stopped reading."""
    global _ending
    _ending = True
