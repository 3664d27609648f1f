"""Find files that are shipped with iopstui."""

from __future__ import annotations

from pathlib import Path

import iopstui
from iopstui.errors import Missing


def shipped_directory(name: str, kind: str) -> Path:
    """Directory of the shipped ``name`` ("jobs"): inside the installed package, or beside it in a
    checkout. ``kind`` is what a user may give instead, for the error. Raises Missing."""
    package = Path(iopstui.__file__).resolve().parent
    inside, checkout = package / name, package.parent / name
    if inside.is_dir():
        return inside
    # pyproject.toml: a directory of that name beside an installed package is somebody else's
    if checkout.is_dir() and (package.parent / "pyproject.toml").is_file():
        return checkout
    raise Missing(
        f"The shipped {name} are missing from this installation ({inside}).",
        f"Install iopstui again, or give the path of a {kind}.",
    )
