"""Nothing is shown by colour alone: all is visible without colours, also in lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import ui_fakes as fakes
from rich.segment import Segment
from test_app import make, settle, wait_until
from textual.color import Color
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import DataTable, Input, OptionList

from iopstui.features.lessons.play.library import LessonOffer, shipped_lessons
from iopstui.features.lessons.screen.list import LessonList
from iopstui.features.lessons.screen_part import OPENS
from iopstui.safety.tunables import TunableState
from iopstui.ui.draw.theme import CONTRAST, OWN_THEMES, contrast

WIDE = (120, 36)
KNOBS = (
    TunableState("rq_affinity", "where completions run", "1", ("0", "1", "2"), "0, 1 or 2"),
    TunableState("nr_requests", "requests", "256", (), "a number"),
)


def drawn(widget: Widget) -> Iterator[list[Segment]]:
    """The rows of a widget as they go to the terminal, filters included."""
    for strip in widget.render_lines(widget.size.region):
        yield list(strip)


def colours(pilot: Pilot[int]) -> set[str]:
    """All colours on the screen."""
    names = set()
    for widget in pilot.app.screen.walk_children(Widget):
        if widget.is_on_screen:
            for row in drawn(widget):
                styles = [segment.style for segment in row if segment.style is not None]
                names |= {str(s.color.name) for s in styles if s.color is not None}
                names |= {str(s.bgcolor.name) for s in styles if s.bgcolor is not None}
    return names


async def test_the_picker_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = make(target=None)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert colours(pilot) <= {"default"}
        assert highlighted_texts(app.screen.query_one(DataTable)) == ["nvme0n1"]


def highlighted_texts(widget: Widget) -> list[str]:
    """Texts shown reversed or on the cursor's background (at least partly)."""
    names = ("block-cursor-background", "block-cursor-blurred-background")
    cursors = [Color.parse(widget.app.theme_variables[name]) for name in names]
    cursor_colours = [colour.rich_color for colour in cursors if colour.ansi is None]
    selected = []
    for row in drawn(widget):
        highlighted = "".join(
            s.text
            for s in row
            if s.style is not None and (s.style.reverse or s.style.bgcolor in cursor_colours)
        )
        if highlighted.strip():
            selected.append(highlighted.split("  ")[0].strip())
    return selected


@pytest.mark.parametrize("no_color", [False, True])
async def test_the_cursor_of_every_list_is_visible(
    no_color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    app = make(fakes.FakeController(settings=KNOBS))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for key, first, second in (
            ("j", "mixed-4k", "randread-4k"), ("k", "rq_affinity", "nr_requests"),
            ("b", "4k", "8k"),
        ):  # fmt: skip
            await pilot.press(key)
            await settle(pilot)
            assert highlighted_texts(app.screen.query_one(OptionList)) == [first], key
            await pilot.press("down")
            await settle(pilot)
            assert highlighted_texts(app.screen.query_one(OptionList)) == [second], key
            await pilot.press("escape")
            await settle(pilot)


@pytest.mark.parametrize("theme", OWN_THEMES)
async def test_text_under_the_cursor_of_a_list_is_readable(theme: str) -> None:
    app = make(fakes.FakeController(settings=KNOBS), theme=theme)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("k")
        await settle(pilot)
        [row] = [row for row in drawn(app.screen.query_one(OptionList))
                 if "rq_affinity" in "".join(segment.text for segment in row)]  # fmt: skip
        for text, style, _ in row:
            if text.strip() and style is not None and style.color and style.bgcolor:
                pair = (Color.from_rich_color(one) for one in (style.color, style.bgcolor))
                assert contrast(*pair) >= CONTRAST, text


@pytest.mark.parametrize("theme", OWN_THEMES)
async def test_all_text_of_the_palette_is_readable(theme: str) -> None:
    app = make(theme=theme)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await wait_until(pilot, lambda: app.screen.query_one(OptionList).option_count > 5)
        await settle(pilot)
        seen = set()
        for strip in app.screen._compositor.render_strips():
            for text, style, _ in strip:
                if any(map(str.isalnum, text)) and style and style.color and style.bgcolor:
                    pair = [Color.from_rich_color(one) for one in (style.color, style.bgcolor)]
                    assert contrast(*pair) >= CONTRAST, text
                    seen.add(tuple(pair))
        assert len(seen) > 3, "names, explanations, the row under the cursor"


async def test_the_cursor_of_the_lessons_and_the_palette() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        offers = [LessonOffer(lesson, {}) for lesson in shipped_lessons()[:2]]
        app.push_screen(LessonList(offers, "here", None, {}, app.charset, OPENS))
        await settle(pilot)
        before = highlighted_texts(app.screen.query_one(OptionList))
        await pilot.press("down")
        await settle(pilot)
        after = highlighted_texts(app.screen.query_one(OptionList))
        assert len(before) == len(after) == 1 and before != after
        await pilot.press("escape", "ctrl+p")
        await settle(pilot)
        await pilot.press(*"mark", "down")
        await settle(pilot)
        assert highlighted_texts(app.screen.query_one(OptionList))
        assert app.screen.query_one(Input).value == "mark"
