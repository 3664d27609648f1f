"""fio's final figures as text, checked against the sum of the frames."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from iopstui.format import (
    MISSING,
    clock,
    counted,
    cut,
    first_of,
    latency,
    milliseconds,
    number,
    or_dash,
    size,
)
from iopstui.model.answer.answer import OF_A_SECOND, Answer
from iopstui.model.figures.figure import RANKS, SHOWN
from iopstui.model.metrics.nvme import RunDrives
from iopstui.model.metrics.probe import ProbeTotal
from iopstui.model.metrics.run_figures import RunEnergy
from iopstui.model.metrics.shares import OperationRates, RunShare
from iopstui.model.metrics.slow.common_properties import common_properties
from iopstui.model.metrics.slow.slow_requests import (
    SLOW_KINDS,
    SlowestTotal,
    request_text,
    stages_text,
)
from iopstui.model.metrics.summary import (
    EXACT,
    UNCHECKED,
    Certificate,
    FramesTotal,
    certificate,
    is_final,
    split_directions,
)
from iopstui.model.metrics.waits import Waits, waits_line
from iopstui.model.sizes import MIB
from iopstui.tables import Column, head_line, line, texts
from iopstui.text import printable, wrapped

if TYPE_CHECKING:
    from iopstui.model.metrics.slow.slow_ios import SlowIo

NAME_WIDTH = 14
WIDTH = 80
MAX_ROWS = 16
# percentage of a device's requests that the probe may miss before that is mentioned
SHOWN_MISSING = 0.01
SHOWN_SLOWEST = 3
SHOWN_ROWS = 5
RAMP_WORDS = "was under way when the ramp ended, which is where fio's count begins"
_GROWN = (
    ("error_entries", "error log entries +{:.0f}"),
    ("thermal_1", "throttled lightly +{:.0f} times"), ("thermal_1_s", "for {:.0f} s"),
    ("thermal_2", "throttled heavily +{:.0f} times"), ("thermal_2_s", "for {:.0f} s"),
    ("warning_min", "{:.0f} min above the warning temperature"),
    ("critical_min", "{:.0f} min above the critical temperature"),
    ("busy_min", "busy +{:.0f} min"),
)  # fmt: skip
FINAL_RATES = (
    Column("iops", "IOPS", 10, partial(or_dash, form="{:.1f}")),
    Column("bw_bytes", "MiB/s", 8,
           lambda count: MISSING if count is None else f"{count / MIB:.2f}"),
)  # fmt: skip
FINAL_RANKS = (*(RANKS[name].column() for name in SHOWN), Column("lat_max_ns", "max", 7, latency))
_COLUMNS = (
    *FINAL_RATES,
    Column("mean", "mean", 7, latency, read=lambda part: part[f"{part['percentiles_of']}_mean_ns"]),
    *FINAL_RANKS,
)
"""Columns for fio's final figures (fio_summary)."""
OWN_TIME_SHARE = 0.9
"""If a direction ran for less than this share of the run, the times that fio's rates refer to are
shown."""


def summary_text(
    summary: Mapping[str, Any],
    frames_total: FramesTotal | None,
    waits: Waits | None = None,
    answer: Answer | None = None,
    disturbed: Sequence[str] = (),
) -> str:
    """A table of at most 80 columns with exact figures, from ``model.summary.fio_summary``.
    ``frames_total`` sums the frames of the same run: with it, the last lines say whether the frames
    have as many I/Os and bytes as fio's independent counters. ``waits`` says where the run's I/Os
    were in flight on average. ``answer`` is the last answer in the run; it is left out if it only
    has the figures of a single second. ``disturbed``: what spoiled the figures, in sentences. If
    there are many rows, only the groups' sums are shown."""
    rows = summary["rows"]
    by_device = len(rows) <= MAX_ROWS
    lines = []
    if answer is not None and answer.rule != OF_A_SECOND:
        lines += _wrapped(printable(answer.sentence), 0)
    elif answer is not None and answer.next:  # the sentence has the figures of only a few seconds
        if answer.reason:
            lines += _wrapped(printable(f"At the end: {answer.reason}"), 0)
        lines += _wrapped(f"Next: {answer.next}")
    lines += [_title(summary), _heading(rows)]
    if by_device:
        for row in rows:
            name = printable(row["name"]) or "(no name)"
            lines += _table_rows(name, {**row["directions"], **syncs_of(row)}, is_final(summary))
    for group in summary["sums"]:
        name = "sum" if len(summary["sums"]) == 1 else f"sum, group {group['group']}"
        parts = group["directions"].items()
        shown = {key: part for key, part in parts if part["rows"] > by_device}
        lines += _table_rows(name, shown, is_final(summary))
    lines += _wrapped(rate_times_text(summary))
    lines += _errors(rows)
    if waits is not None:
        lines += _wrapped(waits_line(waits))
    if disturbed:
        lines += _wrapped(printable(f"disturbed: {'; '.join(disturbed)}"))
    if frames_total is not None:
        lines += _wrapped(reconciliation(summary, frames_total), 0)
    return "\n".join(lines)


def _wrapped(text: str, more: int = 2, first: int = 0) -> list[str]:
    """``text`` in lines of at most 80 columns, indented by ``first`` and then by ``more``; no lines
    for an empty text."""
    if not text:
        return []
    return wrapped(text, first, more, WIDTH).split("\n")


def interruption(summary: Mapping[str, Any]) -> str:
    """Describe a run that ended early."""
    if not summary:
        return "interrupted before fio reported anything: no results"
    if not is_final(summary):
        return "interrupted: fio was killed; results end with its last report"
    return "interrupted: results cover the time until then"


def reconciliation(summary: Mapping[str, Any], frames: FramesTotal) -> str:
    """Sentences on whether the frames agree with counters of fio from which they were not computed,
    and on rows that can't be verified by themselves."""
    return _sum_text(summary, frames) + _rows_text(frames)


def _rows_text(frames: FramesTotal) -> str:
    """The rows whose own figures are not verified; "" if there are none."""
    texts = []
    for column, times in frames.checks.doubtful.items():
        texts.append(f"{column} at {first_of([clock(t) for t in times], SHOWN_ROWS)}")
    return f" Not verified in single rows: {'; '.join(texts)}." if texts else ""


def _sum_text(summary: Mapping[str, Any], frames: FramesTotal) -> str:
    check = certificate(summary, frames)
    ios, moved = _ios(frames.ios), f"{frames.bytes:,} bytes"
    intervals = counted(frames.frames, "interval")
    if not check.final:
        return _unverified(intervals, ios, moved,
            "fio was killed before its final count; its last report had "
            f"{_ios(check.ios)} issued, some still in flight")  # fmt: skip
    if not check.counted:
        return _unverified(intervals, ios, moved,
            "fio reports the number of I/Os only at its end, and block sizes vary")  # fmt: skip
    if check.verdict == UNCHECKED:
        return _unverified(intervals, ios, moved,
            "fio does not report completed I/Os here, and submissions have no other counter to "
            "compare with")  # fmt: skip
    if check.verdict == EXACT:
        adds = "the interval adds" if frames.frames == 1 else f"the {intervals} add"
        if check.bytes is not None:
            return f"Verified: {adds} up to fio's own totals ({ios}, {moved})."
        why = "block sizes vary" if check.has_block_sizes else "the recording has no block size"
        if not check.stated_bytes:
            why = "these I/Os move no data"
        return (f"Verified: {adds} up to fio's own total ({ios}). Their {moved} are not checked: "
                f"{why}.")  # fmt: skip
    total_text = f"fio counted {_ios(check.ios)}"
    if check.bytes is not None:
        total_text += f", {check.bytes:,} bytes"
    text = (f"Different: {intervals} with {ios}, {moved}; {total_text} ({check.more_ios:+,d}, "
             f"{check.more_bytes:+,d}).")  # fmt: skip
    text += _reason_text(check)
    if not check.mean_is_consistent:
        text += " fio's own mean IOPS do not match its count either."
    return text


def _reason_text(check: Certificate) -> str:
    """Why the intervals differ from fio's total; "" if that is not known."""
    text = f" The difference {RAMP_WORDS}." if check.ramp else ""
    if check.failed:
        text += " The missing part had not completed when the job failed."
    elif check.opens:
        text += (" The intervals count each opening of a file, which is all that fio times with "
                 "filecreate or filestat; its total counts I/Os: the two may differ.")  # fmt: skip
    elif check.left:
        text += (" fio's own bytes agree with the intervals: the difference was submitted, and "
                 "not counted as completed.")  # fmt: skip
    return text


def _ios(number: int) -> str:
    return f"{number:,} I/O" if number == 1 else f"{number:,} I/Os"


def _unverified(intervals: str, ios: str, moved: str, why: str) -> str:
    return f"Not verified: {why} ({intervals} with {ios}, {moved})."


def probe_text(total: ProbeTotal) -> str:
    """Device times of the run's requests, in at most 80 columns; "" if the probe counted none."""
    lines: list[str] = []
    counted_ios = 0
    for kind, device, waiting in total.parts():
        counted_ios += device.ios
        if not lines:
            lines.append(f"in the device (probe), in {total.seconds:.1f} s:")
        ranks = ", ".join(f"{n} {latency(device.percentiles.get(n))}" for n in SHOWN)
        text = f"{kind} {device.ios} requests: mean {latency(device.mean_ns)}, {ranks}"
        if waiting is not None:
            text += f"; before that they waited {latency(waiting.mean_ns)} on average"
        lines += _wrapped(text, 4, 2)
    missing = 100 * total.missed / (total.missed + counted_ios) if counted_ios else 0.0
    if lines and missing >= SHOWN_MISSING:
        lines.append(f"  {missing:.2f} % of the requests are not in these figures")
    if lines and total.doubtful:
        lines.append("  incomplete: requests were missed (see missed, lost and full in the frames)")
    return "\n".join(lines)


def slowest_text(total: SlowestTotal) -> str:
    """The slowest requests of the run, in at most 80 columns; "" if none was kept."""
    lines: list[str] = []
    for kind in SLOW_KINDS:
        for t, request in total.slowest_of(kind)[:SHOWN_SLOWEST]:
            if not lines:
                lines.append("slowest requests, from allocation to completion:")
            text = (f"{clock(t)} {kind} {latency(request.total_ns)}: {stages_text(request)}; "
                    f"{request_text(request)}")  # fmt: skip
            lines += _wrapped(printable(text), 4, 2)
    for claim in common_properties(total.selection()):
        lines += _wrapped(printable(claim.text), 4)
    return "\n".join(lines)


def slow_ios_text(summary: Mapping[str, Any]) -> str:
    """The slowest I/Os by fio's own log, in at most 80 columns; "" if no log was requested."""
    ios = summary.get("slowest_ios")
    if not ios:
        return ""
    from iopstui.model.metrics.slow.slow_ios import slow_ios

    lines = [f"slowest of {ios['ios']:,} I/Os, from fio's own log (clat: no kernel side):"]
    count_by_kind: dict[str, int] = {}
    for io in slow_ios(ios):
        count_by_kind[io.direction] = count_by_kind.get(io.direction, 0) + 1
        if count_by_kind[io.direction] <= SHOWN_SLOWEST:
            lines.append(f"  {slow_io_text(io)}")
    for claim in ios["in_common"]:
        lines += _wrapped(printable(claim), 4)
    return "\n".join(lines)


def slow_io_text(io: SlowIo) -> str:
    """A slow I/O as "read 3.10 ms: 4 KiB at offset 1 MiB, 2.345 s into job 1"."""
    place = "" if io.offset is None else f" at offset {size(io.offset)}"
    return (
        f"{io.direction} {latency(io.latency_ns)}: {size(io.size)}{place}, "
        f"{io.t:.3f} s into job {io.job}"
    )


def share_text(share: RunShare) -> str:
    """The run's operations on its NFS or SMB mount, in at most 80 columns; "" if there were
    none."""
    lines: list[str] = []
    for name, rates in share.operations.items():
        if rates.ops:
            text = f"{share.protocol} {name}: {operation_text(rates)}"
            lines += _wrapped(text)
    return "\n".join(lines)


def operation_text(rates: OperationRates) -> str:
    """The means of an operation on an NFS or SMB mount; figures that the kernel does not count are
    left out."""
    size = f" of {number(rates.kb_op)} kB" if rates.kb_op is not None else ""
    text = f"{number(rates.ops_s)}/s{size}"
    if rates.exe is not None:
        text += (
            f", RTT {milliseconds(rates.rtt)}, queue {milliseconds(rates.queue)}, exe "
            f"{milliseconds(rates.exe)}"
        )
    if rates.latency is not None:
        text += f", latency {milliseconds(rates.latency)}"
    if rates.retransmissions is not None:
        return f"{text}; {counted(rates.retransmissions, 'request')} sent again"
    return f"{text}; {counted(rates.errors, 'error')}" if rates.errors else text


def drives_text(drives: RunDrives) -> str:
    """What the run did to its NVMe drives, by their own counters, in at most 80 columns; "" if no
    counters were read."""
    lines: list[str] = []
    for name, figures in drives.rows():
        problem = drives.readings[name].problem
        title = f"{name} (SMART): {', '.join(drive_texts(figures))}"
        if problem:
            sentences = "".join(f"{sentence}. " for sentence in drive_texts(figures))
            title = f"{name}: {sentences}{printable(problem)}"
        lines += _wrapped(title)
    return "\n".join(lines)


KIND_NAMES = {"package": "CPU packages", "dram": "memory", "platform": "machine"}


def energy_text(energy: RunEnergy) -> str:
    """The energy that CPUs and memory used in the run, in at most 80 columns; "" if no counter was
    read."""
    parts = [
        f"{title} {energy.watts(kind):.1f} W ({number(energy.joules[kind])} J)"
        for kind, title in KIND_NAMES.items()
        if kind in energy.joules
    ]
    if not parts:
        return ""
    if energy.ios_per_joule is not None:
        parts.append(f"{number(energy.ios_per_joule)} I/Os per joule of the CPU packages")
    return "\n".join(_wrapped(f"energy (RAPL): {', '.join(parts)}"))


def drive_texts(figures: Mapping[str, float | None]) -> Iterator[str]:
    """One drive's figures of a run in words; counters that did not grow are left out, except media
    errors."""
    if figures["temperature"] is not None:
        yield f"at most {figures['temperature']:.0f} °C"
    for name, verb in (("bytes_written", "written"), ("bytes_read", "read")):
        if figures[name]:
            yield f"{size(figures[name])} {verb}"
    if figures["write_amplification"] is not None:
        yield f"write amplification {figures['write_amplification']:.2f}"
    if figures["media_errors"] is not None:
        yield f"media errors +{figures['media_errors']:.0f}"
    for name, verb in _GROWN:
        if figures[name]:
            yield verb.format(figures[name])
    if figures["used"] is not None:
        yield f"{figures['used']:.0f} % of endurance used"
    if figures["critical_warning"]:
        yield f"critical warning {int(figures['critical_warning']):#04x}"


def _title(summary: Mapping[str, Any]) -> str:
    times = [part["runtime_ms"] for row in summary["rows"] for part in row["directions"].values()]
    longest = summary["all"]["runtime_ms"] if "all" in summary else max(times, default=0)
    moved = size(sum(part["io_bytes"] for part in split_directions(summary["total"]).values()))
    version = printable(str(summary["fio_version"]))
    title = "final figures" if is_final(summary) else "last report before it was killed"
    return f"fio's {title} ({version}): {longest / 1000:.3f} s, {moved}"


def _heading(rows: list[Mapping[str, Any]]) -> str:
    kinds = {part["percentiles_of"] for row in rows for part in row["directions"].values()}
    latencies = f"latency: {kinds.pop()}" if len(kinds) == 1 else "latency"
    return f"{latencies:{NAME_WIDTH}} {'':5} {head_line(_COLUMNS)}"


def _table_rows(
    name: str, directions: Mapping[str, Mapping[str, Any]], final: bool
) -> Iterator[str]:
    for direction, part in directions.items():
        # fio's intermediate reports divide late-counted I/Os by an older run time: show no rates of
        # them
        cells = texts(FINAL_RATES, part if final else {})
        if "percentiles" in part:
            cells += texts(_COLUMNS[len(cells) :], part)
        title = f"{cut(name, NAME_WIDTH):{NAME_WIDTH}} {direction:5}"
        yield f"{title} {line(_COLUMNS, cells)}".rstrip()


def syncs_of(row: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The sync row of fio's report as a further direction named "sync". fio states no rate of
    syncs, so it is computed from the run's time."""
    sync = row.get("sync")
    if not sync or not (sync["completed"] or sync["clat_mean_ns"]):
        return {}
    run_ms = max((part["runtime_ms"] for part in row["directions"].values()), default=0)
    iops = sync["completed"] * 1000 / run_ms if run_ms and sync["completed"] else None
    return {"sync": {**sync, "iops": iops}}


def rate_times_text(summary: Mapping[str, Any]) -> str:
    """The times that fio's rates refer to, if they are clearly shorter than the run; else ""."""
    sums = summary.get("sums", ())
    whole_ms = summary.get("all", {}).get("runtime_ms") or 0
    if len(sums) != 1 or not whole_ms:
        return ""
    parts = split_directions(sums[0]["directions"])
    times = {name: part.get("runtime_ms") or whole_ms for name, part in parts.items()}
    if all(ms >= OWN_TIME_SHARE * whole_ms for ms in times.values()):
        return ""
    each = ", ".join(f"{name}s {ms / 1000:.3f} s" for name, ms in times.items())
    return f"fio's rates are for each direction's own time: {each}"


def _errors(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["error"]:
            name = cut(printable(row["name"]), 40)
            yield f"{name}: error {row['error']} ({os.strerror(row['error'])})"
