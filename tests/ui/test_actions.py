"""The registry of actions is complete and consistent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import ui_fakes as fakes
from experiment_fakes import FakeLaboratory
from experiment_fakes import make as make_experiments
from textual.binding import Binding

from iopstui.features.fleet.screen.app import FLEET_ACTIONS
from iopstui.recording.replay import ReplaySession
from iopstui.ui.actions import EXPERIMENT, FIRST_QUIET_POSITION, LESSON, Action, Footer
from iopstui.ui.core.key import Key
from iopstui.ui.help import help_sections
from iopstui.ui.keys import (
    DASHBOARD_BINDINGS,
    LIVE_ACTIONS,
    LIVE_BINDINGS,
    PARTS,
    REPLAY_BINDINGS,
    markdown,
)
from iopstui.ui.parts.replay import REPLACED_ACTIONS, ReplayKeys

WIDE = (160, 45)
REPLAY_ACTIONS = (
    *(action for action in LIVE_ACTIONS if action.id not in REPLACED_ACTIONS),
    *ReplayKeys.ACTIONS,
)


def keys_of(bindings: list[Any]) -> list[str]:
    assert all(isinstance(binding, Binding) for binding in bindings)
    return [key for binding in bindings for key in binding.key.split(",")]


def test_the_reference_has_the_table_of_keys(root: Path) -> None:
    reference = (root / "docs" / "reference" / "keys.md").read_text()
    assert markdown() in reference, "write it anew: make docs"


@pytest.mark.parametrize("actions", [LIVE_ACTIONS, REPLAY_ACTIONS])
def test_ids_and_positions_of_actions_are_unique(actions: tuple[Action, ...]) -> None:
    ids = [action.id for action in actions]
    assert len(ids) == len(set(ids))
    places = [action.place for action in LIVE_ACTIONS if action.help]
    assert [place for place in set(places) if places.count(place) > 1] == [] and all(places)


def test_every_key_is_bound_once() -> None:
    live = [*keys_of(LIVE_BINDINGS), *keys_of(DASHBOARD_BINDINGS)]
    # Enter also acts in a lesson that is played and in a chosen cell of the heat map, Esc there as
    # well; S saves a picture of a list at once
    several = {"enter": 3, "escape": 4, "S": 2}
    assert {key: count for key in live if (count := live.count(key)) > 1} == several
    replay = keys_of(REPLAY_BINDINGS)
    # these freeze the screen and move in time; a replay handles them itself
    shared = {"space", "left", "right", "home", "end"}
    assert set(replay) & set(live) == shared
    # in a cell of the heat map these move by a second
    twice = {"left", "right"}
    assert {key for key in replay if replay.count(key) > 1} == twice
    assert len(replay) == len(set(replay)) + len(twice)


def test_the_dashboard_has_few_keys_to_learn() -> None:
    # without the keys that move (arrows, digits, Enter, Esc, Tab, space, the length of the charts);
    # S counts once
    moves = {"freeze", "walk", "zoom", "tab", "everything", "picture"}
    learned = {
        action.id
        for action in LIVE_ACTIONS
        if action.id not in moves and any(len(key.label) == 1 for key in action.keys if key.names)
    }
    assert len(learned) <= 24, sorted(learned)


def test_there_are_few_bindings_in_all() -> None:
    actions = {action.id: action for action in (*LIVE_ACTIONS, *REPLAY_ACTIONS, *FLEET_ACTIONS)}
    bound = [(name, key.label) for name, action in actions.items() for key in action.keys
             if key.names]  # fmt: skip
    assert len(bound) <= 80, bound


def test_every_bound_key_of_the_dashboard_is_in_the_help() -> None:
    help_keys = " ".join(keys for _, rows in help_sections() for keys, _ in rows)
    for action in (*LIVE_ACTIONS, *REPLAY_ACTIONS):
        for key in action.keys:
            if key.names and action.help:
                assert key.label in help_keys, action.id


def test_actions_that_start_or_change_something_disturb_a_lesson() -> None:
    quiet = {action.id for action in LIVE_ACTIONS if action.quiet}
    assert quiet >= {"mark", "freeze", "zoom", "record", "findings", "places", "log", "quit"}
    disturbing = {action.id for action in LIVE_ACTIONS if LESSON in action.disturbs}
    assert disturbing >= {"run_or_stop", "choose_job", "iodepth", "rq_affinity", "sweep", "option"}
    alike = {action.id for action in LIVE_ACTIONS if EXPERIMENT in action.disturbs}
    assert alike < disturbing


def test_a_quiet_action_follows_the_keys_of_an_experiment() -> None:
    footer = Footer("x", {"idle": 10})
    assert footer.position(EXPERIMENT, quiet=True) == FIRST_QUIET_POSITION + 10
    assert (
        footer.position(EXPERIMENT, quiet=False) is None
        and footer.position("running", quiet=True) is None
    )
    assert Action("x", (Key("x", "x"),), lambda part: None).key_text == "x"


async def test_the_application_handles_every_action(root: Path) -> None:
    app = make_experiments(FakeLaboratory(), fakes.FakeController())
    assert {type(part) for part in app.actions.parts} == set(PARTS)
    assert set(app.actions.by_id) == {action.id for action in LIVE_ACTIONS}
    from iopstui.recording.reader import recording_path
    from iopstui.ui.replay import ReplayApp

    session = ReplaySession(recording_path("demo"), 1.0)
    try:
        by_id = ReplayApp(session).actions.by_id
    finally:
        session.close()
    assert set(by_id) == {action.id for action in REPLAY_ACTIONS}


async def test_actions_of_the_palette_can_be_run_by_id() -> None:
    app = make_experiments(FakeLaboratory(), fakes.FakeController())
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        titles = [title for title, _, _ in app.actions.palette("dashboard")]
        assert len(titles) == len(set(titles)) and "iodepth: double" in titles
        app.actions.perform("iodepth", 1)
        assert app.jobs.overrides["iodepth"] == "8"
        app.actions.perform("heat_map")
        assert app.dashboard is not None and app.dashboard.heat_enabled
