"""Characters that show how much, without colour: bars for cells side by side, shades for areas."""

from __future__ import annotations

from rich.style import Style

from iopstui.ui.style import DIM, Charset

_BARS = {"utf8": "▁▂▃▄▅▆▇█", "console": "░▒▓█", "ascii": "-=+*%#"}
_SHADES = {"utf8": "·░▒▓█", "console": "·░▒▓█", "ascii": ".:+%#"}

HEAT: tuple[Style, ...] = (
    Style(color="blue"),
    Style(color="cyan"),
    Style(color="green"),
    Style(color="yellow"),
    Style(color="red", bold=True),
)
"""One for each shade; the character says the same."""


def bars(charset: Charset) -> str:
    """From a little to full; nothing at all is shown as a dot."""
    return _BARS[charset.name]


def shades(charset: Charset) -> str:
    """As many as ``HEAT`` has."""
    return _SHADES[charset.name]


def cell(level: int | None, charset: Charset) -> tuple[str, Style | None]:
    """One cell of a grid: ``level`` 0 is nothing, ``None`` not measured."""
    if level is None:
        return "?", DIM
    if level == 0:
        return charset.text("·"), DIM
    steps = bars(charset)
    heat = HEAT[min(len(HEAT) - 1, (level - 1) * len(HEAT) // len(steps))]
    return steps[level - 1], heat
