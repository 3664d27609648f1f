"""Read a file of hosts' JSON lines once and add them up, for every report on many hosts."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.features.reports.redact import Redactor
from iopstui.fleet.deduplication import Deduplicator, without_repeats
from iopstui.fleet.fleet_events import FLEET
from iopstui.fleet.merging.merger import MergedInterval, Merger
from iopstui.fleet.merging.sums import MalformedRow
from iopstui.format import counted
from iopstui.output.fleet.labelled_rows import file_rows
from iopstui.text import printable

LINES_EXAMINED = 400
LONG_SAMPLE_FACTOR = 1.5
MAX_WALL_MS = 1e15
Object = dict[str, Any]


class Names:
    """Names of hosts in a report: their own, or numbers if it is redacted."""

    def __init__(self, redact: bool) -> None:
        self._redact = redact
        self._numbers: dict[str, int] = {}

    def __call__(self, host: str) -> str:
        """The name to show for a host."""
        if not self._redact:
            return printable(host)
        return f"host {self._numbers.setdefault(host, len(self._numbers) + 1)}"

    def text(self, text: str) -> str:
        """A text, without the names of hosts and other private words if it is redacted."""
        if not self._redact:
            return printable(text)
        private = Redactor()
        private.learn([{"host": host} for host in self._numbers])
        return str(private.redacted(printable(text)))


class Reading:
    """``seconds`` may be taken once. ``name`` says what hosts are called, ``run`` is the number of
    the run that the lines read last are of (``None``: the file doesn't say); ``broken`` lines were
    none of ours."""

    def __init__(self, path: Path, redact: bool, keep_bins: bool) -> None:
        self.path = path
        self.name = Names(redact)
        self.interval_s = interval_of(path)
        self.merger = Merger(self.interval_s, keep_bins=keep_bins)
        self.run: int | None = None
        self.broken_lines = 0
        self._deduplicator = Deduplicator()
        self._unread = False

    @property
    def repeated(self) -> int:
        """Frames and totals that came twice."""
        return sum(self._deduplicator.repeat_counts.values())

    def _correct(self, name: str, row: Object) -> None:
        """By how much a host's clock is ahead, as it was told at its start: live its seconds were
        put where they belong by that."""
        offset: Any = row.get("offset_ms")
        host = self.merger.hosts.get(name)
        is_valid = type(offset) in (int, float) and abs(offset) < MAX_WALL_MS
        if row.get("event") == "executed" and host is not None and is_valid:
            host.offset_ms = float(offset)

    def omissions(self) -> Iterator[tuple[str, str]]:
        """Lines read but not part of the seconds, in words."""
        if self.repeated:
            yield "counted once", f"{counted(self.repeated, 'second')} of hosts that are duplicate"
        if self.broken_lines:
            yield "left out", f"{counted(self.broken_lines, 'line')} that iopstui did not write"
        if self._unread:
            yield "not read", "lines that are not JSON objects, or cut off"

    def _report_bad_line(self, message: str) -> None:
        """Note that the file has lines that are not JSON."""
        self._unread = True

    def seconds(
        self, note: Callable[[str, Object], None] = lambda host, row: None
    ) -> Iterator[MergedInterval]:
        """Closed seconds in order; ``note`` gets each line. UsageError at the end of a file that
        has no frame."""
        merger = self.merger
        for name, row in without_repeats(
            file_rows(self.path, "", self._report_bad_line), self._deduplicator
        ):
            try:
                merger.feed(name, row)
            except MalformedRow:
                self.broken_lines += 1
                continue
            if row.get("event") == FLEET:
                self.run = (self.run or 0) + 1
            self._correct(name, row)
            if name in merger.hosts:
                # the first is host 1, in whatever format
                self.name(name)
            note(name, row)
            yield from merger.close_seconds(early=False)
        yield from merger.finish()
        if not (merger.merged_rows or any(host.frames for host in merger.hosts.values())):
            broken = counted(self.broken_lines, "line")
            none = f" ({broken} that iopstui did not write)" if self.broken_lines else ""
            raise UsageError(
                f"{printable(str(self.path))} has JSON lines of iopstui, but no frames{none}.",
                "To record hosts: iopstui fleet HOSTS --job JOB --record FILE",
            )


def interval_of(path: Path) -> float:
    """The length of a row's second: that of the totals in it, or what holds its frames."""
    intervals = []
    for _, row in file_rows(path, "", lambda message: None):
        interval: Any = row.get("interval_s")
        seconds: Any = row.get("seconds")
        if row.get("event") == "total" and _is_length(interval):
            return float(interval)
        if row.get("event") == "frame" and _is_length(seconds):
            intervals.append(float(seconds))
        if len(intervals) >= LINES_EXAMINED:
            break
    middle = statistics.median(intervals) if intervals else 1.0
    return float(round(middle)) if middle > LONG_SAMPLE_FACTOR else 1.0


def _is_length(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= 60
