"""What tests/pictures is told on its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent


@pytest.mark.parametrize("args", [["--help"], ["a", "b", "c"]])
def test_help_and_mistakes_write_nothing(args: list[str], tmp_path: Path) -> None:
    paths = os.pathsep.join((str(PROGRAM.parents[1]), os.environ.get("PYTHONPATH", "")))
    result = subprocess.run(
        [sys.executable, PROGRAM, *args], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": paths}, check=False,
    )  # fmt: skip
    assert result.returncode == (0 if args == ["--help"] else 2)
    assert "OUT" in (result.stderr if result.returncode else result.stdout), result
    assert "written:" not in result.stdout and not [*tmp_path.iterdir()]
