"""Completions by CPU and time: a change of rq_affinity moves the band to another row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import frame, load

from iopstui.events import FrameReady, Mark
from iopstui.model.metrics.cpus import CpuFrame
from iopstui.ui.dashboard.panels.completions_panel import groups, rows
from iopstui.ui.draw.charts.chart import TimeWindow
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.state.live import LiveState

SECONDS = TimeWindow(0.0, 72.0)
"""A column for each second."""


def state_after(seconds: int, flip: int, cpus: int = 2) -> LiveState:
    """A state with all completions on CPU 0, and on CPU 1 after second ``flip``."""
    state = LiveState(("sda",))
    for t in range(1, seconds + 1):
        on = int(t > flip)
        each = {n: CpuFrame(load(), 900.0 * (n == on), None, None) for n in range(cpus)}
        if t == flip + 1:
            state.apply(Mark(t - 1.0, "rq_affinity 2"))
        state.apply(FrameReady(float(t), replace(frame(t=float(t)), cpus=each, seconds=1.0)))
    return state


def render(
    state: LiveState, charset: Charset = UTF8, cursor: float | None = None,
    window: TimeWindow = SECONDS,
) -> list[str]:  # fmt: skip
    table = rows(state, window, 80, 9, charset, cursor)
    assert len(table) == 9
    lines = ["".join(text for text, _ in row) for row in table]
    assert {len(line) for line in lines} == {80}
    return lines


@pytest.mark.parametrize(("charset", "full"), [(UTF8, "█"), (ASCII, "#")])
def test_completions_on_another_cpu_move_the_band_to_its_row(charset: Charset, full: str) -> None:
    _, marks, first, second, time, *_ = render(state_after(20, flip=8), charset)
    assert first[:8].strip() == "CPU 0" and second[:8].strip() == "CPU 1"
    assert first[8:].rstrip().rstrip("│|") == full * 8
    assert second[8:28] == " " * 8 + full * 12
    assert "rq_affinity 2" in marks and marks.index("rq") == 8 + 8 + 1
    assert time[8:].startswith("0:00           0:15")


def test_the_selected_second_has_a_line() -> None:
    _, _, first, second, *_ = render(state_after(20, flip=8), cursor=5.0)
    assert first[8 + 4] == second[8 + 4] == "┃"


def test_many_cpus_share_rows_with_their_neighbours() -> None:
    history = state_after(3, flip=1, cpus=64).completions
    bands = groups(history, 6)
    assert len(bands) == 6 and bands[0] == ("CPU 0-10", tuple(range(11)))
    assert [cpu for _, cpus in bands for cpu in cpus] == list(range(64))


def test_a_second_may_take_several_columns_and_a_column_several_seconds() -> None:
    state = state_after(20, flip=10)
    wide, long = TimeWindow(2.5, 18.0), TimeWindow(0.0, 144.0)
    first = render(state, window=wide)[2][8:]
    # 4 columns a second: the band ends at second 10
    assert first.rstrip("│ ") == "█" * 30 and len(first.split("│")[0]) == 30
    assert render(state, window=long)[2][8:13] == "█" * 5


def test_before_the_first_second_a_message_is_shown() -> None:
    assert "no completion" in render(LiveState(("sda",)))[1]
