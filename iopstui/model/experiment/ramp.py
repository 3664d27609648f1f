"""A ramp: one depth after another while a job runs, up to the depth that is enough."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from iopstui.errors import UsageError
from iopstui.format import latency, number

LOAD_OPTIONS = ("iodepth", "numjobs")
ENOUGH_SHARE = 0.95
"""The least load that reaches this share of the most IOPS is preferred."""
DEFAULT = "iodepth=1..64"
MEASURED_S = 4.0
"""How many seconds each depth is measured."""
GAIN = 0.05
"""Share of IOPS: a depth that adds less than this is useless."""
MAX_USELESS = 2
"""The ramp ends after this many useless depths in a row: one alone may be chance."""
MAX_VALUE = 4096
_FORM = re.compile(r"\s*(\w+)\s*=\s*(\d+)\s*\.\.\s*(\d+)\s*")


@dataclass(frozen=True, slots=True)
class RampRange:
    """The option to vary, and its values in order."""

    option: str
    values: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.option}={self.values[0]}..{self.values[-1]}"


def parse_ramp(text: str) -> RampRange:
    """Parse a ramp: "iodepth=1..64" means 1, 2, 4 ... 64. UsageError for anything else."""
    match = _FORM.fullmatch(text)
    if match is None or match[1] not in LOAD_OPTIONS:
        raise UsageError(f"--ramp {text!r} is not of the form iodepth=LOW..HIGH.",
                         "For example: --ramp iodepth=1..64, or --ramp numjobs=1..8")  # fmt: skip
    low, high = int(match[2]), int(match[3])
    if not 1 <= low < high <= MAX_VALUE:
        raise UsageError(f"--ramp {text!r} does not rise within 1 and {MAX_VALUE}.",
                         f"For example: --ramp {match[1]}=1..64")  # fmt: skip
    values = [low]
    while values[-1] * 2 < high:
        values.append(values[-1] * 2)
    return RampRange(match[1], (*values, high))


@dataclass(frozen=True, slots=True)
class Level:
    """The figures that were measured at a depth."""

    value: int
    iops: float
    p99_ns: float | None


@dataclass
class Ramp:
    """The depths of ``range`` measured so far."""

    range: RampRange
    levels: list[Level] = field(default_factory=list)

    def add(self, level: Level) -> None:
        self.levels.append(level)

    @property
    def next(self) -> int | None:
        """The depth to measure now; ``None``: more would be useless, or none is left."""
        left = self.range.values[len(self.levels) :]
        return left[0] if left and self._useless < MAX_USELESS else None

    @property
    def _useless(self) -> int:
        """How many of the last depths added nothing to the highest IOPS before them."""
        count, most = 0, 0.0
        for level in self.levels:
            count = 0 if level.iops > most * (1 + GAIN) else count + 1
            most = max(most, level.iops)
        return count

    @property
    def best(self) -> Level:
        """The lowest depth that reaches nearly the most IOPS."""
        most = max(level.iops for level in self.levels)
        return next(level for level in self.levels if level.iops >= ENOUGH_SHARE * most)

    @property
    def text(self) -> str:
        """The knee in one sentence: the figures of the best depth, and the gain of the next one."""
        best, option = self.best, self.range.option
        figures = f"{number(best.iops)} IOPS{_p99(best)}"
        after = self.levels[self.levels.index(best) + 1 :]
        if not after:
            before = self.levels[-2] if len(self.levels) > 1 else None
            gained = f", {_gain(before.iops, best.iops)} over {before.value}" if before else ""
            return f"{option} {best.value} is the highest of this ramp: {figures}{gained}"
        return (f"{option} {best.value} is enough: {figures}; {after[0].value}: "
                f"{_gain(best.iops, after[0].iops)} IOPS{_p99(after[0])}")  # fmt: skip


def _p99(level: Level) -> str:
    return "" if level.p99_ns is None else f", p99 {latency(level.p99_ns)}"


def _gain(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.0f} %"


def progress_text(ramp: Ramp, value: int, values: Sequence[int]) -> str:
    """The progress of the ramp: "ramp: iodepth 4 (3 of 7)"."""
    return f"ramp: {ramp.range.option} {value} ({values.index(value) + 1} of {len(values)})"
