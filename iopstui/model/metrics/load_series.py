"""The load of a run over time, divided into stages, and whether each of them was steady.

A job with ``stonewall`` or ``startdelay`` has stages: in each of them other sections work. SNIA's
rule is about a constant load, so it is applied to one stage at a time. A section whose load changes
by itself (``thinktime``, ``verify``) is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from iopstui.model.fio.interval import JobInterval
from iopstui.model.metrics.frame import RESET, UNCOUNTED, Frame
from iopstui.model.metrics.statistics.steadiness import Steadiness, steadiness

MIN_SHARE = 0.05
"""A section with less than this share of the I/Os does not make a stage."""


@dataclass(frozen=True, slots=True)
class _Interval:
    seconds: float
    ios: float
    sections: tuple[JobInterval, ...] = ()
    holds: bool = True


@dataclass(frozen=True, slots=True)
class _Span:
    """The intervals between a section's first and last I/O, by index."""

    first: int
    last: int
    name: str
    changing: str


class LoadSeries:
    """A run's completed I/Os over time, without fio's ramp and what is around a handover."""

    def __init__(self) -> None:
        self._intervals: list[_Interval] = []

    def add(self, frame: Frame) -> None:
        """Count one frame."""
        fio = frame.fio
        if fio is None or UNCOUNTED & frame.flags or not fio.seconds or fio.total.iops is None:
            return
        if RESET in frame.flags:
            self._intervals.clear()
        self._intervals.append(_Interval(fio.seconds, float(fio.total.ios), fio.jobs, frame.holds))

    def add_interval(self, seconds: float, ios: float) -> None:
        """Count so many I/Os in so many seconds."""
        self._intervals.append(_Interval(seconds, ios))

    @property
    def seconds(self) -> float:
        """Total length of the intervals that hold."""
        return sum(interval.seconds for interval in self._intervals if interval.holds)

    def steadiness(self, round_s: float | None = None) -> Steadiness:
        """Whether the run was steady, stages or not, by rounds of ``round_s`` seconds (``None``:
        as the rule chooses)."""
        return steadiness(_pairs(self._intervals), round_s)

    def stages(self) -> list[Steadiness]:
        """Whether each stage was steady. Without one that is long enough there is one result,
        which says why."""
        spans = list(self._spans())
        bounds = self._bounds(spans)
        results = []
        for first, end in pairwise(bounds):
            # the interval in which a stage begins is partly of the one before
            at_work = [span for span in spans if span.first < end and span.last >= first]
            part = _pairs(self._intervals[first:end])
            changing = next((span.changing for span in at_work if span.changing), "")
            names = tuple(dict.fromkeys(span.name for span in at_work))
            result = Steadiness(None, changing=changing) if changing else steadiness(part)
            results.append(replace(result, sections=names if len(bounds) > 2 else ()))
        judged = [result for result in results if result.steady is not None]
        whys = [result for result in results if result.changing]
        return judged or whys[:1] or [Steadiness(None)]

    def _spans(self) -> Iterator[_Span]:
        """The sections that matter."""
        rows: dict[int, list[int]] = {}
        for number, interval in enumerate(self._intervals):
            for section in interval.sections:
                if section.ios or section.bytes:
                    rows.setdefault(section.index, []).append(number)
        for index, numbers in rows.items():
            first, last = numbers[0], numbers[-1]
            intervals = self._intervals[first : last + 1]
            own = [s for i in intervals for s in i.sections if s.index == index]
            if sum(s.ios for s in own) >= MIN_SHARE * sum(i.ios for i in intervals):
                yield _Span(first, last, own[-1].name, own[-1].changing)

    def _bounds(self, spans: Sequence[_Span]) -> list[int]:
        """Where stages begin, and the end of the last one."""
        ends = {0, len(self._intervals)}
        first = min((span.first for span in spans), default=0)
        last = max((span.last for span in spans), default=0)
        for span in spans:
            if span.first > first:
                ends |= {span.first, span.first + 1}
            if span.last < last:
                ends |= {span.last, span.last + 1}
        return sorted(ends)


def _pairs(intervals: Sequence[_Interval]) -> list[tuple[float, float]]:
    return [(interval.seconds, interval.ios) for interval in intervals if interval.holds]


def overall(stages: Sequence[Steadiness]) -> Steadiness:
    """The least steady of the stages."""
    return max(stages, key=lambda s: (s.steady is not None, s.steady is False, s.range))
