"""Processes by their I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from iopstui import format as f
from iopstui.linux.process.process_io import ProcessIo, ProcessRates
from iopstui.model.answer.who import request_latency
from iopstui.model.metrics.probe import BPFTRACE, PROCESSES, ProbeInterval
from iopstui.ui.dashboard.pages.probe_view import TASK_ORDERS, order_text, process_label, task_rows
from iopstui.ui.draw.rows import Column, Row, Table, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, WARNING, Charset
from iopstui.ui.state.live import LiveState

MAX_ROWS = 30
FIRST_SAMPLE = "first sample; rates need two"
COLUMNS: tuple[Column[ProcessRates], ...] = (
    Column("pid", 9, lambda p: str(p.pid)),
    Column("read MiB/s", 13, lambda p: f.mib(p.read_s), style=DEVICE),
    Column("written MiB/s", 15, lambda p: f.mib(p.write_s)),
)
ORDERS: Mapping[str, Callable[[ProcessRates], Any]] = {
    "process": lambda p: p.comm.lower(),
    "pid": lambda p: p.pid,
    "read MiB/s": lambda p: -p.read_s,
    "written MiB/s": lambda p: -p.write_s,
}
"""As TASK_ORDERS."""
ALL_DISKS = (
    "Bytes that each process read from any disk, and wrote to any disk or the page cache "
    "(/proc/PID/io). Per-disk figures need the probe with processes (ctrl+p)."
)


def orders(state: LiveState, source: ProcessIo | None) -> Sequence[str]:
    """The titles of the columns by which the processes can be sorted."""
    return tuple(TASK_ORDERS if _shows_tasks(_process_probe(state), source) else ORDERS)


def _shows_tasks(probe: ProbeInterval | None, source: ProcessIo | None) -> bool:
    return probe is not None and (source is None or probe.by == BPFTRACE)


def _process_probe(state: LiveState) -> ProbeInterval | None:
    """Processes counted by the probe, if it counts them."""
    probe = state.probe
    return probe if probe is not None and PROCESSES in probe.parts else None


def rows(
    state: LiveState,
    source: ProcessIo | None,
    width: int,
    charset: Charset,
    frozen: bool = False,
    order: str = "",
) -> list[Row]:
    """By disk if the probe counts processes, else over all disks (``source`` ``None``: a recording,
    which has neither). ``frozen``: ``state`` is that of an earlier second. ``order``: one of
    ``orders``, "": the busiest first."""
    page = _pressure(state, width, charset)
    probe = _process_probe(state)
    if probe is not None and _shows_tasks(probe, source):
        return [*page, *task_rows(state, probe, width, charset, order)]
    if source is None:
        return [*page, *wrap(width, charset, "This recording has no processes.", None)]
    rates = source.rates()
    order = order if order in ORDERS else ""
    page.append(_title("processes, all disks together", width, charset, frozen, order))
    if rates is None:
        return [*page, message(width, charset, FIRST_SAMPLE)]
    return [
        *page,
        *_table(state, rates, width, charset, order, probe),
        *_note_rows(source, width, charset),
    ]


def _title(text: str, width: int, charset: Charset, frozen: bool, order: str = "") -> Row:
    return rule(
        width, charset, (text, BOLD),
        (": current ones, not those of the frozen second" if frozen else "",
         WARNING),
        right=((order_text(order), DIM),),
    )  # fmt: skip


def _pressure(state: LiveState, width: int, charset: Charset) -> list[Row]:
    pressure = state.frame.more.get("pressure", {}) if state.frame is not None else {}
    some, full = pressure.get("some"), pressure.get("full")
    if some is None or full is None:
        return []
    text = (
        f"Tasks counted as waiting for I/O of any kind: at least one {f.percent(some)} % of the "
        f"time, all {f.percent(full)} % (/proc/pressure/io; also programs that sleep in io_uring)."
    )
    return [*wrap(width, charset, text, None), message(width, charset, "")]


def _table(
    state: LiveState, rates: Sequence[ProcessRates], width: int, charset: Charset, order: str,
    probe: ProbeInterval | None,
) -> list[Row]:  # fmt: skip
    if not rates:
        return [message(width, charset, "no process read or wrote in this second")]
    table = Table((*COLUMNS, *_latency_columns(state, probe)), 24, width, charset)
    table_rows = [table.header("process", order)]
    for process in (sorted(rates, key=ORDERS[order]) if order else rates)[:MAX_ROWS]:
        table_rows.append(table.row(process_label(state, process.comm, process.pid, 23), process))
    if len(rates) > MAX_ROWS:
        table_rows.append(message(width, charset, f"and {len(rates) - MAX_ROWS} more"))
    return table_rows


def _latency_columns(
    state: LiveState, probe: ProbeInterval | None
) -> Iterator[Column[ProcessRates]]:
    """Of the requests that each process sent to the target's disks itself."""
    if probe is None:
        return
    disks = (*state.devices, *probe.disks)
    latencies = {pid: request_latency(pid, disks, [probe]) for pid in {t.pid for t in probe.tasks}}
    unknown = None, None
    yield Column("p50", 9, lambda p: f.latency(latencies.get(p.pid, unknown)[0]), drop=1)
    yield Column("p99", 9, lambda p: f.latency(latencies.get(p.pid, unknown)[1]), drop=1)


def _note_rows(source: ProcessIo, width: int, charset: Charset) -> list[Row]:
    text = ALL_DISKS
    if source.closed:
        plural = "es" if source.closed > 1 else ""
        text += f" {source.closed} process{plural} cannot be read by this user."
    return wrap(width, charset, text)
