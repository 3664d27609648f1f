"""A watch as a live table of 80 columns, with the columns of iostat; and its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TextIO

from iopstui import format as units
from iopstui.events import Event, FrameReady
from iopstui.model.block.target import Layer, Target
from iopstui.model.cgroups import USE
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import RANKS
from iopstui.model.metrics.frame import PARTIAL, Frame
from iopstui.model.metrics.probe import RequestStats
from iopstui.model.metrics.shares import NFS_PROTOCOL, SMB_PROTOCOL, OperationRates
from iopstui.model.watch.totals import DiskTotal, FindingCount, GroupTotal, WatchTotals
from iopstui.output.narration import Narrator
from iopstui.output.plain import answer_sentence
from iopstui.output.table import BELOW, HEADER_EVERY, QUEUE, RATES, discard_rows
from iopstui.tables import Column, head_line, line, row_line, texts
from iopstui.text import printable, wrapped

NAME_WIDTH = 10
LEFT_WIDTH = 17 + 1 + NAME_WIDTH
"""Columns left of the figures: two times and a name."""


class FrameTable:
    """Prints rows of each frame below ``head``, which is repeated. Passes ``BrokenPipeError``
    on."""

    def __init__(
        self, out: TextIO, err: TextIO, head: str, rows_of: Callable[[Frame], list[str]]
    ) -> None:
        self._out = out
        self._narrator = Narrator(err)
        self._head, self._rows_of = head, rows_of
        self._lines = 0
        self._has_rows = False

    def handle(self, event: Event) -> None:
        if not isinstance(event, FrameReady):
            self._narrator.handle(event)
        # the first frame has no seconds; the watch's last part of a second counts only in the
        # totals
        elif event.frame.seconds and (PARTIAL not in event.frame.flags or not self._has_rows):
            self._frame(event.frame)

    def close(self) -> None:
        self._out.flush()
        self._narrator.close()

    def _frame(self, frame: Frame) -> None:
        self._has_rows = True
        if self._lines == 0 or self._lines >= HEADER_EVERY:
            self._lines = 0
            units.print_line(self._head, self._out)
        rows = self._rows_of(frame)
        self._lines += len(rows)
        units.print_line("\n".join(rows), self._out)


class WatchTable(FrameTable):
    """One row per frame; for several disks a row for their sum and one for each. ``probed``: the
    probe's latencies replace the awaits."""

    def __init__(self, out: TextIO, err: TextIO, target: Target, probed: bool = False) -> None:
        super().__init__(out, err, header(probed), lambda frame: rows(frame, target, probed))


def header(probed: bool = False) -> str:
    """The line above the rows."""
    waits = _PROBED if probed else _AWAITS
    return f"{'UTC':>8} {'time':>8} {'disk':>{NAME_WIDTH}} {head_line((*_RATES, *waits, *QUEUE))}"


def rows(frame: Frame, target: Target, probed: bool = False) -> list[str]:
    """Return a frame in at most 80 columns, then a row for each further device."""
    several = len(target.devices_below) > 1
    combined = frame.combined(target.opened) if target.opened else None
    when = (units.utc(frame.wall_ms) or "")[11:19]
    times = f"{when:>8} {units.clock(frame.t):>8}"
    width = LEFT_WIDTH - len(times) - 1  # with hundreds of hours, the time is wider
    first = f"{times} {units.cut(printable(target.name), width):>{width}}"
    lines = [_row(first, combined, frame, target.opened, probed), *discard_rows(combined)]
    for layer in target.layers if several else target.layers[1:]:
        title = f"{units.cut(_layer(layer), LEFT_WIDTH):>{LEFT_WIDTH}}"
        lines.append(_row(title, frame.disks.get(layer.name), frame, (layer.name,), probed))
    return lines


def _layer(layer: Layer) -> str:
    return f"{BELOW * bool(layer.under)}{printable(layer.name)}"


def _row(
    title: str, disk: DiskRates | None, frame: Frame, names: Sequence[str], probed: bool
) -> str:
    cells = [*texts(_RATES, disk)]
    cells += texts(_PROBED, _probe(frame, names)) if probed else texts(_AWAITS, disk)
    cells += texts(QUEUE, disk)
    return f"{title} {line((*_RATES, *_AWAITS, *QUEUE), cells)}"


def _probe(frame: Frame, names: Sequence[str]) -> RequestStats | None:
    return frame.probe.combined(names) if frame.probe else None


_RATES = (*RATES, DiskRates.r_bytes_s.column(), DiskRates.w_bytes_s.column())
_AWAITS = (DiskRates.r_await.column(), DiskRates.w_await.column())
_PROBED = tuple(RANKS[name].column("device", title=f"dev {name}") for name in ("p50", "p99"))


# A watch of an NFS or SMB mount as a live table of 80 columns: in each second a row for READ, one
# for WRITE and one for all other operations; for NFS with nfsiostat's columns.


COLUMNS = (
    *(row.column(width=5) for row in (
        OperationRates.ops_s, OperationRates.kb_s, OperationRates.kb_op)),
    OperationRates.retrans_percent.column(width=8),
    OperationRates.rtt.column(title="RTT", width=7),
    OperationRates.exe.column(width=7),
    OperationRates.queue.column(width=7),
    OperationRates.errors_percent.column(title="err%", width=4),
)  # fmt: skip
SMB_COLUMNS = (*COLUMNS[:3], COLUMNS[-1], OperationRates.latency.column())
"""The figures that the SMB client counts; ``latency`` is of all shares on the connection."""


def columns_of(protocol: str) -> tuple[Column, ...]:
    """The columns for the ``protocol`` "NFS" or "SMB"."""
    return SMB_COLUMNS if protocol == SMB_PROTOCOL else COLUMNS


class ShareTable(FrameTable):
    """Prints rows for READ, WRITE and the other operations of each frame."""

    def __init__(self, out: TextIO, err: TextIO, target: Target) -> None:
        columns = columns_of(SMB_PROTOCOL if target.smb_shares else NFS_PROTOCOL)
        super().__init__(out, err, share_header(columns), partial(share_rows, columns=columns))


def share_header(columns: Sequence[Column] = COLUMNS) -> str:
    """The line above the rows."""
    return f"{'UTC':>8} {'time':>8} {'op':>5} {head_line(columns)}"


def share_rows(frame: Frame, columns: Sequence[Column] = COLUMNS) -> list[str]:
    """Rows for READ, WRITE and the other operations of a frame; one row of dashes if the mount was
    not measured."""
    share = frame.share
    operations: dict[str, OperationRates | None] = {"read": None}
    if share is not None:
        operations = {"read": share.read, "write": share.write, "other": share.other}
    times = f"{(units.utc(frame.wall_ms) or '')[11:19]:>8} {units.clock(frame.t):>8}"
    cells = []
    for name, operation in operations.items():
        cells.append(f"{times} {name:>5} {line(columns, texts(columns, operation))}")
        times = " " * len(times)
    return cells


# Summary of a watch in at most 80 columns.


WIDTH = 80
DISK_WIDTH = 16
MAX_GROUPS, GROUP_WIDTH = 10, 34
NOT_OF_DISKS = "* waited longer than these disks took: other disks, limits, servers, io_uring"
MIN_PRESSURE_S, PRESSURE_FACTOR = 1.0, 2.0
"""If a group waits this many times longer than all requests of the disks take, it waits not only
for them, but also for another disk, a limit or a server, or it sleeps in io_uring."""
_MEANS = (DiskRates.r_await, DiskRates.w_await, DiskRates.util)
GROUP_COLUMNS = tuple(row.column(width=max(5, len(row.title))) for row in USE)


def watch_summary(totals: WatchTotals) -> str:
    """A summary: length and gaps, each disk's means and highest interval, triggers and findings."""
    return "\n".join(_lines(totals))


def watch_sentences(totals: WatchTotals) -> Iterator[str]:
    """The summary without a table: a sentence for each disk, trigger and finding."""
    gaps = f", {totals.gap_s:.1f} s of it without samples" if totals.gap_s else ""
    yield f"Watched for {units.duration(totals.watched_s)}{gaps}."
    for t, answer in totals.answers.answers:
        yield f"{printable(answer_sentence(answer, t))}."
    for disk_name, disk in totals.disks.items():
        means = (
            *(
                f"{row.form(disk.mean(row))} {name}/s (at most {row.form(disk.most(row))})"
                for row, name in ((DiskRates.r_s, "reads"), (DiskRates.w_s, "writes"))
            ),
            f"{units.mib(disk.mean(DiskRates.data_s))} MiB/s",
            f"util {units.percent(disk.mean(DiskRates.util))} %",
        )
        is_counted = disk.mean(DiskRates.r_s) is not None
        text = ", ".join(means) if is_counted else "not measured"
        yield f"{printable(disk_name)}: {text}."
    for name, operation in totals.share.operations.items():
        yield f"{totals.share.protocol} {name}: {', '.join(_operation_texts(operation))}."
    for group, mean in totals.busiest_groups[:MAX_GROUPS]:
        yield (
            f"Cgroup {printable(group.name)}: {units.number(mean.reads_s)} reads/s, "
            f"{units.number(mean.writes_s)} writes/s, {units.mib(mean.bytes_s)} MiB/s."
        )
    for text, times in totals.fired.items():
        fired = f"fired {_times(times)}" if times else "never fired"
        yield f"Trigger {printable(text)} {fired}."
    for finding in totals.findings.values():
        when = f"{units.clock(finding.since)} to {units.clock(finding.until)}"
        yield f"Finding, {when}{_ended_text(finding)}: {printable(finding.text)}."


def _lines(totals: WatchTotals) -> Iterator[str]:
    gaps = "no gaps"
    if totals.gap_s:
        gaps = f"{totals.gap_s:.1f} s of it without samples"
    yield f"watched for {units.clock(totals.watched_s)}, {gaps}"
    for t, answer in totals.answers.answers:
        yield from _wrapped(f"[{units.clock(t)}] {printable(answer.sentence)}")
    yield from _disks(totals)
    operations, columns = totals.share.operations, columns_of(totals.share.protocol)
    if operations:
        yield f"{'mean':>5} {head_line(columns)}"
        yield from (
            f"{name:>5} {row_line(columns, operation)}" for name, operation in operations.items()
        )
    yield from _groups(totals)
    for text, times in totals.fired.items():
        result = f"fired {_times(times)}" if times else "never fired"
        yield from _wrapped(f"trigger {printable(text)}: {result}")
    for finding in totals.findings.values():
        when = f"{units.clock(finding.since)}-{units.clock(finding.until)}"
        often = f", reported {_times(finding.times)}" if finding.times > 1 else ""
        yield from _wrapped(
            f"finding {when}{often}{_ended_text(finding)}: {printable(finding.text)}"
        )


def _operation_texts(rates: OperationRates) -> Iterator[str]:
    yield f"{units.number(rates.ops_s)} operations/s"
    if rates.kb_s is not None:
        yield f"{units.number(rates.kb_s)} kB/s"
    if rates.rtt_ms is not None:
        yield f"RTT {units.milliseconds(rates.rtt)}"
        yield f"execution {units.milliseconds(rates.exe)}"
    if rates.latency is not None:
        yield f"latency {units.milliseconds(rates.latency)}"


def _groups(totals: WatchTotals) -> Iterator[str]:
    groups = totals.busiest_groups
    if groups:
        yield f"{'cgroup, mean':{GROUP_WIDTH}} {head_line(GROUP_COLUMNS)}"
    for group, mean in groups[:MAX_GROUPS]:
        waited = _waited_text(group, totals)
        name = units.cut(printable(group.name), GROUP_WIDTH)
        yield f"{name:{GROUP_WIDTH}} {row_line(GROUP_COLUMNS, mean)}{waited}"
    if any(_waits_for_other(group, totals) for group, _ in groups[:MAX_GROUPS]):
        yield NOT_OF_DISKS
    if len(groups) > MAX_GROUPS:
        yield f"and {len(groups) - MAX_GROUPS} more cgroups"


def _waited_text(group: GroupTotal, totals: WatchTotals) -> str:
    if group.waited_s is None:
        return ""
    name = "pressure*" if _waits_for_other(group, totals) else "I/O wait"
    return f"  {name} {group.waited_s:.1f} s"


def _waits_for_other(group: GroupTotal, totals: WatchTotals) -> bool:
    """Whether a group waited much longer than all requests of the watched disks took."""
    measured = [disk for disk in totals.disks.values() if disk.seconds]
    requests_s = sum(disk.requests_s for disk in measured)
    waited_s = group.waited_s or 0.0
    return bool(measured) and waited_s >= max(MIN_PRESSURE_S, PRESSURE_FACTOR * requests_s)


def _ended_text(finding: FindingCount) -> str:
    if not finding.ceased:
        return ""
    times = f" {_times(finding.ceased)}" if finding.ceased > 1 else ""
    suffix = ", then came back" if finding.holds else ""
    return f", ended{times} after {units.duration(finding.held_s)} in total{suffix}"


def _disks(totals: WatchTotals) -> Iterator[str]:
    if not totals.disks:
        return
    groups = "".join(f"{name:^12}" for name in (DiskRates.r_s.name, DiskRates.w_s.name, "MiB/s"))
    yield f"{'':{DISK_WIDTH}}{groups} {head_line([row.column() for row in _MEANS])}"
    pairs = " ".join([f"{'mean':>5} {'max':>5}"] * 3)
    means = head_line([row.column(title="mean") for row in _MEANS])
    yield f"{'disk':{DISK_WIDTH}} {pairs} {means}"
    for name, disk in totals.disks.items():
        yield f"{units.cut(printable(name), DISK_WIDTH):{DISK_WIDTH}} {_cells(disk)}"
    for name in totals.disks:
        missing = totals.missing_s(name)
        if missing > 0.5:
            yield f"{printable(name)} was not measured for {missing:.1f} s of that time"


def _cells(disk: DiskTotal) -> str:
    pairs = ((DiskRates.r_s, units.number), (DiskRates.w_s, units.number),
             (DiskRates.data_s, units.mib))  # fmt: skip
    cells = [
        f"{unit(value):>5}" for row, unit in pairs for value in (disk.mean(row), disk.most(row))
    ]
    cells += [f"{row.form(disk.mean(row)):>{row.width}}" for row in _MEANS]
    return " ".join(cells)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _wrapped(text: str) -> list[str]:
    return wrapped(text, 0, 2, WIDTH).split("\n")
