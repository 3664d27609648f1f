"""Assign each frame of a host to the second to which it belongs.

A host's frames do not begin with the seconds of the clock, so each frame counts as a whole for the
second that contains most of it. A slightly late frame makes no gap. The time is the host's
monotonic clock, tied to its wall clock by its first frame, so setting the wall clock later has no
effect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iopstui.features.fleet.merging.encoded_frame import EncodedFrame, FrameSum
from iopstui.features.fleet.merging.sums import (
    DISK_RATES,
    HostSums,
    MalformedRow,
    Object,
    device_of_frame,
    frame_sums,
    get_object,
    scaled_integer,
)
from iopstui.model.figures.figure import DEVICE, TOTAL
from iopstui.model.fio.rows import SUBMISSIONS
from iopstui.model.metrics.frame import FINAL, LATE, RAMP, RESET
from iopstui.model.metrics.summary import DIFFERS, EXACT, UNCHECKED, is_final
from iopstui.model.samples import MIXED

COMPLETE_SHARE = 0.8
"""A host counts in a second only if at least this share of the second was measured."""
CLOCK_JUMP_MS = 500.0
# how far a frame may be ahead of or behind its second, in intervals
MAX_EARLY, MAX_BEHIND = 1.25, 0.75
# an interval may be this many times as long as the seconds
MAX_LENGTH_FACTOR = 1.5
MAX_WALL_S = 1e10
MAX_CLOCK_DISTANCE_S = 60.0
FRAMES_OF_A_HOST = 16
"""How many frames of a host are collected before they are added up: 10 MB for a thousand hosts."""


@dataclass(slots=True)
class HostInterval:
    """A host's figures in one second, of which ``measured_s`` seconds were measured (``complete``:
    enough). ``data`` is as received; ``flags`` are those of its frames, ``util`` is the device's in
    the newest frame (percent)."""

    host: str
    number: int
    data: HostSums | EncodedFrame | None = None
    measured_s: float = 0.0
    flags: set[str] = field(default_factory=set)
    has_gap: bool = False
    is_combined: bool = False
    util: float | None = None

    @property
    def sums(self) -> HostSums:
        if not isinstance(self.data, HostSums):
            self.data = self.data.sums(self.host) if self.data is not None else HostSums()
        return self.data

    def add(self, data: HostSums | EncodedFrame, seconds: float) -> None:
        """Add another frame: counts are added, rates are averaged over both."""
        if not self.flags and not self.measured_s:
            # usually the only frame: use it as it is, because adding histograms takes long
            self.data, self.measured_s = data, seconds
            return
        sums = data if isinstance(data, HostSums) else data.sums(self.host)
        if not self.is_combined:
            self.is_combined, first = True, self.sums
            self.data = HostSums()
            self.sums.add(first)
        previous_s, self.measured_s = self.measured_s, self.measured_s + seconds
        kernel, numbers = self.sums.kernel, sums.kernel.numbers
        both_measured = kernel.hosts and sums.kernel.hosts
        self.sums.add(sums)
        self.sums.device.set_single_host_rates()
        if not previous_s or not self.measured_s:
            return
        for part in self.sums.fio.values():
            part.set_rates(self.measured_s)
        if not both_measured:
            return
        kernel.numbers["hosts"] = 1
        for name in DISK_RATES:
            # ``numbers`` are already added, so subtract them to get the earlier value
            old = kernel.numbers[name] - numbers[name]
            mean = (old * previous_s + numbers[name] * seconds) / self.measured_s
            kernel.numbers[name] = round(mean)

    def complete(self, interval_s: float) -> bool:
        """Whether the second can be counted."""
        return not self.has_gap and self.measured_s >= COMPLETE_SHARE * interval_s


MAX_UTIL = 1e6


class HostTimeline:
    """Follows one host. ``feed`` takes its frames in order and returns the seconds that are over.
    ``offset_ms`` is how far its wall clock is ahead of ours (0: not known). ``our_clock_s`` is our
    clock, which its time must be near (``None`` for a recording, in which any time is valid).
    ``totals`` has bins if ``keep_bins``. ``io_totals`` compares its frames with fio's final count;
    ``outcome`` says how its last run ended ("" while it is running)."""

    def __init__(self, name: str, interval_s: float, keep_bins: bool = False) -> None:
        self.name = name
        self.offset_ms = 0.0
        self.our_clock_s: float | None = None
        self.outcome = ""
        self.first: int | None = None
        self.last: int | None = None
        self.has_ended = False
        self._totals = HostSums()
        self._frame_sum = FrameSum(many=FRAMES_OF_A_HOST)
        self.measured_s = 0.0
        self.io_totals = HostTotals()
        self.jumped_ms = 0.0
        self.frames = 0
        self.long_frames = 0
        self.longest_s = 0.0
        self._keep_bins = keep_bins
        self._interval_s = interval_s
        self._origin_ms: float | None = None
        self._newest_t: float | None = None
        self._open_interval: HostInterval | None = None

    @property
    def open_second(self) -> int | None:
        """The number of the second that has begun and is not returned yet."""
        return self._open_interval.number if self._open_interval is not None else None

    def begin_session(self) -> None:
        """Begin a session: the clock starts anew."""
        self._origin_ms = self._newest_t = None
        self.jumped_ms = 0.0

    def feed(self, row: Mapping[str, Any]) -> list[HostInterval]:
        """Process a frame. Returns the seconds that it completes. Raises MalformedRow."""
        flags = _flags(row)
        if row.get("sums") is not None:
            return self._feed_sums(row, flags)
        fio = get_object(row, "fio")
        seconds = _seconds(fio.get("seconds") if fio else row.get("seconds"))
        if not fio and _is_empty_frame(row, flags):
            return []
        number = self._number(self._middle_s(row, seconds), seconds)
        util = _util(get_object(get_object(row, "kernel"), TOTAL))
        sums = frame_sums(self.name, row, seconds) if seconds else HostSums()
        # nothing below raises, so a frame is either processed completely or not at all
        self.frames += 1
        self._newest_t = row["t"]
        self.io_totals.add(fio, flags, sums)
        if RAMP not in flags:
            self.measured_s += seconds if fio else 0.0
            self._totals.add(sums, self._keep_bins)
        return self._add_interval(sums, number, seconds, flags, util, bool(fio))

    def _feed_sums(self, row: Mapping[str, Any], flags: set[str]) -> list[HostInterval]:
        """Process a frame that was sent as sums."""
        probed = row.get(DEVICE) is not None
        frame = EncodedFrame(row["sums"], device_of_frame(row) if probed else None)
        fio = frame.fio
        seconds = _seconds(row.get("seconds"))
        if not seconds:
            raise MalformedRow("a frame with sums has no length")
        if not fio and _is_empty_frame(row, flags):
            return []
        number = self._number(self._middle_s(row, seconds), seconds)
        self.frames += 1
        self._newest_t = row["t"]
        self.io_totals.add_counts(frame.ios, frame.bytes, flags)
        if RAMP not in flags:
            self.measured_s += seconds if fio else 0.0
            self._frame_sum.add(frame, self.name, self._keep_bins)
        return self._add_interval(frame, number, seconds, flags, _util(row), fio)

    @property
    def totals(self) -> HostSums:
        """The sums of its frames, without those in fio's ramp."""
        self._totals.add(self._frame_sum.drain(), self._keep_bins)
        return self._totals

    def _add_interval(
        self, data: HostSums | EncodedFrame, number: int, seconds: float, flags: set[str],
        util: float | None, fio: bool,
    ) -> list[HostInterval]:  # fmt: skip
        completed = self._begin_interval(number)
        interval = self._open_interval
        assert interval is not None
        interval.add(data, seconds)
        if flags:
            interval.flags |= flags
            interval.has_gap |= LATE in flags and not fio
        interval.util = util
        if interval.measured_s >= COMPLETE_SHARE * self._interval_s or interval.has_gap:
            self._open_interval = None
            completed.append(interval)
        return completed

    def expect(self, wall_ms: float) -> None:
        """Expect the start of its fio at this time of our clock. The host counts as missing until
        it reports."""
        if self.first is None:
            self.first = math.floor(wall_ms / 1000 / self._interval_s + 0.5)

    def end(self) -> list[HostInterval]:
        """End the host's run. Returns the seconds that this completes."""
        self.has_ended = True
        return self.flush()

    def run_sums(self) -> HostSums:
        """``totals`` with the rates of the whole run, because rates of frames can't be added."""
        sums = self.totals
        sums.device.set_single_host_rates()
        for part in sums.fio.values():
            part.set_rates(self.run_s)
        return sums

    @property
    def run_s(self) -> float:
        """How long the host measured (s). This is fio's own run time if the frames contain all of
        its I/Os, because lengths of frames are wrong if the wall clock was set."""
        return (self.io_totals.verdict == EXACT and self.io_totals.runtime_s) or self.measured_s

    def _begin_interval(self, number: int) -> list[HostInterval]:
        completed = []
        if self._open_interval is not None and self._open_interval.number != number:
            completed = self.flush()
        if self._open_interval is None:
            self._open_interval = HostInterval(self.name, number)
            self._expected_from(number)
        self.last = number
        return completed

    def _expected_from(self, number: int) -> None:
        """Note that the host is in this second. It is expected in all later ones, except between
        two runs."""
        if self.first is None or self.has_ended:
            self.first, self.has_ended = number, False
        self.last = number

    def flush(self) -> list[HostInterval]:
        """Return the unfinished second with what has arrived so far."""
        interval, self._open_interval = self._open_interval, None
        return [interval] if interval is not None else []

    def _middle_s(self, row: Mapping[str, Any], seconds: float) -> float:
        """The time of the frame's middle, in seconds since 1970 by our clock."""
        wall_ms, t = row.get("wall_ms"), row.get("t")
        if not isinstance(wall_ms, (int, float)) or not isinstance(t, (int, float)):
            raise MalformedRow("a frame has no time")
        # a JSON number may be NaN, or too large for a float
        if not (0 <= wall_ms < MAX_WALL_S * 1000 and abs(t) < MAX_WALL_S):
            raise MalformedRow("a frame has an impossible time")
        if self._newest_t is not None and t <= self._newest_t:
            raise MalformedRow("a frame is duplicate or out of order")
        origin = wall_ms - t * 1000
        if self._origin_ms is None:
            self._origin_ms = origin
        elif abs(origin - self._origin_ms - self.jumped_ms) > CLOCK_JUMP_MS:
            self.jumped_ms = origin - self._origin_ms
        at_s = (self._origin_ms - self.offset_ms) / 1000 + t
        if self.our_clock_s is not None and abs(at_s - self.our_clock_s) > MAX_CLOCK_DISTANCE_S:
            raise MalformedRow("a frame has an impossible time")
        return at_s - seconds / 2

    def _number(self, middle_s: float, seconds: float) -> int:
        """The number (in units of ``interval_s``) of the second to which a frame belongs, counted
        from 1970."""
        if seconds > MAX_LENGTH_FACTOR * self._interval_s:
            self.long_frames, self.longest_s = self.long_frames + 1, max(self.longest_s, seconds)
        position = middle_s / self._interval_s
        if self._open_interval is not None or self.last is None:
            return max(math.floor(position), self.last or 0)
        following = self.last + 1
        ahead = position - (following + 0.5)
        if -MAX_EARLY <= ahead <= MAX_BEHIND:
            return following
        # long after the last second, or so early that two frames would be in one second
        return max(math.floor(position), self.last)


def _is_empty_frame(row: Mapping[str, Any], flags: set[str]) -> bool:
    """Whether the frame has no data of fio, because fio has not reported yet or its last report
    came twice."""
    return FINAL in flags or (bool(row.get("step")) and LATE not in flags)


def _util(row: Mapping[str, Any]) -> float | None:
    value = row.get("util")
    return float(value) if isinstance(value, int | float) and 0 <= value <= MAX_UTIL else None


def _flags(row: Mapping[str, Any]) -> set[str]:
    flags = row.get("flags")
    if not flags:
        return set()
    if not isinstance(flags, list) or not all(isinstance(flag, str) for flag in flags):
        raise MalformedRow("a frame has impossible flags")
    return {*flags}


def _seconds(value: Any) -> float:
    if value is None:
        return 0.0
    if type(value) not in (int, float) or not 0 <= value < MAX_WALL_S:
        raise MalformedRow("a frame has an impossible length")
    return float(value)


# Compare a host's frames with fio's final counts, both from JSON lines.


class HostTotals:
    """I/Os and bytes of a host's frames, and those that fio reports at the end: submissions minus
    failed I/Os, from which the frames are not computed (model/metrics/summary.py, Certificate).

    ``finals`` is ``None`` until fio's final report has arrived; several runs are added up."""

    def __init__(self) -> None:
        self.ios = 0
        self.bytes = 0
        self.finals: tuple[int, int | None] | None = None
        self.is_checked = True
        self.runtime_s = 0.0
        """fio's own run time, summed over the runs; 0 if it is not known for all of them."""
        self._under_way = [0, 0]
        self._run_counts = [0, 0]

    def add(self, fio: Mapping[str, Any], flags: set[str], sums: HostSums) -> None:
        """Count a frame. If fio's counters have restarted (after a ramp), earlier frames are
        dropped."""
        total = sums.fio.get(TOTAL)
        if total is None:
            # even a frame that is too short for rates has counts
            part = get_object(fio, TOTAL) if fio else {}
            self.add_counts(
                scaled_integer(part.get("ios")), scaled_integer(part.get("bytes")), flags
            )
        else:
            self.add_counts(total.ios, total.bytes, flags)

    def add_counts(self, ios: int, byte_count: int, flags: set[str]) -> None:
        """``add`` for the counts of a frame's total."""
        if RESET in flags:
            self.ios, self.bytes = self.ios - self._run_counts[0], self.bytes - self._run_counts[1]
            self._run_counts = [0, 0]
        self.ios, self.bytes = self.ios + ios, self.bytes + byte_count
        run = self._run_counts
        run[0] += ios
        run[1] += byte_count

    def add_final(self, row: Mapping[str, Any]) -> None:
        """Add fio's final figures at a run's end (step_finished). Raises MalformedRow."""
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
        runtime_s = _runtime_s(summary)
        known = self.finals is None or self.runtime_s
        self.runtime_s = self.runtime_s + runtime_s if known and runtime_s else 0.0
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
        """Whether the difference may be I/Os that were in flight when a ramp ended, because fio's
        count begins there (model/metrics/summary.py)."""
        if self.finals is None or self.verdict != DIFFERS:
            return False
        ios, byte_count = self.finals
        bytes_explained = byte_count is None or abs(self.bytes - byte_count) <= self._under_way[1]
        return bytes_explained and abs(self.ios - ios) <= self._under_way[0]

    def as_object(self) -> Object:
        """The totals for JSON lines."""
        ios, byte_count = self.finals or (None, None)
        return {
            "ios": self.ios, "bytes": self.bytes, "fio_ios": ios, "fio_bytes": byte_count,
            "verdict": self.verdict,
        }  # fmt: skip


def _runtime_s(summary: Mapping[str, Any]) -> float:
    """The run time of all rows, which ran at the same time; 0 if unknown."""
    whole = get_object(summary, "all") or {}
    runtime_ms: Any = whole.get("runtime_ms")
    is_known = isinstance(whole.get("iops"), int | float) and isinstance(runtime_ms, int | float)
    return runtime_ms / 1000 if is_known and 0 < runtime_ms < MAX_WALL_S * 1000 else 0.0


def _final_counts(row: Any) -> tuple[int, int, bool]:
    """I/Os and bytes by a counter that the frames do not use, the block size (0: several), and
    whether there is such a counter."""
    if not isinstance(row, dict):
        raise MalformedRow("a summary's row is not an object")
    parts = get_object(row, "directions")
    names = [name for name in parts if name != MIXED] or [*parts]
    directions = [get_object(parts, name) for name in names]
    issued = sum(scaled_integer(part.get("total_ios")) for part in directions)
    checked = all(part.get("counted_by") != SUBMISSIONS for part in directions)
    failed = scaled_integer(row.get("failed"))
    return max(0, issued - failed), scaled_integer(row.get("block_size")), checked
