"""What sweep and comparison look like. Run `pytest --snapshot-update` after an intended change."""

from __future__ import annotations

from collections.abc import Callable

import experiment_fakes as lab
import pytest
from test_experiment_view import begin
from textual.pilot import Pilot

from iopstui.model.experiment.plan import Plan
from iopstui.ui.draw.style import ASCII, UTF8, Charset

SCENES: dict[str, tuple[tuple[int, int], Plan, int, Charset, str]] = {
    "sweep-120x36": ((120, 36), lab.SWEEP, 7, UTF8, "0"),
    "sweep-of-three-lines-running-80x24-ascii": ((80, 24), lab.CURVES, 7, ASCII, "3"),
    "compare-120x36": ((120, 36), lab.COMPARE, 8, UTF8, "0"),
}


@pytest.mark.parametrize("name", SCENES)
def test_looks(name: str, snap_compare: Callable[..., bool]) -> None:
    size, plan, completed, charset, key = SCENES[name]

    async def play(pilot: Pilot[int]) -> None:
        under = await begin(pilot, plan, 0, running=False)
        for index in range(completed):
            under.tell(lab.point_started(plan, index))
            for n in range(5):
                iops = 10_000.0 + 40_000 * (index in (1, 2, 5, 6)) + 900 * ((index + n) % 3)
                under.tell(lab.frame_event(10.0 * index + n, iops))
            under.tell(lab.point_finished(plan, index, 10.0 * index + 6))
        if completed == plan.points:
            under.end(completed)
        else:
            under.tell(lab.point_started(plan, completed, 80.0))
            under.tell(lab.frame_event(81.0, 12_000.0))
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause()

    app = lab.make(lab.FakeLaboratory(), charset=charset)
    assert snap_compare(app, terminal_size=size, run_before=play)
