"""The page of a search on the screen: the answer so far, the latency against the rate, the runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from textual.binding import Binding

from iopstui import format as f
from iopstui.features.limit.model import Answer, range_text
from iopstui.features.limit.run import table_lines
from iopstui.features.limit.runner import LimitRunner
from iopstui.text import printable
from iopstui.ui.core.modal import CLOSE_HINT, Hint
from iopstui.ui.dashboard.bars import BAR
from iopstui.ui.dialogs.slow_list import LiveRows
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.xy_chart import XYChart, XYLine, XYSpec, linear_axis
from iopstui.ui.draw.rows import Line, Row, message, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, ERROR, FIO, MARK, P99, WARNING, Charset

COUNTS, LEFT_OUT, CLOSED = "o", "x", "C"
MIN_CHART, TABLE_ROWS = 8, 9


@dataclass
class ShownSearch:
    """A search on the screen, with its ``answer`` once it has ended, or the ``error`` that ended
    it. ``began`` is in seconds of the monotonic clock."""

    runner: LimitRunner
    answer: Answer | None = None
    error: str = ""
    began: float = field(default_factory=time.monotonic)

    @property
    def active(self) -> bool:
        return self.answer is None and not self.error

    @property
    def so_far(self) -> str:
        """The result so far: the answer, or the interval from the runs so far."""
        if self.answer is not None:
            return self.answer.text
        if self.error:
            return self.error
        return f"So far: {range_text(self.runner.found)}" if self.runner.found is not None else ""

    @property
    def now(self) -> str:
        """What is being measured."""
        step = self.runner.step
        if step is None:
            return "Measuring the job as it is"
        return f"Run {len(self.runner.rows) + 1}: {step.rate:,.0f}/s for {step.seconds:g} s"


def page_rows(
    shown: ShownSearch, width: int, height: int, chart: XYChart, charset: Charset, t: float
) -> tuple[list[Row], list[Row]]:
    """The rows that stay on top, and the rows of the table below. Together they fill ``height``
    rows if the table is short. ``t`` is the present time."""
    runner = shown.runner
    top = [*_head(shown, width, charset, t)]
    if shown.answer is not None:
        for text in (runner.saturated(), *shown.answer.notes):
            top += wrap(width, charset, text, None) if text else []
    lines = table_lines(runner.setup, list(runner.rows), runner.closed)
    table = [
        message(width, charset, line, None if number else DIM) for number, line in enumerate(lines)
    ]
    rows = max(MIN_CHART, height - len(top) - min(len(table), TABLE_ROWS))
    return [*top, *chart.rows(curve_spec(runner), width, rows)], table


def _head(shown: ShownSearch, width: int, charset: Charset, t: float) -> Iterator[Row]:
    setup, style = shown.runner.setup, WARNING if shown.error else BOLD
    job = f"{setup.run.job} on {setup.target.name}, random arrivals: {setup.keep.text}"
    yield message(width, charset, printable(job), DIM)
    if shown.active:
        spent = min(t - shown.began, setup.time_s)
        filled = round(BAR * spent / setup.time_s)
        line = Line(width, charset).add(" ").add(charset.full * filled, FIO)
        line.add(charset.empty * (BAR - filled), DIM)
        line.add(f" {f.clock(spent)} of at most {f.clock(setup.time_s)}")
        line.try_add((f"   {shown.now}", None))
        yield line.build()
    yield from wrap(width, charset, shown.so_far, style) if shown.so_far else ()


def curve_spec(runner: LimitRunner) -> XYSpec:
    """The chart of the percentile against the rate: runs that count, runs that are left out, the
    unchanged job, the bound, and the interval of the limit."""
    setup, found = runner.setup, runner.found
    points = [(row.asked or 0.0, row.figure_ns, row.left_out) for row in runner.rows
              if row.figure_ns]  # fmt: skip
    counted = sorted((rate, ns) for rate, ns, left_out in points if not left_out)
    others = [(rate, ns) for rate, ns, left_out in points if left_out]
    closed = runner.closed
    alone = [(closed.point.iops, closed.figure_ns)] if closed and closed.figure_ns else []
    ends = [end for end in (found.low, found.high) if end is not None] if found else []
    rates = [*ends, *(rate for rate, _ in (*counted, *others, *alone))]
    low, high = min(rates, default=0.0), max(rates, default=1.0)
    step = plotting.tick_step(max(high - low, 0.1 * high))
    axis = linear_axis(1.02 * high, f.axis_number, step * int(0.98 * low / step))
    bound = setup.keep.required
    tail = setup.keep.path[-1]
    return XYSpec(
        f"{tail} against rate (I/Os per second)", axis,
        plotting.log_scale([bound, *(ns for _, ns in (*counted, *others, *alone))], None, True),
        f.axis_latency,
        (
            XYLine("", ((axis.low, bound), (axis.high, bound)), ERROR),
            XYLine(LEFT_OUT, tuple(others), DIM, joined=False),
            XYLine(COUNTS, tuple(counted), P99),
            XYLine(CLOSED, tuple(alone), DEVICE, joined=False),
        ),
        ((f"{COUNTS} {tail}", P99), (f"   ─ {f.latency(bound)}", ERROR),
         *((("   │ limit, 95 %", MARK),) if ends else ()),
         *(((f"   {CLOSED} closed loop", DEVICE),) if alone else ()),
         *(((f"   {LEFT_OUT} left out", DIM),) if others else ())),
        verticals=tuple(ends),
        note="" if points else "no rate measured yet",
    )  # fmt: skip


class LimitPage(LiveRows):
    """Shows the newest search, which ``shown()`` returns. Its keys call ``on_stop`` and
    ``on_new``."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("x", "stop", show=False), Binding("n", "again", show=False),
    ]  # fmt: skip

    def __init__(
        self, shown: Callable[[], ShownSearch], on_stop: Callable[[], None],
        on_new: Callable[[], None], charset: Charset,
    ) -> None:  # fmt: skip
        super().__init__("Limit", lambda width: (), charset)
        self.about = (
            "The highest rate at which a latency is kept. The search continues while this page is "
            "closed. x stops it, n starts another one, up and down scroll."
        )
        self._shown, self._stop, self._new = shown, on_stop, on_new
        self._chart = XYChart(charset)
        self._key_hints()

    def _key_hints(self) -> None:
        own: Hint = ("x", "Stop", "screen.stop")
        if not self._shown().active:
            own = ("n", "New search", "screen.again")
        hints = (own, ("↑ ↓", "Scroll", ""), CLOSE_HINT)
        if hints != self._hints:
            self._hints = hints
            self.show_hints()

    def rows(self, width: int) -> Sequence[Row]:
        """The answer and the curve, then the runs that contain all words of the filter."""
        self._key_hints()
        top, table = page_rows(self._shown(), width, self.body_height, self._chart, self.charset,
                               time.monotonic())  # fmt: skip
        return [*top, *(r for r in table if self.matches("".join(text for text, _ in r)))]

    def action_stop(self) -> None:
        """End the search. Runs measured so far are kept."""
        self._stop()

    def action_again(self) -> None:
        """Ask for another search if none is running."""
        if not self._shown().active:
            self.dismiss(None)
            self._new()
