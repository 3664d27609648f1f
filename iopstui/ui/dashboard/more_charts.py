"""Further charts for large terminals: the device's queue and its bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as f
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.history import History
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.chart import Chart, ChartSpec, Curve, TimeWindow
from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.lines import Lines
from iopstui.ui.draw.rows import Piece
from iopstui.ui.draw.style import BOLD, DEVICE, P50, P99, Charset
from iopstui.ui.state.live import QUEUE, READ_MIB, WRITE_MIB

HEIGHT = 12
SIDE_BY_SIDE_FROM = 110
"""Terminal width from which they are side by side, else one below the other."""


class MoreCharts:
    """Two charts in one region, over the same time as the others."""

    def __init__(self, charset: Charset) -> None:
        queue = Curve(QUEUE, QUEUE, plotting.LINE, DEVICE)
        write = Curve(WRITE_MIB, "write", plotting.POINTS, P99)
        read = Curve(READ_MIB, "read", plotting.LINE, P50)
        self.charts = [
            Chart(ChartSpec("queue", "device queue", (queue,), False, f.axis_number, 0), charset),
            Chart(
                ChartSpec("mib", "device MiB/s", (write, read), False, f.axis_number, 0), charset
            ),
        ]

    def place(self, box: Box, framed: bool = False) -> list[Lines]:
        """Use this region; returns new tiles for the canvas."""
        boxes = _split_box(box) if box.height else (NO_BOX, NO_BOX)
        pairs = zip(self.charts, boxes, strict=True)
        return [new for chart, at in pairs for new in chart.place(at, framed)]

    def paint(
        self,
        history: History,
        window: TimeWindow,
        disk: DiskRates | None,
        cursor: float | None,
        mouse_t: float | None = None,
        limits: Sequence[float] = (),
    ) -> None:
        """``disk`` has the figures for the titles, unless the mouse points at another second.
        ``limits`` are those of a bought volume, in MiB/s."""
        newest, note = ([""], ["", ""]), list[Piece]()
        if disk is not None:
            newest = ([f.number(disk.aqu_sz)], [f.mib(disk.w_bytes_s), f.mib(disk.r_bytes_s)])
        for chart, values, lines in zip(self.charts, newest, ((), limits), strict=True):
            if mouse_t is not None:
                values = chart.values_at(history, window, mouse_t, chart.column_s(window))
                note = [(f"at {f.clock(mouse_t)}", BOLD), ("  ", None)]
            chart.paint(history, window, values, note, cursor, limits=lines)


def _split_box(box: Box) -> tuple[Box, Box]:
    if box.width < SIDE_BY_SIDE_FROM:
        above = (box.height + 1) // 2
        below = Box(box.x, box.y + above, box.width, box.height - above)
        return Box(box.x, box.y, box.width, above), below
    left = box.width // 2
    right = Box(box.x + left, box.y, box.width - left, box.height)
    return Box(box.x, box.y, left, box.height), right
