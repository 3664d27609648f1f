"""Triggers: "r_await>20ms for 3s", and when a watch fires one.

Figures and values are written as in an expectation (model/experiment/expectation.py)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.errors import UsageError
from iopstui.model.experiment.expectation import parse_figure_and_value
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import DEVICE
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import PARTIAL, Frame

EXAMPLES = "For example: --trigger 'r_await>20ms for 3s' --trigger 'util>=90% for 1m'"
MAX_DURATION_S = 3650 * 86400.0
# frames are some milliseconds longer or shorter than the interval
NEAR_MISS_SHARE = 0.98
_TRIGGER = re.compile(r"\s*([^<>=!\s]+)\s*(>=|<=|>|<)\s*(\S.*?)\s+for\s+(\S+)\s*")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{0,3})?)(s|m|h|d|)", re.ASCII)
_OF_A_DISK = (DiskRates.r_s, DiskRates.w_s, DiskRates.r_bytes_s, DiskRates.r_await,
              DiskRates.w_await, DiskRates.aqu_sz, DiskRates.util)  # fmt: skip
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: the concrete ``path`` of a figure, and the ``limit`` in its ``unit`` that it must
    be beyond (``op`` is ">", ">=", "<" or "<=") for ``seconds``."""

    text: str
    path: tuple[str, ...]
    unit: str
    op: str
    limit: float
    seconds: float

    def is_exceeded(self, value: float) -> bool:
        """Whether a value is beyond the limit."""
        match self.op:
            case ">":
                return value > self.limit
            case ">=":
                return value >= self.limit
            case "<":
                return value < self.limit
            case _:
                return value <= self.limit


@dataclass(frozen=True, slots=True)
class TriggerFired:
    """A trigger at second ``t`` of the session: its figure has been beyond the limit for
    ``held_s``, and is ``value`` in the last frame."""

    trigger: Trigger
    t: float
    held_s: float
    value: float


def parse_duration(text: str) -> float | None:
    """Parse a duration: "30s", "30", "10m", "8h" or "2d" in seconds; ``None`` for anything else,
    and for 0 or more than ten years."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    return seconds if 0 < seconds <= MAX_DURATION_S else None


def parse_trigger(
    text: str, tree: Sequence[str], devices: Sequence[str], probed: bool = False
) -> Trigger:
    """Parse a --trigger. ``tree`` and ``devices`` are as in ``parse_expectation``; ``probed``: the
    probe is on. Raises UsageError, also for a figure that a watch does not measure."""
    option = f"--trigger {text!r}"
    match = _TRIGGER.fullmatch(text)
    if match is None:
        raise UsageError(f"{option} is not of the form 'FIGURE>VALUE for TIME'.", EXAMPLES)
    name, op, value, span = match.groups()
    seconds = parse_duration(span)
    if seconds is None:
        raise UsageError(
            f"{option}: {span!r} is not a time.", "For example: for 3s, for 2m, for 1h"
        )
    field, limit = parse_figure_and_value(option, name, value, tree, devices)
    if field.path[0] == "fio":
        raise UsageError(f"{option}: {field.id} is fio's figure, and no job runs in a watch.",
                         f"The disk's own: {', '.join(row.name for row in _OF_A_DISK)} ...",
                         )  # fmt: skip
    if field.path[0] == DEVICE and not probed:
        raise UsageError(f"{option}: only the probe counts {field.id}.", "Add --probe.")
    return Trigger(" ".join(text.split()), field.path, field.unit, op, limit, seconds)


class TriggerWatch:
    """Follows one trigger. It fires once while its figure stays beyond the limit; a frame that is
    not beyond it, or lacks the figure, starts the count again."""

    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger
        self._held_s = 0.0
        self._fired = False

    def feed(self, frame: Frame) -> TriggerFired | None:
        """Process one frame. Returns a ``TriggerFired`` if the trigger fires."""
        trigger = self.trigger
        if PARTIAL in frame.flags:
            return None
        value = Meter(trigger.path).add(frame)
        if value is None or not frame.seconds or not trigger.is_exceeded(value):
            self._held_s, self._fired = 0.0, False
            return None
        self._held_s += frame.seconds
        if self._fired or self._held_s < NEAR_MISS_SHARE * trigger.seconds:
            return None
        self._fired = True
        return TriggerFired(trigger, frame.t, self._held_s, value)
