"""Handle an internal error: show one sentence to the user and write the details to a file."""

from __future__ import annotations

import traceback

from iopstui import __version__
from iopstui.safety.journal import write_text


def crash_sentence(error: BaseException) -> str:
    """Write the traceback to the state directory; return a one-line message for the user."""
    message = f"iopstui: internal error: {type(error).__name__}: {error}".replace("\n", " ")
    details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        name = write_text("crash-", f"iopstui {__version__}\n{details}")
    except OSError:
        return f"{message}. Please report it."
    return f"{message}. Please report it with {name}"
