"""Each picture belongs to a scene: with several workers syrupy does not check for leftovers."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

PICTURES = sorted(path for path in (Path(__file__).parent / "__snapshots__").iterdir())


@pytest.mark.parametrize("directory", PICTURES, ids=lambda path: path.name)
def test_pictures_of_removed_scenes_are_removed(directory: Path) -> None:
    scenes = importlib.import_module(directory.name).SCENES
    assert {path.name for path in directory.iterdir()} == {
        f"test_looks[{name}].svg" for name in scenes
    }
