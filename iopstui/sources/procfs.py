"""The kernel's counters as text: bytes in, samples out. Nothing here opens a file.

A line that does not look as documented is skipped, never guessed at. Which CPUs the columns of
a file stand for is always taken from its own header: /proc/softirqs and per_cpu_count have one
column for every possible CPU, /proc/interrupts and /proc/stat only for those that are online.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from iopstui.model.samples import CpuTimes, DiskCounters

FUNCTION_CALLS = b"function call interrupts"


def parse_diskstats(data: bytes, wanted: Collection[str] | None = None) -> dict[str, DiskCounters]:
    """Rows of /proc/diskstats (Documentation/admin-guide/iostats.rst) by device name.

    ``wanted`` limits it to these names (``None``: all). Rows of 20 columns (Linux 5.5), 18
    (4.18), 14 and the four-counter partition rows of old kernels are understood.
    """
    keep = None if wanted is None else {_bytes(name) for name in wanted}
    found: dict[str, DiskCounters] = {}
    for line in data.split(b"\n"):
        columns = line.split()
        if len(columns) < 7 or (keep is not None and columns[2] not in keep):
            continue
        row = _disk_row(columns)
        if row is not None:
            found[row.name] = row
    return found


def _disk_row(columns: list[bytes]) -> DiskCounters | None:
    name = columns[2].decode("utf-8", "surrogateescape")
    numbers = _integers(columns[:2] + columns[3:])
    if numbers is None:
        return None
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
    start = 0
    # the cpu lines come first; the intr line behind them can be very long
    while data.startswith(b"cpu", start):
        end = data.find(b"\n", start)
        label, *columns = data[start : end if end >= 0 else len(data)].split()
        numbers = _integers(columns)
        if label[3:].isdigit() and numbers is not None and len(numbers) >= 4:
            # iowait ... steal came with Linux 2.6; a kernel without them accounts none
            cpus[int(label[3:])] = CpuTimes(*(numbers + [0] * 4)[:8])
        if end < 0:
            break
        start = end + 1
    return cpus


def parse_softirqs_block(data: bytes) -> dict[int, int]:
    """The BLOCK line of /proc/softirqs by CPU number (possible CPUs, offline ones included)."""
    cpus = parse_cpu_header(data)
    for label, start, end in _labelled_lines(data):
        if label == b"BLOCK":
            return _counts(data[start:end], cpus) or {}
    return {}


def parse_cpu_header(data: bytes) -> list[int]:
    """The CPU numbers that the columns of /proc/softirqs or /proc/interrupts stand for."""
    header = data.split(b"\n", 1)[0].split()
    return [int(word[3:]) for word in header if word.startswith(b"CPU") and word[3:].isdigit()]


def parse_interrupts(
    data: bytes, wanted_irqs: Collection[int], names: Collection[str] = ("CAL",)
) -> tuple[dict[int, dict[int, int]], dict[int, int] | None]:
    """Counts per online CPU from /proc/interrupts: of the wanted IRQs, and of function calls.

    The function-call interrupts (IPIs) are the lines called one of ``names`` (x86) or, where
    there is none, those that say so in words (arm, arm64, riscv: "IPI1: ... Function call
    interrupts"), summed. ``None`` if there are none. Only the lines that are wanted are split:
    the whole file is several megabytes on a wide machine.
    """
    cpus = parse_cpu_header(data)
    numbers = {b"%d" % irq: irq for irq in wanted_irqs}
    labels = {_bytes(name) for name in names}
    irqs: dict[int, dict[int, int]] = {}
    named: list[dict[int, int]] = []
    described: list[dict[int, int]] = []
    for label, start, end in _labelled_lines(data):
        if label in numbers:
            counts = _counts(data[start:end], cpus)
            if counts is not None:
                irqs[numbers[label]] = counts
        elif label in labels or _function_calls(data, label, end):
            counts = _counts(data[start:end], cpus)
            if counts is not None:
                (named if label in labels else described).append(counts)
    lines = named or described
    return irqs, _summed(lines) if lines else None


def _function_calls(data: bytes, label: bytes, end: int) -> bool:
    if label.isdigit():
        return False
    tail = data[max(0, end - len(FUNCTION_CALLS) - 2) : end].rstrip().lower()
    return tail.endswith(FUNCTION_CALLS)


def parse_per_cpu_count(data: bytes, possible: list[int]) -> dict[int, int] | None:
    """/sys/kernel/irq/N/per_cpu_count (Documentation/ABI/testing/sysfs-kernel-irq): "3,0,17".

    ``possible`` are the possible CPUs' numbers, in order (the header of /proc/softirqs); an
    empty list takes them to be 0, 1, 2 ... ``None`` if the text and the CPUs do not match.
    """
    numbers = _integers(data.strip().split(b","))
    cpus = possible or list(range(len(numbers or ())))
    if numbers is None or len(numbers) != len(cpus):
        return None
    return dict(zip(cpus, numbers, strict=True))


def _labelled_lines(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Label, start of the rest and end of every "label: rest" line, without copying the rest."""
    end = data.find(b"\n")
    while end >= 0:
        start = end + 1
        end = data.find(b"\n", start)
        stop = end if end >= 0 else len(data)
        colon = data.find(b":", start, min(stop, start + 32))
        if colon >= 0:
            yield data[start:colon].strip(), colon + 1, stop


def _counts(text: bytes, cpus: list[int]) -> dict[int, int] | None:
    """``None`` unless there is a number for each CPU (a CPU may come or go while it is read)."""
    columns = text.split(None, len(cpus))[: len(cpus)]
    numbers = _integers(columns)
    if not cpus or numbers is None or len(numbers) != len(cpus):
        return None
    return dict(zip(cpus, numbers, strict=True))


def _summed(lines: list[dict[int, int]]) -> dict[int, int]:
    return {cpu: sum(line[cpu] for line in lines) for cpu in lines[0]}


def _integers(words: list[bytes]) -> list[int] | None:
    # int() alone would accept "1_0", signs and blanks; one look at all of them is cheaper
    if not b"".join(words).isdigit():
        return None
    try:
        return list(map(int, words))
    except ValueError:
        return None


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
