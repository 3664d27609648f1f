"""A/B of a tunable while a job runs: its turns, its result, and the value that stays afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence_frames import device, fio, fired, frame
from test_tunable_changes import Turns

from iopstui import events
from iopstui.model.findings.tunable_effect import SPAN_S, SPANS, Alternation
from iopstui.session.tick.findings import FindingTracker
from iopstui.session.tunable_changes import TunableAlternation


class Clocked:
    """Two disks whose rq_affinity is 1, and a clock that the test moves."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns = Turns(base)
        self.context = self.turns.context
        self.t = 10.0
        monkeypatch.setattr(self.context, "now", lambda: self.t)
        self.tracker = FindingTracker()
        self.tracker.note_tunable_change(self.t, "sda, sdb", "rq_affinity", "1", "2")
        self.all = TunableAlternation(self.context, self.turns.knobs, self.tracker)
        self.turns.knobs.change("rq_affinity", "2")

    @property
    def value(self) -> str:
        first, second = self.turns.now("rq_affinity")
        assert first == second
        return first

    def seconds(self, count: int, iops: float) -> None:
        for _ in range(count):
            self.t += 1.0
            self.context.emit(events.FrameReady(self.t, frame(self.t - 0.01, fio(iops))))
            self.all.follow()

    def findings(self) -> list[str]:
        told = self.turns.told
        return [one.finding.text for one in told if isinstance(one, events.FindingReported)]


@pytest.fixture
def clocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clocked:
    return Clocked(tmp_path, monkeypatch)


def test_it_goes_back_and_forth_and_says_the_difference(clocked: Clocked) -> None:
    clocked.all.start("rq_affinity", ("1", "2"))
    seen = []
    for span in range(SPANS):
        seen.append(clocked.value)
        clocked.seconds(int(SPAN_S), 1000.0 + 100 * (span % 2) + span)
    assert seen == ["1", "2"] * (SPANS // 2) and not clocked.all.is_active
    (text,) = clocked.findings()
    assert "+10." in text and "95 % confidence" in text and "no difference" not in text
    assert clocked.value == "2", "as it was before"
    assert clocked.tracker._change is None, "its last change is not reported alone as well"


def test_a_difference_within_the_spread_is_none() -> None:
    alternation = Alternation("vda", "nr_requests", ("64", "256"))
    for span, iops in enumerate((1000, 1100, 1050, 900, 980, 1030)):
        alternation.begin_span(10.0 * span)
        for second in range(1, 4):
            alternation.add(frame(10.0 * span + 1 + second, fio(iops)))
    text = fired(alternation.finding([device()])).text
    assert "no difference is shown" in text and "nr_requests 256 instead of 64 on vda" in text


@pytest.mark.parametrize("flags", [frozenset[str](), frozenset({"PARTIAL", "HANDOVER"})])
def test_the_second_of_a_change_and_short_ones_are_not_counted(flags: frozenset[str]) -> None:
    alternation = Alternation("vda", "rq_affinity", ("1", "2"))
    for span in range(SPANS):
        alternation.begin_span(10.0 * span)
        alternation.add(frame(10.0 * span + 0.5, fio(5.0)))
        for second in (2, 3):
            alternation.add(frame(10.0 * span + second, fio(1000.0), flags=flags))
    found = alternation.finding([device()])
    assert (found is None) == bool(flags)
    assert found is None or "+0.0 %" in found.text


@pytest.mark.parametrize("how", ["key", "end of the run", "another setting"])
def test_every_early_end_puts_the_value_back(how: str, clocked: Clocked) -> None:
    clocked.all.start("rq_affinity", ("1", "2"))
    clocked.seconds(2, 1000.0)
    assert clocked.value == "1"
    if how == "key":
        clocked.all.stop("it was ended")
    elif how == "end of the run":
        clocked.context.emit(events.StepFinished(clocked.t, 1, 0, "", True))
    else:
        clocked.turns.knobs.change("nr_requests", "32")
    clocked.all.follow()
    assert clocked.value == "2" and not clocked.all.is_active and clocked.findings() == []
    clocked.turns.knobs.restore()
    assert clocked.value == "1", "the session restores what it found"


def test_a_value_that_cannot_be_set_ends_it(clocked: Clocked) -> None:
    clocked.all.start("nonsense", ("1", "2"))
    assert not clocked.all.is_active
    assert any("nothing is compared" in text for text in clocked.turns.notices())
