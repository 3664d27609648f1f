"""A result of fio, or its logs, as a ``ReportData``: the same report as of a recording, less what
such a file does not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iopstui import events
from iopstui.errors import UsageError
from iopstui.model import histogram
from iopstui.model.block.target import FILE, Target
from iopstui.model.fio.log_lines import Logs
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.metrics.summary import fio_summary
from iopstui.model.samples import FioStatus, RawSample
from iopstui.recording import layout as form
from iopstui.recording.foreign import FioResult, LogFile, read_log_file
from iopstui.report.folding.block import Block
from iopstui.report.folding.heat import Heat
from iopstui.report.folding.run import Run
from iopstui.report.redact import REDACTED, Redactor
from iopstui.report.report_data import ReportData, add_block, add_row
from iopstui.report.sources import Source
from iopstui.text import printable

UNNAMED_TARGET = "a target that the file does not name"
SINGLE_DOCUMENT = (
    "The file has one document for the whole run, so there are no seconds to check it against."
)


def load_foreign_report(source: Source, redact: bool = False) -> ReportData:
    """The report data of a result, of logs, or of both. UsageError if a log can't be read, or says
    nothing."""
    files = [read_log_file(log) for log in source.logs]
    logs = Logs([file.log for file in files])
    if source.result is None and not any(file.log.lines for file in files):
        name = printable(str(source.path))
        raise UsageError(f"{name} has no log lines: nothing to report.")
    result = source.result
    private = Redactor() if redact else None
    if private is not None and result is not None:
        private.learn([{"filename": _target(result), "host": result.host}, result.options])
    data = _begun(source, result, logs)
    run = Run(1)
    data.runs.append(run)
    if result is not None:
        _of_result(data, run, result)
    if files:
        _of_logs(data, run, logs, result)
    data.missing_facts = [*_missing_facts(result, logs, files, redact)]
    data.disks = [_disk(disk) for disk in result.disks] if result else []
    data.foreign = " and ".join(_of_what(result, logs))
    return data if private is None else _redacted(data, private)


def _begun(source: Source, result: FioResult | None, logs: Logs) -> ReportData:
    duration = max(logs.end, _seconds(result.last) if result else 0.0, 1e-3)
    ended_ms = result.last.timestamp_ms if result else 0
    header = form.Header(
        "", result.host if result else "", "", "",
        max(0.0, ended_ms - 1000 * duration) if ended_ms else 0.0,
        Target(FILE, _target(result) if result else UNNAMED_TARGET, None),
    )  # fmt: skip
    path = source.path
    if result is None:
        path = source.logs[0].path.with_name(source.logs[0].name.prefix or source.path.name)
    return ReportData(path, header, duration, Heat(duration))


def _seconds(status: FioStatus) -> float:
    """How long the run took: the longest of each group, which follow one another."""
    longest: dict[int, int] = {}
    for job in status.jobs:
        times = [job.job_runtime_ms if job.members == 1 else 0,
                 *(d.runtime_ms for d in job.directions.values())]  # fmt: skip
        longest[job.group] = max(longest.get(job.group, 0), *times)
    return sum(longest.values()) / 1000


def _target(result: FioResult) -> str:
    names = [
        options[name]
        for options in result.options.values()
        for name in ("filename", "directory")
        if options.get(name)
    ]
    return ", ".join(dict.fromkeys(names)) or UNNAMED_TARGET


def _of_result(data: ReportData, run: Run, result: FioResult) -> None:
    final = result.last
    summary = fio_summary(final)
    _fill_means(summary, result.document)
    failed = [row["name"] for row in summary["rows"] if row["error"]]
    error = "; ".join(result.messages) or (f"fio reports failed jobs: {', '.join(failed)}" if failed
                                       else "")  # fmt: skip
    names = ", ".join(dict.fromkeys(job.name for job in final.jobs))
    run.started = events.StepStarted(0.0, 1, names, _title(final), (), True, "run", final.version)
    run.job_run = form.JobRun(1, "", {}, None, False, _job_file(result.options))
    run.finished = events.StepFinished(
        data.duration, 1, 1 if failed else 0, error if failed else "", False, summary
    )
    if not failed:
        data.notices += [events.Notice(0.0, "warning", message) for message in result.messages]
    builder, block = FrameBuilder(), Block(data.header, data.duration)
    for number, status in enumerate(result.statuses):
        frame = builder.feed(_sample(number, status, number == len(result.statuses) - 1))
        if len(result.statuses) > 1:
            at = max(0.0, data.duration - (final.timestamp_ms - status.timestamp_ms) / 1000)
            block.add(replace(frame, t=at))
            data.samples += 1
        else:
            run.add(frame, data.header.target.tree)
    add_block(data, block)
    run.begin, run.end = 0.0, data.duration
    run.note = SINGLE_DOCUMENT if len(result.statuses) == 1 else ""


def _sample(number: int, status: FioStatus, final: bool) -> RawSample:
    at = status.timestamp_ms
    return RawSample(number, at * 1_000_000, at, None, status, final, 1)


def _disk(disk: Mapping[str, Any]) -> tuple[str, str]:
    """fio's disk_util of one disk, in words."""
    return str(disk.get("name", "")), (
        f"{disk.get('read_ios', 0)} reads, {disk.get('write_ios', 0)} writes, "
        f"util {float(disk.get('util', 0)):.1f} %"
    )


def _fill_means(summary: dict[str, Any], document: Mapping[str, Any]) -> None:
    """Means that fio states without saying of how many (before 3.19, without histograms)."""
    rows = [row for row in document.get("jobs") or () if isinstance(row, Mapping)]
    for row, raw in zip(summary["rows"], rows, strict=False):
        for name, figures in row["directions"].items():
            block = raw[name].get("clat_ns")
            has_value = isinstance(block, Mapping) and block.get("max")
            if figures["clat_mean_ns"] is None and has_value:
                figures["clat_mean_ns"] = float(block["mean"])
                figures["lat_max_ns"] = figures["lat_max_ns"] or int(block["max"])
                percentiles = block.get("percentile")
                if not figures["percentiles"] and isinstance(percentiles, Mapping):
                    figures["percentiles"] = {
                        f"p{float(p):g}": int(v) for p, v in percentiles.items()
                    }


def _title(status: FioStatus) -> str:
    shapes = dict.fromkeys(
        " ".join(
            label
            for name, label in (
                ("rw", job.options.get("rw", job.options.get("readwrite", ""))),
                ("bs", job.options.get("bs", job.options.get("blocksize", ""))),
                ("iodepth", f"QD {job.options.get('iodepth', '1')}"),
                ("numjobs", f"x {job.options['numjobs']}" if "numjobs" in job.options else ""),
            )
            if label
        )
        for job in status.jobs
    )
    return "; ".join(list(shapes)[:4])


def _job_file(options: Mapping[str, Mapping[str, str]]) -> str:
    """fio's options as its JSON has them, as a job file."""
    parts = []
    for name, section in options.items():
        lines = [f"{key}={value}" if value else key for key, value in section.items()
                 if key != "name"]  # fmt: skip
        parts.append("\n".join([f"[{name or 'global'}]", *lines]))
    return "\n\n".join(parts)


def _of_logs(data: ReportData, run: Run, logs: Logs, result: FioResult | None) -> None:
    data.from_logs = True
    for row in logs.rows():
        data.samples += 1
        add_row(data, row)
    bins = logs.bins()
    if bins and not run.all_bins:
        run.bins_of, run.bins_by_direction = logs.bins_of, {}
        for direction, buckets in bins.items():
            run.add_bins(direction, buckets)
        run.total_bins.add(histogram.merge(bins.values()))
        run.max_ns = max((f["lat_max_ns"] or 0 for f in logs.directions().values()), default=None)
    if result is not None:
        run.note = run.note or ""
        return
    directions = logs.directions()
    name = data.path.name
    summary = {
        "rows": [{"index": 0, "name": name, "group": 0, "error": 0, "directions": directions}],
        "total": directions, "sums": [], "logged": True,
    }  # fmt: skip
    run.started = events.StepStarted(0.0, 1, name, "fio's logs", (), True)
    run.finished = events.StepFinished(data.duration, 1, 0, "", False, summary)
    run.begin, run.end = 0.0, logs.end
    run.note = "From fio's logs, which do not contain fio's final figures."


def _of_what(result: FioResult | None, logs: Logs) -> Iterator[str]:
    if result is not None:
        kind = "JSON with histograms (json+)" if result.has_histogram else "JSON"
        count = len(result.statuses)
        yield f"fio's {kind}" + (f", {count} documents (--status-interval)" if count > 1 else "")
    for averaged in (False, True):
        kinds = sorted({log.kind for log in logs.logs if log.lines and log.averaged == averaged})
        if kinds:
            yield f"fio's logs of {', '.join(kinds)}, " + (
                "averages over time windows" if averaged else "every I/O"
            )


def _missing_facts(
    result: FioResult | None, logs: Logs, files: list[LogFile], redact: bool
) -> Iterator[str]:
    """Facts missing in the files."""

    def named(file: LogFile) -> str:
        return f"a log of {file.name.kind}" if redact else file.path.name

    yield "kernel data (device counters, CPUs, interrupts): only recordings have it"
    if result is not None:
        yield from _lacking_in_json(result, logs)
    if files and not logs.bins_of:
        yield (
            "latencies of single I/Os: "
            + (f"the logs of {logs.mean_of} hold averages over time windows, which give no "
               "percentiles (without log_avg_msec they hold every I/O)" if logs.mean_of
               else "no such log (write_lat_log)")
        )  # fmt: skip
    if len({file.name.job for file in files}) > 1:
        yield "when the jobs began: each log counts from its own job's start"
    for file in files:
        if file.log.unparsed_lines:
            yield f"{named(file)}: {file.log.unparsed_lines} lines are not lines of such a log"
        if not file.log.lines:
            yield f"{named(file)}: it is empty"
    if result is None and not any(log.kind == "bw" or log.seconds for log in logs.logs):
        yield "bandwidth: no such log (write_bw_log)"
    if result is None and not any(log.kind == "iops" or log.seconds for log in logs.logs):
        yield "IOPS: no such log (write_iops_log)"


def _lacking_in_json(result: FioResult, logs: Logs) -> Iterator[str]:
    timed = any(job.measures_latency for job in result.last.jobs)
    if not timed:
        yield "latency: not measured by the jobs (gtod_reduce, disable_clat)"
    elif not result.has_histogram:
        yield ("histograms and combined percentiles: use --output-format=json+")  # fmt: skip
    if len(result.statuses) == 1 and not logs.logs:
        yield ("changes over time: use --status-interval=1 or logs (write_lat_log)")  # fmt: skip
    if result.broken_documents:
        yield f"{result.broken_documents} documents of the file, which are cut off or damaged"
    if not result.options:
        yield "the jobs' options"


def _redacted(data: ReportData, private: Redactor) -> ReportData:
    data.path = Path(REDACTED)
    data.header = private.redacted(data.header)
    data.notices = private.redacted(data.notices)
    for run in data.runs:
        run.started, run.job_run = private.redacted(run.started), private.redacted(run.job_run)
        run.finished = private.redacted(run.finished)
    return data
