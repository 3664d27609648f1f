"""Ending a run that has become steady: the rule is checked at the ends of rounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from session_frames import whole_frames

from iopstui.events import Event, FrameReady, Notice, StepFinished, StepStarted
from iopstui.model.metrics.frame import Frame
from iopstui.session.tick.outcomes import OutcomeTracker, SteadyStop

FRAME = next(frame for frame in whole_frames("3.42-p-both") if frame.fio and frame.fio.total.ios)


def second(number: int, ios: int) -> FrameReady:
    fio = FRAME.fio
    assert fio is not None
    one = replace(fio, seconds=1.0, total=replace(fio.total, ios=ios))
    frame: Frame = replace(FRAME, t=float(number), fio=one, flags=frozenset())
    return FrameReady(float(number), frame)


def told(rates: list[int], round_s: float) -> list[tuple[int, str]]:
    verdicts = OutcomeTracker((), SteadyStop(round_s))
    return [
        (number, event.text)
        for number, rate in enumerate(rates, 1)
        for event in verdicts.feed(second(number, rate))
        if isinstance(event, Notice)
    ]


def test_it_is_said_once_at_the_end_of_the_fifth_round_at_the_earliest() -> None:
    ((at, text),) = told([1000] * 30, 2.0)
    assert at == 10
    assert "the last 5 rounds of 2 s averaged 1.00k IOPS" in text and "after 0:10" in text


def test_what_never_settles_is_never_steady() -> None:
    assert told([1000 if number // 4 % 2 else 2000 for number in range(200)], 2.0) == []


@pytest.mark.parametrize("steady", [True, False])
def test_the_run_s_own_words_are_of_the_same_rounds(steady: bool) -> None:
    verdicts = OutcomeTracker((), SteadyStop(1.0))
    rates = [3000] * 6 + ([1000] * 5 if steady else [])
    said: list[Event] = list(verdicts.feed(StepStarted(0.0, 1, "x", "run", ("fio",), True)))
    for number, rate in enumerate(rates if steady else [100, 900] * 3, 1):
        said += verdicts.feed(second(number, rate))
    said += verdicts.feed(StepFinished(20.0, 1, 0, "", False, {"rows": [], "total": {}}))
    assert verdicts.steady == steady
    assert [isinstance(event, Notice) for event in said] == ([True, False] if steady else [False])
    judged = said[-1]
    assert getattr(judged, "steady", None) is steady
