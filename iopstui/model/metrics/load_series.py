"""The load of a run over time, divided into stages, and whether each of them was steady.

A job with ``stonewall`` or ``startdelay`` has stages: in each of them other sections work. SNIA's
rule is about a constant load, so it is applied to one stage at a time. A section whose load changes
by itself (``thinktime``, ``verify``) is not judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from iopstui.model.fio.interval import JobInterval
from iopstui.model.metrics.frame import RESET, UNCOUNTED, Frame
from iopstui.model.metrics.statistics import Steadiness, steadiness

MIN_SHARE = 0.05
"""A section with less than this share of the I/Os does not make a stage."""
MIN_IOS = 100
"""Fewer I/Os are not judged: rounds would differ by chance."""


@dataclass(frozen=True, slots=True)
class _Interval:
    seconds: float
    ios: float
    sections: tuple[JobInterval, ...] = ()
    holds: bool = True


class LoadSeries:
    """A run's completed I/Os over time, without fio's ramp and handovers."""

    def __init__(self) -> None:
        self._intervals: list[_Interval] = []

    def add(self, frame: Frame) -> None:
        fio = frame.fio
        if fio is None or UNCOUNTED & frame.flags or not fio.seconds or fio.total.iops is None:
            return
        if RESET in frame.flags:
            self._intervals.clear()
        self._intervals.append(_Interval(fio.seconds, float(fio.total.ios), fio.jobs, frame.holds))

    def add_interval(self, seconds: float, ios: float) -> None:
        """Count ``ios`` I/Os in ``seconds``."""
        self._intervals.append(_Interval(seconds, ios))

    @property
    def seconds(self) -> float:
        """Total length of the intervals with valid rates."""
        return sum(interval.seconds for interval in self._intervals if interval.holds)

    def steadiness(self, round_s: float | None = None) -> Steadiness:
        """Whether the run as a whole was steady, judged by rounds of ``round_s`` seconds (``None``:
        the rule chooses their length)."""
        return steadiness(_pairs(self._intervals), round_s)

    def stages(self) -> list[Steadiness]:
        """The steadiness of each stage. If no stage is long enough, one result gives the reason."""
        bounds = self._bounds()
        results = []
        for first, end in pairwise(bounds):
            intervals = self._intervals[first:end]
            working = _at_work(intervals)
            changing = next((section.changing for section in working if section.changing), "")
            found = (
                Steadiness(None, changing=changing) if changing else steadiness(_pairs(intervals))
            )
            if found.mean * found.round_s < MIN_IOS:
                found = Steadiness(None, changing=changing)
            names = tuple(dict.fromkeys(section.name for section in working))
            results.append(replace(found, sections=names if len(bounds) > 2 else ()))
        judged = [result for result in results if result.steady is not None]
        whys = [result for result in results if result.changing]
        return judged or whys[:1] or [Steadiness(None)]

    def _bounds(self) -> list[int]:
        """Where each stage begins, and where the last one ends. An interval in which a section
        begins or ends is a stage of its own, because it belongs partly to the stage before."""
        rows: dict[int, list[int]] = {}
        for number, interval in enumerate(self._intervals):
            for section in interval.sections:
                if section.ios or section.bytes:
                    rows.setdefault(section.index, []).append(number)
        first = min((numbers[0] for numbers in rows.values()), default=0)
        last = max((numbers[-1] for numbers in rows.values()), default=0)
        bounds = {0, len(self._intervals)}
        for index, numbers in rows.items():
            begins, ends = numbers[0], numbers[-1]
            if (
                begins > first
                and _share(self._intervals[min(begins + 1, ends)], index) >= MIN_SHARE
            ):
                bounds |= {begins, begins + 1}
            if ends < last and _share(self._intervals[max(ends - 1, begins)], index) >= MIN_SHARE:
                bounds |= {ends, ends + 1}
        return sorted(bounds)


def _share(interval: _Interval, index: int) -> float:
    own = sum(section.ios for section in interval.sections if section.index == index)
    return own / interval.ios if interval.ios else 0.0


def _at_work(intervals: Sequence[_Interval]) -> list[JobInterval]:
    """The sections with a noticeable part of the I/Os of these intervals."""
    ios: dict[int, int] = {}
    sections: dict[int, JobInterval] = {}
    for interval in intervals:
        for section in interval.sections:
            ios[section.index] = ios.get(section.index, 0) + section.ios
            sections[section.index] = section
    total = sum(ios.values())
    return [sections[i] for i, count in sorted(ios.items()) if count and count >= MIN_SHARE * total]


def _pairs(intervals: Sequence[_Interval]) -> list[tuple[float, float]]:
    return [(interval.seconds, interval.ios) for interval in intervals if interval.holds]


def overall(stages: Sequence[Steadiness]) -> Steadiness:
    """The result of the least steady stage."""
    return max(stages, key=lambda s: (s.steady is not None, s.steady is False, s.range))
