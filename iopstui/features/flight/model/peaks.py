"""The highest seconds of some time, so that a spike is never averaged away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import nlargest

from iopstui.model.answer.use import DiskUse, mean_use
from iopstui.model.figures.disk import DiskRates, mean_ms
from iopstui.model.metrics.frame import Frame
from iopstui.model.samples import Exemplar
from iopstui.recording.records import DiskPeak, Peaks

MAX_SLOWEST = 8
"""Requests that are kept of each stretch."""
MAX_USERS = 12
"""Processes that are kept of each stretch."""
MIN_SECONDS = 0.5
"""A shorter interval says nothing about a second."""


class _Highest:
    """The highest second of each figure of one disk."""

    __slots__ = ("at", "busy", "bytes_s", "in_flight", "ios_s", "ms")

    def __init__(self) -> None:
        self.ios_s = self.bytes_s = self.in_flight = self.at = 0.0
        self.busy: float | None = None
        self.ms: float | None = None

    def feed(self, rates: DiskRates, t: float) -> None:
        """Count the second that ended at ``t``."""
        # computed from the counters' growth here: the figures of a row would cost three times as
        # much
        seconds = rates.seconds
        self.ios_s = max(self.ios_s, (rates.ios or 0) / seconds)
        self.bytes_s = max(self.bytes_s, (rates.moved or 0) / seconds)
        self.in_flight = max(self.in_flight, (rates.weighted_ms or 0.0) / seconds / 1e3)
        busy, ms = rates.util, mean_ms(rates)
        if busy is not None and busy > (self.busy or -1.0):
            self.busy = busy
        if ms is not None and ms > (self.ms or -1.0):
            self.ms, self.at = ms, t

    def peak(self, t: float) -> DiskPeak:
        """The peak for a record at time ``t``, rounded: else meaningless digits would be half of
        what is written."""
        busy = None if self.busy is None else round(self.busy, 1)
        ms, ago_s = (None, 0.0) if self.ms is None else (round(self.ms, 3), round(t - self.at, 2))
        return DiskPeak(round(self.ios_s, 1), round(self.bytes_s), round(self.in_flight, 2), busy,
                        ms, ago_s)  # fmt: skip


class PeakFold:
    """Collects peaks: it is fed with each second, and ``take`` returns the peaks since the last
    call."""

    def __init__(self) -> None:
        self._disks: dict[str, _Highest] = {}
        self._slowest: list[Exemplar] = []
        self._seconds = 0.0

    def feed(self, frame: Frame) -> None:
        if (frame.seconds or 0.0) < MIN_SECONDS:
            return
        self._seconds += frame.seconds or 0.0
        for name, rates in frame.disks.items():
            if rates.ios or rates.flushes or rates.in_flight:
                highest = self._disks.get(name)
                if highest is None:
                    highest = self._disks[name] = _Highest()
                highest.feed(rates, frame.t)
        if frame.probe is not None and frame.probe.exemplars:
            self._slowest = slowest([*self._slowest, *frame.probe.exemplars])

    def take(self, t: float) -> Peaks:
        """Return the peaks up to ``t``, and start again."""
        disks = {name: highest.peak(t) for name, highest in self._disks.items()}
        peaks = Peaks(t, self._seconds, disks, tuple(self._slowest))
        self._disks, self._slowest, self._seconds = {}, [], 0.0
        return peaks


def busiest_use(uses: Sequence[DiskUse]) -> DiskUse | None:
    """Join several readings into one, with the processes that did most. Bytes are rounded: else
    their decimals would be half of what is written."""
    use = mean_use(uses)
    if use is None:
        return None
    users = tuple(
        replace(user, read_s=round(user.read_s), write_s=round(user.write_s))
        for user in use.users[:MAX_USERS]
    )
    disks = {
        name: (round(read_s), round(write_s), round(in_flight, 2))
        for name, (read_s, write_s, in_flight) in use.disks.items()
    }
    boot_ms = {name: round(ms, 3) for name, ms in use.boot_ms.items()}
    depths = {name: round(depth, 1) for name, depth in use.boot_in_flight.items()}
    return replace(use, users=users, disks=disks, boot_ms=boot_ms, boot_in_flight=depths)


def slowest(requests: Iterable[Exemplar]) -> list[Exemplar]:
    """The slowest of these requests, the slowest first."""
    return nlargest(MAX_SLOWEST, requests, key=lambda request: request.total_ns)


def higher(before: DiskPeak | None, one: DiskPeak) -> DiskPeak:
    """The higher one of each figure."""
    if before is None:
        return one
    longer = (one.ms or 0.0) > (before.ms or 0.0)
    busy = [each for each in (before.busy, one.busy) if each is not None]
    return DiskPeak(
        max(before.ios_s, one.ios_s), max(before.bytes_s, one.bytes_s),
        max(before.in_flight, one.in_flight), max(busy, default=None),
        one.ms if longer else before.ms, one.ms_ago_s if longer else before.ms_ago_s,
    )  # fmt: skip


def join(several: Sequence[Peaks]) -> Peaks:
    """Join several stretches into one, which ends where the last one does."""
    disks: dict[str, DiskPeak] = {}
    last = several[-1]
    for peaks in several:
        for name, peak in peaks.disks.items():
            earlier = replace(peak, ms_ago_s=peak.ms_ago_s + last.t - peaks.t)
            disks[name] = higher(disks.get(name), earlier)
    requests = slowest(request for peaks in several for request in peaks.slowest)
    return replace(last, seconds=sum(peaks.seconds for peaks in several), disks=disks,
                   slowest=tuple(requests))  # fmt: skip
