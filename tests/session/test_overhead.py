from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from iopstui.model.fio.interval import FioInterval
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.samples import RawSample
from iopstui.session.tick.context import FRAMES, WARN_AGAIN_S, GuardTime, OverheadMonitor

EMPTY = FrameBuilder().feed(RawSample(0, 0, 0.0, None, None, False, 1))
FIO = FioInterval.__new__(FioInterval)  # its figures don't matter, only its presence


def frames(count: int, cpu: float | None = 0.5, skew: float | None = 1.0, step: int = 1,
           start: float = 0.0) -> list[Frame]:  # fmt: skip
    return [
        dataclasses.replace(EMPTY, t=start + n, step=step, fio=FIO, own_cpu=cpu, skew_ms=skew)
        for n in range(count)
    ]


def said(watch: OverheadMonitor, some: list[Frame]) -> list[str]:
    return [words for frame in some for words in watch.feed(frame)]


def test_a_small_cost_is_not_worth_a_word() -> None:
    assert said(OverheadMonitor(), frames(50, cpu=4.9, skew=-49.0)) == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda count: frames(count, cpu=5.6), "5.6 % of a CPU"),
        (lambda count: frames(count, skew=80.0), "80 ms apart"),
        (lambda count: frames(count, skew=-80.0), "80 ms apart"),
    ],
)
def test_a_large_one_is_told_once(make: Callable[[int], list[Frame]], words: str) -> None:
    assert said(OverheadMonitor(), make(FRAMES - 1)) == []
    (found,) = said(OverheadMonitor(), make(int(WARN_AGAIN_S)))
    assert words in found


def test_the_message_names_a_longer_interval_and_fits_into_80_columns() -> None:
    (found,) = said(OverheadMonitor(0.5), frames(FRAMES, cpu=12.3))
    assert "--interval 1 " in found and len(" 10:46  warning: " + found) <= 80


def test_it_is_told_again_if_it_goes_on() -> None:
    assert len(said(OverheadMonitor(), frames(FRAMES + int(WARN_AGAIN_S), cpu=6.0))) == 2


def test_a_few_bad_seconds_are_not_typical() -> None:
    watch = OverheadMonitor()
    assert said(watch, frames(6, cpu=0.5)) == []
    assert said(watch, frames(4, cpu=90.0, start=6.0)) == []


def test_frames_without_a_job_and_of_the_run_before_do_not_count() -> None:
    watch = OverheadMonitor()
    idle = [dataclasses.replace(f, fio=None, step=0) for f in frames(30, cpu=9.0)]
    assert said(watch, idle) == []
    assert said(watch, frames(FRAMES - 1, cpu=9.0)) == []
    assert said(watch, frames(FRAMES - 1, cpu=9.0, step=2, start=20.0)) == []
    assert said(watch, frames(FRAMES * 2, cpu=None, skew=None, step=3, start=40.0)) == []


def test_the_guards_time_is_kept_when_they_end() -> None:
    guards = GuardTime()
    seen = [guards.total(now) for now in (None, 0.02, 0.03, None, None, 0.01, 0.04, 0.005, 0.02)]
    assert seen == pytest.approx([0, 0.02, 0.03, 0.03, 0.03, 0.04, 0.07, 0.075, 0.09])
