"""Many CPUs in a small space: a cell for each CPU, a row for each measure, and the names of the
busiest CPUs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style

from iopstui.model.block.topology import Domain, Topology
from iopstui.model.metrics.cpu_map import MEASURES, CpuRow, GridRow, cpu_grid, fold_lines
from iopstui.ui.draw import density
from iopstui.ui.draw.rows import Line, Row
from iopstui.ui.draw.style import BOLD, DIM, Charset

LABEL = 9
WORDS, FEW_WORDS = 52, 30
ORDER = ("busy", "irq/s", "BLOCK/s", "IPI/s", "jobs", "sys", "soft")
"""The order in which measures are shown if not all fit."""


def rows(
    cpus: Sequence[CpuRow], topology: Topology, width: int, height: int, charset: Charset
) -> list[Row]:
    """As many measures as fit; every CPU has its cell in each."""
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
    page = _head(lines, width, head, charset)
    for row in grid.rows:
        page += _measure(row, lines, words_beside, width, charset)
    return page[:height]


def _columns(cells: int, width: int) -> tuple[int, bool]:
    """Cells per line, and whether the text is beside them (else below)."""
    space = width - LABEL
    if cells <= space - FEW_WORDS:
        return space - FEW_WORDS, True
    if cells > space and space - WORDS >= 64:
        return space - WORDS, True
    return space, False


def _head(
    lines: Sequence[Sequence[Domain]], width: int, height: int, charset: Charset
) -> list[Row]:
    """Head of the grid: the first CPU of every group, or how the lines are divided."""
    if len(lines) == 1:
        names = Line(width, charset).add("cpu".ljust(LABEL), DIM)
        groups = Line(width, charset).add("node".ljust(LABEL), DIM)
        column = LABEL
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
    return [Line(width, charset).add("cpu".ljust(LABEL), DIM).add(spans, DIM).build()]


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
        line = Line(width, charset).add((row.measure.name if not index else "").ljust(LABEL), BOLD)
        for text, style in _cells(row, domains, charset):
            line.add(text, style)
        if beside and not index:
            line.add("  ").add(_busiest_text(row, line.free))
        measure_rows.append(line.build())
    if not beside:
        measure_rows.append(
            Line(width, charset).fill_to(LABEL).add(_busiest_text(row, width - LABEL)).build()
        )
    return measure_rows


def _busiest_text(row: GridRow, width: int) -> str:
    """The busiest CPUs, as many as fit."""
    text = row.busiest_text
    busiest, _, total = text.partition(" of ")
    while len(text) > width and ", " in busiest:
        busiest = busiest.rpartition(", ")[0]
        text = f"{busiest} of {total}" if total else busiest
    return text


def _cells(
    row: GridRow, domains: Sequence[Domain], charset: Charset
) -> list[tuple[str, Style | None]]:
    """The cells of one line; neighbours of one style are one piece."""
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
