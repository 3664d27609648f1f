"""Check the Python packages that a command needs before it starts."""

from __future__ import annotations

import importlib.util
import sys

from iopstui.errors import Missing

SCREEN_PACKAGES = ("pyudev", "textual", "rich")


def require_packages(*names: str) -> None:
    """Missing (exit 5) if one of these is not installed. They are not imported, which would take
    time."""
    lacking = [name for name in names if not _is_installed(name)]
    if lacking:
        raise missing_package_error(*lacking)


def missing_package_error(*names: str) -> Missing:
    """The error for packages that can't be imported."""
    plural = len(names) > 1
    return Missing(
        f"The Python package{'s' * plural} {', '.join(names)} {'are' if plural else 'is'} missing, "
        f"and this needs {'them' if plural else 'it'}.",
        f"Install {'them' if plural else 'it'}: {sys.executable} -m pip install {' '.join(names)}",
    )


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
