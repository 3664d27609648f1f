"""Styles by role, and characters. Nothing is shown by colour alone.

Each style names its role; the theme (theme.py) decides which colour the role has. The colours here
are those of the ``terminal`` theme: sixteen colours, on the terminal's own background. Each
character that a terminal lacks is replaced by one other, so that columns stay aligned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from rich.style import Style

from iopstui.format import ASCII as PLAIN_SIGNS
from iopstui.format import ascii_arrows

ROLE = "role"
"""The key of a style's role in its ``meta``."""


def _role(name: str, color: str | None = None, bold: bool | None = None,
          dim: bool | None = None, reverse: bool | None = None) -> Style:  # fmt: skip
    return Style(color=color, bold=bold, dim=dim, reverse=reverse, meta={ROLE: name})


PLAIN: Style | None = None
DIM = _role("muted", dim=True)
BOLD = _role("strong", bold=True)
TITLE = BOLD
KEY = _role("key", "cyan", bold=True)
FIO = _role("fio", "cyan", bold=True)
DEVICE = _role("device", "green")
MARK = _role("mark", "magenta")
GOOD = _role("good", "green")
WARNING = _role("warning", "yellow", bold=True)
ERROR = _role("critical", "red", bold=True)
P50 = _role("p50", "cyan")
P99 = _role("p99", "yellow")
P999 = _role("p999", "magenta")
FINDING = _role("good", "green", bold=True)
SELECTED = _role("strong", reverse=True)
CURSOR = _role("cursor", "yellow", bold=True)
BORDER = _role("border", dim=True)
FOCUS = _role("focus", "cyan", bold=True)
HEAT: tuple[Style, ...] = (
    _role("heat-1", "blue"),
    _role("heat-2", "cyan"),
    _role("heat-3", "green"),
    _role("heat-4", "bright_green"),
    _role("heat-5", "bright_yellow", bold=True),
)
"""From few to many I/Os. Brightness increases with each step, and no step looks like an alarm."""

WARNING_FROM, CRITICAL_FROM = 70.0, 90.0
"""A bar is yellow from the first percentage on, and red from the second."""


def load_style(percent: float) -> Style:
    if percent >= CRITICAL_FROM:
        return ERROR
    return WARNING if percent >= WARNING_FROM else GOOD


@dataclass(frozen=True)
class Charset:
    """The characters a terminal can show.

    ``dots`` is how many samples fit into one column of a chart. ``line`` is plotext's marker
    ("braille" or a character); ``points`` are the markers of a chart's second and third line."""

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
    grid: str

    def text(self, text: str) -> str:
        """``text`` in characters that this terminal can show; its length stays the same."""
        if self.name != "ascii" or text.isascii():
            return text
        # '->' replaces the arrow with its blank: this keeps the width and is not read as "greater
        # than"
        text = text.replace("→ ", "->")
        return "".join(c if c.isascii() else PLAIN_SIGNS.get(c, "?") for c in text)

    def sentence(self, text: str) -> str:
        """A sentence in characters that this terminal can show; its length may change."""
        return self.text(ascii_arrows(text) if self.name == "ascii" else text)


UTF8 = Charset(
    "utf8", "braille", ("braille", "braille"), 2, "░", "│", "─", "█", "░", "┃", "╌", "⌀ ", "┈"
)
CONSOLE = Charset("console", "•", ("o", "^"), 1, "░", "│", "─", "█", "░", "█", "-", "mean ", "·")
ASCII = Charset("ascii", "*", ("o", "^"), 1, ":", "|", "-", "#", ".", "!", "-", "mean ", ".")


def charset_for(environ: Mapping[str, str] = os.environ) -> Charset:
    """The character set of this terminal, chosen by the locale and TERM.

    The fonts of the Linux console have block characters but no braille."""
    locale = next((environ[k] for k in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(k)), "")
    encoding = locale.rpartition(".")[2].partition("@")[0].lower().replace("-", "")
    if locale and encoding != "utf8":
        return ASCII
    return CONSOLE if environ.get("TERM") == "linux" else UTF8
