"""Further charts of the dashboard: more figures, and two runs overlaid."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as f
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.history import MAX, History
from iopstui.model.metrics.run_history import RUNS, RunRow
from iopstui.ui.draw.canvas import Lines
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.chart import SHORTEST_S, Chart, ChartSpec, Curve, TimeWindow
from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.rows import Piece
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, FIO, P50, P99, Charset
from iopstui.ui.state.live import FIO_IOPS, QUEUE, READ_MIB, WRITE_MIB, LiveState

HEIGHT = 12
SIDE_BY_SIDE_FROM = 110
"""From this width of the terminal on, the charts are side by side, else one below the other."""


class MoreCharts:
    """Two charts in one region, over the same time as the main charts."""

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
        """Use this region. Returns new tiles for the canvas."""
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
        """Paint the charts. ``disk`` has the figures for the titles; if the mouse points at another
        second, the titles show that. ``limits`` are those of a bought volume, in MiB/s."""
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


MAX_SECONDS = 1800
COMPARED_FIGURES = {"iops": (FIO_IOPS, "mean"), "p99": ("p99", MAX)}
"""The compared figures, each with its series and how several samples in one dot are merged."""


def _curves(of: str) -> tuple[Curve, Curve]:
    merge = COMPARED_FIGURES[of][1]
    return (
        Curve(f"{of} 1", "", plotting.POINTS, DEVICE, merge),
        Curve(f"{of} 0", "", plotting.LINE, FIO, merge),
    )


SPECS = (
    ChartSpec("over-iops", "IOPS", _curves("iops"), False, f.axis_number, 8),
    ChartSpec("over-p99", "p99", _curves("p99"), True, f.axis_latency, 8),
)


class Overlay:
    """Charts that overlay the runs numbered ``steps`` (none or two), in place of the usual
    charts."""

    def __init__(self, charset: Charset) -> None:
        self.steps: tuple[int, ...] = ()
        self.charts = [Chart(spec, charset) for spec in SPECS]
        self._history = History([f"{of} {at}" for of in COMPARED_FIGURES for at in (0, 1)])
        self._history_key: object = None
        self._window = TimeWindow()

    @property
    def active(self) -> bool:
        return len(self.steps) == 2

    def choose(self, step: int) -> None:
        """Select a run; of more than two, the oldest selection is dropped. A run that is selected
        is deselected."""
        steps = [other for other in self.steps if other != step]
        self.steps = tuple(steps if step in self.steps else [*steps, step][-2:])

    def place(self, iops: Box, latency: Box, framed: bool = False) -> list[Lines]:
        """Use these boxes if the overlay is active. Returns new tiles for the canvas."""
        boxes = (iops, latency) if self.active else (NO_BOX, NO_BOX)
        pairs = zip(self.charts, boxes, strict=True)
        return [new for chart, box in pairs for new in chart.place(box, framed)]

    def paint(self, state: LiveState) -> None:
        """Paint both runs, as far as their seconds are kept."""
        by_step = {row.step: row for row in state.runs.rows}
        rows = [by_step[step] for step in self.steps if step in by_step]
        if len(rows) < 2 or not any(chart.shown for chart in self.charts):
            return
        source = (self.steps, *(row.end for row in rows if row.ended == RUNS))
        if source != self._history_key:
            self._history_key, self._history = source, align_runs(state.history, rows)
            for chart in self.charts:
                chart.forget()
        self._window.length = max(SHORTEST_S, self._history.end or 0.0)
        values = ([f.number(row.iops) for row in rows], [f.latency(row.p99_ns, "") for row in rows])
        names = [f"run {row.step}" for row in rows]
        note = [("aligned at start; ctrl+p ends it", DIM)]
        for chart, texts in zip(self.charts, values, strict=True):
            chart.rename(names[::-1])
            chart.paint(self._history, self._window, texts[::-1], note)


def align_runs(history: History, rows: Sequence[RunRow]) -> History:
    """The samples of two runs by seconds since each run's start, one per second."""
    names = [f"{of} {at}" for of in COMPARED_FIGURES for at in range(len(rows))]
    joined = History(names)
    lengths = [min(MAX_SECONDS, round((row.end or 0.0) - (row.begin or 0.0))) for row in rows]
    columns = {
        f"{of} {at}": history.window(series, row.begin or 0.0, 1.0, length, merge)
        for of, (series, merge) in COMPARED_FIGURES.items()
        for at, (row, length) in enumerate(zip(rows, lengths, strict=True))
    }
    for second in range(max(lengths, default=0)):
        values = {name: column[second] for name, column in columns.items() if second < len(column)}
        joined.add(second + 1.0, 1.0, values)
    return joined
