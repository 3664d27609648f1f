"""Several tests at a time: each is run once, and none is lost with the process that ran it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HELPERS = Path(__file__).resolve().parents[1] / "helpers"
TESTS = """
import os, warnings
import pytest

@pytest.fixture(scope="module")
def own():
    yield
    with open("ended", "a") as file:
        file.write("x")

@pytest.mark.parametrize("number", range(80))
def test_fine(number, tmp_path, own):
    assert os.listdir(tmp_path) == []
    with open(f"ran-{number}", "x"):
        pass

def test_wrong(capfd):
    print("what it said")
    assert "what" == "it is"

def test_deadly():
    os._exit(3)

def test_after_it():
    warnings.warn("look at this")

def test_skipped():
    pytest.skip("not here")
"""


def test_all_are_run_once_whatever_becomes_of_one(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "at_once", "--at-once", "3",
         "-p", "no:cacheprovider", "-o", "addopts="],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(HELPERS)}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    last = done.stdout.splitlines()[-1]
    for words in ("2 failed", "81 passed", "1 skipped", "1 warning"):
        assert re.search(rf"\b{words}\b", last), done.stdout
    assert "AssertionError: assert 'what' == 'it is'" in done.stdout
    assert "what it said" in done.stdout and "look at this" in done.stdout
    assert "FAILED test_it.py::test_deadly" in done.stdout
    assert "the process that ran this test has ended: exit code 3" in done.stdout
    assert len(list(tmp_path.glob("ran-*"))) == 80
    assert (tmp_path / "ended").read_text() in ("x", "xx", "xxx"), "by each that began it"
