"""The runs in a recording of many hosts: those of a screen, or the points of ``--axis``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from iopstui.fleet.fleet_events import FLEET, FLEET_OVER
from iopstui.fleet.merging.certificate import certify_merge
from iopstui.fleet.merging.merger import Merger
from iopstui.fleet.merging.sums import HostSums, MalformedRow
from iopstui.text import printable

Object = dict[str, Any]
MAX_MESSAGES = 20


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of a fleet.

    ``job`` is "" if the hosts only watched. ``hosts`` were to run it, ``finished`` of them did.
    ``ending`` is "not seen" if the file ends first."""

    number: int
    job: str
    hosts: int
    finished: int
    totals: HostSums
    ending: str
    messages: tuple[str, ...]


class _Run:
    def __init__(self, row: Object, number: int, interval_s: float) -> None:
        names = row.get("hosts")
        self.number = number
        self.job = printable(str(row.get("job") or ""))
        self.hosts = len(names) if isinstance(names, list) else 0
        self.end_row: Object = {}
        self.merger = Merger(interval_s)

    def row(self) -> RunRow:
        for _ in self.merger.finish():
            pass
        messages = self.end_row.get("said")
        shown = messages[:MAX_MESSAGES] if isinstance(messages, list) else []
        return RunRow(
            self.number, self.job, self.hosts, certify_merge(self.merger).finished,
            self.merger.run_sums(), printable(str(self.end_row.get("how") or "not seen")),
            tuple(printable(str(message)) for message in shown),
        )  # fmt: skip


def runs_of(rows: Iterable[tuple[str, Object]], interval_s: float) -> Iterator[RunRow]:
    """Runs in labelled lines, each from its beginning."""
    run: _Run | None = None
    number = 0
    for name, row in rows:
        kind = row.get("event")
        if kind == FLEET:
            if run is not None:
                yield run.row()
            number += 1
            run = _Run(row, number, interval_s)
        elif kind == FLEET_OVER and run is not None:
            run.end_row = row
        elif run is not None:
            with contextlib.suppress(MalformedRow):
                run.merger.feed(name, row)
            for _ in run.merger.close_seconds(early=False):
                pass
    if run is not None:
        yield run.row()
