"""Interrupts of each CPU: /sys/kernel/irq/N/per_cpu_count, and the function-call interrupts in
/proc/interrupts.

A wide machine has tens of thousands of these counts, and few of them are used. So a reading is
validated but kept as text. Counts are parsed on demand; changes between two readings are found by
comparing the texts.

No file smaller than /proc/interrupts has the function-call interrupts, and the kernel writes the
whole table for each reading: megabytes on a machine with hundreds of CPUs, which take tens of
milliseconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import ne

from iopstui.linux.counters import procfs
from iopstui.linux.counters.procfs import DIGITS, integers
from iopstui.linux.kernel_files import KernelFile
from iopstui.linux.own_threads import BackgroundReader

# Python refuses numbers of 4,300 digits or more
SHORT_NUMBER_CHARS = 2000


class PerCpuCount:
    """A reading of a per-CPU table: its validated ``text``, and the CPUs of its columns."""

    __slots__ = ("_growth", "_newest", "cpus", "text")

    def __init__(self, text: bytes, cpus: Sequence[int], newest: _Newest) -> None:
        self.text = text
        self.cpus = cpus
        self._newest = newest
        # the earlier text (not the reading, which would keep all earlier readings alive), and the
        # growth of each count since then
        self._growth: tuple[bytes, dict[int, int]] | None = None

    def counts(self) -> dict[int, int]:
        """Return the counts by CPU; callers must not change them."""
        return self._newest.counts(self)

    def increase_since(self, before: object) -> dict[int, int] | None:
        """Growth of each count since another reading, without counts that did not change; ``None``
        if that reading has other CPUs."""
        if before is self:
            return {}
        if not isinstance(before, PerCpuCount):
            return None
        if before.cpus is not self.cpus and before.cpus != self.cpus:
            return None
        growth = self._growth
        if growth is None or growth[0] is not before.text:
            growth = self._growth = before.text, _growth(self.text, before.text, self.cpus)
        return growth[1]


class _Newest:
    """Cache of one interrupt's last parsed reading. The next reading differs in few counts."""

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        # replaced as a whole, because several threads may read it
        self._latest: tuple[PerCpuCount, dict[int, int]] | None = None

    def counts(self, reading: PerCpuCount) -> dict[int, int]:
        newest = self._latest
        growth = None if newest is None else reading.increase_since(newest[0])
        if newest is None or growth is None:
            counts = parse_per_cpu_count(reading.text, reading.cpus) or {}
        elif not growth:
            return newest[1]
        else:
            counts = newest[1].copy()
            for cpu, more in growth.items():
                counts[cpu] += more
        self._latest = reading, counts
        return counts


def parse_per_cpu_count(data: bytes, possible: Sequence[int]) -> dict[int, int] | None:
    """/sys/kernel/irq/N/per_cpu_count (Documentation/ABI/testing/sysfs-kernel-irq): "3,0,17".

    ``possible`` are the possible CPUs' numbers, in order (the header of /proc/softirqs); an empty
    sequence means 0, 1, 2 ... ``None`` if the text and the CPUs do not match, or the text is cut
    off: the kernel writes at most a page (4,096 bytes on x86), and a newline only after a complete
    text (kernel/irq/irqdesc.c, per_cpu_count_show). So with many hundred CPUs a busy interrupt's
    counts are unknown instead of wrong."""
    if data[-1:] != b"\n":
        return None
    columns = data.strip().split(b",")
    cpus = possible or range(len(columns))
    numbers = integers(columns) if len(columns) == len(cpus) else None
    return None if numbers is None else dict(zip(cpus, numbers, strict=True))


def next_per_cpu_count(
    data: bytes, possible: Sequence[int], before: PerCpuCount | None
) -> PerCpuCount | None:
    """Parse the text as ``parse_per_cpu_count`` does; return ``before`` (the same interrupt's last
    reading) if nothing has changed."""
    cpus = possible or range(data.count(b",") + 1)
    same_cpus = before is not None and (before.cpus is cpus or before.cpus == cpus)
    if before is not None and same_cpus and before.text == data:
        return before
    if not _is_plain(data, len(cpus)) and parse_per_cpu_count(data, possible) is None:
        return None
    return PerCpuCount(data, cpus, before._newest if before is not None else _Newest())


def _is_plain(data: bytes, count: int) -> bool:
    """Whether the text has exactly this many numbers in the kernel's format, none with too many
    digits."""
    return (
        data[:1].isdigit()
        and data[-2:-1].isdigit()
        and data[-1:] == b"\n"
        and b",," not in data
        and data.translate(None, DIGITS) == b"," * (count - 1) + b"\n"
        and (len(data) <= SHORT_NUMBER_CHARS or _has_short_numbers(data))
    )


def _has_short_numbers(data: bytes) -> bool:
    return all(
        data.find(b",", at, at + SHORT_NUMBER_CHARS) >= 0
        for at in range(0, len(data) - SHORT_NUMBER_CHARS, SHORT_NUMBER_CHARS)
    )


def _growth(now: bytes, before: bytes, cpus: Sequence[int]) -> dict[int, int]:
    """The growth from ``before`` to ``now``, both valid and with these CPUs."""
    growth: dict[int, int] = {}
    new, old = now.split(b","), before.split(b",")
    for n in compress(range(len(new)), map(ne, new, old)):
        if increase := int(new[n]) - int(old[n]):
            growth[cpus[n]] = increase
    return growth


# bytes that contain the lines below the numbered ones (about 25) with 4,096 CPUs
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
        """Return the requested result, once, if it has arrived. Raises OSError if the file can't be
        read."""
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
