from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.screen import Screen
from textual.widgets import Input

from iopstui.ui import feed
from iopstui.ui.core.pace import OwnCost
from iopstui.ui.core.preferences import PREFERENCES
from iopstui.ui.draw.canvas import CanvasScreen


@pytest.fixture(autouse=True)
def _time_of_day_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same wherever the tests run."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def _terminal_with_all_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the terminal is in which the tests run."""
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(autouse=True)
def _nobody_s_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier test's screen was left with some layout, which this process remembers."""
    monkeypatch.setattr(PREFERENCES, "layout", "")
    monkeypatch.setattr(PREFERENCES, "fleet_layout", "")


@pytest.fixture(autouse=True)
def _data_of_no_age(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the figures of a picture may be a second old when it is taken."""
    if "snap_compare" in request.fixturenames:
        monkeypatch.setattr(feed, "OwnCost", lambda cpu, age_s, dropped: OwnCost(cpu, 0.0, 0))


@pytest.fixture(autouse=True)
def _the_same_machine_everywhere(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home screen names the machine that it runs on."""
    if "snap_compare" in request.fixturenames:
        words = "db1 · Linux 6.12 · 32 CPUs · root"
        monkeypatch.setattr("iopstui.ui.home.screen.machine_text", lambda: words)


@pytest.fixture(autouse=True)
def _cursors_that_stand_still(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine half a second may pass before a picture is taken."""
    if "snap_compare" in request.fixturenames:
        monkeypatch.setattr(Input, "_toggle_cursor", lambda field: None)


@pytest.fixture(scope="session", autouse=True)
def _style_sheets_are_read_once() -> Iterator[None]:
    """A program has one app, which keeps what it has made of its style sheets. Here there are
    hundreds, and each would read the same ones anew."""
    read = Stylesheet._parse_rules
    kept: dict[object, list[RuleSet]] = {}

    def once(sheet: Stylesheet, css: str, *rest: Any, **more: Any) -> list[RuleSet]:
        key = (css, rest, *more.items(), *sheet._variables.items())
        if key not in kept:
            kept[key] = read(sheet, css, *rest, **more)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", once)
        yield


def _note_as_painted(screen: Screen[object]) -> None:
    """Take what has changed as seen. A headless app shows its updates to nobody."""
    if screen is screen.app.screen:
        if isinstance(screen, CanvasScreen):
            screen.canvas.take_changes()
        screen._dirty_widgets.clear()
        screen._compositor._dirty_regions.clear()
        screen.app._update_mouse_over(screen)
    else:
        _PAINT(screen)


_PAINT = Screen._compositor_refresh


@pytest.fixture(autouse=True)
def _only_what_is_looked_at_is_painted(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Painting took half the CPU time of the tests of the screen, for updates that a headless app
    discards. Pictures are still painted whole. The mark ``paints`` is for tests of the updates."""
    if request.node.get_closest_marker("paints") is None:
        monkeypatch.setattr(Screen, "_compositor_refresh", _note_as_painted)
