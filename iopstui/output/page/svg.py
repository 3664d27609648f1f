"""Charts as SVG text: lines and areas over time, a heat map, and curves whose horizontal axis is
not time. Colours are classes of the page's style."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import groupby

from iopstui.format import clock, cut
from iopstui.text import printable

WIDTH, HEIGHT = 760, 250
LEFT, RIGHT, TOP, BOTTOM = 62, 66, 40, 26
SHADES = 6
HEAT_COLUMNS, HEAT_ROWS_PER_DECADE = 120, 8
LATENCIES = (("p99.9", "p999"), ("p99", "p99"), ("p50", "p50"))
"""The curves of a chart of latencies, with their styles."""
MAX_MARKS = 12
LABELLED = 0.1
"""A stack is labelled at its last second whose sum is at least this share of the highest sum."""

Unit = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points (second, value); a value ``None`` is a gap. ``style`` is its CSS class;
    lines differ in their dashes, too, not in colour alone."""

    label: str
    style: str
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds that an axis covers; at 0 the compared runs begin."""

    begin: float
    end: float

    def x(self, t: float) -> float:
        """The horizontal position in the picture, in pixels."""
        share = (t - self.begin) / (self.end - self.begin)
        return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class Scale:
    """Converts values to heights. ``log`` needs ``low`` above 0."""

    low: float
    high: float
    log: bool = False

    def y(self, value: float) -> float:
        """The vertical position in the picture, in pixels."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(max(value, low))
        share = (at - low) / (high - low) if high > low else 0.0
        inner = HEIGHT - TOP - BOTTOM
        return TOP + inner * (1 - min(1.0, max(0.0, share)))

    def ticks(self) -> list[float]:
        """Round values for the axis."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1,) if len(decades) > 4 else (1, 2, 5)
            ticks = [step * 10.0**decade for decade in decades for step in steps]
            return [value for value in ticks if self.low <= value <= self.high]
        step = _round_up((self.high - self.low) / 4)
        return [self.low + n * step for n in range(int((self.high - self.low) / step + 1e-9) + 1)]


def linear(values: Sequence[float], top: float | None = None) -> Scale:
    """A scale from 0 to a round value above all ``values``."""
    if top is not None:
        return Scale(0.0, top)
    step = _round_up(max([*values, 1e-9]) / 4)
    return Scale(0.0, step * math.ceil(max([*values, step]) / step - 1e-9))


def logarithmic(values: Sequence[float]) -> Scale:
    """A logarithmic scale around all values, whose ends are 1, 2 or 5 times a power of ten."""
    positive = [value for value in values if value > 0] or [1.0, 10.0]
    low, high = _step_below(min(positive)), -_step_below(-max(positive))
    return Scale(low, high if high > low else low * 10, log=True)


def _step_below(value: float) -> float:
    """The largest of 1, 2, 5, 10, 20 ... that is not above ``value``; a negative value is rounded
    away from 0."""
    size = abs(value)
    power = 10.0 ** math.floor(math.log10(size))
    steps = [power * step for step in (1, 2, 5, 10)]
    if value > 0:
        return max(step for step in steps if step <= size * 1.000001)
    return -min(step for step in steps if step >= size * 0.999999)


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= value * 0.999999)


def chart(
    title: str,
    curves: Sequence[Curve],
    scale: Scale,
    unit: Unit,
    times: Times,
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """A picture of lines over time. A gap in the values is a gap in the line."""
    parts = [*_frame(title, scale, unit, times), *_marks(marks, times)]
    for curve in curves:
        path = _path(curve.points, scale, times)
        if path:
            parts.append(f'<path class="line {curve.style}" d="{path}"/>')
    parts += _labels(curves, scale)
    return picture(title, parts)


def stacked(
    title: str,
    curves: Sequence[Curve],
    scale: Scale,
    unit: Unit,
    times: Times,
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """A chart of stacked areas, the first at the top. All curves have the same seconds; a second in
    which none has a value is a gap. Each name is placed at the height of its area in the last
    second with a high sum."""
    parts = _frame(title, scale, unit, times)
    labels = []
    floor = [(t, 0.0) for t, _ in curves[0].points] if curves else []
    totals = [sum(curve.points[n][1] or 0.0 for curve in curves) for n in range(len(floor))]
    most = max(totals, default=0.0)
    labelled = [n for n, total in enumerate(totals) if total > 0 and total >= LABELLED * most]
    for curve in reversed(curves):
        tops = [
            (t, low + (value or 0.0))
            for (t, low), (_, value) in zip(floor, curve.points, strict=True)
        ]
        measured = [
            any(curve.points[n][1] is not None for curve in curves) for n in range(len(tops))
        ]
        path = "".join(_areas(floor, tops, measured, scale, times))
        if path:
            parts.append(f'<path class="area {curve.style}" d="{path}"/>')
        for last in labelled[-1:]:
            middle = (floor[last][1] + tops[last][1]) / 2
            labels.append(Curve(curve.label, curve.style, [(tops[last][0], middle)]))
        floor = tops
    return picture(title, [*parts, *_marks(marks, times), *_labels(labels, scale)])


def _areas(
    floor: Sequence[tuple[float, float]],
    tops: Sequence[tuple[float, float]],
    measured: Sequence[bool],
    scale: Scale,
    times: Times,
) -> Iterator[str]:
    """Each part without a gap as a closed path: along the top, then back along the floor."""
    for is_measured, group in groupby(range(len(tops)), lambda n: measured[n]):
        places = list(group)
        if not is_measured or all(tops[n][1] <= floor[n][1] for n in places):
            continue
        ahead = [(times.x(tops[n][0]), scale.y(tops[n][1])) for n in places]
        back = [(times.x(floor[n][0]), scale.y(floor[n][1])) for n in reversed(places)]
        if len(places) == 1:
            # a single value would be an area without width
            ahead = [(ahead[0][0] - 1.5, ahead[0][1]), (ahead[0][0] + 1.5, ahead[0][1])]
            back = [(back[0][0] + 1.5, back[0][1]), (back[0][0] - 1.5, back[0][1])]
        yield "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (*ahead, *back)) + "z"


@lru_cache(4096)
def _heat_row(key: int) -> int:
    return math.floor(math.log10(max(key, 1)) * HEAT_ROWS_PER_DECADE)


def heat_rows(bins: Mapping[int, int]) -> dict[int, int]:
    """Count I/Os by row of a heat map, which has HEAT_ROWS_PER_DECADE rows for each factor of
    10."""
    rows: dict[int, int] = {}
    for key, count in bins.items():
        row = _heat_row(key)
        rows[row] = rows.get(row, 0) + count
    return rows


def heat(
    title: str,
    cells: Mapping[tuple[int, int], int],
    rows: tuple[int, int],
    columns: int,
    per_decade: int,
    unit: Unit,
    times: Times,
    marks: Sequence[tuple[float, str]] = (),
    covered: Times | None = None,
) -> str:
    """A heat map of latency over time; the stronger the colour, the larger the share of that
    moment's I/Os. ``rows`` are the lowest and the highest row in the picture, ``covered`` is the
    time that the ``columns`` cover (``None``: all of ``times``)."""
    covered = covered or times
    if not cells:
        return ""
    low, high = rows[0], rows[1] + 1
    scale = Scale(10 ** (low / per_decade), 10 ** (high / per_decade), log=True)
    x0 = times.x(covered.begin)
    width = (times.x(covered.end) - x0) / columns
    sums: dict[int, int] = {}
    for (column, _), count in cells.items():
        sums[column] = sums.get(column, 0) + count
    edges = {row: scale.y(10 ** (row / per_decade))
             for at in {row for _, row in cells} for row in (at, at + 1)}  # fmt: skip
    groups: dict[int, list[str]] = {}
    for (column, row), count in sorted(cells.items()):
        top, bottom = edges[row + 1], edges[row]
        shade = _shade(count / sums[column])
        x = x0 + column * width
        groups.setdefault(shade, []).append(
            f"M{x:.1f} {top:.1f}h{width + 0.3:.1f}v{bottom - top + 0.2:.1f}h-{width + 0.3:.1f}z"
        )
    parts = _frame(title, scale, unit, times)
    parts += [f'<path class="h{shade}" d="{"".join(groups[shade])}"/>' for shade in sorted(groups)]
    return picture(title, [*parts, *_marks(marks, times)])


def _shade(share: float) -> int:
    """The shade of a cell, from 0 to SHADES - 1. It is logarithmic, so that one slow I/O in a
    thousand is visible."""
    return min(SHADES - 1, max(0, round(SHADES - 1 + math.log10(max(share, 1e-9)) * 1.3)))


def picture(title: str, parts: Sequence[str]) -> str:
    """A whole chart as SVG."""
    inner = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">\n'
        f"{inner}\n</svg>"
    )


def _frame(title: str, scale: Scale, unit: Unit, times: Times) -> list[str]:
    parts = [f'<text class="title" x="{LEFT}" y="14">{escape(title)}</text>']
    for value in scale.ticks():
        y = scale.y(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(
            f'<text class="axis" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(short_label(unit(value)))}</text>"
        )
    for second in _ticks(times):
        before = "-" if second < 0 else ""
        parts.append(
            f'<text class="axis" x="{times.x(second):.1f}" y="{HEIGHT - 8}" text-anchor="middle">'
            f"{before}{clock(abs(second))}</text>"
        )
    return parts


def short_label(label: str) -> str:
    """ "10.0 ms" as "10 ms"."""
    return re.sub(r"\.0+(?!\d)", "", label)


def _ticks(times: Times) -> Iterator[float]:
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200)
    length = times.end - times.begin
    step = next((step for step in steps if length / step <= 9), 86400.0)
    second = step * math.ceil(times.begin / step)
    while second <= times.end and (second - times.begin) / step < 1000:
        yield second
        second += step


def _marks(marks: Sequence[tuple[float, str]], times: Times) -> list[str]:
    parts = []
    free = 0.0
    for t, text in marks[:MAX_MARKS]:
        x = times.x(t)
        parts.append(f'<path class="mark" d="M{x:.1f} {TOP - 6}V{HEIGHT - BOTTOM}"/>')
        label = printable(text)
        label = label if len(label) <= 28 else label[:27] + "…"
        size = 6.2 * len(label) + 8
        start = min(x, WIDTH - size)
        if start >= free:
            parts.append(
                f'<text class="flag" x="{start + 2:.1f}" y="{TOP - 9}">{escape(label)}</text>'
            )
            free = start + size
    return parts


def _path(points: Sequence[tuple[float, float | None]], scale: Scale, times: Times) -> str:
    commands = []
    before = False
    for index, (t, value) in enumerate(points):
        if value is None:
            before = False
            continue
        x, y = times.x(t), scale.y(value)
        following = index + 1 < len(points) and points[index + 1][1] is not None
        if before:
            commands.append(f"L{x:.1f} {y:.1f}")
        elif following:
            commands.append(f"M{x:.1f} {y:.1f}")
        else:
            # a single value would be a line of length 0
            commands.append(f"M{x - 1.5:.1f} {y:.1f}h3")
        before = True
    return "".join(commands)


def _labels(curves: Sequence[Curve], scale: Scale) -> list[str]:
    """Names beside the lines' ends, moved so that they don't overlap."""
    ends = []
    for curve in curves:
        last = next((value for _, value in reversed(curve.points) if value is not None), None)
        if last is not None:
            ends.append((scale.y(last) + 4, curve))
    ends.sort(key=lambda end: end[0])
    parts = []
    free = float(TOP)
    for y, curve in ends:
        y = max(y, free)
        free = y + 14
        parts.append(
            f'<text class="name {curve.style}" x="{WIDTH - RIGHT + 5}" y="{y:.1f}">'
            f"{escape(printable(curve.label))}</text>"
        )
    return parts


STYLES = ("fio", "device", "p50", "p99", "p999", "sixth")
MAX_CURVES = len(STYLES)
LABEL_APART = 13
MAX_NAME = 24


@dataclass(frozen=True, slots=True)
class XYCurve:
    """A line of (x, y), with a dot at each point if ``dots``. ``point_labels`` are written beside
    its points ("" for none), ``bars`` are error bars, ``highlighted`` is the index of the point
    that is marked as the knee."""

    label: str
    style: str
    points: Sequence[tuple[float, float]]
    point_labels: Sequence[str] = ()
    highlighted: int | None = None
    dots: bool = True
    labelled: bool = True
    bars: Sequence[tuple[float, float] | None] = ()

    def heights(self) -> list[float]:
        """All values that the vertical axis must cover."""
        ends = [end for bar in self.bars if bar is not None for end in bar]
        return [*(y for _, y in self.points), *ends]


@dataclass(frozen=True, slots=True)
class Axis:
    """The horizontal axis from ``low`` to ``high``; ``ticks`` are positions with their labels."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def x(self, value: float) -> float:
        """The horizontal position in the picture, in pixels."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, low))
        share = (value - low) / (high - low) if high > low else 0.5
        return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, share))


def places(names: Sequence[str]) -> Axis:
    """An axis for values that are only names: equally spaced, the n-th one at n."""
    return Axis(-0.4, len(names) - 0.6, [(n, name) for n, name in enumerate(names)])


def scaled(scale: Scale, unit: Unit) -> Axis:
    """An axis for numbers, with round ticks."""
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
    """A chart of curves, with vertical lines at the ``marks``; "" if there is nothing in it."""
    if not any(curve.points for curve in curves):
        return ""
    parts = [f'<text class="title" x="{LEFT}" y="14">{escape(title)}</text>']
    for value in scale.ticks():
        y = scale.y(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text("axis", LEFT - 6, y + 4, short_label(unit(value)), "end"))
    parts += _axis_ticks(axis)
    for at, label in marks:
        parts.append(f'<path class="mark" d="M{axis.x(at):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(_text("flag", axis.x(at) + 4, TOP + 10, label))
    for curve in curves:
        parts += _drawn(curve, axis, scale)
    parts += _point_labels(curves, axis, scale)
    labelled = [curve for curve in curves if curve.labelled]
    parts += _legend(labelled) if len(labelled) > 1 else []
    return picture(title, parts)


def _axis_ticks(axis: Axis) -> list[str]:
    parts = []
    free = 0.0
    for value, label in axis.ticks:
        label = cut(printable(label), 14)
        x, size = axis.x(value), 6.5 * len(label) + 6
        # skip a label that would overlap the one before it
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
    """Labels beside the points that have room for one; the knees' labels are placed first."""
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
        # a curve over load rises to the right, so there is room below it
        top = y + 16 if y + 16 < HEIGHT - BOTTOM else y - 7
        if any(abs(top - ty) < LABEL_APART and x0 < tr and tl < x0 + size
               for ty, tl, tr in placed):  # fmt: skip
            continue
        placed.append((top, x0, x0 + size))
        parts.append(_text("axis" if priority else "flag", x0, top, label))
    return parts


def _legend(curves: Sequence[XYCurve]) -> list[str]:
    """A row with the names of the curves above the chart, each beside a sample of its line."""
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
