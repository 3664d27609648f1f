"""An NVMe namespace in detail, as text and as JSON: paths, queues, format, power, and health."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from iopstui import format as units
from iopstui.linux.nvme.topology import DriveFacts, NamespaceTopology, NvmePath
from iopstui.model.block.device import BlockDevice, IrqVector
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import as_object
from iopstui.model.metrics.nvme import UNIT_BYTES
from iopstui.model.sizes import MIB
from iopstui.tables import aligned

_KELVIN = 273
MOST_QUEUES = 32
PATH = (DiskRates.r_s, DiskRates.w_s, DiskRates.r_await, DiskRates.w_await, DiskRates.n_in_flight)
"""The figures of each path, in JSON."""
Devices = Mapping[str, BlockDevice]
Rates = Mapping[str, DiskRates]


@dataclass(frozen=True, slots=True)
class NamespaceReport:
    """Everything that is known about a namespace; ``rates`` are those of its paths over one
    second."""

    topology: NamespaceTopology
    facts: DriveFacts
    rates: Rates

    def text(self, devices: Devices, width: int = 80) -> str:
        """The report as text; sentences are wrapped at ``width`` columns, table rows are cut
        off."""
        blocks = (
            _head(self.topology, self.facts),
            [*_path_lines(self.topology.paths, self.rates)],
            [*_queue_lines(self.topology, devices)],
            [*_drive_lines(self.facts)],
        )
        lines = []
        for block in blocks:
            lines += [""] if block else []
            for line in block:
                # do not wrap the rows of a table
                table = not line or "  " in line.strip()
                lines += [line] if table else textwrap.wrap(line, width, subsequent_indent="  ")
        return "".join(line[: max(width, 1)].rstrip() + "\n" for line in lines)

    def json(self) -> dict[str, object]:
        """The report for JSON: unknown values are null, latencies are in ms, sizes in bytes."""
        rates = {name: as_object(PATH, rates) for name, rates in self.rates.items()}
        return {"namespace": asdict(self.topology), "rates": rates, "drive": asdict(self.facts)}


def _head(topology: NamespaceTopology, facts: DriveFacts) -> list[str]:
    lines = [f"Namespace {topology.number or units.MISSING} ({topology.name}), subsystem "
             f"{topology.subsystem or units.MISSING}"]  # fmt: skip
    space = facts.namespace
    if space is not None:
        metadata = f" + {space.metadata} B of metadata" if space.metadata else ", no metadata"
        offered = ", ".join(
            f"{block}" + (f"+{meta}" if meta else "") for block, meta, _ in space.formats
        )
        lines.append(f"Logical blocks: {space.block} B{metadata}. The drive offers: {offered}")
    if len(topology.paths) > 1:
        policy = topology.policy or units.MISSING
        lines.append(f"Native multipath: {len(topology.paths)} paths, I/O policy {policy}")
    elif topology.multipath is not None:
        lines.append(f"Native multipath: {'on' if topology.multipath else 'off'}, one path")
    return lines


def _path_lines(paths: Sequence[NvmePath], rates: Rates) -> Iterator[str]:
    if not paths:
        return
    heads = ("PATH", "CONTROLLER", "STATE", "ANA", "TRANSPORT", "NODE", "QUEUES", "DEPTH")
    rows = [
        (
            path.name, controller.name, controller.state, path.ana, controller.transport,
            controller.node, controller.queues, controller.depth,
        )
        for path in paths
        for controller in (path.controller,)
    ]  # fmt: skip
    yield from _table(heads, rows)
    for path in paths:
        controller = path.controller
        times = (
            ("keep-alive", controller.keep_alive_s),
            ("reconnects every", controller.reconnect_delay_s),
            ("gives up after", controller.loss_timeout_s),
        )
        timeouts = [f"{name} {seconds} s" for name, seconds in times if seconds is not None]
        if controller.transport != "pcie" and timeouts:
            address = controller.address or units.MISSING
            yield f"{controller.name} ({address}): {', '.join(timeouts)}"
    if rates:
        yield ""
        yield "In the last second:"
        names = ("PATH", "R/S", "W/S", "MIB/S", "R_AWAIT", "W_AWAIT", "IN FLIGHT")
        yield from _table(names, [_rates(path.name, rates.get(path.name)) for path in paths])


def _rates(name: str, rates: DiskRates | None) -> tuple[object, ...]:
    if rates is None:
        return (name, *[None] * 6)
    moved = None if rates.data_s is None else rates.data_s / MIB
    waits = (units.milliseconds(wait) for wait in (rates.r_await, rates.w_await))
    return (name, *map(units.number, (rates.r_s, rates.w_s, moved)), *waits, rates.in_flight)


def _queue_lines(topology: NamespaceTopology, devices: Devices) -> Iterator[str]:
    rows = []
    for path in topology.paths:
        device = devices.get(path.name)
        for hctx in device.hctxs if device else ():
            irqs = {irq.irq for irq in device.irqs if _serves(irq, hctx.index)} if device else ()
            cpus = units.ranges(hctx.cpus)
            kind = path.queue_types.get(hctx.index)
            rows.append((path.name, hctx.index, kind, cpus, units.ranges(irqs), hctx.nr_tags))
    if not rows:
        return
    heads = ("PATH", "QUEUE", "TYPE", "CPUS", "IRQ", "TAGS")
    yield from _table(heads, rows[:MOST_QUEUES])
    if len(rows) > MOST_QUEUES:
        yield f"and {len(rows) - MOST_QUEUES} more queues"
    parameters = [
        f"{name}={number}"
        for name, number in (
            ("poll_queues", topology.poll_queues), ("write_queues", topology.write_queues)
        )
        if number is not None
    ]  # fmt: skip
    if parameters:
        yield f"Module nvme was loaded with {', '.join(parameters)}."


def _serves(vector: IrqVector, queue: int) -> bool:
    return vector.shared or vector.hctx == queue


def _drive_lines(facts: DriveFacts) -> Iterator[str]:
    if facts.health:
        yield f"Health: {', '.join(_health(facts))}"
    yield from _power(facts)
    if facts.controller is not None and facts.controller.host_memory:
        memory = "off" if not facts.host_memory else units.size(facts.host_memory)
        preferred = units.size(facts.controller.host_memory)
        yield f"Host memory buffer: {memory}; the drive asks for {preferred}"
    if facts.placement is not None:
        yield f"Flexible data placement (FDP): {'on' if facts.placement else 'off'}"
    if facts.firmware is not None:
        slots = ", ".join(f"slot {n} {text}" for n, text in facts.firmware.revisions.items())
        after = f"; slot {facts.firmware.next} after the next reset" if facts.firmware.next else ""
        yield f"Firmware: slot {facts.firmware.active} is in use ({slots}){after}"
    if facts.self_test is not None:
        test = facts.self_test
        running = f"{test.running} test, {test.percent} % done; " if test.running else ""
        yield f"Self-test: {running}last result: {test.last or 'none'}"
    if facts.errors is not None:
        yield f"Error log: {_errors(facts)}"
    yield from facts.problems


def _health(facts: DriveFacts) -> Iterator[str]:
    of, limits = facts.health, facts.controller
    if "kelvin" in of:
        warning = limits.warning if limits else None
        limit = "" if warning is None else f" (warns at {warning} °C)"
        yield f"{of['kelvin'] - _KELVIN} °C{limit}"
    yield f"critical warning {of['critical_warning']:#04x}"
    yield f"spare {of['spare']} % (threshold {of['spare_threshold']} %)"
    yield f"endurance used {of['used']} %"
    for name, title in (("media_errors", "media errors"), ("error_entries", "error log entries"),
                        ("unsafe_shutdowns", "unsafe shutdowns"),
                        ("power_on_hours", "hours on")):  # fmt: skip
        if name in of:
            yield f"{of[name]:,} {title}"
    for name, title in (("units_written", "written"), ("units_read", "read")):
        if name in of:
            yield f"{units.size(of[name] * UNIT_BYTES)} {title}"
    for level, title in (("1", "lightly"), ("2", "heavily")):
        if of.get(f"thermal_{level}"):
            yield f"throttled {title} {of[f'thermal_{level}']:,} times"


def _power(facts: DriveFacts) -> Iterator[str]:
    if facts.controller is None:
        return
    now = units.MISSING if facts.power_state is None else str(facts.power_state)
    if not facts.controller.autonomous_power:
        policy = "the drive changes its state only when told"
    elif not facts.transitions:
        policy = "autonomous transitions (APST) are off"
    else:
        policy = "autonomous transitions (APST) are on"
    yield f"Power: state {now}; {policy}"
    idle = {start: (end, ms) for start, end, ms in facts.transitions or ()}
    rows = []
    for number, state in enumerate(facts.controller.states):
        idle_text = f"{idle[number][0]} after {idle[number][1]} ms" if number in idle else None
        watts = None if state.watts is None else f"{state.watts:g}"
        times = (units.latency(us * 1e3) if us else None for us in (state.entry_us, state.exit_us))
        rows.append((number, watts, "yes" if state.operational else "no", *times, idle_text))
    yield from _table(("STATE", "MAX W", "I/O", "ENTRY", "EXIT", "GOES TO"), rows)


def _errors(facts: DriveFacts) -> str:
    if not facts.errors:
        return "empty"
    entries = "; ".join(
        f"#{error.count} status {error.status:#x} queue {error.queue} block {error.lba}"
        for error in facts.errors[:3]
    )
    return f"newest: {entries}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    cells = [[units.MISSING if cell in (None, "") else str(cell) for cell in row] for row in rows]
    yield from aligned([heads, *cells])
