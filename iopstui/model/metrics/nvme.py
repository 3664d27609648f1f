"""Figures of NVMe drives' own counters: what they are now, and what a run added to them.

A reading (``DriveReading``) has the drive's counters now and at the run's beginning, so a figure
needs only one reading. Counters of several drives are added up; temperature, wear and spare are
those of the worst one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from iopstui import format as units
from iopstui.model.figures.figure import BY_KEY, SECONDS, TEXT, Figure, Part, Rows
from iopstui.model.rates import delta
from iopstui.model.samples import DriveReading

NVME = "nvme"
"""First word of these figures' paths."""
DRIVES = "drives"
PROBLEM = "problem"
UNIT_BYTES = 512_000
"""A data unit of the SMART page: 1000 blocks of 512 bytes."""
_KELVIN = 273
MIN_WRITTEN_BYTES = 1 << 30
"""Bytes that a run must write before its write amplification is shown: below, the drive's own
background work would outweigh the run."""

Readings = Mapping[str, DriveReading]
_ReadFigure = Callable[[DriveReading], "float | None"]
_Combine = Callable[[Sequence[float]], float]


def counter_growth(reading: DriveReading, name: str, factor: int = 1) -> int | None:
    """How much a counter has grown since the run's beginning; ``None`` if unknown, or if it went
    backwards (another drive, or a reset counter)."""
    if name not in reading.counts or name not in reading.began:
        return None
    growth = delta(reading.counts[name], reading.began[name])
    return None if growth is None else int(growth) * factor


def _growth(name: str, factor: int = 1) -> _ReadFigure:
    return lambda reading: counter_growth(reading, name, factor)


def _latest(name: str, offset: int = 0) -> _ReadFigure:
    def read(reading: DriveReading) -> float | None:
        value = reading.counts.get(name)
        return None if value is None else value + offset

    return read


def _watts(reading: DriveReading) -> float | None:
    value = reading.counts.get("power_limit_mw")
    return None if value is None else value / 1000


def media_written(reading: DriveReading) -> int | None:
    """Bytes that the drive wrote to its media in the run: from OCP's page, else from the statistics
    of flexible data placement, else from the endurance group (in steps of 10^9 bytes)."""
    counters = (("media_bytes_written", 1), ("fdp_media_bytes_written", 1),
              ("group_media_gb_written", 10**9))  # fmt: skip
    growths = (counter_growth(reading, name, factor) for name, factor in counters)
    return next((value for value in growths if value is not None), None)


def amplification(reading: DriveReading) -> float | None:
    """Bytes written to the media for each byte that the host wrote in the run; ``None`` before
    ``MIN_WRITTEN_BYTES``."""
    host, media = counter_growth(reading, "units_written", UNIT_BYTES), media_written(reading)
    if host is None or media is None or host < MIN_WRITTEN_BYTES:
        return None
    return media / host


FIGURES: tuple[Figure, ...] = (
    Figure("temperature", "degC", "composite temperature", _latest("kelvin", -_KELVIN)),
    Figure("spare", "%", "spare blocks that are left", _latest("spare")),
    Figure("used", "%", "rated endurance used so far; may exceed 100", _latest("used")),
    Figure("critical_warning", "", "bits of the critical warning; 0: none",
           _latest("critical_warning")),
    Figure("media_errors", "", "media and data integrity errors in the run",
           _growth("media_errors")),
    Figure("error_entries", "", "new entries of the error log in the run",
           _growth("error_entries")),
    Figure("bytes_read", "B", "bytes read by hosts in the run, in steps of 512,000",
           _growth("units_read", UNIT_BYTES)),
    Figure("bytes_written", "B", "bytes written by hosts in the run, in steps of 512,000",
           _growth("units_written", UNIT_BYTES)),
    Figure("read_commands", "", "read commands in the run", _growth("read_commands")),
    Figure("write_commands", "", "write commands in the run", _growth("write_commands")),
    Figure("busy_min", "min", "time in the run with commands under way, in whole minutes",
           _growth("busy_min")),
    Figure("thermal_1", "", "times in the run that the drive began to throttle lightly (thermal "
           "management temperature 1)", _growth("thermal_1")),
    Figure("thermal_2", "", "times in the run that the drive began to throttle heavily (thermal "
           "management temperature 2)", _growth("thermal_2")),
    Figure("thermal_1_s", "s", "time in the run throttled lightly", _growth("thermal_1_s")),
    Figure("thermal_2_s", "s", "time in the run throttled heavily", _growth("thermal_2_s")),
    Figure("warning_min", "min", "time in the run above the warning temperature",
           _growth("warning_min")),
    Figure("critical_min", "min", "time in the run above the critical temperature",
           _growth("critical_min")),
    Figure("power_state", "", "power state; 0 takes the most power and is the fastest",
           _latest("power_state")),
    Figure("power_limit", "W", "most power that the drive says it takes in that state", _watts),
    Figure("media_bytes_written", "B", "written to the media in the run (OCP page, FDP statistics "
           "or endurance group)", media_written),
    Figure("write_amplification", "", "bytes written to the media for each byte that the hosts "
           "wrote in the run; null below 1 GiB", amplification),
)  # fmt: skip
BY_NAME = {figure.name: figure for figure in FIGURES}
WORST: Mapping[str, _Combine] = {
    "temperature": max, "spare": min, "used": max, "critical_warning": max,
}  # fmt: skip
"""How to combine readings over a run: the worst one counts, not the last one. Also used for several
drives."""
_COMBINED: Mapping[str, _Combine] = {**WORST, "power_state": min, "write_amplification": max}
"""How to combine figures that can't be added up over several drives."""


# bits of the critical warning (NVM Express Base Specification 2.0, figure 207)
CRITICAL_WARNINGS: tuple[tuple[int, str], ...] = (
    (0, "few spare blocks"), (1, "temperature"), (2, "unreliable"), (3, "read-only"),
    (4, "backup of volatile memory failed"), (5, "persistent memory unreliable"),
)  # fmt: skip


def warnings_of(reading: DriveReading) -> Iterator[str]:
    """A drive's warnings, and its errors since the run began, in a few words each."""
    bits = reading.counts.get("critical_warning", 0)
    yield from (f"warns: {warning}" for bit, warning in CRITICAL_WARNINGS if bits & 1 << bit)
    errors = counter_growth(reading, "media_errors")
    if errors:
        yield f"media errors +{errors}"
    throttled = [counter_growth(reading, name) or 0 for name in ("thermal_1", "thermal_2")]
    seconds = [counter_growth(reading, name) or 0 for name in ("thermal_1_s", "thermal_2_s")]
    if any(throttled) or any(seconds):
        yield f"throttled {sum(throttled)} times, {sum(seconds)} s"


def drive_figures(reading: DriveReading) -> dict[str, float | None]:
    return {figure.name: figure.value(reading) for figure in FIGURES}


def combined_figure(readings: Readings, name: str) -> float | None:
    """A figure of all drives; ``None`` if one lacks it."""
    values = [BY_NAME[name].value(reading) for reading in readings.values()]
    combine: _Combine = _COMBINED.get(name, sum)
    return combine(values) if values and None not in values else None


def _last(values: Sequence[float]) -> float:
    """The last value, which is enough because every reading has the growth since the run's
    beginning."""
    return values[-1]


DRIVE_ROWS: Rows = (
    *(replace(row, part=partial(combined_figure, name=row.name), join=WORST.get(row.name, _last))
      for row in FIGURES),
    Part(DRIVES, (*FIGURES, Figure(
        PROBLEM, "", "this drive: why it could not be read; null if it was",
        lambda reading: reading.problem or None, kind=TEXT,
    )), lambda readings: readings, many=BY_KEY, about="this drive"),
)  # fmt: skip
"""The figures of the drives' readings in a frame."""


class RunDrives:
    """The drives' figures over a run: the last reading, and the worst value of each figure in
    ``WORST``."""

    def __init__(self) -> None:
        self.readings: dict[str, DriveReading] = {}
        self._worst: dict[tuple[str, str], float] = {}

    def add(self, readings: Readings) -> None:
        self.readings.update(readings)
        for drive, reading in readings.items():
            for name in WORST:
                self._update_worst(drive, name, BY_NAME[name].value(reading))

    def join(self, later: RunDrives) -> None:
        """Count the readings that follow."""
        self.readings.update(later.readings)
        for (drive, name), value in later._worst.items():
            self._update_worst(drive, name, value)

    def _update_worst(self, drive: str, name: str, value: float | None) -> None:
        if value is not None:
            before = self._worst.get((drive, name), value)
            self._worst[drive, name] = WORST[name]((before, value))

    def rows(self) -> Iterator[tuple[str, dict[str, float | None]]]:
        for drive, reading in self.readings.items():
            worst = {name: self._worst.get((drive, name)) for name in WORST}
            yield drive, {**drive_figures(reading), **worst}


# Counters of newer kernels for NVMe controllers, paths and namespaces, as rates of an interval.
#
# The names are those of the kernel's files (linux/nvme/health.py), as published; not yet seen on a
# machine.


DIAG = "nvme_diag"
"""The name of these counters in a sample (KernelSample.more), and of the figures in a frame."""
NVME_COUNTERS: Mapping[str, tuple[str, str]] = {
    "reset_count": ("reset", "resets"),
    "reconnect_count": ("reconnect", "reconnects"),
    "multipath_failover_count": ("failover", "failovers"),
    "command_retry_count": ("command retried", "commands retried"),
    "command_error_count": ("command failed", "commands failed"),
    "io_requeue_no_usable_path_count": ("I/O queued again for lack of a usable path",
                                        "I/Os queued again for lack of a usable path"),
    "io_fail_no_available_path_count": ("I/O failed for lack of a path",
                                        "I/Os failed for lack of a path"),
}  # fmt: skip
"""Files in diag/ of an NVMe controller, path or namespace, with the words for one event and for
several."""
_END = "_count"
_CONTROLLER = re.compile(r"nvme\d+")


def figure_name(file: str) -> str:
    return file.removesuffix(_END)


DIAG_ROWS: Rows = tuple(Figure(figure_name(file), "1/s", several, over=SECONDS)
                   for file, (_, several) in NVME_COUNTERS.items())  # fmt: skip


def counter_name(file: str, name: str) -> str:
    return f"{file} {name}"


def diag_rates(
    now: Mapping[str, int] | None, before: Mapping[str, int] | None, seconds: float
) -> dict[str, dict[str, float]] | None:
    """Rates by object and figure; ``None`` if nothing was read twice. A counter that went backwards
    belongs to a new object: it has no rate in this interval."""
    if not now or not before:
        return None
    objects: dict[str, dict[str, float]] = {}
    for counter, value in now.items():
        file, _, name = counter.partition(" ")
        growth = delta(value, before.get(counter))
        if growth is not None:
            objects.setdefault(name, {})[figure_name(file)] = growth / seconds
    return objects or None


def diag_texts(name: str, growths: Mapping[str, int | None]) -> Iterator[str]:
    """The counts of an object, by file, in words. A failed command of a controller may have been a
    monitoring program's request, not I/O."""
    for file, (one, several) in NVME_COUNTERS.items():
        growth = growths.get(file)
        if growth and not (file == "command_error_count" and _CONTROLLER.fullmatch(name)):
            yield units.counted(growth, one, several)
