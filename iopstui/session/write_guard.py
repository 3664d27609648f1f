"""The write guard applied to a prepared job: checked when preparing, again right before fio
starts, and held while it runs.

What a job writes to is what fio itself says it opens; fio would make a regular file of a
mistyped device name, and write to a disk whose partition is mounted. What was checked is then
granted to fio, file by file: the kernel keeps it from writing anywhere else (sources/fio_guard).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import Missing, Refused, UsageError
from iopstui.model import job_rules
from iopstui.model.device import BlockDevice
from iopstui.model.target import DEVICE, DIRECTORY, Target
from iopstui.session import safety
from iopstui.session.locks import lock, require_rights
from iopstui.sources.fio_guard import landlock_abi
from iopstui.sources.fio_inspect import JobFacts
from iopstui.sources.roots import Roots
from iopstui.sources.target import resolve_target
from iopstui.text import printable

Devices = Mapping[str, BlockDevice]


@dataclass(frozen=True, slots=True)
class Guarded:
    """What one job does to what. ``files`` are absolute; ``cwd`` is where fio runs; with
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
        self._grants: tuple[str, ...] = ()
        self._created: set[str] = set()

    @property
    def grants(self) -> tuple[str, ...]:
        """What fio may write besides its own directories (``fio_guard`` says in what form)."""
        return self._grants

    @property
    def fds(self) -> tuple[int, ...]:
        """Locks and held devices, to be kept open until the run's last process is gone."""
        return tuple(self._fds)

    def check(self, devices: Devices) -> None:
        """Raises UsageError or Refused unless this job may run on these files."""
        self._check_rules()
        self._grants = self._new_files()
        for target in self._targets(devices):
            require_rights(target.path, write=self._writes)
            if self._writes:
                self._check_one(target, devices, held=False)

    def engage(self, devices: Devices) -> None:
        """The same with the devices as they are now, which are then held until ``close``."""
        self.close()
        grants = list(self._new_files())
        try:
            for target in self._targets(devices):
                self._lock(target, devices)
                if not self._writes or target.path in self._created:
                    continue
                device = devices.get(target.device or "")
                if target.kind == DEVICE and device is not None:
                    held = self._held.enter_context(safety.hold(target.path, device, self._roots))
                    self._fds.append(held.fd)
                    grants.append(_grant("w", target.path))
                    self._check_one(target, devices, held=True)
                    held.verify()
                else:
                    grants.append(_grant("w", target.path))
                    self._check_one(target, devices, held=False)
        except BaseException:
            self.close()
            raise
        self._grants = tuple(grants)

    def created(self, files: Sequence[str]) -> None:
        """These did not exist when ``check`` passed and have been made for this job."""
        self._created |= {os.path.realpath(name) for name in files}

    def close(self) -> None:
        """Let go of what is held."""
        self._held.close()
        self._fds.clear()

    def _check_rules(self) -> None:
        facts = self._job.facts
        fenced = landlock_abi() > 0
        against = list(job_rules.objections(facts.options, facts.writes, fenced))
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
        self._check_iologs()

    def _outside(self, name: str) -> bool:
        scratch = self._job.scratch
        return scratch is not None and scratch not in Path(os.path.normpath(name)).parents

    def _check_iologs(self) -> None:
        for name in job_rules.written_logs(self._job.facts.options):
            path = self._job.cwd / name
            if os.path.lexists(path):
                raise Refused(
                    f"The job would write its log over {printable(str(path))}, which exists.",
                    "Give write_iolog= another name.",
                )

    def _new_files(self) -> tuple[str, ...]:
        """Grants for the directories in which the job makes files."""
        made = [self._job.cwd / name for name in self._job.files if not os.path.lexists(name)]
        options = self._job.facts.options
        made += [self._job.cwd / (name or ".") for name in job_rules.written_logs(options)]
        made += [self._job.cwd / f"{name}_log" for name in job_rules.log_prefixes(options)]
        places = dict.fromkeys(os.path.realpath(path.parent) for path in made)
        return tuple(_grant("d", place) for place in places if self._may_hold_files(Path(place)))

    def _may_hold_files(self, place: Path) -> bool:
        """Not where the kernel's own files are, nor above: a grant holds for all below."""
        system = [self._roots.dev, self._roots.sys, self._roots.proc]
        shm = self._roots.dev / "shm"
        if not place.is_dir() or any(place in (top, *top.parents) for top in system):
            return False
        if place == shm or shm in place.parents:
            return True
        return not any(top in place.parents for top in system)

    def _lock(self, target: Target, devices: Devices) -> None:
        device = devices.get(target.device or "")
        disk = devices.get(device.disk or "") if device is not None else None
        if target.kind == DEVICE and disk is not None:
            self._lock_disk(disk)
        self._keep(lock(target.path, self._roots))

    def _lock_disk(self, disk: BlockDevice) -> None:
        # whoever may read a partition alone meets nobody on the disk
        with contextlib.suppress(Missing):
            self._keep(lock(disk.path, self._roots, shared=True))

    def _keep(self, fd: int) -> None:
        self._held.callback(os.close, fd)
        self._fds.append(fd)

    def _targets(self, devices: Devices) -> list[Target]:
        found = []
        for name in self._job.files if self._job.scratch is None else ():
            path = Path(name)
            if not os.path.lexists(path) and not self._below_dev(path):
                continue
            # looking at it is enough here: the lock says which right is missing
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
            safety.check_write(target, devices, self._roots, word, held=held)
        except OSError as error:
            raise Refused(f"{target.path} can't be examined: {error.strerror}.") from error

    def _word_for(self, target: Target) -> str | None:
        """The --destroy-data that means this target; a wrong one rather than none."""
        for word in self._destroy_data:
            if os.path.isabs(word) and os.path.realpath(word) == target.path:
                return word
        return self._destroy_data[0] if self._destroy_data else None


def _grant(kind: str, path: str) -> str:
    info = os.stat(path)
    return f"{kind}:{info.st_dev}:{info.st_ino}:{path}"
