"""Which CPUs submit, interrupt and complete in this second."""

from __future__ import annotations

from dataclasses import dataclass

from iopstui.model.device import BlockDevice
from iopstui.model.frame import CpuFrame
from iopstui.ui import format as f
from iopstui.ui.rows import Column, Line, Piece, Row, Table, message, pad, rule
from iopstui.ui.state import LiveState
from iopstui.ui.style import BOLD, DIM, Charset

LABEL = 4
BLOCK_WIDTH = 78
BAR = 10


@dataclass(frozen=True, slots=True)
class CpuRow:
    """One CPU, with what does not come from the frame itself."""

    cpu: int
    hctx: str
    ipi_s: float | None
    frame: CpuFrame

    @property
    def busy(self) -> float | None:
        """Percent of time not idle (waiting for I/O is idle)."""
        load = self.frame.load
        return None if load is None else max(0.0, 100 - load.idle - load.iowait)


def _load(name: str) -> Column[CpuRow]:
    def show(row: CpuRow) -> str:
        return f.percent(getattr(row.frame.load, name) if row.frame.load else None)

    return Column(name, max(5, len(name) + 1), show, drop=2 if name == "irq" else 0)


COLUMNS: tuple[Column[CpuRow], ...] = (
    Column("hctx", 5, lambda r: r.hctx),
    Column("irq/s", 7, lambda r: f.count(r.frame.irq_s)),
    Column("BLOCK/s", 8, lambda r: f.count(r.frame.block_s)),
    Column("IPI/s", 7, lambda r: f.count(r.ipi_s)),
    *(_load(name) for name in ("usr", "sys", "iowait", "irq", "soft", "idle")),
    Column("steal", 6, lambda r: f.percent(r.frame.load.steal if r.frame.load else None), drop=9),
)


def rows(
    state: LiveState, device: BlockDevice | None, width: int, height: int, charset: Charset
) -> list[Row]:
    """The panel: a table while it fits, else the busiest CPUs and a count of the others."""
    title = rule(width, charset, ("CPUs, this second", BOLD), right=((_note(state, device), DIM),))
    cpus = _cpu_rows(state, device)
    if not cpus:
        words = message(width, charset, "first reading; a rate needs two")
        return pad([title, words], height, width)
    blocks = 2 if width >= 2 * BLOCK_WIDTH and len(cpus) > 1 else 1
    room = max(1, height - 2)
    fits = len(cpus) <= room * blocks
    kept = cpus if fits else _busiest(cpus, max(1, (room - 1) * blocks))
    rest = [] if fits else [row for row in cpus if row not in kept]
    body = _blocks(kept, blocks, width, charset)
    if rest:
        top = max((row.busy or 0.0 for row in rest), default=0.0)
        others = f"and {len(rest)} CPUs less busy than these, at most {f.percent(top)} % each"
        body.append(message(width, charset, others))
    return pad([title, *body], height, width)


def _note(state: LiveState, device: BlockDevice | None) -> str:
    frame = state.frame
    if device is None or frame is None or not frame.cpus:
        return "percent of each CPU, sampled by the kernel's tick"
    if all(cpu.irq_s is None for cpu in frame.cpus.values()):
        return f"irq/s {f.NOTHING}: {device.name} has no interrupts of its own"
    return f"irq/s: {device.name}'s own interrupts"


def _cpu_rows(state: LiveState, device: BlockDevice | None) -> list[CpuRow]:
    frame = state.frame
    if frame is None:
        return []
    queues: dict[int, list[int]] = {}
    for hctx in device.hctxs if device else ():
        for cpu in hctx.cpus:
            queues.setdefault(cpu, []).append(hctx.index)
    return [
        CpuRow(cpu, _queue(queues.get(cpu)), state.ipi.get(cpu), value)
        for cpu, value in sorted(frame.cpus.items())
    ]


def _queue(found: list[int] | None) -> str:
    if not found:
        return f.NOTHING
    return str(found[0]) if len(found) == 1 else f"{found[0]}+"


def _busiest(cpus: list[CpuRow], count: int) -> list[CpuRow]:
    """The busiest ones, in order of their number so that rows do not jump about."""
    ranked = sorted(cpus, key=lambda row: (-(row.busy or 0.0), -(row.frame.block_s or 0.0)))
    return sorted(ranked[:count], key=lambda row: row.cpu)


def _blocks(cpus: list[CpuRow], blocks: int, width: int, charset: Charset) -> list[Row]:
    block_width = (width - (blocks - 1)) // blocks
    with_bar = block_width >= BLOCK_WIDTH
    table = Table(COLUMNS, LABEL, block_width - (BAR + 2 if with_bar else 0), charset)
    per_block = -(-len(cpus) // blocks)
    found: list[Row] = []
    for line in range(-1, per_block):
        row: list[Piece] = []
        for block in range(blocks):
            index = block * per_block + line
            if line < 0:
                part = table.header("cpu") + _bar_head(with_bar, charset)
            elif index < len(cpus) and line < per_block:
                cpu = cpus[index]
                part = table.row(str(cpu.cpu), cpu) + _bar(cpu, with_bar, charset)
            else:
                part = ((" " * block_width, None),)
            row += [(" ", None)] * bool(block) + list(part)
        found.append(Line(width, charset).extend(row).done())
    return found


def _bar_head(wanted: bool, charset: Charset) -> Row:
    return (("  " + "busy".ljust(BAR), DIM),) if wanted else ()


def _bar(row: CpuRow, wanted: bool, charset: Charset) -> Row:
    if not wanted:
        return ()
    if row.busy is None:
        return ((" " * (BAR + 2), None),)
    full = round(row.busy / 100 * BAR)
    return (("  " + charset.full * full, None), (charset.empty * (BAR - full), DIM))
