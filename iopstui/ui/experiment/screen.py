"""The screen of a sweep or a comparison: its progress and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from textual import events
from textual.binding import Binding

from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import COMPARE
from iopstui.session.run_rows import DISTURBED
from iopstui.text import printable, wrapped
from iopstui.ui.core.clipboard import place_and_time
from iopstui.ui.core.key import KeyClicked, KeyHint, press
from iopstui.ui.core.modal import SCROLL_KEYS
from iopstui.ui.core.pace import Overhead
from iopstui.ui.dashboard import bars, mouse
from iopstui.ui.draw import layout
from iopstui.ui.draw.canvas import CanvasScreen, Lines
from iopstui.ui.draw.frame import BORDER_COLUMNS
from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.rows import Line, Row, capital, pad, rows_text, wrap
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FIO, SELECTED, WARNING, Charset
from iopstui.ui.experiment.compare_view import CompareView
from iopstui.ui.experiment.rows import (
    DISTURBED_MEANING,
    HELP,
    RESULT,
    below_result,
    boxed,
    inner_box,
    next_order,
    result_height,
)
from iopstui.ui.experiment.sweep_view import SweepView
from iopstui.ui.state.experiment import ExperimentState, result_text
from iopstui.ui.state.live import LiveState

ALL_PANES = "all"
HEADER_ROWS = 3
MAX_ROWS = 1000
COPIED_WIDTH = 120
TABLES, TEXTS = ("points", "runs"), ("figures", RESULT)
PANEL_NAMES = ("header", "tabs", "pane1", "pane2", "pane3", "pane4", "message", "footer")


class ExperimentScreen(CanvasScreen):
    """Draws the experiment of ``live()`` whenever ``paint`` is called, but only what has
    changed."""

    help_first = HELP

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("escape,w,c", "leave", "dashboard"),
        Binding("x", "app." + press("stop_experiment"), "stop"),
        Binding("n", "app." + press("new_experiment"), "new"),
        Binding("tab", "next(1)", "next pane"),
        Binding("shift+tab", "next(-1)", "previous pane"),
        *(Binding(str(number), f"pane({number})", show=False) for number in range(5)),
        Binding("pagedown", "page(1)", show=False),
        *SCROLL_KEYS,
    ]

    def __init__(
        self,
        state: ExperimentState,
        live_state: Callable[[], LiveState],
        own_cost: Callable[[], Overhead],
        hints: Callable[[], Sequence[KeyHint]],
        target: Target,
        charset: Charset,
        is_current: bool = True,
        host: str = "",
        devices: Mapping[str, BlockDevice] = MappingProxyType({}),
        name: str = "",
    ) -> None:
        """``is_current``: the experiment belongs to the session that goes on, so keys act on it.
        ``devices`` are those of ``host``. ``name`` is that of what is measured, if it is not the
        target's."""
        super().__init__()
        self.state = state
        self._live = live_state
        self._own_cost = own_cost
        self._experiment_hints = hints
        self._target, self._host, self._devices = target, host, devices
        self._shown_name = name or target.name
        self._charset, self._is_current = charset, is_current
        self._view = _new_view(state, charset)
        self._pane = ALL_PANES
        self._pointer_cell: tuple[str, int, int] | None = None
        """The pane under the mouse, and the cell in it."""
        self._top_rows: dict[str, int | None] = {}
        self._boxes: dict[str, Box] = {}
        self._layout_key: tuple[int, bool, bool] | None = None
        self.panels = {name: Lines(f"experiment-{name}") for name in PANEL_NAMES}
        self.small = Lines("experiment-small")
        self.canvas.add([*self.panels.values(), self.small])

    def on_resize(self, event: events.Resize) -> None:
        self.relayout()

    def on_screen_resume(self) -> None:
        if self._boxes:
            self.paint()

    def _update_state(self) -> bool:
        """Take the newest state, which may be of another experiment, or of another position in a
        recording. Returns False if there is none."""
        state = self._live().experiment
        if state is None:
            return False
        if state.plan.kind != self.state.plan.kind:
            self._view, self._pane = _new_view(state, self._charset), ALL_PANES
        if state is not self.state:
            self.state = state
            self._top_rows.clear()
            self.relayout()
        return True

    # -- layout

    @property
    def _is_full_size(self) -> bool:
        width, height = self.app.size
        return width >= layout.FULL_WIDTH and height >= layout.FULL_HEIGHT

    @property
    def shown_pane(self) -> str:
        """The pane that has the whole screen, or ALL."""
        if self._pane == ALL_PANES and not self._is_full_size:
            return self._view.PANES[0] if self.state.active else self._view.FINAL_PANE
        return self._pane

    def _full_screen_boxes(self, pane: str, box: Box) -> dict[str, Box]:
        """Boxes of a pane on the whole screen; on a small terminal with the result above it."""
        if pane != self._view.FINAL_PANE or self._is_full_size:
            return {pane: box}
        needed = self._rows_needed(RESULT, box.width)
        if self.state.active:
            needed = min(needed, box.height // 2)
        return below_result(pane, box, needed, self._rows_needed(pane, box.width))

    def _all_boxes(self, box: Box) -> dict[str, Box]:
        """Boxes of all panes at once. The result gets the rows it needs when it is final, so that
        the charts do not move before."""
        needed = 0 if self.state.active else self._rows_needed(RESULT, box.width - BORDER_COLUMNS)
        return self._view.pane_boxes(self.state, box, result_height(needed, box.height))

    @property
    def _progress(self) -> tuple[int, bool, bool]:
        """The layout depends on this."""
        can_renew = any(hint.key == "n" for hint in self._experiment_hints())
        return len(self.state.points), self.state.active, can_renew

    def relayout(self) -> None:
        """Place and paint every panel for this size and pane."""
        width, height = self.app.size
        tiny = layout.too_small(width, height)
        self.small.place(Box(0, 0, width, height) if tiny else NO_BOX)
        body = Box(0, HEADER_ROWS, width, height - HEADER_ROWS - 2)
        panel_boxes = {name: NO_BOX for name in PANEL_NAMES}
        if not tiny:
            panel_boxes |= {
                "header": Box(0, 0, width, 2),
                "tabs": Box(0, 2, width, 1),
                "message": Box(0, height - 2, width, 1),
                "footer": Box(0, height - 1, width, 1),
            }
            pane = self.shown_pane
            self._layout_key = self._progress
            self._view.can_renew = self._layout_key[-1]
            self._view.result_alone = pane == RESULT
            boxes = (
                self._all_boxes(body) if pane == ALL_PANES else self._full_screen_boxes(pane, body)
            )
            for number, name in enumerate(self._view.PANES, 1):
                panel_boxes[f"pane{number}"] = boxes.get(name, NO_BOX)
        self._boxes = panel_boxes
        for name, panel in self.panels.items():
            panel.place(panel_boxes[name])
        if tiny:
            min_size = f"{layout.MIN_WIDTH}×{layout.MIN_HEIGHT}"
            message = f"This terminal is too small (at least {min_size}). The experiment continues."
            self.small.show(pad(wrap(width, self._charset, message, None), height, width))
        self.paint()

    def paint(self) -> None:
        width = self._boxes.get("header", NO_BOX).width
        if not width:
            return
        if not self._update_state():
            self.dismiss(None)
            return
        if self._layout_key != self._progress:
            self.relayout()
            return
        charset, live_state = self._charset, self._live()
        self.panels["header"].show([self._title(width), self._status(width)])
        self.panels["tabs"].show([self._tabs(width)])
        for number, name in enumerate(self._view.PANES, 1):
            box = self._boxes[f"pane{number}"]
            if box.width and box.height:
                self.panels[f"pane{number}"].show(self._rows(number, name, box))
        message = bars.message_line(live_state, None, self._own_cost(), width, charset)
        self.panels["message"].show([message])
        self.panels["footer"].show([bars.footer_line(self._hints(), width, charset)])

    # -- its panes

    def _rows(self, number: int, name: str, box: Box) -> Sequence[Row]:
        """The rows of a pane, in a box if the terminal shows all panes at once."""
        inner = self._inner(box)
        cell = (
            self._pointer_cell[1:]
            if self._pointer_cell is not None and self._pointer_cell[0] == name
            else None
        )
        top, keys = self._top_rows.get(name), self._keys_of_rest(number, name)
        rows = self._view.rows(name, self.state, inner.width, inner.height, top, cell, keys)
        return boxed(rows, box.width, self._charset, str(number)) if self._is_full_size else rows

    def _inner(self, box: Box) -> Box:
        return inner_box(box, self._is_full_size)

    def copied_text(self) -> str:
        """Where and when, the result, then the tables with all of their columns."""
        frame = self._live().frame
        begin_s = frame.t - self.state.start_t if frame is not None else 0.0
        began_ms = frame.wall_ms - 1000 * begin_s if frame is not None else None
        place = place_and_time(self._host, began_ms, self._target, self._devices)
        return f"{place}\n{full_text(self.state, self._shown_name, self._charset, self._view)}"

    # -- its lines

    def _title(self, width: int) -> Row:
        state, plan = self.state, self.state.plan
        line = Line(width, self._charset).add(f" {state.noun} ", BOLD)
        jobs = ", ".join(plan.jobs) if not plan.variants else plan.jobs[0]
        line.add(f" {printable(jobs)}", BOLD)
        settings = [f"{axis.name} × {len(axis.values)}" for axis in plan.axes]
        settings += (
            [f"{len(plan.variants)} variants × {plan.repeats} repeats"] if plan.variants else []
        )
        settings += [f"{name}={value}" for name, value in plan.options.items()]
        for text in settings:
            line.try_add((f"  {printable(text)}", None))
        line.try_add((f"  on {printable(self._shown_name)}", DIM))
        seconds = [f"{length:g} s" for length in (plan.settle, plan.measure) if length]
        return line.add_right((f"{' + '.join(seconds)} each " if seconds else "", DIM)).build()

    def _status(self, width: int) -> Row:
        state, charset = self.state, self._charset
        filled = round(bars.BAR * len(state.points) / max(1, state.total))
        line = Line(width, charset).add(" ")
        line.add(charset.full * filled, FIO).add(charset.empty * (bars.BAR - filled), DIM)
        failed = state.finished is not None and bool(state.finished.error)
        line.add(f" {state.progress()}", ERROR if failed else BOLD)
        if state.current_point is not None:
            label, activity = f"{printable(state.current_point.label)}: ", state.activity_text()
            if not line.try_add(("   " + label, None), (activity, WARNING)):
                line.try_add(("   " + activity, WARNING))
        return line.build()

    def _tabs(self, width: int) -> Row:
        line = Line(width, self._charset).add(self._charset.rule, DIM)
        for number, name in self._tab_names():
            label = f" {number} {capital(name)} "
            if name == self.shown_pane:
                line.add(f"[{label}]", SELECTED)
            else:
                line.add(f" {label} ", DIM)
        return line.fill_to(width, self._charset.rule, DIM).build()

    def _tab_names(self) -> list[tuple[int, str]]:
        first = [(0, ALL_PANES)] if self._is_full_size else []
        return [*first, *enumerate(self._view.PANES, 1)]

    def _hints(self) -> list[KeyHint]:
        hints = [KeyHint("Esc", "Dashboard"), *self._experiment_hints()]
        panes = KeyHint("Tab", "Next pane" if not self._is_full_size else "One pane at a time")
        scroll = [KeyHint("↑ ↓", "Scroll")] if self._has_more(self._scrolled_pane()) else []
        save = [KeyHint("S", "Save")] if self._is_current else []
        return [*hints, panes, KeyHint("y", "Copy"), *scroll, *save]

    # -- keys

    def action_pane(self, number: int) -> None:
        """Show one pane on the whole screen, or (0) all of them."""
        self._pane = ALL_PANES if number == 0 else self._view.PANES[number - 1]
        self.relayout()

    def action_next(self, by: int) -> None:
        """Show the next pane on the whole screen."""
        choices = [ALL_PANES, *self._view.PANES] if self._is_full_size else list(self._view.PANES)
        self._pane = choices[(choices.index(self.shown_pane) + by) % len(choices)]
        self.relayout()

    def action_scroll(self, by: int) -> None:
        """Scroll the pane that the arrows scroll by rows or to an end."""
        self._scroll(self._scrolled_pane(), by)

    def _scroll(self, pane: str, by: int) -> None:
        if not self._has_more(pane):
            return
        visible, total = self._rows_visible(pane), self._row_count(pane, self._inner_of(pane).width)
        last = max(0, total - visible)
        top = self._top_rows.get(pane)
        position = (
            self.state.current_point.index if self.state.current_point else len(self.state.points)
        )
        is_following = pane in TABLES and self._view.order is None
        following_top = max(0, min(last, position - visible + 2)) if is_following else 0
        new_top = max(0, min(last, (following_top if top is None else top) + by))
        # back at the running point, the table follows it again
        self._top_rows[pane] = None if new_top == following_top else new_top
        self.paint()

    def _scrolled_pane(self) -> str:
        """The pane that the arrows scroll: the first one with more rows than fit; a table comes
        before a text."""
        panes = self._view.PANES
        shown = [name for name in panes if name in (*TABLES, *TEXTS) and self._has_more(name)]
        shown.sort(key=lambda name: name not in TABLES)
        return next(iter(shown), panes[0])

    def _keys_of_rest(self, number: int, pane: str) -> str:
        return "↑ ↓" if pane == self._scrolled_pane() else f"{number}: all"

    def _inner_of(self, pane: str) -> Box:
        number = self._view.PANES.index(pane) + 1
        return self._inner(self._boxes.get(f"pane{number}", NO_BOX))

    def _rows_visible(self, pane: str) -> int:
        return max(0, self._inner_of(pane).height - (2 if pane in TABLES else 1))

    def _has_more(self, pane: str) -> bool:
        if pane not in (*TABLES, *TEXTS):
            return False
        visible, width = self._rows_visible(pane), self._inner_of(pane).width
        return bool(visible) and self._row_count(pane, width) > visible

    def _rows_needed(self, pane: str, width: int) -> int:
        return self._row_count(pane, width) + (2 if pane in TABLES else 1)

    def _row_count(self, pane: str, width: int) -> int:
        """The rows of a text, or the steps of a table."""
        if pane in TABLES:
            return len(self.state.rows) if pane == "points" else self.state.total
        rows = self._view.rows(pane, self.state, width, MAX_ROWS, 0)
        blank = ((" " * width, None),)
        return next((n for n in range(len(rows) - 1, 0, -1) if rows[n] != blank), 0)

    def action_page(self, by: int) -> None:
        pane = self._scrolled_pane()
        self._scroll(pane, by * max(1, self._inner_of(pane).height - 3))

    # -- the mouse

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Over a chart: the values of the nearest point, on its border."""
        self._set_pointer(self._pane_at(event.screen_x, event.screen_y))

    def on_leave(self, event: events.Leave) -> None:
        """Stop pointing at anything."""
        self._set_pointer(None)

    def _set_pointer(self, cell: tuple[str, int, int] | None) -> None:
        charts = cell is not None and cell[0] not in (*TABLES, *TEXTS)
        previous, self._pointer_cell = self._pointer_cell, cell if charts else None
        if previous != self._pointer_cell:
            self.paint()

    def _pane_at(self, x: int, y: int) -> tuple[str, int, int] | None:
        """The pane at this cell, and the column and row in it."""
        for number, name in enumerate(self._view.PANES, 1):
            box = self._boxes.get(f"pane{number}", NO_BOX)
            if mouse.inside(box, x, y):
                inner = self._inner(box)
                return name, x - inner.x, y - inner.y
        return None

    def on_click(self, event: events.Click) -> None:
        """Act like a key of the footer, open a tab, or (double click) give a pane the whole
        screen."""
        x, y, width = event.screen_x, event.screen_y, self.app.size.width
        if event.button != 1 or not self._boxes.get("header", NO_BOX).width:
            return
        if mouse.inside(self._boxes["footer"], x, y):
            key = mouse.footer_key_at(self._hints(), width, x)
            if key is not None:
                self.post_message(KeyClicked(key))
        elif mouse.inside(self._boxes["tabs"], x, y):
            tab = mouse.tab_at([name for _, name in self._tab_names()], x)
            if tab is not None:
                self.action_pane(self._tab_names()[tab][0])
        elif self._sort_at(x, y):
            self.paint()
        elif event.chain == 2 and self._is_full_size:
            pane_cell = self._pane_at(x, y)
            is_alone = self._pane != ALL_PANES or pane_cell is None
            self.action_pane(
                0 if is_alone or pane_cell is None else self._view.PANES.index(pane_cell[0]) + 1
            )

    def _sort_at(self, x: int, y: int) -> bool:
        pane_cell = self._pane_at(x, y)
        if pane_cell is None or pane_cell[2] != 1:
            return False
        pane, column, _ = pane_cell
        width = self._inner(self._boxes[f"pane{self._view.PANES.index(pane) + 1}"]).width
        title = self._view.title_at(pane, self.state, width, column)
        if title is None:
            return False
        self._view.order = next_order(self._view.order, title)
        self._top_rows.pop(pane, None)
        return True

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._scroll(self._pane_of_wheel(event), mouse.SCROLL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll(self._pane_of_wheel(event), -mouse.SCROLL_ROWS)

    def _pane_of_wheel(self, event: events.MouseEvent) -> str:
        """The pane under the mouse if it has more rows than fit, else that of the arrows."""
        at = self._pane_at(event.screen_x, event.screen_y)
        return at[0] if at is not None and self._has_more(at[0]) else self._scrolled_pane()

    def action_leave(self) -> None:
        """Go back to the dashboard; the experiment continues."""
        self.dismiss(None)


def full_text(
    state: ExperimentState, target: str, charset: Charset,
    view: CompareView | SweepView | None = None, width: int = COPIED_WIDTH,
) -> str:  # fmt: skip
    """The result on ``target``, then the tables with the columns that ``width`` has room for, as
    ``view`` sorts them. Sentences are wrapped only for a narrower terminal."""
    shown = view or _new_view(state, charset)
    names = [name for name in shown.PANES if name in (*TABLES, "figures")]
    tables = (shown.rows(name, state, width, MAX_ROWS, 0) for name in names)
    disturbed = any(event.point.disturbed for event in state.points.values())
    note = f"{DISTURBED}  {DISTURBED_MEANING}" if disturbed else ""
    texts = (result_text(state, target), *(rows_text(t[1:]) for t in tables), note)
    if width < COPIED_WIDTH:
        lines = texts[0].split("\n")
        texts = ("\n".join(wrapped(line, 0, 2, width) for line in lines), *texts[1:])
    return "\n\n".join(filter(None, texts))


def _new_view(state: ExperimentState, charset: Charset) -> CompareView | SweepView:
    return CompareView(charset) if state.plan.kind == COMPARE else SweepView(charset)
