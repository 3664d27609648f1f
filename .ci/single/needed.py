"""The lock's packages that running iopstui needs, with their hashes, for pip.

    python .ci/single/needed.py < requirements.txt

The lock has the build backend, too, and some packages in a version for old Pythons and one for new
ones: an old one runs on all of them, so that is the one that a program for all of them needs.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement

OLDEST = {"python_version": "3.10", "python_full_version": "3.10.0"}
BACKEND = "hatchling"


def backend(name: str = BACKEND) -> set[str]:
    """The build backend with what it needs."""
    found = {name}
    try:
        needs = requires(name) or []
    except PackageNotFoundError:
        return found
    for need in map(Requirement, needs):
        if need.name not in found and "extra ==" not in str(need.marker):
            found |= backend(need.name)
    return found


def needed(lock: str) -> str:
    """The lines that stay, without their markers."""
    kept = []
    for block in re.split(r"\n(?=[a-z0-9])", re.sub(r"(?m)^#.*\n", "", lock)):
        first, *hashes = block.replace("\\\n", "").split("--hash=")
        one = Requirement(first.strip())
        if one.name not in backend() and (one.marker is None or one.marker.evaluate(OLDEST)):
            kept.append(" ".join([f"{one.name}{one.specifier}",
                                  *(f"--hash={text.strip()}" for text in hashes)]))  # fmt: skip
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    sys.stdout.write(needed(sys.stdin.read()))
