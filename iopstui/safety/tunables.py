"""Change a device's tunables during a measurement, and always restore them.

All values of a disk's queue are saved on disk (safety/journal.py) before the first one is changed,
because the kernel changes others with it (queue_snapshot.py). They are always restored; after
SIGKILL or power loss the next start or `iopstui doctor` does so. A written value is read back,
because the kernel may adjust or ignore it (rq_affinity=3). Only one session at a time changes a
disk's queue, even if sessions have different users or state directories: flock(2) on the queue's
directory in sysfs needs no lock file and ends with the process. A container with a network
namespace has its own sysfs, so such a session is not seen."""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import IopstuiError, Missing, UsageError
from iopstui.linux.kernel_files import Roots, parse_cpu_list
from iopstui.linux.machine.topology import online_cpus
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.tunable import (
    IRQ_PREFIX,
    RESET_BY_SCHEDULER,
    SCHEDULER_PREFIX,
    TUNABLES,
    Tunable,
    irq_of,
    restore_rank,
    why_rq_affinity_cannot_matter,
)
from iopstui.safety import journal, queue_snapshot
from iopstui.safety.journal import Note
from iopstui.safety.locks import lock_owner
from iopstui.safety.queue_snapshot import (
    MAX_VALUE,
    QueueSnapshot,
    not_restored,
    read_current,
    read_values,
    restore_values,
    snapshot_of,
)
from iopstui.text import printable


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A changed tunable: ``requested`` was written; the kernel now reports ``now``."""

    device: str
    name: str
    before: str
    requested: str
    now: str

    @property
    def adjusted(self) -> bool:
        """True if the kernel changed the value (nr_requests=2 becomes 4)."""
        if irq_of(self.name) is not None:
            return parse_cpu_list(self.requested) != parse_cpu_list(self.now)
        return self.requested != self.now


def tunable_path(device: BlockDevice, name: str, roots: Roots) -> Path:
    """The file of a tunable. UsageError for an unknown name."""
    irq = irq_of(name)
    if irq is not None:
        if irq not in {vector.irq for vector in device.irqs}:
            irq_list = ", ".join(str(vector.irq) for vector in device.irqs) or "none"
            raise UsageError(f"Interrupt {irq} is not one of {device.name}'s ({irq_list}).")
        return roots.proc / "irq" / str(irq) / "smp_affinity_list"
    if name not in TUNABLES:
        raise UsageError(f"{printable(name)} is not a tunable that can be changed.",
                         f"Known: {', '.join(TUNABLES)}, irq/NUMBER")  # fmt: skip
    # a partition uses its disk's queue
    disk = device.disk or device.name
    return roots.sys / "block" / disk.replace("/", "!") / "queue" / name


def read_tunable(device: BlockDevice, name: str, roots: Roots) -> str | None:
    """The value of a tunable that is in force; ``None`` if the device does not have this
    tunable."""
    try:
        return read_current(tunable_path(device, name, roots))
    except OSError:
        return None


def why_not_changeable(device: BlockDevice, name: str, roots: Roots) -> IopstuiError | None:
    """Why this tunable can't be changed, checked without trying; ``None`` if no reason is known."""
    path = tunable_path(device, name, roots)
    return None if os.access(path, os.W_OK) else _no_right(device, name, path, "VALUE")


class Tunables:
    """The changes of tunables in one session."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._note: Note | None = None
        self.device_gone = False
        # keyed by file, because several disks may share one interrupt
        self._changed: dict[str, dict[str, object]] = {}
        self._snapshots: dict[Path, QueueSnapshot] = {}
        self._locks: dict[Path, int] = {}

    @property
    def changed(self) -> bool:
        """True while something has to be restored."""
        return bool(self._changed)

    def set(self, device: BlockDevice, name: str, value: str) -> AppliedChange:
        """Change one tunable. Raises Missing (no right) or UsageError (the kernel refuses it)."""
        path = tunable_path(device, name, self._roots)
        before = read_tunable(device, name, self._roots)
        if before is None and not path.parents[1].exists():
            raise UsageError(f"The kernel has no device {device.name} any more.")
        if before is None:
            raise UsageError(f"{device.name} has no {name}: cannot read {path}.")
        if not os.access(path, os.W_OK):
            raise _no_right(device, name, path, value)
        self._remember(device, name, before, path)
        saved_values = {} if irq_of(name) is not None else read_values(path.parent)
        try:
            queue_snapshot.set_value(path, value)
        except OSError as error:
            raise _refusal(device, name, value, path, error) from error
        current = read_tunable(device, name, self._roots) or ""
        self._restore_others(name, current, path.parent, saved_values)
        if current == before and value != before:
            raise UsageError(
                f"The kernel accepted {name}={printable(value)} for {device.name}, but left "
                f"it at {printable(current)}."
            )
        return AppliedChange(device.name, name, before, value, current)

    def _restore_others(
        self, name: str, value: str, directory: Path, saved_values: Mapping[str, str]
    ) -> None:
        """Restore values that the kernel changed along with a tunable, so that nothing but the
        tunable differs. A scheduler keeps its own values; the original scheduler gets its original
        ones."""
        if name != "scheduler":
            restored = {n: v for n, v in saved_values.items() if n in TUNABLES and n != name}
        elif directory in self._snapshots:
            first = self._snapshots[directory].values
            scheduler_values = {n: v for n, v in first.items() if n.startswith(SCHEDULER_PREFIX)}
            restored = scheduler_values if first.get("scheduler") == value else {}
        else:
            restored = {}
        restore_values(directory, restored)

    def _remember(self, device: BlockDevice, name: str, before: str, path: Path) -> None:
        if str(path) in self._changed:
            return
        self._lock(path.parent, f"{name} of {device.name} is not changed")
        if irq_of(name) is None and path.parent not in self._snapshots:
            self._snapshots[path.parent] = QueueSnapshot(
                device.name, device.diskseq, path.parent, read_values(path.parent)
            )
        entries = {str(path): _entry(device, name, before, path)}
        # these two are set anew by the kernel if the scheduler changes
        for other in RESET_BY_SCHEDULER if name == "scheduler" else ():
            value, other_path = read_tunable(device, other, self._roots), path.with_name(other)
            if value is not None and str(other_path) not in self._changed:
                entries[str(other_path)] = _entry(device, other, value, other_path)
        self._changed.update(entries)
        content = {
            "settings": list(self._changed.values()),
            "queues": [snapshot.as_object() for snapshot in self._snapshots.values()],
            "boot": journal.boot_id(),
        }
        try:
            if self._note is None:
                self._note = journal.write_note("settings", content)
            else:
                self._note.update(content)
        except OSError as error:
            for entry_path in entries:
                self._changed.pop(entry_path, None)
            raise Missing(
                f"{name} cannot be changed, because its present value cannot be saved first: "
                f"{error}.",
                "Set XDG_STATE_HOME to a directory of yours.",
            ) from error

    def _lock(self, directory: Path, consequence: str) -> None:
        if directory not in self._locks:
            fd = _lock_directory(directory, consequence, self._roots)
            if fd is not None:
                self._locks[directory] = fd

    def restore(self) -> list[str]:
        """Restore everything; return sentences about failures. ``device_gone``: the disks no longer
        exist, so there was nothing to restore."""
        entries, snapshots = list(self._changed.values()), list(self._snapshots.values())
        self.device_gone = all(_has_vanished(Path(str(e["path"])), e, self._roots) for e in entries)
        try:
            _, failed = _restore(entries, snapshots, self._roots)
        finally:
            while self._locks:
                os.close(self._locks.popitem()[1])
        if not failed:
            self._changed.clear()
            self._snapshots.clear()
            if self._note is not None:
                self._note.remove()
                self._note = None
        return failed


def _lock_directory(directory: Path, consequence: str, roots: Roots) -> int | None:
    """A descriptor that keeps other sessions from changing anything below ``directory``; ``None``
    if nothing can be locked. UsageError, with ``consequence``, if another session has the lock."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder, is_iopstui = lock_owner(fd, roots)
        os.close(fd)
        if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
            return None
        if is_iopstui:
            raise UsageError(
                f"{consequence}: {holder} has changed settings of that queue and restores them "
                "when it ends.",
                "Quit that one first.",
            ) from error
        raise UsageError(
            f"{consequence}: {holder} has locked {directory}, as programs do that change settings "
            "of that queue.",
            f"To find that program: sudo fuser -v {directory}",
        ) from error
    except BaseException:
        os.close(fd)
        raise
    return fd


def restore_abandoned(roots: Roots) -> tuple[list[str], list[str]]:
    """Undo the changes of a killed iopstui; return (restored, failed), in words."""
    completed: list[str] = []
    failed: list[str] = []
    for note in journal.abandoned_notes("settings"):
        settings, queues = note.content.get("settings"), note.content.get("queues")
        entries = [e for e in settings if _is_entry(e, roots)] if isinstance(settings, list) else []
        parsed = [snapshot_of(e, roots) for e in queues] if isinstance(queues, list) else []
        snapshots = [snapshot for snapshot in parsed if snapshot is not None]
        if note.content.get("boot") != journal.boot_id():
            entries, snapshots = [], []  # undone by a reboot
        restored, problems = _restore_alone(entries, snapshots, roots)
        completed += restored
        failed += problems
        if not problems:
            note.remove()
    return completed, failed


def _restore_alone(
    entries: list[dict[str, object]], snapshots: list[QueueSnapshot], roots: Roots
) -> tuple[list[str], list[str]]:
    """Restore like ``_restore``, unless a running session changes one of these disks; then this is
    left for later."""
    places = {Path(str(e["path"])).parent: str(e["device"]) for e in entries}
    places |= {snapshot.directory: snapshot.device for snapshot in snapshots}
    locks: list[int | None] = []
    try:
        for place, device in places.items():
            locks.append(
                _lock_directory(place, f"Settings of {device} are not restored yet", roots)
            )
        return _restore(entries, snapshots, roots)
    except UsageError as busy:
        return [], [busy.message]
    finally:
        for fd in locks:
            if fd is not None:
                os.close(fd)


def _entry(device: BlockDevice, name: str, value: str, path: Path) -> dict[str, object]:
    return {
        "device": device.name,
        "diskseq": device.diskseq,
        "name": name,
        "value": value,
        "path": str(path),
    }


def _is_entry(entry: object, roots: Roots) -> bool:
    """Whether an entry names a known tunable and that tunable's own file: otherwise the note is not
    believed."""
    if not isinstance(entry, Mapping) or not all(
        isinstance(entry.get(key), str) for key in ("device", "name", "path", "value")
    ):
        return False
    if len(entry["value"]) > MAX_VALUE:
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


def _restore(
    entries: list[dict[str, object]], snapshots: list[QueueSnapshot], roots: Roots
) -> tuple[list[str], list[str]]:
    """Restore the values; return (restored, not restored), in words. Disks that are gone or new are
    in neither. An older iopstui noted only single values (``entries``)."""
    completed: list[str] = []
    failed: list[str] = []
    for snapshot in snapshots:
        if not _has_vanished(snapshot.directory, snapshot.as_object(), roots):
            restored, problems = snapshot.restore()
            completed += restored
            failed += problems
    snapshot_directories = {snapshot.directory for snapshot in snapshots}
    for entry in sorted(entries, key=lambda e: restore_rank(str(e["name"]))):
        path, value = Path(str(entry["path"])), str(entry["value"])
        if path.parent in snapshot_directories or _has_vanished(path, entry, roots):
            continue
        device, name, why, current = str(entry["device"]), str(entry["name"]), "", "unknown"
        try:
            current = read_current(path)
            if current != value:
                queue_snapshot.set_value(path, value)
                current = read_current(path)
        except OSError as error:
            why = error.strerror or "error"
        if current == value:
            completed.append(f"{device}: {name} is {value} again")
        else:
            failed.append(not_restored(device, name, current, value, path, why))
    return completed, failed


def _has_vanished(path: Path, entry: Mapping[str, object], roots: Roots) -> bool:
    return not path.exists() or _another_disk(entry, roots)


def _another_disk(entry: Mapping[str, object], roots: Roots) -> bool:
    """True if the name now belongs to another disk (by its diskseq), which keeps its own values."""
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


def _no_right(device: BlockDevice, name: str, path: Path, value: str) -> IopstuiError:
    try:
        mode = path.stat().st_mode
    except OSError:
        mode = 0
    if irq_of(name) is not None and not mode & 0o222:
        return UsageError(
            f"The kernel manages interrupt {irq_of(name)} itself, so its CPUs cannot be changed."
        )
    if os.geteuid() == 0:
        return Missing(
            f"{name} of {device.name} cannot be changed: {path} is not writable here.",
            "In a container or with a read-only /sys: run iopstui on the host.",
        )
    return Missing(
        f"Changing {name} of {device.name} needs root.",
        f"Run iopstui with sudo, or: echo {shlex.quote(printable(value))} | sudo tee {path}",
    )


def _refusal(
    device: BlockDevice, name: str, value: str, path: Path, error: OSError
) -> IopstuiError:
    if error.errno in (errno.EACCES, errno.EROFS):
        return Missing(f"Cannot write {path}: {error.strerror}.",
                       "In a container or with a read-only /sys: run iopstui on the host.",
                       )  # fmt: skip
    if irq_of(name) is not None and error.errno in (errno.EPERM, errno.EIO):
        return UsageError(
            f"The kernel manages interrupt {irq_of(name)} itself, so its CPUs cannot be changed."
        )
    tunable = TUNABLES.get(name)
    allowed = f" Allowed: {', '.join(tunable.values)}." if tunable and tunable.values else ""
    return UsageError(
        f"The kernel refuses {name}={printable(value)} for {device.name}: "
        f"{error.strerror or error}.{allowed}"
    )


# The tunables of the target's disks: their values and the reasons they cannot be changed.


@dataclass(frozen=True, slots=True)
class TunableState:
    """A tunable. ``now`` is its value (of the first disk), ``values`` are all accepted ones (empty
    for a number or a CPU list), ``allowed`` the same in words. ``by_disk`` are (disk, value), if
    there are several disks. ``refused`` says why it can't be changed here ("": it can), ``hint`` is
    the command that can change it; ``idle`` says why it would have no effect on these disks ("": it
    has)."""

    name: str
    meaning: str
    now: str
    values: tuple[str, ...]
    allowed: str
    by_disk: tuple[tuple[str, str], ...] = ()
    refused: str = ""
    hint: str = ""
    idle: str = ""


def queued_disks(target: Target, devices: Mapping[str, BlockDevice]) -> list[BlockDevice]:
    """The disks whose queues serve the target, and whose tunables are changed: on the way down, the
    first devices with a queue of their own (a partition shares its disk's). For a loop device the
    disk below its file is not changed."""
    disk_by_name: dict[str, BlockDevice] = {}
    for top, below in target.stacks.items():
        stack = [devices[name] for name in (top, *below) if name in devices]
        queued = [device for device in stack if device.hctxs and device.disk is None]
        loops = [device for device in queued if device.kind == "loop"]
        disk_by_name |= {device.name: device for device in loops or queued}
    return list(disk_by_name.values())


def common_schedulers(disks: Sequence[BlockDevice]) -> tuple[str, ...]:
    by_disk = [disk.queue.schedulers for disk in disks if disk.queue is not None]
    return tuple(
        name
        for name in (by_disk[0] if by_disk else ())
        if all(name in schedulers for schedulers in by_disk)
    )


def tunable_states(
    target: Target, devices: Mapping[str, BlockDevice], roots: Roots
) -> list[TunableState]:
    """Every tunable of the disks. They are read again, because the kernel does not notify of
    changes."""
    disks = queued_disks(target, devices)
    states = [_queue_tunable(tunable, disks, roots) for tunable in TUNABLES.values()]
    states += [_irq_tunable(disk, irq, roots) for disk, irq in _interrupts(disks)]
    return [knob for knob in states if knob is not None]


def _queue_tunable(
    tunable: Tunable, disks: Sequence[BlockDevice], roots: Roots
) -> TunableState | None:
    readings = [(disk, read_tunable(disk, tunable.name, roots)) for disk in disks]
    current_values = [(disk, value) for disk, value in readings if value is not None]
    if not current_values:
        return None
    values = tunable.values
    if tunable.name == "scheduler":
        values = common_schedulers([disk for disk, _ in current_values])
    return _state(
        tunable.name, tunable.meaning, current_values, values, _allowed_values(tunable, values),
        roots,
        _idle([disk for disk, _ in current_values], roots) if tunable.name == "rq_affinity" else "",
    )  # fmt: skip


def _allowed_values(tunable: Tunable, values: Sequence[str]) -> str:
    if values:
        return ", ".join(values)
    unit = f" ({tunable.unit})" if tunable.unit else ""
    return f"a whole number from {tunable.minimum} up{unit}"


def _idle(disks: Sequence[BlockDevice], roots: Roots) -> str:
    online = online_cpus(roots)
    reasons = [why_rq_affinity_cannot_matter(disk, online) for disk in disks]
    explanations = [f"{d.name}: {why}" for d, why in zip(disks, reasons, strict=True) if why]
    return "; ".join(explanations) if len(explanations) == len(disks) else ""


def _interrupts(disks: Sequence[BlockDevice]) -> list[tuple[BlockDevice, int]]:
    disk_by_irq: dict[int, BlockDevice] = {}
    for disk in disks:
        for vector in disk.irqs:
            disk_by_irq.setdefault(vector.irq, disk)
    return [(disk, irq) for irq, disk in disk_by_irq.items()]


def _irq_tunable(disk: BlockDevice, irq: int, roots: Roots) -> TunableState | None:
    name = f"{IRQ_PREFIX}/{irq}"
    now = read_tunable(disk, name, roots)
    vector = next(vector for vector in disk.irqs if vector.irq == irq)
    if now is None:
        return None
    serves = f"hctx {vector.hctx}" if vector.hctx is not None else "no single queue"
    meaning = f"the CPUs that interrupt {irq} ({vector.name}, {serves}) may go to"
    return _state(name, meaning, [(disk, now)], (), "a CPU list such as 0-3,8", roots, "")


def _state(
    name: str,
    meaning: str,
    current_values: Sequence[tuple[BlockDevice, str]],
    values: Sequence[str],
    takes: str,
    roots: Roots,
    idle: str,
) -> TunableState:
    refusal = next(
        (r for disk, _ in current_values if (r := why_not_changeable(disk, name, roots))), None
    )
    return TunableState(
        name=name,
        meaning=meaning,
        now=current_values[0][1],
        values=tuple(values),
        allowed=takes,
        by_disk=tuple((disk.name, value) for disk, value in current_values)
        if len(current_values) > 1
        else (),
        refused=refusal.message if refusal else "",
        hint=refusal.hint if refusal else "",
        idle=idle,
    )
