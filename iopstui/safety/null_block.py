"""A null_blk device that takes a known time for each I/O. It is noted in the journal before it is
made, because it outlives its process."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from iopstui.linux.process.programs import which
from iopstui.safety import journal

NOTE = "null_blk"
NAME = "iopstui-selftest"
TIMEOUT_S = 30.0


@contextlib.contextmanager
def null_block(configfs: Path, latency_ns: int) -> Iterator[str]:
    """A context with the device: yields its path below /dev ("" if it does not appear), and removes
    it at the end. ``configfs``: /sys/kernel/config. OSError if the device cannot be made."""
    directory = configfs / "nullb" / NAME
    loads = not directory.parent.is_dir()
    note = journal.write_note(NOTE, {"module": loads})
    try:
        if loads and not _modprobe("null_blk", "nr_devices=0"):
            raise FileNotFoundError(errno.ENOENT, "this kernel has no null_blk (configfs)")
        directory.mkdir()
    except OSError:
        # an existing one belongs to another process
        note.remove()
        raise
    try:
        for name, value in (("size", 64), ("irqmode", 2), ("completion_nsec", latency_ns),
                            ("power", 1)):  # fmt: skip
            (directory / name).write_text(str(value))
        number = (directory / "index").read_text().strip()
        nodes = (f"/dev/{NAME}", f"/dev/nullb{number}")
        yield next((path for path in nodes if os.path.exists(path)), "")
    finally:
        if _remove(directory, loads):
            note.remove()


def remove_abandoned(configfs: Path) -> tuple[list[str], list[str]]:
    """Remove the device that a killed process has left; return (removed, not removed), in words."""
    completed, failed = [], []
    directory = configfs / "nullb" / NAME
    for note in journal.abandoned_notes(NOTE):
        existed = directory.exists()
        if not _remove(directory, note.content.get("module") is True):
            failed.append(f"cannot remove the null_blk device {NAME}: a program may have it open")
            continue
        note.remove()
        if existed:
            completed.append(f"the null_blk device {NAME} is removed")
    return completed, failed


def _remove(directory: Path, unload: bool) -> bool:
    """Remove the device, and the module if it was loaded for it. Returns whether the device is
    gone."""
    with contextlib.suppress(OSError):
        (directory / "power").write_text("0")
    with contextlib.suppress(OSError):
        directory.rmdir()
    if directory.exists():
        return False
    if unload:
        _modprobe("--remove", "null_blk")
    return True


def _modprobe(*arguments: str) -> bool:
    program = which("modprobe")
    if program is None:
        return False
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        result = subprocess.run(
            [program, *arguments], capture_output=True, stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        return result.returncode == 0
    return False
