"""The command line: options that commands share, and a file for each command."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from types import FrameType

from iopstui.errors import EXIT_INTERRUPTED, EXIT_MISSING
from iopstui.linux.process.limits import ensure_descriptors

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command (``program.main``). Returns the exit code. Without ``argv`` the whole process
    is iopstui's: a signal while modules are being loaded ends it in the same way as a later one."""
    if argv is None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            # a signal that the parent process had set to be ignored stays ignored
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _end)
        if lacking := ensure_descriptors():
            os.write(2, f"iopstui: {lacking}\n".encode())
            return EXIT_MISSING
    from iopstui.cli.program import main as run

    return run(argv)


def _end(number: int, frame: FrameType | None) -> None:
    # end at once: nothing has been started that would have to be undone
    os.write(2, b"iopstui: interrupted.\n")
    os._exit(EXIT_INTERRUPTED)
