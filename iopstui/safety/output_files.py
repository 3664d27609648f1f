"""Write files for the user, which appear only when they are complete."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def write_whole(path: Path, write: Callable[[BinaryIO], object], overwrite: bool = False) -> None:
    """Write ``path`` with the function ``write``, atomically: after a failure the file is
    unchanged. Raises OSError; FileExistsError for an existing file, unless ``overwrite``. A link is
    replaced, not followed. The new file has the read permissions of the old one."""
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    fd, name = tempfile.mkstemp(prefix=".iopstui-", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            write(file)
        os.chmod(name, _mode(path))
        if overwrite:
            os.replace(name, path)
        else:
            _move_to_new(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _move_to_new(name: str, path: Path) -> None:
    """Give the file its name, unless another file has it."""
    try:
        os.link(name, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        os.rename(name, path)
    else:
        os.unlink(name)


def _mode(path: Path) -> int:
    """Permissions of the existing file, or those that the umask gives a new file."""
    with contextlib.suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode):
            return mode & 0o777
    return 0o644 & ~_umask()


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
