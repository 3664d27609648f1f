"""Parse the kernel's counters: bytes in, samples out. This module opens no files.

A line that is not as documented is skipped, never guessed. The CPUs of a file's columns always come
from its own header: /proc/softirqs and per_cpu_count have a column for every possible CPU,
/proc/interrupts and /proc/stat only for online ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from iopstui.model.samples import CpuTimes, DiskCounters

FUNCTION_CALLS = b"function call interrupts"
DIGITS = b"0123456789"


def parse_diskstats(data: bytes, names: Collection[str] | None = None) -> dict[str, DiskCounters]:
    """Rows of /proc/diskstats (Documentation/admin-guide/iostats.rst) by device name.

    ``names`` limits the result to these names (``None``: all). Rows of 20 columns (Linux 5.5), 18
    (4.18), 14 and the four-counter partition rows of old kernels are understood."""
    wanted = None if names is None else set(map(_bytes, names))
    rows: dict[str, DiskCounters] = {}
    for line in data.split(b"\n"):
        columns = line.split()
        if len(columns) >= 7 and (wanted is None or columns[2] in wanted):
            row = _disk_row(columns)
            if row is not None:
                rows[row.name] = row
    return rows


def _disk_row(columns: list[bytes]) -> DiskCounters | None:
    name = columns.pop(2).decode("utf-8", "surrogateescape")
    numbers = integers(columns)
    if numbers is None:
        return None
    if len(numbers) == 19:
        return DiskCounters(name, *numbers)
    major, minor, *counts = numbers
    if len(counts) == 4:
        reads, read_sectors, writes, write_sectors = counts
        return DiskCounters(
            name, major, minor, reads, None, read_sectors, None, writes, None, write_sectors,
            None, None, None, None,
        )  # fmt: skip
    if len(counts) < 11:
        return None
    discards = counts[11:15] if len(counts) >= 15 else [None] * 4
    flushes = counts[15:17] if len(counts) >= 17 else [None] * 2
    return DiskCounters(name, major, minor, *counts[:11], *discards, *flushes)


def parse_stat_cpus(data: bytes) -> dict[int, CpuTimes]:
    """The cpuN lines of /proc/stat (man 5 proc) by CPU number, in clock ticks."""
    cpus: dict[int, CpuTimes] = {}
    # the cpu lines come first; the intr line after them can be very long
    for line in data.partition(b"\nintr")[0].split(b"\n"):
        label, *columns = line.split() or [b""]
        if not label.startswith(b"cpu"):
            break
        cpu, numbers = integers([label[3:]]), integers(columns)
        if cpu is not None and numbers is not None and len(numbers) >= 4:
            # iowait ... steal came with Linux 2.6; older kernels do not account these times
            cpus[cpu[0]] = CpuTimes(*(numbers + [0] * 4)[:8])
    return cpus


def parse_softirqs_block(data: bytes) -> dict[int, int]:
    """The BLOCK line of /proc/softirqs by CPU number (possible CPUs, offline ones included)."""
    start = data.find(b" BLOCK:") + 7
    line = data[start : _line_end(data, start)] if start >= 7 else b""
    return _counts(line, _columns(data)) or {}


def parse_cpu_header(data: bytes) -> list[int]:
    """The CPU numbers of the columns of /proc/softirqs or /proc/interrupts."""
    return list(_columns(data))


def _columns(data: bytes) -> tuple[int, ...]:
    return _header_cpus(data[: _line_end(data, 0)])


@lru_cache(maxsize=8)
def _header_cpus(header: bytes) -> tuple[int, ...]:
    # cached: the header is the same in each sample until a CPU comes or goes
    names = header.split()
    return tuple(int(w[3:]) for w in names if w.startswith(b"CPU") and w[3:].isdigit())


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return end if end >= 0 else len(data)


def parse_interrupts(
    data: bytes, wanted_irqs: Collection[int]
) -> tuple[dict[int, dict[int, int]], dict[int, int] | None]:
    """Counts per online CPU from /proc/interrupts: of the wanted IRQs, and of function calls. The
    function-call interrupts (IPIs) are in the line labelled CAL (x86) or, without such a line, in
    the lines described as such (arm, arm64, riscv: "IPI1: ... Function call interrupts"), which are
    summed. ``None`` if there are none. Only wanted lines are split: the whole file is several
    megabytes on a wide machine."""
    cpus = _columns(data)
    numbers = {b"%d" % irq: irq for irq in wanted_irqs}
    irqs: dict[int, dict[int, int]] = {}
    by_label: list[dict[int, int]] = []
    described: list[dict[int, int]] = []
    for label, start, end in _labelled_lines(data):
        if label in numbers:
            counts = _counts(data[start:end], cpus)
            if counts is not None:
                irqs[numbers[label]] = counts
        elif label == b"CAL" or _function_calls(data, label, end):
            counts = _counts(data[start:end], cpus)
            if counts is not None:
                (by_label if label == b"CAL" else described).append(counts)
    lines = by_label or described
    return irqs, {cpu: sum(line[cpu] for line in lines) for cpu in lines[0]} if lines else None


def parse_function_calls(header: bytes, tail: bytes) -> dict[int, int] | None:
    """Parse only the function calls, from the first line of /proc/interrupts and its end, which
    must contain all lines below the numbered ones."""
    end = len(tail.rstrip(b"\n"))
    while end > 0:
        start = tail.rfind(b"\n", 0, end) + 1
        label, colon, _ = tail[start : min(end, start + 32)].partition(b":")
        if not colon or label.strip().isdigit():
            break
        end = start - 1
    return parse_interrupts(b"%b\n%b" % (header, tail[max(0, end) :]), ())[1]


def _function_calls(data: bytes, label: bytes, end: int) -> bool:
    if label.isdigit():
        return False
    tail = data[max(0, end - len(FUNCTION_CALLS) - 2) : end].rstrip().lower()
    return tail.endswith(FUNCTION_CALLS)


def _labelled_lines(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """The label, the start of the rest and the end of every "label: rest" line, without copying the
    rest."""
    end = data.find(b"\n")
    while end >= 0:
        start = end + 1
        end = data.find(b"\n", start)
        stop = end if end >= 0 else len(data)
        colon = data.find(b":", start, min(stop, start + 32))
        if colon >= 0:
            yield data[start:colon].strip(), colon + 1, stop


def _counts(text: bytes, cpus: Sequence[int]) -> dict[int, int] | None:
    """The counts by CPU; ``None`` unless there is a number for each CPU (a CPU may come or go while
    the file is read)."""
    columns = text.split(None, len(cpus))[: len(cpus)]
    numbers = integers(columns)
    if not cpus or numbers is None or len(numbers) != len(cpus):
        return None
    return dict(zip(cpus, numbers, strict=True))


def integers(texts: list[bytes]) -> list[int] | None:
    """Convert words to counts; ``None`` if one is not a count."""
    # int() alone would accept "1_0", signs and blanks, and one check of all words is cheaper
    if not b"".join(texts).isdigit():
        return None
    try:
        return list(map(int, texts))
    except ValueError:
        return None


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
