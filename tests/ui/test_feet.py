"""The keys at the foot of every list can be read on the smallest terminal."""

from __future__ import annotations

import pytest

from iopstui.ui.dialogs import live_rows, picker, runs, settings
from iopstui.ui.lesson import list as lessons


@pytest.mark.parametrize(
    "foot",
    [
        live_rows.FOOT,
        picker.FOOT,
        runs.FOOT,
        settings.FOOT,
        settings.FOOT_FIXED,
        lessons.FOOT,
        lessons.FOOT_LEFT,
    ],
)
def test_it_fits_on_80_columns(foot: str) -> None:
    assert len(foot) <= 80
