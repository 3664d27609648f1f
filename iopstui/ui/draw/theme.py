"""Themes: which colours a screen that was drawn for a dark background has on other ones.

Whatever draws names one of the terminal's sixteen colours (style.py); a theme puts others in their
place when a row goes to the terminal, so nothing that is drawn has to know it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rich.color import Color, ColorType
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color as TextualColor
from textual.filter import LineFilter


@dataclass(frozen=True)
class Theme:
    """``base`` is Textual's theme: cursors and selections. ``instead`` has what stands for a
    colour, ``marked`` the colours that are underlined as well: else they would look alike."""

    base: str
    instead: Mapping[str, str] = field(default_factory=dict)
    marked: frozenset[str] = frozenset()


THEMES: dict[str, Theme] = {
    "dark": Theme("ansi-dark"),
    # Blue, red, magenta and the grey are all that reads on white in every terminal's palette.
    "light": Theme(
        "ansi-light",
        {
            "blue": "bright_black", "cyan": "blue", "green": "magenta", "yellow": "red",
            "magenta": "default", "white": "bright_black",
        },
        frozenset({"red"}),
    ),
    # By blue against yellow and by brightness; heat (density.py) grows brighter from step to step.
    "colourblind": Theme(
        "ansi-dark",
        {"cyan": "bright_blue", "green": "cyan", "magenta": "white", "red": "bright_white"},
        frozenset({"red"}),
    ),
}  # fmt: skip
"""By the name that --theme takes."""


class Colours(LineFilter):
    """Gives rows the colours of ``theme`` on their way to the terminal."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._of = lru_cache(256)(_Changed(theme))

    def apply(self, segments: list[Segment], background: TextualColor) -> list[Segment]:
        """The same text in other colours. Blanks, which whatever draws gives any colour, are never
        underlined."""
        found: list[Segment] = []
        for segment in segments:
            text, style, control = segment
            if style is None:
                found.append(segment)
                continue
            words, blanks = self._of(style)
            if words is blanks or " " not in text:
                found.append(Segment(text, words, control))
                continue
            parts = (part for part in _WORDS.split(text) if part)
            found += [Segment(part, blanks if part.isspace() else words) for part in parts]
        return found


_WORDS = re.compile("( +)")


class _Changed:
    """What a theme makes of a style: for words, and for the blanks between them."""

    def __init__(self, theme: Theme) -> None:
        numbered = {Color.parse(name).number: other for name, other in theme.instead.items()}
        self._instead = {number: Color.parse(other) for number, other in numbered.items()}
        self._marked = {Color.parse(name).number for name in theme.marked}

    def __call__(self, style: Style) -> tuple[Style, Style]:
        marked = _number(style.color) in self._marked
        front, back = self._other(style.color), self._other(style.bgcolor)
        if not marked and front is style.color and back is style.bgcolor:
            return style, style
        other = style + Style.from_color(front, back)
        return (other + Style(underline=True) if marked else other), other

    def _other(self, color: Color | None) -> Color | None:
        return self._instead.get(_number(color), color)


def _number(color: Color | None) -> int | None:
    """Which of the sixteen it is; None: another one, or the terminal's own."""
    if color is None or color.type is not ColorType.STANDARD:
        return None
    return color.number


def begin_with(app: App[int], name: str) -> None:
    """Have ``app``, which is not running yet, begin in the colours of a theme. Changed later, all
    style sheets would be read a second time before the first frame."""
    app.set_reactive(type(app).theme, THEMES[name].base)
    theme = app.current_theme
    app.stylesheet.set_variables(app.get_css_variables())
    app.set_class(True, f"-theme-{theme.name}", update=False)
    app.set_class(theme.dark, "-dark-mode", update=False)
    app.set_class(not theme.dark, "-light-mode", update=False)


def wear(app: App[int], name: str) -> None:
    """Show ``app`` in the colours of a theme, at once. Without colours (NO_COLOR) only Textual's
    own part of it changes."""
    theme = THEMES[name]
    app.theme = theme.base
    app._filters[:] = [one for one in app._filters if not isinstance(one, Colours)]
    if not app.no_color and theme.instead:
        app._filters.append(Colours(theme))
    for screen in app.screen_stack:
        for widget in (screen, *screen.query()):
            widget.refresh()
