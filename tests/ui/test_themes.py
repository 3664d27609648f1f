"""Themes: every text is readable, roles differ, and the choice is saved."""

from __future__ import annotations

from itertools import pairwise

import pytest
import ui_fakes as fakes
from rich.segment import Segment
from rich.style import Style
from test_app import do, make, running, screen_text, settle, shows
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
"""Colours that are unreadable on white in some common palette (xterm, VGA, Tango)."""


def role_colours(of: Theme) -> dict[str, Color]:
    return {role: Color.parse(of.variables[name]) for role, name in VARIABLES.items()
            if name in of.variables}  # fmt: skip


def in_256(colour: Color) -> Color:
    """The colour as a terminal of 256 colours shows it."""
    from rich.color import ColorSystem

    return Color.from_rich_color(colour.rich_color.downgrade(ColorSystem.EIGHT_BIT))


def test_the_command_line_accepts_every_theme() -> None:
    assert tuple(NAMES) == theme.NAMES and set(OWN_THEMES) < set(NAMES)
    assert set(MORE_THEMES) == set(BUILTIN_THEMES)


@pytest.mark.parametrize("name", OWN_THEMES)
@pytest.mark.parametrize("in_256_colours", [False, True])
def test_every_text_is_readable_on_every_background(name: str, in_256_colours: bool) -> None:
    of = OWN_THEMES[name]
    texts = role_colours(of) | {"foreground": Color.parse(of.foreground)}
    for role, colour in texts.items():
        selected = of.variables["block-cursor-blurred-background"]
        for background in (of.background, of.surface, of.panel, selected):
            assert background is not None
            pair = (colour, Color.parse(background))
            if in_256_colours:
                pair = (in_256(pair[0]), in_256(pair[1]))
            if role not in NOT_TEXT:
                # the steps of 256 colours are too coarse for the row under the cursor
                least = 4.0 if in_256_colours and background == selected else CONTRAST
                assert contrast(*pair) >= least, (role, background)


@pytest.mark.parametrize("name", OWN_THEMES)
def test_textual_s_widgets_are_readable(name: str) -> None:
    of = OWN_THEMES[name]
    variables = of.to_color_system().generate() | of.variables
    for front, back in (
        ("text", "background"), ("text-muted", "panel"), ("text-error", "panel"),
        ("text-warning", "panel"), ("text-success", "panel"), ("text-accent", "surface"),
        ("block-cursor-foreground", "block-cursor-background"),
        ("block-cursor-blurred-foreground", "block-cursor-blurred-background"),
        ("input-cursor-foreground", "input-cursor-background"),
        ("footer-key-foreground", "footer-background"),
        ("foreground", "input-selection-background"),
    ):  # fmt: skip
        assert contrast(Color.parse(variables[front]), Color.parse(variables[back])) >= CONTRAST, (
            front
        )


@pytest.mark.parametrize("name", [name for name, of in BUILTIN_THEMES.items() if not of.ansi])
def test_the_roles_of_textual_s_own_themes_are_readable(name: str) -> None:
    of = BUILTIN_THEMES[name]
    background = Color.parse(of.to_color_system().generate()["background"])
    variables = theme.variables_for(of)
    for role, variable in VARIABLES.items():
        if role not in NOT_TEXT and variable in variables:
            assert contrast(Color.parse(variables[variable]), background) >= CONTRAST, role


@pytest.mark.parametrize("name", OWN_THEMES)
def test_related_roles_have_different_colours(name: str) -> None:
    by_role = role_colours(OWN_THEMES[name]) | {"warning": Color.parse(OWN_THEMES[name].warning)}
    for group in APART:
        assert len({by_role[role].hex for role in group}) == len(group)


@pytest.mark.parametrize("name", OWN_THEMES)
def test_each_heat_step_has_more_contrast(name: str) -> None:
    by_role, background = role_colours(OWN_THEMES[name]), Color.parse(OWN_THEMES[name].background)
    steps = [contrast(by_role[f"heat-{step}"], background) for step in range(1, 6)]
    assert steps == sorted(steps) and steps[0] >= 3.0
    # the steps stay apart
    assert all(later >= 1.3 * step for step, later in pairwise(steps))


@pytest.mark.parametrize("name", theme._PALETTE_OF_16)
def test_related_roles_differ_in_sixteen_colours_too(name: str) -> None:
    colour = Colours(theme._PALETTE_OF_16[name])
    for group in (
        (style.P50, style.P99, style.P999), (style.WARNING, style.ERROR, style.FINDING),
        (style.FIO, style.DEVICE, style.MARK), style.HEAT,
    ):  # fmt: skip
        looks = {
            str(colour.apply([Segment("x", role_style)], BLACK)[0].style) for role_style in group
        }
        assert len(looks) == len(group)


def test_blanks_are_not_underlined() -> None:
    row = [Segment(" █  █   ", style.ERROR), Segment("▓ ", style.HEAT[0]), Segment("a", None)]
    segments = Colours(theme._PALETTE_OF_16["light-16"]).apply(row, BLACK)
    assert "".join(segment.text for segment in segments) == "".join(segment.text for segment in row)
    assert [segment.text for segment in segments if segment.style and segment.style.underline] == [
        "█",
        "█",
    ]


def test_attributes_and_other_styles_are_kept() -> None:
    palette = {"strong": Style(color="#ffffff", dim=False)}
    bold = Style(color="#123456", bold=True)
    row = [Segment("a", style.SELECTED), Segment("b", bold), Segment("c", None)]
    chosen, *others = Colours(palette).apply(row, BLACK)
    assert chosen.style is not None and chosen.style.reverse and str(chosen.style.color) != "None"
    assert others == row[1:]


async def every_colour(app: IopstuiApp) -> set[str]:
    """Colours of the dashboard and of everything that keys open over it."""
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.notice("error", "something failed")
        fake.mark("a mark")
        await pilot.press("h")
        await settle(pilot)
        names = colours(pilot)
        for key in ("j", "k", "b", "question_mark", "e", "f", "o", "colon", "ctrl+p"):
            await pilot.press(key)
            await settle(pilot)
            names |= colours(pilot)
            await pilot.press("escape")
            await settle(pilot)
    return {name.removeprefix("ansi_") for name in names}


async def test_sixteen_colours_on_a_light_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv("TERM", "xterm")
    names = await every_colour(make(fakes.FakeController(settings=KNOBS), theme="light"))
    assert not names & PALE and "blue" in names


@pytest.mark.parametrize(
    ("term", "colorterm", "theme_name"),
    [
        ("linux", "", "terminal"), ("xterm", "", "terminal"), ("xterm-256color", "", "dark"),
        ("xterm", "truecolor", "dark"),
    ],
)  # fmt: skip
async def test_the_default_theme_depends_on_the_terminal(
    term: str, colorterm: str, theme_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLORTERM", colorterm)
    app = make(theme="")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert app.theme == theme_name


async def test_the_palette_changes_the_theme_at_once_and_saves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved: list[tuple[str, object]] = []
    monkeypatch.setattr(PREFERENCES, "remember", lambda key, value: saved.append((key, value)))
    app = make()
    light = OWN_THEMES["light"].variables["fio"]
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        assert not saved and light not in colours(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot)
        await pilot.press(*"theme: light", "down", "enter")
        await settle(pilot)
        assert light in colours(pilot) and shows(app, "theme: light (saved")
        assert saved == [("theme", "light")]
        app.theme = "nord"
        await settle(pilot)
        assert light not in colours(pilot) and saved[-1] == ("theme", "nord")


@pytest.mark.parametrize("end", ["escape", "enter"])
async def test_the_theme_under_the_cursor_is_previewed_and_saved_only_with_enter(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[tuple[str, object]] = []
    monkeypatch.setattr(PREFERENCES, "remember", lambda key, value: saved.append((key, value)))
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        await do(pilot, "themes")
        await settle(pilot)
        await pilot.press("down")
        await settle(pilot)
        assert app.theme == "light" and OWN_THEMES["light"].foreground in colours(pilot)
        await pilot.press("down")
        await settle(pilot)
        assert app.theme == "colourblind" and not saved
        await pilot.press(end)
        await settle(pilot)
        await settle(pilot)
        chosen = "colourblind" if end == "enter" else "dark"
        assert app.theme == chosen and app.screen is app.dashboard
        assert shows(app, "theme: colourblind (saved") == (end == "enter")
        assert saved == ([("theme", "colourblind")] if end == "enter" else [])


async def test_with_sixteen_colours_the_theme_of_the_command_line_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved: list[tuple[str, object]] = []
    monkeypatch.setattr(PREFERENCES, "remember", lambda key, value: saved.append((key, value)))
    monkeypatch.setattr(theme, "few_colours", lambda app: True)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        assert theme.theme_names(app) == theme.NAMES
        await do(pilot, "themes")
        await settle(pilot)
        await pilot.press("home", "down", "enter")
        await settle(pilot)
        assert app.theme == "light-16" and saved == [("theme", "light")]


async def test_an_unwritable_configuration_is_reported(
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


@pytest.mark.parametrize(("value", "name"), [("", "dark"), ("1", "light")])
async def test_without_colours_every_screen_uses_the_terminal_s_own(
    value: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    app = make(fakes.FakeController(settings=KNOBS), theme=name)
    assert await every_colour(app) <= {"default"}


@pytest.mark.parametrize("target", ["/dev/nvme0n1", None])
async def test_the_linux_console_has_square_corners(target: str | None) -> None:
    app = make(target=target, charset=CONSOLE)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        if target:
            await do(pilot, "themes")
            await settle(pilot)
        text = screen_text(app)
        assert not set("╭╮╰╯") & set(text) and "┌" in text
