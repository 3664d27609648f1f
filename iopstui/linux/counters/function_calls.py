"""The function-call interrupts of /proc/interrupts, read beside the samples where necessary.

There is no smaller file that has them, and the kernel writes the whole table for each reading:
megabytes on a machine with hundreds of CPUs, which take tens of milliseconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from iopstui.linux.background import BackgroundReader
from iopstui.linux.counters import procfs
from iopstui.linux.counters.kernel_file import KernelFile

# enough for the lines below the numbered ones (about 25) with 4,096 CPUs
TAIL_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class FunctionCalls:
    """Counts by CPU (``None``: the architecture has none), with the middle of the reading by
    CLOCK_MONOTONIC. The reading took ``took_ns``."""

    counts: dict[int, int] | None
    at_ns: int
    took_ns: int


class FunctionCallReader(BackgroundReader):
    """Reads function-call counts now (``read``) or in the background (``ask``, later ``take``)."""

    name = "interrupts"

    def __init__(self, file: KernelFile, clock: Callable[[], int]) -> None:
        super().__init__()
        self._file = file
        self._clock = clock
        self._result: FunctionCalls | OSError | None = None

    def read(self) -> FunctionCalls:
        """Read the counts now. Raises OSError."""
        start = self._clock()
        counts = procfs.parse_function_calls(*self._first_line_and_tail())
        end = self._clock()
        return FunctionCalls(counts, (start + end) // 2, end - start)

    def _first_line_and_tail(self) -> tuple[bytes, bytes]:
        """The file's first line and its end."""
        first = b""
        tail = deque[bytes]()
        size = 0
        for chunk in self._file.chunks():
            if b"\n" not in first:
                first += chunk
            tail.append(chunk)
            size += len(chunk)
            while size - len(tail[0]) >= TAIL_BYTES:
                size -= len(tail.popleft())
        return first.split(b"\n", 1)[0], b"".join(tail)

    @property
    def busy(self) -> bool:
        """Whether a reading was requested and not taken yet."""
        return self._thread is not None

    def ask(self) -> None:
        """Begin a reading, unless one is in progress."""
        if not self.busy:
            self._begin(self._read_in_thread)

    def take(self) -> FunctionCalls | None:
        """The requested result, once, if it is there by now. Raises OSError if it can't be read."""
        if not self.busy or self._is_reading:
            return None
        self._thread = None
        result, self._result = self._result, None
        if isinstance(result, OSError):
            raise result
        return result

    def close(self) -> None:
        """Wait for a reading in progress, and forget it. The file stays open."""
        super().close()
        self._wait()
        self._thread = self._result = None

    def _read_in_thread(self) -> None:
        try:
            self._result = self.read()
        except OSError as error:
            self._result = error
