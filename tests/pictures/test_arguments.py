"""What tests/pictures is told on its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent


@pytest.mark.parametrize("asked", [["--help"], ["a", "b", "c"]])
def test_help_and_mistakes_write_nothing(asked: list[str], tmp_path: Path) -> None:
    paths = os.pathsep.join((str(PROGRAM.parents[1]), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, PROGRAM, *asked], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": paths}, check=False,
    )  # fmt: skip
    assert done.returncode == (0 if asked == ["--help"] else 2)
    assert "OUT" in (done.stderr if done.returncode else done.stdout), done
    assert "written:" not in done.stdout and not [*tmp_path.iterdir()]
