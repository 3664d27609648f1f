"""README names the two commands of a fresh clone, and they are what is checked."""

from __future__ import annotations

import re
from pathlib import Path


def commands(text: str) -> list[str]:
    """The lines of README's code blocks, without comments."""
    return [line.partition("#")[0].strip() for line in text.splitlines() if line.startswith("    ")]


def test_readme_names_how_to_run_and_how_to_test(root: Path) -> None:
    named = commands((root / "README.md").read_text())
    assert {"make run", "make test"} <= set(named)
    targets = re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE)
    assert {line.split()[1] for line in named if line.startswith("make ")} <= set(targets)


def test_what_a_change_must_pass_is_what_readme_names(root: Path) -> None:
    lines = (root / ".ci" / "run").read_text().splitlines()
    called = [line.split() for line in lines if re.match(r"(exec )?make ", line)]
    assert [words[-1] for words in called] == ["test"]
    assert "make test" in commands((root / "README.md").read_text())
