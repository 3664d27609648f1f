from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from iopstui.ui.core import feed
from iopstui.ui.core.pace import OwnCost


@pytest.fixture(autouse=True)
def _time_of_day_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same wherever the tests run."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def _data_of_no_age(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the figures of a picture may be a second old when it is taken."""
    if "snap_compare" in request.fixturenames:
        monkeypatch.setattr(feed, "OwnCost", lambda cpu, age_s, dropped: OwnCost(cpu, 0.0, 0))
