"""Recognise and read result files of fio itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.fio.stream.framing import BrokenDocument, Document, Framer, LogLine, decode
from iopstui.fio.stream.status import parse_status
from iopstui.model.fio.log_lines import FioLog, LogName, is_log_line, log_name, read_log
from iopstui.model.samples import FioStatus
from iopstui.recording import layout as form
from iopstui.text import printable
from iopstui.untrusted import MAX_MEMORY

RECORDING, JSON, LOG, NORMAL, OTHER = "recording", "json", "log", "normal", "other"
HEAD_BYTES = 1 << 18
MAX_RESULT_BYTES = 512 << 20
MAX_PARTS, MIN_PART_BYTES = 1_000_000, 32
"""Of so many objects and lists in fio's JSON each takes so many bytes at least, by far."""
ALL_CLIENTS = "All clients"
JSON_ADVICE = "To get JSON from fio: fio --output-format=json+ --output=RESULT.json JOB.fio"
_JSON = re.compile(rb'\{\s*"fio version"')
_NORMAL = re.compile(rb"^(?:\d;)?fio-\d[\w.\-]*(?:;|\s*$)", re.MULTILINE)
_FIO_PREFIX = re.compile(r"(?:<[^>]{1,80}> )?fio: ")


def detect_file_kind(path: Path) -> str:
    """RECORDING, JSON, LOG, NORMAL (fio's output for people, or terse) or OTHER, which is also
    what can't be read. It is the content that counts."""
    try:
        if not os.path.isfile(path):
            return OTHER
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except (OSError, ValueError):
        return OTHER
    if head.startswith(form.NAME):
        return RECORDING
    if _JSON.search(head) or _FIO_PREFIX.match(head[:200].decode("utf-8", "replace")):
        return JSON
    lines = [line for line in head.decode("utf-8", "replace").split("\n")[:4] if line.strip()]
    if lines and all(is_log_line(line) for line in lines[:3]):
        return LOG
    return NORMAL if _NORMAL.search(head) else OTHER


@dataclass(frozen=True, slots=True)
class FioResult:
    """A file with fio's JSON: its documents, of which several are those of --status-interval, the
    last one as it stands there, the ``options`` of all jobs by the job's name ("": global ones).
    ``messages`` are fio's errors around them, ``broken_documents`` counts broken documents."""

    path: Path
    statuses: tuple[FioStatus, ...]
    document: Mapping[str, Any]
    options: Mapping[str, Mapping[str, str]]
    messages: tuple[str, ...] = ()
    broken_documents: int = 0

    @property
    def host(self) -> str:
        """The machines of a ``fio --client``; "" where fio does not say."""
        hosts = {str(row["hostname"]) for row in self.document.get("jobs") or ()
                 if isinstance(row, Mapping) and row.get("hostname")}  # fmt: skip
        return ", ".join(sorted(hosts))

    @property
    def disks(self) -> tuple[Mapping[str, Any], ...]:
        """fio's disk_util."""
        rows = self.document.get("disk_util")
        return tuple(d for d in rows or () if isinstance(d, Mapping))

    @property
    def last(self) -> FioStatus:
        """fio's last word."""
        return self.statuses[-1]

    @property
    def has_histogram(self) -> bool:
        """Whether there is a histogram (json+)."""
        return any(d.bins for job in self.last.jobs for d in job.directions.values())

    def names_log(self, prefix: str) -> bool:
        """Whether one of its options had fio write a log of that prefix."""
        return any(
            Path(value or job).name == prefix
            for job, options in self.options.items()
            for name, value in options.items()
            if name in _LOGS
        )


_LOGS = ("write_bw_log", "write_iops_log", "write_lat_log")


def read_result(path: Path) -> FioResult:
    """Read fio's JSON, ignoring other output around it. UsageError if it has no whole document."""
    try:
        if path.stat().st_size > MAX_RESULT_BYTES:
            raise UsageError(f"{_name(path)} is larger than {MAX_RESULT_BYTES >> 20} MiB, too "
                             "large for a fio result.")  # fmt: skip
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read {_name(path)}: {error.strerror}.") from error
    parts = content.count(b"{") + content.count(b"[")
    if parts > MAX_PARTS and parts * MIN_PART_BYTES > len(content):
        # Python makes a hundred bytes of each
        raise UsageError(f"{_name(path)} has {parts} empty parts, so it is not a fio "
                         "result.")  # fmt: skip
    framer = Framer()
    items = [*framer.feed(content), *framer.close()]
    documents = [item.data for item in items if isinstance(item, Document)]
    if not documents:
        documents = list(_loose_json(content))
    valid = [(data, status) for data in map(_merge_clients, documents)
             if (status := parse_status(data)) is not None and status.jobs]  # fmt: skip
    if not valid:
        raise UsageError(
            f"{_name(path)} contains no complete fio JSON. It was cut off, or fio ended "
            "before it measured anything." + _first_message(items), JSON_ADVICE,
        )  # fmt: skip
    last = valid[-1][0]
    messages = [
        item.text for item in items if isinstance(item, LogLine) and _FIO_PREFIX.match(item.text)
    ]
    broken = sum(isinstance(item, BrokenDocument) for item in items)
    return FioResult(
        path, tuple(status for _, status in valid), last, _options(last),
        tuple(dict.fromkeys(messages)), broken,
    )  # fmt: skip


def _first_message(items: Sequence[object]) -> str:
    messages = [i.text for i in items if isinstance(i, LogLine) and _FIO_PREFIX.match(i.text)]
    return f" It said: {printable(messages[0])}" if messages else ""


def _loose_json(content: bytes) -> Iterator[Mapping[str, Any]]:
    """JSON that another program has put on one line, or indented otherwise."""
    match = _JSON.search(content)
    text = content[match.start() :].decode("utf-8", "replace") if match else ""
    decoder = json.JSONDecoder(strict=False)
    try:
        data, _ = decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return
    if isinstance(data, dict):
        yield from (document.data for document in decode(json.dumps(data).encode(), MAX_MEMORY)
                    if isinstance(document, Document))  # fmt: skip


def _merge_clients(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document of ``fio --client`` as one of a fio: its rows but the sum of all."""
    rows = data.get("client_stats")
    if "jobs" in data or not isinstance(rows, list):
        return data
    client_rows = [row for row in rows if isinstance(row, Mapping)]
    hosts = {row.get("hostname") for row in client_rows}
    jobs = [row for row in client_rows if row.get("jobname") != ALL_CLIENTS]
    if len(hosts) > 1:
        jobs = [{**row, "jobname": f"{row.get('hostname')}: {row.get('jobname')}"} for row in jobs]
    return {**data, "jobs": jobs}


def _options(data: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    by_job: dict[str, dict[str, str]] = {}
    parts = [("", data.get("global options"))]
    parts += [(str(row.get("jobname", "")), row.get("job options"))
              for row in data.get("jobs") or () if isinstance(row, Mapping)]  # fmt: skip
    for name, options in parts:
        if isinstance(options, Mapping):
            by_job[name] = {str(key): str(value) for key, value in options.items()}
    return by_job


@dataclass(slots=True)
class LogFile:
    """A log file with the parts of its name."""

    path: Path
    name: LogName
    log: FioLog = field(default_factory=lambda: FioLog(""))


def named_log(path: Path) -> LogFile:
    """A log whose lines are still to be read. UsageError if its name does not say of what it is."""
    name = log_name(path.name)
    if name is None:
        raise UsageError(
            f"{_name(path)} looks like a fio log, but its name does not tell whether it holds "
            "latencies, IOPS or bandwidth.",
            "Use fio's file name: NAME_clat.1.log, NAME_lat.1.log, NAME_slat.1.log, "
            "NAME_iops.1.log or NAME_bw.1.log",
        )
    return LogFile(path, name)


def read_log_file(file: LogFile) -> LogFile:
    """Read a log file with its lines. UsageError if it can't be read."""
    try:
        with open(file.path, encoding="utf-8", errors="replace") as lines:
            file.log = read_log(file.name.kind, lines)
    except OSError as error:
        raise UsageError(f"Cannot read {_name(file.path)}: {error.strerror}.") from error
    return file


def refuse_result(path: Path, kind: str) -> UsageError:
    """The error for a result that is given where something to be measured is meant."""
    name = _name(path)
    description = {
        RECORDING: ("a recording of iopstui", f"iopstui replay {name}, or iopstui report {name}"),
        JSON: ("a result of fio (JSON)", f"iopstui report {name}"),
        LOG: ("a log of fio", f"iopstui report {name}"),
    }.get(kind, ("the output of a fio run", JSON_ADVICE))
    return UsageError(
        f"{name} is {description[0]}, not a target: a job would read or overwrite it.",
        f"Open it with: {description[1]}" if kind != NORMAL else description[1],
    )


def _name(path: Path) -> str:
    return printable(str(path))
