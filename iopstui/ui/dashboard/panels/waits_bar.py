"""One row with a bar: where the I/Os in flight are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.style import Style

from iopstui import format as f
from iopstui.model.metrics.waits import Waits
from iopstui.text import printable
from iopstui.ui.draw.rows import Line, Piece, Row, cells
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, MARK, P50, P99, P999, WARNING, Charset

BARS = ((110, 30), (90, 20), (70, 12))
"""From this width on, the bar has this many cells; the width alone decides, so nothing jumps."""
LAYERS = (P50, MARK, P999)

Part = tuple[str, "float | None", "Style | None"]


def parts(waits: Waits) -> list[Part]:
    """The places from the top down, as names of few letters, with their styles."""
    found: list[Part] = []
    if waits.cpu is not None or waits.above is not None:
        found += [("CPU", waits.cpu, WARNING), ("above", waits.above, P99)]
    names = list(waits.layers)
    for number, name in enumerate(names):
        lowest = number == len(names) - 1
        style = DEVICE if lowest else LAYERS[number % len(LAYERS)]
        found.append((printable(name), waits.layers[name], style))
    if waits.unknown > 0:
        found.append(("unknown", waits.unknown, DIM))
    return found


def value_text(value: float | None) -> str:
    """I/Os in flight, with a decimal below a hundred; a dash where they are not known."""
    if value is None:
        return f.MISSING
    return f"{value:.1f}" if value < 99.95 else f.number(value)


def line(waits: Waits | None, width: int, charset: Charset) -> Row | None:
    """One row: "In flight 32.0  ███████  CPU 0.1 · above 30.9 · vda 1.0"; ``None``: nothing known.

    The bar is left out of a narrow row, and the smallest parts where they have no room.
    """
    if waits is None or waits.ios < 0.05:
        return None
    known = parts(waits)
    found = Line(width, charset).add(f"In flight {value_text(waits.ios):>4}  ", BOLD)
    if waits.stalled:
        found.add("stalled  ", WARNING)
    room = next((size for least, size in BARS if width >= least), 0)
    if room:
        found.extend([*_bar(known, waits.ios, room, charset), ("  ", None)])
    shown, words = known, _part_pieces(known)
    while len(shown) > 1 and _size(words) > found.left:
        shown = _without_least(shown)
        words = _part_pieces(shown)
    return found.extend(words).finished()


def _part_pieces(known: Sequence[Part]) -> list[Piece]:
    found: list[Piece] = []
    for name, value, style in known:
        if found:
            found.append((" · ", DIM))
        found.append((f"{name} {value_text(value):>4}", style))
    return found


def _size(words: Iterable[Piece]) -> int:
    return sum(cells(text) for text, _ in words)


def _without_least(shown: Sequence[Part]) -> list[Part]:
    least = min(range(len(shown)), key=lambda n: shown[n][1] or 0.0)
    return [one for number, one in enumerate(shown) if number != least]


def _bar(known: Sequence[Part], whole: float, room: int, charset: Charset) -> list[Piece]:
    """Cells by share; what rounding leaves goes to the largest part. Neighbours differ without
    colours, too."""
    sizes = [round((value or 0.0) / whole * room) for _, value, _ in known]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    sizes[largest] = max(0, sizes[largest] + room - sum(sizes))
    signs = (charset.full, "=" if charset.name == "ascii" else "▒")
    shown = [(size, known[n][2]) for n, size in enumerate(sizes) if size]
    return [(signs[n % 2] * size, style) for n, (size, style) in enumerate(shown)]
