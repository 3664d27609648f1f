"""Curves drawn without plotext, whose compiled kernel is missing on musl, ppc64le and s390x."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from iopstui.ui.draw.charts.raster import BRAILLE, DOTS_OF_BRAILLE, picture


def draw(points: Sequence[tuple[float, float]], columns: int, rows: int, marker: str) -> list[str]:
    """``rows`` strings of ``columns`` characters: a line through points (x, y), both from 0 to 1 of
    the plot. ``marker`` is "braille" or a character."""
    across, up = DOTS_OF_BRAILLE if marker == BRAILLE else (1, 1)
    wide, tall = columns * across, rows * up
    ends = [(math.floor(x * wide), math.floor((1 - y) * tall)) for x, y in points]
    dots = [0] * wide
    for number, end in enumerate(ends):
        for x, y in _line_dots(ends[max(0, number - 1)], end):
            if 0 <= x < wide and 0 <= y < tall:
                dots[x] |= 1 << (tall - 1 - y)
    return picture(dots, rows, marker)


def _line_dots(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The dots of a straight line, both ends included."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for step in range(steps + 1):
        yield (start[0] + round((end[0] - start[0]) * step / steps),
               start[1] + round((end[1] - start[1]) * step / steps))  # fmt: skip
