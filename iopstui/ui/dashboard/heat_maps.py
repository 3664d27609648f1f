"""Heat maps of latency: fio's, and with the probe also the device's, in its place or below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iopstui.ui.dashboard import heat_cursor
from iopstui.ui.dashboard.heat_cursor import HeatCursor
from iopstui.ui.draw.charts.chart import ChartSpec, TimeWindow
from iopstui.ui.draw.charts.heat import HeatMap
from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.lines import Lines
from iopstui.ui.draw.rows import Piece
from iopstui.ui.draw.style import Charset
from iopstui.ui.state.live import LiveState

FIO, DEVICE, BOTH = "fio", "device", "both"
BOTH_MAPS_ROWS = 15
"""Rows needed to show both."""


class HeatMaps:
    """The heat maps. ``placed`` says which are visible (FIO, DEVICE or BOTH), "" if none are."""

    def __init__(self, fio: ChartSpec, device: ChartSpec, charset: Charset) -> None:
        # fio's curves are drawn over fio's map, the device's over its own
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
        """fio's and the device's."""
        return (self.fio, self.device)

    def available(self, state: LiveState, height: int) -> tuple[str, ...]:
        """Heat maps that fit into ``height`` rows. The device's needs the probe."""
        if state.probe_frame is None:
            return (FIO,)
        if state.latencies.end is None:
            return (DEVICE,)
        return (FIO, DEVICE, BOTH) if height >= BOTH_MAPS_ROWS else (FIO, DEVICE)

    def current(self, state: LiveState, height: int) -> str:
        """The chosen heat map, or the first one if that is not available."""
        choices = self.available(state, height)
        return self._choice if self._choice in choices else choices[0]

    def choose_next(self, state: LiveState, height: int) -> bool:
        """Choose the next heat map. Returns False, and chooses the first, if there is no next
        one."""
        choices = self.available(state, height)
        at = choices.index(self.current(state, height)) + 1
        self._choice = choices[at % len(choices)]
        return at < len(choices)

    def place(self, box: Box, placed: str, framed: bool = False) -> list[Lines]:
        """Use this region for the ``placed`` ones; returns new tiles for the canvas."""
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
        """Paint the visible maps. If both are visible, they use one scale, so that they can be
        compared. ``cursor`` is the selected time."""
        self._paint(state, window, (note, ()), lines, cursor)
        if not self.cursor.active or cursor is None:
            return
        # painting may have drawn its column
        changed, chosen = self.cursor.mark(cursor), self.cursor.at(cursor)
        chosen_note = () if chosen is None else heat_cursor.note(state, chosen)
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
        """``notes`` are fio's and the device's."""

        def fio() -> int:
            return self.fio.show(state.latencies, state.history, window, notes[0], lines, cursor)

        fio()
        self.device.min_scale = self.fio.scale if self.placed == BOTH else None
        self.device.show(state.device_latencies, state.history, window, notes[1], lines, cursor)
        if self.placed == BOTH and self.device.scale != self.fio.scale:
            self.fio.min_scale = self.device.scale
            fio()
            self.fio.min_scale = None
