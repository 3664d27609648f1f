"""Colours and characters. Sixteen colours, the terminal's own background, nothing by colour alone.

What can't be shown is replaced one character by one, so that columns stay where they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from rich.style import Style

from iopstui.format import ASCII as PLAIN_SIGNS
from iopstui.format import arrows

PLAIN: Style | None = None
DIM = Style(dim=True)
BOLD = Style(bold=True)
TITLE = Style(bold=True)
KEY = Style(bold=True, color="cyan")
FIO = Style(color="cyan", bold=True)
DEVICE = Style(color="green")
MARK = Style(color="magenta")
WARNING = Style(color="yellow", bold=True)
ERROR = Style(color="red", bold=True)
P50 = Style(color="cyan")
P99 = Style(color="yellow")
P999 = Style(color="magenta")
FINDING = Style(color="green", bold=True)
SELECTED = Style(reverse=True)
CURSOR = Style(bold=True, color="yellow")


@dataclass(frozen=True)
class Charset:
    """The characters a terminal can show.

    ``dots`` is how many samples fit into one column of a chart; ``line`` is plotext's marker
    ("braille" or a character), ``points`` the markers of the second and third line of a chart.
    """

    name: str
    line: str
    points: tuple[str, str]
    dots: int
    area: str
    mark: str
    rule: str
    full: str
    empty: str
    cursor: str
    level: str
    mean: str

    def text(self, text: str) -> str:
        """``text`` in characters that this terminal has; its length stays the same."""
        if self.name != "ascii" or text.isascii():
            return text
        # the blank behind an arrow makes room for one that is not taken for "greater than"
        text = text.replace("→ ", "->")
        return "".join(c if c.isascii() else PLAIN_SIGNS.get(c, "?") for c in text)

    def words(self, text: str) -> str:
        """The same for a sentence, whose length may change."""
        return self.text(arrows(text) if self.name == "ascii" else text)


UTF8 = Charset(
    "utf8", "braille", ("braille", "braille"), 2, "░", "│", "─", "█", "░", "┃", "╌", "⌀ "
)
CONSOLE = Charset("console", "•", ("o", "^"), 1, "░", "│", "─", "█", "░", "█", "-", "mean ")
ASCII = Charset("ascii", "*", ("o", "^"), 1, ":", "|", "-", "#", ".", "!", "-", "mean ")


def charset_for(environ: Mapping[str, str] = os.environ) -> Charset:
    """The characters of this terminal, from the locale and TERM.

    The Linux console's fonts have block characters but no braille.
    """
    locale = next((environ[k] for k in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(k)), "")
    encoding = locale.rpartition(".")[2].partition("@")[0].lower().replace("-", "")
    if locale and encoding != "utf8":
        return ASCII
    return CONSOLE if environ.get("TERM") == "linux" else UTF8
