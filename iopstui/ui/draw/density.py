"""Characters that show quantities without colour: bars for single cells, shades for areas."""

from __future__ import annotations

from rich.style import Style

from iopstui.ui.draw.style import HEAT as HEAT
from iopstui.ui.draw.style import WARNING, Charset

_BARS = {"utf8": "▁▂▃▄▅▆▇█", "console": "░▒▓█", "ascii": "-=+*%#"}
_SHADES = {"utf8": "·░▒▓█", "console": "·░▒▓█", "ascii": ".:+%#"}

HOT = WARNING
UNKNOWN = ("?", None)


def bars(charset: Charset) -> str:
    """The characters of a bar, from low to full. An amount of 0 is shown as a dot instead."""
    return _BARS[charset.name]


def shades(charset: Charset) -> str:
    """The characters of the shades; there are as many as ``HEAT`` has styles."""
    return _SHADES[charset.name]


def grid_cells(charset: Charset) -> list[tuple[str, Style | None]]:
    """The cells of a grid by level: level 0 is empty, the last is full. There are few styles,
    because each change of style is sent to the terminal; only the upper quarter is highlighted."""
    steps = bars(charset)
    looks: list[tuple[str, Style | None]] = [(charset.text("·"), None)]
    for level, char in enumerate(steps, 1):
        looks.append((char, HOT if level > 0.75 * len(steps) else None))
    return looks
