"""The page of a sweep over hosts, updated while its points run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.binding import Binding

from iopstui.fleet.fleet_state import FleetState
from iopstui.fleet.scaling_curve import ScalingCurve
from iopstui.format import number
from iopstui.text import printable
from iopstui.ui.core.key import KeyHint, press
from iopstui.ui.core.messages import KeyClicked
from iopstui.ui.dashboard import bars, mouse
from iopstui.ui.draw import frame, layout
from iopstui.ui.draw.canvas import CanvasScreen
from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.lines import Lines
from iopstui.ui.draw.rows import Line, Row, pad, rows_text, wrap
from iopstui.ui.draw.style import BOLD, DIM, FIO, WARNING, Charset
from iopstui.ui.experiment.rows import boxed, inner_box
from iopstui.ui.fleet.curve_view import CurveView, current_iops, point_progress, progress
from iopstui.ui.state.live import LiveState

COPIED_WIDTH = 120
PANEL_NAMES = ("header", "chart", "table", "words", "message", "footer")


class CurvePage(CanvasScreen):
    """Draws the sweep of ``fleet`` whenever ``paint`` is called; only what changed."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("escape,q,w", "leave", "all hosts"),
        Binding("x", "app." + press("stop_sweep"), "stop"),
        Binding("n", "app." + press("new_sweep"), "new"),
        Binding("down", "scroll(1)", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(10)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
    ]
    about = (
        "Sweep over hosts: the same job on the first 1, 2, 4 ... hosts. Esc returns to all hosts "
        "while the sweep continues, x stops it and keeps the results, n starts another."
    )

    def __init__(
        self,
        fleet: FleetState,
        live_state: Callable[[], LiveState],
        hints: Callable[[], Sequence[KeyHint]],
        target: str,
        charset: Charset,
    ) -> None:
        super().__init__()
        self._fleet = fleet
        self._live = live_state
        self._sweep_hints = hints
        self._target = target
        self._charset = charset
        self._view = CurveView(charset)
        self._top: int | None = None
        self._pointer_cell: tuple[int, int] | None = None
        """The cell of the chart under the mouse."""
        self._layout_key: tuple[int, ...] = ()
        self.panels = {name: Lines(f"curve-{name}") for name in PANEL_NAMES}
        self.small = Lines("curve-small")
        self.canvas.add([*self.panels.values(), self.small])

    def on_resize(self, event: events.Resize) -> None:
        """Lay out the page again."""
        self._layout_key = ()
        self.paint()

    def on_screen_resume(self) -> None:
        """Back from another screen."""
        self.paint()

    def _lay_out(self, width: int, height: int) -> None:
        """Lay out the page by the number of its lines."""
        body, edges = height - 4, frame.BORDER_COLUMNS if self._framed else 0
        lower = 1 if self._framed else 0
        parts = self._view.heights(width - edges, body - 3 * lower)
        sizes = tuple(part + lower for part in parts)
        if self._layout_key == (width, height, *sizes):
            return
        self._layout_key = (width, height, *sizes)
        chart, table, conclusions = sizes
        boxes = {
            "header": Box(0, 0, width, 2),
            "chart": Box(0, 2, width, chart),
            "table": Box(0, 2 + chart, width, table),
            "words": Box(0, 2 + chart + table, width, conclusions),
            "message": Box(0, height - 2, width, 1),
            "footer": Box(0, height - 1, width, 1),
        }
        tiny = layout.too_small(width, height)
        for name, panel in self.panels.items():
            panel.place(NO_BOX if tiny else boxes[name])
        self.small.place(Box(0, 0, width, height) if tiny else NO_BOX)
        if tiny:
            min_size = f"{layout.MIN_WIDTH}×{layout.MIN_HEIGHT}"
            message = f"This terminal is too small (at least {min_size}). The sweep continues."
            self.small.show(pad(wrap(width, self._charset, message, None), height, width))

    def paint(self) -> None:
        """Shows the newest state."""
        curve = self._fleet.curve
        if curve is None:
            # another position of a recording
            self.dismiss(None)
            return
        view, charset = self._view, self._charset
        view.set_curve(curve)
        width, height = self.app.size
        self._lay_out(width, height)
        if self.small.shown:
            return
        lines = {
            "header": [self._title(curve, width), self._status(curve, width)],
            "message": [bars.message_line(self._live(), None, None, width, charset)],
            "footer": [bars.footer_line(self._hints(), width, charset, "all hosts")],
        }
        for name, panel in self.panels.items():
            box = panel.box
            if name in lines:
                panel.show(lines[name])
            elif box.height:
                panel.show(self._pane(name, box))

    @property
    def _framed(self) -> bool:
        """Whether panes are boxes: on a large terminal."""
        return layout.large(*self.app.size)

    def _pane(self, name: str, box: Box) -> list[Row]:
        inner = inner_box(box, self._framed)
        if name == "chart":
            rows = self._view.chart(inner.width, inner.height, self._pointer_cell)
        elif name == "words":
            rows = self._view.conclusions(inner.width, inner.height)
        else:
            rows = self._view.table(self._fleet, inner.width, inner.height, self._top)
        return boxed(rows, box.width, self._charset) if self._framed else rows

    # -- the mouse

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Over the chart: the values of the nearest point, on its border."""
        x, y, box = event.screen_x, event.screen_y, self.panels["chart"].box
        inner = inner_box(box, self._framed)
        cell = (x - inner.x, y - inner.y) if mouse.inside(box, x, y) else None
        if cell != self._pointer_cell:
            self._pointer_cell = cell
            self.paint()

    def on_click(self, event: events.Click) -> None:
        """Do a key of the footer."""
        box = self.panels["footer"].box
        if event.button == 1 and mouse.inside(box, event.screen_x, event.screen_y):
            key = mouse.footer_key_at(self._hints(), box.width, event.screen_x, "all hosts")
            if key is not None:
                self.post_message(KeyClicked(key))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls the table."""
        self.action_scroll(mouse.SCROLL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls the table."""
        self.action_scroll(-mouse.SCROLL_ROWS)

    # -- its lines

    def _title(self, curve: ScalingCurve, width: int) -> Row:
        line = Line(width, self._charset).add(" sweep over hosts ", BOLD)
        line.add(f" {printable(curve.job)}", BOLD)
        line.try_add((f"  hosts × {len(curve.counts)}", None))
        line.try_add((f"  on {printable(self._target)}", DIM))
        return line.build()

    def _status(self, curve: ScalingCurve, width: int) -> Row:
        charset, count = self._charset, len(curve.counts)
        finished = (
            count
            if curve.point_number is None and not curve.end_reason
            else curve.point_number or len(curve.points)
        )
        filled = round(bars.BAR * finished / count)
        line = Line(width, charset).add(" ").add(charset.full * filled, FIO)
        line.add(charset.empty * (bars.BAR - filled), DIM).add(f" {progress(curve)}", BOLD)
        if curve.point_number is None:
            return line.build()
        iops = current_iops(self._fleet)
        line.try_add((f"   {point_progress(self._fleet)}", WARNING))
        if iops is not None:
            line.try_add((f"   {number(iops)} IOPS", FIO))
        return line.build()

    def _hints(self) -> list[KeyHint]:
        return [KeyHint("Esc", "all hosts"), *self._sweep_hints(), KeyHint("m", "mark"),
                KeyHint("up down", "scroll")]  # fmt: skip

    # -- keys

    def action_scroll(self, by: int) -> None:
        """Scroll the table."""
        curve = self._fleet.curve
        visible = inner_box(self.panels["table"].box, self._framed).height - 2
        if curve is None:
            return
        last = max(0, len(curve.counts) - visible)
        following_top = max(
            0, min(last, (last if curve.point_number is None else curve.point_number) - visible + 2)
        )
        new_top = max(0, min(last, (following_top if self._top is None else self._top) + by))
        # back at the running point, the table follows it again
        self._top = None if new_top == following_top else new_top
        self.paint()

    def copied_text(self) -> str:
        """The conclusions, then the table with all of its columns."""
        rows = self._view.table(self._fleet, COPIED_WIDTH, len(self._view.curve.counts) + 2, 0)
        return f"{rows_text(self._view.sentences(COPIED_WIDTH))}\n\n{rows_text(rows[1:])}"

    def action_leave(self) -> None:
        """Go back to all hosts; the sweep continues."""
        self.dismiss(None)
