"""Layout of the screen for a terminal of any size. Pure: takes a size and returns regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

MIN_WIDTH, MIN_HEIGHT = 60, 15
FULL_WIDTH, FULL_HEIGHT = 118, 32
SIDE_BY_SIDE_FROM = 160
THREE_WIDE, THREE_HIGH = 200, 14
"""From this terminal width and chart height on, further charts are beside the first two, if there
are no rows for them below."""
LABELS = 6
"""Columns for labels beside the latency chart. The other charts are as much narrower, because all
three show the same span of time."""
FINDING_ROWS, FINDING_BOX = 2, 4
"""The rows of a finding without a box, and the least rows of its box."""
CHART_ROWS = 8
FIO_ROWS = 7
DISK_ROWS = 4
TWO_LINES_FROM = 20
"""From this terminal height on, a finding without a box has two rows."""
RUNS = "runs"
CHARTS = "charts"
"""The panel of further charts."""
TABS = ("IOPS", "latency", "numbers", "CPUs")


@dataclass(frozen=True, slots=True)
class Box:
    """A region of the terminal in columns and rows; nothing is visible if either is 0."""

    x: int
    y: int
    width: int
    height: int


NO_BOX = Box(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class LayoutPlan:
    """The dashboard's regions. ``tabbed``: only one pane at a time is shown; ``extra`` are the
    boxes of the panels without a region of their own, by name."""

    header: Box
    summary: Box
    tabs: Box
    iops: Box
    latency: Box
    fio: Box
    kernel: Box
    cpus: Box
    message: Box
    finding: Box
    footer: Box
    tabbed: bool
    framed: bool = False
    """Whether the panels are drawn as boxes."""
    strip: Box = NO_BOX
    answer: Box = NO_BOX
    extra: Mapping[str, Box] = field(default_factory=dict)

    def box(self, name: str) -> Box:
        """The box of this panel; ``NO_BOX`` if it is not shown."""
        return self.extra[name] if name in self.extra else getattr(self, name, NO_BOX)


def too_small(width: int, height: int) -> bool:
    """Whether the terminal is too small for a dashboard."""
    return width < MIN_WIDTH or height < MIN_HEIGHT


def plan(
    width: int,
    height: int,
    disks: int,
    cpus: int,
    tab: int,
    strip: int = 0,
    more: Mapping[str, int] | None = None,
    fullscreen: bool = False,
    answer: int = 0,
    users: bool = False,
    fio: bool = True,
) -> LayoutPlan:
    """The regions for a terminal of this size; ``tab`` matters only with tabs. The kernel's panel
    has up to ``disks`` rows. ``strip`` rows are kept free above the message. ``more``: further
    panels and their preferred rows without tabs. ``fullscreen``: one pane at a time even on a large
    terminal. ``answer`` rows are below the title. With ``users`` fio's panel lists who uses the
    disk; without ``fio`` its rows are the others'."""
    if strip:
        shrunk = plan(
            width, height - strip, disks, cpus, tab, more=more, fullscreen=fullscreen,
            answer=answer, users=users, fio=fio,
        )  # fmt: skip
        return replace(_plan_moved_down(shrunk, strip), strip=Box(0, _bottom(shrunk), width, strip))
    if more:
        return _plan_with_extra(
            width, height, disks, cpus, tab, more, fullscreen, answer, users, fio
        )
    if fullscreen or width < FULL_WIDTH or height < FULL_HEIGHT:
        return _tabbed_plan(width, height, tab, answer, _device_rows(disks) if users else 0, fio)
    return _full_plan(width, height, disks, cpus, _finding_rows(height), answer, fio)


def _bottom_boxes(width: int, height: int, finding: int) -> tuple[Box, Box]:
    """The boxes of the message and the finding. A finding without a box is below the message, and a
    long message continues in its rows."""
    if not finding:
        return Box(0, height - 2, width, 1), NO_BOX
    if finding >= FINDING_BOX:
        return Box(0, height - 2, width, 1), Box(0, height - 2 - finding, width, finding)
    return (Box(0, height - 2 - finding, width, 1), Box(0, height - 1 - finding, width, finding))


def _finding_rows(height: int) -> int:
    return FINDING_ROWS if height < 36 else FINDING_BOX if height < 44 else FINDING_BOX + 1


def large(width: int, height: int) -> bool:
    """Whether the terminal is large enough for all panels at once, as boxes."""
    return width >= FULL_WIDTH and height >= FULL_HEIGHT


def _plan_with_extra(
    width: int,
    height: int,
    disks: int,
    cpus: int,
    tab: int,
    more: Mapping[str, int],
    fullscreen: bool,
    answer: int,
    users: bool,
    fio: bool,
) -> LayoutPlan:
    if fullscreen or width < FULL_WIDTH or height < FULL_HEIGHT:
        layout = plan(
            width, height, disks, cpus, tab, fullscreen=fullscreen, answer=answer, users=users,
            fio=fio,
        )  # fmt: skip
        pane = Box(0, layout.tabs.y + 1, width, _bottom(layout) - layout.tabs.y - 1)
        own_tab = tab - len(TABS)
        boxes = {name: pane if at == own_tab else NO_BOX for at, name in enumerate(more)}
        return replace(layout, extra=boxes)
    boxes, used_rows = {}, 0
    for name, rows in more.items():
        fits = height - used_rows - rows >= FULL_HEIGHT
        boxes[name] = Box(0, used_rows, width, rows) if fits else NO_BOX
        used_rows += rows if fits else 0
    beside = width >= SIDE_BY_SIDE_FROM and boxes.get(RUNS, NO_BOX).height > 0
    finding = 0 if beside else _finding_rows(height - used_rows)
    layout = _full_plan(width, height - used_rows, disks, cpus, finding, answer, fio)
    at = _bottom(layout)
    placed = {
        name: _box_moved_down(box, at) if box.height else NO_BOX for name, box in boxes.items()
    }
    if beside:
        half = width * 9 // 20
        runs = placed[RUNS]
        placed[RUNS] = replace(runs, width=half)
        layout = replace(layout, finding=replace(runs, x=half, width=width - half))
    if boxes.get(CHARTS) == NO_BOX and width >= THREE_WIDE and layout.iops.height >= THREE_HIGH:
        iops, latency, placed[CHARTS] = _three_columns(layout.iops, width)
        layout = replace(layout, iops=iops, latency=latency)
    return replace(_plan_moved_down(layout, used_rows), extra=placed)


def _three_columns(first: Box, width: int) -> tuple[Box, Box, Box]:
    chart_width = (width - LABELS) // 3
    second = replace(first, x=chart_width, width=chart_width + LABELS)
    third = replace(first, x=second.x + second.width, width=width - 2 * chart_width - LABELS)
    return replace(first, width=chart_width), second, third


def _bottom(layout: LayoutPlan) -> int:
    """The first row of the lines at the bottom. The finding is one of them, unless it is beside the
    runs."""
    return (
        min(layout.finding.y, layout.message.y) if _has_finding_rows(layout) else layout.message.y
    )


def _has_finding_rows(layout: LayoutPlan) -> bool:
    return layout.finding.width == layout.message.width and layout.finding.height > 0


def _plan_moved_down(layout: LayoutPlan, by: int) -> LayoutPlan:
    """The layout with the lines at the bottom moved down by ``by`` rows."""
    return replace(
        layout,
        message=_box_moved_down(layout.message, by),
        finding=_box_moved_down(layout.finding, by)
        if _has_finding_rows(layout)
        else layout.finding,
        footer=_box_moved_down(layout.footer, by),
    )


def _box_moved_down(box: Box, by: int) -> Box:
    return replace(box, y=box.y + by)


def _device_rows(disks: int) -> int:
    """The height of the kernel's panel with ``disks`` rows, a title, a heading and a lower
    border."""
    return max(4, 3 + max(disks, 1))


def _tabbed_plan(
    width: int, height: int, tab: int, answer: int, device_rows: int, fio: bool
) -> LayoutPlan:
    """The layout with tabs. ``device_rows`` are enough for the kernel's panel; 0: it gets all that
    fio's panel leaves."""
    framed = large(width, height)
    finding = FINDING_ROWS if height >= TWO_LINES_FROM else 1
    finding = _finding_rows(height) if framed else finding
    top, bottom = 4 + answer, height - 2 - finding
    pane = Box(0, top, width, bottom - top)
    fio_height = min(FIO_ROWS, pane.height - 3) if fio else 0
    if device_rows:
        fio_height = max(fio_height, pane.height - device_rows)
    return LayoutPlan(
        header=Box(0, 0, width, 2),
        answer=Box(0, 2, width, answer),
        summary=Box(0, 2 + answer, width, 1),
        tabs=Box(0, 3 + answer, width, 1),
        iops=pane if tab == 0 else NO_BOX,
        latency=pane if tab == 1 else NO_BOX,
        fio=Box(0, top, width, fio_height) if tab == 2 else NO_BOX,
        kernel=Box(0, top + fio_height, width, pane.height - fio_height) if tab == 2 else NO_BOX,
        cpus=pane if tab == 3 else NO_BOX,
        message=_bottom_boxes(width, height, finding)[0],
        finding=_bottom_boxes(width, height, finding)[1],
        footer=Box(0, height - 1, width, 1),
        tabbed=True,
        framed=framed,
    )


def _full_plan(
    width: int, height: int, disks: int, cpus: int, finding: int, answer: int, fio: bool
) -> LayoutPlan:
    half = width // 2
    beside = width >= SIDE_BY_SIDE_FROM
    tables_beside = beside and fio
    head = (1 if beside else 2) + answer
    fio_height = FIO_ROWS if fio else 0
    # on a higher screen devices get more rows, but at most half of the extra height
    most = DISK_ROWS + (height - FULL_HEIGHT) // 2
    kernel_height = _device_rows(min(disks, most))
    tables = max(fio_height, kernel_height) if tables_beside else fio_height + kernel_height
    space = height - head - 2 - finding - tables
    columns = 2 if beside else 1
    cpu_rows = -(-max(cpus, 1) // columns)
    # three rows are for the title, the heading and the lower border with text
    cpu_height = min(3 + cpu_rows, max(7, space * 2 // 5), space - CHART_ROWS)
    charts = space - cpu_height
    top = head + charts
    return LayoutPlan(
        header=Box(0, 0, width, head - answer),
        answer=Box(0, head - answer, width, answer),
        summary=NO_BOX,
        tabs=NO_BOX,
        iops=Box(0, head, half, charts),
        latency=Box(half, head, width - half, charts),
        fio=Box(0, top, half if beside else width, tables if tables_beside else fio_height),
        kernel=Box(half, top, width - half, tables)
        if tables_beside
        else Box(0, top + fio_height, width, kernel_height),
        cpus=Box(0, top + tables, width, cpu_height),
        message=_bottom_boxes(width, height, finding)[0],
        finding=_bottom_boxes(width, height, finding)[1],
        footer=Box(0, height - 1, width, 1),
        tabbed=False,
        framed=True,
    )
