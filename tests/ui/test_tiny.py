"""Nothing crashes on a terminal that is too small for a dialog. A shrinking terminal passes through
all these sizes."""

from __future__ import annotations

import pytest
import ui_fakes as fakes
from test_app import go_home, make, screen_text, settle

pytestmark = pytest.mark.paints


@pytest.mark.parametrize("size", [(100, 4), (4, 20)], ids=["no row", "no column"])
async def test_the_list_of_all_actions(size: tuple[int, int]) -> None:
    app = make(fakes.FakeController())
    async with app.run_test(size=size) as pilot:
        await pilot.press("ctrl+p")
        await settle(pilot)
        await pilot.press("pagedown", "pageup", "escape")
        await settle(pilot)
    assert not app.has_crashed


async def test_a_narrow_line_of_keys_keeps_those_that_lead_out() -> None:
    app = make(fakes.FakeController())
    async with app.run_test(size=(60, 15)) as pilot:
        await settle(pilot)
        await pilot.press("u")
        await settle(pilot)
        keys = screen_text(app).splitlines()[-2].strip("│ ")
        assert keys.endswith("Esc Close") and keys.startswith("Tab 1-4 Pages")
        await pilot.press("escape")
        await go_home(app, pilot)
        keys = screen_text(app).splitlines()[-1].strip()
        assert keys.startswith("Enter Back") and keys.endswith("? Help  q Quit"), keys
        await pilot.resize_terminal(100, 24)
        await settle(pilot)
        assert "p Partitions  / Filter  y Copy  ? Help  q Quit" in screen_text(app)
