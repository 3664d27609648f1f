"""iostat beside a run, where sysstat is installed: a second opinion on the same disk."""

from __future__ import annotations

import os
import subprocess
import threading
import time

from iopstui.linux.process.affinity import tied_command
from iopstui.linux.process.programs import which

WAIT_S = 5.0


class IostatLog(threading.Thread):
    """Runs ``iostat -x`` with a report a second. ``rows`` are (wall clock in ms when it was
    printed, "head" or "row", line); the first report, of the time since boot, is left out (-y)."""

    def __init__(self, disk: str) -> None:
        super().__init__(daemon=True)
        self.rows: list[list[object]] = []
        self._disk = disk
        self._process: subprocess.Popen[str] | None = None
        if program := which("iostat"):
            self._process = subprocess.Popen(
                tied_command([program, "-dxky", disk, "1"]), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip

    def run(self) -> None:
        """Read its reports until ``finish``."""
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            columns = line.split()
            if columns and columns[0] in ("Device", "Device:", self._disk):
                kind = "row" if columns[0] == self._disk else "head"
                self.rows.append([time.time() * 1000, kind, " ".join(columns)])

    def begin(self) -> None:
        """Start, if there is an iostat."""
        if self._process is not None:
            self.start()

    def finish(self) -> list[list[object]]:
        """End it; its rows, none without an iostat. May be called again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self.join(WAIT_S)
        return list(self.rows)
