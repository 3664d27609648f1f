"""A watch as a live table of 80 columns: the columns of iostat, one row per second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from iopstui import format as units
from iopstui.events import Event, FrameReady
from iopstui.model.block.target import Layer, Target
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.latency import RANKS
from iopstui.model.metrics.frame import PARTIAL, Frame
from iopstui.model.metrics.probe import RequestStats
from iopstui.output.narration import Narrator
from iopstui.output.table import BELOW, HEADER_EVERY, QUEUE, RATES, discard_rows
from iopstui.tables import head_line, line, texts
from iopstui.text import printable

NAME_WIDTH = 10
LEFT_WIDTH = 17 + 1 + NAME_WIDTH
"""Columns left of the figures: two times and a name."""


class FrameTable:
    """Prints rows of each frame below ``head``, which is repeated. Passes ``BrokenPipeError``
    on."""

    def __init__(
        self, out: TextIO, err: TextIO, head: str, rows_of: Callable[[Frame], list[str]]
    ) -> None:
        self._out = out
        self._narrator = Narrator(err)
        self._head, self._rows_of = head, rows_of
        self._lines = 0
        self._has_rows = False

    def handle(self, event: Event) -> None:
        if not isinstance(event, FrameReady):
            self._narrator.handle(event)
        # the first sample has nothing to subtract from it; the watch's last part of a second is in
        # the totals
        elif event.frame.seconds and (PARTIAL not in event.frame.flags or not self._has_rows):
            self._frame(event.frame)

    def close(self) -> None:
        self._out.flush()
        self._narrator.close()

    def _frame(self, frame: Frame) -> None:
        self._has_rows = True
        if self._lines == 0 or self._lines >= HEADER_EVERY:
            self._lines = 0
            units.print_line(self._head, self._out)
        rows = self._rows_of(frame)
        self._lines += len(rows)
        units.print_line("\n".join(rows), self._out)


class WatchTable(FrameTable):
    """One row per frame; for several disks their sum and one row each. ``probed``: the probe's
    latencies replace the awaits."""

    def __init__(self, out: TextIO, err: TextIO, target: Target, probed: bool = False) -> None:
        super().__init__(out, err, header(probed), lambda frame: rows(frame, target, probed))


def header(probed: bool = False) -> str:
    """The line above the rows."""
    waits = _PROBED if probed else _AWAITS
    return f"{'UTC':>8} {'time':>8} {'disk':>{NAME_WIDTH}} {head_line((*_RATES, *waits, *QUEUE))}"


def rows(frame: Frame, target: Target, probed: bool = False) -> list[str]:
    """Return a frame in at most 80 columns, then a row for each further device."""
    several = len(target.devices_below) > 1
    combined = frame.combined(target.opened) if target.opened else None
    when = (units.utc(frame.wall_ms) or "")[11:19]
    times = f"{when:>8} {units.clock(frame.t):>8}"
    width = LEFT_WIDTH - len(times) - 1  # hundreds of hours are wider
    first = f"{times} {units.cut(printable(target.name), width):>{width}}"
    lines = [_row(first, combined, frame, target.opened, probed), *discard_rows(combined)]
    for layer in target.layers if several else target.layers[1:]:
        title = f"{units.cut(_layer(layer), LEFT_WIDTH):>{LEFT_WIDTH}}"
        lines.append(_row(title, frame.disks.get(layer.name), frame, (layer.name,), probed))
    return lines


def _layer(layer: Layer) -> str:
    return f"{BELOW * bool(layer.under)}{printable(layer.name)}"


def _row(
    title: str, disk: DiskRates | None, frame: Frame, names: Sequence[str], probed: bool
) -> str:
    cells = [*texts(_RATES, disk)]
    cells += texts(_PROBED, _probe(frame, names)) if probed else texts(_AWAITS, disk)
    cells += texts(QUEUE, disk)
    return f"{title} {line((*_RATES, *_AWAITS, *QUEUE), cells)}"


def _probe(frame: Frame, names: Sequence[str]) -> RequestStats | None:
    return frame.probe.combined(names) if frame.probe else None


_RATES = (*RATES, DiskRates.r_bytes_s.column(), DiskRates.w_bytes_s.column())
_AWAITS = (DiskRates.r_await.column(), DiskRates.w_await.column())
_PROBED = tuple(RANKS[name].column("device", title=f"dev {name}") for name in ("p50", "p99"))
