"""A pipe to a host through a local process: ssh or another launcher."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence

LONGEST_LINE = 4 << 20
MAX_UNSENT = 16 << 20
READ = CHUNK = 1 << 16
TAIL = 4096


class Link:
    """Starts ``command`` as a link; never blocks. ``too_long`` counts discarded lines.

    ``out`` and ``err`` are its descriptors to wait on; -1 once they have ended. While there is
    something ``unsent``, ``flush`` is still to be called.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # Ctrl-C is for us: we tell the hosts
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.into = self.process.stdin.fileno()
        self.out = self.process.stdout.fileno()
        self.err = self.process.stderr.fileno()
        for fd in (self.into, self.out, self.err):
            os.set_blocking(fd, False)
        self.too_long = 0
        self.unsent = bytearray()
        self._rest = bytearray()
        self._skipping = False
        self._stderr = b""

    def send(self, data: bytes) -> None:
        """Send, now or as soon as the other side reads."""
        if self.into < 0 or len(self.unsent) >= MAX_UNSENT:
            return
        if not self.unsent:
            # nearly always all of it at once
            try:
                data = data[os.write(self.into, data[:CHUNK]) :]
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
        while self.unsent and self.into >= 0:
            try:
                sent = os.write(self.into, self.unsent[:CHUNK])
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
        if self.into >= 0 and self.process.stdin is not None:
            self.into = -1
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def receive(self) -> bytes | None:
        """Return the received data; ``None`` at the end of the stream."""
        try:
            data = os.read(self.out, READ)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.out = -1
            return None
        return data

    def lines(self, data: bytes) -> list[bytes]:
        """The lines that end in what was received; one that is too long is left out."""
        complete = data.split(b"\n")
        rest = complete.pop()
        if not rest and not self._rest and not self._skipping:
            # nearly always
            return complete
        lines = []
        for line in complete:
            if not self._skipping:
                lines.append(bytes(self._rest) + line)
            self._skipping = False
            self._rest.clear()
        if not self._skipping:
            self._rest += rest
        if len(self._rest) > LONGEST_LINE:
            self.too_long += 1
            self._skipping = True
            self._rest.clear()
        return lines

    def errors(self) -> None:
        """Read the output on standard error."""
        try:
            data = os.read(self.err, READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.err = -1
        self._stderr = (self._stderr + data)[-TAIL:]

    @property
    def last_words(self) -> str:
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
        self.out = self.err = -1
        try:
            return self.process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
