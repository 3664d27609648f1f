"""A pipe to a host through a local process: ssh or another launcher."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence

LONGEST_LINE = 4 << 20
MAX_UNSENT = 16 << 20
READ_BYTES = WRITE_BYTES = 1 << 16
STDERR_BYTES = 4096


class Link:
    """Starts ``command`` as a link; never blocks. ``dropped_lines`` counts discarded lines.

    ``out_fd`` and ``err_fd`` are its descriptors to wait on; -1 once they have ended. While there
    is ``unsent`` data, call ``flush``.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # Ctrl-C is for us: we tell the hosts
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.in_fd = self.process.stdin.fileno()
        self.out_fd = self.process.stdout.fileno()
        self.err_fd = self.process.stderr.fileno()
        for fd in (self.in_fd, self.out_fd, self.err_fd):
            os.set_blocking(fd, False)
        self.dropped_lines = 0
        self.unsent = bytearray()
        self._partial_line = bytearray()
        self._skipping = False
        self._stderr = b""

    def send(self, data: bytes) -> None:
        """Send, now or as soon as the other side reads."""
        if self.in_fd < 0 or len(self.unsent) >= MAX_UNSENT:
            return
        if not self.unsent:
            # nearly always all of it at once
            try:
                data = data[os.write(self.in_fd, data[:WRITE_BYTES]) :]
            except BlockingIOError:
                pass
            except OSError:
                self.hang_up()
                return
        if data:
            self.unsent += data
            self.flush()

    def flush(self) -> bool:
        """Send more of the pending data; False if some remains."""
        while self.unsent and self.in_fd >= 0:
            try:
                sent = os.write(self.in_fd, self.unsent[:WRITE_BYTES])
            except BlockingIOError:
                return False
            except OSError:
                self.hang_up()
                break
            del self.unsent[:sent]
        return True

    def hang_up(self) -> None:
        """Send nothing more: close the input of the other side."""
        self.unsent.clear()
        if self.in_fd >= 0 and self.process.stdin is not None:
            self.in_fd = -1
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def receive(self) -> bytes | None:
        """Return the received data; ``None`` at the end of the stream."""
        try:
            data = os.read(self.out_fd, READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.out_fd = -1
            return None
        return data

    def split_lines(self, data: bytes) -> list[bytes]:
        """The lines that end in what was received; one that is too long is left out."""
        complete = data.split(b"\n")
        rest = complete.pop()
        if not rest and not self._partial_line and not self._skipping:
            # nearly always
            return complete
        lines = []
        for line in complete:
            if not self._skipping:
                lines.append(bytes(self._partial_line) + line)
            self._skipping = False
            self._partial_line.clear()
        if not self._skipping:
            self._partial_line += rest
        if len(self._partial_line) > LONGEST_LINE:
            self.dropped_lines += 1
            self._skipping = True
            self._partial_line.clear()
        return lines

    def read_stderr(self) -> None:
        """Read the output on standard error."""
        try:
            data = os.read(self.err_fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.err_fd = -1
        self._stderr = (self._stderr + data)[-STDERR_BYTES:]

    @property
    def last_error_line(self) -> str:
        """The last line of its standard error."""
        lines = self._stderr.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def kill(self) -> None:
        """Tell it to end; what it launched notices by its closed pipes. ``close`` insists."""
        self.hang_up()
        with contextlib.suppress(OSError):
            self.process.terminate()

    def close(self) -> int:
        """Wait for its end, which was seen or forced; its exit code."""
        self.hang_up()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        self.out_fd = self.err_fd = -1
        try:
            return self.process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
