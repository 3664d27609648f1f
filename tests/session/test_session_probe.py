"""Which way the session's probe counts: its own programs where they can, else bpftrace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from slow_requests import exemplar

from iopstui.linux.probe import availability, bpf_probe, process, regions
from iopstui.linux.probe.bpf_probe import ProbeUnusable
from iopstui.linux.probe.script import Region
from iopstui.linux.process.clock import Clock
from iopstui.linux.roots import Roots
from iopstui.model.metrics.probe import LATENCY, WAY
from iopstui.model.samples import Exemplar, ProbeSample
from iopstui.session.tick.probe import SessionProbe

SAMPLE = object()


class Counter:
    made: ClassVar[list[Counter]]
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


class Own(Counter):
    made: ClassVar[list[Counter]] = []
    parts = (LATENCY,)


class Bpftrace(Counter):
    made: ClassVar[list[Counter]] = []


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> SessionProbe:
    monkeypatch.setattr(bpf_probe, "BpfProbe", Own)
    monkeypatch.setattr(process, "ProbeProcess", Bpftrace)
    monkeypatch.setattr(regions, "regions", lambda *_: [Region("vda", 254, 0)])
    monkeypatch.setattr(availability, "why_no_probe", lambda *_: None)
    monkeypatch.setattr(Own, "why", "")
    Own.made, Bpftrace.made = [], []
    context = SimpleNamespace(
        target=SimpleNamespace(tree=(), levels={"vda": 1}), devices={}, roots=Roots(),
        clock=Clock(),
        warn=told.append, notice=lambda kind, text: told.append(text),
    )  # fmt: skip
    return SessionProbe(context, 1.0)  # type: ignore[arg-type]


def begun(probe: SessionProbe, parts: Sequence[str]) -> tuple[int, int]:
    probe.switch(parts)
    return len(Own.made), len(Bpftrace.made)


def test_latencies_alone_are_counted_by_its_own_programs(
    probe: SessionProbe, told: list[str]
) -> None:
    assert begun(probe, (LATENCY,)) == (1, 0) and probe.is_starting
    assert "with own programs: about 0.4 µs" in told[0] and probe.why_off == ""
    assert probe.take() is SAMPLE and not probe.is_starting


def test_all_else_is_counted_by_bpftrace(probe: SessionProbe, told: list[str]) -> None:
    assert begun(probe, (LATENCY, WAY)) == (0, 1)
    assert "with bpftrace" in told[0] and "don't count" not in told[0]


def test_where_they_can_t_bpftrace_does_and_says_why(
    probe: SessionProbe, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Own, "why", "no BTF")
    assert begun(probe, (LATENCY,)) == (0, 1)
    assert "with bpftrace" in told[0] and "no BTF" in told[0]
    monkeypatch.setattr(availability, "why_no_probe", lambda *_: ("no bpftrace", "get it"))
    probe.switch((LATENCY,))
    assert "no probe: no bpftrace. To fix it: get it" in told[1] and "no BTF" in told[1]
    assert probe.why_off.startswith("no bpftrace. To fix it: get it")
    assert probe.parts == () and probe.take() is None
    # one right that both lack is named once
    monkeypatch.setattr(
        availability, "why_no_probe", lambda *_: (availability.ONLY_ROOT, "sudo iopstui ...")
    )
    probe.switch((LATENCY,))
    assert told[2] == "no probe: only root may load BPF programs. To fix it: sudo iopstui ..."
    probe.switch(())
    assert probe.why_off == ""


def test_programs_that_count_something_else_are_replaced(
    probe: SessionProbe, told: list[str]
) -> None:
    probe.switch((LATENCY,))
    (first,) = Own.made
    first.trouble = "of 1000 requests its own programs counted 0"
    assert probe.take() is None and first.closed and probe.is_starting
    (second,) = Bpftrace.made
    assert probe.parts == (LATENCY,) and "counted 0" in told[-1]
    # with a number of its own: nothing is subtracted across the two
    assert (first.arguments[1], second.arguments[3]) == (1, 2)
    assert probe.take() is SAMPLE


def test_bpftrace_that_has_ended_is_off(probe: SessionProbe, told: list[str]) -> None:
    probe.switch((LATENCY, WAY))
    (only,) = Bpftrace.made
    only.take = lambda: None  # type: ignore[method-assign]
    only.trouble = "bpftrace has ended"
    assert probe.take() is None and only.closed and probe.parts == ()
    assert probe.why_off.startswith("bpftrace has ended")
    assert told[-1].startswith("probe off: bpftrace has ended")


def test_where_a_disk_has_no_requests_those_of_the_others_are_kept(
    probe: SessionProbe, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = [Region("dm-0", 253, 0, bios=True), Region("vda", 254, 0)]
    monkeypatch.setattr(regions, "regions", lambda *_: stack)

    class Choosy(Own):
        def __init__(self, followed: Sequence[Region], *more: Any) -> None:
            if any(one.bios for one in followed):
                raise ProbeUnusable("no requests")
            super().__init__(followed, *more)

        def take(self) -> object:
            return reading(exemplars=(exemplar(),))

    monkeypatch.setattr(bpf_probe, "BpfProbe", Choosy)
    monkeypatch.setattr(Bpftrace, "take", lambda _: reading())
    probe.switch((LATENCY,))
    (keeper,), (counter,) = Own.made, Bpftrace.made
    assert "with bpftrace" in told[0] and "keep single requests of vda, about 0.4 µs" in told[0]
    assert keeper.arguments[0] == [replace(stack[1], level=1)]
    sample = probe.take()
    assert sample is not None and sample.exemplars == (exemplar(),) and sample.by == "bpftrace"
    probe.switch(())
    assert keeper.closed and counter.closed


def reading(exemplars: tuple[Exemplar, ...] = ()) -> ProbeSample:
    return ProbeSample(
        time_ns=1, arrived_ns=1, parts=(LATENCY,), begun=1, device={}, waiting={}, matrix={},
        sizes={}, tasks=(), counts={}, exemplars=exemplars,
    )  # fmt: skip


def automatic(probe: SessionProbe) -> SessionProbe:
    return SessionProbe(probe._context, 1.0, automatic=True)


def test_without_a_job_it_is_on_by_itself_and_says_nothing(
    probe: SessionProbe, told: list[str]
) -> None:
    by_itself = automatic(probe)
    by_itself.adjust(False, None)
    assert by_itself.parts == (LATENCY,) and (len(Own.made), len(Bpftrace.made)) == (1, 0)
    by_itself.make_way_for_job()
    assert Own.made[0].closed and not by_itself.is_starting
    for job_runs in (False, True, True, False, False):
        by_itself.adjust(job_runs, 50.0)
        assert by_itself.parts == ()
    by_itself.adjust(False, 50.0)
    assert by_itself.parts == (LATENCY,) and len(Own.made) == 2 and told == []


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
    by_itself.switch(())
    by_itself.adjust(False, 1.0)
    assert by_itself.parts == ()
    by_itself.switch((LATENCY,))
    by_itself.make_way_for_job()
    by_itself.adjust(True, 1e6)
    assert by_itself.parts == (LATENCY,)


def test_without_a_right_it_stays_off_and_silent(
    probe: SessionProbe, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Own, "why", "only root may load BPF programs")
    by_itself = automatic(probe)
    for _ in range(3):
        by_itself.adjust(False, 1.0)
    assert by_itself.parts == () and Bpftrace.made == [] and told == []
    assert by_itself.why_off == "only root may load BPF programs"


def test_everything_without_bpftrace_is_latencies(
    probe: SessionProbe, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "why_no_probe", lambda *_: ("no bpftrace", "get it"))
    assert begun(probe, (LATENCY, WAY)) == (1, 0) and probe.parts == (LATENCY,)
    assert told[-1] == "only latencies are counted: no bpftrace"
