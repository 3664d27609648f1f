"""Recognise and read result files of fio itself."""

from __future__ import annotations

import os
import pickle
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from iopstui.errors import UsageError
from iopstui.fio.stream.framing import BrokenDocument, Document
from iopstui.fio.stream.status import parse_status
from iopstui.model.fio.interval_time import begins_ms
from iopstui.model.fio.log_lines import (
    FioLog,
    LogName,
    is_log_line,
    log_epoch_ms,
    log_name,
    read_log,
)
from iopstui.model.samples import DIRECTIONS, FioStatus
from iopstui.recording import layout as form
from iopstui.recording.result_documents import (
    GZIP,
    ResultReader,
    broken_place,
    has_document,
    text_blocks,
    text_head,
)
from iopstui.recording.result_rows import (
    client_labels,
    continues,
    newest_of_clients,
    without_older_units,
)
from iopstui.recording.spellings import not_json
from iopstui.text import printable

RECORDING, JSON, LOG, NORMAL, OTHER = "recording", "json", "log", "normal", "other"
MAX_RUNS, MAX_MESSAGES = 100, 100
LONGEST_NAME = 1 << 16
LONGEST_RUN_MS = 10 * 365 * 86_400_000
MAX_TIMESTAMP_MS = 253_402_300_800_000
"""The year 10000."""
BUCKET = 1.05
"""In a bucket of fio's histogram, the highest value is less than this many times the lowest."""
_COUNTS = "total_ios", "io_bytes", "io_kbytes", "runtime"
MAX_KEPT_BYTES = 48 << 20
"""Limit for the JSON of the runs' documents together with the compressed documents."""
JSON_ADVICE = "To get JSON from fio: fio --output-format=json+ --output=RESULT.json JOB.fio"
_NORMAL = re.compile(rb"^(?:\d;)?fio-\d[\w.\-]*(?:;|\s*$)", re.MULTILINE)
_FIO_PREFIX = re.compile(r"(?:<[^>]{1,80}> )?fio: ")


def detect_file_kind(path: Path) -> str:
    """RECORDING, JSON, LOG, NORMAL (fio's normal or terse output) or OTHER (also if it can't be
    read), judged by content."""
    try:
        if not os.path.isfile(path):
            return OTHER
        with open(path, "rb") as file:
            begin = file.read(len(form.NAME))
        if begin == form.NAME:
            return RECORDING
        head = text_head(path)
    except UsageError:
        # the code that reads the file later reports the error
        return JSON if begin.startswith(GZIP) else OTHER
    except (OSError, ValueError):
        return OTHER
    # an empty log: fio writes one of submission latencies even with an engine that has none
    if not head.strip() and log_name(path.name):
        return LOG
    if has_document(head) or _FIO_PREFIX.match(head[:200].decode("utf-8", "replace")):
        return JSON
    if not_json(head) is not None:
        # reading it reports which command makes JSON of it
        return JSON
    lines = [line for line in head.decode("utf-8", "replace").split("\n")[:4] if line.strip()]
    if lines and all(is_log_line(line) for line in lines[:3]):
        return LOG
    return NORMAL if _NORMAL.search(head) else OTHER


class Statuses(Sequence[FioStatus]):
    """The successive status documents of one fio. All except the first and the last are compressed,
    because an hour of them would take hundreds of megabytes."""

    def __init__(self, first: FioStatus) -> None:
        self._first = self._last = first
        self._between: list[bytes] = []
        self.packed_bytes = 0

    def append(self, status: FioStatus) -> None:
        """Add the next document."""
        if self._last is not self._first:
            packed = zlib.compress(pickle.dumps(self._last, pickle.HIGHEST_PROTOCOL), 1)
            self._between.append(packed)
            self.packed_bytes += len(packed)
        self._last = status

    def __len__(self) -> int:
        return len(self._between) + (1 if self._last is self._first else 2)

    @overload
    def __getitem__(self, index: int) -> FioStatus: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FioStatus]: ...
    def __getitem__(self, index: int | slice) -> FioStatus | Sequence[FioStatus]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        if number == 0 or number == len(self) - 1:
            return self._last if number else self._first
        # safe to unpickle: packed by this process
        status: FioStatus = pickle.loads(zlib.decompress(self._between[number - 1]))
        return status


@dataclass(slots=True)
class FioResult:
    """One run of fio, read from its JSON: its documents (several with --status-interval), the last
    one also unchanged, and the ``options`` of all jobs by job name ("": global options).
    ``messages`` are fio's errors around them, ``broken_documents`` counts broken documents,
    ``notes`` say what was read differently from how it is written."""

    path: Path
    statuses: Statuses
    document: Mapping[str, Any]
    messages: tuple[str, ...] = ()
    broken_documents: int = 0
    notes: tuple[str, ...] = ()

    @property
    def options(self) -> list[tuple[str, dict[str, str]]]:
        """Names of jobs ("": global) with their options, each pair once; two jobs may share a
        name."""
        return _options(self.document)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The machines of a ``fio --client``, with ports if one has several servers."""
        return tuple(sorted(set(client_labels(self.document.get("jobs")).values())))

    @property
    def host(self) -> str:
        """Names of all machines, separated by commas; "" if fio's output has none."""
        return ", ".join(self.hosts)

    @property
    def disks(self) -> tuple[Mapping[str, Any], ...]:
        rows = self.document.get("disk_util")
        return tuple(d for d in rows or () if isinstance(d, Mapping))

    @property
    def last(self) -> FioStatus:
        return self.statuses[-1]

    @property
    def has_histogram(self) -> bool:
        """Whether the documents have histograms (json+)."""
        return any(d.bins for job in self.last.jobs for d in job.directions.values())

    def names_log(self, prefix: str) -> bool:
        """Whether one of the options made fio write a log with that prefix."""
        return any(
            Path(value or job).name == prefix
            for job, options in self.options
            for name, value in options.items()
            if name in _LOGS
        )


_LOGS = ("write_bw_log", "write_iops_log", "write_lat_log")


def read_results(path: Path) -> list[FioResult]:
    """Read the runs in fio's JSON, ignoring other output around it. Raises UsageError if it has no
    complete document."""
    reader = ResultReader(path)
    results: list[FioResult] = []
    latest: dict[str, FioResult] = {}
    messages: list[str] = []
    broken = kept_bytes = 0
    for label, item in reader.items():
        if isinstance(item, Document):
            document = without_older_units(newest_of_clients(item.data))
            status = parse_status(document)
            if status is None or not any(job.directions for job in status.jobs):
                continue
            _check(path, document, status)
            before = latest.get(label)
            if before is not None and before.document == document:
                continue
            if before is not None and continues(before.last, status):
                before.statuses.append(status)
                before.document = document
            else:
                results.append(FioResult(path, Statuses(status), document))
                latest[label] = results[-1]
                kept_bytes += item.size
            if len(results) > MAX_RUNS or kept_bytes + _packed_bytes(results) > MAX_KEPT_BYTES:
                raise UsageError(f"{printable(path)} holds more runs and documents of fio than can "
                                 "be read at once.", "Split it into several files.")  # fmt: skip
        elif isinstance(item, BrokenDocument):
            broken += 1
        elif _FIO_PREFIX.match(item.text) and len(messages) < MAX_MESSAGES:
            messages.append(item.text)
    if not results:
        raise _no_result(path, messages)
    last = results[-1]
    last.messages, last.broken_documents = tuple(dict.fromkeys(messages)), broken
    last.notes = tuple(reader.notes)
    return results


def _no_result(path: Path, messages: Sequence[str]) -> UsageError:
    """Why a file has no complete document of fio, and what to do."""
    form = not_json(text_head(path))
    if form is not None:
        name, command = form
        return UsageError(
            f"{printable(path)} has fio's result as {name}, which iopstui does not read.",
            f"Make JSON of it: {command.format(printable(path))} > RESULT.json",
        )
    message = f" It said: {printable(messages[0])}" if messages else ""
    place = broken_place(path)
    why = f": {place}." if place else (
        ". It was cut off or changed, or fio ended before it measured anything."
    )  # fmt: skip
    return UsageError(f"{printable(path)} contains no complete fio JSON{why}{message}", JSON_ADVICE)


def read_result(path: Path) -> FioResult:
    """Read the only run of a file. Raises UsageError if it has none, or several."""
    results = read_results(path)
    if len(results) > 1:
        raise UsageError(f"{printable(path)} holds {len(results)} runs of fio; this needs a file "
                         "with one.",
                         f"iopstui report {printable(path)} shows all of them.")  # fmt: skip
    return results[0]


def _check(path: Path, document: Mapping[str, Any], status: FioStatus) -> None:
    """Raise UsageError for a document that is damaged or not from fio."""
    _check_names(path, status)
    _check_counts(path, document)
    _check_figures(path, status)


def _check_names(path: Path, status: FioStatus) -> None:
    for job in status.jobs:
        longest = max(map(len, (job.name, *job.options, *job.options.values())))
        if longest > LONGEST_NAME:
            raise UsageError(f"{printable(path)} has a name or option of {longest:,} characters: "
                             "that is not fio's.")  # fmt: skip


def _check_counts(path: Path, document: Mapping[str, Any]) -> None:
    """Raise UsageError for counts that are not numbers: a report would show 0 for them."""
    for row in document["jobs"]:
        if not isinstance(row, Mapping):
            continue
        parts = [part for name in DIRECTIONS if isinstance(part := row.get(name), Mapping)]
        values = [part.get(key, 0) for part in parts for key in _COUNTS]
        for value in (*values, row.get("error", 0)):
            # some tools write all numbers as strings
            if type(value) not in (int, float) and not (
                isinstance(value, str) and value.strip().isdecimal()
            ):
                raise _impossible(path, str(row.get("jobname")))


def _check_figures(path: Path, status: FioStatus) -> None:
    """Raise UsageError for figures that fio can't have printed: negative or larger than 64 bits, a
    mean or percentile above the maximum, decreasing percentiles, an impossible date."""
    for job in status.jobs:
        for part in job.directions.values():
            figures = [part.issued, part.io_bytes, part.iops, part.bw_bytes, part.runtime_ms]
            figures += [part.lat_max_ns or 0, *part.percentiles.values(), *(part.bins or ())]
            figures.append(sum((part.bins or {}).values()))
            figures += [lat.mean_ns for lat in (part.slat, part.clat, part.lat) if lat is not None]
            mean = part.lat if part.bins_of == "lat" else part.clat
            most_ns = part.lat_max_ns
            above = mean is not None and most_ns and mean.mean_ns > most_ns + 1
            # with lat_percentiles= fio before 3.16 prints percentiles of lat beside the maximum of
            # clat
            of_lat = "lat_percentiles" in job.options
            if not _can_be_percentiles(part.percentiles, None if of_lat else most_ns):
                raise _impossible(path, job.name)
            if (min(figures) < 0 or max(figures) >= 1 << 63 or part.runtime_ms > LONGEST_RUN_MS
                    or above or not 0 <= status.timestamp_ms < MAX_TIMESTAMP_MS):  # fmt: skip
                raise _impossible(path, job.name)


def _can_be_percentiles(percentiles: Mapping[str, int], max_ns: int | None) -> bool:
    """Whether these percentiles rise and don't exceed the maximum. fio prints the middle of a
    bucket, old versions print microseconds, and fio 3.1 prints 0 for a percentile that it does not
    find."""
    by_rank = sorted((float(name.removeprefix("p")), ns) for name, ns in percentiles.items() if ns)
    values = [ns for _, ns in by_rank]
    return values == sorted(values) and not (
        values and max_ns and values[-1] > BUCKET * max_ns + 1000
    )


def _impossible(path: Path, job: str) -> UsageError:
    return UsageError(f"{printable(path)} holds impossible figures of {printable(job)}: it is "
                      "damaged, or not fio's.")  # fmt: skip


def _packed_bytes(results: Sequence[FioResult]) -> int:
    return sum(result.statuses.packed_bytes for result in results)


def _options(data: Mapping[str, Any]) -> list[tuple[str, dict[str, str]]]:
    sections: list[tuple[str, dict[str, str]]] = []
    parts = [("", data.get("global options"))]
    parts += [(str(row.get("jobname", "")), row.get("job options"))
              for row in data.get("jobs") or () if isinstance(row, Mapping)]  # fmt: skip
    for name, options in parts:
        if isinstance(options, Mapping):
            section = name, {str(key): str(value) for key, value in options.items()}
            # the clones of a section (numjobs) follow each other
            if not sections or sections[-1] != section:
                sections.append(section)
    return sections


@dataclass(slots=True)
class LogFile:
    """A log file with the parts of its name."""

    path: Path
    name: LogName
    log: FioLog = field(default_factory=lambda: FioLog(""))


def named_log(path: Path) -> LogFile:
    """A log whose lines are not read yet. Raises UsageError if its name does not say what it
    logs."""
    name = log_name(path.name)
    if name is None:
        raise UsageError(
            f"{printable(path)} looks like a fio log, but its name does not tell whether it holds "
            "latencies, IOPS or bandwidth.",
            "Use fio's file name: NAME_clat.1.log, NAME_lat.1.log, NAME_slat.1.log, "
            "NAME_iops.1.log or NAME_bw.1.log",
        )
    return LogFile(path, name)


def log_bases_ms(files: Sequence[LogFile], result: FioResult | None) -> list[int | None]:
    """The start time of each log, which places the jobs at their real times: from wall clocks in
    the logs, or from the jobs' starts in fio's JSON."""
    epochs = [log_epoch_ms(_first_line(file.path)) for file in files]
    first = min((epoch for epoch in epochs if epoch is not None), default=None)
    starts = [*map(round, begins_ms(result.last.jobs))] if result else []
    earliest = min(starts, default=0)
    bases: list[int | None] = []
    for file, epoch in zip(files, epochs, strict=True):
        if epoch is None and any(starts) and 0 < file.name.job <= len(starts):
            bases.append(earliest - starts[file.name.job - 1])
        else:
            bases.append(None if epoch is None else first)
    return bases


def _first_line(path: Path) -> str:
    return text_head(path).partition(b"\n")[0].decode("utf-8", "replace")


def read_log_file(file: LogFile, base_ms: int | None = None) -> LogFile:
    """Read a log file with its lines, whose times count from ``base_ms``. Raises UsageError if it
    can't be read."""
    lines = (
        line
        for block in text_blocks(file.path)
        for line in block.decode("utf-8", "replace").split("\n")
    )
    try:
        file.log = read_log(file.name.kind, lines, base_ms)
    except ValueError as error:
        raise UsageError(
            f"{printable(file.path)} is too large: {error}.",
            "Log averages instead: log_avg_msec=1000",
        ) from error
    return file


def result_target_error(path: Path, kind: str) -> UsageError:
    """The error for a file with fio's results that was given as a target."""
    name = printable(path)
    description = {
        RECORDING: ("a recording of iopstui", f"iopstui replay {name}, or iopstui report {name}"),
        JSON: ("a result of fio (JSON)", f"iopstui report {name}"),
        LOG: ("a log of fio", f"iopstui report {name}"),
    }.get(kind, ("the output of a fio run", JSON_ADVICE))
    return UsageError(
        f"{name} is {description[0]}, not a target: a job would read or overwrite it.",
        f"Open it with: {description[1]}" if kind != NORMAL else description[1],
    )
