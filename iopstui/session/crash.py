"""An error of iopstui's own: the user gets one sentence, the details go to a file."""

from __future__ import annotations

import os
import tempfile
import traceback

from iopstui import __version__
from iopstui.session.journal import state_directory


def crash_sentence(error: BaseException) -> str:
    """Write the traceback to the state directory; what to tell the user, on one line."""
    what = f"iopstui: internal error: {type(error).__name__}: {error}".replace("\n", " ")
    details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        fd, name = tempfile.mkstemp(prefix="crash-", suffix=".txt", dir=state_directory())
        with os.fdopen(fd, "w", errors="replace") as file:
            file.write(f"iopstui {__version__}\n{details}")
    except OSError:
        return f"{what}. Please report it."
    return f"{what}. Please report it with {name}"
