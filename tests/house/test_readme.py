"""README has the commands of a fresh clone, and CI runs them."""

from __future__ import annotations

import re
from pathlib import Path


def commands(text: str) -> list[str]:
    """The lines of README's code blocks, without comments."""
    return [line.partition("#")[0].strip() for line in text.splitlines() if line.startswith("    ")]


def test_readme_has_the_commands_to_run_and_test(root: Path) -> None:
    documented = commands((root / "README.md").read_text())
    assert {"make run", "make test"} <= set(documented)
    targets = re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE)
    assert {line.split()[1] for line in documented if line.startswith("make ")} <= set(targets)


def test_ci_runs_the_tests_named_in_readme(root: Path) -> None:
    lines = (root / ".ci" / "run").read_text().splitlines()
    called = [line.split() for line in lines if re.match(r"(exec )?make ", line)]
    assert [args[-1] for args in called] == ["test"]
    assert "make test" in commands((root / "README.md").read_text())
