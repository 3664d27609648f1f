"""Two values of a tunable measured in turn while one job runs, and the difference between them.

The load drifts, so the values alternate, and neighbouring spans are compared in pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.advice import advise
from iopstui.model.findings.evidence import frame_start_s, measured_frames
from iopstui.model.findings.figures import fio_iops
from iopstui.model.findings.finding import Finding
from iopstui.model.findings.tunable_effect import TunableChange, effect_text
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.statistics.paired_comparison import Difference, compare_paired

SPAN_S = 5.0
SPANS = 6
MIN_FRAMES = 2
"""Seconds of a span that are needed."""


@dataclass
class Alternation:
    """``values`` of the tunable ``name`` of ``device`` in turn, the first one first."""

    device: str
    name: str
    values: tuple[str, str]
    _spans: list[list[Frame]] = field(default_factory=list)
    _began: float = 0.0

    @property
    def next_value(self) -> str | None:
        """The value of the next span; ``None``: all have been measured."""
        count = len(self._spans)
        return self.values[count % 2] if count < SPANS else None

    def begin_span(self, t: float) -> None:
        """The next value is set, at ``t`` seconds of the session."""
        self._spans.append([])
        self._began = t

    def is_due(self, t: float) -> bool:
        """Whether the span has lasted long enough."""
        return t - self._began >= SPAN_S

    def add(self, frame: Frame) -> None:
        """Add a frame to the span if all of it is in the span: the second of the change is not."""
        if self._spans and frame_start_s(frame) > self._began:
            self._spans[-1] += measured_frames([frame])

    def finding(self, devices: Sequence[BlockDevice]) -> Finding | None:
        """The result; ``None`` if a span has too few whole seconds."""
        if len(self._spans) < SPANS or any(len(span) < MIN_FRAMES for span in self._spans):
            return None
        first, second = self.values
        iops = [fio_iops(span) for span in self._spans]
        before = [frame for span in self._spans[::2] for frame in span]
        after = [frame for span in self._spans[1::2] for frame in span]
        change = TunableChange(self._began, self.device, self.name, first, second)
        text = (
            f"{self.name} {second} instead of {first} on {self.device}: IOPS "
            f"{_difference_text(compare_paired(iops[::2], iops[1::2]))}, "
            f"{units.number(fio_iops(before))} → {units.number(fio_iops(after))}; "
            f"{effect_text(change, before, after, devices)} (in turn, {SPANS // 2} times "
            f"{SPAN_S:.0f} s each)"
        )
        return Finding("moved", text, advise("pairs"))


def _difference_text(difference: Difference | None) -> str:
    if difference is None:
        return "they cannot be compared"
    low, mean, high = (100 * d for d in (difference.low, difference.mean, difference.high))
    interval = f"{mean:+.1f} % ({low:+.1f} to {high:+.1f} % with 95 % confidence)"
    return interval if difference.shown else f"{interval}: no difference is shown"
