"""The queue map: which hardware queue and interrupt serve which CPUs, and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iopstui import format as f
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.model.metrics.queue_map import DeviceMap, QueueRow, mapped_disks, queue_map
from iopstui.text import printable
from iopstui.ui.dashboard.panels import drive_line
from iopstui.ui.dashboard.panels.cpu_panel import PINNED
from iopstui.ui.draw.rows import Column, Row, Table, fit, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, Charset
from iopstui.ui.state.live import LiveState

LABEL = 5
JOBS_WIDTH, MAX_JOBS = 15, 5


def _cpus(cpus: Sequence[int], width: int) -> str:
    """A CPU list that says how many there are where it is too long."""
    if not cpus:
        return f.MISSING
    text = f.ranges(tuple(cpus))
    return text if len(text) < width else f"{len(cpus)} CPUs"


def _serves(row: QueueRow) -> str:
    offline = f" ({len(row.offline)} off)" if row.offline else ""
    return _cpus(row.cpus, 14 - len(offline)) + offline


def _jobs(row: QueueRow) -> str:
    """Return as many jobs as fit: "#0 #1*", "#10* #11* +3"."""
    if not row.jobs:
        return f.MISSING
    jobs = len(row.jobs)
    most = [f"#{job}{PINNED if job in row.pinned else ''}" for job in row.jobs[:MAX_JOBS]]
    for count in range(len(most), 0, -1):
        more = f" +{jobs - count}" if count < jobs else ""
        shown = " ".join(most[:count]) + more
        if len(shown) < JOBS_WIDTH:
            return shown
    return f"{jobs} jobs"


def _irq(row: QueueRow) -> str:
    if row.irq is None:
        return f.MISSING
    return f"{row.irq}{' all' if row.shared else ''}"


COLUMNS: tuple[Column[QueueRow], ...] = (
    Column("CPUs", 15, _serves),
    Column("tags", 6, lambda r: f.number(r.nr_tags), drop=4),
    Column("IRQ", 8, _irq),
    Column("name", 19, lambda r: fit(printable(r.name), 18).strip() or f.MISSING, drop=3),
    Column("goes to", 10, lambda r: _cpus(r.effective, 9)),
    Column("came on", 10, lambda r: _cpus(r.served_on, 9)),
    Column("node", 6, lambda r: f.MISSING if r.node is None else str(r.node), drop=2),
    Column("irq/s", 8, lambda r: f.number(r.irq_s), style=DEVICE),
    Column("jobs here", JOBS_WIDTH, _jobs, drop=1),
)


def rows(
    state: LiveState,
    target: Target,
    devices: Mapping[str, BlockDevice],
    topology: Topology,
    width: int,
    charset: Charset,
) -> list[Row]:
    """A section for each disk of the target."""
    disks = mapped_disks(target.tree, devices)
    if not disks:
        why = printable(target.no_device) or "this target has no block device"
        return wrap(width, charset, f"No queues: {why}.", None)
    found: list[Row] = []
    for one in queue_map(disks, state.frame, topology):
        found += [*_section(one, state, width, charset), message(width, charset, "")]
    return [*found, *_legend(width, charset)]


def _section(one: DeviceMap, state: LiveState, width: int, charset: Charset) -> list[Row]:
    name = printable(one.device)
    rates = []
    if one.ios_s is not None:
        rates.append(f"{f.number(one.ios_s)} I/Os per second")
    if one.irq_s is not None:
        rates.append(f"{f.number(one.irq_s)} interrupts")
    if one.ios_per_irq is not None:
        rates.append(f"{f.number(one.ios_per_irq)} I/Os each")
    right = ((", ".join(rates), DIM),) if rates else ()
    found = [rule(width, charset, (name, BOLD), (f" {printable(one.kind)}", DIM), right=right)]
    own = {name: read for name, read in state.drives.items() if one.device in read[1].devices}
    drive = drive_line.line(own, state.t, width, charset)
    found += [drive] if drive is not None else []
    if one.rows:
        table = Table(COLUMNS, LABEL, width, charset)
        found.append(table.header("hctx"))
        for row in one.rows:
            label = f.MISSING if row.hctx is None else str(row.hctx)
            found.append(table.row(label, row, dim=row.hctx is None and not row.irq_s))
    else:
        found.append(message(width, charset, "no hardware queue and no interrupt of its own"))
    for words in (one.note, one.words):
        found += wrap(width, charset, printable(words))
    return found


def _legend(width: int, charset: Charset) -> list[Row]:
    words = (
        "CPUs: those that submit to this queue. goes to: CPUs the interrupt is assigned to; came "
        f"on: CPUs that took it in this second. #0: fio's first job; {PINNED}: bound to this CPU. "
        f"all: one interrupt for all queues. {f.MISSING}: none, or unknown."
    )
    return wrap(width, charset, words)
