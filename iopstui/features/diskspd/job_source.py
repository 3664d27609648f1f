"""The option --diskspd of `iopstui run`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iopstui.model.experiment.run_request import RunRequest

OPTION = "diskspd"


def add_argument(group: argparse._ActionsContainer) -> None:
    group.add_argument("--diskspd", metavar="COMMAND",
                       help="a DISKSPD command line in quotes, translated to a fio job and run",
                     )  # fmt: skip


def run(request: RunRequest, arguments: argparse.Namespace) -> int:
    """Translate the command and run it. Returns the exit code."""
    from iopstui.features.diskspd.run import run_diskspd

    return run_diskspd(request, arguments)
