"""Charts of the selected disk, if they fit on the home screen."""

from __future__ import annotations

from dataclasses import replace

from textual import events

from iopstui import format as f
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.history import History
from iopstui.text import printable
from iopstui.ui.draw.canvas import Canvas
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.chart import Chart, ChartSpec, Curve, TimeWindow
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.style import P50, P99, Charset

READS, WRITES, R_AWAIT, W_AWAIT = SERIES = tuple(
    row.name for row in (DiskRates.r_s, DiskRates.w_s, DiskRates.r_await, DiskRates.w_await)
)
MIN_HEIGHT = 10
HISTORY_S = 600
NS_OF_MS = 1e6


def new_history() -> History:
    """History of one disk, for the widest chart."""
    return History(SERIES, raw_samples=HISTORY_S, folded_samples=1)


def chart_values(rates: DiskRates | None) -> dict[str, float | None]:
    """Values of one second, by series."""
    if rates is None:
        return {}
    return {
        READS: rates.r_s, WRITES: rates.w_s,
        R_AWAIT: None if rates.r_await is None else rates.r_await * NS_OF_MS,
        W_AWAIT: None if rates.w_await is None else rates.w_await * NS_OF_MS,
    }  # fmt: skip


class DiskCharts(Canvas):
    """The charts of IOPS and mean latency of one disk, side by side."""

    def __init__(self, charset: Charset) -> None:
        self._iops = _chart("home-iops", "IOPS", ("reads", READS), ("writes", WRITES), charset)
        self._await = _chart(
            "home-await", "Await (means)", (R_AWAIT, R_AWAIT), (W_AWAIT, W_AWAIT), charset
        )
        self._window = TimeWindow()
        self._name = ""
        super().__init__([*self._iops.widgets(), *self._await.widgets()])
        self.id = "home-charts"

    def on_resize(self, event: events.Resize) -> None:
        """Both take half of the width."""
        width, height = event.size
        half = width // 2
        boxes = (Box(0, 0, half, height), Box(half, 0, width - half, height))
        for chart, box in zip((self._iops, self._await), boxes, strict=True):
            self.add(chart.place(box, framed=True))

    def paint(self, name: str, history: History, rates: DiskRates | None) -> None:
        """Show the history of a disk; ``rates`` are those of its newest second."""
        if name != self._name:
            self._name = name
            for chart, title in ((self._iops, "IOPS"), (self._await, "Await")):
                chart.forget()
                chart.spec = replace(chart.spec, title=f"{title} of {printable(name)}")
        self._window.follow(history.end or 0.0, self._iops.columns, 2.0)
        iops, awaits = ["", ""], ["", ""]
        if rates is not None:
            iops = [f.number(rates.w_s), f.number(rates.r_s)]
            awaits = [f.dense_ms(rates.w_await), f.dense_ms(rates.r_await)]
        self._iops.paint(history, self._window, iops, ())
        self._await.paint(history, self._window, awaits, ())


def _chart(
    name: str, title: str, reads: tuple[str, str], writes: tuple[str, str], charset: Charset
) -> Chart:
    """A chart of two curves, each given as a label and its series; await has a logarithmic
    scale."""
    braille = charset.line == "braille"
    line = "⠒⠒" if braille else charset.line * 2
    points = "⠂⠐" if braille else charset.points[0] * 2
    curves = (
        Curve(writes[1], writes[0], plotting.POINTS, charset.points[0], P99, points),
        Curve(reads[1], reads[0], plotting.LINE, charset.line, P50, line),
    )
    is_await = reads[1] == R_AWAIT
    axis = f.axis_latency if is_await else f.axis_number
    return Chart(ChartSpec(name, title, curves, is_await, axis, 0), charset)
