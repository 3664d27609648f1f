"""The cell of the heat maps that was chosen with the arrow keys or the mouse, and the requests in
it that the probe has kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from iopstui import format as f
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.probe import KINDS
from iopstui.model.metrics.slow.slow_requests import by_level
from iopstui.model.samples import Exemplar
from iopstui.ui.draw.charts.heat import HeatCell, HeatMap
from iopstui.ui.draw.rows import Piece
from iopstui.ui.draw.style import BOLD, DIM
from iopstui.ui.state.live import LiveState

DEVICE = "device"


@dataclass(frozen=True, slots=True)
class ChosenCell:
    """A cell of fio's heat map or the device's (``by_device``)."""

    cell: HeatCell
    by_device: bool

    @property
    def range_text(self) -> str:
        """ "1.00 ms to 1.26 ms"."""
        return f"{f.latency(self.cell.low)} to {f.latency(self.cell.high)}"

    def contains(self, request: Exemplar) -> bool:
        """Whether the cell covers this request's latency: in the device for the device's heat map,
        else from allocation to completion, which is closest to fio's latency and to that of a
        device above."""
        if self.by_device:
            took = request.total_ns if request.level else request.device_ns
            return request.kind in KINDS and self.cell.contains(took)
        return self.cell.contains(request.total_ns)


class HeatCursor:
    """The chosen cell. ``maps`` are by name, from top to bottom. The chosen latency stays the same
    while the second changes; the nearest cell is marked."""

    def __init__(self, maps: Mapping[str, HeatMap]) -> None:
        self._maps = maps
        self._chosen: tuple[str, float] | None = None

    @property
    def active(self) -> bool:
        return self._chosen is not None

    def clear(self) -> None:
        """Choose none."""
        self._chosen = None
        self.mark(None)

    def at(self, t: float) -> ChosenCell | None:
        """The chosen cell in the column of time ``t``; ``None`` if that column is empty."""
        nearest = self._nearest(t)
        if nearest is None:
            return None
        name, cell = nearest
        return ChosenCell(cell, name == DEVICE)

    def mark(self, t: float | None) -> bool:
        """Mark the chosen cell in the column of time ``t``. True if the marked cell changed."""
        nearest = None if t is None else self._nearest(t)
        changed = False
        for name, heat_map in self._maps.items():
            now = nearest[1] if nearest is not None and nearest[0] == name else None
            changed = changed or heat_map.chosen != now
            heat_map.chosen = now
        return changed

    def move(self, t: float, by: int) -> bool:
        """Choose the next cell with I/Os below (``by`` 1) or above (-1) in the column of time
        ``t``, at first the slowest of the lowest map. False if the column is empty."""
        cells = [*self._cells(t)]
        if not cells:
            return False
        now = self._nearest(t)
        if now is None:
            lowest = cells[-1][0]
            now = next(named_cell for named_cell in cells if named_cell[0] == lowest)
        else:
            now = cells[min(len(cells) - 1, max(0, cells.index(now) + by))]
        self._chosen = (now[0], now[1].middle)
        return True

    def choose(self, chart: object, row: int, t: float) -> None:
        """Choose the cell of a map at this row; one without I/Os can't be chosen."""
        target = next(
            (
                named_cell
                for named_cell in self._cells(t)
                if self._maps[named_cell[0]] is chart and named_cell[1].row == row
            ),
            None,
        )
        self._chosen = None if target is None else (target[0], target[1].middle)

    def _cells(self, t: float) -> Iterator[tuple[str, HeatCell]]:
        return ((name, cell) for name, heat_map in self._maps.items() for cell in heat_map.cells(t))

    def _nearest(self, t: float) -> tuple[str, HeatCell] | None:
        if self._chosen is None:
            return None
        chosen_map, latency = self._chosen
        return min(
            self._cells(t), default=None,
            key=lambda pair: (pair[0] != chosen_map, abs(log(pair[1].middle / latency))),
        )  # fmt: skip


def frames_of(state: LiveState, chosen: ChosenCell) -> list[Frame]:
    """Frames with the requests of the cell's column, as far as they are kept."""
    cell, before = chosen.cell, 0.0
    middle, centered, covering = (cell.begin + cell.end) / 2, [], []
    for moment in state.recent_seconds:
        frame, probe = moment.frame, moment.frame.probe
        if probe is None:
            continue
        begin, end = max(before, frame.t - probe.seconds), frame.t
        before = end
        # as LatencyHistory puts intervals into columns
        if cell.begin <= (begin + end) / 2 < cell.end:
            centered.append(frame)
        elif begin <= middle < end:
            covering.append(frame)
    return centered or covering


def requests_of(state: LiveState, frames: Sequence[Frame]) -> list[Exemplar]:
    """The kept requests to the measured disks, or to the disks below them if they have no requests
    of their own (LVM, md)."""
    requests = [
        request for frame in frames if frame.probe is not None for request in frame.probe.exemplars
    ]
    of_measured_disks = [request for request in requests if request.disk in state.devices]
    return of_measured_disks or next(iter(by_level(requests).values()), [])


def note(state: LiveState, chosen: ChosenCell) -> list[Piece]:
    """Text for the title of a heat map."""
    ios = "I/O" if chosen.cell.count == 1 else "I/Os"
    pieces: list[Piece] = [(f"{chosen.range_text}: ", DIM), (f"{chosen.cell.count} {ios}", BOLD)]
    frames = frames_of(state, chosen)
    probes = [frame.probe for frame in frames if frame.probe is not None]
    if not any(probe.exemplars for probe in probes):
        return [*pieces, (", requests not kept", DIM)]
    count = sum(map(chosen.contains, requests_of(state, frames)))
    return [*pieces, (f", {count} kept", DIM)]
