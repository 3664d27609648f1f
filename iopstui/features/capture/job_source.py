"""The option --replay of `iopstui run`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iopstui.cli import values

if TYPE_CHECKING:
    from iopstui.model.experiment.run_request import RunRequest

OPTION = "replay"


def add_argument(group: argparse._ActionsContainer) -> None:
    group.add_argument("--replay", type=values.new_file, metavar="FILE",
                       help="a trace of `iopstui capture --trace`, replayed on a scratch file in "
                            "the directory TARGET")  # fmt: skip


def run(request: RunRequest, arguments: argparse.Namespace) -> int:
    """Read the trace, rewrite it for a scratch file, and run it. Returns the exit code."""
    from iopstui.features.capture.replay import run_replay

    return run_replay(request, arguments)
