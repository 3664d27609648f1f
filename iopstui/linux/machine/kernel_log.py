"""Errors of disks in the kernel's log (Documentation/ABI/testing/dev-kmsg). Many I/Os fail without
telling a program, such as writes from the page cache."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from io import FileIO
from pathlib import Path

from iopstui.linux.sysattr import decode
from iopstui.model.findings.conditions import LoggedErrors
from iopstui.text import printable

MAX_RECORDS = 1000
"""So many are read at a time; a kernel that logs more limits their rate by itself."""
_RECORD_BYTES = 8192
_KERNEL_BELOW = 8
"""Facility 0, the kernel's own, of any level: programs may write to the log, too."""
_NAME = r"([\w!./-]{1,32})"
_PATTERNS = (
    # block/blk-core.c; a command that a device does not support is tried once and is no error
    rf"(?<!operation not supported) error, dev {_NAME}, sector \d+"
    r"(?!.*:\((?:DISCARD|SECURE_ERASE|WRITE_ZEROES)\))",
    rf"Buffer I/O error on dev(?:ice)? {_NAME}, logical block",
    rf"EXT4-fs error \(device {_NAME}\)",
    rf"EXT4-fs \({_NAME}\): Remounting filesystem read-only",
    rf"XFS \({_NAME}\): .*(?:I/O error|error -5|[Ss]hut(?:ting)? down|Corruption)",
    rf"BTRFS (?:error|critical) \(device {_NAME}\).*(?:I/?O|errs)",
)  # fmt: skip
_ERROR = re.compile("|".join(_PATTERNS))


def disk_of_error(message: str) -> str:
    """The device that a line of the log reports an error of; "" if it does not."""
    found = _ERROR.search(message)
    return next(filter(None, found.groups()), "") if found is not None else ""


class KernelLog:
    """Counts errors from now on. Only root, or CAP_SYSLOG, may read it on most machines."""

    def __init__(self, path: Path) -> None:
        self._errors: dict[str, LoggedErrors] = {}
        self._file: FileIO | None = None
        with contextlib.suppress(OSError):
            self._file = FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            self._file.seek(0, os.SEEK_END)

    def errors(self, t: float) -> Mapping[str, LoggedErrors] | None:
        """The errors of each device so far; ``t`` is the session's clock. ``None``: the log can't
        be read."""
        if self._file is None:
            return None
        for _ in range(MAX_RECORDS):
            try:
                record = self._file.read(_RECORD_BYTES)
            except BrokenPipeError:  # older ones were overwritten
                continue
            except OSError:
                break
            if not record:
                break
            self._add(decode(record), t)
        return dict(self._errors)

    def _add(self, record: str, t: float) -> None:
        # "6,339,5140900,-;message\n SUBSYSTEM=block\n": facility and level, number, microseconds
        priority, _, rest = record.partition(",")
        message = printable(rest.partition(";")[2].partition("\n")[0])
        if priority.isdecimal() and int(priority) < _KERNEL_BELOW:
            name = disk_of_error(message)
            if name:
                before = self._errors.get(name)
                self._errors[name] = LoggedErrors((before.count if before else 0) + 1, t, message)

    def close(self) -> None:
        """It is not read again."""
        if self._file is not None:
            self._file.close()
            self._file = None
