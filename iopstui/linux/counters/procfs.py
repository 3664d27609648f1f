"""Parse the kernel's counters: bytes in, samples out. This module opens no files.

A line that is not as documented is skipped, never guessed. The CPUs of a file's columns always come
from its own header: /proc/softirqs and per_cpu_count have a column for every possible CPU,
/proc/interrupts and /proc/stat only for online ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from iopstui.model.samples import CpuTimes, DiskCounters

FUNCTION_CALLS = b"function call interrupts"
# columns of a cpu line: a label and the ten times that Linux has since 2.6.33
STAT_COLUMNS = 11
DIGITS = b"0123456789"


def parse_diskstats(data: bytes, names: Collection[str] | None = None) -> dict[str, DiskCounters]:
    """Rows of /proc/diskstats (Documentation/admin-guide/iostats.rst) by device name.

    ``names`` limits the result to these names (``None``: all). Rows of 20 columns (Linux 5.5), 18
    (4.18), 14 and the four-counter partition rows of old kernels are understood."""
    if names is None or data.count(b"\n") < 2 * len(names):
        lines = data.split(b"\n")
    else:
        lines = _lines_naming(data, names)
    rows: dict[str, DiskCounters] = {}
    for line in lines:
        columns = line.split()
        row = _disk_row(columns) if len(columns) >= 7 else None
        if row is not None and (names is None or row.name in names):
            rows[row.name] = row
    return rows


def _lines_naming(data: bytes, names: Collection[str]) -> list[bytes]:
    """The lines that contain one of these words, in the file's order. The other lines are not
    parsed: a machine may have hundreds of disks."""
    starts = set[int]()
    for name in names:
        pattern = b" %b " % _bytes(name)
        at = data.find(pattern)
        while at >= 0:
            starts.add(data.rfind(b"\n", 0, at + 1) + 1)
            at = data.find(pattern, at + 1)
    return [data[start : _line_end(data, start)] for start in sorted(starts)]


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
    # the cpu lines come first; the intr line after them can be very long
    lines = data.partition(b"\nintr")[0]
    cpus = _uniform_stat(lines)
    return _any_stat(lines) if cpus is None else cpus


def _uniform_stat(lines: bytes) -> dict[int, CpuTimes] | None:
    """All cpu lines, parsed together column by column; ``None`` unless they are in the format of
    today's kernels."""
    fields = lines.split()
    labels = fields[::STAT_COLUMNS]
    if len(fields) != STAT_COLUMNS * len(labels) or labels[:1] != [b"cpu"]:
        return None
    columns = [fields[STAT_COLUMNS + n :: STAT_COLUMNS] for n in range(1, 9)]
    if not all(b"".join(column).isdigit() for column in columns):
        return None
    try:
        numbers = _cpu_numbers(b" ".join(labels))
        times = map(CpuTimes, *(map(int, column) for column in columns))
        return None if numbers is None else dict(zip(numbers, times, strict=True))
    except ValueError:  # a number has more digits than Python reads
        return None


@lru_cache(maxsize=8)
def _cpu_numbers(labels: bytes) -> tuple[int, ...] | None:
    """The CPUs of the labels "cpu cpu0 cpu1 ..." of /proc/stat; ``None`` if a label is invalid or
    occurs twice."""
    # cached: the labels are the same in each sample until a CPU comes or goes
    names = labels.split()[1:]
    are_cpus = all(name.startswith(b"cpu") and name[3:].isdigit() for name in names)
    numbers = tuple(int(name[3:]) for name in names) if are_cpus else ()
    return numbers if are_cpus and len({*numbers}) == len(numbers) else None


def _any_stat(lines: bytes) -> dict[int, CpuTimes]:
    cpus: dict[int, CpuTimes] = {}
    for line in lines.split(b"\n"):
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
