"""The write guard applied to a prepared job: checked when preparing, again right before fio
starts, and held while it runs.

What a job writes to is what fio itself says it opens; fio would make a regular file of a
mistyped device name, and write to a disk whose partition is mounted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from iopstui.errors import Refused, UsageError
from iopstui.model.device import BlockDevice
from iopstui.model.target import DEVICE, DIRECTORY, Target
from iopstui.session import safety
from iopstui.sources.roots import Roots
from iopstui.sources.target import resolve_target

Devices = Mapping[str, BlockDevice]
ReadDevices = Callable[[], Devices]


class WriteGuard:
    """Guards the files of one job. ``close`` lets go of held devices; may be called twice."""

    def __init__(
        self, files: Sequence[str], writes: bool, destroy_data: Sequence[str], roots: Roots
    ) -> None:
        self._files = tuple(files)
        self._writes = writes
        self._destroy_data = tuple(destroy_data)
        self._roots = roots
        self._held = ExitStack()
        self._created: set[str] = set()

    def check(self, devices: Devices) -> None:
        """Raises UsageError or Refused unless this job may run on these files."""
        for target in self._targets(devices):
            if self._writes:
                self._check_one(target, devices, held=False)

    def engage(self, devices: Devices) -> None:
        """The same with the devices as they are now, which are then held until ``close``."""
        self.close()
        try:
            for target in self._targets(devices):
                if not self._writes or target.path in self._created:
                    continue
                device = devices.get(target.device or "")
                if target.kind == DEVICE and device is not None:
                    held = self._held.enter_context(safety.hold(target.path, device, self._roots))
                    self._check_one(target, devices, held=True)
                    held.verify()
                else:
                    self._check_one(target, devices, held=False)
        except BaseException:
            self.close()
            raise

    def created(self, files: Sequence[str]) -> None:
        """These did not exist when ``check`` passed and have been made for this job."""
        self._created |= {os.path.realpath(name) for name in files}

    def close(self) -> None:
        """Let go of what is held."""
        self._held.close()

    def _targets(self, devices: Devices) -> list[Target]:
        found = []
        for name in self._files:
            path = Path(name)
            if not os.path.lexists(path) and not self._below_dev(path):
                continue
            if path.exists() and stat.S_ISREG(path.stat().st_mode) and not self._writes:
                continue
            target = resolve_target(name, Path("/"), self._roots, devices)
            if target.kind == DIRECTORY:
                raise UsageError(f"The job opens {name} as a file, but it is a directory.")
            found.append(target)
        return found

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
