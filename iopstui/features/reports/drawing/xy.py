"""Charts whose horizontal axis is not time, as SVG text: a sweep's curves, two variants' runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from iopstui.features.reports.drawing.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    Unit,
    picture,
    short_label,
)
from iopstui.format import cut
from iopstui.text import printable

STYLES = ("fio", "device", "p50", "p99", "p999", "sixth")
MAX_CURVES = len(STYLES)
LABEL_APART = 13
MAX_NAME = 24


@dataclass(frozen=True, slots=True)
class XYCurve:
    """A line of (x, y), with a dot at each point if ``dots``. ``point_labels`` are written
    beside its points ("" is nothing), ``bars`` are intervals through them, ``highlighted`` is the
    index of the one that is marked as the knee."""

    label: str
    style: str
    points: Sequence[tuple[float, float]]
    point_labels: Sequence[str] = ()
    highlighted: int | None = None
    dots: bool = True
    labelled: bool = True
    bars: Sequence[tuple[float, float] | None] = ()

    def heights(self) -> list[float]:
        """All heights that are drawn."""
        ends = [end for bar in self.bars if bar is not None for end in bar]
        return [*(y for _, y in self.points), *ends]


@dataclass(frozen=True, slots=True)
class Axis:
    """The horizontal axis: from ``low`` to ``high`` with ``ticks`` and what is written there."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def x(self, value: float) -> float:
        """The place in the picture."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, low))
        share = (value - low) / (high - low) if high > low else 0.5
        return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, share))


def places(names: Sequence[str]) -> Axis:
    """Place values that are only names side by side: the n-th at n."""
    return Axis(-0.4, len(names) - 0.6, [(n, name) for n, name in enumerate(names)])


def scaled(scale: Scale, unit: Unit) -> Axis:
    """Numbers, with round ticks."""
    ticks = [(value, short_label(unit(value))) for value in scale.ticks()]
    return Axis(scale.low, scale.high, ticks, scale.log)


def xy_chart(
    title: str,
    axis: Axis,
    scale: Scale,
    unit: Unit,
    curves: Sequence[XYCurve],
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """A picture of curves, with vertical lines at the ``marks``; "" if there is nothing in it."""
    if not any(curve.points for curve in curves):
        return ""
    parts = [f'<text class="title" x="{LEFT}" y="14">{escape(title)}</text>']
    for value in scale.ticks():
        y = scale.y(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text("axis", LEFT - 6, y + 4, short_label(unit(value)), "end"))
    parts += _ticks(axis)
    for at, label in marks:
        parts.append(f'<path class="mark" d="M{axis.x(at):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(_text("flag", axis.x(at) + 4, TOP + 10, label))
    for curve in curves:
        parts += _drawn(curve, axis, scale)
    parts += _point_labels(curves, axis, scale)
    labelled = [curve for curve in curves if curve.labelled]
    parts += _legend(labelled) if len(labelled) > 1 else []
    return picture(title, parts)


def _ticks(axis: Axis) -> list[str]:
    parts = []
    free = 0.0
    for value, label in axis.ticks:
        label = cut(printable(label), 14)
        x, size = axis.x(value), 6.5 * len(label) + 6
        # so many values that their names would run into each other: only some are named
        if x - size / 2 >= free:
            parts.append(_text("axis", x, HEIGHT - 8, label, "middle"))
            free = x + size / 2
    return parts


def _drawn(curve: XYCurve, axis: Axis, scale: Scale) -> list[str]:
    places = [(axis.x(x), scale.y(y)) for x, y in curve.points]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [f'<path class="line {curve.style}" d="M{line}"/>'] if len(places) > 1 else []
    if curve.dots or len(places) == 1:
        parts += [f'<circle class="{curve.style}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
                  for x, y in places]  # fmt: skip
    for (at, _), bar in zip(places, curve.bars, strict=False):
        if bar is not None:
            low, high = (scale.y(end) for end in bar)
            parts.append(f'<path class="line {curve.style}" d="M{at:.1f} {low:.1f}V{high:.1f}"/>')
    if curve.highlighted is not None:
        x, y = places[curve.highlighted]
        parts.append(f'<circle class="knee" cx="{x:.1f}" cy="{y:.1f}" r="7"/>')
    return parts


def _point_labels(curves: Sequence[XYCurve], axis: Axis, scale: Scale) -> list[str]:
    """Labels beside the points, where there is room; the knees first."""
    labels = []
    for curve in curves:
        for index, (x, y) in enumerate(curve.points):
            knee = index == curve.highlighted
            label = curve.point_labels[index] if curve.point_labels else ""
            label = f"knee {label}".strip() if knee else label
            if label:
                labels.append((not knee, axis.x(x), scale.y(y), cut(printable(label), 20)))
    parts, placed = [], list[tuple[float, float, float]]()
    for priority, x, y, label in sorted(labels, key=lambda candidate: candidate[0]):
        size = 6.5 * len(label)
        x0 = min(x + 8, WIDTH - size - 2)
        # curves of load rise: below them there is room
        top = y + 16 if y + 16 < HEIGHT - BOTTOM else y - 7
        if any(abs(top - ty) < LABEL_APART and x0 < tr and tl < x0 + size
               for ty, tl, tr in placed):  # fmt: skip
            continue
        placed.append((top, x0, x0 + size))
        parts.append(_text("axis" if priority else "flag", x0, top, label))
    return parts


def _legend(curves: Sequence[XYCurve]) -> list[str]:
    """A row of samples with their names above the chart."""
    parts = []
    x = float(LEFT)
    for curve in curves:
        label = cut(printable(curve.label), MAX_NAME)
        if x + 26 + 6.5 * len(label) > WIDTH:
            break
        parts.append(f'<path class="line {curve.style}" d="M{x:.1f} 27h20"/>')
        parts.append(_text(f"name {curve.style}", x + 25, 31, label))
        x += 25 + 6.8 * len(label) + 16
    return parts


def _text(style: str, x: float, y: float, label: str, anchor: str = "start") -> str:
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(label)}</text>"
    )
