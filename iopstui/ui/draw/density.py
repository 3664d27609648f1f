"""Characters that show quantities without colour: bars for cells side by side, shades for areas."""

from __future__ import annotations

from rich.style import Style

from iopstui.ui.draw.style import HEAT as HEAT
from iopstui.ui.draw.style import WARNING, Charset

_BARS = {"utf8": "▁▂▃▄▅▆▇█", "console": "░▒▓█", "ascii": "-=+*%#"}
_SHADES = {"utf8": "·░▒▓█", "console": "·░▒▓█", "ascii": ".:+%#"}

HOT = WARNING
UNKNOWN = ("?", None)


def bars(charset: Charset) -> str:
    """Return the bar characters from low to full; nothing at all is shown as a dot."""
    return _BARS[charset.name]


def shades(charset: Charset) -> str:
    """Return as many shades as ``HEAT`` has."""
    return _SHADES[charset.name]


def grid_cells(charset: Charset) -> list[tuple[str, Style | None]]:
    """A grid's cell by level: 0 is nothing, the last is full. Few styles, because each change of
    style is sent to the terminal. Only the upper quarter is highlighted."""
    steps = bars(charset)
    looks: list[tuple[str, Style | None]] = [(charset.text("·"), None)]
    for level, char in enumerate(steps, 1):
        looks.append((char, HOT if level > 0.75 * len(steps) else None))
    return looks
