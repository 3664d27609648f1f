"""Values that Tab completes for the command's arguments."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui.cli.command import Candidate


def host_counts() -> Iterator[Candidate]:
    """How many of the hosts."""
    yield Candidate("hosts=", "the first 1, 2, 4 ... hosts in turn")


VALUES = {"fleet --axis": host_counts}
