"""The kernel's counters as text: bytes in, samples out. Nothing here opens a file.

A line that does not look as documented is skipped, never guessed at. Which CPUs the columns of
a file stand for is always taken from its own header: /proc/softirqs and per_cpu_count have one
column for every possible CPU, /proc/interrupts and /proc/stat only for those that are online.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, compress, pairwise
from operator import ne

from iopstui.model.samples import Change, CpuTimes, DiskCounters
from iopstui.records import dataclass

FUNCTION_CALLS = b"function call interrupts"
# a label and the ten columns that Linux has since 2.6.33
STAT_COLUMNS = 11
# as many columns of per_cpu_count are compared at once
STRETCH = 32
COMMA = ord(",")


def parse_diskstats(data: bytes, wanted: Collection[str] | None = None) -> dict[str, DiskCounters]:
    """Rows of /proc/diskstats (Documentation/admin-guide/iostats.rst) by device name.

    ``wanted`` limits it to these names (``None``: all). Rows of 20 columns (Linux 5.5), 18
    (4.18), 14 and the four-counter partition rows of old kernels are understood.
    """
    lines = data.split(b"\n") if wanted is None else _lines_naming(data, wanted)
    found: dict[str, DiskCounters] = {}
    for line in lines:
        columns = line.split()
        row = _disk_row(columns) if len(columns) >= 7 else None
        if row is not None and (wanted is None or row.name in wanted):
            found[row.name] = row
    return found


def _lines_naming(data: bytes, wanted: Collection[str]) -> list[bytes]:
    """The lines that have one of these words in them, in the file's order: a machine may have
    hundreds of disks."""
    starts = set[int]()
    for name in wanted:
        word = b" %b " % _bytes(name)
        at = data.find(word)
        while at >= 0:
            starts.add(data.rfind(b"\n", 0, at + 1) + 1)
            at = data.find(word, at + 1)
    return [data[start : _line_end(data, start)] for start in sorted(starts)]


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
    # the cpu lines come first; the intr line behind them can be very long
    end = data.find(b"\nintr")
    lines = data if end < 0 else data[:end]
    cpus = _uniform_stat(lines)
    return _any_stat(lines) if cpus is None else cpus


def _uniform_stat(lines: bytes) -> dict[int, CpuTimes] | None:
    """All lines at once, column by column; ``None`` unless they are as today's kernels print
    them."""
    words = lines.split()
    labels = words[::STAT_COLUMNS]
    if len(words) != STAT_COLUMNS * len(labels) or labels[:1] != [b"cpu"]:
        return None
    columns = [words[STAT_COLUMNS + n :: STAT_COLUMNS] for n in range(1, 9)]
    if not all(b"".join(column).isdigit() for column in columns):
        return None
    try:
        numbers = _cpu_numbers(b" ".join(labels))
        times = map(CpuTimes, *(map(int, column) for column in columns))
        return None if numbers is None else dict(zip(numbers, times, strict=True))
    except ValueError:  # of more digits than Python reads
        return None


@lru_cache(maxsize=8)
def _cpu_numbers(labels: bytes) -> tuple[int, ...] | None:
    """The CPUs that the lines "cpu cpu0 cpu1 ..." of /proc/stat are of; ``None`` if one is not."""
    # the same in each sample until a CPU comes or goes
    words = labels.split()[1:]
    whole = all(word.startswith(b"cpu") and word[3:].isdigit() for word in words)
    return tuple(int(word[3:]) for word in words) if whole else None


def _any_stat(lines: bytes) -> dict[int, CpuTimes]:
    cpus: dict[int, CpuTimes] = {}
    for line in lines.split(b"\n"):
        label, *columns = line.split() or [b""]
        if not label.startswith(b"cpu"):
            break
        numbers = _integers(columns)
        if label[3:].isdigit() and numbers is not None and len(numbers) >= 4:
            # iowait ... steal came with Linux 2.6; a kernel without them accounts none
            cpus[int(label[3:])] = CpuTimes(*(numbers + [0] * 4)[:8])
    return cpus


def parse_softirqs_block(data: bytes) -> dict[int, int]:
    """The BLOCK line of /proc/softirqs by CPU number (possible CPUs, offline ones included)."""
    start = data.find(b" BLOCK:") + 7
    if start < 7:
        return {}
    return _counts(data[start : _line_end(data, start)], _columns(data)) or {}


def parse_cpu_header(data: bytes) -> list[int]:
    """The CPU numbers that the columns of /proc/softirqs or /proc/interrupts stand for."""
    return list(_columns(data))


def _columns(data: bytes) -> tuple[int, ...]:
    return _header_cpus(data[: _line_end(data, 0)])


@lru_cache(maxsize=8)
def _header_cpus(header: bytes) -> tuple[int, ...]:
    # the same in each sample until a CPU comes or goes
    words = header.split()
    return tuple(int(w[3:]) for w in words if w.startswith(b"CPU") and w[3:].isdigit())


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return end if end >= 0 else len(data)


def parse_interrupts(
    data: bytes, wanted_irqs: Collection[int], names: Collection[str] = ("CAL",)
) -> tuple[dict[int, dict[int, int]], dict[int, int] | None]:
    """Counts per online CPU from /proc/interrupts: of the wanted IRQs, and of function calls.

    The function-call interrupts (IPIs) are the lines called one of ``names`` (x86) or, where
    there is none, those that say so in words (arm, arm64, riscv: "IPI1: ... Function call
    interrupts"), summed. ``None`` if there are none. Only the lines that are wanted are split:
    the whole file is several megabytes on a wide machine.
    """
    cpus = _columns(data)
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


def parse_function_calls(header: bytes, tail: bytes) -> dict[int, int] | None:
    """Only the function calls, from the first line of /proc/interrupts and as much of its end as
    holds the lines below the numbered ones: those are all that is looked at."""
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


@dataclass(frozen=True, slots=True)
class PerCpuCount:
    """What per_cpu_count said: its text, where in it every ``STRETCH`` columns begin (and its end),
    the same as numbers by CPU, and what changed."""

    text: bytes
    starts: Sequence[int]
    counts: dict[int, int]
    change: Change


def parse_per_cpu_count(data: bytes, possible: Sequence[int]) -> dict[int, int] | None:
    """/sys/kernel/irq/N/per_cpu_count (Documentation/ABI/testing/sysfs-kernel-irq): "3,0,17".

    ``possible`` are the possible CPUs' numbers, in order (the header of /proc/softirqs); an
    empty list takes them to be 0, 1, 2 ... ``None`` if the text and the CPUs do not match.
    """
    found = next_per_cpu_count(data, possible, None)
    return None if found is None else found.counts


def next_per_cpu_count(
    data: bytes, possible: Sequence[int], before: PerCpuCount | None
) -> PerCpuCount | None:
    """The same as ``parse_per_cpu_count``, cheaper: only stretches of columns that are not as
    ``before`` (of the same interrupt and the same CPUs) are read anew. An interrupt comes to few
    CPUs.
    """
    if before is not None and data == before.text:
        return before
    after = before.change.reading if before is not None else None
    if before is not None and len(data) == len(before.text):
        grown = _changed(data, possible or range(len(before.counts)), before)
        if grown is not None:
            counts = before.counts.copy()
            counts.update(grown)
            return PerCpuCount(data, before.starts, counts, Change(object(), after, grown))
    words = data.strip().split(b",")
    cpus = possible or range(len(words))
    numbers = _integers(words) if len(words) == len(cpus) else None
    if numbers is None:
        return None
    counts = dict(zip(cpus, numbers, strict=True))
    if before is not None and before.counts.keys() == counts.keys():
        moved = compress(counts, map(ne, counts.values(), before.counts.values()))
        grown = {cpu: counts[cpu] for cpu in moved}
    else:
        after, grown = None, {}
    return PerCpuCount(data, _starts(data, words), counts, Change(object(), after, grown))


def _starts(data: bytes, words: list[bytes]) -> list[int]:
    """Where every ``STRETCH``th column begins, and what is behind the text's end; none unless the
    columns and a line end are all of the text."""
    ends = [*accumulate(map(len, words))]
    end = ends[-1] + len(words)
    if data != b"%b\n" % data.strip():
        return []
    return [0, *(ends[n - 1] + n for n in range(STRETCH, len(words), STRETCH)), end]


def _changed(data: bytes, cpus: Sequence[int], before: PerCpuCount) -> dict[int, int] | None:
    """The counts that are not as ``before``, in a text that is as long; ``None`` where its columns
    may stand elsewhere."""
    last = before.starts[-1] if before.starts else None
    if last is None or data[last - 1 :] != before.text[last - 1 :]:
        return None
    changed: dict[int, int] = {}
    for stretch, (start, end) in enumerate(pairwise(before.starts)):
        if data[start:end] == before.text[start:end]:
            continue
        words, old = (text[start : end - 1].split(b",") for text in (data, before.text))
        if len(words) != len(old) or (end < last and data[end - 1] != COMMA):
            return None
        moved = [*compress(range(len(words)), map(ne, words, old))]
        numbers = _integers([words[n] for n in moved])
        if numbers is None:
            return None
        own = stretch * STRETCH
        changed.update((cpus[own + n], number) for n, number in zip(moved, numbers, strict=True))
    return changed


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


def _counts(text: bytes, cpus: Sequence[int]) -> dict[int, int] | None:
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
