"""All writable settings below a disk's ``queue`` directory, saved before a change.

Changing one tunable changes others: the kernel recomputes ``read_ahead_kb`` whenever a limit is
written (``max_sectors_kb``, ``iostats`` ...), and setting a scheduler resets all of its
``iosched/*`` to defaults. So all settings are read first, and all are restored."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.kernel_files import Roots
from iopstui.model.block.tunable import (
    SCHEDULER_PREFIX,
    current_scheduler,
    is_restorable,
    restore_rank,
)
from iopstui.text import printable

# a restored value may change another one that was restored before it (nr_requests:
# iosched/async_depth)
RESTORE_PASSES = 5
MIN_REQUESTS = 4
"""The smallest ``nr_requests`` that the kernel sets."""
MAX_VALUE = 4096
"""Maximum length of a setting: an attribute of sysfs is one page."""


def read_current(path: Path) -> str:
    """The value of a setting that is in force. Raises OSError."""
    text = path.read_text().strip()
    return current_scheduler(text) if path.name == "scheduler" else text


def write_current(path: Path, value: str) -> None:
    """Write the value with a single write(2). Raises OSError."""
    # unbuffered: a buffered file would report the kernel's refusal only at close, or never
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def set_value(path: Path, value: str) -> None:
    """Write the value, and make the kernel apply ``nr_requests`` again. Raises OSError. Without a
    scheduler ``nr_requests`` is the number of the driver's tags. When a scheduler is removed, the
    kernel reports all of them but keeps using the smaller number set before, and ignores a write of
    the value that it already reports."""
    write_current(path, value)
    if path.name != "scheduler" or value != "none":
        return
    requests = path.with_name("nr_requests")
    with suppress(OSError, ValueError):
        count = int(read_current(requests))
        if count > MIN_REQUESTS:
            write_current(requests, str(count - 1))
            write_current(requests, str(count))


def read_values(directory: Path) -> dict[str, str]:
    """The values of all files that can be restored, by name (``nr_requests``,
    ``iosched/read_expire``). Unreadable files are left out."""
    values: dict[str, str] = {}
    for prefix in ("", SCHEDULER_PREFIX):
        try:
            names = sorted(os.listdir(directory / prefix))
        except OSError:
            continue
        for name in names:
            path = directory / prefix / name
            try:
                if is_restorable(prefix + name) and path.is_file() and path.stat().st_mode & 0o200:
                    values[prefix + name] = read_current(path)
            except (OSError, ValueError):
                continue
    return values


def differing_values(directory: Path, expected: Mapping[str, str]) -> dict[str, str]:
    """Current values that differ from ``expected``; "" if one can't be read."""
    differing: dict[str, str] = {}
    for name in sorted(expected, key=restore_rank):
        try:
            value = read_current(directory / name)
        except (OSError, ValueError):
            value = ""
        if value != expected[name]:
            differing[name] = value
    return differing


def restore_values(directory: Path, expected: Mapping[str, str]) -> dict[str, str]:
    """Write differing values, in a working order, until none differs or nothing changes any more.
    Returns the values that still differ: the kernel's error by name, "" if it gave none."""
    errors: dict[str, str] = {}
    remaining = differing_values(directory, expected)
    for _ in range(RESTORE_PASSES):
        for name in remaining:
            try:
                if read_current(directory / name) != expected[name]:
                    set_value(directory / name, expected[name])
                errors[name] = ""
            except (OSError, ValueError) as error:
                errors[name] = getattr(error, "strerror", None) or str(error)
        before, remaining = remaining, differing_values(directory, expected)
        if not remaining or remaining == before:
            break
    return {name: errors.get(name, "") for name in remaining}


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """Saved ``values`` of the files below ``directory``. ``diskseq`` distinguishes the disk from
    a later one of the same name (``None``: the kernel does not number disks)."""

    device: str
    diskseq: int | None
    directory: Path
    values: Mapping[str, str]

    def as_object(self) -> dict[str, object]:
        return {
            "device": self.device, "diskseq": self.diskseq, "path": str(self.directory),
            "values": dict(self.values),
        }  # fmt: skip

    def restore(self) -> tuple[list[str], list[str]]:
        """Restore the values; return (restored, failed), a sentence each."""
        changed = differing_values(self.directory, self.values)
        remaining = restore_values(self.directory, self.values)
        restored = [
            f"{self.device}: {name} is {printable(self.values[name])} again"
            for name in changed
            if name not in remaining
        ]
        return restored, [self._problem(name, remaining[name]) for name in _causes(remaining)]

    def _problem(self, name: str, error: str) -> str:
        path, value = self.directory / name, self.values[name]
        try:
            current = read_current(path)
        except (OSError, ValueError):
            return (
                f"{self.device}: {name} was {printable(value)} and cannot be restored: {path} "
                "no longer exists"
            )
        return not_restored(self.device, name, current, value, path, error)


def not_restored(device: str, name: str, is_now: str, value: str, path: Path, error: str) -> str:
    """A sentence about a value that could not be restored, with the command to restore it."""
    why = f" ({error})" if error else ""
    return (
        f"{device}: {name} is {printable(is_now)}, not {printable(value)} as before{why}; restore "
        f"it with: echo {shlex.quote(printable(value))} | sudo tee {path}"
    )


def _causes(differing: Iterable[str]) -> list[str]:
    """The values to report: without those of a scheduler if the scheduler itself could not be
    restored."""
    names = list(differing)
    if "scheduler" not in names:
        return names
    return [name for name in names if not name.startswith(SCHEDULER_PREFIX)]


def snapshot_of(entry: object, roots: Roots) -> QueueSnapshot | None:
    """The snapshot in an object of the journal; ``None`` if the object is invalid, or names
    anything but files of a disk's queue."""
    if not isinstance(entry, Mapping):
        return None
    device, path, values = entry.get("device"), entry.get("path"), entry.get("values")
    diskseq = entry.get("diskseq")
    if not (isinstance(device, str) and isinstance(path, str) and isinstance(values, Mapping)):
        return None
    directory = Path(path)
    if (
        ".." in directory.parts
        or directory.name != "queue"
        or directory.parent.parent != roots.sys / "block"
        or not all(isinstance(text, str) for pair in values.items() for text in pair)
        or not all(map(is_restorable, values))
        or max(map(len, values.values()), default=0) > MAX_VALUE
    ):
        return None
    return QueueSnapshot(device, diskseq if isinstance(diskseq, int) else None, directory,
                         dict(values))  # fmt: skip
