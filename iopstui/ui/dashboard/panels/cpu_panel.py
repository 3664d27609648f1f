"""The CPUs that submit, handle interrupts and complete in this second: a table, or a grid for many
CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from rich.style import Style

from iopstui import format as f
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Domain, Topology
from iopstui.model.metrics.cpu_map import MEASURES, CpuRow, GridRow, cpu_grid, cpu_rows, fold_lines
from iopstui.model.metrics.cpus import CPU
from iopstui.model.metrics.queue_map import IDLE, SOFTIRQ, DeviceMap, mapped_disks, queue_map
from iopstui.tables import Column
from iopstui.text import printable
from iopstui.ui.draw import density
from iopstui.ui.draw.rows import Line, Piece, Row, Table, message, pad, rule, table_for, wrap
from iopstui.ui.draw.style import BOLD, BORDER, DIM, Charset, load_style
from iopstui.ui.state.live import LiveState

LABEL = 4
BLOCK_WIDTH = 76
BAR = 10
PINNED = "*"
BEFORE_SHOWN_S = 120.0
MAX_BEFORE = 4


*_LOAD, _BLOCK, _IRQ, _IPI = CPU
COLUMNS = (
    Column("", "hctx", 4, read=lambda row: queues(row)),
    Column("", "job", 5, read=lambda row: jobs(row)),
    _IRQ.screen_column(),
    _BLOCK.screen_column(title="BLOCK/s", width=7),
    _IPI.screen_column(title="IPI/s", meaning="function-call interrupts from other CPUs, for any "
                       "reason"),
    *(row.screen_column() for row in _LOAD),
)  # fmt: skip


@lru_cache
def _columns_with(irq: bool, jobs: bool) -> tuple[Column, ...]:
    empty = ["irq"] * (not irq) + ["job"] * (not jobs)
    return tuple(column for column in COLUMNS if column.title not in empty)


def queues(row: CpuRow) -> str:
    """The first hardware queue of a CPU, with a sign if there are more."""
    if not row.hctxs:
        return f.MISSING
    return str(row.hctxs[0]) if len(row.hctxs) == 1 else f"{row.hctxs[0]}+"


def jobs(row: CpuRow) -> str:
    """The fio jobs that ran on a CPU last: "0*" means that job 0 is pinned to it, "0 +3" means four
    jobs."""
    if not row.jobs:
        return f.MISSING
    first = f"{row.jobs[0]}{PINNED if row.jobs[0] in row.pinned else ''}"
    return first if len(row.jobs) == 1 else f"{first} +{len(row.jobs) - 1}"


def rows(
    state: LiveState,
    target: Target,
    devices: Mapping[str, BlockDevice],
    topology: Topology,
    width: int,
    height: int,
    charset: Charset,
) -> list[Row]:
    """The panel: a table if the CPUs fit, else a grid that names the busiest CPUs; notes at the
    bottom."""
    disks = mapped_disks(target.tree, devices)
    # leave out a CPU that only occurs in a queue's list, because it is offline or absent
    cpus = [row for row in cpu_rows(disks, state.frame, topology, state.ipi) if row.online]
    maps = queue_map(disks, state.frame, topology)
    title = rule(width, charset, ("CPUs, this second", BOLD), right=_irq_note(maps))
    if state.frame is None or not state.frame.cpus:
        text = message(width, charset, state.why_no_rates)
        return pad([title, text], height, width)
    words = "; ".join(filter(None, (before_text(state), note(maps))))
    notes = wrap(width, charset, words)
    if len(notes) > 1 and height < 10:
        notes = [message(width, charset, words)]
    space = max(1, height - 1 - len(notes))
    blocks = 2 if width >= 2 * BLOCK_WIDTH and len(cpus) > 1 else 1
    if len(cpus) <= (space - 1) * blocks:
        body = _blocks(cpus, blocks, width, charset, topology)
    else:
        body = grid_rows(cpus, topology, width, space, charset)
    # notes are at the bottom, so that they do not move when the number of rows changes
    return [*pad([title, *body], height - len(notes), width), *notes]


def _irq_note(maps: Sequence[DeviceMap]) -> list[Piece]:
    device_map = next((m for m in maps if m.ios_per_irq is not None), None)
    if device_map is None or device_map.ios_per_irq is None:
        return []
    name = printable(device_map.device)
    return [(f"{name}: {f.number(device_map.ios_per_irq)} I/Os per interrupt", DIM)]


def note(maps: Sequence[DeviceMap]) -> str:
    """Notes that one needs to understand the figures."""
    parts: list[str] = []
    several = sum(bool(device_map.note) for device_map in maps) > 1
    counted = ", ".join(one.device for one in maps if not one.note and one.irq_s is not None)
    of = f"of {counted}; " if counted else ""
    for device_map in maps:
        if device_map.note:
            # several disks have the same note, except for the file of a loop device in parentheses
            text = device_map.note.partition(" (")[0] if several else device_map.note
            parts.append(f"irq/s: {of}{text}")
        if device_map.completion_text and device_map.completion not in (IDLE, SOFTIRQ):
            parts.append(device_map.completion_text)
    return printable("; ".join(dict.fromkeys(parts)))


def before_text(state: LiveState) -> str:
    """Where completions ran before the last change of a tunable, because the table shows where they
    run now. "" some time after the change."""
    change, before = state.tunable_change, state.completions_before
    if change is None or not before or state.t - change.t > BEFORE_SHOWN_S:
        return ""
    counted = [cpu for cpu in sorted(before, key=lambda cpu: -before[cpu]) if before[cpu]]
    busiest = (f"{f.number(before[cpu])} on CPU {cpu}" for cpu in sorted(counted[:MAX_BEFORE]))
    rates = ", ".join(busiest) or "0 on all CPUs"
    more = " ..." if len(counted) > MAX_BEFORE else ""
    return printable(f"before {change.name} {change.before} → {change.now}: BLOCK/s {rates}{more}")


def _blocks(
    cpus: list[CpuRow], blocks: int, width: int, charset: Charset, topology: Topology
) -> list[Row]:
    block_width = (width - (blocks - 1)) // blocks
    with_bar = block_width >= BLOCK_WIDTH
    columns = _columns_with(topology.irq_time is not False, any(cpu.jobs for cpu in cpus))
    table = table_for(columns, LABEL, block_width - (BAR + 2 if with_bar else 0), charset)
    per_block = -(-len(cpus) // blocks)
    block_rows = [_head(table, blocks, width, charset, with_bar)]
    for line in range(per_block):
        row: list[Piece] = []
        for block in range(blocks):
            index = block * per_block + line
            if index < len(cpus):
                cpu = cpus[index]
                part = table.row(str(cpu.cpu), cpu) + _bar(cpu, with_bar, charset)
            else:
                part = ((" " * block_width, None),)
            row += [(" ", None)] * bool(block) + list(part)
        block_rows.append(Line(width, charset).extend(row).build())
    return block_rows


@lru_cache(8)
def _head(table: Table[CpuRow], blocks: int, width: int, charset: Charset, with_bar: bool) -> Row:
    part = table.header("cpu") + ((("  " + "busy".ljust(BAR), DIM),) if with_bar else ())
    line = Line(width, charset).extend(part)
    for _ in range(1, blocks):
        line.add(" ", None).extend(part)
    return line.build()


def _bar(row: CpuRow, with_bar: bool, charset: Charset) -> Row:
    if not with_bar:
        return ()
    if row.busy is None:
        return ((" " * (BAR + 2), None),)
    full = round(row.busy / 100 * BAR)
    return (
        ("  ", None), (charset.full * full, load_style(row.busy)),
        (charset.empty * (BAR - full), BORDER),
    )  # fmt: skip


# Many CPUs in little space: a cell for each CPU, a row for each measure, and the names of the
# busiest CPUs.


GRID_LABEL = 9
WORDS, FEW_WORDS = 52, 30
ORDER = ("busy", "irq/s", "BLOCK/s", "IPI/s", "jobs", "sys", "soft")
"""The measures, most important first, because not all may fit."""


def grid_rows(
    cpus: Sequence[CpuRow], topology: Topology, width: int, height: int, charset: Charset
) -> list[Row]:
    """As many measures as fit, each with a cell for every CPU."""
    ranked = sorted(MEASURES, key=lambda m: ORDER.index(m.name) if m.name in ORDER else 99)
    domains = cpu_grid(cpus, topology, ()).domains
    columns, words_beside = _columns(len(cpus) + len(domains) - 1, width)
    lines = fold_lines(domains, columns)
    nodes = len({domain.node for domain in domains}) > 1
    head = 2 if nodes and len(lines) == 1 and height >= 4 else 1
    lines_each = len(lines) + (0 if words_beside else 1)
    fitting = max(1, (height - head) // lines_each)
    chosen = [m for m in MEASURES if m in ranked[:fitting]]
    grid = cpu_grid(cpus, topology, chosen)
    page = _grid_head(lines, width, head, charset)
    for row in grid.rows:
        page += _measure(row, lines, words_beside, width, charset)
    return page[:height]


def _columns(cells: int, width: int) -> tuple[int, bool]:
    """How many cells a line has, and whether the text is beside them or below."""
    space = width - GRID_LABEL
    if cells <= space - FEW_WORDS:
        return space - FEW_WORDS, True
    if cells > space and space - WORDS >= 64:
        return space - WORDS, True
    return space, False


def _grid_head(
    lines: Sequence[Sequence[Domain]], width: int, height: int, charset: Charset
) -> list[Row]:
    """The head of the grid: the first CPU of every group, or how the CPUs are divided into
    lines."""
    if len(lines) == 1:
        names = Line(width, charset).add("cpu".ljust(GRID_LABEL), DIM)
        groups = Line(width, charset).add("node".ljust(GRID_LABEL), DIM)
        column = GRID_LABEL
        for domain in lines[0]:
            size = len(domain.cpus)
            label = _span(domain)
            names.fill_to(column).add(
                label if len(label) <= size else str(domain.cpus[0])[:size], DIM
            )
            node = "" if domain.node is None else f"{domain.node}"
            groups.fill_to(column).add(node[:size], DIM)
            column += size + 1
        return [groups.build(), names.build()][2 - height :]
    ends = (f"{line[0].cpus[0]}-{line[-1].cpus[-1]}" for line in lines)
    spans = "line by line " + ", ".join(ends)
    return [Line(width, charset).add("cpu".ljust(GRID_LABEL), DIM).add(spans, DIM).build()]


def _span(domain: Domain) -> str:
    first, last = domain.cpus[0], domain.cpus[-1]
    if last - first + 1 == len(domain.cpus):
        return f"{first}-{last}" if last > first else str(first)
    return f"{first},.."


def _measure(
    row: GridRow, lines: Sequence[Sequence[Domain]], beside: bool, width: int, charset: Charset
) -> list[Row]:
    measure_rows: list[Row] = []
    for index, domains in enumerate(lines):
        line = Line(width, charset).add(
            (row.measure.name if not index else "").ljust(GRID_LABEL), BOLD
        )
        for text, style in _cells(row, domains, charset):
            line.add(text, style)
        if beside and not index:
            line.add("  ").add(_busiest_text(row, line.free))
        measure_rows.append(line.build())
    if not beside:
        measure_rows.append(
            Line(width, charset)
            .fill_to(GRID_LABEL)
            .add(_busiest_text(row, width - GRID_LABEL))
            .build()
        )
    return measure_rows


def _busiest_text(row: GridRow, width: int) -> str:
    text = row.busiest_text
    busiest, _, total = text.partition(" of ")
    while len(text) > width and ", " in busiest:
        busiest = busiest.rpartition(", ")[0]
        text = f"{busiest} of {total}" if total else busiest
    return text


def _cells(
    row: GridRow, domains: Sequence[Domain], charset: Charset
) -> list[tuple[str, Style | None]]:
    """The cells of one line. Neighbours with the same style are one piece."""
    looks = density.grid_cells(charset)
    pieces: list[tuple[str, Style | None]] = []
    run, run_style = "", None
    for place, domain in enumerate(domains):
        run += " " if place else ""
        for cpu in domain.cpus:
            level = row.level(cpu, len(looks) - 1)
            char, style = density.UNKNOWN if level is None else looks[level]
            if style is not run_style:
                pieces.append((run, run_style))
                run, run_style = "", style
            run += char
    return [*pieces, (run, run_style)]
