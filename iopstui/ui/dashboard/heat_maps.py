"""The latency heat map on the dashboard, and the cursor on its cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from iopstui import format as f
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.probe import KINDS
from iopstui.model.metrics.slow.slow_requests import by_level
from iopstui.model.samples import Exemplar
from iopstui.ui.draw.canvas import Lines
from iopstui.ui.draw.charts.chart import ChartSpec, TimeWindow
from iopstui.ui.draw.charts.heat import HeatCell, HeatMap
from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.rows import Piece
from iopstui.ui.draw.style import BOLD, DIM, Charset
from iopstui.ui.state.live import LiveState


@dataclass(frozen=True, slots=True)
class ChosenCell:
    """A chosen cell of fio's heat map, or of the device's (``by_device``)."""

    cell: HeatCell
    by_device: bool

    @property
    def range_text(self) -> str:
        """The cell's latencies, such as "1.00 ms to 1.26 ms"."""
        return f"{f.latency(self.cell.low)} to {f.latency(self.cell.high)}"

    def contains(self, request: Exemplar) -> bool:
        """Whether the cell covers this request's latency: the time in the device for the device's
        heat map; else the time from allocation to completion, which is closest to fio's latency and
        to the latency of a stacked device above."""
        if self.by_device:
            took = request.total_ns if request.level else request.device_ns
            return request.kind in KINDS and self.cell.contains(took)
        return self.cell.contains(request.total_ns)


class HeatCursor:
    """The chosen cell. ``maps`` are the heat maps by name, from top to bottom. When the second
    changes, the chosen latency stays, and the nearest cell is marked."""

    def __init__(self, maps: Mapping[str, HeatMap]) -> None:
        self._maps = maps
        self._chosen: tuple[str, float] | None = None

    @property
    def active(self) -> bool:
        return self._chosen is not None

    def clear(self) -> None:
        """Choose no cell."""
        self._chosen = None
        self.mark(None)

    def at(self, t: float) -> ChosenCell | None:
        """The chosen cell in the column of time ``t``; ``None`` if the column is empty."""
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
        """In the column of time ``t``, choose the next cell with I/Os below (``by`` 1) or above
        (-1); if none is chosen yet, the slowest cell of the lowest map. False if the column is
        empty."""
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
        """Choose the cell of a map in this row, if it has I/Os."""
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
    """The frames whose requests are in the cell's column, if they are still kept."""
    cell, before = chosen.cell, 0.0
    middle, centered, covering = (cell.begin + cell.end) / 2, [], []
    for moment in state.recent_seconds:
        frame, probe = moment.frame, moment.frame.probe
        if probe is None:
            continue
        begin, end = max(before, frame.t - probe.seconds), frame.t
        before = end
        # by the middle of the interval, as LatencyHistory does
        if cell.begin <= (begin + end) / 2 < cell.end:
            centered.append(frame)
        elif begin <= middle < end:
            covering.append(frame)
    return centered or covering


def requests_of(state: LiveState, frames: Sequence[Frame]) -> list[Exemplar]:
    """The kept requests to the measured disks. If those have no requests of their own (LVM, md),
    the requests to the disks beneath them."""
    requests = [
        request for frame in frames if frame.probe is not None for request in frame.probe.exemplars
    ]
    of_measured_disks = [request for request in requests if request.disk in state.devices]
    return of_measured_disks or next(iter(by_level(requests).values()), [])


def cell_note(state: LiveState, chosen: ChosenCell) -> list[Piece]:
    """What to show about the chosen cell, in the title of a heat map."""
    ios = "I/O" if chosen.cell.count == 1 else "I/Os"
    pieces: list[Piece] = [(f"{chosen.range_text}: ", DIM), (f"{chosen.cell.count} {ios}", BOLD)]
    frames = frames_of(state, chosen)
    probes = [frame.probe for frame in frames if frame.probe is not None]
    if not any(probe.exemplars for probe in probes):
        return [*pieces, (", requests not kept", DIM)]
    count = sum(map(chosen.contains, requests_of(state, frames)))
    return [*pieces, (f", {count} kept", DIM)]


FIO, DEVICE, BOTH = "fio", "device", "both"
BOTH_MAPS_ROWS = 15
"""The rows needed to show both heat maps."""


class HeatMaps:
    """The heat maps. ``placed`` says which are visible (FIO, DEVICE or BOTH), "" if none is."""

    def __init__(self, fio: ChartSpec, device: ChartSpec, charset: Charset) -> None:
        # fio's curves are drawn over fio's map, the device's curves over the device's map
        device_curves = tuple(
            replace(curve, label=curve.label.removeprefix(f"{DEVICE} "))
            for curve in device.curves
            if curve.name.startswith(DEVICE)
        )
        self.fio = HeatMap(replace(fio, id="heat"), charset)
        self.device = HeatMap(
            replace(fio, id="device-heat", title="device latency", curves=device_curves), charset
        )
        self.placed = ""
        self._choice = FIO
        self.cursor = HeatCursor({FIO: self.fio, DEVICE: self.device})

    @property
    def maps(self) -> tuple[HeatMap, HeatMap]:
        return (self.fio, self.device)

    def available(self, state: LiveState, height: int) -> tuple[str, ...]:
        """The names of the heat maps that fit into ``height`` rows. The device's needs the
        probe."""
        if state.probe_frame is None:
            return (FIO,)
        if state.latencies.end is None:
            return (DEVICE,)
        return (FIO, DEVICE, BOTH) if height >= BOTH_MAPS_ROWS else (FIO, DEVICE)

    def current(self, state: LiveState, height: int) -> str:
        """The chosen heat map, or the first one if the chosen one is not available."""
        choices = self.available(state, height)
        return self._choice if self._choice in choices else choices[0]

    def choose_next(self, state: LiveState, height: int) -> bool:
        """Choose the next heat map. If there is none, chooses the first one and returns False."""
        choices = self.available(state, height)
        at = choices.index(self.current(state, height)) + 1
        self._choice = choices[at % len(choices)]
        return at < len(choices)

    def place(self, box: Box, placed: str, framed: bool = False) -> list[Lines]:
        """Put the heat maps that ``placed`` names into this box. Returns new tiles for the
        canvas."""
        self.placed = placed if box.height else ""
        above = (box.height + 1) // 2 if placed == BOTH else box.height
        first = replace(box, height=above) if placed in (FIO, BOTH) else NO_BOX
        below = replace(box, y=box.y + above, height=box.height - above)
        second = {BOTH: below, DEVICE: box}.get(placed, NO_BOX)
        self.fio.title_text = "fio latency" if placed == BOTH else "latency"
        self.fio.min_scale = self.device.min_scale = None
        return [*self.fio.place(first, framed), *self.device.place(second, framed)]

    def paint(
        self,
        state: LiveState,
        window: TimeWindow,
        note: Sequence[Piece],
        lines: bool,
        cursor: float | None,
    ) -> None:
        """Paint the visible maps. If both are visible, they share one scale, so that they can be
        compared. ``cursor`` is the selected time."""
        self._paint(state, window, (note, ()), lines, cursor)
        if not self.cursor.active or cursor is None:
            return
        # the column of the cursor may have been painted only now: look for its cell again
        changed, chosen = self.cursor.mark(cursor), self.cursor.at(cursor)
        chosen_note = () if chosen is None else cell_note(state, chosen)
        if chosen is not None and chosen.by_device:
            self._paint(state, window, (note, chosen_note), lines, cursor)
        elif changed or chosen is not None:
            self._paint(state, window, (chosen_note or note, ()), lines, cursor)

    def _paint(
        self,
        state: LiveState,
        window: TimeWindow,
        notes: tuple[Sequence[Piece], Sequence[Piece]],
        lines: bool,
        cursor: float | None,
    ) -> None:
        """Paint the maps that are shown. ``notes`` are the notes in the titles of fio's map and the
        device's map."""

        def fio() -> int:
            return self.fio.show(state.latencies, state.history, window, notes[0], lines, cursor)

        fio()
        self.device.min_scale = self.fio.scale if self.placed == BOTH else None
        self.device.show(state.device_latencies, state.history, window, notes[1], lines, cursor)
        if self.placed == BOTH and self.device.scale != self.fio.scale:
            self.fio.min_scale = self.device.scale
            fio()
            self.fio.min_scale = None
