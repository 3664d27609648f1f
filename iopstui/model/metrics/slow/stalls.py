"""Stalls: spans in which a disk completed nothing while requests were in flight.

/proc/diskstats is read once per interval, so it bounds a stall from both sides: the stall lasted at
least from the first reading that shows it to the last one, and at most one interval more at each
end. If requests arrived at an idle disk, the disk's own busy time shows when it began."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from iopstui import format as units
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.frame import Frame

MIN_STALL_S = 0.5
"""Shorter stalls are not reported: a single slow request of a quiet disk looks the same."""
REPORT_ONGOING_S = 3.0
DISKSTATS = "diskstats"


@dataclass(frozen=True, slots=True)
class Stall:
    """A stall of ``disk``: it began at ``start`` (seconds of the session) or up to one interval
    earlier, and lasted at least ``seconds`` and at most ``at_most`` (``None``: not known).
    ``in_flight`` requests waited when it was last read. ``by`` is the source."""

    disk: str
    start: float
    seconds: float
    at_most: float | None
    in_flight: int
    ended: bool = True
    by: str = DISKSTATS

    @property
    def text(self) -> str:
        """A sentence: "vda completed nothing for 2 to 4 s from 0:12 on, 32 requests in flight"."""
        if not self.ended:
            lasted = f"{self.seconds:.1f} s so far"
        elif self.at_most is None:
            lasted = f"at least {self.seconds:.1f} s"
        elif self.at_most - self.seconds < _SAME_LENGTH_S:
            lasted = f"{self.seconds:.2f} s"
        else:
            lasted = f"{self.seconds:.1f} to {self.at_most:.1f} s"
        requests = "request" if self.in_flight == 1 else "requests"
        return (
            f"{self.disk} completed nothing for {lasted} from {units.clock(self.start)} on, "
            f"{self.in_flight} {requests} in flight"
        )

    @property
    def flag(self) -> str:
        """Words for a chart: "stall 2.0 s"."""
        return f"stall {self.seconds:.1f} s"


_SAME_LENGTH_S = 0.05
# the busy time is counted in clock ticks
_FULLY_BUSY = 0.98


@dataclass(slots=True)
class _OpenStall:
    """A current stall, and the ``earliest`` time at which it can have begun (``None``: not
    known)."""

    stall: Stall
    earliest: float | None
    reported: bool = False


class StallWatch:
    """A fold over a session's frames that finds stalls of all their disks."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenStall] = {}
        self._before: dict[str, tuple[float, int | None]] = {}
        """For each disk the start of the frame before, and the requests in flight at its end."""

    def feed(self, frame: Frame) -> Iterator[Stall]:
        """Stalls that ended in this frame, and current stalls that have lasted REPORT_ONGOING_S."""
        if frame.seconds is None:
            return
        begin = frame.t - frame.seconds
        for name, disk in frame.disks.items():
            if _is_quiet(disk):
                yield from self._extend(name, disk, frame.t)
            elif name in self._open:
                yield from self._end(name, frame.t)
            self._before[name] = (begin, disk.in_flight)
        for name in [name for name in self._open if name not in frame.disks]:
            yield from self._end(name, None)

    def ongoing(self) -> Iterator[Stall]:
        """Stalls that have not ended by the end of the session."""
        for stall in self._open.values():
            if stall.stall.seconds >= MIN_STALL_S:
                yield replace(stall.stall, at_most=None, ended=False)

    def _extend(self, name: str, disk: DiskRates, now: float) -> Iterator[Stall]:
        in_flight = disk.in_flight or 0
        open_stall = self._open.get(name)
        if open_stall is None:
            start, earliest = self._stall_start(name, disk, now)
            open_stall = self._open[name] = _OpenStall(
                Stall(name, start, 0.0, None, in_flight), earliest
            )
        seconds = now - open_stall.stall.start
        open_stall.stall = replace(open_stall.stall, seconds=seconds, in_flight=in_flight)
        if not open_stall.reported and seconds >= REPORT_ONGOING_S:
            open_stall.reported = True
            yield replace(open_stall.stall, ended=False)

    def _stall_start(self, name: str, disk: DiskRates, now: float) -> tuple[float, float | None]:
        """The latest and the earliest time at which the stall can have begun (earliest ``None``:
        not known)."""
        before = self._before.get(name)
        if before is not None and before[1]:
            return now - disk.seconds, before[0]
        # nothing completed, so the disk has been busy without a break since its first request
        busy = min(disk.util or 0.0, 100.0) / 100
        start = now - disk.seconds * busy
        return start, None if before is None and busy > _FULLY_BUSY else start

    def _end(self, name: str, now: float | None) -> Iterator[Stall]:
        open_stall = self._open.pop(name)
        if open_stall.stall.seconds >= MIN_STALL_S:
            at_most = None
            if now is not None and open_stall.earliest is not None:
                at_most = now - open_stall.earliest
            yield replace(open_stall.stall, at_most=at_most)


def _is_quiet(disk: DiskRates) -> bool:
    """Whether nothing completed, and something is in flight."""
    return disk.ios == 0 and not disk.f_s and bool(disk.in_flight)
