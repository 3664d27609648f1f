"""The options --textfile and --openmetrics-listen."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from iopstui.cli import values
from iopstui.cli.terminal import print_message

if TYPE_CHECKING:
    from iopstui.session.live import LiveSession

Export = Callable[["LiveSession"], object]


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--textfile", type=values.new_file, metavar="FILE",
                         help="write current metrics to FILE (*.prom) for node_exporter's "
                              "textfile collector")  # fmt: skip
    command.add_argument("--openmetrics-listen", type=values.port, metavar="PORT",
                         help="serve metrics at http://127.0.0.1:PORT/metrics, this machine "
                              "only; 0: any free port")  # fmt: skip


@contextmanager
def exporting_sessions(arguments: argparse.Namespace, keep: bool = False) -> Iterator[Export]:
    """Yields a function to call with each session before its start. Raises UsageError for a file or
    a port that cannot be used. ``keep`` is that of ``exporting``."""
    if arguments.textfile is None and arguments.openmetrics_listen is None:
        yield lambda session: None
        return
    from iopstui.features.exports.exports import exporting

    with exporting(
        arguments.textfile, arguments.openmetrics_listen, os.uname().nodename, print_message, keep
    ) as exports:
        yield lambda session: session.add_sink(
            exports.sink_of(session.target, lambda text: session.notice("warning", text))
        )
