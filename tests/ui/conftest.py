from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.screen import Screen
from textual.theme import Theme
from textual.widgets import Input

from iopstui.ui import feed
from iopstui.ui.core.pace import Overhead
from iopstui.ui.core.preferences import PREFERENCES
from iopstui.ui.draw.canvas import CanvasScreen


@pytest.fixture(autouse=True)
def _time_of_day_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the same time zone wherever the tests run."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def _terminal_with_all_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the terminal in which the tests run."""
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(autouse=True)
def _nobody_s_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the layout that an earlier test in this process has saved."""
    monkeypatch.setattr(PREFERENCES, "layout", "")
    monkeypatch.setattr(PREFERENCES, "fleet_layout", "")


@pytest.fixture(autouse=True)
def _data_of_no_age(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show all figures as new: on a busy machine they may be a second old, and the screen then says
    so."""
    if "snap_compare" in request.fixturenames:
        monkeypatch.setattr(feed, "Overhead", lambda cpu, age_s, dropped: Overhead(cpu, 0.0, 0))


@pytest.fixture(autouse=True)
def _the_same_machine_everywhere(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replace the machine's name on the home screen."""
    if "snap_compare" in request.fixturenames:
        machine = "db1 · Linux 6.12 · 32 CPUs · root"
        monkeypatch.setattr("iopstui.ui.home.screen.machine_text", lambda: machine)


@pytest.fixture(autouse=True)
def _cursors_that_stand_still(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop the cursor's blinking: a picture may be taken late on a busy machine."""
    if "snap_compare" in request.fixturenames:
        monkeypatch.setattr(Input, "_toggle_cursor", lambda field: None)


@pytest.fixture(scope="session", autouse=True)
def _styles_are_read_once() -> Iterator[None]:
    """A program has one app, which parses its style sheets and themes once. Here there are hundreds
    of apps, and each would parse the same ones again."""
    parse_rules, get_variables = Stylesheet._parse_rules, App.get_css_variables
    cached: dict[object, list[RuleSet]] = {}
    variables: dict[object, tuple[Theme, dict[str, str]]] = {}

    def once(sheet: Stylesheet, css: str, *args: Any, **more: Any) -> list[RuleSet]:
        key = (css, args, *more.items(), *sheet._variables.items())
        if key not in cached:
            cached[key] = parse_rules(sheet, css, *args, **more)
        return cached[key]

    def variables_once(app: App[int]) -> dict[str, str]:
        theme = app.current_theme
        key = type(app), id(theme)
        if key not in variables:
            variables[key] = theme, get_variables(app)
        app.theme_variables = dict(variables[key][1])
        return app.theme_variables

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", once)
        patch.setattr(App, "get_css_variables", variables_once)
        yield


def _note_as_painted(screen: Screen[object]) -> None:
    """Treat changes as painted: nobody sees the screen of a headless app."""
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
    """Painting the updates, which a headless app discards, took half the CPU time of the screen's
    tests. Pictures are still painted whole. The mark ``paints`` is for tests of the updates."""
    if request.node.get_closest_marker("paints") is None:
        monkeypatch.setattr(Screen, "_compositor_refresh", _note_as_painted)
