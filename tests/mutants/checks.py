"""The checks of `make test` before pytest: do they refuse a change that the tests accept?

mypy finds a default of the wrong type, and ruff an exported name that does not exist, so no test
has to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_CHECKS = (
    ("mypy", ("--no-error-summary",)),
    ("ruff", ("check", "--quiet", "--no-cache", "iopstui")),
)


def refusing(tree: Path) -> str:
    """The check that refuses the program in ``tree``; "" if none does. mypy keeps its cache there,
    so that the next check takes a second."""
    for name, arguments in _CHECKS:
        command = [sys.executable, "-m", name, *arguments]
        process = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        if process.returncode not in (0, 1):
            raise SystemExit(f"mutants: {name} ended with {process.returncode}:\n{process.stderr}")
        if process.returncode:
            return name
    return ""
