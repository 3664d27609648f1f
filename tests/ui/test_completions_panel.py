"""Completions by CPU and time: a change of rq_affinity is a band that goes to another row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import frame, load

from iopstui.events import FrameReady, Mark
from iopstui.model.metrics.cpus.cpu_frames import CpuFrame
from iopstui.ui.dashboard.panels.completions_panel import groups, rows, window_start
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.state.live import LiveState


def told(seconds: int, flip: int, cpus: int = 2) -> LiveState:
    """All completions on CPU 0, from ``flip`` on on CPU 1."""
    state = LiveState(("sda",))
    for t in range(1, seconds + 1):
        on = int(t > flip)
        each = {n: CpuFrame(load(), 900.0 * (n == on), None, None) for n in range(cpus)}
        if t == flip + 1:
            state.apply(Mark(t - 1.0, "rq_affinity 2"))
        state.apply(FrameReady(float(t), replace(frame(t=float(t)), cpus=each, seconds=1.0)))
    return state


def drawn(state: LiveState, charset: Charset = UTF8, cursor: float | None = None) -> list[str]:
    found = rows(state, 80, 9, charset, cursor)
    assert len(found) == 9
    lines = ["".join(text for text, _ in row) for row in found]
    assert {len(line) for line in lines} == {80}
    return lines


@pytest.mark.parametrize(("charset", "full"), [(UTF8, "█"), (ASCII, "#")])
def test_the_flip_moves_the_band_to_the_other_row(charset: Charset, full: str) -> None:
    _, marks, first, second, time, *_ = drawn(told(20, flip=8), charset)
    assert first[:8].strip() == "CPU 0" and second[:8].strip() == "CPU 1"
    assert first[8:].rstrip().rstrip("│|") == full * 8
    assert second[8:28] == " " * 8 + full * 12
    assert "rq_affinity 2" in marks and marks.index("rq") == 8 + 8 + 1
    assert time[8:].startswith("0:00      0:10")


def test_the_second_that_is_looked_at_has_a_line() -> None:
    _, _, first, second, *_ = drawn(told(20, flip=8), cursor=5.0)
    assert first[8 + 4] == second[8 + 4] == "┃"


def test_neighbours_share_a_row_where_they_are_many() -> None:
    history = told(3, flip=1, cpus=64).completions
    found = groups(history, 6)
    assert len(found) == 6 and found[0] == ("CPU 0-10", tuple(range(11)))
    assert [cpu for _, cpus in found for cpu in cpus] == list(range(64))


def test_the_window_stands_still_until_it_is_full() -> None:
    assert [window_start(t, 80) for t in (0, 79.9, 80, 99, 100, 1000)] == [0, 0, 20, 20, 40, 940]


def test_before_the_first_second_it_says_so() -> None:
    assert "no completion" in drawn(LiveState(("sda",)))[1]
