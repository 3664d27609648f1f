"""Figures from inside the kernel: a request's path, the device's percentiles, and which CPUs
complete requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from iopstui import format as f
from iopstui.model.block.topology import Topology
from iopstui.model.figures.figure import by_name
from iopstui.model.metrics.aws import VolumeGrowth
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import NVME_COUNTERS, diag_texts, figure_name
from iopstui.model.metrics.probe import (
    KINDS,
    MATRIX,
    PROCESSES,
    REQUESTS,
    SIZES,
    TOLERATED_SKIPS,
    USE,
    WAY,
    ProbeInterval,
    RequestStats,
)
from iopstui.model.metrics.request_path import (
    CompletionMatrix,
    RequestPath,
    completion_matrix,
    request_path,
)
from iopstui.tables import DOWN, UP, Column
from iopstui.text import printable
from iopstui.ui.draw.rows import (
    Line,
    Row,
    Table,
    capital,
    has_words,
    listing,
    message,
    no_match,
    order_text,
    rule,
    wrap,
)
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, FIO, P99, WARNING, Charset
from iopstui.ui.state.live import LiveState

PROBE_OFF = (
    "Kernel probe: off. Press P to measure each request inside the kernel, with or without a "
    "job (needs root; costs about 0.4 µs per I/O)."
)
NOT_RECORDED = "The kernel probe was off at this time."
PROBE_STARTING = "The probe is starting."
MAX_TASKS = 12

_OF_TASK = by_name(USE)
LATENCIES = tuple(
    by_name(REQUESTS)[name].screen_column(DEVICE if name == "p50" else None, rank=rank, width=width)
    for name, width, rank in (("iops", 7, 0), ("mean", 8, 0), ("p50", 8, 0), ("p99", 8, 0),
                              ("p99.9", 8, 1), ("max", 8, 2))
)  # fmt: skip


def rows(
    state: LiveState, parts: Sequence[str] | None, topology: Topology, width: int, charset: Charset,
    why_off: str = "",
) -> list[Row]:  # fmt: skip
    """Return rows for the probe's ``parts`` in the last second that it counted; ``parts`` is
    ``None`` for a recording, of which everything is shown. ``why_off`` says what prevents the
    probe."""
    frame = state.probe_frame
    if parts is None and frame is None:
        return wrap(width, charset, NOT_RECORDED, None)
    if parts is not None and not parts:
        text = f"Kernel probe: off. {capital(why_off)}." if why_off else PROBE_OFF
        return wrap(width, charset, text, None)
    if frame is None or frame.probe is None:
        return wrap(width, charset, PROBE_STARTING, None)
    probe = frame.probe
    page = [*_path_rows(frame, probe, width, charset), *_latencies(frame, probe, width, charset)]
    if MATRIX in probe.parts:
        page += _matrix(completion_matrix(probe.matrix, topology), width, charset)
    if PROCESSES in probe.parts:
        page += task_rows(state, probe, width, charset)
    if SIZES in probe.parts:
        page += _sizes(probe, width, charset)
    return [*page, *_costs(probe, width, charset)]


# -- the request's path


def _path_rows(frame: Frame, probe: ProbeInterval, width: int, charset: Charset) -> list[Row]:
    if WAY not in probe.parts:
        return []
    title = rule(width, charset, ("Request path, this second", BOLD), (" (means)", DIM))
    path = request_path(frame)
    blank = message(width, charset, "")
    if path is None:
        return [title, message(width, charset, "no request was completed"), blank]
    return [title, *_bar(path, width, charset), *_path_text_rows(path, width, charset), blank]


def _bar(path: RequestPath, width: int, charset: Charset) -> Iterator[Row]:
    parts = [("waiting", path.waiting_ns, P99, "▒"), ("device", path.device_ns, DEVICE, "█")]
    if path.rest_ns is not None:
        parts.append(("the rest", path.rest_ns, FIO, "░"))
    total = sum(ns for _, ns, _, _ in parts)
    if path.rest_ns is not None and path.lat_ns is not None:
        line = Line(width, charset).add(" fio's lat ").add(f.latency(path.lat_ns), BOLD).add(" = ")
    else:
        line = Line(width, charset).add(" in the kernel ").add(f.latency(total), BOLD).add(" = ")
    for number, (name, ns, style, mark) in enumerate(parts):
        line.add(" + " if number else "").add(f"{mark} {name} ", style).add(f.latency(ns), BOLD)
    yield line.build()
    bar_width = max(10, width - 2)
    bar, used_width = Line(width, charset).add(" "), 0
    for number, (_, ns, style, mark) in enumerate(parts):
        last = number == len(parts) - 1
        cells = bar_width - used_width if last else round(bar_width * ns / total) if total else 0
        bar.add(mark * cells, style)
        used_width += cells
    yield bar.build()


def _path_text_rows(path: RequestPath, width: int, charset: Charset) -> list[Row]:
    texts = []
    if path.slat_ns is not None and path.clat_ns is not None:
        texts.append(
            f"for comparison: fio's slat {f.latency(path.slat_ns)}, "
            f"clat {f.latency(path.clat_ns)}; libaio and io_uring issue requests within slat."
        )
    if path.missing_reason:
        texts.append(f"The rest is unknown: {path.missing_reason}.")
    texts.append(
        "waiting: from allocation of the request to its issue (scheduler, plugging; the wait for a "
        "tag comes before); device: from issue to completion. An I/O that was merged into another "
        "request counts as part of that request."
    )
    return wrap(width, charset, " ".join(texts))


# -- latencies


def _latencies(frame: Frame, probe: ProbeInterval, width: int, charset: Charset) -> list[Row]:
    title = rule(
        width, charset, ("Device, this second", BOLD), (" (issue to completion)", DIM),
        right=((f"{f.MISSING} = no such request", DIM),),
    )  # fmt: skip
    longest = max((len(printable(name)) for name in probe.disks), default=4)
    table: Table[RequestStats] = Table(LATENCIES, min(longest, 14) + 17, width, charset)
    table_rows = [title, table.header("disk")]
    for name, kinds in probe.disks.items():
        for kind in KINDS:
            part = kinds.get(kind)
            if part is None or (kind == "discard" and not part.device.ios):
                continue
            label = f" {f.cut(printable(name), 14)} {kind}"
            table_rows.append(table.row(label, part))
            if part.waiting is not None and part.waiting.ios:
                waiting = RequestStats(part.seconds, part.waiting)
                table_rows.append(table.row("   waiting", waiting, label_style=DIM))
        volume = (frame.aws or {}).get(name)
        if volume is not None:
            table_rows += wrap(width, charset, _volume_text(volume), DIM)
    table_rows += wrap(width, charset, _diag_text(frame), DIM) if frame.nvme_diag else []
    return [*table_rows, message(width, charset, "")]


def _diag_text(frame: Frame) -> str:
    """What the kernel counted for NVMe controllers, paths and namespaces in this second."""
    parts = []
    for name, rates in (frame.nvme_diag or {}).items():
        growths = {file: round(rates.get(figure_name(file), 0.0) * (frame.seconds or 0.0))
                   for file in NVME_COUNTERS}  # fmt: skip
        texts = [*diag_texts(name, growths)]
        if texts:
            parts.append(f"{printable(name)}: {', '.join(texts)}")
    said = "; ".join(parts) or "no retry, error or failover"
    return f"The kernel's count of this second: {said}."


def _volume_text(volume: VolumeGrowth) -> str:
    """What an AWS volume itself measured for the same requests. Its percentiles are upper bounds of
    histogram bins."""
    parts = []
    reads = "reads", volume.r_await, volume.r_p50, volume.r_p99
    writes = "writes", volume.w_await, volume.w_p50, volume.w_p99
    for kind, mean, p50, p99 in (reads, writes):
        if mean is not None:
            part = f"{kind} {f.milliseconds(mean)}"
            if p50 is not None and p99 is not None:
                part += f", p50 at most {f.milliseconds(p50)}, p99 at most {f.milliseconds(p99)}"
            parts.append(part)
    return f"The volume's own count: {'; '.join(parts) or 'no I/O'}."


# -- which CPU completes for which


def _matrix(matrix: CompletionMatrix, width: int, charset: Charset) -> list[Row]:
    share = matrix.diagonal
    right = () if share is None else ((f"{100 * share:.0f} % on the diagonal", BOLD),)
    title = rule(
        width, charset, ("Submitting and completing CPUs", BOLD), (", requests per second", DIM),
        right=right,
    )  # fmt: skip
    if not matrix.total:
        none = message(width, charset, "no requests completed in this second")
        return [title, none, message(width, charset, "")]
    wide = max(7, *(len(name) + 1 for name in matrix.names))
    first = 16
    head = Line(width, charset).add(f" {matrix.group_kind}".ljust(first), DIM)
    for name in matrix.names:
        head.add(name.rjust(wide), DIM)
    grid = [head.build()]
    for number, (name, row) in enumerate(zip(matrix.names, matrix.rates, strict=True)):
        line = Line(width, charset).add(f" {name} →".ljust(first), BOLD)
        for column, rate in enumerate(row):
            text = f.number(rate) if rate else "·"
            line.add(text.rjust(wide), DEVICE if number == column else None if rate else DIM)
        grid.append(line.build())
    note = (
        "Rows: CPU that allocated the request; columns: CPU that completed it. rq_affinity 0: CPU "
        "of the interrupt; 1: a CPU that shares a cache with the submitter; 2: the submitter "
        "(diagonal)."
    )
    return [title, *grid, *wrap(width, charset, note), message(width, charset, "")]


# -- processes and sizes


def task_columns(state: LiveState) -> tuple[Column, ...]:
    """The columns of processes. Names are sorted from A on, figures from the largest on. Where the
    processes use several disks, a narrow terminal leaves out p50, not the disk."""
    several = state.probe is not None and len({task.disk for task in state.probe.tasks}) > 1
    return (
        process_column(state, 18),
        Column("pid", "pid", 8, sorts=UP),
        Column("disk", "disk", 9, lambda name: f.cut(printable(name), 9), rank=int(not several)),
        _OF_TASK["read_iops"].screen_column(title="read/s", sorts=DOWN),
        _OF_TASK["write_iops"].screen_column(title="write/s", sorts=DOWN),
        _OF_TASK["bw"].screen_column(title="MiB/s", sorts=DOWN),
        _OF_TASK["p50"].screen_column(DEVICE, sorts=DOWN, rank=int(several)),
        _OF_TASK["p99"].screen_column(sorts=DOWN),
        Column("group", "cgroup", 29, lambda name: f.cut(printable(name) or f.MISSING, 29), rank=2),
    )


def task_rows(
    state: LiveState, probe: ProbeInterval, width: int, charset: Charset, order: str = "",
    words: str = "",
) -> list[Row]:  # fmt: skip
    """Processes by their I/O on each disk; ``order``: a title of a column, "": the busiest first.
    ``words``: only those that have all of these."""
    columns = task_columns(state)
    title = rule(
        width, charset, ("Processes", BOLD), (", by the process that allocated the request", DIM),
        right=((order_text(columns, order), DIM),),
    )  # fmt: skip
    if not probe.tasks:
        return [title, message(width, charset, "none in this second"), message(width, charset, "")]
    tasks = [task for task in probe.tasks if has_words(
        words, task.comm, str(task.pid), task.disk, task.group)]  # fmt: skip
    if not tasks:
        return [title, no_match("process", words, width, charset)]
    table_rows = listing(columns, tasks, width, charset, MAX_TASKS, order)
    if words:
        return [title, *table_rows]
    note = (
        "kworker: the kernel, for other processes: it writes their data back, or does the I/O of a "
        "loop device. Latencies here are accurate to 6 %."
    )
    return [title, *table_rows, *wrap(width, charset, note), message(width, charset, "")]


def process_column(
    state: LiveState, width: int, command: Callable[[int], str] | None = None
) -> Column:
    """The column with a process's name, or its command line if ``command`` returns it. fio's jobs
    are marked, and so are processes whose figures include the I/O of children that have ended."""
    jobs = {job.pid for job in state.frame.jobs} if state.frame is not None else set()

    def label(process: Any) -> str:
        suffix = " (job)" if process.pid in jobs else ""
        suffix += " + children" * getattr(process, "children", False)
        name = (command(process.pid) if command is not None else "") or printable(process.comm)
        return f" {f.cut(name, width - 2 - len(suffix))}{suffix}"

    return Column("comm", "process", width, read=label, sorts=UP, key=lambda p: p.comm.lower())


def _sizes(probe: ProbeInterval, width: int, charset: Charset) -> list[Row]:
    page = [rule(width, charset, ("Requests by size, this second", BOLD))]
    for name, kinds in probe.disks.items():
        for kind, part in kinds.items():
            if part.sizes:
                total = sum(part.sizes.values())
                sizes = sorted(part.sizes.items())
                text = ", ".join(f"{f.size(b)} {100 * n / total:.0f} %" for b, n in sizes)
                page += wrap(width, charset, f"{printable(name)} {kind}: {text}", None)
    if probe.requeued_s is not None:
        page.append(message(width, charset, f"requeued {f.number(probe.requeued_s)}/s"))
    return [*page, message(width, charset, "")]


def _costs(probe: ProbeInterval, width: int, charset: Charset) -> list[Row]:
    run = "not measured yet"
    if probe.run_ns is not None:
        run = f"{f.latency(probe.run_ns)} per I/O (measured by the kernel)"
    missed = f.MISSING if probe.missed is None else f"{probe.missed:.2f} %"
    text = (
        f"Cost of the probe: {run}; reading its counts takes "
        f"{f.percent(probe.busy)} % of a CPU. Completions missed: {missed}."
    )
    lines = wrap(width, charset, text)
    if probe.doubtful:
        why = []
        if (probe.missed or 0) > 1:
            why.append("more than 1 % of the completions could not be matched")
        if probe.skipped > TOLERATED_SKIPS:
            why.append(f"the kernel skipped the probe {probe.skipped} times")
        if probe.lost:
            why.append(f"{probe.lost} events were lost")
        if probe.full:
            why.append("a map in the kernel has no room left")
        lines += wrap(width, charset, f"These figures are incomplete: {'; '.join(why)}.", WARNING)
    return lines
