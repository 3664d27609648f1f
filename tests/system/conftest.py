from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    """The current directory of the program."""
    directory = tmp_path / "work"
    directory.mkdir()
    return directory
