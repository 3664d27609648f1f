"""Triggers: their grammar, and when one fires."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_frames import whole_frames
from watch_frames import frame, rates, watched

from iopstui.errors import UsageError
from iopstui.model.metrics.frame import PARTIAL
from iopstui.model.watch.trigger import (
    Trigger,
    TriggerFired,
    TriggerWatch,
    parse_trigger,
)

TREE = ("vda", "vdb")


def parsed(text: str, probed: bool = False) -> Trigger:
    return parse_trigger(text, ("vda",), ("vda",), probed)


def fired(text: str, awaits: list[int | None]) -> list[float]:
    """The seconds at which it fires; an await of ``None``: nothing was read."""
    watcher = TriggerWatch(parsed(text))
    frames = watched([rates(0 if ms is None else 10, wait_ms=ms or 0) for ms in awaits])
    return [one.t for each in frames if (one := watcher.feed(each)) is not None]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r_await>20", "form"),
        ("r_await>20ms", "form"),
        ("r_await>20ms for", "form"),
        ("r_await=20ms for 3s", "form"),
        ("", "form"),
        ("r_await>20 for 3s", "needs a unit"),
        ("r_await>-20ms for 3s", "not understood"),
        ("r_await>20ms for 0s", "not a time"),
        ("r_await>20ms for -3s", "not a time"),
        ("r_await>20ms for 3x", "not a time"),
        ("r_await>20ms for ever", "not a time"),
        ("r_wait>20ms for 3s", "no figure of a whole run is called 'r_wait'"),
        ("sdz.r_await>20ms for 3s", "no figure of a whole run is called 'sdz.r_await'"),
        ("read.clat.p99>2ms for 3s", "no job runs in a watch"),
        ("iops>5k for 3s", "no job runs in a watch"),
        ("device.read.p99>2ms for 3s", "only the probe counts"),
    ],
)
def test_what_is_no_trigger_is_told(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        parsed(text)
    assert f"--trigger {text!r}" in error.value.message


def test_with_the_probe_its_figures_can_be_asked_for() -> None:
    found = parsed("device.read.p99>=1us for 1s", probed=True)
    assert found.path == ("device", "read", "p99")
    watcher = TriggerWatch(found)
    first = next(filter(None, map(watcher.feed, whole_frames("3.33-p-mixed", probed=True))))
    assert first.value >= 1000


def test_several_disks_are_meant_together_but_for_util() -> None:
    found = parse_trigger("r/s>5 for 1s", TREE, TREE)
    assert found.path == ("kernel", "total", "r/s")
    both = frame(1.0, {"vda": rates(3), "vdb": rates(4)})
    assert TriggerWatch(found).feed(both) == TriggerFired(found, 1.0, 1.0, 7.0)
    with pytest.raises(UsageError, match="shares of time") as error:
        parse_trigger("util>5% for 1s", TREE, TREE)
    assert error.value.hint == "Name the device: vda.util or vdb.util"


def test_it_fires_when_every_frame_of_that_time_is_beyond_the_limit() -> None:
    assert fired("r_await>20ms for 3s", [21, 21, 21]) == [3.0]
    assert fired("r_await>20ms for 3s", [21, 20, 21, 21]) == []
    assert fired("r_await>=20ms for 3s", [21, 20, 21, 21]) == [3.0]
    assert fired("r_await<20ms for 2s", [19, 19]) == [2.0]
    assert fired("r_await<=20ms for 2s", [20, 20]) == [2.0]
    assert fired("r_await<20ms for 2s", [20, 20]) == []


def test_the_last_part_of_a_second_fires_nothing() -> None:
    watch = TriggerWatch(parsed("r_await>5ms for 1s"))
    short = replace(frame(1.0, {"vda": rates(10, wait_ms=9)}), flags=frozenset({PARTIAL}))
    assert watch.feed(short) is None
    assert watch.feed(replace(short, flags=frozenset())) is not None


def test_no_request_in_a_second_is_a_rate_of_zero() -> None:
    assert fired("r/s<1 for 2s", [5, None, None, 5]) == [3.0]


def test_frames_that_are_a_little_short_add_up_to_the_time() -> None:
    watcher = TriggerWatch(parsed("r/s>5 for 3s"))
    short = [frame(n * 0.999, {"vda": rates(10)}, 0.999) for n in (1, 2, 3)]
    assert [watcher.feed(one) is not None for one in short] == [False, False, True]


@given(st.lists(st.one_of(st.none(), st.integers(0, 40)), max_size=40), st.integers(1, 6))
def test_it_fires_where_a_search_by_hand_finds_it(awaits: list[int | None], hold: int) -> None:
    above = [ms is not None and ms > 20 for ms in awaits]
    expected = [
        float(n)
        for n in range(hold, len(above) + 1)
        if all(above[n - hold : n]) and (n == hold or not above[n - hold - 1])
    ]
    assert fired(f"r_await>20ms for {hold}s", awaits) == expected
