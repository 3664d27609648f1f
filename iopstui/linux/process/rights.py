"""Check the permission to read a device, and explain how to get it."""

from __future__ import annotations

import errno
import os

from iopstui.text import printable

PERMISSION_ERRNOS = (errno.EACCES, errno.EPERM)


def open_error(path: str) -> OSError | None:
    """Try to open a device for reading; return the error, if any. Mode bits are not enough: a
    container's device rules may refuse even root."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as error:
        return error
    return None


def how_to_open(path: str) -> str:
    """Explain how this user can get the missing permission, with a command if there is one."""
    import shlex

    quoted = printable(shlex.quote(path))
    if os.geteuid() != 0:
        return f"Run iopstui with sudo, or as a member of the group that owns it: ls -lL {quoted}"
    return (
        "Even root is refused, so a container's device rules or a security module forbid it. "
        "Run iopstui on the host, or give the container the device (docker run "
        f"--device={quoted})"
    )
