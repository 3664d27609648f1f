"""Pass a command's sessions to the features that export them (``session_sink``)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from iopstui.discovery import feature_modules

if TYPE_CHECKING:
    from iopstui.session.live import LiveSession

Export = Callable[["LiveSession"], object]


@contextmanager
def exporting_sessions(arguments: argparse.Namespace, keep: bool = False) -> Iterator[Export]:
    """Yields the function that each session must be passed to before it starts. Raises UsageError
    for a file or a port that cannot be used. ``keep``: what was exported stays after the end."""
    with ExitStack() as stack:
        exports = [
            stack.enter_context(sink.exporting_sessions(arguments, keep))
            for sink in feature_modules("session_sink")
        ]
        yield lambda session: [export(session) for export in exports]
