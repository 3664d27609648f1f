"""The layout saved for the next start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_app import do, make, running, settle, shows, wait_until
from test_fleet_screen import four_hosts, make_app

from iopstui.features.fleet.screen.hosts import LAYOUT_PANELS, LAYOUT_WORDS, ORDERS, HostsView
from iopstui.ui.core.preferences import (
    DOT_SECONDS,
    PANELS,
    PREFERENCES,
    ZOOMED,
    SavedLayout,
    parse_layout,
)
from iopstui.ui.dashboard.panels import registry
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.draw.style import UTF8
from iopstui.ui.parts.panel import PanelKeys

SavedPreferences = list[tuple[str, str | bool]]


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> SavedPreferences:
    saved: SavedPreferences = []
    monkeypatch.setattr(PREFERENCES, "layout", "")
    monkeypatch.setattr(PREFERENCES, "fleet_layout", "")
    monkeypatch.setattr(PREFERENCES, "remember", lambda key, value: saved.append((key, value)))
    return saved


@given(
    st.builds(
        SavedLayout, st.sampled_from(("", *PANELS)), st.sampled_from(((), (ZOOMED,))),
        st.booleans(), st.booleans(), st.sampled_from(DOT_SECONDS),
    )
)  # fmt: skip
def test_a_layout_survives_a_round_trip_through_text(layout: SavedLayout) -> None:
    assert parse_layout(str(layout)) == layout


def test_unknown_words_are_refused() -> None:
    assert str(SavedLayout()) == ""
    with pytest.raises(ValueError, match="'latencies' is not one of iops, latency"):
        parse_layout("latencies zoomed")
    assert len(registry.tabs()) == len(PANELS)


def test_every_panel_has_a_key() -> None:
    (tab,) = (action for action in PanelKeys.ACTIONS if action.id == "tab")
    assert [key.argument for key in tab.keys] == [*range(len(PANELS))]


async def test_the_layout_is_restored_at_the_next_start(saved: SavedPreferences) -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        await running(app, pilot)
        await pilot.press("h")
        await do(pilot, "percentiles")
        await pilot.press("minus", "2")
        await settle(pilot)
        assert app.dashboard is not None and app.dashboard.fullscreen
        assert saved == []
        app.save_layout()
        await pilot.press("q")
    assert saved == [("layout", "latency zoomed heat-map percentiles 2s")]
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        await running(app, pilot)
        board = app.dashboard
        assert isinstance(board, Dashboard)
        assert str(board.saved_layout) == saved[0][1]
        assert board.panels["cpus"].shown is False and board.heat_maps.fio.shown
        await pilot.press("escape", "h")
        await do(pilot, "percentiles")
        await pilot.press("h", "plus")
        assert not board.fullscreen
        await pilot.press("q")
    assert saved[1:] == [], "a glance at another panel is not saved"


async def test_a_panel_without_space_keeps_its_tab() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        await running(app, pilot)
        board = app.dashboard
        assert board is not None and not board.panels["completions"].shown
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert board.tabbed and shows(app, "6 By CPU")
        await pilot.press("6")
        await settle(pilot)
        assert board.panels["completions"].shown


async def test_another_device_has_the_same_layout(saved: SavedPreferences) -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        await running(app, pilot)
        await pilot.press("r", "h")
        app._close()
        await settle(pilot)
        app.targets.begin(("/dev/nvme0n1",), False)
        await settle(pilot)
        assert app.dashboard is not None and app.dashboard.heat_enabled
    assert saved == []


async def test_an_unwritable_configuration_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(key: str, value: str | bool) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(PREFERENCES, "layout", "")
    monkeypatch.setattr(PREFERENCES, "remember", refused)
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        await running(app, pilot)
        await pilot.press("h", "q")
    assert app.return_code == 0


@given(st.sampled_from(ORDERS), st.booleans(), st.sampled_from((None, True, False)))
def test_the_layout_of_hosts_survives_a_round_trip_through_text(
    order: str, reverse: bool, as_map: bool | None
) -> None:
    hosts, restored = HostsView(UTF8), HostsView(UTF8)
    hosts.order, hosts.reverse, hosts.as_map = order, reverse, as_map
    text = str(SavedLayout("hosts", hosts.layout))
    restored.restore_layout(parse_layout(text, LAYOUT_PANELS, LAYOUT_WORDS).own)
    assert (restored.order, restored.reverse, restored.as_map) == (order, reverse, as_map)


async def test_a_fleet_s_layout_is_restored(saved: SavedPreferences) -> None:
    app, _ = make_app(four_hosts())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("2", "h", "minus", "o", "o", "O", "k")
        await settle(pilot)
        app.save_layout()
        await pilot.press("q")
    assert saved == [("fleet-layout", "latency by-iops reversed map heat-map 2s")]
    app, runs = make_app(four_hosts())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        board = app.dashboard
        assert board is not None and str(board.saved_layout) == saved[0][1]
        # the layout of all hosts is saved, even while one host is open
        runs.play(3)
        await settle(pilot)
        await pilot.press("4", "k")
        await settle(pilot)
        await pilot.press("enter")
        await wait_until(pilot, lambda: app.source.one is not None)
        app.save_layout()
        await pilot.press("escape", "q")
    assert saved[1:] == [("fleet-layout", "by-iops reversed rows heat-map 2s")]
    with pytest.raises(ValueError, match="'big' is not one of iops, "):
        parse_layout("big", LAYOUT_PANELS, LAYOUT_WORDS)
