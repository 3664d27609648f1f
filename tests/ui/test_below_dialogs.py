"""Figures update under a dialog: visible changes are sent, covered ones are not."""

from __future__ import annotations

import pytest
from test_app import make, running, settle
from textual.app import ComposeResult
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.widgets import Static

from iopstui.ui.app import IopstuiApp
from iopstui.ui.draw.canvas import TextSpan

pytestmark = pytest.mark.paints

WIDE = (160, 45)


class Dialog(ModalScreen[None]):
    CSS = """
    Dialog { align: center middle; background: transparent; }
    Dialog.tinted { background: black 40%; }
    #box { width: 60; height: 20; border: round white; }
    """

    def compose(self) -> ComposeResult:
        yield Static("a dialog", id="box")


async def sent_spans(
    app: IopstuiApp, tinted: bool, monkeypatch: pytest.MonkeyPatch
) -> list[TextSpan]:
    """Spans sent for one second of figures under a dialog."""
    spans: list[TextSpan] = []
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        app.push_screen(Dialog(classes="tinted" if tinted else ""))
        await settle(pilot)
        dashboard = app.dashboard
        assert dashboard is not None
        of = dashboard.pieces_below
        monkeypatch.setattr(dashboard, "pieces_below", lambda: spans.extend(of()) or spans)
        for _ in range(3):
            fake.tick(1)
            await settle(pilot)
    return spans


@pytest.mark.parametrize("tinted", [False, True])
async def test_changes_beside_a_dialog_are_sent(
    tinted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = await sent_spans(make(), tinted, monkeypatch)
    assert {y for y, _, _ in spans} >= {0, 1}
    covered = Region((160 - 60) // 2, (45 - 20) // 2, 60, 20)
    for y, x, segments in spans:
        width = sum(len(text) for text, _ in segments)
        assert not covered.intersection(Region(x, y, width, 1)), (y, x)


async def test_sent_changes_are_tinted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = await sent_spans(make(), False, monkeypatch)
    tinted = await sent_spans(make(), True, monkeypatch)

    def colours(places: list[TextSpan]) -> set[str]:
        return {str(style.color) for _, _, row in places for _, style in row if style.color}

    assert not colours(plain) & colours(tinted)
