"""The seconds of many hosts as a flat table, CSV or Parquet: a row for all of them together, then
one for each host that takes part. Made and written in one pass, because it may be long."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iopstui.features.fleet.merging.host_timeline import HostInterval
from iopstui.features.fleet.merging.merger import MergedInterval, certify_merge
from iopstui.features.fleet.merging.sums import HostSums
from iopstui.features.fleet.output.sinks import (
    figure_cells,
    figure_columns,
    head_cells,
    head_columns,
)
from iopstui.features.fleet.output.wording import first_names, is_last
from iopstui.features.fleet.report.data import Reading
from iopstui.model.metrics.fields import BY_ID
from iopstui.tables import WHOLE, WORDS, Column

Cells = list[Any]


def columns() -> Iterator[Column]:
    """Columns of a row; ``host`` is empty in totals."""
    yield Column("t", unit="s", meaning="since the first second in which a host is counted")
    yield Column("run", type=WHOLE, meaning="run number; null if the recording has none")
    yield Column("host", type=WORDS, meaning='"" in rows that sum all counted hosts')
    yield from head_columns()
    yield from figure_columns()
    # percents are not added up
    yield BY_ID["kernel.total.util"].column("kernel.util")
    yield Column("slowest", type=WORDS, meaning="the host with the highest p99")


class FleetRows:
    """The rows of a file's seconds: all hosts together, then each host."""

    def __init__(self, path: Path, redact: bool) -> None:
        self.columns = [*columns()]
        self._reading = Reading(path, redact, keep_bins=False)
        self._reading.merger.on_interval = self._slot
        self._name = self._reading.name
        self._slots: dict[int, dict[str, HostInterval]] = {}
        self._runs: dict[int, int | None] = {}
        self._first: int | None = None
        self._left = 0

    def __iter__(self) -> Iterator[Cells]:
        for second in self._reading.seconds():
            slots = self._slots.pop(second.number, {})
            run = self._runs.pop(second.number, self._reading.run)
            if not is_last(second):
                self._first = second.number if self._first is None else self._first
                at = (second.number - self._first) * second.interval_s
                yield [at, run, "", *self._total_row(second)]
                yield from ([at, run, *row] for row in self._host_rows(second, slots))

    def print_omissions(self) -> None:
        reading = self._reading
        lost = [self._name(host) for host in certify_merge(reading.merger).lost]
        if self._left:
            # the sum of the rows is less than fio's
            print(f"iopstui: {self._left} I/Os are not in the rows, because a host measured only a "
                  "part of their second", file=sys.stderr)  # fmt: skip
        for title, entries in (
            *reading.omissions(),
            *([("no end seen", first_names(lost))] if lost else ()),
        ):
            print(f"iopstui: {title}: {entries}", file=sys.stderr)

    def _slot(self, host: str, slot: HostInterval, in_totals: bool) -> None:
        """A host's second comes before the totals that include it."""
        self._runs[slot.number] = self._reading.run
        if in_totals:
            self._slots.setdefault(slot.number, {})[host] = slot
        elif (total := slot.sums.total) is not None:
            self._left += total.ios

    def _total_row(self, second: MergedInterval) -> Cells:
        names = [" ".join(map(self._name, hosts)) for hosts in (second.missing, second.incomplete)]
        slowest = second.sums.slowest
        name = self._name(slowest[1]) if slowest else ""
        return [*head_cells(second)[:-2], *names, *figure_cells(second.sums), None, name]

    def _host_rows(self, second: MergedInterval, slots: dict[str, HostInterval]) -> Iterator[Cells]:
        when = head_cells(second)[:3]
        for host in sorted({*slots, *second.missing, *second.incomplete}):
            name, slot = self._name(host), slots.get(host)
            absent = [
                name if host in hosts else "" for hosts in (second.missing, second.incomplete)
            ]
            figures = figure_cells(slot.sums if slot else HostSums())
            yield [name, *when, 1, int(slot is not None), *absent, *figures,
                   slot.util if slot else None, ""]  # fmt: skip
