"""Summary of a watch in at most 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from iopstui import format as units
from iopstui.model.cgroups.rates import USE
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.shares import OperationRates
from iopstui.model.watch.totals import DiskTotal, FindingCount, GroupTotal, WatchTotals
from iopstui.output.plain import answer_sentence
from iopstui.output.watch.share_table import columns_of
from iopstui.tables import head_line, row_line
from iopstui.text import printable

WIDTH = 80
NAME_WIDTH = 16
MAX_GROUPS, GROUP_WIDTH = 10, 34
NOT_OF_DISKS = "* longer than these disks' requests: another disk, a limit, a server, io_uring"
MIN_PRESSURE_S, PRESSURE_FACTOR = 1.0, 2.0
"""A task that waits this many times longer than all requests of the disks take does not wait only
for them, but also for another disk, a limit or a server, or it sleeps in io_uring."""
_MEANS = (DiskRates.r_await, DiskRates.w_await, DiskRates.util)
GROUP_COLUMNS = tuple(row.column(width=5) for row in USE)


def watch_summary(totals: WatchTotals) -> str:
    """Length and gaps, each disk's means and highest interval, triggers and findings."""
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
        yield from _wrapped(f"{units.clock(t)} {printable(answer.sentence)}")
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
    """How long a task of the group counted as waiting for I/O."""
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
    yield f"{'':{NAME_WIDTH}}{groups} {head_line([row.column() for row in _MEANS])}"
    pairs = " ".join([f"{'mean':>5} {'max':>5}"] * 3)
    means = head_line([row.column(title="mean") for row in _MEANS])
    yield f"{'disk':{NAME_WIDTH}} {pairs} {means}"
    for name, disk in totals.disks.items():
        yield f"{units.cut(printable(name), NAME_WIDTH):{NAME_WIDTH}} {_cells(disk)}"
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
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")
