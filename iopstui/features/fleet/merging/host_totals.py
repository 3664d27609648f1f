"""Check a host's frames against fio's final counts, from JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iopstui.features.fleet.merging.sums import (
    HostSums,
    MalformedRow,
    Object,
    get_object,
    scaled_integer,
)
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
        self.is_checked = True
        self._under_way = [0, 0]
        self._run_counts = [0, 0]

    def add(self, fio: Mapping[str, Any], flags: set[str], sums: HostSums) -> None:
        """Count a frame. What came before fio's counters began again (a ramp) is dropped."""
        total = sums.fio.get(TOTAL)
        if total is None:
            # a frame too short to have rates still has counts
            part = get_object(fio, TOTAL) if fio else {}
            self.add_counts(
                scaled_integer(part.get("ios")), scaled_integer(part.get("bytes")), flags
            )
        else:
            self.add_counts(total.ios, total.bytes, flags)

    def add_counts(self, ios: int, byte_count: int, flags: set[str]) -> None:
        """``add`` for what a frame's total says."""
        if RESET in flags:
            self.ios, self.bytes = self.ios - self._run_counts[0], self.bytes - self._run_counts[1]
            self._run_counts = [0, 0]
        self.ios, self.bytes = self.ios + ios, self.bytes + byte_count
        run = self._run_counts
        run[0] += ios
        run[1] += byte_count

    def add_final(self, row: Mapping[str, Any]) -> None:
        """A run is over: fio's final figures (step_finished). Malformed."""
        summary = get_object(row, "summary")
        if not summary:
            return
        rows = summary.get("rows")
        if not isinstance(rows, list):
            raise MalformedRow("a summary has no rows")
        self.is_checked &= is_final(summary)
        ios, byte_count = 0, 0
        sizes_known = True
        for summary_row in rows:
            completed, size, checked = _final_counts(summary_row)
            ios += completed
            byte_count += completed * size
            sizes_known &= bool(size) or not completed
            self.is_checked &= checked
            if summary_row.get("ramp"):
                depth = scaled_integer(summary_row.get("depth"))
                self._under_way[0] += depth
                self._under_way[1] += depth * size
        previous = self.finals or (0, 0)
        all_sized = sizes_known and previous[1] is not None
        self.finals = (previous[0] + ios, (previous[1] or 0) + byte_count if all_sized else None)
        self._run_counts = [0, 0]

    @property
    def verdict(self) -> str:
        """EXACT, DIFFERS or UNCHECKED."""
        if self.finals is None or not self.is_checked:
            return UNCHECKED
        ios, byte_count = self.finals
        return EXACT if self.ios == ios and byte_count in (None, self.bytes) else DIFFERS

    @property
    def ramp(self) -> bool:
        """Whether what differs can have been under way when a ramp ended: fio's count begins
        there (model/metrics/summary.py)."""
        if self.finals is None or self.verdict != DIFFERS:
            return False
        ios, byte_count = self.finals
        bytes_explained = byte_count is None or abs(self.bytes - byte_count) <= self._under_way[1]
        return bytes_explained and abs(self.ios - ios) <= self._under_way[0]

    def as_object(self) -> Object:
        """Return an object for JSON lines."""
        ios, byte_count = self.finals or (None, None)
        return {
            "ios": self.ios, "bytes": self.bytes, "fio_ios": ios, "fio_bytes": byte_count,
            "verdict": self.verdict,
        }  # fmt: skip


def _final_counts(row: Any) -> tuple[int, int, bool]:
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
