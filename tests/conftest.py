"""What all tests share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# A slow or busy machine is no failure. Where others wait for the answer it is the same each time;
# elsewhere every run tries new examples.
settings.register_profile("iopstui", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("iopstui")


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the state of the user who runs it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def fio() -> str:
    """The real fio. `make test` has installed it: without it a test fails, it is not skipped."""
    found = shutil.which("fio")
    assert found, "fio is not installed; `make test` installs it"
    return found
