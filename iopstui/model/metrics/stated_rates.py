"""Impossible rates in fio's final report: they contradict its own seconds, or its latency and queue
depth. (fio 3.33 with verify_backlog counts the time of reads as 1 ms.)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iopstui.model.fio.counts import max_in_flight
from iopstui.model.fio.rows import flag
from iopstui.model.metrics.frame import RESET, UNCOUNTED, Frame
from iopstui.model.samples import FioStatus

TOLERANCE = 0.2
MIN_SECONDS = 1.0
COVERED = 0.8
MANY_TIMES = 10


@dataclass(frozen=True, slots=True)
class ContradictedRate:
    """A direction whose stated rate is impossible, and the reason in words."""

    direction: str
    why: str


class SecondRates:
    """The rates of a run's seconds, by direction, without fio's ramp."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._ios: dict[str, int] = {}
        self._active_s: dict[str, float] = {}

    def add(self, frame: Frame) -> None:
        fio = frame.fio
        if fio is None or not fio.seconds or UNCOUNTED & frame.flags:
            return
        if RESET in frame.flags:
            self.__init__()  # type: ignore[misc]
        self._seconds += fio.seconds
        for name, part in fio.directions.items():
            if part.ios:
                self._ios[name] = self._ios.get(name, 0) + part.ios
                self._active_s[name] = self._active_s.get(name, 0.0) + fio.seconds

    def contradicted(self, summary: Mapping[str, Any]) -> list[ContradictedRate]:
        """The rates of ``fio_summary`` that differ from those of the seconds by more than 20 %:
        lower than over all seconds, or higher than in the seconds with I/O and beyond what the
        queue depth allows (I/O may have filled only a part of a second)."""
        found = []
        for name, part in summary["total"].items():
            stated, active_s = part.get("iops"), self._active_s.get(name, 0.0)
            if stated is None and part.get("runtime_ms") == 0:
                stated = 0.0
            if stated is None or active_s < MIN_SECONDS:
                continue
            lowest, highest = self._ios[name] / self._seconds, self._ios[name] / active_s
            is_covered = self._seconds >= COVERED * part["runtime_ms"] / 1000
            too_low = is_covered and stated < lowest * (1 - TOLERANCE)
            too_high = stated > highest * (1 + TOLERANCE) and _beyond_depth(
                summary, name, stated > MANY_TIMES * highest
            )
            if too_low or too_high:
                found.append(ContradictedRate(
                    name, f"fio's final {name} rate of {stated:,.0f} IOPS contradicts its own "
                    f"seconds, which have {highest:,.0f}; it is not used to judge the run",
                ))  # fmt: skip
        return found


def _beyond_depth(summary: Mapping[str, Any], name: str, unknown: bool) -> bool:
    """Whether a direction's rate would need more I/Os in flight than the rows can have; ``unknown``
    is returned if latency or depth are not known."""
    needed, depth = 0.0, 0
    for row in summary["rows"]:
        part = row["directions"].get(name)
        if part is None:
            continue
        mean_ns = part.get("lat_mean_ns") or part.get("clat_mean_ns")
        if not mean_ns or not row.get("depth"):
            return unknown
        needed += part["iops"] * mean_ns / 1e9
        depth += row["depth"]
    return needed > depth * (1 + TOLERANCE) + 1


def impossible_rates(status: FioStatus) -> list[ContradictedRate]:
    """The rates of a final document that contradict its counts, its latencies or its depth."""
    return [*_beyond_counts(status), *_beyond_depth_of_jobs(status)]


def _beyond_counts(status: FioStatus) -> Iterator[ContradictedRate]:
    """The rates that are not the counts over the run time, as fio's always should be."""
    untimed: dict[str, int] = {}
    for job in status.jobs:
        for name, part in job.directions.items():
            if not part.runtime_ms:
                if part.issued and not part.iops:
                    untimed[name] = untimed.get(name, 0) + part.issued
                continue
            # fio may state whole KiB/s; before 3.0 it has no count of I/Os
            for title, stated, count, rounding in (
                ("IOPS", part.iops, part.issued, 1),
                ("bytes/s", part.bw_bytes, part.io_bytes, 1024),
            ):
                rate = 1000 * count / part.runtime_ms
                if count and abs(stated - rate) > TOLERANCE * rate + rounding:
                    yield ContradictedRate(
                        name, f"fio's final {name} rate of {stated:,.0f} {title} cannot be: its "
                        f"own counts give {rate:,.0f}",
                    )  # fmt: skip
    for name, ios in untimed.items():
        yield ContradictedRate(name, f"fio states a run time of 0 for {ios:,} I/Os ({name}), so "
                                     "their rate is not known")  # fmt: skip


def _beyond_depth_of_jobs(status: FioStatus) -> Iterator[ContradictedRate]:
    """The rates that would need more I/Os in flight than the job can have (N = X·R). Rows of a
    group whose job file is not known are not checked: its depth is unknown."""
    for job in status.jobs:
        if job.in_flight is None and flag(job.options, "group_reporting"):
            continue
        depth = max_in_flight(job)
        for name, direction in job.directions.items():
            latency = direction.lat or direction.clat
            if latency is None or not latency.count:
                continue
            needed = direction.iops * latency.mean_ns / 1e9
            if needed > depth * (1 + TOLERANCE) + 1:
                yield ContradictedRate(
                    name, f"fio's final {name} rate of {direction.iops:,.0f} IOPS cannot be: at "
                    f"{latency.mean_ns / 1e6:.3g} ms it would need {needed:,.0f} I/Os in flight, "
                    f"and iodepth × numjobs allows {depth}",
                )  # fmt: skip
