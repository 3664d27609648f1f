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
    """Run one command (``program.main``). Returns the exit code. Without ``argv`` the process is
    ours: a signal that comes while the program is being loaded ends it like one that comes
    later."""
    if argv is None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            # signals that the parent process had us ignore stay ignored
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _end)
        if lacking := ensure_descriptors():
            os.write(2, f"iopstui: {lacking}\n".encode())
            return EXIT_MISSING
    from iopstui.cli.program import main as run

    return run(argv)


def _end(number: int, frame: FrameType | None) -> None:
    # nothing has started yet that would need undoing
    os.write(2, b"iopstui: interrupted.\n")
    os._exit(EXIT_INTERRUPTED)
