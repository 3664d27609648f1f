"""The help lists once the keys that have moved since earlier versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_app import make, screen_text, settle

from iopstui.ui.core import preferences
from iopstui.ui.dialogs import text


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(preferences, "state_directory", lambda: tmp_path)
    return tmp_path / preferences.FILE


def test_a_new_user_knows_the_keys(used: Path) -> None:
    assert not preferences.keys_moved() and not used.exists()
    assert preferences.is_first_use() and not preferences.is_first_use()
    assert not preferences.keys_moved()


async def test_the_help_says_once_which_keys_have_moved(used: Path) -> None:
    used.touch()  # as earlier versions left it
    assert not preferences.is_first_use()
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        for shown in (True, False):
            await pilot.press("question_mark")
            await settle(pilot)
            assert ("Keys that moved" in screen_text(app)) == shown
            await pilot.press("escape", "escape")
            await settle(pilot)


async def test_messages_are_filtered(used: Path) -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.state.add_message("info", "the first message")
        app.state.add_message("warning", "another one")
        app.port.push(text.LogScreen(app.state, app.charset))
        await settle(pilot)
        await pilot.press("slash", *"first")
        await settle(pilot)
        assert "the first message" in screen_text(app) and "another one" not in screen_text(app)
