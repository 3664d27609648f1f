"""Key `:`: fio checks an option before the dialog closes, names are completed, earlier options
return."""

from __future__ import annotations

from test_app import make, running, settle, shows
from textual.pilot import Pilot
from textual.widgets import Input, Static

from iopstui.ui.app import IopstuiApp
from iopstui.ui.dialogs.questions import OptionPrompt


def prompt_value(app: IopstuiApp) -> str:
    return app.screen.query_one(Input).value


def prompt_message(app: IopstuiApp) -> str:
    return str(app.screen.query_one("#prompt-foot", Static).content)


async def enter(pilot: Pilot[int], text: str) -> None:
    await pilot.press(
        *("equals_sign" if character == "=" else character for character in text), "enter"
    )
    await settle(pilot)


async def test_a_wrong_option_is_corrected_in_the_same_field() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await running(app, pilot, 2)
        await pilot.press("colon")
        await enter(pilot, "iodepht=8")
        assert isinstance(app.screen, OptionPrompt)
        assert "fio has no option iodepht. Did you mean iodepth?" in prompt_message(app)
        assert prompt_value(app) == "iodepht=8" and not app.jobs.overrides
        # the next letter removes the message; the arrow keys find only the draft
        await pilot.press("up", "down", "ctrl+u")
        assert "fio has no option" not in prompt_message(app)
        await enter(pilot, "iodepth=8")
        assert app.jobs.overrides == {"iodepth": "8"} and shows(app, "iodepth=8: preparing")


async def test_names_are_completed_and_earlier_input_comes_back() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await running(app, pilot, 2)
        for option in ("rwmixread=60", "rwmixread=70"):
            await pilot.press("colon")
            await enter(pilot, option)
        await pilot.press("colon", "n", "o", "r", "a", "tab")
        assert prompt_value(app) == "norandommap=" and "random pattern" not in prompt_message(app)
        await pilot.press("up")
        assert prompt_value(app) == "rwmixread=70"
        await pilot.press("up", "up")
        assert prompt_value(app) == "rwmixread=60"
        await pilot.press("down", "down")
        assert prompt_value(app) == "norandommap="
        await pilot.press("ctrl+u", "i", "o", "d", "tab")
        assert prompt_value(app) == "iodepth" and "iodepth_batch" in prompt_message(app)
