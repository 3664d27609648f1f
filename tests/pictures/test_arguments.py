"""The command line of tests/pictures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent


# both cases in one process, which imports the screen
TRIED = """
import runpy, sys
for words in (["--help"], ["a", "b", "c"]):
    sys.argv[1:] = words
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        print("ended with", end.code)
"""


def test_help_and_mistakes_write_nothing(tmp_path: Path) -> None:
    paths = (PROGRAM, PROGRAM.parents[1], os.environ.get("PYTHONPATH", ""))
    code = f"import sys; sys.argv = [{str(PROGRAM / '__main__.py')!r}]\n{TRIED}"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}, check=True,
    )  # fmt: skip
    assert re.findall(r"^ended with (.*)", result.stdout, re.MULTILINE) == ["0", "2"], result
    assert "OUT" in result.stdout and "OUT" in result.stderr
    assert "written:" not in result.stdout and not [*tmp_path.iterdir()]
