"""A FUSE file system with one file of 64 MiB, "file", which it serves slowly: each read takes a
set time. Arguments: where to mount it, and the seconds. Speaks the kernel's protocol (fuse(4)),
because that needs no library; runs until its file system is unmounted."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import time

SIZE = 64 << 20
LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, OPENDIR, INTERRUPT, BATCH_FORGET = (
    1, 2, 3, 14, 15, 26, 27, 36, 42,
)  # fmt: skip
WITHOUT_ANSWER = (FORGET, INTERRUPT, BATCH_FORGET)
HEADER, ROOT, FILE, TIMEOUT_S = 40, 1, 2, 1000
ENOENT, ENOSYS = 2, 38
ASYNC_READ = 1
"""The reader waits for the page, as it does on a disk, not for the request."""


def attributes(node: int) -> bytes:
    """``struct fuse_attr`` of the root directory or the file."""
    size, mode = (0, 0o040777) if node == ROOT else (SIZE, 0o100666)
    return struct.pack("<6Q3I6II", node, size, *[0] * 7, mode, 1, 0, 0, 0, 4096, 0)


def answer(operation: int, node: int, body: bytes, delay_s: float) -> tuple[int, bytes]:
    """(error number, what is answered)."""
    if operation == INIT:
        limits = 12, 9, 1 << 17, 1, 0, 0
        return 0, struct.pack("<4I2H2I2H8I", 7, 31, 1 << 17, ASYNC_READ, *limits, *[0] * 8)
    if operation == LOOKUP:
        entry = struct.pack("<4Q2I", FILE, 0, TIMEOUT_S, TIMEOUT_S, 0, 0) + attributes(FILE)
        return (0, entry) if body.rstrip(b"\0") == b"file" else (ENOENT, b"")
    if operation == GETATTR:
        return 0, struct.pack("<QII", TIMEOUT_S, 0, 0) + attributes(node)
    if operation in (OPEN, OPENDIR):
        return 0, struct.pack("<QII", 1, 0, 0)
    if operation == READ:
        time.sleep(delay_s)
        return 0, b"x" * struct.unpack_from("<QQI", body)[2]
    return ENOSYS, b""


def main(place: str, delay_s: float) -> None:
    """Mount it and serve it."""
    kernel = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={kernel},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"slow", place.encode(), b"fuse.slow", 0, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    while True:
        request = os.read(kernel, 1 << 18)
        _, operation, unique, node = struct.unpack_from("<IIQQ", request)
        if operation not in WITHOUT_ANSWER:
            error, text = answer(operation, node, request[HEADER:], delay_s)
            os.write(kernel, struct.pack("<IiQ", 16 + len(text), -error, unique) + text)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
