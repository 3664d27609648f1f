"""The answer on many hosts names the unusual host first."""

from __future__ import annotations

from typing import Any

import pytest
from test_fleet_findings import healthy, noisy

from iopstui.events import AnswerGiven
from iopstui.features.fleet.findings import (
    WINDOW_SECONDS,
    fleet_answer,
    fleet_evidence,
    list_findings,
)
from iopstui.features.fleet.fleet_events import (
    FleetRunStarted,
    HostFigures,
    HostRow,
    HostStateChanged,
)
from iopstui.features.fleet.fleet_state import LATE, LOST, RUNNING, FleetState
from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.merging.row_events import read_answer
from iopstui.model.answer.answer import CRITICAL, GOOD, WARNING, Answer
from iopstui.output.jsonl import event_object

BAD = {"disk": "vda", "rule": "queue", "state": "warning", "text": "vda is busy",
       "verdict": "waits",
       "who": "dd (7) does all of its bytes", "next": "limit it"}  # fmt: skip


def fleet(slow: dict[str, float] | None = None) -> FleetState:
    """Ten hosts of 1,000 IOPS, and some slow ones, after some seconds of a job."""
    rates = healthy() | {name: noisy(99, rate) for name, rate in (slow or {}).items()}
    state = FleetState()
    state.apply(FleetRunStarted(1, tuple(rates), 0.0))
    for second in range(2, WINDOW_SECONDS):
        for name, rate in rates.items():
            wait = 5e6 if slow and name in slow else 1e6
            state.apply(HostFigures(name, second, True, rate(second), 4e6, wait, wait, 50.0))
        state.apply(MergedInterval(second, 1.0, expected=len(rates), counted=len(rates)))
    return state


def answer(state: FleetState) -> Answer:
    evidence = fleet_evidence(state)
    found = fleet_answer(state, evidence, list_findings(evidence))
    assert found is not None
    return found


def says(fleet_of: FleetState, name: str, **changes: Any) -> None:
    fleet_of.apply(HostRow(name, {"event": "answer", "t": 9.0, "answer": BAD | changes}))


def test_before_the_first_second_nothing_is_known() -> None:
    state = FleetState()
    assert fleet_answer(state, fleet_evidence(state), ()) is None


def test_hosts_that_are_alike_are_what_was_looked_at() -> None:
    found = answer(fleet())
    assert found.state == GOOD and found.text.startswith("10 of 10 hosts measured: ")
    assert "together, mean of 8 s; furthest from the median" in found.text


def test_no_host_is_odd_if_its_figure_is_that_of_the_middle() -> None:
    state = FleetState()
    state.apply(FleetRunStarted(1, ("n1", "n2", "n3"), 0.0))
    for second in range(2, WINDOW_SECONDS):
        for name, rate in (("n1", 300.0), ("n2", 300.2), ("n3", 299.9)):
            state.apply(HostFigures(name, second, True, rate, 4e6, 1e6, 1e6, 50.0))
        state.apply(MergedInterval(second, 1.0, expected=3, counted=3))
    assert answer(state).text == "3 of 3 hosts measured: 900 I/Os/s together, mean of 8 s"


def test_the_odd_host_comes_before_what_hosts_say_of_themselves() -> None:
    state = fleet({"slow": 400.0})
    says(state, "n3")
    found = answer(state)
    assert found.state == WARNING and found.text.startswith("straggler slow: ")


def test_a_host_s_own_answer_is_named_the_worst_first() -> None:
    state = fleet()
    for name in ("n5", "n2"):
        says(state, name)
    says(state, "n7", state="critical", text="vdb has answered nothing")
    says(state, "n1", state="good")
    found = answer(state)
    assert found.sentence == (
        "■ n7: vdb has answered nothing; also need attention: n2, n5 · dd (7) does all of its bytes"
    )
    says(state, "n7", state="critical", text="The job waits (0:03-1:00:05): on CPUs (0-3): 4 I/Os",
         period="0:03-1:00:05")  # fmt: skip
    assert answer(state).text.startswith("n7: The job waits: on CPUs (0-3): 4 I/Os; also")
    # a new session of n7 has reported nothing yet
    state.apply(HostRow("n7", {"event": "session", "host": "n7"}))
    assert answer(state).text.startswith("n2: vda is busy; also need attention: n5")


def test_an_answer_as_a_host_prints_it_is_read() -> None:
    """It has the length of its time as a number."""
    given = Answer("vda", "finding-cpu-wait", WARNING, "The job waits (0:03-0:09): on CPUs",
                   over_s=5, period="0:03-0:09")  # fmt: skip
    found = read_answer(event_object(AnswerGiven(9.0, given)))
    assert found == given
    assert found is not None and found.text_without_period == "The job waits: on CPUs"


def test_a_lost_host_comes_first() -> None:
    state = fleet({"slow": 400.0})
    state.apply(HostStateChanged("n4", LOST, "no answer for 10 s"))
    found = answer(state)
    assert (found.state, found.text) == (
        CRITICAL, "n4: no figures (no answer for 10 s); 10 of 11 hosts are measured"
    )  # fmt: skip


def test_a_late_host_is_no_lost_one() -> None:
    state = fleet()
    state.apply(HostStateChanged("n4", LATE, ""))
    found = answer(state)
    assert (found.state, found.text) == (WARNING, "n4: no figures; 9 of 10 hosts are measured")
    state.apply(HostStateChanged("n3", LOST, ""))
    assert answer(state).state == CRITICAL


def test_a_host_whose_first_second_has_not_come_is_not_absent() -> None:
    state = FleetState()
    state.apply(FleetRunStarted(1, ("n1", "n2"), 0.0, watching=True))
    state.apply(HostStateChanged("n2", RUNNING, ""))
    said = []
    for second in range(7, 11):
        state.apply(HostFigures("n1", second, True, 9.0, 4e6, 1e6, 1e6, 50.0))
        state.apply(MergedInterval(second, 1.0, expected=2, counted=1, missing=("n2",)))
        said.append(answer(state).text)
    assert said[:3] == ["1 of 2 hosts measured"] * 3
    assert said[3] == "n2: no figures; 1 of 2 hosts are measured"


@pytest.mark.parametrize(
    "answer",
    [None, [], "busy", {**BAD, "state": "fine"}, {**BAD, "text": 5}, {**BAD, "verdict": "yes"}],
)
def test_what_is_no_answer_is_left_out(answer: object) -> None:
    assert read_answer({"event": "answer", "t": 1.0, "answer": answer}) is None
