"""The checks that `make test` makes before pytest: do they refuse a change that the tests let pass?

A default of the wrong type, or a name exported that is not there, is what mypy and ruff are for; no
test has to say it again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_CHECKS = (
    ("mypy", ("--no-error-summary",)),
    ("ruff", ("check", "--quiet", "--no-cache", "iopstui")),
)


def refusing(tree: Path) -> str:
    """The check that refuses the program in ``tree``; "" if none does. mypy keeps there what it
    has found out, so that the next time costs a second."""
    for name, arguments in _CHECKS:
        command = [sys.executable, "-m", name, *arguments]
        process = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        if process.returncode not in (0, 1):
            raise SystemExit(f"mutants: {name} ended with {process.returncode}:\n{process.stderr}")
        if process.returncode:
            return name
    return ""
