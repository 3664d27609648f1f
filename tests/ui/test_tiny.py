"""Nothing crashes on a terminal that is too small for a dialog. A shrinking terminal passes through
all these sizes."""

from __future__ import annotations

import pytest
import ui_fakes as fakes
from test_app import make, settle

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
