"""The bugs of Textual that core/mends.py works around. Where one of these tests fails, Textual has
fixed its bug, and the workaround can go."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList

from iopstui.ui.core import mends


class Lists(App[None]):
    CSS = "OptionList > .option-list--option-highlighted { text-style: reverse; }"

    def compose(self) -> ComposeResult:
        yield OptionList("one", "two")


async def test_a_list_does_not_know_the_text_style_reverse() -> None:
    app = Lists()
    async with app.run_test():
        found = app.query_one(OptionList)
        name = "option-list--option-highlighted"
        assert found.get_component_styles(name).text_style.reverse
        assert not Widget.get_visual_style(found, name).reverse


async def test_a_list_without_room_for_a_line_fails_on_page_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Lists()
    async with app.run_test():
        found = app.query_one(OptionList)
        found.highlighted = 0
        with monkeypatch.context() as patch:
            patch.setattr(OptionList, "_lines", property(lambda self: []))
            with pytest.raises(IndexError):
                mends._move_page(found, 1)


def test_words_of_no_width_never_end_or_fail() -> None:
    with pytest.raises(ValueError):
        mends._wrapped(Content("word"), 0)


def test_a_cache_for_the_whole_process_keeps_what_widgets_have_drawn() -> None:
    # a cache of a method holds every object that it was called on
    assert hasattr(mends._cached_backgrounds, "cache_info")
