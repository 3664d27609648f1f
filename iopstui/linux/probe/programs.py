"""What the kernel says of the probes themselves: their run time (BPF_ENABLE_STATS, bpf(2)), and
how often one was skipped.

Counting costs some time at every run of every BPF program of the machine, so it is on for a moment
now and then. It is bound to a file descriptor: nothing stays on when the process ends, however.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from dataclasses import dataclass
from pathlib import Path

BPF_ENABLE_STATS = 32
BPF_STATS_RUN_TIME = 0
# its number on this machine (syscalls(2)); where it isn't known nothing is counted
_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "s390x": 351,
        "ppc64le": 361, "armv7l": 386, "i686": 357}  # fmt: skip


# a program that runs for each I/O runs at least this part of the one that runs most
OFTEN = 0.3


class _Attr(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("more", ctypes.c_uint8 * 124)]


@dataclass(frozen=True, slots=True)
class Ran:
    """What the kernel says of a process's BPF programs so far: ``spent_ns`` of those that run for
    each I/O in ``ios`` of these (0: not counted), and how often one was ``skipped`` because another
    was running on that CPU."""

    spent_ns: int
    ios: int
    skipped: int


class Programs:
    """The BPF programs that a process holds (``fdinfo`` of its descriptors)."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._place = proc / str(pid) / "fdinfo"
        self._files: list[Path] = []

    def read(self) -> Ran | None:
        """``None`` if the kernel does not say."""
        try:
            if not self._files:
                self._files = [f for f in self._place.iterdir() if "prog_id" in _words(f)]
            found = [_words(file) for file in self._files]
            runs = [(int(one["run_cnt"]), int(one["run_time_ns"])) for one in found]
            skipped = sum(int(one.get("recursion_misses", 0)) for one in found)
        except (OSError, ValueError, KeyError):
            return None
        if not runs:
            return None
        ios = max(count for count, _ in runs)
        return Ran(sum(ns for count, ns in runs if count >= OFTEN * ios), ios, skipped)


def _words(file: Path) -> dict[str, str]:
    return dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)


class Counting:
    """Whether the kernel counts the run time of BPF programs, switched by us."""

    def __init__(self) -> None:
        self._fd = -1

    @property
    def on(self) -> bool:
        """Whether it does."""
        return self._fd >= 0

    def begin(self) -> None:
        """Needs Linux 5.8 and CAP_SYS_ADMIN; without them nothing is counted."""
        number = _BPF.get(platform.machine())
        if number is None or self.on:
            return
        attr = _Attr(BPF_STATS_RUN_TIME)
        self._fd = ctypes.CDLL(None, use_errno=True).syscall(
            number, BPF_ENABLE_STATS, ctypes.byref(attr), ctypes.sizeof(attr)
        )

    def end(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = -1
