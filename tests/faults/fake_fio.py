#!/usr/bin/env python3
"""A fio that misbehaves as FAKE_FIO says; the real one (FAKE_FIO_REAL) answers questions."""

import contextlib
import os
import sys
import time

real, how = os.environ["FAKE_FIO_REAL"], os.environ["FAKE_FIO"]
words = sys.argv[1:]
if not any(word.startswith("--status-interval") for word in words):
    os.execv(real, [real, *words])
output = next(word.partition("=")[2] for word in words if word.startswith("--output="))
with open(output, "wb", buffering=0) as file:
    if how == "garbage":
        file.write(b'\xff\x00{{{\n\x1b[31m[red]\n{\n}\n{\n"jobs": 7\n}\n' * 200)
    elif how == "endless":
        until = time.monotonic() + 2
        file.write(b"{\n")
        # the fence doesn't let the file become that large
        with contextlib.suppress(OSError):
            while time.monotonic() < until:
                file.write(b'  "a": ' + b"1" * 100_000)
    elif how == "abort":
        os.abort()
    elif how == "deaf":
        os.execv("/bin/sleep", ["sleep", "60"])
sys.stderr.write("fio: \x1b[2J\x07[bold]nonsense[/bold]\n")
sys.exit(int(os.environ.get("FAKE_FIO_CODE", "0")))
