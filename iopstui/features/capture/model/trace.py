"""Captured requests in their order, as a trace for fio (iolog version 3) that fits a scratch file.

Times are microseconds from the first request. Offsets are in a file that consists of the used
regions of 1 MiB, in their order on the disk: sequential requests stay sequential, and the trace
reveals neither the size nor the name of the captured disk."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from iopstui.features.capture.model.workload import (
    DISCARD,
    FLUSH,
    KIND_AT,
    MAX_SECTORS,
    READ,
    REGION_BYTES,
    REGION_SECTORS_BITS,
    SECTOR_BYTES,
    WRITE,
)

HEADER = "fio version 3 iolog"
FILE, FIO_SUFFIX = "replay.scratch", ".fio"
MAX_REQUESTS = 1_000_000
"""Limit for the requests of a trace: 48 MiB in memory while it is captured, and about as much as
text."""
MAX_FILE = 1 << 44
_ACTIONS = {READ: "read", WRITE: "write", FLUSH: "datasync"}
_KINDS = {"read": READ, "write": WRITE, "datasync": FLUSH, "sync": FLUSH}
_MANAGED = ("add", "open", "close")
_JOB_DEPTH = 128


class InvalidTrace(ValueError):
    """The trace can't be replayed; the message says which line is wrong and why."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests in their order, each as (microseconds, kind, offset, length), for a file of
    ``file_bytes``. Offset and length are in bytes. ``discards`` requests were left out, because fio
    discards only on devices."""

    requests: tuple[tuple[int, int, int, int], ...]
    file_bytes: int
    discards: int = 0

    @property
    def reads(self) -> int:
        return sum(kind == READ for _, kind, _, _ in self.requests)

    @property
    def writes(self) -> int:
        return sum(kind == WRITE for _, kind, _, _ in self.requests)

    @property
    def data_bytes(self) -> int:
        """Bytes read and written."""
        return sum(length for _, _, _, length in self.requests)

    @property
    def seconds(self) -> float:
        """The time from the first request to the last."""
        return self.requests[-1][0] / 1e6 if self.requests else 0.0


class TraceBuffer:
    """Keeps the first MAX_REQUESTS requests of a capture; ``dropped`` counts those that follow."""

    def __init__(self, max_requests: int = MAX_REQUESTS) -> None:
        self._columns = (array("Q"), array("Q"), array("Q"))
        self._max_requests = max_requests
        self.dropped = 0

    def add(self, times: Sequence[int], sectors: Sequence[int], shapes: Sequence[int]) -> None:
        """Add requests in their order."""
        space = max(0, self._max_requests - len(self._columns[0]))
        self.dropped += max(0, len(times) - space)
        for column, values in zip(self._columns, (times, sectors, shapes), strict=True):
            column.extend(values[:space])

    def trace(self) -> Trace:
        """The trace of the kept requests."""
        return fold_trace(*self._columns)


def fold_trace(times: Sequence[int], sectors: Sequence[int], shapes: Sequence[int]) -> Trace:
    """Make a trace of captured requests, given by their times (ns), first sectors, and packed
    shapes."""
    rows = sorted(zip(times, sectors, shapes, strict=True), key=lambda row: row[0])
    replayable = [row for row in rows if row[2] >> KIND_AT & 3 != DISCARD]
    regions = sorted(
        {region for _, sector, shape in replayable for region in _regions(sector, shape)}
    )
    region_index = {region: number for number, region in enumerate(regions)}
    begin = replayable[0][0] if replayable else 0
    requests = []
    for time, sector, shape in replayable:
        kind = shape >> KIND_AT & 3
        length = 0 if kind == FLUSH else (shape & MAX_SECTORS) * SECTOR_BYTES
        offset = 0
        if length:
            within = sector & ((1 << REGION_SECTORS_BITS) - 1)
            offset = (
                region_index[sector >> REGION_SECTORS_BITS] * REGION_BYTES + within * SECTOR_BYTES
            )
        requests.append(((time - begin) // 1000, kind, offset, length))
    return Trace(tuple(requests), len(regions) * REGION_BYTES, len(rows) - len(replayable))


def _regions(sector: int, shape: int) -> range:
    sectors = shape & MAX_SECTORS
    if shape >> KIND_AT & 3 == FLUSH or not sectors:
        return range(0)
    last = sector + sectors - 1
    return range(sector >> REGION_SECTORS_BITS, (last >> REGION_SECTORS_BITS) + 1)


def trace_lines(trace: Trace) -> Iterator[str]:
    yield HEADER
    yield f"0 {FILE} add"
    yield f"0 {FILE} open"
    for time, kind, offset, length in trace.requests:
        yield f"{time} {FILE} {_ACTIONS[kind]} {offset} {length}"
    yield f"{trace.requests[-1][0] if trace.requests else 0} {FILE} close"


def parse_trace(lines: Iterable[str]) -> Trace:
    """Read a trace of a single file; the file's name is dropped. Raises InvalidTrace."""
    numbered = enumerate((line.strip() for line in lines), 1)
    if next(numbered, (1, ""))[1] != HEADER:
        raise InvalidTrace(f"line 1 is not {HEADER!r}")
    names: set[str] = set()
    requests: list[tuple[int, int, int, int]] = []
    for number, line in numbered:
        fields = line.split()
        if not fields or (len(fields) == 3 and fields[2] in _MANAGED):
            names.update(fields[1:2])
        elif len(fields) == 5 and fields[2] in _KINDS:
            names.add(fields[1])
            requests.append(_request(number, fields, requests[-1][0] if requests else 0))
        else:
            raise InvalidTrace(f"line {number}: not 'time file read|write|datasync offset length'")
        if len(names) > 1:
            raise InvalidTrace(f"line {number}: a second file; a trace must have one")
        if len(requests) > MAX_REQUESTS:
            raise InvalidTrace(f"more than {MAX_REQUESTS:,} requests")
    if not any(length for _, _, _, length in requests):
        raise InvalidTrace("it reads and writes nothing")
    end = max(offset + length for _, _, offset, length in requests)
    return Trace(tuple(requests), -(-end // REGION_BYTES) * REGION_BYTES)


def _request(number: int, fields: Sequence[str], before: int) -> tuple[int, int, int, int]:
    if not all(field.isascii() and field.isdecimal() and len(field) <= 18
               for field in (fields[0], *fields[3:])):  # fmt: skip
        raise InvalidTrace(f"line {number}: time, offset and length must be whole numbers")
    time, offset, length = int(fields[0]), int(fields[3]), int(fields[4])
    kind = _KINDS[fields[2]]
    if time < before:
        raise InvalidTrace(f"line {number}: earlier than the line before")
    if kind == FLUSH:
        return time, kind, 0, 0
    if offset % SECTOR_BYTES or length % SECTOR_BYTES or not length:
        raise InvalidTrace(f"line {number}: not whole sectors of 512 bytes")
    if offset + length > MAX_FILE or length > MAX_SECTORS * SECTOR_BYTES:
        raise InvalidTrace(f"line {number}: beyond 16 TiB, or too long")
    return time, kind, offset, length


def replay_job(trace: Trace) -> str:
    """The job that replays the trace: its file, and how many bytes it reads and writes. iopstui
    adds the trace itself when it runs the job."""
    direction = (
        "randrw" if trace.reads and trace.writes else "randread" if trace.reads else "randwrite"
    )
    return "\n".join((
        "# Title: replay of a captured trace", "[replay]", f"filename={FILE}",
        f"size={trace.file_bytes}", f"io_size={trace.data_bytes}", f"rw={direction}", "bs=4k",
        "ioengine=libaio", "direct=1", f"iodepth={_JOB_DEPTH}",
        # without these, fio (3.33) reaps completions only when the queue is full, and never at the
        # end
        "iodepth_batch_complete_min=0", "iodepth_batch_complete_max=0", "",
    ))  # fmt: skip
