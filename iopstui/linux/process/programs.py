"""Find programs and Python packages, and make directories without ``shutil`` and ``tempfile``."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from iopstui.errors import Missing

_ATTEMPTS = 100


def which(name: str, path: str | None = None) -> str | None:
    """The program that a shell would start for ``name`` with this PATH (``None``: the
    environment's), like ``shutil.which``; a name with a slash is a path. Only a regular file counts
    (execve(2)): opening a FIFO to examine it would block for ever."""
    if os.path.dirname(name):
        return name if _is_program(name) else None
    if path is None:
        path = os.environ.get("PATH")
    if path is None:
        path = os.defpath
    for directory in dict.fromkeys(path.split(os.pathsep) if path else ()):
        program = os.path.join(directory, name)
        if _is_program(program):
            return program
    return None


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def new_directory(place: Path | str, prefix: str) -> Path:
    """A new directory that only this user can enter, named ``prefix`` and eight unpredictable
    characters, like ``tempfile.mkdtemp``. Raises OSError."""
    for attempt in range(_ATTEMPTS):
        path = os.path.join(os.path.abspath(place), random_name(prefix))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return Path(path)
    raise AssertionError


def random_name(prefix: str) -> str:
    """``prefix`` followed by eight random characters."""
    return prefix + os.urandom(4).hex()


def temporary_directory() -> str:
    """Directory for temporary files, like ``tempfile.gettempdir`` but without writing anything.
    FileNotFoundError if none is writable."""
    candidates = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    for path in (*filter(None, candidates), "/tmp", "/var/tmp", "/usr/tmp", os.curdir):
        if os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK):
            return os.path.abspath(path)
    raise FileNotFoundError("no writable directory for temporary files")


SCREEN_PACKAGES = ("pyudev", "textual", "rich")


def require_packages(*names: str) -> None:
    """Missing (exit 5) if one of these is not installed. They are not imported, which would take
    time."""
    lacking = [name for name in names if not _is_installed(name)]
    if lacking:
        raise missing_package_error(*lacking)


def missing_package_error(*names: str) -> Missing:
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
