"""The inputs of a report. A result of fio, or its logs, becomes a ``ReportData`` like that of a
recording, but without the facts that such files lack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iopstui import events
from iopstui import format as units
from iopstui.errors import NoFile, UsageError
from iopstui.experiment.baseline import result_frames
from iopstui.features.reports.blocks import Block
from iopstui.features.reports.report_data import ReportData, add_block, add_row
from iopstui.features.reports.run import Run
from iopstui.features.reports.series import Heat
from iopstui.model import histogram
from iopstui.model.block.target import FILE, Target
from iopstui.model.experiment.expectation import has_direction
from iopstui.model.fio.interval_time import whole_ms
from iopstui.model.fio.log_lines import Logs
from iopstui.model.fio.rows import flag
from iopstui.model.metrics.summary import SecondRates, fio_summary, impossible_rates
from iopstui.model.samples import FioStatus, JobStatus
from iopstui.output.replay import checking_figures
from iopstui.recording import layout as form
from iopstui.recording.foreign import (
    JSON,
    JSON_ADVICE,
    LOG,
    NORMAL,
    OTHER,
    FioResult,
    LogFile,
    detect_file_kind,
    log_bases_ms,
    named_log,
    read_log_file,
    read_results,
)
from iopstui.recording.redact import REDACTED, Redactor
from iopstui.text import printable


@dataclass(frozen=True, slots=True)
class Source:
    """A source of a report: a recording (``path``), the runs in a result of fio, ``logs`` of one
    run, or both of these."""

    path: Path
    results: tuple[FioResult, ...] = ()
    logs: tuple[LogFile, ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether it is a recording of iopstui."""
        return not self.results and not self.logs

    @property
    def paths(self) -> tuple[Path, ...]:
        """All its files."""
        first = () if self.logs and not self.results else (self.path,)
        return (*first, *(log.path for log in self.logs))


def _check_exists(path: Path) -> None:
    try:
        path.stat()
    except FileNotFoundError as error:
        raise NoFile(
            printable(str(path)),
            "A report is of recordings (iopstui run --record FILE), fio's JSON or fio's logs.",
        ) from error
    except OSError:
        pass  # the reader of recordings will report the error


def sources(paths: Sequence[Path]) -> list[Source]:
    """The sources in the order of the files. Logs belong to the result whose job wrote them, or
    otherwise to one another if they have the same prefix. Raises UsageError for a file that can't
    be reported."""
    result: list[Source] = []
    logs: dict[tuple[Path, str], list[LogFile]] = {}
    for path in paths:
        kind = detect_file_kind(path)
        if kind == OTHER:
            _check_exists(path)
        if kind == NORMAL:
            raise UsageError(
                f"{printable(str(path))} is fio's normal output, which lacks most of the "
                "data.", JSON_ADVICE,
            )  # fmt: skip
        if path.name.endswith(".log") and "_hist" in path.name:
            raise UsageError(
                f"{printable(str(path))} is a histogram log (write_hist_log=), which iopstui "
                "does not read.",
                "Use latency logs (write_lat_log=), or JSON with the histogram of the whole "
                "run: --output-format=json+",
            )
        if kind == LOG:
            log = named_log(path)
            logs.setdefault((path.parent, log.name.prefix), []).append(log)
        else:
            result.append(Source(path, tuple(read_results(path)) if kind == JSON else ()))
    for (_, prefix), several in logs.items():
        place = _owner(result, prefix)
        if place is None:
            result.append(Source(several[0].path, (), tuple(several)))
        else:
            source = result[place]
            result[place] = Source(source.path, source.results, (*source.logs, *several))
    return result


def _owner(known_sources: Sequence[Source], prefix: str) -> int | None:
    """The index of the result to which these logs belong; ``None`` if they fit no result or
    several."""
    owners = [
        n
        for n, source in enumerate(known_sources)
        if len(source.results) == 1 and source.results[0].names_log(prefix)
    ]
    return owners[0] if len(owners) == 1 else None


@contextmanager
def credible(found_sources: Sequence[Source]) -> Iterator[None]:
    """A context in which impossible figures in a file become a UsageError."""
    with checking_figures([path for source in found_sources for path in source.paths]):
        yield


MAX_GAP_S = 86400.0
UNNAMED_TARGET = "a target that the file does not name"
SINGLE_DOCUMENT = (
    "The file has one document for the whole run, so there are no seconds to check it against."
)


def load_foreign_report(source: Source, redact: bool = False) -> ReportData:
    """The report data of a result, of logs, or of both. Raises UsageError if a log can't be read,
    or is empty."""
    bases = log_bases_ms(source.logs, source.results[0] if source.results else None)
    files = [read_log_file(log, base) for log, base in zip(source.logs, bases, strict=True)]
    logs = Logs([file.log for file in files], any(map(_logs_maxima, source.results)))
    if not source.results and not any(file.log.lines for file in files):
        name = printable(str(source.path))
        raise UsageError(f"{name} has no log lines: nothing to report.")
    results = source.results
    private = Redactor() if redact else None
    if private is not None:
        for result in results:
            private.learn([{"filename": _target(result), "host": result.host},
                           *(options for _, options in result.options)])  # fmt: skip
            private.learn([{"host": host} for host in _hosts_in(result)])
    begins = _begins(results)
    data = _begun(source, begins, logs)
    for number, (result, begin) in enumerate(zip(results, begins, strict=True), 1):
        run = Run(number)
        data.runs.append(run)
        _of_result(data, run, result, begin)
    if files:
        if not results:
            data.runs.append(Run(1))
        _of_logs(data, data.runs[0], logs, results)
    data.missing_facts = [*dict.fromkeys(_missing_facts(results, logs, files, redact))]
    data.disks = [_disk(disk) for result in results for disk in result.disks]
    data.foreign = " and ".join(_of_what(results, logs))
    return data if private is None else _redacted(data, private)


def _hosts_in(result: FioResult) -> Iterator[str]:
    """The names of machines in the rows, and before the lines of clients."""
    for row in result.document.get("jobs") or ():
        if isinstance(row, Mapping) and isinstance(row.get("hostname"), str):
            yield row["hostname"]
    for message in result.messages:
        yield from re.findall(r"^<([^>]{1,80})>", message)


def _begins(results: Sequence[FioResult]) -> list[float]:
    """When each run began, in seconds after the first run's start. Runs that overlap, or are more
    than a day apart, are placed one after another."""
    begins: list[float] = []
    end = 0.0
    for result in results:
        begin = _began_ms(result) / 1000 - _began_ms(results[0]) / 1000
        begins.append(begin if begins and end <= begin <= end + MAX_GAP_S else end)
        end = begins[-1] + _seconds(result.last)
    return begins


def _began_ms(result: FioResult) -> float:
    ended_ms = result.last.timestamp_ms
    return max(0.0, ended_ms - 1000 * _seconds(result.last)) if ended_ms else 0.0


def _begun(source: Source, begins: Sequence[float], logs: Logs) -> ReportData:
    results = source.results
    ends = [begin + _seconds(result.last) for begin, result in zip(begins, results, strict=True)]
    duration = max(logs.end, 1e-3, *ends)
    hosts = dict.fromkeys(result.host for result in results if result.host)
    targets = dict.fromkeys(map(_target, results))
    header = form.Header(
        "", ", ".join(hosts), "", "", _began_ms(results[0]) if results else logs.began_ms,
        Target(FILE, ", ".join(targets) or UNNAMED_TARGET, None),
    )  # fmt: skip
    path = source.path
    if not results:
        path = source.logs[0].path.with_name(source.logs[0].name.prefix or source.path.name)
    return ReportData(path, header, duration, Heat(duration))


def _seconds(status: FioStatus) -> float:
    """How long the run took, in seconds."""
    return whole_ms(status.jobs) / 1000


def _target(result: FioResult) -> str:
    names = [
        options[name]
        for _, options in result.options
        for name in ("filename", "directory")
        if options.get(name)
    ]
    return ", ".join(dict.fromkeys(names)) or UNNAMED_TARGET


def _of_result(data: ReportData, run: Run, result: FioResult, begin: float) -> None:
    final, step = result.last, run.step
    end = begin + max(_seconds(final), 1e-3)
    summary = fio_summary(final)
    _fill_in(summary, result.document)
    failed = [row["name"] for row in summary["rows"] if row["error"]]
    error = "; ".join(result.messages) or (f"fio reports failed jobs: {', '.join(failed)}" if failed
                                       else "")  # fmt: skip
    names = ", ".join(dict.fromkeys(job.name or "(no name)" for job in final.jobs))
    run.started = events.StepStarted(
        begin, step, names, _title(final), (), True, "run", final.version
    )
    run.job_run = form.JobRun(step, "", {}, None, False, job_file(result.options))
    run.finished = events.StepFinished(
        end, step, 1 if failed else 0, error if failed else "", False, summary
    )
    data.notices += [
        events.Notice(end, "warning", f"{row['name']}: {row['failed']:,} I/Os failed and the job "
                                      "continued; IOPS and latency may count I/Os that moved no "
                                      "data.")
        for row in summary["rows"] if row["failed"]
    ]  # fmt: skip
    if not failed:
        data.notices += [events.Notice(0.0, "warning", message) for message in result.messages]
    block, rates = Block(data.header, data.duration), SecondRates()
    for status, frame in zip(result.statuses, result_frames(result, step), strict=True):
        if len(result.statuses) > 1:
            at = max(begin, end - (final.timestamp_ms - status.timestamp_ms) / 1000)
            block.add(replace(frame, t=at))
            rates.add(frame)
            data.samples += 1
        else:
            run.add(frame, data.header.target.tree)
    add_block(data, block)
    contradicted = rates.contradicted(summary) or impossible_rates(final)
    data.notices += [events.Notice(end, "warning", f"{rate.why}.") for rate in contradicted]
    run.contradicted = frozenset(rate.direction for rate in contradicted)
    run.begin, run.end = begin, end
    run.note = SINGLE_DOCUMENT if len(result.statuses) == 1 else ""


def _disk(disk: Mapping[str, Any]) -> tuple[str, str]:
    """fio's disk_util of one disk, in words. Its util may be NaN."""
    util = disk.get("util")
    reads, writes = (
        count if type(count := disk.get(name, 0)) is int and count >= 0 else "unknown"
        for name in ("read_ios", "write_ios")
    )
    counts = f"{reads} reads, {writes} writes"
    known = isinstance(util, (int, float)) and 0 <= util <= 100
    return str(disk.get("name", "")), f"{counts}, util {util:.1f} %" if known else counts


def _fill_in(summary: dict[str, Any], document: Mapping[str, Any]) -> None:
    """Fill in means that fio states without a count (before 3.19, without histograms), and remove
    counts if the document has none."""
    rows = [row for row in document.get("jobs") or () if isinstance(row, Mapping)]
    uncounted = set()
    for row, raw in zip(summary["rows"], rows, strict=False):
        for name, figures in row["directions"].items():
            _fill_means(figures, raw[name].get("clat_ns"))
            if "total_ios" not in raw[name]:
                uncounted.add(name)
                figures["total_ios"] = figures["completed"] = None
        if "sync" in row:
            _fill_means(row["sync"], raw["sync"].get("lat_ns"))
    for sums in (summary["total"], *(group["directions"] for group in summary["sums"])):
        for name in uncounted & sums.keys():
            sums[name]["total_ios"] = sums[name]["completed"] = None


def _fill_means(figures: dict[str, Any], block: Any) -> None:
    if figures["clat_mean_ns"] is not None or not isinstance(block, Mapping):
        return
    mean = block.get("mean")
    if not block.get("max") or not isinstance(mean, (int, float)):
        return
    figures["clat_mean_ns"] = float(mean)
    figures["lat_max_ns"] = figures["lat_max_ns"] or int(block["max"])
    percentiles = block.get("percentile")
    if not figures["percentiles"] and isinstance(percentiles, Mapping):
        ranks = {float(p): int(v) for p, v in percentiles.items() if v}
        figures["percentiles"] = {f"p{rank:g}": value for rank, value in ranks.items() if rank}


def _title(status: FioStatus) -> str:
    shapes = dict.fromkeys(
        " ".join(
            label
            for name, label in (
                ("rw", job.options.get("rw", job.options.get("readwrite", ""))),
                ("bs", _block_sizes(job.options)),
                ("iodepth", f"QD {job.options.get('iodepth', '1')}"),
                ("numjobs", f"x {job.options['numjobs']}" if "numjobs" in job.options else ""),
            )
            if label
        )
        for job in status.jobs
        if not _of_another(job)
    )
    return "; ".join(list(shapes)[:4])


def _of_another(job: JobStatus) -> bool:
    """Whether a row has I/Os that its options exclude: for a group of jobs, fio gives the options
    of the last job."""
    return any(
        part.issued and not has_direction(job.options, name)
        for name, part in job.directions.items()
    )


def _block_sizes(options: Mapping[str, str]) -> str:
    """The sizes of I/Os, in words. If a list or range is given besides a single size, fio uses the
    former."""
    if "bssplit" in options:
        return f"bssplit {options['bssplit']}"
    ranges = options.get("bsrange", options.get("blocksize_range"))
    return ranges or options.get("bs", options.get("blocksize", ""))


def job_file(sections: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """The options in fio's JSON as a job file."""
    parts = []
    for name, section in sections:
        lines = [f"{key}={value}" if value else key for key, value in section.items()
                 if key != "name"]  # fmt: skip
        # printable: a line end in a value would begin another option or job
        parts.append("\n".join(map(printable, (f"[{name or 'global'}]", *lines))))
    return "\n\n".join(parts)


def _of_logs(data: ReportData, run: Run, logs: Logs, results: Sequence[FioResult]) -> None:
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
    if results:
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


def _logs_maxima(result: FioResult) -> bool:
    """Whether the lines of its averaged logs contain maxima."""
    return any(
        flag(options, "log_max_value") or options.get("log_window_value", "").strip() == "max"
        for _, options in result.options
    )


def _of_what(results: Sequence[FioResult], logs: Logs) -> Iterator[str]:
    if results:
        has_histogram = all(result.has_histogram for result in results)
        kind = "JSON with histograms (json+)" if has_histogram else "JSON"
        runs = f", {len(results)} runs" if len(results) > 1 else ""
        count = sum(len(result.statuses) for result in results)
        has_seconds = count > len(results)
        yield f"fio's {kind}{runs}" + (
            f", {count} documents (--status-interval)" if has_seconds else ""
        )
    for averaged in (False, True):
        kinds = sorted({log.kind for log in logs.logs if log.lines and log.averaged == averaged})
        if kinds:
            windows = "maxima" if logs.maxima else "averages"
            yield f"fio's logs of {', '.join(kinds)}, " + (
                f"{windows} over time windows" if averaged else "every I/O"
            )


def _missing_facts(
    results: Sequence[FioResult], logs: Logs, files: list[LogFile], redact: bool
) -> Iterator[str]:
    def named(file: LogFile) -> str:
        return f"a log of {file.name.kind}" if redact else file.path.name

    yield "kernel data (device counters, CPUs, interrupts): only recordings have it"
    for result in results:
        yield from _lacking_in_json(result, logs)
    if files and not logs.bins_of:
        yield (
            "latencies of single I/Os: "
            + (f"the logs of {logs.mean_of} hold averages over time windows, which give no "
               "percentiles (without log_avg_msec they hold every I/O)" if logs.mean_of
               else "no such log (write_lat_log)")
        )  # fmt: skip
    if logs.maxima:
        yield "rates and means over time: the logs hold the maxima of windows (log_max_value)"
    has_starts = all(file.log.epoch or file.log.base_ms for file in files[1:])
    if len({file.name.job for file in files}) > 1 and not has_starts:
        yield "when the jobs began: each log counts from its own job's start"
    for file in files:
        if file.log.unparsed_lines:
            yield f"{named(file)}: {file.log.unparsed_lines} lines are not lines of such a log"
        if not file.log.lines:
            yield f"{named(file)}: it is empty"
    if not results and not any(log.kind == "bw" or log.seconds for log in logs.logs):
        yield "bandwidth: no such log (write_bw_log)"
    if not results and not any(log.kind == "iops" or log.seconds for log in logs.logs):
        yield "IOPS: no such log (write_iops_log)"


def _lacking_in_json(result: FioResult, logs: Logs) -> Iterator[str]:
    timed = any(job.measures_latency or part.completed for job in result.last.jobs
                for part in job.directions.values())  # fmt: skip
    if not timed:
        yield "latency: not measured by the jobs (gtod_reduce, disable_clat)"
    elif not result.has_histogram:
        yield ("histograms and combined percentiles: use --output-format=json+")  # fmt: skip
    if len(result.statuses) == 1 and not logs.logs:
        yield ("changes over time: use --status-interval=1 or logs (write_lat_log)")  # fmt: skip
    if result.broken_documents:
        which = "is" if result.broken_documents == 1 else "are"
        yield (f"{units.counted(result.broken_documents, 'document')} of the file, which {which} "
               "cut off or damaged")  # fmt: skip
    if not result.options:
        yield "the jobs' options"
    elif any(map(_of_another, result.last.jobs)):
        yield (
            "options of all jobs: for a group (group_reporting) fio writes only those of the last "
            "job"
        )
    yield from result.notes


def _redacted(data: ReportData, private: Redactor) -> ReportData:
    data.path = Path(REDACTED)
    data.header = private.redacted(data.header)
    data.notices = private.redacted(data.notices)
    data.disks = private.redacted(data.disks)
    data.missing_facts = private.redacted(data.missing_facts)
    for run in data.runs:
        run.started, run.job_run = private.redacted(run.started), private.redacted(run.job_run)
        run.finished = private.redacted(run.finished)
    return data
