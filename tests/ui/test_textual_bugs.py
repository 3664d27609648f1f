"""The bugs of Textual that iopstui works around, each reproduced with Textual alone. If one of
these tests fails, Textual has fixed the bug and the workaround can go. Workarounds are in
core/terminal: textual_patches.py, terminal_input.py, driver.py."""

from __future__ import annotations

import gc
import io
import threading
import weakref
from typing import ClassVar

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.app import App, ComposeResult
from textual.content import Content
from textual.drivers._writer_thread import MAX_QUEUED_WRITES, WriterThread
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, OptionList

from iopstui.ui.core.terminal import textual_patches

pytestmark = pytest.mark.paints


class Lists(App[None]):
    CSS = "OptionList > .option-list--option-highlighted { text-style: reverse; }"

    def compose(self) -> ComposeResult:
        yield OptionList("one", "two")


async def test_a_list_ignores_the_text_style_reverse() -> None:
    app = Lists()
    async with app.run_test():
        options = app.query_one(OptionList)
        name = "option-list--option-highlighted"
        assert options.get_component_styles(name).text_style.reverse
        assert not Widget.get_visual_style(options, name).reverse


async def test_a_list_without_space_for_a_line_fails_on_page_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Lists()
    async with app.run_test():
        options = app.query_one(OptionList)
        options.highlighted = 0
        with monkeypatch.context() as patch:
            patch.setattr(OptionList, "_lines", property(lambda self: []))
            with pytest.raises(IndexError):
                textual_patches._move_page(options, 1)


def test_wrapping_to_no_width_raises() -> None:
    with pytest.raises(ValueError):
        textual_patches._wrapped(Content("word"), 0)


def test_a_process_wide_cache_keeps_drawn_widgets() -> None:
    # a cache on a method keeps every object that the method was called on
    assert hasattr(textual_patches._cached_backgrounds, "cache_info")


@pytest.mark.parametrize("answer", ["\x1bP>|xterm\x1b\\", "\x1b[99Qx"])
def test_a_terminal_s_answer_is_typed_as_keys(answer: str) -> None:
    # core/terminal/terminal_input.py
    typed = [message for message in XTermParser().feed(answer) if isinstance(message, events.Key)]
    assert len(typed) > 1


def test_keys_after_an_escape_in_one_packet_are_lost() -> None:
    # core/terminal/terminal_input.py
    assert list(XTermParser().feed("\x1bjk")) == []


def test_a_key_parser_is_never_freed() -> None:
    # core/terminal/terminal_input.py
    parser = XTermParser()
    list(parser.feed("a"))
    reference = weakref.ref(parser)
    del parser
    gc.collect()
    assert reference() is not None


class Question(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        yield Input()


class Asking(App[None]):
    BINDINGS: ClassVar = [("colon", "ask", "")]

    def action_ask(self) -> None:
        self.push_screen(Question())


async def test_text_after_the_key_that_opens_a_field_does_not_reach_it() -> None:
    # core/terminal/terminal_input.py
    app = Asking()
    async with app.run_test() as pilot:
        for key, character in (("colon", ":"), ("b", "b"), ("s", "s")):
            app.post_message(events.Key(key, character))
        await pilot.pause()
        assert app.screen.query_one(Input).value == ""


def test_a_terminal_that_accepts_no_output_blocks_the_screen() -> None:
    # core/terminal/driver.py
    writer = WriterThread(io.StringIO())
    # the writer is not started, like one whose terminal accepts nothing
    for _ in range(MAX_QUEUED_WRITES):
        writer.write("x")
    blocked = threading.Thread(target=writer.write, args=("x",), daemon=True)
    blocked.start()
    assert blocked.is_alive() and writer._queue.full()
    writer._queue.get()
    blocked.join()
