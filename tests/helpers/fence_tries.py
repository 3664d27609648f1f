"""Run as some user, this prints as JSON what a program behind fio's fence may open.

Arguments: the fence's name, what is granted for reading and for writing (JSON), and the attempts as
a JSON list of [what, path]."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from iopstui.fio import fence
from iopstui.fio.fence import Fence, fenced_command, grant

TRY = """
import fcntl, json, os, stat, sys
def write(path):
    os.close(os.open(path, os.O_WRONLY))
def read(path):
    os.close(os.open(path, os.O_RDONLY))
def node(path):
    os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(7, 0))
def truncate(path):
    os.truncate(path, 0)
def discard(path):
    fd = os.open(path, os.O_RDONLY)
    fcntl.ioctl(fd, 0x1277, bytes(8) + (512).to_bytes(8, "little"))
def again(path):
    fd = os.open(path, os.O_RDONLY)
    os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY))
def kill(pid):
    os.kill(int(pid), 0)
acts = {one.__name__: one for one in (write, read, node, truncate, discard, again, kill)}
for what, path in json.loads(sys.argv[1]):
    try:
        acts[what](path)
        print(json.dumps(True), flush=True)
    except OSError:
        print(json.dumps(False), flush=True)
"""


def main(kind: str, reads: list[str], writes: list[str], tries: list[list[str]]) -> None:
    fence.fence_kind = lambda: kind  # type: ignore[assignment]
    what = Fence(read=tuple(map(grant, reads)), write=tuple(map(grant, writes)))
    python = os.path.realpath(sys.executable)
    command = fenced_command(what, [python, "-I", "-S", "-c", TRY, json.dumps(tries)])
    done = subprocess.run(command, capture_output=True, text=True)
    print(json.dumps({"code": done.returncode, "error": done.stderr,
                      "may": [json.loads(line) for line in done.stdout.splitlines()]}))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], *map(json.loads, sys.argv[2:5]))
