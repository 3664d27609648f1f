"""The panels of figures on the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from iopstui.model.answer.use import DiskUse
from iopstui.model.answer.who import Share
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.model.figures.disk import DiskRates
from iopstui.ui.dashboard.panels import (
    completions_panel,
    cpu_panel,
    fio_panel,
    kernel_panel,
    runs_panel,
    who_panel,
)
from iopstui.ui.draw import frame
from iopstui.ui.draw.charts.chart import TimeWindow
from iopstui.ui.draw.layout import TABS
from iopstui.ui.draw.rows import Piece, Row, pad
from iopstui.ui.draw.style import Charset
from iopstui.ui.state.live import LiveState

COMPLETIONS = "completions"


@dataclass(frozen=True)
class PanelData:
    """What the panels draw. ``topology`` may read files: call it only if needed."""

    state: LiveState
    target: Target
    devices: Mapping[str, BlockDevice]
    topology: Callable[[], Topology]
    next_job: str
    charset: Charset
    cursor: float | None = None
    """The selected time while the screen is frozen."""
    has_controls: bool = True
    """Whether keys here run jobs and change settings of the disks."""
    window: TimeWindow = field(default_factory=TimeWindow)
    """The time that the charts show."""
    use: DiskUse | None = None
    """Who uses the disks, if it was read."""

    @property
    def users(self) -> DiskUse | None:
        """Who uses the disks; ``None`` as soon as fio has figures to show."""
        return self.use if self.state.step is None and self.target.opened else None

    @cached_property
    def shares(self) -> Sequence[Share]:
        """How much each of the ``users`` did."""
        users = self.users
        return who_panel.shares_of(users, self.target, self.seconds_of_use) if users else ()

    @property
    def now_s(self) -> float | None:
        """The session's clock; ``None`` in a replay, because its users were read at a recorded
        time."""
        return self.state.t if self.has_controls else None

    @property
    def seconds_of_use(self) -> list[Mapping[str, DiskRates]]:
        seconds = max(1, round(self.use.seconds)) if self.use is not None else 1
        return [entry.frame.disks for entry in [*self.state.recent_seconds][-seconds:]]


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel. ``rows`` draws it for (data, width, height). Without a ``tab`` it uses the layout's
    region called ``name``. With a ``tab``, it is a pane with that title on small terminals; on
    large ones it gets ``height`` rows below the CPUs if there is space."""

    name: str
    rows: Callable[[PanelData, int, int], Sequence[Row]]
    tab: str = ""
    height: int = 0
    title: str | Callable[[PanelData], str] = ""
    value: Callable[[PanelData], Sequence[Piece]] | None = None
    """The title and the current value, which are on the upper border of the box. If they are "" and
    ``None``, they are taken from the first row."""
    foot: bool = False
    """Whether the last row is drawn on the lower border of the box."""

    def box_rows(
        self, data: PanelData, width: int, height: int, number: str, focused: bool
    ) -> Sequence[Row]:
        """``rows`` in a box, with the first row on its upper border, and with ``foot`` the last on
        its lower one."""
        inner, charset = width - frame.BORDER_COLUMNS, data.charset
        if inner < 1 or height < 3:
            return pad((), height, max(width, 0))
        head, *body = self.rows(data, inner, height if self.foot else height - 1)
        last = body.pop() if self.foot else ()
        title_text = self.title if isinstance(self.title, str) else self.title(data)
        title = frame.title_pieces(title_text) if title_text else frame.head_title(head)
        value = self.value(data) if self.value is not None else frame.head_value(head)
        first = frame.top(width, charset, number, title, value, focused)
        below = frame.bottom(width, charset, last, focused)
        return frame.box_rows(first, body, below, charset, focused)


def _fio_or_users(data: PanelData, width: int, height: int) -> Sequence[Row]:
    if data.users is None:
        return fio_panel.rows(data.state, width, height, data.charset, data.next_job)
    return who_panel.rows(
        data.users,
        data.target,
        width,
        height,
        data.charset,
        data.next_job,
        data.state.probe,
        data.shares,
        data.has_controls,
        data.now_s,
    )


PANELS: tuple[Panel, ...] = (
    Panel(
        "fio",
        lambda s, width, height: _fio_or_users(s, width, height),
        title=lambda s: "fio" if s.users is None else who_panel.title(s.target),
        value=lambda s: (
            fio_panel.value(s.state)
            if s.users is None
            else who_panel.value(s.users, s.shares, s.now_s)
        ),
        foot=True,
    ),
    Panel(
        "kernel",
        lambda s, width, height: kernel_panel.rows(s.state, s.target, width, height, s.charset),
        title=lambda s: kernel_panel.box_title(s.target),
        value=lambda s: kernel_panel.value(s.state, s.target, s.charset),
        foot=True,
    ),
    Panel(
        "cpus",
        lambda s, width, height: cpu_panel.rows(
            s.state, s.target, s.devices, s.topology(), width, height, s.charset
        ),
        title="CPUs",
        foot=True,
    ),
    Panel(
        "runs",
        lambda s, width, height: runs_panel.rows(s.state, width, height, s.charset, s.next_job),
        tab="runs",
        height=runs_panel.HEIGHT,
        title="Runs",
        value=lambda s: runs_panel.value(s.state),
    ),
    Panel(
        COMPLETIONS,
        lambda s, width, height: completions_panel.rows(
            s.state, s.window, width, height, s.charset, s.cursor, s.has_controls
        ),
        tab="by CPU",
        height=completions_panel.HEIGHT,
        title="Completions by CPU",
        value=lambda s: completions_panel.value(s.charset),
        foot=True,
    ),
)


def tabs(panels: Sequence[Panel] | None = None, titles: Sequence[str] = TABS) -> tuple[str, ...]:
    """The titles of all panes; ``titles`` are those of the regions that the layout always has."""
    panels_shown = PANELS if panels is None else panels
    return (*titles, *(panel.tab for panel in panels_shown if panel.tab))


def heights(panels: Sequence[Panel], cpus: int = 0) -> dict[str, int]:
    """The preferred heights, by name, of the panels with a tab when the whole dashboard is
    shown on a machine with ``cpus``."""
    sizes = {panel.name: panel.height for panel in panels if panel.tab}
    if cpus and COMPLETIONS in sizes:
        sizes[COMPLETIONS] = min(sizes[COMPLETIONS], completions_panel.FRAME_ROWS + cpus)
    return sizes
