"""Each picture belongs to a scene: run by several workers, syrupy does not look for leftovers."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

PICTURES = sorted(path for path in (Path(__file__).parent / "__snapshots__").iterdir())


@pytest.mark.parametrize("directory", PICTURES, ids=lambda path: path.name)
def test_no_picture_is_left_of_a_scene_that_is_gone(directory: Path) -> None:
    scenes = importlib.import_module(directory.name).SCENES
    assert {path.name for path in directory.iterdir()} == {
        f"test_looks[{name}].svg" for name in scenes
    }
