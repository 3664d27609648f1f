"""Evaluate the figures that --expect and --abort of a fleet name.

A figure is named as for one host (model/experiment/expectation.py): ``iops``, ``read.bw``,
``write.clat.p99``; a percentile without a kind is of clat: ``read.p99``. ``each.`` in front means
every single host. ``device.read.p99`` comes from the hosts' probes."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from iopstui.errors import UsageError
from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.merging.sums import HostSums
from iopstui.model.experiment.expectation import (
    Expectation,
    parse_expectation,
    parse_figure_and_value,
)
from iopstui.model.figures.figure import DEVICE, TOTAL
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.probe import KINDS
from iopstui.model.watch.trigger import parse_duration

EACH_PREFIX = "each."
_SHORT_NAME = re.compile(r"(?:((?:fio\.)?(?:read|write|trim|mixed|total))\.)?(p[0-9.]+|mean|max)")
_ABORT_PATTERN = re.compile(r"\s*(\S+?)\s*(>=|<=|>|<)\s*(\S+)(?:\s+for\s+(\S+))?\s*")
_DEVICE_FIGURES = frozenset(("iops", "mean", "max", *map(percentile_name, PERCENTILES)))
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le
}  # fmt: skip


def full_name(name: str) -> str:
    """The full form of a figure's name: "read.clat.p99" for "read.p99"; other names are
    unchanged."""
    match = _SHORT_NAME.fullmatch(name)
    if match is None:
        return name
    return f"{match[1]}.clat.{match[2]}" if match[1] else f"clat.{match[2]}"


def figure(sums: HostSums, path: Sequence[str]) -> float | None:
    """The figure at a field's path ("fio", "read", "clat", "p99"); ``None`` if it was not
    measured."""
    if not _is_summed(path):
        return None
    if path[0] == DEVICE:
        part, kind = sums.device.part(path[1]), DEVICE
    else:
        part, kind = sums.part(path[1]), path[2]
    if part is None:
        return None
    if path[-1] in ("iops", "bw"):
        value: float = getattr(part, path[-1])
        return value
    latencies = part.latency(kind)
    if path[-1] in ("mean", "max"):
        return latencies.mean if path[-1] == "mean" else latencies.highest
    return latencies.percentiles.get(path[-1])


def _is_summed(path: Sequence[str]) -> bool:
    """Whether a fleet's totals contain the figure."""
    if path[0] == DEVICE:
        return len(path) == 3 and path[1] in (*KINDS, TOTAL) and path[2] in _DEVICE_FIGURES
    return path[0] == "fio" and path[1] != "sync" and len(path) >= 3


@dataclass(frozen=True, slots=True)
class FleetExpectation:
    """An --expect of a fleet, either for the totals or for each host (``per_host``)."""

    text: str
    per_host: bool
    expectation: Expectation


def parse_fleet_expectation(text: str, tolerance: float) -> FleetExpectation:
    """Parse an --expect of a fleet. Raises UsageError for a figure that totals do not have."""
    body = text.strip()
    per_host = body.startswith(EACH_PREFIX)
    body = body.removeprefix(EACH_PREFIX)
    match = re.match(r"[^<>=\s]+", body)
    if match is not None:
        body = full_name(match[0]) + body[match.end() :]
    expectation = parse_expectation(body, (), tolerance, ())
    _check_path(f"--expect {text!r}", expectation.path)
    if expectation.part is not None:
        raise UsageError(
            f"--expect {text!r} is a share of a baseline, which is not available for many hosts.",
            "Give an absolute limit, e.g. --expect 'iops>=95k'.",
        )
    return FleetExpectation(text.strip(), per_host, expectation)


def _check_path(option: str, path: Sequence[str]) -> None:
    if not _is_summed(path):
        raise UsageError(f"{option}: not available for many hosts.",
                         "Available: iops, bw and latencies: read.clat.p99, write.iops ..., "
                         "with --probe device.read.p99.")  # fmt: skip


class AbortCondition:
    """A condition ``figure>value for time``. ``feed`` returns True once it has held in all seconds
    of the time. It does not hold in a second without the figure."""

    def __init__(self, text: str) -> None:
        match = _ABORT_PATTERN.fullmatch(text)
        if match is None:
            raise UsageError(f"--abort {text!r} is not of the form 'FIGURE>VALUE for TIME'.",
                             "For example: --abort 'read.p99>50ms for 5s'")  # fmt: skip
        name, self._operator, value, span = match.groups()
        option = f"--abort {text!r}"
        field, self._value = parse_figure_and_value(option, full_name(name), value, (), ())
        _check_path(option, field.path)
        duration_s = parse_duration(span) if span else 0.0
        if duration_s is None:
            raise UsageError(f"{option}: {span!r} is not a time such as 5s or 1m.")
        self.text = text.strip()
        self.path = self._path = field.path
        self._duration_s = duration_s
        self._start_number: int | None = None

    def feed(self, second: MergedInterval) -> bool:
        value = figure(second.sums, self._path)
        if value is None or not _COMPARE[self._operator](value, self._value):
            self._start_number = None
            return False
        self._start_number = second.number if self._start_number is None else self._start_number
        return (second.number - self._start_number + 1) * second.interval_s >= self._duration_s
