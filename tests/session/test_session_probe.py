"""When a session's probe is on, and the messages if it can't be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import Clock
from iopstui.linux.probe import bpf, bpf_probe, regions
from iopstui.linux.probe.bpf_probe import ProbeUnusable
from iopstui.linux.probe.regions import Region
from iopstui.model.metrics.probe import LATENCY, PARTS, WAY
from iopstui.session.tick.probe import SessionProbe

SAMPLE = object()


class Counter:
    made: ClassVar[list[Counter]] = []
    parts = PARTS
    why = ""

    def __init__(self, *arguments: Any) -> None:
        if self.why:
            raise ProbeUnusable(self.why)
        self.arguments, self.closed, self.trouble = arguments, False, ""
        type(self).made.append(self)

    def take(self) -> object:
        return SAMPLE

    def problem(self) -> str:
        return self.trouble

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> SessionProbe:
    monkeypatch.setattr(bpf_probe, "BpfProbe", Counter)
    monkeypatch.setattr(regions, "regions", lambda *_: [Region("vda", 254, 0)])
    monkeypatch.setattr(bpf, "why_no_probe", lambda *_: None)
    monkeypatch.setattr(Counter, "why", "")
    Counter.made = []
    context = SimpleNamespace(
        target=SimpleNamespace(tree=(), levels={"vda": 1}), devices={}, roots=Roots(),
        clock=Clock(),
        warn=told.append, notice=lambda kind, text: told.append(text),
    )  # fmt: skip
    return SessionProbe(context)  # type: ignore[arg-type]


def test_it_counts_at_once_and_says_what_it_costs(probe: SessionProbe, told: list[str]) -> None:
    probe.switch(True)
    (only,) = Counter.made
    assert only.arguments[0] == [Region("vda", 254, 0, level=1)]
    assert told == ["probe on: about 0.4 µs of CPU per I/O"] and probe.why_off == ""
    assert probe.parts == PARTS and probe.take() is SAMPLE
    probe.switch(False)
    assert only.closed and probe.parts == () and probe.take() is None


def test_it_names_the_details_that_a_kernel_refuses(
    probe: SessionProbe, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counter, "parts", (LATENCY, WAY))
    probe.switch(True)
    assert told[0].endswith(
        "per I/O; this kernel refuses the programs that count: matrix, processes, sizes"
    )
    # dm has no such details on any kernel
    monkeypatch.setattr(regions, "regions", lambda *_: [Region("dm-0", 253, 0, bios=True)])
    probe.switch(True)
    assert told[1] == "probe on: about 0.4 µs of CPU per I/O"


def test_where_it_can_t_it_says_why(
    probe: SessionProbe, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counter, "why", "no BTF")
    probe.switch(True)
    assert told == ["no probe: no BTF"] and probe.why_off == "no BTF"
    assert probe.parts == () and probe.take() is None
    monkeypatch.setattr(bpf, "why_no_probe", lambda *_: (bpf.ONLY_ROOT, "sudo iopstui ..."))
    probe.switch(True)
    assert told[1] == "no probe: only root may load BPF programs. To fix it: sudo iopstui ..."
    probe.switch(False)
    assert probe.why_off == ""
    monkeypatch.setattr(regions, "regions", lambda *_: [])
    probe.switch(True)
    assert told[2] == "no probe: no block device below the target"


def test_programs_that_count_something_else_are_ended(probe: SessionProbe, told: list[str]) -> None:
    probe.switch(True)
    (first,) = Counter.made
    first.trouble = "the probe counted 0 of 1000 requests"
    assert probe.take() is None and first.closed and probe.parts == ()
    assert probe.why_off.startswith("the probe counted 0 of 1000 requests. See: iopstui")
    assert told[-1].startswith("probe off: the probe counted 0 of 1000 requests")
    # another one has a number of its own: nothing is subtracted across the two
    probe.switch(True)
    assert [one.arguments[1] for one in Counter.made] == [1, 2] and probe.why_off == ""


def automatic(probe: SessionProbe) -> SessionProbe:
    by_itself = SessionProbe(probe._context, automatic=True)
    # the first tick has no rate, so the second is the first one shown
    for ios_s in (None, 50.0):
        by_itself.adjust(False, ios_s)
        assert by_itself.parts == () and Counter.made == []
    return by_itself


def test_without_a_job_it_is_on_by_itself_and_says_nothing(
    probe: SessionProbe, told: list[str]
) -> None:
    by_itself = automatic(probe)
    by_itself.adjust(False, 50.0)
    assert by_itself.parts == PARTS and len(Counter.made) == 1
    by_itself.make_way_for_job()
    assert Counter.made[0].closed
    for job_runs in (False, True, True, False, False):
        by_itself.adjust(job_runs, 50.0)
        assert by_itself.parts == ()
    by_itself.adjust(False, 50.0)
    assert by_itself.parts == PARTS and len(Counter.made) == 2 and told == []


def test_it_is_not_on_by_itself_at_high_rates(probe: SessionProbe) -> None:
    by_itself = automatic(probe)
    rates = (100_001.0, 99_000.0, 51_000.0, 49_000.0, 99_000.0, 100_001.0)
    counted = []
    for ios_s in rates:
        by_itself.adjust(False, ios_s)
        counted.append(bool(by_itself.parts))
    assert counted == [False, False, False, True, True, False]


def test_what_somebody_has_switched_is_not_changed_by_itself(probe: SessionProbe) -> None:
    by_itself = automatic(probe)
    by_itself.switch(False)
    by_itself.adjust(False, 1.0)
    assert by_itself.parts == ()
    by_itself.switch(True)
    by_itself.make_way_for_job()
    by_itself.adjust(True, 1e6)
    assert by_itself.parts == PARTS


def test_without_a_right_it_stays_off_and_silent(
    probe: SessionProbe, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counter, "why", "no BTF")
    by_itself = automatic(probe)
    for _ in range(3):
        by_itself.adjust(False, 1.0)
    assert by_itself.parts == () and told == [] and by_itself.why_off == "no BTF"


def test_a_problem_of_one_that_nobody_asked_for_is_no_message(
    probe: SessionProbe, told: list[str]
) -> None:
    by_itself = automatic(probe)
    by_itself.adjust(False, 1.0)
    Counter.made[0].trouble = "it counts something else"
    assert by_itself.take() is None and by_itself.why_off and told == []
    by_itself.adjust(False, 1.0)
    assert by_itself.parts == ()
