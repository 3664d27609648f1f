"""Read the kernel's counters again and again, by code of its own: the oracle of the self-test.

Nothing here uses the parsers of iopstui/linux, which the self-test checks.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

INTERVAL_S = 0.05


class CounterLog(threading.Thread):
    """Polls the lines of a disk (/proc/diskstats), of the BLOCK softirq (/proc/softirqs) and of the
    disk's interrupts (/proc/interrupts). ``rows`` are (wall clock in ms, name, line)."""

    def __init__(self, disk: str, vectors: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self._disk, self._vectors = disk, vectors
        self._stop_requested = threading.Event()
        self.rows: list[tuple[float, str, str]] = []

    def run(self) -> None:
        """Poll until ``finish``."""
        while True:
            is_last = self._stop_requested.wait(INTERVAL_S)
            self._read()
            if is_last:
                return

    def finish(self) -> list[list[Any]]:
        """Stop after one more reading, and return the rows."""
        self._stop_requested.set()
        self.join()
        return [list(row) for row in self.rows]

    def _read(self) -> None:
        for line in Path("/proc/diskstats").read_text().splitlines():
            if line.split()[2] == self._disk:
                self.rows.append((_now_ms(), "diskstats", line.strip()))
        for line in Path("/proc/softirqs").read_text().splitlines():
            if line.split()[0] == "BLOCK:":
                self.rows.append((_now_ms(), "softirqs", line.strip()))
        if self._vectors:
            for line in Path("/proc/interrupts").read_text().splitlines():
                if line.split()[0] in self._vectors:
                    self.rows.append((_now_ms(), "interrupts", line.strip()))


def _now_ms() -> float:
    return time.time() * 1000


def read_vector_labels(disk: str) -> tuple[str, ...]:
    """Labels in /proc/interrupts ("35:") of the disk's interrupts, by msi_irqs of its device or of
    one above it; empty if there are none."""
    directory = Path("/sys/block", disk, "device").resolve()
    while directory != Path("/sys") and directory != directory.parent:
        if (directory / "msi_irqs").is_dir():
            return tuple(f"{entry.name}:" for entry in (directory / "msi_irqs").iterdir())
        directory = directory.parent
    return ()


def queue_text(disk: str) -> dict[str, str]:
    """CPU lists of the disk's hardware queues as sysfs has them, by queue."""
    cpus_by_queue = {}
    for path in Path("/sys/block", disk, "mq").glob("*/cpu_list"):
        cpus_by_queue[path.parent.name] = path.read_text().strip()
    return cpus_by_queue


def interrupt_names() -> dict[str, str]:
    """Last words of the lines of /proc/interrupts ("virtio3-req.0"), by number."""
    names = {}
    for line in Path("/proc/interrupts").read_text().splitlines()[1:]:
        number, _, rest = line.strip().partition(":")
        if number.isdecimal() and rest.split():
            names[number] = rest.split()[-1]
    return names
