"""Where a changed program can do no harm: it removes files, kills processes and mounts over them.

As root every run of tests has a mount and a process namespace of its own: all but its copy of the
tree is read-only or gone afterwards, and it sees no other process. Anybody else could break only
what is theirs, but is not kept from that: a virtual machine is the better place.
"""

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
    """What a command begins with that may write in ``tree`` alone."""
    if os.geteuid():
        return []
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            "sh", "-c", _SCRIPT, str(tree)]  # fmt: skip
