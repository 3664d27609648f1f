"""Dots of a live chart as characters, one value for each dot of the time axis.

A live chart draws a tile again every second, so this uses integers only: a column of dots is one
number, bit 0 at the bottom. plotext, which draws any lines, takes about fifty times longer for the
same picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

BRAILLE = "braille"
DOTS_OF_BRAILLE = 2, 4
"""Dots of one character: columns, rows."""
EDGE = 1e-4
"""How far values are kept off the edges, so that each is in a row of the picture."""

_EMPTY_BRAILLE = 0x2800
# of Unicode's dots, the bits of the left column from the bottom up; those of the right one
_LEFT, _RIGHT = (0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08)


def _table(bits: Sequence[int]) -> tuple[int, ...]:
    return tuple(sum(bits[n] for n in range(4) if nibble >> n & 1) for nibble in range(16))


_OF_LEFT, _OF_RIGHT = _table(_LEFT), _table(_RIGHT)
_CHARACTERS = " " + "".join(chr(_EMPTY_BRAILLE + cell) for cell in range(1, 256))


def draw(
    heights: Mapping[int, float], first: int, columns: int, rows: int, marker: str, joined: bool
) -> list[str]:
    """``rows`` strings of ``columns`` characters: the dots from ``first`` on.

    ``heights`` are fractions of the picture's height (0 at the bottom) by the number of the dot;
    those of the dots beside the picture count too, where lines are ``joined`` with them: each pair
    of neighbours by a vertical run, half of it in the column of each. ``marker`` is "braille" (two
    columns and four rows of dots a character) or the character that stands for a dot."""
    across, up = DOTS_OF_BRAILLE if marker == BRAILLE else (1, 1)
    return picture(_dots(heights, first, columns * across, rows * up, joined), rows, marker)


def picture(dots: Sequence[int], rows: int, marker: str) -> list[str]:
    """Columns of dots, bit 0 at the bottom, as ``rows`` strings."""
    if marker == BRAILLE:
        return _braille(dots, rows)
    return [
        "".join(marker if dot >> row & 1 else " " for dot in dots)
        for row in range(rows - 1, -1, -1)
    ]


def _dots(
    heights: Mapping[int, float], first: int, count: int, rows: int, joined: bool
) -> list[int]:
    """A number for each column of dots."""
    dots = [0] * count
    before: tuple[int, int] | None = None
    for at in range(-1, count + 1):
        height = heights.get(first + at)
        if height is None:
            continue
        row = math.floor(min(max(height, EDGE), 1 - EDGE) * rows)
        if 0 <= at < count:
            dots[at] |= 1 << row
        if joined and before is not None and before[0] == at - 1:
            near, far = _split_run(before[1], row)
            if at > 0:
                dots[at - 1] |= near
            if at < count:
                dots[at] |= far
        before = at, row
    return dots


def _split_run(begin: int, end: int) -> tuple[int, int]:
    """Split the run from row ``begin`` to row ``end`` into the half beside the first dot, and the
    rest."""
    length = abs(end - begin)
    near_length = (length + 1) // 2
    if end >= begin:
        return _run(begin, begin + near_length - 1), _run(begin + near_length, end)
    return _run(begin - near_length + 1, begin), _run(end, begin - near_length)


def _run(low: int, high: int) -> int:
    return ((1 << (high - low + 1)) - 1) << low if high >= low else 0


def _braille(dots: Sequence[int], rows: int) -> list[str]:
    pairs = [*zip(dots[::2], dots[1::2], strict=True)]
    blank, used_rows = " " * len(pairs), reduce(or_, dots, 0)
    lines = []
    for shift in range(4 * rows - 4, -1, -4):
        # most rows of a line's picture are empty
        lines.append(
            "".join([
                _CHARACTERS[_OF_LEFT[left >> shift & 15] | _OF_RIGHT[right >> shift & 15]]
                for left, right in pairs
            ])
            if used_rows >> shift & 15
            else blank
        )  # fmt: skip
    return lines
