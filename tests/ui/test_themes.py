"""Themes: what is drawn is the same, its colours are those that can be told apart."""

from __future__ import annotations

import pytest
import ui_fakes as fakes
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from test_app import make, running, settle, shows
from test_colours import KNOBS, colours
from textual.color import Color as TextualColor

from iopstui.cli.values import THEMES as NAMES
from iopstui.ui.app import IopstuiApp
from iopstui.ui.draw import style
from iopstui.ui.draw.density import HEAT
from iopstui.ui.draw.theme import THEMES, Colours

WIDE = (160, 45)
BLACK = TextualColor(0, 0, 0)
PALE = {"yellow", "cyan", "green", "white", "bright_yellow", "bright_cyan", "bright_green",
        "bright_white", "bright_blue", "bright_magenta"}  # fmt: skip
"""What can't be read on white in all of the usual palettes (xterm, VGA, Tango)."""
RED_AND_GREEN = {"red", "green", "bright_red", "bright_green"}


def themed(name: str, of: Style) -> Style:
    [segment] = Colours(THEMES[name]).apply([Segment("x", of)], BLACK)
    assert segment.style is not None
    return segment.style


def test_the_command_line_has_every_theme() -> None:
    assert list(NAMES) == list(THEMES)


def test_an_unknown_colour_and_none_at_all_stay_as_they_are() -> None:
    row = [Segment("a", None), Segment("b", Style(color="#123456", bold=True)), Segment("c", None)]
    assert Colours(THEMES["light"]).apply(row, BLACK) == row


@pytest.mark.parametrize("name", ["light", "colourblind"])
def test_what_has_to_be_told_apart_still_can_be(name: str) -> None:
    for group in (
        (style.P50, style.P99, style.P999),
        (style.WARNING, style.ERROR, style.FINDING),
        (style.FIO, style.DEVICE, style.MARK),
        HEAT,
    ):
        assert len({str(themed(name, one)) for one in group}) == len(group)


def test_other_attributes_are_kept() -> None:
    assert themed("light", style.WARNING) == Style(color="red", bold=True)
    assert themed("light", Style(color="cyan", reverse=True)) == Style(color="blue", reverse=True)
    assert themed("colourblind", style.ERROR) == Style(
        color="bright_white", bold=True, underline=True
    )


def test_blanks_are_not_underlined() -> None:
    row = [Segment(" █  █   ", HEAT[-1]), Segment("▓ ", HEAT[0]), Segment("   ", HEAT[-1])]
    found = Colours(THEMES["light"]).apply(row, BLACK)
    assert "".join(one.text for one in found) == "".join(one.text for one in row)
    assert [one.text for one in found if one.style and one.style.underline] == ["█", "█"]


def test_a_background_is_changed_as_well() -> None:
    assert themed("light", Style(bgcolor="yellow")).bgcolor == Color.parse("red")


async def every_colour(app: IopstuiApp) -> set[str]:
    """Of the dashboard and of all that keys open over it."""
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.notice("error", "something failed")
        fake.mark("a mark")
        await pilot.press("h")
        await settle(pilot)
        found = colours(pilot)
        for key in ("j", "k", "b", "question_mark", "e", "f", "o", "colon", "ctrl+p"):
            await pilot.press(key)
            await settle(pilot)
            found |= colours(pilot)
            await pilot.press("escape")
            await settle(pilot)
    return found


async def test_no_pale_colour_is_left_on_a_light_background() -> None:
    found = await every_colour(make(fakes.FakeController(settings=KNOBS), theme="light"))
    assert not {name.removeprefix("ansi_") for name in found} & PALE and "blue" in found


async def test_nothing_is_red_or_green_without_them() -> None:
    found = await every_colour(make(fakes.FakeController(settings=KNOBS), theme="colourblind"))
    assert not found & RED_AND_GREEN and "bright_blue" in found


async def test_the_dark_theme_is_what_is_drawn() -> None:
    found = await every_colour(make(fakes.FakeController(settings=KNOBS)))
    assert {"cyan", "green", "yellow", "red"} <= found


async def test_the_palette_changes_the_colours_at_once() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        assert "green" in colours(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot)
        await pilot.press(*"light background", "down", "enter")
        await settle(pilot)
        found = colours(pilot)
        assert "green" not in found and "blue" in found
        assert shows(app, "iopstui live --theme light")
        commands = {title: do for title, _, do in app.actions.palette("dashboard")}
        commands["Colours: dark background"]()
        await settle(pilot)
        assert "green" in colours(pilot) and "blue" not in colours(pilot)


async def test_a_theme_brings_no_colour_where_none_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert await every_colour(make(theme="light")) <= {"default"}
