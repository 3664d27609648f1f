"""The write guard of a prepared job. It checks when the job is prepared, checks again right before
fio starts, and holds the files while the job runs.

The files of a job are those that fio itself says it opens; fio alone would create a regular file
for a mistyped device name, and write to a disk whose partition is mounted. The checked files are
then granted to fio one by one, and the kernel denies it all others (fio/fence_exec.py)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import Missing, Refused, UsageError
from iopstui.fio.fence import Grant, grant
from iopstui.fio.inspect import JobFacts
from iopstui.linux.devices.aliases import read_backings
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.devices.usage.mounts import kernel_file_system
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.stack import Stack
from iopstui.model.block.target import DEVICE, DIRECTORY, Target
from iopstui.model.fio import jobfile
from iopstui.safety import refusals as safety
from iopstui.safety.file_users import FileUsers
from iopstui.safety.locks import ActiveRun, HeldLock, identity, lock, lock_node, require_rights
from iopstui.safety.refusals import bind_paths
from iopstui.text import printable

Devices = Mapping[str, BlockDevice]


@dataclass(frozen=True, slots=True)
class CheckedJob:
    """The files of one job and how it uses them. ``files`` are absolute paths; ``cwd`` is fio's
    working directory; with ``scratch`` everything must stay inside that directory."""

    facts: JobFacts
    files: tuple[str, ...]
    cwd: Path
    scratch: Path | None = None


class WriteGuard:
    """Guards the files of one job. ``close`` releases the reserved devices and may be called twice.
    ``active``: the run of this session that the job replaces. Its locks and reserved devices are
    adopted (duplicated), and its processes don't count as other users; all other checks are the
    same as for a first run."""

    def __init__(
        self, job: CheckedJob, destroy_data: Sequence[str], roots: Roots,
        active: ActiveRun | None = None,
    ) -> None:  # fmt: skip
        self._job = job
        self._active = active
        self._writes = job.facts.writes
        self._removes = jobfile.removes_files(job.facts.options)
        self._destroy_data = tuple(destroy_data)
        self._roots = roots
        self._resources = ExitStack()
        self._locks: list[HeldLock] = []
        self._holds: list[int] = []
        self._read_grants: list[Grant] = []
        self._write_grants: list[Grant] = []
        # the file or device behind each path when it was first examined
        self._examined: dict[str, tuple[int, int, int]] = {}
        # bind the paths of --destroy-data to what they name now, even if files are renamed later
        bind_paths(self._destroy_data)
        # warnings to report before something is written, by path
        self.doubts: dict[str, str] = {}

    @property
    def reads(self) -> tuple[Grant, ...]:
        """The files and devices that fio may read; known once ``engage`` has examined them."""
        return tuple(self._read_grants)

    @property
    def writes(self) -> tuple[Grant, ...]:
        """The files and devices that fio may also write."""
        return tuple(self._write_grants)

    @property
    def fds(self) -> tuple[int, ...]:
        """Locks and reserved devices, to be kept open until the run's last process has ended."""
        return (*(held.fd for held in self._locks), *self._holds)

    def active_run(self, guard_pid: int, is_given_up: Callable[[], bool] = bool) -> ActiveRun:
        """What a run that replaces this one takes over; ``guard_pid`` is the guard of this run's
        fio. ``is_given_up``: the next run is no longer wanted."""
        return ActiveRun(self._locks, self._holds, guard_pid, is_given_up)

    @property
    def is_needed(self) -> bool:
        """Whether the device of any file needs a check. Files in a scratch directory need none."""
        return self._job.scratch is None

    def check(self, devices: Devices) -> None:
        """Raises UsageError or Refused unless this job may run on these files."""
        self._check_rules()
        users = FileUsers(devices, self._roots, self._active)
        for target in self._targets(devices):
            require_rights(target.path, write=self._writes)
            if self._writes:
                info = self._stat(target.path)
                self._examined[target.path] = identity(info)
                reserved = self._is_held_already(target, devices)
                self._check_target(target, devices, info, users, reserved=reserved)

    def engage(self, devices: Devices) -> None:
        """Check again with the current devices, and reserve them until ``close``."""
        self.close()
        try:
            users = FileUsers(devices, self._roots, self._active)
            stack = Stack(devices, read_backings(devices, self._roots)) if devices else Stack({})
            for target in self._targets(devices):
                open_stat = self._lock(target, stack)
                granted = self._grant(target.path, open_stat)
                if self._writes:
                    self._reserve(target, stack, open_stat, users)
                    self._write_grants.append(granted)
                else:
                    self._read_grants.append(granted)
        except BaseException:
            self.close()
            raise

    def _stat(self, path: str) -> os.stat_result:
        try:
            return os.stat(path)
        except OSError as error:
            raise self._cannot_examine(path, error) from error

    def _cannot_examine(self, path: str, error: OSError) -> Refused:
        return Refused(f"Cannot examine {printable(path)}: {error.strerror}.")

    def _grant(self, path: str, open_stat: os.stat_result) -> Grant:
        """Grant exactly the file that is locked. While it is open, its inode number can't be
        reused."""
        try:
            granted = grant(path)
        except OSError as error:
            raise self._cannot_examine(path, error) from error
        examined = self._examined.get(path, identity(open_stat))
        if not (granted.device, granted.inode, granted.number) == identity(open_stat) == examined:
            raise Refused(
                f"{printable(path)} was replaced by another file during the check.", "Try again."
            )
        return granted

    def _reserve(
        self, target: Target, stack: Stack, open_stat: os.stat_result, users: FileUsers
    ) -> None:
        device = stack.devices.get(target.device or "")
        if target.kind != DEVICE or device is None:
            self._check_target(target, stack.devices, open_stat, users, reserved=False)
            return
        holds = [self._hold_exclusively(path, held_device)
                 for path, held_device in self._exclusive_nodes(target, device, stack)]  # fmt: skip
        self._check_target(target, stack.devices, open_stat, users, reserved=True)
        for hold in holds:
            hold.verify()

    def _exclusive_nodes(
        self, target: Target, device: BlockDevice, stack: Stack
    ) -> Iterator[tuple[str, BlockDevice]]:
        yield str(self._roots.dev / device.name) if target.passthrough else target.path, device
        # others must not mount the lower devices meanwhile, either
        for lower in safety.lower_loops(device.name, stack):
            yield str(self._roots.dev / lower.name), lower

    def _is_held_already(self, target: Target, devices: Devices) -> bool:
        """Whether the active run already holds everything that would be opened exclusively. Raises
        Refused if a path now leads to another device."""
        device = devices.get(target.device or "")
        if self._active is None or target.kind != DEVICE or device is None:
            return False
        stack = Stack(devices, read_backings(devices, self._roots))
        nodes = self._exclusive_nodes(target, device, stack)
        return all(safety.is_held(path, held, self._roots, self._active) for path, held in nodes)

    def _hold_exclusively(self, path: str, device: BlockDevice) -> safety.ExclusiveHold:
        hold = self._resources.enter_context(
            safety.open_exclusively(path, device, self._roots, self._active)
        )
        self._holds.append(hold.fd)
        return hold

    def close(self) -> None:
        """Release the reserved devices."""
        self._resources.close()
        self._locks.clear()
        self._holds.clear()
        self._read_grants.clear()
        self._write_grants.clear()

    def _check_rules(self) -> None:
        facts = self._job.facts
        against = list(jobfile.objections(facts.options))
        for name in self._job.files:
            if self._removes and self._job.scratch is None and os.path.lexists(name):
                against.append(f"unlink= would delete {name} at the end, which exists already")
            if self._is_outside_scratch(name):
                against.append(f"it names {name}, which is not in its scratch directory")
        if against:
            raise Refused(
                f"The job is not run: {printable('; '.join(against))}.",
                "Remove it from the job file, or run the file with fio.",
            )

    def _is_outside_scratch(self, name: str) -> bool:
        scratch = self._job.scratch
        # compared as text, because there may be hundreds of thousands of names
        return scratch is not None and not os.path.normpath(name).startswith(f"{scratch}{os.sep}")

    def _lock(self, target: Target, stack: Stack) -> os.stat_result:
        """Lock a file or device, and return the stat of what is locked. The kernel's own node of a
        device is locked as well, because it stands for all its other nodes."""
        device = stack.devices.get(target.device or "")
        if target.kind == DEVICE and device is not None:
            for name in reversed(stack.below(device.name)):
                self._lock_node(stack.devices[name], shared=True)
            self._lock_node(device, besides=target.path)
        fd = lock(target.path, self._roots, adopted=self._adoptable_locks)
        self._keep_open(fd)
        if kind := kernel_file_system(fd):
            raise Refused(f"{printable(target.path)} is a file of {kind}, which no job may use.")
        return os.fstat(fd)

    def _lock_node(self, device: BlockDevice, *, shared: bool = False, besides: str = "") -> None:
        node = str(self._roots.dev / device.name)
        if besides and _same_node(node, besides):
            return
        # without the right to read it, this user can't conflict with others on it
        with contextlib.suppress(Missing):
            adopted = self._adoptable_locks
            fd = lock_node(device, self._roots, shared=shared, adopted=adopted)
            if fd is not None:
                self._keep_open(fd, shared)

    @property
    def _adoptable_locks(self) -> Sequence[HeldLock]:
        return self._active.locks if self._active is not None else ()

    def _keep_open(self, fd: int, shared: bool = False) -> None:
        self._resources.callback(os.close, fd)
        self._locks.append(HeldLock(fd, shared))

    def _targets(self, devices: Devices) -> list[Target]:
        targets = []
        for name in self._job.files if self.is_needed else ():
            path = Path(name)
            if not os.path.lexists(path) and not self._below_dev(path):
                continue
            # stat is enough here: locking reports a missing right
            target = resolve_target(name, Path("/"), self._roots, devices, to_read=False)
            if target.kind == DIRECTORY:
                raise UsageError(f"The job opens {name} as a file, but it is a directory.",
                                 "For files in a directory: directory=")  # fmt: skip
            targets.append(target)
        return list({target.path: target for target in targets}.values())

    def _below_dev(self, path: Path) -> bool:
        """Whether the path is directly in /dev, or in a missing directory below it. Such a name is
        a mistake, but a name in a file system mounted there (/dev/shm) is not."""
        parent = path.parent
        return parent == self._roots.dev or (
            self._roots.dev in parent.parents and not parent.is_dir()
        )

    def _check_target(
        self,
        target: Target,
        devices: Devices,
        open_stat: os.stat_result,
        users: FileUsers,
        *,
        reserved: bool,
    ) -> None:
        try:
            verdict = safety.check_write(
                target, devices, self._roots, self._destroy_data, reserved=reserved,
                open_stat=open_stat, users=users,
            )  # fmt: skip
        except OSError as error:
            raise self._cannot_examine(target.path, error) from error
        if verdict.unseen:
            self.doubts[target.path] = (
                f"another program may have {printable(target.path)} open for writing: "
                f"{verdict.unseen}"
            )


def _same_node(path: str, other_path: str) -> bool:
    try:
        return os.path.samefile(path, other_path)
    except OSError:
        return False
