"""`iopstui replay --follow`: replay a recording while it is still being written."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from iopstui.cli.options import read_volume_option
from iopstui.cli.terminal import print_message, require_for_screen, require_terminal
from iopstui.errors import UsageError
from iopstui.linux.process.private import private_directory, remove
from iopstui.recording.follow import POLL_S, FollowSession, InputCopy, wait_for_first_sample
from iopstui.recording.reader import recording_path
from iopstui.recording.recent import is_fleet

STDIN = "-"
COMMAND_WITHOUT_SCREEN = "iopstui replay FILE --follow --format table|jsonl|csv"


def follow_recording(arguments: argparse.Namespace) -> int:
    """Play a growing recording on the screen, or write it as data. Returns the exit code."""
    if arguments.file != STDIN:
        path = recording_path(arguments.file)
        if is_fleet(path):
            raise UsageError("--follow cannot play the recording of a fleet.",
                             "Play what there is now: iopstui replay FILE")  # fmt: skip
        return _play(path, arguments, lambda: False)
    if sys.stdin.isatty():
        raise UsageError("Standard input is a terminal, not a recording.",
                         "For example: ssh HOST tail -f -c +1 FILE | iopstui replay - --follow",
                         )  # fmt: skip
    private = private_directory()
    try:
        copy = InputCopy(os.dup(sys.stdin.fileno()), private / "followed.iops")
        if not arguments.format and not arguments.plain:
            _read_keys_from_terminal()
        return _play(copy.path, arguments, lambda: copy.ended)
    finally:
        remove(private)


def _play(path: Path, arguments: argparse.Namespace, has_ended: Callable[[], bool]) -> int:
    kind = arguments.format or ("plain" if arguments.plain else None)
    if kind:
        from iopstui.output.replay import replay_headless

        wait_for_first_sample(path, print_message, has_ended)
        return replay_headless(str(path), kind, _WaitForData(has_ended), arguments.plain_every)
    require_terminal(COMMAND_WITHOUT_SCREEN)
    require_for_screen(arguments)
    from iopstui.ui.replay import show_session

    volume = read_volume_option(arguments)
    wait_for_first_sample(path, print_message, has_ended)
    return show_session(FollowSession(path, arguments.speed, has_ended), arguments.theme, volume)


class _WaitForData:
    """Waits for more data. Calling it returns False if nothing came since the input ended."""

    def __init__(self, has_ended: Callable[[], bool]) -> None:
        self._has_ended = has_ended
        self._is_last = False

    def __call__(self) -> bool:
        if self._is_last:
            return False
        # one more look: the last data before the input's end may not have been read yet
        self._is_last = self._has_ended()
        sys.stdout.flush()
        time.sleep(POLL_S)
        return True


def _read_keys_from_terminal() -> None:
    """Make the terminal standard input, as pagers do, because the recording comes from a pipe."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError("There is no terminal to read keys from.",
                         f"Without a screen: {COMMAND_WITHOUT_SCREEN}") from error  # fmt: skip
    os.dup2(terminal, sys.stdin.fileno())
    os.close(terminal)
