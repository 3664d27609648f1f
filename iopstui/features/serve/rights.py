"""The rights of the processes that viewers' screens run in, and what they may cost."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import resource
import signal
import stat
import struct
import sys
from pathlib import Path

import iopstui
from iopstui.errors import Missing
from iopstui.fio import fence_exec

NOBODY = "nobody"
LOWEST_PRIORITY = 19
MAX_MEMORY = 1 << 30
SYSTEM_FILES = ("/etc/localtime", "/usr/share/zoneinfo", "/etc/terminfo", "/usr/share/terminfo")

# linux/prctl.h, linux/capability.h
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS = 1, 8
CAP_DAC_READ_SEARCH = 2
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class Rights:
    """What remains of this process's rights, decided before anything is given up.

    Root becomes ``nobody``. If ``nobody`` cannot read Python or iopstui (in root's home, say), the
    process keeps the right to read all files, within the directories that Landlock leaves it.
    Missing if this kernel has no Landlock then.
    """

    def __init__(self) -> None:
        self._landlock = fence_exec.landlock_abi() > 0
        self._user = _nobody_user() if os.geteuid() == 0 else None
        self._directories = sorted(_python_directories())
        hidden = [
            directory for directory in self._directories if not _others_can_read(Path(directory))
        ]
        self._reads_all = self._user is not None and bool(hidden)
        if self._reads_all and not self._landlock:
            raise Missing(
                f"Viewers must not run as root, but other users cannot read {hidden[0]}, and this "
                "kernel has no Landlock to restrict them otherwise.",
                "Install iopstui for all users (in /opt, say), or start it as another user.",
            )

    def drop(self) -> None:
        """Stop being root, and write no file and execute no program from now on."""
        if self._user is not None:
            self._become(self._user)
        for rlimit, limit in (
            (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MAX_MEMORY),
        ):  # fmt: skip
            resource.setrlimit(rlimit, (limit, limit))
        kind = fence_exec.LANDLOCK if self._landlock else fence_exec.NONE
        fence_exec.enter({"kind": kind, "open": self._directories, "system": SYSTEM_FILES})

    def _become(self, user: pwd.struct_passwd) -> None:
        if self._reads_all:
            _check_result(_libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
        if self._reads_all:
            mask = 1 << CAP_DAC_READ_SEARCH
            header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
            _check_result(_libc.capset(header, struct.pack("=6I", mask, mask, 0, 0, 0, 0)))


def limit_cost(cpu: int | None) -> None:
    """Share one CPU at the lowest priority: all viewers together never take more."""
    os.nice(LOWEST_PRIORITY)
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu if cpu in allowed else max(allowed)})


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends."""
    _check_result(_libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))


def _nobody_user() -> pwd.struct_passwd:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(NOBODY)
    raise Missing(
        "Viewers must not run as root, but there is no user nobody.",
        "Start `iopstui serve` as another user.",
    )


def _python_directories() -> set[str]:
    """Where modules and their data are loaded from."""
    package = str(Path(iopstui.__file__).resolve().parent)
    # `python -m` adds the directory that it is started in, which has the user's own files
    added = {path for path in sys.path if os.path.isabs(path) and path != os.getcwd()}
    paths = {package, sys.prefix, sys.base_prefix, *added}
    return {path for path in paths if os.path.isdir(path) and path != "/"}


def _others_can_read(directory: Path) -> bool:
    path = directory.resolve()
    needed = stat.S_IROTH | stat.S_IXOTH
    if path.stat().st_mode & needed != needed:
        return False
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)


def _check_result(answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
