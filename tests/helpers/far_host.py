"""A launcher in place of ssh: ``far_host.py HOST COMMAND`` runs COMMAND here and relays its lines.

FAR_HOST_<HOST> names a fault that happens after the first frame. "cut": nothing is relayed any
more. "kill": the agent is killed. "garbage", "long": lines that are not the agent's. "closed": the
agent's input ends. "jump": the host's wall clock is an hour ahead from then on. All processes of
the host have FAR_HOST=HOST in their environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

LONG = 1 << 30


class FarHost:
    def __init__(self, host: str, command: str) -> None:
        self.fault = os.environ.get(f"FAR_HOST_{host}", "")
        self.cut = threading.Event()
        self.agent = subprocess.Popen(
            ["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "FAR_HOST": host},
        )  # fmt: skip

    def into(self) -> None:
        assert self.agent.stdin is not None
        try:
            while data := os.read(0, 65536):
                if not self.cut.is_set():
                    self.agent.stdin.write(data)
                    self.agent.stdin.flush()
            self.agent.stdin.close()
        except (OSError, ValueError):
            return

    def out(self) -> None:
        frames = 0
        assert self.agent.stdout is not None
        for line in self.agent.stdout:
            if self.cut.is_set():
                continue
            if b'"event":"frame"' in line:
                frames += 1
                line = self.frame(line, frames)
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def frame(self, line: bytes, frames: int) -> bytes:
        if self.fault == "jump" and frames > 1:
            row = json.loads(line)
            row["wall_ms"] += 3_600_000
            return json.dumps(row).encode() + b"\n"
        if frames == 1 and self.fault:
            # the time of the fault: tests measure from here how long fio stays
            Path(os.environ["FAR_HOST_LOG"]).write_text(str(time.monotonic()))
            self.go_wrong(sys.stdout.buffer)
        return line

    def go_wrong(self, out: IO[bytes]) -> None:
        if self.fault == "cut":
            self.cut.set()
        elif self.fault == "kill":
            for pid in below(self.agent.pid):
                if b"agent" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
        elif self.fault == "garbage":
            out.write(b"\xff{]\x00\n" * 1000 + b'{"event": "frame", "fio": 7}\n[1]\n')
        elif self.fault == "long":
            for _ in range(LONG >> 20):
                out.write(b"x" * (1 << 20))
            out.write(b"\n")
        elif self.fault == "closed":
            assert self.agent.stdin is not None
            os.close(self.agent.stdin.fileno())


def below(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with open(f"/proc/{one}/task/{one}/children") as file:
            found += map(int, file.read().split())
    return found


def main() -> int:
    host = FarHost(sys.argv[1], sys.argv[2])
    threading.Thread(target=host.into, daemon=True).start()
    try:
        host.out()
    except OSError:
        # nobody reads any more; a lost link closes the agent's input, too
        os.close(0)
        if host.agent.stdin is not None:
            os.close(host.agent.stdin.fileno())
    while host.cut.is_set() and host.agent.poll() is None:
        time.sleep(0.05)
    return host.agent.wait()


if __name__ == "__main__":
    os._exit(main())
