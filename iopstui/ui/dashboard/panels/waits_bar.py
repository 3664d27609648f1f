"""One row with a bar: where the I/Os in flight are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.style import Style

from iopstui import format as f
from iopstui.model.metrics.waits import CACHE, UNSENT, Waits
from iopstui.text import printable
from iopstui.ui.draw.rows import Line, Piece, Row, cells
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, MARK, P50, P99, P999, WARNING, Charset

BARS = ((110, 30), (90, 20), (70, 12))
"""(width, cells): from this width on, the bar has that many cells. Only the width matters, so that
nothing jumps."""
LAYERS = (P50, MARK, P999)

Part = tuple[str, "float | None", "Style | None"]


def parts(waits: Waits) -> list[Part]:
    """The places where I/Os are, from the top down, each with its short name, its value and its
    style."""
    places: list[Part] = []
    if waits.cpu is not None or waits.above is not None:
        places += [("CPU", waits.cpu, WARNING), ("above", waits.above, P99)]
    elsewhere = ((CACHE, waits.cache, P50), (UNSENT, waits.unsent, DIM))
    places += [part for part in elsewhere if part[1] > 0]
    names = list(waits.layers)
    for number, name in enumerate(names):
        lowest = number == len(names) - 1
        style = DEVICE if lowest else LAYERS[number % len(LAYERS)]
        places.append((printable(name), waits.layers[name], style))
    if waits.unknown > 0:
        places.append(("unknown", waits.unknown, DIM))
    return places


def value_text(value: float | None) -> str:
    """The number of I/Os in flight, with a decimal below a hundred; a dash if it is not known."""
    if value is None:
        return f.MISSING
    return f"{value:.1f}" if value < 99.95 else f.number(value)


def line(waits: Waits | None, width: int, charset: Charset) -> Row | None:
    """One row: "In flight 32.0 ███████ CPU 0.1 · above 30.9 · vda 1.0"; ``None`` if nothing is
    known.

    A part that is not known is left out, because its I/Os are in another part. A narrow row has no
    bar, and the smallest parts are left out if there is no room for them."""
    if waits is None or waits.ios < 0.05:
        return None
    all_parts = [part for part in parts(waits) if part[1] is not None]
    row = Line(width, charset).add(f"In flight {value_text(waits.ios):>4}  ", BOLD)
    if waits.stalled:
        row.add("stalled  ", WARNING)
    bar_width = next((size for least, size in BARS if width >= least), 0)
    if bar_width:
        row.extend([*_bar(all_parts, waits.ios, bar_width, charset), ("  ", None)])
    parts_shown, pieces = all_parts, _part_pieces(all_parts)
    while len(parts_shown) > 1 and _size(pieces) > row.free:
        parts_shown = _without_least(parts_shown)
        pieces = _part_pieces(parts_shown)
    return row.extend(pieces).build()


def _part_pieces(parts_shown: Sequence[Part]) -> list[Piece]:
    pieces: list[Piece] = []
    for name, value, style in parts_shown:
        if pieces:
            pieces.append((" · ", DIM))
        pieces.append((f"{name} {value_text(value):>4}", style))
    return pieces


def _size(pieces: Iterable[Piece]) -> int:
    return sum(cells(text) for text, _ in pieces)


def _without_least(parts_shown: Sequence[Part]) -> list[Part]:
    least = min(range(len(parts_shown)), key=lambda n: parts_shown[n][1] or 0.0)
    return [part for number, part in enumerate(parts_shown) if number != least]


def _bar(
    parts_shown: Sequence[Part], total: float, bar_width: int, charset: Charset
) -> list[Piece]:
    """The bar's cells for each part. The largest part gets the rounding difference. Neighbours also
    differ in their characters, not in colour alone."""
    sizes = [round((value or 0.0) / total * bar_width) for _, value, _ in parts_shown]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    sizes[largest] = max(0, sizes[largest] + bar_width - sum(sizes))
    signs = (charset.full, "=" if charset.name == "ascii" else "▒")
    blocks = [(size, parts_shown[n][2]) for n, size in enumerate(sizes) if size]
    return [(signs[n % 2] * size, style) for n, (size, style) in enumerate(blocks)]
