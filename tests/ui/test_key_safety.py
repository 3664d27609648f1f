"""No key typed in a dialog or in the help acts on the screen below."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import experiment_fakes as lab
import pytest
import ui_fakes as fakes
from test_app import make, settle, shows
from test_experiment_view import wait_until
from test_settings_view import AFFINITY, IRQ, REQUESTS
from textual.events import Key
from textual.keys import _character_to_key
from textual.pilot import Pilot

from iopstui.model import findings
from iopstui.safety.tunables import TunableState
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.clipboard import render_pictures
from iopstui.ui.core.modal import Modal
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.keys import LIVE_ACTIONS

PRINTABLE = [chr(code) for code in range(33, 127)]
OWN: dict[str, str] = {
    # the key that opens it: the letters that answer or close it
    "a": "yYnq", "j": "", "b": "qb", "k": "qk", ":": "", "m": "", "v": "qv",
    "f": "qf", "o": "qo", "u": "qu", "?": "q?",
    "w": "", "c": "",
}  # fmt: skip
FILTERED = "bkvfou?"
"""In these lists the first Escape only clears the filter."""


def named(character: str) -> str:
    """The key's name as the pilot expects it."""
    return _character_to_key(character)


async def type_at_once(pilot: Pilot[int], characters: str) -> None:
    """Send keys as a terminal sends a packet of them. The pilot would wait after each key."""
    for character in characters:
        pilot.app.post_message(Key(named(character), character))
    await settle(pilot)


class Watched:
    """The calls to the session, and the state of the dashboard."""

    def __init__(self, app: IopstuiApp, fake: fakes.FakeController) -> None:
        self.app, self.fake = app, fake

    def now(self) -> object:
        dashboard = self.app.dashboard
        assert dashboard is not None
        return (
            list(self.fake.calls), dashboard.view, dashboard.fullscreen, dashboard.column_seconds,
            dashboard.frozen_at, dashboard.overlay.steps, self.app.state.runs.base,
            dict(self.app.jobs.overrides), self.app.jobs.job, self.app.return_value,
        )  # fmt: skip


async def opened(pilot: Pilot[int], key: str) -> Modal[object]:
    await pilot.press(named(key))
    await settle(pilot)
    await pilot.app.workers.wait_for_complete()
    await settle(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, Modal), key
    return screen


def note_changes(
    monkeypatch: pytest.MonkeyPatch, app: IopstuiApp, name: str, changes: list[str]
) -> None:
    original = getattr(app, name)

    def noted(*arguments: Any, **options: Any) -> Any:
        changes.append(name)
        return original(*arguments, **options)

    monkeypatch.setattr(app, name, noted)


async def test_a_dialog_takes_every_printable_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # S keeps a picture
    app = lab.make(lab.FakeLaboratory())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        fake = app.controller
        assert isinstance(fake, fakes.FakeController)
        fake.settings = (AFFINITY, REQUESTS, IRQ)
        await pilot.press("r")
        fake.tick(3)
        await settle(pilot)
        watched = Watched(app, fake)
        changes: list[str] = []
        for change in ("push_screen", "pop_screen"):
            note_changes(monkeypatch, app, change, changes)
        for key, own in OWN.items():
            screen = await opened(pilot, key)
            before = watched.now()
            changes.clear()
            await type_at_once(pilot, "".join(c for c in PRINTABLE if c not in own + "?S"))
            assert app.screen is screen, f"{key}: a key closed it"
            assert changes == [], f"{key}: a key opened another one"
            assert watched.now() == before, key
            for _ in range(2 if key in FILTERED else 1):
                await pilot.press("escape")
            await wait_until(pilot, lambda screen=screen: app.screen is not screen)  # type: ignore[misc]
            assert isinstance(app.screen, Dashboard) and watched.now() == before, key


async def test_the_dashboard_updates_under_a_dialog() -> None:
    app = lab.make(lab.FakeLaboratory())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        fake = app.controller
        assert isinstance(fake, fakes.FakeController)
        await pilot.press("r")
        fake.tick(3)
        await opened(pilot, "k")
        assert app.dashboard is not None
        before, screen_before = app.dashboard.panels["fio"].text(), render_pictures(app)[".txt"]
        fake.tick(5)
        await settle(pilot)
        assert app.dashboard.panels["fio"].text() != before
        assert render_pictures(app)[".txt"] != screen_before, "and it is seen"


async def test_a_asks_once_before_it_changes_a_tunable() -> None:
    app = lab.make(lab.FakeLaboratory())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        fake = app.controller
        assert isinstance(fake, fakes.FakeController)

        def changes() -> list[object]:
            return [call for call in fake.calls if call[0] == "tune"]

        screen = await opened(pilot, "a")
        assert "rq_affinity 1 → 2 on nvme0n1" in screen.heading
        await pilot.press("escape", "a", "enter", "a")
        assert not changes(), "asked again: it was not agreed, and Enter cancels"
        await pilot.press("y")
        assert len(changes()) == 1
        await pilot.press("a")
        assert len(changes()) == 2 and isinstance(app.screen, Dashboard)


async def test_typing_searches_the_help_and_presses_no_key() -> None:
    app = lab.make(lab.FakeLaboratory())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        fake = app.controller
        assert isinstance(fake, fakes.FakeController)
        before = Watched(app, fake).now()
        await pilot.press("question_mark")
        await settle(pilot)
        assert "iodepth: half, double" in render_pictures(app)[".txt"]
        # a slash begins a filter, as elsewhere
        await pilot.press("slash", *"aqu-sz")
        await settle(pilot)
        text = render_pictures(app)[".txt"]
        assert "mean number of requests in flight" in text and "iodepth: half" not in text
        await pilot.press(*"xyz")
        await settle(pilot)
        assert "No entry of the help" in render_pictures(app)[".txt"]
        await pilot.press("escape")
        await settle(pilot)
        assert "iodepth: half, double" in render_pictures(app)[".txt"], "Esc drops the words first"
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard) and Watched(app, fake).now() == before


def test_a_finding_s_key_is_one_of_the_dashboard() -> None:
    labels = {key.label for action in LIVE_ACTIONS for key in action.keys}
    wanted = set()
    for path in Path(findings.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                wanted |= {one.value for one in node.args[3:] if isinstance(one, ast.Constant)}
    assert {"k", "u"} <= wanted <= labels


async def test_a_setting_that_can_t_be_changed_is_not_asked_about() -> None:
    refused = TunableState(
        "rq_affinity", "", "1", (), "", refused="It needs root.", hint="sudo ..."
    )
    fake = fakes.FakeController(settings=(refused,))
    app = make(fake)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("a")
        await settle(pilot)
        assert app.screen is app.dashboard and shows(app, "It needs root. sudo ...")
        assert not any(call[0] == "tune" for call in fake.calls)
