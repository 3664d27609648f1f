"""Closed screens and pages are freed."""

from __future__ import annotations

import gc
from collections import Counter

import pytest
from test_app import WIDE, make, running, settle
from textual._styles_cache import StylesCache
from textual._xterm_parser import XTermParser
from textual.events import Key
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from iopstui.ui.core.terminal.terminal_input import TerminalInput

KINDS = (StylesCache, Strip, Widget, XTermParser, Key)


def count_objects() -> Counter[str]:
    gc.collect()
    objects = [o for o in gc.get_objects() if isinstance(o, KINDS)]
    return Counter(kind.__name__ for o in objects for kind in KINDS if isinstance(o, kind))


PAGES = (
    "j",
    "question_mark",
    "f",
    "o",
    "b",
    "colon",
    "u",
    "v",
    "k",
    "m",
    "ctrl+p",
)


@pytest.mark.paints
async def test_closed_screens_are_freed() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await running(app, pilot)
        counts = []
        for _ in range(3):
            for key in PAGES:
                await pilot.press(key)
                await pilot.pause()
                await pilot.press("escape")
            await settle(pilot)
            counts.append(count_objects())
        assert counts[-1] == counts[-2]


async def test_freezing_keeps_no_second_copy() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        await pilot.press("space", "space")
        assert app.dashboard is not None and app.dashboard.shown_state is app.state


async def test_keys_of_one_packet_with_escape_are_freed() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        typed = TerminalInput()
        counts = []
        for _ in range(3):
            for _ in range(2):
                # e opens a list, Escape and f close it and open the next one, all in one packet;
                # then a sequence that Textual does not know
                for message in [*typed.feed("e"), *typed.feed("\x1bf"), *typed.feed("\x1b[?9z")]:
                    app.post_message(message)
                await settle(pilot)
                await pilot.press("escape")
                await settle(pilot)
            counts.append(count_objects())
        assert counts[-1] == counts[-2]


async def test_positions_of_closed_pages_are_freed() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        for number in range(500):
            Region(number, 0, 1, 1).overlaps(Region(0, number, 2, 2))
        await pilot.press("f", "escape")
        await settle(pilot)
        fake.tick(1)
        await settle(pilot)
        assert Region.overlaps.cache_info().currsize < 400
