"""The write guard applied to a prepared job: checked when preparing, again right before fio
starts, and held while it runs.

What a job works on is what fio itself says it opens; fio would make a regular file of a
mistyped device name, and write to a disk whose partition is mounted. What was checked is then
granted to fio, file by file: the kernel keeps it from all others (fio/fence_exec.py).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import Missing, Refused, UsageError
from iopstui.fio.fence import Grant, grant
from iopstui.fio.inspect import JobFacts
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, DIRECTORY, Target
from iopstui.model.fio import job_rules
from iopstui.safety import refusals as safety
from iopstui.safety.locks import lock, require_rights
from iopstui.text import printable

Devices = Mapping[str, BlockDevice]


@dataclass(frozen=True, slots=True)
class Guarded:
    """What one job does to which files. ``files`` are absolute; ``cwd`` is where fio runs; with
    ``scratch`` everything must stay inside that directory."""

    facts: JobFacts
    files: tuple[str, ...]
    cwd: Path
    scratch: Path | None = None


class WriteGuard:
    """Guards the files of one job. ``close`` lets go of held devices; may be called twice."""

    def __init__(self, job: Guarded, destroy_data: Sequence[str], roots: Roots) -> None:
        self._job = job
        self._writes = job.facts.writes
        self._removes = job_rules.removes_files(job.facts.options)
        self._destroy_data = tuple(destroy_data)
        self._roots = roots
        self._held = ExitStack()
        self._fds: list[int] = []
        self._read: list[Grant] = []
        self._write: list[Grant] = []
        # what is worth telling before something is written, by path
        self.doubts: dict[str, str] = {}

    @property
    def reads(self) -> tuple[Grant, ...]:
        """The files and devices that fio may read, once ``engage`` has examined them."""
        return tuple(self._read)

    @property
    def writes(self) -> tuple[Grant, ...]:
        """Those that it may write, too."""
        return tuple(self._write)

    @property
    def fds(self) -> tuple[int, ...]:
        """Locks and held devices, to be kept open until the run's last process is gone."""
        return tuple(self._fds)

    @property
    def looks(self) -> bool:
        """Whether there is a file whose device matters: in a scratch directory there is none."""
        return self._job.scratch is None

    def check(self, devices: Devices) -> None:
        """Raises UsageError or Refused unless this job may run on these files."""
        self._check_rules()
        for target in self._targets(devices):
            require_rights(target.path, write=self._writes)
            if self._writes:
                self._check_one(target, devices, held=False)

    def engage(self, devices: Devices) -> None:
        """Check again with the devices as they are now, which are then held until ``close``."""
        self.close()
        try:
            for target in self._targets(devices):
                self._lock(target, devices)
                granted = self._grant(target.path)
                if self._writes:
                    self._engage_one(target, devices)
                    self._write.append(granted)
                else:
                    self._read.append(granted)
        except BaseException:
            self.close()
            raise

    def _grant(self, path: str) -> Grant:
        """Grant exactly the file that is locked: while it is open its number names nothing else."""
        try:
            found, held = grant(path), os.fstat(self._fds[-1])
        except OSError as error:
            raise Refused(f"{path} can't be examined: {error.strerror}.") from error
        if (found.device, found.inode) != (held.st_dev, held.st_ino):
            raise Refused(
                f"{path} was replaced by another file while it was examined.", "Try again."
            )
        return found

    def _engage_one(self, target: Target, devices: Devices) -> None:
        device = devices.get(target.device or "")
        if target.kind != DEVICE or device is None:
            self._check_one(target, devices, held=False)
            return
        held = self._held.enter_context(safety.hold(target.path, device, self._roots))
        self._fds.append(held.fd)
        self._check_one(target, devices, held=True)
        held.verify()

    def close(self) -> None:
        """Release what is held."""
        self._held.close()
        self._fds.clear()
        self._read.clear()
        self._write.clear()

    def _check_rules(self) -> None:
        facts = self._job.facts
        against = list(job_rules.objections(facts.options))
        for name in self._job.files:
            if self._removes and self._job.scratch is None and os.path.lexists(name):
                against.append(f"unlink= removes {name} at the end, and it exists")
            if self._outside(name):
                against.append(f"it names {name}, which is not in its scratch directory")
        if against:
            raise Refused(
                f"The job is not run: {printable('; '.join(against))}.",
                "Take that out of the job file, or run it with fio itself.",
            )

    def _outside(self, name: str) -> bool:
        scratch = self._job.scratch
        # as text: there may be hundreds of thousands of names
        return scratch is not None and not os.path.normpath(name).startswith(f"{scratch}{os.sep}")

    def _lock(self, target: Target, devices: Devices) -> None:
        device = devices.get(target.device or "")
        disk = devices.get(device.disk or "") if device is not None else None
        if target.kind == DEVICE and disk is not None:
            self._lock_disk(disk)
        self._keep(lock(target.path, self._roots))

    def _lock_disk(self, disk: BlockDevice) -> None:
        # a user who may read only the partition can't conflict with anybody on the disk
        with contextlib.suppress(Missing):
            self._keep(lock(disk.path, self._roots, shared=True))

    def _keep(self, fd: int) -> None:
        self._held.callback(os.close, fd)
        self._fds.append(fd)

    def _targets(self, devices: Devices) -> list[Target]:
        found = []
        for name in self._job.files if self.looks else ():
            path = Path(name)
            if not os.path.lexists(path) and not self._below_dev(path):
                continue
            # stat is enough here: the lock says which right is missing
            target = resolve_target(name, Path("/"), self._roots, devices, to_read=False)
            if target.kind == DIRECTORY:
                raise UsageError(f"The job opens {name} as a file, but it is a directory.")
            found.append(target)
        return list({target.path: target for target in found}.values())

    def _below_dev(self, path: Path) -> bool:
        """A name under /dev that does not exist is a mistake, except in a file system there
        (/dev/shm)."""
        parent = path.parent
        return parent == self._roots.dev or (
            self._roots.dev in parent.parents and not parent.is_dir()
        )

    def _check_one(self, target: Target, devices: Devices, *, held: bool) -> None:
        word = self._word_for(target)
        try:
            verdict = safety.check_write(target, devices, self._roots, word, held=held)
        except OSError as error:
            raise Refused(f"{target.path} can't be examined: {error.strerror}.") from error
        if verdict.unseen:
            self.doubts[target.path] = (
                f"whether another program has {printable(target.path)} open for writing is not "
                f"known: {verdict.unseen}"
            )

    def _word_for(self, target: Target) -> str | None:
        """The --destroy-data for this target; a wrong one rather than none."""
        for word in self._destroy_data:
            if os.path.isabs(word) and os.path.realpath(word) == target.path:
                return word
        return self._destroy_data[0] if self._destroy_data else None
