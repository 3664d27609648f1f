"""Processes by their I/O."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as f
from iopstui.linux.process.process_io import ProcessIo
from iopstui.model.answer.who import request_latency
from iopstui.model.metrics.probe import PROCESSES, ProbeInterval
from iopstui.tables import DOWN, UP, Column, sortable
from iopstui.text import printable
from iopstui.ui.dashboard.pages.probe_view import process_column, task_columns, task_rows
from iopstui.ui.draw.rows import Row, has_words, list_title, listing, message, no_match, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, Charset
from iopstui.ui.state.live import LiveState

MAX_ROWS = 30
FIRST_SAMPLE = "first sample; rates need two"
ALL_DISKS = (
    "Bytes that each process read from any disk, and wrote to any disk or the page cache "
    "(/proc/PID/io). The dashboard's panel Who has this disk alone, until a job runs."
)


LATENCY_NOTE = (
    "p50 and p99 (kernel probe): requests that a process itself sent to this disk; –: none, or too "
    "few."
)

NUMBERS, LATENCIES = 9 + 11 + 13 + 15, 2 * 9
"""Cells of the columns beside the name, and of those that the probe adds."""


def orders(state: LiveState, source: ProcessIo | None) -> Sequence[str]:
    """The titles of the columns by which the processes can be sorted."""
    probe = _process_probe(state)
    columns = task_columns(state) if probe and source is None else _columns(state, source, 0)
    return sortable(columns)


def _columns(
    state: LiveState, source: ProcessIo | None, width: int, probe: ProbeInterval | None = None
) -> tuple[Column, ...]:
    """The columns. Latencies are those of the requests that each process sent to the target's disks
    itself."""
    numbers = NUMBERS + (LATENCIES if probe is not None else 0)
    users = [Column("", "user", 10, lambda name: f.cut(printable(name), 10), left=True, rank=2,
                    read=lambda one: source.user(one.pid))] if source else []  # fmt: skip
    columns = (
        process_column(state, max(24, width - numbers), source.command if source else None),
        Column("pid", "pid", 8, sorts=UP),
        *users,
        Column("read_s", "read MiB/s", 12, f.mib, style=DEVICE, sorts=DOWN),
        Column("write_s", "written MiB/s", 14, f.mib, sorts=DOWN),
    )
    if probe is None:
        return columns
    disks, tasks = (*state.devices, *probe.disks), {task.pid for task in probe.tasks}
    latencies = {pid: request_latency(pid, disks, [probe]) for pid in tasks}

    def column(title: str, place: int) -> Column:
        return Column("", title, 8, f.latency, rank=1,
                      read=lambda p: latencies.get(p.pid, (None, None))[place])  # fmt: skip

    return (*columns, column("p50", 0), column("p99", 1))


def _process_probe(state: LiveState) -> ProbeInterval | None:
    """The probe's interval, if the probe counts processes."""
    probe = state.probe
    return probe if probe is not None and PROCESSES in probe.parts else None


def rows(
    state: LiveState,
    source: ProcessIo | None,
    width: int,
    charset: Charset,
    frozen: bool = False,
    order: str = "",
    words: str = "",
    users: str = "",
) -> list[Row]:
    """Rows by disk if the probe counts processes, else over all disks (``source`` is ``None`` for a
    recording, which has no such figures). ``frozen``: ``state`` is of an earlier second. ``order``
    is one of ``orders`` ("": the busiest first). ``words`` is a filter: only processes whose name,
    number or command line contains all of them. ``users`` says who uses the target most."""
    words = words.strip()
    page = [] if words else [*(wrap(width, charset, users, BOLD) if users else ()),
                             *_pressure(state, width, charset)]  # fmt: skip
    probe = _process_probe(state)
    if probe is not None and source is None:
        return [*page, *task_rows(state, probe, width, charset, order, words)]
    if source is None:
        return [*page, *wrap(width, charset, "This recording has no processes.", None)]
    rates, columns = source.rates(), _columns(state, source, width, probe)
    title = "processes, all disks together"
    page.append(list_title(title, columns, order, frozen, width, charset))
    if rates is None:
        return [*page, message(width, charset, FIRST_SAMPLE)]
    if not rates:
        which = "no process that this user can read" if source.closed else "no process"
        page.append(message(width, charset, f"{which} did I/O in this second"))
    else:
        rates = [one for one in rates if not words
                 or has_words(words, one.comm, str(one.pid), source.command(one.pid),
                              source.user(one.pid))]  # fmt: skip
        page += listing(columns, rates, width, charset, MAX_ROWS, order) if rates else [
            no_match("process", words, width, charset)]  # fmt: skip
    return page if words else [*page, *_note_rows(source, width, charset, probe is not None)]


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


def _note_rows(source: ProcessIo, width: int, charset: Charset, latencies: bool) -> list[Row]:
    text = f"{ALL_DISKS} {LATENCY_NOTE}" if latencies else ALL_DISKS
    if source.closed:
        plural = "es" if source.closed > 1 else ""
        text += f" {source.closed} process{plural} cannot be read by this user."
    return wrap(width, charset, text)
