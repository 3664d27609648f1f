"""The queue map: which hardware queue and interrupt serve which CPUs, and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iopstui import format as f
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.model.metrics.queue_map import DeviceMap, QueueRow, mapped_disks, queue_map
from iopstui.tables import Column
from iopstui.text import printable
from iopstui.ui.dashboard.panels import kernel_panel
from iopstui.ui.dashboard.panels.cpu_panel import PINNED
from iopstui.ui.draw.rows import Row, Table, fit, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, Charset
from iopstui.ui.state.live import LiveState

LABEL = 5
JOBS_WIDTH, MAX_JOBS = 15, 5


def _cpus(cpus: Sequence[int], width: int) -> str:
    """A list of CPUs, or their number if the list is too long."""
    if not cpus:
        return f.MISSING
    text = f.ranges(tuple(cpus))
    return text if len(text) < width else f"{len(cpus)} CPUs"


def _serves(row: QueueRow) -> str:
    offline = f" ({len(row.offline)} off)" if row.offline else ""
    return _cpus(row.cpus, 14 - len(offline)) + offline


def _jobs(row: QueueRow) -> str:
    """As many jobs as fit, such as "#0 #1*" or "#10* #11* +3"."""
    if not row.jobs:
        return f.MISSING
    jobs = len(row.jobs)
    most = [f"#{job}{PINNED if job in row.pinned else ''}" for job in row.jobs[:MAX_JOBS]]
    for count in range(len(most), 0, -1):
        more = f" +{jobs - count}" if count < jobs else ""
        text = " ".join(most[:count]) + more
        if len(text) < JOBS_WIDTH:
            return text
    return f"{jobs} jobs"


def _irq(row: QueueRow) -> str:
    if row.irq is None:
        return f.MISSING
    return f"{row.irq}{' all' if row.shared else ''}"


COLUMNS = (
    Column("", "CPUs", 14, read=_serves),
    Column("nr_tags", "tags", 5, f.number, rank=4),
    Column("", "IRQ", 7, read=_irq),
    Column("name", "name", 18, lambda name: fit(printable(name), 18).strip() or f.MISSING, rank=3),
    Column("effective", "goes to", 9, lambda cpus: _cpus(cpus, 9)),
    Column("served_on", "came on", 9, lambda cpus: _cpus(cpus, 9)),
    Column("node", "node", 5, rank=2),
    Column("irq_s", "irq/s", 7, f.number, style=DEVICE),
    Column("", "jobs here", JOBS_WIDTH - 1, read=_jobs, rank=1),
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
    page: list[Row] = []
    for device_map in queue_map(disks, state.frame, topology):
        page += [*_section(device_map, state, width, charset), message(width, charset, "")]
    return [*page, *_legend(width, charset)]


def _section(device_map: DeviceMap, state: LiveState, width: int, charset: Charset) -> list[Row]:
    name = printable(device_map.device)
    rates = []
    if device_map.ios_s is not None:
        rates.append(f"{f.number(device_map.ios_s)} I/Os per second")
    if device_map.irq_s is not None:
        rates.append(f"{f.number(device_map.irq_s)} interrupts")
    if device_map.ios_per_irq is not None:
        rates.append(f"{f.number(device_map.ios_per_irq)} I/Os each")
    right = ((", ".join(rates), DIM),) if rates else ()
    section = [
        rule(width, charset, (name, BOLD), (f" {printable(device_map.kind)}", DIM), right=right)
    ]
    drives = {
        name: reading
        for name, reading in state.drives.items()
        if device_map.device in reading[1].devices
    }
    drive = kernel_panel.line(drives, state.t, width, charset)
    section += [drive] if drive is not None else []
    if device_map.rows:
        table: Table[QueueRow] = Table(COLUMNS, LABEL, width, charset)
        section.append(table.header("hctx"))
        for row in device_map.rows:
            label = f.MISSING if row.hctx is None else str(row.hctx)
            section.append(table.row(label, row, dim=row.hctx is None and not row.irq_s))
    else:
        section.append(message(width, charset, "no hardware queue and no interrupt of its own"))
    for note in (device_map.note, device_map.completion_text):
        section += wrap(width, charset, printable(note))
    return section


def _legend(width: int, charset: Charset) -> list[Row]:
    text = (
        "CPUs: those that submit to this queue. goes to: CPUs the interrupt is assigned to; came "
        f"on: CPUs that took it in this second. #0: fio's first job; {PINNED}: bound to this CPU. "
        f"all: one interrupt for all queues. {f.MISSING}: none, or unknown."
    )
    return wrap(width, charset, text)
