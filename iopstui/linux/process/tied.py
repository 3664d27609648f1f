"""Processes that end with the one that has started them, however that one ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

END_TIMEOUT_S = 15.0
# prctl(PR_SET_PDEATHSIG, SIGTERM); too late where the parent has ended before
_TIE = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    os._exit(143)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""


def tied_command(command: Sequence[str]) -> list[str]:
    """``command``, which gets a SIGTERM when the thread that starts it has ended."""
    return [sys.executable, "-I", "-S", "-c", _TIE, str(os.getpid()), *command]


@contextlib.contextmanager
def tied_process(
    command: Sequence[str], cwd: Path | None = None, **streams: Any
) -> Iterator[subprocess.Popen[str]]:
    """Start ``command`` without input; end it if it still runs when the block is left. It has time
    to undo what it has changed. Raises OSError."""
    process = subprocess.Popen(
        tied_command(command), cwd=cwd, stdin=subprocess.DEVNULL, text=True, **streams
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_TIMEOUT_S)
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
