"""The slowest I/Os of a run from fio's own log of each I/O (write_lat_log with log_offset).

It is the job's side alone: nothing is known of the kernel's. A line is ``time, latency, direction,
size, offset, ...``: ms since the job began, ns, 0 to 2, bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from heapq import heappush, heapreplace
from math import exp, log
from random import Random
from typing import Any

from iopstui.model.metrics.probe import DISCARDS, READS, WRITES
from iopstui.model.metrics.slow.in_common import in_common
from iopstui.model.metrics.slow.slow_requests import COMPARED_COUNT, TOTAL_COUNT
from iopstui.model.samples import Exemplar

_KINDS = {b"0": READS, b"1": WRITES, b"2": DISCARDS}
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class SlowIo:
    """An I/O that completed ``t`` seconds after its job began. ``job`` is fio's number of the job,
    ``offset`` the place in its file, ``None`` if the log does not say."""

    direction: str
    t: float
    latency_ns: int
    size: int
    offset: int | None
    job: int


@dataclass(slots=True)
class _Kept:
    """Lines of a direction: the slowest (a heap), and a random sample (Li's algorithm L)."""

    count: int = 0
    slow: list[tuple[int, int, bytes, int]] = field(default_factory=list)
    sample: list[tuple[int, bytes, int]] = field(default_factory=list)
    next_sampled: int = 0
    weight: float = 1.0


class SlowIos:
    """The slowest and some random I/Os of all jobs of a run, in memory that does not grow."""

    def __init__(self) -> None:
        self._kept = {direction: _Kept() for direction in _KINDS}
        self._chance = Random(38)

    @property
    def count(self) -> int:
        """I/Os in the logs."""
        return sum(kept.count for kept in self._kept.values())

    def read(self, job: int, lines: Iterable[bytes]) -> None:
        """Take in the log of a job."""
        for line in lines:
            cells = line.split(b", ", 3)
            try:
                latency, kept = int(cells[1]), self._kept[cells[2]]
            except (ValueError, IndexError, KeyError):
                continue
            number = kept.count
            kept.count = number + 1
            if number < COMPARED_COUNT:
                heappush(kept.slow, (latency, number, line, job))
            elif latency > kept.slow[0][0]:
                heapreplace(kept.slow, (latency, number, line, job))
            if number == kept.next_sampled:
                self._sample(kept, number, line, job)

    def _sample(self, kept: _Kept, number: int, line: bytes, job: int) -> None:
        if len(kept.sample) < COMPARED_COUNT:
            kept.sample.append((number, line, job))
            kept.next_sampled += 1
            if len(kept.sample) < COMPARED_COUNT:
                return
        else:
            kept.sample[self._chance.randrange(COMPARED_COUNT)] = (number, line, job)
        kept.weight *= exp(log(1 - self._chance.random()) / COMPARED_COUNT)
        skipped = log(1 - self._chance.random()) / log(1 - kept.weight)
        kept.next_sampled = number + int(skipped) + 1

    def slowest(self) -> Iterator[SlowIo]:
        """The slowest of each direction, the slowest first."""
        for direction in sorted(self._kept):
            ordered = sorted(self._kept[direction].slow, reverse=True)[:TOTAL_COUNT]
            yield from filter(None, (_parsed(line, job) for _, _, line, job in ordered))

    def claims(self, one_file: bool) -> list[str]:
        """What the slowest have in common, compared with the random ones, in words. With several
        files (not ``one_file``) the log does not say which one an offset is of."""
        exemplars = []
        for kept in self._kept.values():
            slow = {number for _, number, _, _ in kept.slow}
            lines = [(line, job, True) for _, _, line, job in kept.slow]
            lines += [(line, job, False) for number, line, job in kept.sample if number not in slow]
            for line, job, is_slow in lines:
                one = _parsed(line, job)
                if one is not None:
                    exemplars.append(_exemplar(one, one_file, is_slow))
        return [claim.text for claim in in_common(exemplars)]


def slow_ios_object(found: SlowIos, one_file: bool) -> dict[str, Any]:
    """The figures as plain data, for a run's summary."""
    return {
        "ios": found.count,
        "slowest": [asdict(one) for one in found.slowest()],
        "in_common": found.claims(one_file),
    }


def slow_ios(data: Mapping[str, Any]) -> list[SlowIo]:
    """The slowest I/Os of a summary."""
    return [SlowIo(**one) for one in data.get("slowest", ())]


def _parsed(line: bytes, job: int) -> SlowIo | None:
    cells = [cell.strip() for cell in line.split(b",")]
    try:
        offset = int(cells[4]) if len(cells) > 4 else None
        return SlowIo(
            _KINDS[cells[2]], int(cells[0]) / 1000, int(cells[1]), int(cells[3]), offset, job
        )
    except (ValueError, KeyError, IndexError):
        return None


def _exemplar(one: SlowIo, one_file: bool, slow: bool) -> Exemplar:
    """What all of them share (CPU, queue ...) is never claimed."""
    ended = round(one.t * 1000) * NS_PER_MS
    return Exemplar(
        disk="its file", kind=one.direction, slow=slow, sampled=not slow, sector=None,
        offset=one.offset if one_file else None, size=one.size, flags="", pid=one.job, tid=0,
        comm="fio's job", group="", cpu=0, cpu_done=0, hctx=0, allocated_ns=None, inserted_ns=None,
        issued_ns=ended - one.latency_ns, completed_ns=ended,
    )  # fmt: skip
