"""Lines drawn by ourselves, where plotext's compiled kernel is missing (musl, ppc64le, s390x).

It takes what plotext takes of us: points in a plot from 0 to 1 high, joined or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from iopstui.records import dataclass

BRAILLE = "braille"
_FIRST = 0x2800
# the bit of each dot of a braille character, by row and column
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


@dataclass(frozen=True, slots=True)
class Curve:
    """Points with heights from 0 to 1, from left to right. Each is joined to the one before it if
    its place stands in ``joined``. ``marker`` is "braille" or a character."""

    xs: Sequence[float]
    ys: Sequence[float]
    joined: frozenset[int]
    marker: str


def draw(curve: Curve, columns: int, rows: int, low: float, high: float) -> list[str]:
    """``rows`` strings of ``columns`` characters: the curve between x = ``low`` and ``high``. A
    blank is where nothing is."""
    across, down = (2, 4) if curve.marker == BRAILLE else (1, 1)
    wide, tall = columns * across, rows * down
    dots = [(math.floor((x - low) / (high - low) * wide), math.floor((1 - y) * tall))
            for x, y in zip(curve.xs, curve.ys, strict=True)]  # fmt: skip
    cells = [[0] * columns for _ in range(rows)]
    for number, dot in enumerate(dots):
        way = _between(dots[number - 1], dot) if number in curve.joined else (dot,)
        for x, y in way:
            if 0 <= x < wide and 0 <= y < tall:
                cells[y // down][x // across] |= _BITS[y % down][x % across]
    return ["".join(_character(bits, curve.marker) for bits in row) for row in cells]


def _character(bits: int, marker: str) -> str:
    if not bits:
        return " "
    return chr(_FIRST | bits) if marker == BRAILLE else marker


def _between(one: tuple[int, int], other: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The dots of a straight line, both ends included."""
    steps = max(abs(other[0] - one[0]), abs(other[1] - one[1]), 1)
    for step in range(steps + 1):
        yield (one[0] + round((other[0] - one[0]) * step / steps),
               one[1] + round((other[1] - one[1]) * step / steps))  # fmt: skip
