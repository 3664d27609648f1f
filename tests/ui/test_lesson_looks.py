"""What a lesson looks like. Run `pytest --snapshot-update` after an intended change."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lesson_fakes import lesson, make
from test_app import settle
from textual.pilot import Pilot

# name: (terminal size, number of started runs)
SCENES: dict[str, tuple[tuple[int, int], int]] = {
    "80x24-ask": ((80, 24), 0),
    "120x36-run": ((120, 36), 1),
    "120x36-explain": ((120, 36), 2),
}


@pytest.mark.parametrize("name", SCENES)
def test_looks(name: str, snap_compare: Callable[..., bool]) -> None:
    size, runs = SCENES[name]
    app, session, _ = make(begin=lesson())

    async def before(pilot: Pilot[int]) -> None:
        await settle(pilot)
        await app.workers.wait_for_complete()
        session.tick(3)
        await pilot.press("enter", "b")
        for number in range(runs):
            await pilot.press("enter", "enter")
            session.tick(4)
            await settle(pilot)
            if number or runs > 1:
                session.tick(2)
                session.finish()
                await settle(pilot)
        if runs > 1:
            await pilot.press("enter", "enter")
        await settle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)
