"""One widget paints the whole screen: only changed cells are sent."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from rich.console import Console
from rich.style import Style
from textual.app import App

from iopstui.ui.draw import canvas as drawn
from iopstui.ui.draw.canvas import CanvasScreen, Lines
from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.rows import Row
from tests.ui.test_app import WIDE, make, running, settle

pytestmark = pytest.mark.paints

SENT = re.compile(r"\x1b\[(\d+);(\d+)H([^\x1b]*)")
RED = Style(color="red")


class Terminal:
    """A terminal that shows what it receives, without styles."""

    def __init__(self, screen: CanvasScreen) -> None:
        self._screen = screen
        self._console = Console(color_system=None)
        self.cells = [list(row) for row in self.whole()]
        self.sent: list[tuple[int, int, str]] = []

    def whole(self) -> list[str]:
        """The picture as Textual composes it."""
        compositor = self._screen._compositor
        return [strip.text for strip in compositor.render_strips()]

    def take(self, update: Any) -> None:
        """Receive an update."""
        plain = re.sub(r"\x1b\[[\d;]*m", "", update.render_segments(self._console))
        for row, column, text in SENT.findall(plain):
            y, x = int(row) - 1, int(column) - 1
            self.sent.append((y, x, text))
            self.cells[y][x : x + len(text)] = text

    def shows(self) -> list[str]:
        """The rows that the terminal shows."""
        return ["".join(row) for row in self.cells]


class Two(App[None]):
    """Two regions side by side, with empty rows between and below."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = Lines("left"), Lines("right")

    def on_mount(self) -> None:
        screen = CanvasScreen()
        screen.canvas.add([self.left, self.right])
        self.push_screen(screen)


def row(*texts: str) -> Row:
    return tuple((text, None) for text in texts)


async def test_only_the_cells_that_changed_are_sent(monkeypatch: Any) -> None:
    app = Two()
    async with app.run_test(size=(20, 4)) as pilot:
        await pilot.pause()
        app.left.place(Box(1, 0, 6, 2))
        app.right.place(Box(10, 1, 10, 2))
        app.left.show([row("abc", "def"), row("ghijkl")])
        app.right.show([row("01", "23", "456789"), row("right row ")])
        await pilot.pause()
        assert isinstance(app.screen, CanvasScreen)
        terminal = Terminal(app.screen)
        assert terminal.whole() == [
            " abcdef             ", " ghijkl   0123456789", "          right row ", " " * 20,
        ]  # fmt: skip
        spy_on(app.screen, terminal, monkeypatch)
        assert app.right.show([row("01", "xy", "456789"), row("right row ")]) == 1
        app.left.show([row("abc", "def"), row("ghijkL")])
        await pilot.pause()
        assert sorted(terminal.sent) == [(1, 1, "ghijkL"), (1, 12, "xy")]
        assert terminal.shows() == terminal.whole()


def spy_on(screen: CanvasScreen, terminal: Terminal, monkeypatch: Any) -> None:
    compositor = screen._compositor
    render = compositor.render_partial_update

    def spy() -> Any:
        update = render()
        if update is not None:
            assert isinstance(update, drawn._CanvasUpdate)
            terminal.take(update)
        return update

    monkeypatch.setattr(compositor, "render_partial_update", spy)


async def test_a_hidden_region_is_blanked_and_a_new_one_is_shown() -> None:
    app = Two()
    async with app.run_test(size=(10, 2)) as pilot:
        await pilot.pause()
        app.left.place(Box(0, 0, 4, 2))
        app.left.show([row("left"), row("left")])
        await pilot.pause()
        app.left.place(NO_BOX)
        third = Lines()
        assert isinstance(app.screen, CanvasScreen)
        app.screen.canvas.add([third])
        third.place(Box(2, 1, 5, 1))
        third.show([(("th", None), ("ird", RED))])
        await pilot.pause()
        assert Terminal(app.screen).whole() == [" " * 10, "  third   "]


async def test_partial_updates_add_up_to_the_screen(monkeypatch: Any) -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot, 5)
        assert isinstance(app.screen, CanvasScreen)
        terminal = Terminal(app.screen)
        spy_on(app.screen, terminal, monkeypatch)
        for _ in range(8):
            await asyncio.to_thread(fake.tick, 1)
            await settle(pilot)
        assert len(terminal.sent) > 8 * 10
        assert terminal.shows() == terminal.whole()
