"""When a finding ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.findings.active_findings import END_AFTER_S, ActiveFindings, EndedFinding
from iopstui.model.findings.finding import Finding

FULL = Finding("full", "CPU 1 is full", since=2.0, until=5.0)


def fed(
    holding: ActiveFindings, fires: list[bool], t: float = 5.0
) -> list[tuple[float, EndedFinding]]:
    """(time, finding) for each finding that ends. ``fires``: whether it fires in each second."""
    found = []
    for one in fires:
        t += 1.0
        found += [(t, over) for over in holding.feed(t, 1.0, {"full"} if one else set())]
    return found


def test_it_is_over_once_its_rule_has_been_quiet_for_long_enough() -> None:
    holding = ActiveFindings()
    holding.note_reported(FULL, 5.0)
    quiet = int(END_AFTER_S)
    assert fed(holding, [True] * 5 + [False] * (quiet - 1)) == []
    assert fed(holding, [False] * 30, 10.0 + quiet - 1) == [
        (10.0 + quiet, EndedFinding(FULL, 2.0, 10.0))
    ]


def test_a_rule_that_was_quiet_for_two_seconds_fires_no_more_but_holds() -> None:
    holding = ActiveFindings()
    holding.note_reported(FULL, 5.0)
    fed(holding, [True] * 5 + [False])
    assert holding.firing == [FULL]
    fed(holding, [False], 11.0)
    assert holding.firing == [] and holding.findings == [FULL]
    fed(holding, [True], 12.0)
    assert holding.firing == [FULL]


def test_a_run_that_begins_ends_nothing() -> None:
    holding = ActiveFindings()
    holding.note_reported(FULL, 5.0)
    holding.forget()
    assert fed(holding, [False] * 30) == []


@given(st.lists(st.booleans(), max_size=200))
def test_it_ends_exactly_where_a_pause_is_long_enough(fires: list[bool]) -> None:
    """As in a session, it is reported again when it fires after its end."""
    holding, ends, held, quiet, last = ActiveFindings(), 0, False, 0, 0.0
    for second, fired in enumerate(fires, 6):
        t = float(second)
        over = list(holding.feed(t, 1.0, {"full"} if fired else ()))
        quiet = 0 if fired else quiet + 1
        last = t if fired else last
        assert bool(over) == (held and quiet == int(END_AFTER_S))
        for one in over:
            assert one.until == last and one.since <= one.until
            held, ends = False, ends + 1
        if fired and not held:
            holding.note_reported(Finding("full", "x", since=t - 3), t)
            held = True
    assert ends <= len(fires) // int(END_AFTER_S)
