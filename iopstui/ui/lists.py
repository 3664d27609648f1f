"""The row under the cursor of a list, where it can be seen: in reverse, as tables show theirs.

``Widget.get_visual_style``, which lists draw with, knows every text style of CSS but ``reverse``
(seen in Textual 8.2.8), and a terminal's own colours leave nothing else to tell the row by. The
palette makes its list itself, so the mend is for all lists.
"""

from __future__ import annotations

from dataclasses import replace

from textual.style import Style
from textual.widget import Widget
from textual.widgets import OptionList


def show_cursors() -> None:
    """From now on; more than once is as good as once."""
    OptionList.get_visual_style = _visual_style  # type: ignore[assignment, method-assign]


def _visual_style(self: OptionList, *classes: str, partial: bool = False) -> Style:
    style = Widget.get_visual_style(self, *classes, partial=partial)
    parts = [self.get_component_styles(name).text_style for name in classes]
    return replace(style, reverse=True) if any(part.reverse for part in parts) else style
