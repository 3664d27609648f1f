"""The slowest I/Os of a run from fio's own log of each I/O (write_lat_log with log_offset).

The log shows only the job's side, nothing about the kernel's. A line is ``time, latency, direction,
size, offset, ...``: ms since the job began, ns, 0 to 2, bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from heapq import heappush, heapreplace
from math import exp, log
from random import Random
from typing import Any

from iopstui.model.metrics.probe import DISCARDS, READS, WRITES
from iopstui.model.metrics.slow.common_properties import common_properties
from iopstui.model.metrics.slow.slow_requests import COMPARED_COUNT, TOTAL_COUNT
from iopstui.model.samples import Exemplar

_KINDS = {b"0": READS, b"1": WRITES, b"2": DISCARDS}
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class SlowIo:
    """An I/O that completed ``t`` seconds after its job began. ``job`` is fio's number of the job,
    ``offset`` the position in its file (``None``: not in the log)."""

    direction: str
    t: float
    latency_ns: int
    size: int
    offset: int | None
    job: int


@dataclass(slots=True)
class _Selection:
    """Lines of a direction: the slowest (a heap), and a random sample (Li's algorithm L)."""

    count: int = 0
    slow: list[tuple[int, int, bytes, int]] = field(default_factory=list)
    sample: list[tuple[int, bytes, int]] = field(default_factory=list)
    next_sampled: int = 0
    weight: float = 1.0


class SlowIos:
    """The slowest and some random I/Os of all jobs of a run, in memory that does not grow."""

    def __init__(self) -> None:
        self._selections = {direction: _Selection() for direction in _KINDS}
        self._random = Random(38)

    @property
    def count(self) -> int:
        """The number of I/Os in the logs."""
        return sum(selection.count for selection in self._selections.values())

    def read(self, job: int, lines: Iterable[bytes]) -> None:
        for line in lines:
            cells = line.split(b", ", 3)
            try:
                latency, selection = int(cells[1]), self._selections[cells[2]]
            except (ValueError, IndexError, KeyError):
                continue
            number = selection.count
            selection.count = number + 1
            if number < COMPARED_COUNT:
                heappush(selection.slow, (latency, number, line, job))
            elif latency > selection.slow[0][0]:
                heapreplace(selection.slow, (latency, number, line, job))
            if number == selection.next_sampled:
                self._sample(selection, number, line, job)

    def _sample(self, selection: _Selection, number: int, line: bytes, job: int) -> None:
        if len(selection.sample) < COMPARED_COUNT:
            selection.sample.append((number, line, job))
            selection.next_sampled += 1
            if len(selection.sample) < COMPARED_COUNT:
                return
        else:
            selection.sample[self._random.randrange(COMPARED_COUNT)] = (number, line, job)
        selection.weight *= exp(log(1 - self._random.random()) / COMPARED_COUNT)
        skipped = log(1 - self._random.random()) / log(1 - selection.weight)
        selection.next_sampled = number + int(skipped) + 1

    def slowest(self) -> Iterator[SlowIo]:
        """The slowest I/Os of each direction, the slowest first."""
        for direction in sorted(self._selections):
            ordered = sorted(self._selections[direction].slow, reverse=True)[:TOTAL_COUNT]
            yield from filter(None, (_parse(line, job) for _, _, line, job in ordered))

    def claims(self, one_file: bool) -> list[str]:
        """What the slowest I/Os have in common, compared with the random ones, in words. With
        several files (not ``one_file``) offsets are not compared, because the log does not say to
        which file they belong."""
        exemplars = []
        for selection in self._selections.values():
            slow = {number for _, number, _, _ in selection.slow}
            lines = [(line, job, True) for _, _, line, job in selection.slow]
            lines += [
                (line, job, False) for number, line, job in selection.sample if number not in slow
            ]
            for line, job, is_slow in lines:
                slow_io = _parse(line, job)
                if slow_io is not None:
                    exemplars.append(_exemplar(slow_io, one_file, is_slow))
        return [claim.text for claim in common_properties(exemplars)]


def slow_ios_object(ios: SlowIos, one_file: bool) -> dict[str, Any]:
    """The slowest I/Os as plain data, for a run's summary."""
    return {
        "ios": ios.count,
        "slowest": [asdict(slow_io) for slow_io in ios.slowest()],
        "in_common": ios.claims(one_file),
    }


def slow_ios(data: Mapping[str, Any]) -> list[SlowIo]:
    """The slowest I/Os in a summary."""
    return [SlowIo(**row) for row in data.get("slowest", ())]


def _parse(line: bytes, job: int) -> SlowIo | None:
    cells = [cell.strip() for cell in line.split(b",")]
    try:
        offset = int(cells[4]) if len(cells) > 4 else None
        return SlowIo(
            _KINDS[cells[2]], int(cells[0]) / 1000, int(cells[1]), int(cells[3]), offset, job
        )
    except (ValueError, KeyError, IndexError):
        return None


def _exemplar(io: SlowIo, one_file: bool, slow: bool) -> Exemplar:
    """An I/O as an exemplar. Unknown properties (CPU, queue ...) are the same in all I/Os, so they
    are never reported as common."""
    completed_ns = round(io.t * 1000) * NS_PER_MS
    return Exemplar(
        disk="its file", kind=io.direction, slow=slow, sampled=not slow, sector=None,
        offset=io.offset if one_file else None, size=io.size, flags="", pid=io.job, tid=0,
        comm="fio's job", group="", cpu=0, cpu_done=0, hctx=0, allocated_ns=None, inserted_ns=None,
        issued_ns=completed_ns - io.latency_ns, completed_ns=completed_ns,
    )  # fmt: skip
