"""Processes by their I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from iopstui import format as f
from iopstui.model.answer.answer import NOTHING, UNKNOWN, WAITS
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.model.answer.who import LEAST_REST, Share, request_latency, role
from iopstui.model.block.target import Target
from iopstui.model.metrics.probe import PROCESSES, ProbeInterval
from iopstui.tables import DOWN, UP, Column, sortable
from iopstui.text import printable
from iopstui.ui.dashboard.pages.probe_view import process_column, task_columns, task_rows
from iopstui.ui.dashboard.panels import who_panel
from iopstui.ui.dashboard.panels.who_panel import UsersOfDisk
from iopstui.ui.draw.rows import Row, has_words, list_title, listing, message, no_match, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, Charset
from iopstui.ui.state.live import LiveState

MAX_ROWS = 30
FIRST_SAMPLE = "first sample; rates need two"
NONE_RECORDED = "This recording has no processes (watch --record DIR/ records who uses the disks)."
NO_READING = (
    "Who used the disks is not known for this second. The flight recorder notes it every 5 s while "
    "somebody uses them."
)
RECORDED = "The recorder keeps the busiest ones."
ALL_DISKS = (
    "Bytes that each process read from any disk, and wrote to any disk or the page cache "
    "(/proc/PID/io)."
)


WHICH_DISK = (
    "disk: where a process has files open; for loop0: the I/O of that device once more, as its "
    "kernel thread passes it on."
)
LATENCY_NOTE = (
    "p50 and p99 (kernel probe): requests that a process itself sent to this disk; –: none, or too "
    "few"
)
RELAYED = ", or sent by the kernel's threads of the loop device that it goes through"
ON_THE_DISK = (
    "at least: the part of the disk's bytes that a process did for certain; files that it has open "
    "on other disks may account for the rest of its own."
)
THROUGH = " through: the device on this disk whose I/O that is."


WAITING = {
    NOTHING: "Nothing seems to wait for {}", UNKNOWN: "Waiting for {}",
    WAITS: "I/Os wait for {}, or for a limit on the way to it",
}  # fmt: skip


class Source(Protocol):
    """Processes with their I/O over all disks (``ProcessIo``, ``RecordedProcesses``). ``closed``
    counts those that could not be read."""

    closed: int

    def rates(self) -> Sequence[Any] | None:
        """The processes with I/O, the busiest first; ``None`` until they are known."""

    def command(self, pid: int) -> str:
        """The command line of a process; "" if it is not known."""

    def user(self, pid: int) -> str:
        """The user of a process; "" if it is not known."""


@dataclass
class RecordedProcesses:
    """The processes of a recorded reading."""

    use: DiskUse

    def __post_init__(self) -> None:
        self.closed = max(0, self.use.hidden)
        self._by_pid = {user.pid: user for user in self.use.users}

    def rates(self) -> Sequence[DiskUser]:
        return sorted(self.use.users, key=lambda user: -user.read_s - user.write_s)

    def command(self, pid: int) -> str:
        return self._by_pid[pid].command

    def user(self, pid: int) -> str:
        return self._by_pid[pid].user


NUMBERS, LATENCIES = 9 + 11 + 13 + 15, 2 * 9
"""Cells of the columns beside the name, and of those that the probe adds."""
USER, DISK = 11, 12
SHARES = 9 + USER + 10 + 9
"""Cells of the columns beside the name in the list of one disk."""
LEAST_NAME = 24


def orders(
    state: LiveState, source: Source | None, disk: UsersOfDisk | None = None
) -> Sequence[str]:  # fmt: skip
    """The titles of the columns by which the processes can be sorted. ``disk``: only its users are
    listed."""
    if disk is not None:
        return sortable(_disk_columns(disk, state, 0))
    probe = _process_probe(state)
    columns = task_columns(state) if probe and source is None else _columns(state, source, 0)
    return sortable(columns)


def _columns(
    state: LiveState, source: Source | None, width: int, probe: ProbeInterval | None = None,
    use: DiskUse | None = None,
) -> tuple[Column, ...]:  # fmt: skip
    """The columns. Latencies are those of the requests that each process sent to the target's disks
    itself; ``use`` says on which disks it has files open."""
    numbers = NUMBERS + (LATENCIES if probe is not None else 0) + (DISK if use else 0)
    users = [Column("", "user", 10, lambda name: f.cut(printable(name), 10), left=True, rank=2,
                    read=lambda one: source.user(one.pid))] if source else []  # fmt: skip
    if use is not None:
        names = {user.pid: _disks_text(user, use) for user in use.users}

        def disk(one: Any) -> str:
            return names.get(one.pid) or _passed_on(one.comm)

        users.append(Column("", "disk", 11, lambda name: f.cut(printable(name), 11), left=True,
                            read=disk))  # fmt: skip
    columns = (
        process_column(state, _name_width(width, numbers), source.command if source else None),
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


def _disks_text(user: DiskUser, use: DiskUse) -> str:
    """The disks on which a process has files open, without those below one of them."""
    return " ".join(sorted(name for name in user.devices if not use.above(name) & user.devices))


def _passed_on(comm: str) -> str:
    """ "for loop0" of that device's kernel thread."""
    found = role(comm, {})
    return f"for {found.device}" if found is not None and found.device.startswith("loop") else ""


def _after_its_users(rates: Sequence[Any], use: DiskUse | None) -> Sequence[Any]:
    """The processes, the busiest first. A kernel thread that passes on the I/O of a loop device
    comes after the busiest of those that have it open: its bytes are theirs."""
    open_on = {user.pid: user.devices for user in use.users} if use is not None else {}

    def place(one: Any) -> tuple[float, bool]:
        own, device = one.read_s + one.write_s, _passed_on(one.comm).removeprefix("for ")
        if not device:
            return -own, False
        most = [p.read_s + p.write_s for p in rates if device in open_on.get(p.pid, ())]
        return -min(own, max(most, default=own)), True

    return sorted(rates, key=place)


def _name_width(width: int, others: int) -> int:
    """The width of the column with the names. ``others`` is that of all others; where they leave
    too little, the user's is left out (``Column.rank``)."""
    space = width - others
    return space if space >= LEAST_NAME else max(LEAST_NAME, space + USER)


def _process_probe(state: LiveState) -> ProbeInterval | None:
    probe = state.probe
    return probe if probe is not None and PROCESSES in probe.parts else None


def _disk_columns(disk: UsersOfDisk, state: LiveState, width: int) -> tuple[Column, ...]:
    users, probe = {user.pid: user for user in disk.use.users}, _process_probe(state)
    names = (*disk.target.opened, *disk.target.tree)
    latencies = {one.pid: request_latency(one.pid or 0, names, [probe] if probe else [])
                 for one in disk.shares}  # fmt: skip
    space = _name_width(width, SHARES + (LATENCIES if probe is not None else 0))

    def label(one: Share) -> str:
        user = users.get(one.pid or 0)
        suffix = " + children" if user is not None and user.children else ""
        suffix += f" through {one.through}" if one.through else ""
        name = printable((user.command or user.comm) if user is not None else one.name)
        return f" {f.cut(name, max(1, space - 2 - len(suffix)))}{suffix}"

    def latency(place: int) -> Column:
        return Column("", ("p50", "p99")[place], 8, f.latency, rank=1,
                      read=lambda one: latencies[one.pid][place])  # fmt: skip

    def owner(one: Share) -> str:
        user = users.get(one.pid or 0)
        return user.user if user is not None else ""

    return (
        Column("", "process", space, read=label, sorts=UP, key=lambda one: one.name.lower()),
        Column("pid", "pid", 8, sorts=UP),
        Column("", "user", 10, lambda name: f.cut(printable(name), 10), left=True, rank=2,
               read=owner),
        Column("share", "at least", 9, lambda share: f"{100 * share:.0f} %", sorts=DOWN),
        Column("bytes_s", "MiB/s", 8, f.mib, style=DEVICE, sorts=DOWN),
        *((latency(0), latency(1)) if probe is not None else ()),
    )  # fmt: skip


def _disk_rows(
    disk: UsersOfDisk, state: LiveState, width: int, charset: Charset, frozen: bool, order: str,
    words: str,
) -> list[Row]:  # fmt: skip
    columns = _disk_columns(disk, state, width)
    page = [list_title(disk.title, columns, order, frozen, width, charset)]
    texts = (columns[0], columns[1], columns[2])
    found = [one for one in disk.shares
             if has_words(words, *(column.text(one) for column in texts))]  # fmt: skip
    if found:
        page += listing(columns, found, width, charset, MAX_ROWS, order)
    elif words:
        page.append(no_match("process", words, width, charset))
    else:
        page += wrap(width, charset, who_panel.nobody(disk.use, disk.target), None)
    rest = 1 - sum(one.share for one in disk.shares)
    if not words and disk.shares and rest >= LEAST_REST:
        page.append(message(width, charset, " ".join(who_panel.rest_texts(disk.use, rest))))
    if words:
        return page
    page += [message(width, charset, ""), *_pressure(state, width, charset, disk.target)]
    is_through = any(one.through for one in disk.shares)
    note = ON_THE_DISK + THROUGH * is_through
    if _process_probe(state) is not None:
        note += f" {LATENCY_NOTE}{RELAYED * is_through}."
    return [*page, *wrap(width, charset, note)]


def rows(
    state: LiveState,
    source: Source | None,
    width: int,
    charset: Charset,
    frozen: bool = False,
    order: str = "",
    words: str = "",
    users: str = "",
    disk: UsersOfDisk | None = None,
    records_users: bool = False,
    use: DiskUse | None = None,
) -> list[Row]:
    """Rows over all disks; by disk if the probe of a recording counts processes. ``source`` is
    ``None`` for a recording that has no processes of this second; ``records_users``: it has some of
    others. ``frozen``: ``state`` is of an earlier second. ``order`` is one of ``orders`` ("": the
    busiest first). ``words`` is a filter: only processes whose name, number or command line
    contains all of them. ``users`` says who uses the target most. ``disk``: only its users are
    listed. ``use``: the last reading of who uses the disks."""
    words = words.strip()
    if disk is not None:
        return _disk_rows(disk, state, width, charset, frozen, order, words)
    page = [] if words else [*(wrap(width, charset, users, BOLD) if users else ()),
                             *_pressure(state, width, charset)]  # fmt: skip
    probe = _process_probe(state)
    if probe is not None and source is None:
        return [*page, *task_rows(state, probe, width, charset, order, words)]
    if source is None:
        reason = NO_READING if records_users else NONE_RECORDED
        return [*page, *wrap(width, charset, reason, None)]
    rates, columns = source.rates(), _columns(state, source, width, probe, use)
    title = "processes, all disks together"
    if isinstance(source, RecordedProcesses):
        title += f", in {who_panel.time_text(source.use)}"
    page.append(list_title(title, columns, order, frozen, width, charset))
    if rates is None:
        return [*page, message(width, charset, FIRST_SAMPLE)]
    if not rates:
        which = "no process that this user can read" if source.closed else "no process"
        page.append(message(width, charset, f"{which} did I/O in this second"))
    else:
        rates = [one for one in _after_its_users(rates, use) if not words
                 or has_words(words, one.comm, str(one.pid), source.command(one.pid),
                              source.user(one.pid))]  # fmt: skip
        page += listing(columns, rates, width, charset, MAX_ROWS, order) if rates else [
            no_match("process", words, width, charset)]  # fmt: skip
    notes = _note_rows(source, width, charset, probe is not None, use is not None)
    return page if words else [*page, *notes]


def _pressure(
    state: LiveState, width: int, charset: Charset, target: Target | None = None
) -> list[Row]:
    """What waits: for ``target`` how many requests, and for any disk how many tasks."""
    waits = _requests_text(target, state) if target is not None else ""
    pressure = state.frame.more.get("pressure", {}) if state.frame is not None else {}
    some, full = pressure.get("some"), pressure.get("full")
    if some is None or full is None:
        return wrap(width, charset, waits, None) if waits else []
    text = waits + (
        f"Tasks of this machine wait for I/O of any kind {f.percent(some)} % of the time, all at "
        f"once {f.percent(full)} % (/proc/pressure/io; also programs that sleep in io_uring)."
    )
    return [*wrap(width, charset, text, None), message(width, charset, "")]


def _requests_text(target: Target, state: LiveState) -> str:
    """Whether something waits for a disk, how many requests are in flight, and how long one takes;
    "" if that is not known."""
    rates = state.frame.combined(target.opened) if state.frame is not None else None
    if rates is None or rates.aqu_sz is None:
        return ""
    answer = state.answer
    is_known = answer is not None and answer.disk == target.name
    verdict = WAITING[answer.verdict if answer and is_known else UNKNOWN]
    times = [f"a {kind} takes {f.milliseconds(ms)}" for kind, ms in (
        ("read", rates.r_await), ("write", rates.w_await)) if ms]  # fmt: skip
    each = "".join(f", {text}" for text in times)
    in_flight = f"{f.number(rates.aqu_sz)} requests in flight on average"
    return f"{verdict.format(printable(target.name))}: {in_flight}{each} (this second). "


def _note_rows(
    source: Source, width: int, charset: Charset, latencies: bool, disks: bool
) -> list[Row]:  # fmt: skip
    notes = (ALL_DISKS, WHICH_DISK * disks, f"{LATENCY_NOTE}{RELAYED}." * latencies)
    text = " ".join(filter(None, notes))
    if isinstance(source, RecordedProcesses):
        return wrap(width, charset, f"{text} {RECORDED}")
    if source.closed:
        plural = "es" if source.closed > 1 else ""
        text += f" {source.closed} process{plural} could not be read."
    return wrap(width, charset, text)
