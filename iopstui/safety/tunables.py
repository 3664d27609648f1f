"""Changing a device's tunables while it is measured, and always restoring them.

The value found is on disk (safety/journal.py) before the first change of it. It is written
back on every way out; after SIGKILL or power loss by the next start or `iopstui doctor`. What
the kernel made of a written value is read back: rq_affinity=3 is accepted and ignored.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import IopstuiError, Missing, UsageError
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import parse_cpu_list
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.tunable import (
    RESET_BY_SCHEDULER,
    TUNABLES,
    current_scheduler,
    irq_of,
    restore_rank,
)
from iopstui.safety import journal
from iopstui.safety.journal import Note
from iopstui.text import printable


@dataclass(frozen=True, slots=True)
class Change:
    """One tunable changed: ``asked`` was written, the kernel now says ``now``."""

    device: str
    name: str
    before: str
    asked: str
    now: str

    @property
    def adjusted(self) -> bool:
        """True if the kernel made something else of the value (nr_requests=2 becomes 4)."""
        if irq_of(self.name) is not None:
            return parse_cpu_list(self.asked) != parse_cpu_list(self.now)
        return self.asked != self.now


def tunable_path(device: BlockDevice, name: str, roots: Roots) -> Path:
    """The file of a tunable. UsageError for an unknown name."""
    irq = irq_of(name)
    if irq is not None:
        if irq not in {vector.irq for vector in device.irqs}:
            own = ", ".join(str(vector.irq) for vector in device.irqs) or "none"
            raise UsageError(f"Interrupt {irq} is not one of {device.name}'s ({own}).")
        return roots.proc / "irq" / str(irq) / "smp_affinity_list"
    if name not in TUNABLES:
        raise UsageError(f"{printable(name)} is not a tunable that can be changed.",
                         f"Known: {', '.join(TUNABLES)}, irq/NUMBER")  # fmt: skip
    # a partition has its disk's queue
    disk = device.disk or device.name
    return roots.sys / "block" / disk.replace("/", "!") / "queue" / name


def read_tunable(device: BlockDevice, name: str, roots: Roots) -> str | None:
    """The value in force; ``None`` if the device does not have this tunable."""
    try:
        text = tunable_path(device, name, roots).read_text().strip()
    except OSError:
        return None
    return current_scheduler(text) if name == "scheduler" else text


def why_not(device: BlockDevice, name: str, roots: Roots) -> IopstuiError | None:
    """What would prevent a change of this tunable, before anyone tries; ``None`` if
    nothing is known to."""
    path = tunable_path(device, name, roots)
    return None if os.access(path, os.W_OK) else _no_right(device, name, path, "VALUE")


class Tunables:
    """The changes of one session."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._note: Note | None = None
        self.gone = False
        # by file: several disks may share one interrupt
        self._changed: dict[str, dict[str, object]] = {}

    @property
    def changed(self) -> bool:
        """True while something has to be restored."""
        return bool(self._changed)

    def set(self, device: BlockDevice, name: str, value: str) -> Change:
        """Change one tunable. Raises Missing (no right), UsageError (the kernel's refusal)."""
        path = tunable_path(device, name, self._roots)
        before = read_tunable(device, name, self._roots)
        if before is None and not path.parents[1].exists():
            raise UsageError(f"{device.name} is gone: the kernel doesn't list it any more.")
        if before is None:
            raise UsageError(f"{device.name} has no {name}: {path} can't be read.")
        if not os.access(path, os.W_OK):
            raise _no_right(device, name, path, value)
        self._remember(device, name, before, path)
        try:
            _write(path, value)
        except OSError as error:
            raise _refusal(device, name, value, path, error) from error
        now = read_tunable(device, name, self._roots) or ""
        if now == before and value != before:
            raise UsageError(
                f"The kernel took {name}={printable(value)} for {device.name} without an error, "
                f"but left it at {printable(now)}."
            )
        return Change(device.name, name, before, value, now)

    def _remember(self, device: BlockDevice, name: str, before: str, path: Path) -> None:
        if str(path) in self._changed:
            return
        _check_alone(device, name, path)
        entries = {str(path): _entry(device, name, before, path)}
        # where the scheduler changes, the kernel sets these two anew
        for other in RESET_BY_SCHEDULER if name == "scheduler" else ():
            value, own = read_tunable(device, other, self._roots), path.with_name(other)
            if value is not None and str(own) not in self._changed:
                entries[str(own)] = _entry(device, other, value, own)
        self._changed.update(entries)
        content = {"settings": list(self._changed.values()), "boot": journal.boot_id()}
        try:
            if self._note is None:
                self._note = journal.write_note("settings", content)
            else:
                self._note.update(content)
        except OSError as error:
            for one in entries:
                self._changed.pop(one, None)
            raise Missing(
                f"{name} is not changed, because its present value can't be saved first: {error}.",
                "Set XDG_STATE_HOME to a directory of yours.",
            ) from error

    def restore(self) -> list[str]:
        """Restore everything; returns sentences about what could not be restored. ``gone``: the
        disks are not there any more, so there was nothing to restore."""
        done, failed = _restore(list(self._changed.values()), self._roots)
        self.gone = not done and not failed
        if not failed:
            self._changed.clear()
            if self._note is not None:
                self._note.remove()
                self._note = None
        return failed


def _check_alone(device: BlockDevice, name: str, path: Path) -> None:
    """If two processes changed one tunable, the later would take the other's value for the
    original."""
    for note, pid in journal.living("settings"):
        noted = note.content.get("settings")
        entries = noted if isinstance(noted, list) else []
        if any(isinstance(e, Mapping) and e.get("path") == str(path) for e in entries):
            raise UsageError(
                f"{name} of {device.name} is being changed by another iopstui (process {pid}), "
                "which will restore it when it ends.",
                "Quit that one first.",
            )


def restore_abandoned(roots: Roots) -> tuple[list[str], list[str]]:
    """Undo what a killed iopstui left: (what was restored, what could not be), in words."""
    done: list[str] = []
    failed: list[str] = []
    for note in journal.abandoned("settings"):
        noted = note.content.get("settings")
        entries = [e for e in noted if _is_entry(e, roots)] if isinstance(noted, list) else []
        if note.content.get("boot") != journal.boot_id():
            entries = []  # a new start of the machine has undone it
        restored, problems = _restore(entries, roots)
        done += restored
        failed += problems
        if not problems:
            note.remove()
    return done, failed


def _entry(device: BlockDevice, name: str, value: str, path: Path) -> dict[str, object]:
    return {
        "device": device.name,
        "diskseq": device.diskseq,
        "name": name,
        "value": value,
        "path": str(path),
    }


def _is_entry(entry: object, roots: Roots) -> bool:
    """A note is only believed if it names a known tunable and that tunable's own file."""
    if not isinstance(entry, Mapping) or not all(
        isinstance(entry.get(key), str) for key in ("device", "name", "path", "value")
    ):
        return False
    name, path = entry["name"], Path(entry["path"])
    irq = irq_of(name)
    if irq is not None:
        return path == roots.proc / "irq" / str(irq) / "smp_affinity_list"
    return (
        name in TUNABLES
        and ".." not in path.parts
        and path.parts[-2:] == ("queue", name)
        and path.parent.parent.parent == roots.sys / "block"
    )


def _restore(entries: list[dict[str, object]], roots: Roots) -> tuple[list[str], list[str]]:
    """(what is as before, what could not be restored), in words; disks that are gone or new
    are in neither."""
    done, failed = [], []
    for entry in sorted(entries, key=lambda e: restore_rank(str(e["name"]))):
        path, value = Path(str(entry["path"])), str(entry["value"])
        if not path.exists() or _another_disk(entry, roots):
            continue
        try:
            if _now(path) != value:
                _write(path, value)
            now = _now(path)
        except OSError as error:
            now = error.strerror or "error"
        if now == value:
            done.append(f"{entry['device']}: {entry['name']} is {value} again")
        else:
            failed.append(
                f"{entry['device']}: {entry['name']} is {printable(now)}, not {value} as before; "
                f"restore it with: echo {value} | sudo tee {path}"
            )
    return done, failed


def _now(path: Path) -> str:
    return (
        current_scheduler(path.read_text())
        if path.name == "scheduler"
        else (path.read_text().strip())
    )


def _another_disk(entry: Mapping[str, object], roots: Roots) -> bool:
    """True if the disk of that name is a new one since (diskseq): its values are its own."""
    before = entry.get("diskseq")
    if before is None:
        return False
    device = str(entry["device"]).replace("/", "!")
    base = roots.sys / "class/block" / device
    for place in (base / "diskseq", base.resolve().parent / "diskseq"):
        try:
            return int(place.read_text()) != before
        except (OSError, ValueError):
            continue
    return False


def _write(path: Path, value: str) -> None:
    # os.write, because a buffered file would report the kernel's refusal at close, or never
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def _no_right(device: BlockDevice, name: str, path: Path, value: str) -> IopstuiError:
    try:
        mode = path.stat().st_mode
    except OSError:
        mode = 0
    if irq_of(name) is not None and not mode & 0o222:
        return UsageError(
            f"The kernel manages interrupt {irq_of(name)} itself: its CPUs can't be chosen."
        )
    if os.geteuid() == 0:
        return Missing(
            f"{name} of {device.name} can't be changed: {path} is not writable here.",
            "In a container or with a read-only /sys: run iopstui on the host.",
        )
    return Missing(
        f"Changing {name} of {device.name} needs root.",
        f"Run iopstui with sudo, or: echo {printable(value)} | sudo tee {path}",
    )


def _refusal(
    device: BlockDevice, name: str, value: str, path: Path, error: OSError
) -> IopstuiError:
    if error.errno in (errno.EACCES, errno.EROFS):
        return Missing(f"{path} can't be written: {error.strerror}.",
                       "In a container or with a read-only /sys: run iopstui on the host.",
                       )  # fmt: skip
    if irq_of(name) is not None and error.errno in (errno.EPERM, errno.EIO):
        return UsageError(
            f"The kernel manages interrupt {irq_of(name)} itself: its CPUs can't be chosen."
        )
    tunable = TUNABLES.get(name)
    allowed = f" It takes {', '.join(tunable.values)}." if tunable and tunable.values else ""
    return UsageError(
        f"The kernel refuses {name}={printable(value)} for {device.name}: "
        f"{error.strerror or error}.{allowed}"
    )
