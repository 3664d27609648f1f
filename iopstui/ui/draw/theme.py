"""Themes: the colours of each role (style.py), and of Textual's own widgets.

``dark``, ``light`` and ``colourblind`` have their own colours if the terminal shows 256 or more;
else they choose among the sixteen colours. ``terminal`` always uses the terminal's sixteen colours
and its background. Textual's own themes work, too; the colours of the roles are derived from
theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from rich.color import ColorSystem, ColorType
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES, Theme

from iopstui.ui.draw.style import ROLE

DARK, LIGHT, COLOURBLIND, TERMINAL = "dark", "light", "colourblind", "terminal"
AUTO = ""
"""Means ``dark``, or ``terminal`` if there are only sixteen colours."""
CONTRAST = 4.5
"""The least contrast of text to its background (WCAG AA)."""

VARIABLES = {
    "muted": "muted", "strong": "strong", "key": "key", "fio": "fio", "device": "device",
    "mark": "mark", "good": "good", "warning": "warning", "critical": "critical",
    "p50": "p50", "p99": "p99", "p999": "p999", "cursor": "cursor", "border": "panel-border",
    "focus": "panel-border-focus", "heat-1": "heat-1", "heat-2": "heat-2", "heat-3": "heat-3",
    "heat-4": "heat-4", "heat-5": "heat-5",
}  # fmt: skip
"""The CSS variable of each role."""
NOT_TEXT = frozenset({"border", "heat-1", "heat-2", "heat-3", "heat-4", "heat-5"})
"""Roles of lines and areas, which need less contrast than text."""


def _designed_theme(
    name: str, dark: bool, selected: str, colours: Mapping[str, str], roles: Mapping[str, str]
) -> Theme:
    """Make a theme. ``selected`` is the background of the row under the cursor; each role must be
    readable on it."""
    # set each of Textual's variables to a role's colour: the ones that Textual would derive may be
    # too faint
    own_variables = {VARIABLES[role]: colour for role, colour in roles.items()} | {
        "text": colours["foreground"], "text-muted": roles["muted"],
        "text-disabled": roles["muted"], "foreground-muted": roles["muted"],
        "text-primary": colours["primary"], "text-secondary": colours["secondary"],
        "text-accent": colours["accent"], "text-warning": roles["warning"],
        "text-error": roles["critical"], "text-success": roles["good"],
        "border": roles["focus"], "border-blurred": roles["border"],
        "block-cursor-foreground": colours["background"],
        "block-cursor-background": colours["accent"],
        "block-cursor-blurred-foreground": roles["strong"],
        "block-cursor-blurred-background": selected,
        "block-hover-background": selected,
        "input-cursor-background": roles["strong"],
        "input-cursor-foreground": colours["background"],
        "input-selection-background": selected,
        "footer-key-foreground": roles["key"], "footer-background": colours["surface"],
        "footer-description-foreground": colours["foreground"],
        "scrollbar": roles["border"], "scrollbar-hover": roles["muted"],
        "scrollbar-active": colours["accent"], "scrollbar-background": colours["surface"],
        "scrollbar-background-hover": colours["surface"],
        "scrollbar-background-active": colours["surface"],
        "scrollbar-corner-color": colours["surface"],
        "button-color-foreground": colours["background"],
    }  # fmt: skip
    return Theme(
        name=name, dark=dark, warning=roles["warning"], error=roles["critical"],
        success=roles["good"], variables=own_variables, **colours,  # type: ignore[arg-type]
    )  # fmt: skip


OWN_THEMES: dict[str, Theme] = {
    DARK: _designed_theme(
        DARK, True, "#1e2d4b",
        {"background": "#10141b", "surface": "#171d26", "panel": "#1f2733",
         "foreground": "#c5cedb", "primary": "#55c2ee", "secondary": "#86d18a",
         "accent": "#8fb1ff"},
        {"muted": "#8b98ab", "strong": "#f3f6fa", "key": "#8fb1ff", "fio": "#55c2ee",
         "device": "#86d18a", "mark": "#bda4ff", "good": "#7ddc93", "warning": "#f4bd50",
         "critical": "#ff7b76", "p50": "#55c2ee", "p99": "#f4c95d", "p999": "#ec8fd6",
         "cursor": "#ffffff", "border": "#3a4658", "focus": "#8fb1ff",
         "heat-1": "#4467a1", "heat-2": "#368ea5", "heat-3": "#46ad90", "heat-4": "#90ce66",
         "heat-5": "#f2ea7a"},
    ),
    LIGHT: _designed_theme(
        LIGHT, False, "#d5e0f5",
        {"background": "#fbfbfa", "surface": "#f1f2f3", "panel": "#e6e9ec",
         "foreground": "#242a31", "primary": "#075d94", "secondary": "#1c6b30",
         "accent": "#2b50c4"},
        {"muted": "#59626e", "strong": "#06090d", "key": "#2b50c4", "fio": "#075d94",
         "device": "#1c6b30", "mark": "#5b2ca6", "good": "#1c6b30", "warning": "#835000",
         "critical": "#b01722", "p50": "#075d94", "p99": "#835000", "p999": "#94207f",
         "cursor": "#06090d", "border": "#b9c0c9", "focus": "#2b50c4",
         "heat-1": "#6495c9", "heat-2": "#3d7dba", "heat-3": "#23639f", "heat-4": "#144881",
         "heat-5": "#0a2f5e"},
    ),
    # blue against orange, with different brightness: safe for all common kinds of colour blindness
    COLOURBLIND: _designed_theme(
        COLOURBLIND, True, "#1e2d4b",
        {"background": "#10131a", "surface": "#171c25", "panel": "#202732",
         "foreground": "#c9d1dc", "primary": "#5cb8f2", "secondary": "#e8a33d",
         "accent": "#a9c4ff"},
        {"muted": "#8d99aa", "strong": "#f5f7fa", "key": "#a9c4ff", "fio": "#5cb8f2",
         "device": "#e8a33d", "mark": "#d9dee6", "good": "#5cb8f2", "warning": "#f2e14c",
         "critical": "#ff9a5c", "p50": "#5cb8f2", "p99": "#f2e14c", "p999": "#e3a5cb",
         "cursor": "#ffffff", "border": "#3b4758", "focus": "#a9c4ff",
         "heat-1": "#5068a6", "heat-2": "#6e7cab", "heat-3": "#9396ab", "heat-4": "#c0b581",
         "heat-5": "#fbe45b"},
    ),
}  # fmt: skip

_PLAIN_ROLES = {
    "muted": "ansi_default", "strong": "ansi_default", "key": "ansi_cyan", "fio": "ansi_cyan",
    "device": "ansi_green", "mark": "ansi_magenta", "good": "ansi_green",
    "critical": "ansi_red", "p50": "ansi_cyan", "p99": "ansi_yellow", "p999": "ansi_magenta",
    "cursor": "ansi_yellow", "panel-border": "ansi_bright_black", "panel-border-focus": "ansi_cyan",
    "heat-1": "ansi_blue", "heat-2": "ansi_cyan", "heat-3": "ansi_green",
    "heat-4": "ansi_bright_green", "heat-5": "ansi_bright_yellow",
    "text-muted": "ansi_default", "text-disabled": "ansi_default",
    # links look like plain text: dim blue was hard to read
    "link-color": "ansi_default", "link-color-hover": "ansi_default",
    "surface": "ansi_default", "panel": "ansi_default", "boost": "ansi_default",
    "border": "ansi_cyan", "border-blurred": "ansi_bright_black",
    "block-cursor-foreground": "ansi_default", "block-cursor-background": "ansi_default",
    "block-cursor-text-style": "bold reverse",
    "block-cursor-blurred-text-style": "reverse",
    "input-cursor-text-style": "reverse", "input-cursor-background": "ansi_default",
    "input-cursor-foreground": "ansi_default", "footer-key-foreground": "ansi_cyan",
    "scrollbar": "ansi_white", "scrollbar-hover": "ansi_white", "scrollbar-active": "ansi_white",
    "scrollbar-background": "ansi_default", "scrollbar-background-hover": "ansi_default",
    "scrollbar-background-active": "ansi_default",
}  # fmt: skip


_ON_WHITE = {
    "ansi_cyan": "ansi_blue", "ansi_green": "ansi_magenta", "ansi_yellow": "ansi_red",
    "ansi_magenta": "ansi_default", "ansi_white": "ansi_bright_black",
    "ansi_bright_green": "ansi_default", "ansi_bright_yellow": "ansi_default",
}  # fmt: skip


def _sixteen_colour_theme(name: str, base: str) -> Theme:
    parent = BUILTIN_THEMES[base]
    roles = _PLAIN_ROLES
    if not parent.dark:
        roles = {name: _ON_WHITE.get(colour, colour) for name, colour in roles.items()}
    return Theme(
        name, primary=parent.primary, secondary=parent.secondary, warning=parent.warning,
        error=parent.error, success=parent.success, accent=parent.accent, foreground="ansi_default",
        background="ansi_default", surface="ansi_default", panel="ansi_default",
        boost="ansi_default", dark=parent.dark, ansi=True, variables=parent.variables | roles,
    )  # fmt: skip


TERMINAL_THEMES: dict[str, Theme] = {
    TERMINAL: _sixteen_colour_theme(TERMINAL, "ansi-dark"),
    LIGHT: _sixteen_colour_theme(f"{LIGHT}-16", "ansi-light"),
    COLOURBLIND: _sixteen_colour_theme(f"{COLOURBLIND}-16", "ansi-dark"),
}
NAMES = (DARK, LIGHT, COLOURBLIND, TERMINAL)
"""The values of --theme, besides Textual's own themes."""


def _parse_styles(colours: Mapping[str, str]) -> dict[str, Style]:
    styles = {}
    for role, definition in colours.items():
        styles[role] = Style.parse(definition)
    return styles


_PALETTE_OF_16: dict[str, dict[str, Style]] = {
    # on white, only blue, red, magenta and grey are readable in every terminal's palette
    f"{LIGHT}-16": _parse_styles({
        "key": "blue", "fio": "blue", "p50": "blue", "focus": "blue", "device": "magenta",
        "good": "magenta", "warning": "red", "p99": "red", "critical": "red underline",
        "cursor": "red", "mark": "default", "p999": "default", "heat-1": "bright_black",
        "heat-2": "blue", "heat-3": "magenta", "heat-4": "default", "heat-5": "default",
    }),
    f"{COLOURBLIND}-16": _parse_styles({
        "key": "bright_blue", "fio": "bright_blue", "p50": "bright_blue", "focus": "bright_blue",
        "device": "cyan", "good": "cyan", "mark": "white", "p999": "white",
        "critical": "bright_white underline", "heat-2": "bright_blue", "heat-3": "cyan",
        "heat-4": "white",
    }),
}  # fmt: skip


class Colours(LineFilter):
    """Applies the colours of the roles to rows on their way to the terminal."""

    def __init__(self, palette: Mapping[str, Style]) -> None:
        super().__init__()
        self._palette = palette
        self._of = lru_cache(512)(self._coloured)

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """A text in the colours of the theme. Blanks are never underlined."""
        coloured: list[Segment] = []
        for segment in segments:
            text, style, control = segment
            if style is None:
                coloured.append(segment)
                continue
            replacement = self._of(style)
            if replacement.underline and " " in text:
                blanks = replacement + Style(underline=False)
                parts = (part for part in _BLANKS.split(text) if part)
                coloured += [
                    Segment(part, blanks if part.isspace() else replacement) for part in parts
                ]
            else:
                coloured.append(Segment(text, replacement, control))
        return coloured

    def _coloured(self, style: Style) -> Style:
        role = style.meta.get(ROLE, "") if style._meta is not None else _role_of(style)
        instead = self._palette.get(role)
        return style if instead is None else style + instead


_ROLES_OF_16 = {1: "critical", 2: "good", 3: "warning", 4: "heat-2", 5: "mark", 6: "key",
                8: "muted", 10: "good", 11: "warning", 14: "key"}  # fmt: skip


def _role_of(style: Style) -> str:
    """The role that a style's colour, one of the sixteen, stands for, if the style names no
    role."""
    color = style.color
    if color is not None and color.type is ColorType.STANDARD:
        return _ROLES_OF_16.get(color.number or 0, "")
    return "muted" if style.dim and (color is None or color.is_default) else ""


_BLANKS = re.compile("( +)")


def _readable(colour: Color, background: Color, foreground: Color) -> Color:
    """``colour``, blended with the foreground until it is readable on the background."""
    for step in range(11):
        blended = colour.blend(foreground, step / 10, alpha=1)
        if contrast(blended, background) >= CONTRAST:
            return blended
    return foreground


def contrast(first: Color, second: Color) -> float:
    """The contrast ratio of two colours, from 1 to 21 (WCAG 2)."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Color) -> float:
    parts = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in colour.rgb)
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def variables_for(theme: Theme) -> dict[str, str]:
    """The CSS variables of the roles for a theme that does not define them."""
    if theme.ansi:
        return dict(_PLAIN_ROLES)
    generated = theme.to_color_system().generate()
    background, foreground = (
        Color.parse(generated["background"]),
        Color.parse(generated["foreground"]),
    )
    strong = foreground.blend(Color.parse("white" if theme.dark else "black"), 0.6, alpha=1)

    def of(name: str) -> str:
        return _readable(Color.parse(generated[name]), background, strong).hex

    ramp = [background.blend(Color.parse(generated["primary"]), share, alpha=1) for share in
            (0.35, 0.6, 0.85)]  # fmt: skip
    ramp += [ramp[-1].blend(strong, share, alpha=1) for share in (0.4, 0.85)]
    return {
        "muted": _readable(foreground.blend(background, 0.4, alpha=1), background, strong).hex,
        "strong": strong.hex, "key": of("accent"), "fio": of("primary"), "device": of("success"),
        "mark": of("secondary"), "good": of("success"), "critical": of("error"),
        "p50": of("primary"), "p99": of("warning"), "p999": of("accent"), "cursor": strong.hex,
        "panel-border": foreground.blend(background, 0.7, alpha=1).hex,
        "panel-border-focus": of("accent"),
    } | {f"heat-{step}": colour.hex for step, colour in enumerate(ramp, 1)}  # fmt: skip


def _palette(app: App[int]) -> Mapping[str, Style]:
    theme = app.current_theme
    if theme.ansi:
        return _PALETTE_OF_16.get(theme.name, {})
    variables = app.get_css_variables()
    palette = {}
    for role, name in VARIABLES.items():
        try:
            colour = Color.parse(variables[name])
        except ColorParseError:
            continue
        palette[role] = Style(color=colour.rich_color, dim=False)
    return palette


def prepare_theme(app: App[int], name: str) -> None:
    """Set the theme of ``app`` before it runs. A later change would make Textual read all style
    sheets a second time before the first frame."""
    for theme in (*OWN_THEMES.values(), TERMINAL_THEMES[TERMINAL]):
        app.register_theme(theme)
    app.set_reactive(type(app).theme, _register_theme(app, name))
    theme = app.current_theme
    app.stylesheet.set_variables(app.get_css_variables())
    app.set_class(True, f"-theme-{theme.name}", update=False)
    app.set_class(theme.dark, "-dark-mode", update=False)
    app.set_class(not theme.dark, "-light-mode", update=False)
    app._refresh_truecolor_filter(app.ansi_theme)
    apply_roles(app)


def change_theme(app: App[int], name: str) -> None:
    """Switch the running ``app`` to another theme, at once."""
    app.theme = _register_theme(app, name)


def plain_name(name: str) -> str:
    """The command-line name of a theme variant that is made for sixteen colours."""
    return next((plain for plain, theme in TERMINAL_THEMES.items() if theme.name == name), name)


def theme_names(app: App[int]) -> tuple[str, ...]:
    """The themes that look different here. With few colours, Textual's own themes are left out."""
    sixteen = app.no_color or few_colours(app)
    return (
        NAMES
        if sixteen
        else (*NAMES, *sorted(name for name in BUILTIN_THEMES if "ansi" not in name))
    )


def apply_roles(app: App[int]) -> None:
    """Give the roles the theme's colours, and paint everything again."""
    app._filters[:] = [
        line_filter for line_filter in app._filters if not isinstance(line_filter, Colours)
    ]
    palette = _palette(app)
    if not app.no_color and palette:
        app._filters.insert(0, Colours(palette))
    for screen in app.screen_stack if app._running else ():
        for widget in (screen, *screen.query()):
            widget.refresh()


def _register_theme(app: App[int], name: str) -> str:
    """Register the theme for ``name`` that this terminal can show. Returns its name; AUTO if there
    is none."""
    sixteen = app.no_color or few_colours(app)
    if sixteen:
        theme = TERMINAL_THEMES.get(name, TERMINAL_THEMES[TERMINAL])
        if app.no_color:
            theme = TERMINAL_THEMES[TERMINAL]
        app.register_theme(theme)
        return theme.name
    return name if name in app.available_themes else DARK


def few_colours(app: App[int]) -> bool:
    return app.console._color_system in (None, ColorSystem.STANDARD)


def use_terminfo(app: App[int]) -> None:
    """Ask terminfo for the number of colours if TERM's name does not imply 256 colours."""
    if app.console._color_system is not ColorSystem.STANDARD:
        return
    import curses

    try:
        curses.setupterm(fd=1)
        if curses.tigetnum("colors") >= 256:
            app.console._color_system = ColorSystem.EIGHT_BIT
    except curses.error:
        pass
