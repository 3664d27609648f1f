"""Check a host's frames against fio's final counts, from JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iopstui.fleet.merging.sums import HostSums, MalformedRow, Object, get_object, scaled_integer
from iopstui.model.fio.counts import SUBMISSIONS
from iopstui.model.metrics.frame import RESET
from iopstui.model.metrics.paths import TOTAL
from iopstui.model.metrics.summary import DIFFERS, EXACT, UNCHECKED, is_final
from iopstui.model.samples import MIXED


class HostTotals:
    """I/Os and bytes of a host's frames, and fio's final ones: submissions minus failed I/Os,
    which the frames do not use (model/metrics/summary.py, Certificate).

    ``finals`` is ``None`` until fio's final report was fed; several runs are added up.
    """

    def __init__(self) -> None:
        self.ios = 0
        self.bytes = 0
        self.finals: tuple[int, int | None] | None = None
        self.checked = True
        self._under_way = [0, 0]
        self._run = [0, 0]

    def add(self, fio: Mapping[str, Any], flags: set[str], sums: HostSums) -> None:
        """Count a frame. What came before fio's counters began again (a ramp) is dropped."""
        total = sums.fio.get(TOTAL)
        if total is None:
            # a frame too short to have rates still has counts
            part = get_object(fio, TOTAL) if fio else {}
            self.count(scaled_integer(part.get("ios")), scaled_integer(part.get("bytes")), flags)
        else:
            self.count(total.ios, total.bytes, flags)

    def count(self, ios: int, moved: int, flags: set[str]) -> None:
        """``add`` for what a frame's total says."""
        if RESET in flags:
            self.ios, self.bytes = self.ios - self._run[0], self.bytes - self._run[1]
            self._run = [0, 0]
        self.ios, self.bytes = self.ios + ios, self.bytes + moved
        run = self._run
        run[0] += ios
        run[1] += moved

    def finished(self, row: Mapping[str, Any]) -> None:
        """A run is over: fio's final figures (step_finished). Malformed."""
        summary = get_object(row, "summary")
        if not summary:
            return
        rows = summary.get("rows")
        if not isinstance(rows, list):
            raise MalformedRow("a summary has no rows")
        self.checked &= is_final(summary)
        ios, moved = 0, 0
        sizes_known = True
        for summary_row in rows:
            completed, size, checked = _of_row(summary_row)
            ios += completed
            moved += completed * size
            sizes_known &= bool(size) or not completed
            self.checked &= checked
            if summary_row.get("ramp"):
                depth = scaled_integer(summary_row.get("depth"))
                self._under_way[0] += depth
                self._under_way[1] += depth * size
        before = self.finals or (0, 0)
        all_sized = sizes_known and before[1] is not None
        self.finals = (before[0] + ios, (before[1] or 0) + moved if all_sized else None)
        self._run = [0, 0]

    @property
    def verdict(self) -> str:
        """EXACT, DIFFERS or UNCHECKED."""
        if self.finals is None or not self.checked:
            return UNCHECKED
        ios, moved = self.finals
        return EXACT if self.ios == ios and moved in (None, self.bytes) else DIFFERS

    @property
    def ramp(self) -> bool:
        """Whether what differs can have been under way when a ramp ended: fio's count begins
        there (model/metrics/summary.py)."""
        if self.finals is None or self.verdict != DIFFERS:
            return False
        ios, moved = self.finals
        bytes_explained = moved is None or abs(self.bytes - moved) <= self._under_way[1]
        return bytes_explained and abs(self.ios - ios) <= self._under_way[0]

    def as_object(self) -> Object:
        """Return an object for JSON lines."""
        ios, moved = self.finals or (None, None)
        return {
            "ios": self.ios, "bytes": self.bytes, "fio_ios": ios, "fio_bytes": moved,
            "verdict": self.verdict,
        }  # fmt: skip


def _of_row(row: Any) -> tuple[int, int, bool]:
    """Completions by another counter than the frames', the block size (0: several), and whether
    there is such a counter."""
    if not isinstance(row, dict):
        raise MalformedRow("a summary's row is not an object")
    parts = get_object(row, "directions")
    names = [name for name in parts if name != MIXED] or [*parts]
    directions = [get_object(parts, name) for name in names]
    issued = sum(scaled_integer(part.get("total_ios")) for part in directions)
    checked = all(part.get("counted_by") != SUBMISSIONS for part in directions)
    failed = scaled_integer(row.get("failed"))
    return max(0, issued - failed), scaled_integer(row.get("block_size")), checked
