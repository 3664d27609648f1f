"""Run a command on a kernel that seems to have no Landlock, and with ``--no-namespaces`` no
namespaces either: a seccomp filter answers its system calls (seccomp(2)).

``python no_landlock.py [--no-namespaces] COMMAND...``
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
LANDLOCK = (444, 445, 446)
UNSHARE = {"x86_64": 272, "aarch64": 97, "riscv64": 97, "ppc64le": 282, "s390x": 303}


def install(namespaces: bool = True) -> None:
    """Install the filter for this process and its children."""
    answers = [(number, errno.ENOSYS) for number in LANDLOCK]
    if not namespaces:
        answers.append((UNSHARE[platform.machine()], errno.EPERM))
    code = [struct.pack("HBBI", LOAD, 0, 0, 0)]
    for number, error in answers:
        code.append(struct.pack("HBBI", EQUAL, 0, 1, number))
        code.append(struct.pack("HBBI", RETURN, 0, 0, ERROR | error))
    code.append(struct.pack("HBBI", RETURN, 0, 0, ALLOW))
    text = ctypes.create_string_buffer(b"".join(code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    words = sys.argv[1:]
    install(namespaces="--no-namespaces" not in words)
    command = [word for word in words if word != "--no-namespaces"]
    os.execvp(command[0], command)
