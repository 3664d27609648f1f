"""Themes: every text can be read, roles can be told apart, and the choice is kept."""

from __future__ import annotations

import pytest
import ui_fakes as fakes
from rich.segment import Segment
from rich.style import Style
from test_app import make, running, screen_text, settle, shows
from test_colours import KNOBS, colours
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from iopstui.cli.values import MORE_THEMES
from iopstui.cli.values import THEMES as NAMES
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.preferences import PREFERENCES
from iopstui.ui.draw import style, theme
from iopstui.ui.draw.style import CONSOLE
from iopstui.ui.draw.theme import CONTRAST, NOT_TEXT, OWN_THEMES, VARIABLES, Colours, contrast

WIDE = (160, 45)
BLACK = Color(0, 0, 0)
APART = (
    ("p50", "p99", "p999"), ("good", "warning", "critical"), ("fio", "device", "mark"),
    ("heat-1", "heat-2", "heat-3", "heat-4", "heat-5"),
)  # fmt: skip
PALE = {"yellow", "cyan", "green", "white", "bright_yellow", "bright_cyan", "bright_green",
        "bright_white", "bright_blue", "bright_magenta"}  # fmt: skip
"""What can't be read on white in all of the usual palettes (xterm, VGA, Tango)."""


def role_colours(of: Theme) -> dict[str, Color]:
    return {role: Color.parse(of.variables[name]) for role, name in VARIABLES.items()
            if name in of.variables}  # fmt: skip


def in_256(colour: Color) -> Color:
    """As a terminal of 256 colours shows it."""
    from rich.color import ColorSystem

    return Color.from_rich_color(colour.rich_color.downgrade(ColorSystem.EIGHT_BIT))


def test_the_command_line_has_every_theme() -> None:
    assert tuple(NAMES) == theme.NAMES and set(OWN_THEMES) < set(NAMES)
    assert set(MORE_THEMES) == set(BUILTIN_THEMES)


@pytest.mark.parametrize("name", OWN_THEMES)
@pytest.mark.parametrize("few", [False, True])
def test_every_text_can_be_read_on_every_background(name: str, few: bool) -> None:
    of = OWN_THEMES[name]
    texts = role_colours(of) | {"foreground": Color.parse(of.foreground)}
    for role, colour in texts.items():
        for background in (of.background, of.surface, of.panel):
            assert background is not None
            shown = (colour, Color.parse(background))
            if few:
                shown = (in_256(shown[0]), in_256(shown[1]))
            if role not in NOT_TEXT:
                assert contrast(*shown) >= CONTRAST, (role, background)


@pytest.mark.parametrize("name", OWN_THEMES)
def test_what_textual_s_widgets_show_can_be_read(name: str) -> None:
    of = OWN_THEMES[name]
    made = of.to_color_system().generate() | of.variables
    for front, back in (
        ("text", "background"), ("text-muted", "panel"), ("text-error", "panel"),
        ("text-warning", "panel"), ("text-success", "panel"), ("text-accent", "surface"),
        ("block-cursor-foreground", "block-cursor-background"),
        ("block-cursor-blurred-foreground", "block-cursor-blurred-background"),
        ("input-cursor-foreground", "input-cursor-background"),
        ("footer-key-foreground", "footer-background"),
        ("foreground", "input-selection-background"),
    ):  # fmt: skip
        assert contrast(Color.parse(made[front]), Color.parse(made[back])) >= CONTRAST, front


@pytest.mark.parametrize("name", [name for name, of in BUILTIN_THEMES.items() if not of.ansi])
def test_the_roles_of_textual_s_own_themes_can_be_read(name: str) -> None:
    of = BUILTIN_THEMES[name]
    background = Color.parse(of.to_color_system().generate()["background"])
    made = theme.variables_for(of)
    for role, variable in VARIABLES.items():
        if role not in NOT_TEXT and variable in made:
            assert contrast(Color.parse(made[variable]), background) >= CONTRAST, role


@pytest.mark.parametrize("name", OWN_THEMES)
def test_what_has_to_be_told_apart_can_be(name: str) -> None:
    found = role_colours(OWN_THEMES[name]) | {"warning": Color.parse(OWN_THEMES[name].warning)}
    for group in APART:
        assert len({found[role].hex for role in group}) == len(group)


@pytest.mark.parametrize("name", OWN_THEMES)
def test_more_is_brighter_or_darker_from_step_to_step(name: str) -> None:
    found, background = role_colours(OWN_THEMES[name]), Color.parse(OWN_THEMES[name].background)
    steps = [contrast(found[f"heat-{step}"], background) for step in range(1, 6)]
    assert steps == sorted(steps) and steps[0] >= 1.4


@pytest.mark.parametrize("name", theme._PALETTE_OF_16)
def test_sixteen_colours_tell_them_apart_too(name: str) -> None:
    colour = Colours(theme._PALETTE_OF_16[name])
    for group in (
        (style.P50, style.P99, style.P999), (style.WARNING, style.ERROR, style.FINDING),
        (style.FIO, style.DEVICE, style.MARK), style.HEAT,
    ):  # fmt: skip
        looks = {str(colour.apply([Segment("x", one)], BLACK)[0].style) for one in group}
        assert len(looks) == len(group)


def test_blanks_are_not_underlined() -> None:
    row = [Segment(" █  █   ", style.ERROR), Segment("▓ ", style.HEAT[0]), Segment("a", None)]
    found = Colours(theme._PALETTE_OF_16["light-16"]).apply(row, BLACK)
    assert "".join(one.text for one in found) == "".join(one.text for one in row)
    assert [one.text for one in found if one.style and one.style.underline] == ["█", "█"]


def test_attributes_and_other_styles_are_kept() -> None:
    palette = {"strong": Style(color="#ffffff", dim=False)}
    other = Style(color="#123456", bold=True)
    row = [Segment("a", style.SELECTED), Segment("b", other), Segment("c", None)]
    chosen, *rest = Colours(palette).apply(row, BLACK)
    assert chosen.style is not None and chosen.style.reverse and str(chosen.style.color) != "None"
    assert rest == row[1:]


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
    return {name.removeprefix("ansi_") for name in found}


async def test_sixteen_colours_on_a_light_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv("TERM", "xterm")
    found = await every_colour(make(fakes.FakeController(settings=KNOBS), theme="light"))
    assert not found & PALE and "blue" in found


@pytest.mark.parametrize(
    ("term", "colorterm", "shown"),
    [
        ("linux", "", "terminal"), ("xterm", "", "terminal"), ("xterm-256color", "", "dark"),
        ("xterm", "truecolor", "dark"),
    ],
)  # fmt: skip
async def test_the_default_is_what_the_terminal_can_show(
    term: str, colorterm: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLORTERM", colorterm)
    app = make(theme="")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert app.theme == shown


async def test_the_palette_changes_the_theme_at_once_and_keeps_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[tuple[str, object]] = []
    monkeypatch.setattr(PREFERENCES, "remember", lambda key, value: kept.append((key, value)))
    app = make()
    light = OWN_THEMES["light"].variables["fio"]
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        assert not kept and light not in colours(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot)
        await pilot.press(*"theme: light", "down", "enter")
        await settle(pilot)
        assert light in colours(pilot) and shows(app, "theme: light (saved")
        assert kept == [("theme", "light")]
        app.theme = "nord"
        await settle(pilot)
        assert light not in colours(pilot) and kept[-1] == ("theme", "nord")


@pytest.mark.parametrize("end", ["escape", "enter"])
async def test_the_theme_under_the_cursor_is_shown_and_kept_with_enter_only(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[str, object]] = []
    monkeypatch.setattr(PREFERENCES, "remember", lambda key, value: kept.append((key, value)))
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        await pilot.press("T")
        await settle(pilot)
        await pilot.press("down")
        await settle(pilot)
        assert app.theme == "light" and OWN_THEMES["light"].foreground in colours(pilot)
        await pilot.press("down")
        await settle(pilot)
        assert app.theme == "colourblind" and not kept
        await pilot.press(end)
        await settle(pilot)
        await settle(pilot)
        chosen = "colourblind" if end == "enter" else "dark"
        assert app.theme == chosen and app.screen is app.dashboard
        assert shows(app, "theme: colourblind (saved") == (end == "enter")
        assert kept == ([("theme", "colourblind")] if end == "enter" else [])


async def test_with_sixteen_colours_the_name_of_the_command_line_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[tuple[str, object]] = []
    monkeypatch.setattr(PREFERENCES, "remember", lambda key, value: kept.append((key, value)))
    monkeypatch.setattr(theme, "few_colours", lambda app: True)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        assert theme.theme_names(app) == theme.NAMES
        await pilot.press("T", "home", "down", "enter")
        await settle(pilot)
        assert app.theme == "light-16" and kept == [("theme", "light")]


async def test_a_configuration_that_cannot_be_written_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(key: str, value: str | bool) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(PREFERENCES, "remember", refused)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        app.theme = "light"
        await settle(pilot)
        assert shows(app, "Not saved in the configuration: Permission denied.")


async def test_a_theme_brings_no_colour_where_none_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert await every_colour(make(theme="light")) <= {"default"}


@pytest.mark.parametrize("target", ["/dev/nvme0n1", None])
async def test_the_linux_console_has_square_corners(target: str | None) -> None:
    app = make(target=target, charset=CONSOLE)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        if target:
            await pilot.press("T")
            await settle(pilot)
        seen = screen_text(app)
        assert not set("╭╮╰╯") & set(seen) and "┌" in seen
