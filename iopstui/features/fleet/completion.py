"""Values that shell completion offers for the arguments of `iopstui fleet`."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui.cli.command import Candidate


def host_counts() -> Iterator[Candidate]:
    yield Candidate("hosts=", "the first 1, 2, 4 ... hosts in turn")


VALUES = {"fleet --axis": host_counts}
