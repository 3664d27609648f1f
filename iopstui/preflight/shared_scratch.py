"""A scratch directory for several fio runs that is always removed at the end.

During a run fio's guard removes the directory if iopstui is killed. Between two runs fio has no
guard, so this class starts its own guard for the whole time."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.fio import guard as fio_guard
from iopstui.fio.fence import isolated_command
from iopstui.linux.process.private import private_directory, remove
from iopstui.safety.scratch import Scratch, make_scratches


@dataclass(frozen=True, slots=True)
class LentScratch:
    """A scratch directory whose files a run uses again, and whose owner removes it. ``max_bytes``
    limits each file for which the job gives no size, so that a point with more jobs has files of
    the same size."""

    scratch: Scratch
    max_bytes: int | None = None


class SharedScratch:
    """Creates the directory, or one in each of several; ``close`` removes them."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._private = private_directory()
        try:
            self.scratch: Scratch = make_scratches(directories)
        except BaseException:
            remove(self._private)
            raise
        self._guard: subprocess.Popen[bytes] | None = None
        guard = isolated_command(fio_guard)
        places = [str(self._private), "-", *map(str, self.scratch.paths)]
        # without it, what a SIGKILL leaves would stay until the next start of iopstui
        with contextlib.suppress(OSError):
            self._guard = subprocess.Popen(
                [*guard, *places, "--", "sleep", "infinity"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def close(self) -> None:
        """Remove the directory, because no run uses it any more."""
        self.scratch.close()
        if self._guard is not None and self._guard.stdin is not None:
            with contextlib.suppress(OSError):
                self._guard.stdin.write(b"kill\n")
                self._guard.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(timeout=5)
            self._guard = None
        remove(self._private)
