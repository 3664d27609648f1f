"""Handle an internal error: show one sentence to the user and write the details to a file."""

from __future__ import annotations

import traceback

from iopstui import __version__
from iopstui.linux.process.limits import exhausted_limit
from iopstui.safety.journal import write_text

PREFIX = "crash-"
MAX_MESSAGE, MAX_DETAILS = 500, 1 << 16


def crash_sentence(error: BaseException) -> str:
    """Write the traceback to the state directory; return a one-line message for the user. Both may
    contain input data, so their lengths are limited. An exhausted limit is not a bug: the message
    says how to raise it, and nothing is written."""
    if limit := exhausted_limit(error):
        return f"iopstui: {limit}"
    message = f"iopstui: internal error: {type(error).__name__}: {error}".replace("\n", " ")
    message = message[:MAX_MESSAGE]
    details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if len(details) > MAX_DETAILS:
        half = MAX_DETAILS // 2
        details = f"{details[:half]}\n[...]\n{details[-half:]}"
    try:
        name = write_text(PREFIX, f"iopstui {__version__}\n{details}")
    except OSError:
        return f"{message}. Please report it."
    return f"{message}. Please report it with {name}"
