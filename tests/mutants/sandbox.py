"""A sandbox for a changed program, which may remove files, kill processes or mount over them.

As root, every run of tests has its own mount and process namespaces: everything outside its copy of
the tree is read-only or temporary, and it sees no other process. Another user has no sandbox and
could damage their own files: a virtual machine is the better place."""

from __future__ import annotations

import os
from pathlib import Path

NO_SANDBOX = 99
_SCRIPT = f"""
mount --bind "$0" "$0" && mount -o remount,ro,bind / && mount -o remount,ro,bind /sys &&
mkdir -p "$0/tmp" && mount -t tmpfs -o mode=1777 mutants "$0/tmp" &&
mount -t tmpfs -o mode=1777 mutants /dev/shm && cd "$0" || exit {NO_SANDBOX}
TMPDIR="$0/tmp" exec "$@"
"""


def inside(tree: Path) -> list[str]:
    """The beginning of a command that may write only in ``tree``."""
    if os.geteuid():
        return []
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            "sh", "-c", _SCRIPT, str(tree)]  # fmt: skip
