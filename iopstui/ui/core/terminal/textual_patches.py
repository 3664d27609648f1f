"""Fixes for bugs in Textual (seen in 8.2.8).

tests/ui/test_textual_bugs.py shows each bug, and fails once Textual has fixed it.

* ``Widget.get_visual_style``, which lists use for drawing, knows every text style of CSS except
  ``reverse``, and with a terminal's own colours nothing else marks the row under the cursor. The
  command palette makes its own list, so the fix applies to all lists.
* ``StylesCache.get_inner_outer`` keeps the caches of 1024 widgets in a cache for the whole process,
  with everything that they have drawn: some hundred KiB for each screen that was opened.
* In a terminal too small for a single line, ``OptionList._move_page`` looks up a line that does not
  exist, and ``Content`` wraps words to a width of 0 cells."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

from textual._styles_cache import StylesCache
from textual.color import Color
from textual.content import Content
from textual.css.scalar import Scalar
from textual.geometry import Region
from textual.style import Style
from textual.widget import Widget
from textual.widgets import OptionList

_move_page = OptionList._move_page
_wrapped = Content._wrap_and_format
_cached_backgrounds = StylesCache.get_inner_outer


def apply_patches() -> None:
    """Apply the fixes; calling it again changes nothing."""
    OptionList.get_visual_style = _visual_style  # type: ignore[assignment, method-assign]
    StylesCache.get_inner_outer = _inner_outer  # type: ignore[assignment, method-assign]
    OptionList._move_page = _page_if_any  # type: ignore[method-assign]
    Content._wrap_and_format = _wrap_at_least_one  # type: ignore[method-assign]


def _visual_style(self: OptionList, *classes: str, partial: bool = False) -> Style:
    style = Widget.get_visual_style(self, *classes, partial=partial)
    parts = [self.get_component_styles(name).text_style for name in classes]
    return replace(style, reverse=True) if any(part.reverse for part in parts) else style


def _page_if_any(self: OptionList, direction: Literal[-1, 1]) -> None:
    if self._lines:
        _move_page(self, direction)


def _wrap_at_least_one(self: Content, width: int, *arguments: Any, **options: Any) -> Any:
    return _wrapped(self, max(width, 1), *arguments, **options)


def _inner_outer(self: StylesCache, base: Color, background: Color) -> tuple[Style, Style]:
    return _backgrounds(base, background)


@lru_cache(256)
def _backgrounds(base: Color, background: Color) -> tuple[Style, Style]:
    return Style(background=base + background), Style(background=base)


def clear_geometry_caches() -> None:
    """Clear Textual's caches of widget positions, which include closed screens: after an hour of
    opening pages they held some megabytes."""
    for kind in (Region, Scalar):
        for name in vars(kind):
            clear = getattr(getattr(kind, name), "cache_clear", None)
            if clear is not None:
                clear()
