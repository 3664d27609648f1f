"""Steady state of each stage of a run; the truth is known because the test makes the load."""

from __future__ import annotations

from dataclasses import replace

from fio_recordings import frames
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.fio.interval import JobInterval
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.load_series import LoadSeries
from iopstui.model.metrics.statistics import steadiness


def frame(sections: dict[str, int], *flags: str, changing: str = "") -> Frame:
    fio, names = FRAME.fio, sorted(sections)
    assert fio is not None
    jobs = tuple(
        JobInterval(n, name, 0, float(sections[name]), 1.0, None, sections[name], 1, False,
                    changing=changing)
        for n, name in enumerate(names) if sections[name]
    )  # fmt: skip
    total = replace(fio.total, ios=sum(sections.values()))
    return replace(
        FRAME, flags=frozenset(flags), fio=replace(fio, seconds=1.0, total=total, jobs=jobs)
    )


FRAME = next(f for f in frames("3.42-p-both") if f.fio and f.fio.total.ios)


def series(run: list[Frame]) -> LoadSeries:
    load = LoadSeries()
    for one in run:
        load.add(one)
    return load


NONE = {"a": 0, "b": 0}
FIRST = [frame(NONE | {"a": 2000})] * 8
CHANGE = [frame({"a": 900, "b": 300})]
SECOND = [frame(NONE | {"b": 500})] * 8


def test_a_section_with_few_ios_makes_no_stage() -> None:
    pauses = [frame({"a": 2000, "b": int(n in (2, 6))}) for n in range(9)]
    (only,) = series(pauses).stages()
    assert only.steady is True and only.sections == ()


def test_a_load_that_changes_by_itself_is_not_judged() -> None:
    pauses = [frame(NONE | {"a": 3000 * (n % 2)}, changing="thinktime") for n in range(9)]
    (only,) = series(pauses).stages()
    assert only.steady is None and only.changing == "thinktime"


@given(st.lists(st.lists(st.integers(500, 5000), min_size=5, max_size=12), min_size=1, max_size=4))
def test_each_stage_is_judged_by_its_own_seconds(rates: list[list[int]]) -> None:
    names = "abcd"
    run: list[Frame] = []
    loads = []
    for number, seconds in enumerate(rates):
        idle = dict.fromkeys(names, 0)
        if number:
            run.append(frame(idle | {names[number - 1]: 4000, names[number]: 4000}))
        run += [frame(idle | {names[number]: rate}) for rate in seconds]
        loads.append(steadiness([(1.0, float(rate)) for rate in seconds]))
    found = series(run).stages()
    assert [(s.steady, s.range, s.slope) for s in found] == [
        (load.steady, load.range, load.slope) for load in loads
    ]
