"""Labelled rows from files and streams, in time order: the input of a merger.

A file is a recording, JSON lines of `run --format jsonl` or of `merge` itself, or the output of a
program that launched many of these commands (LabelledLines)."""

from __future__ import annotations

import heapq
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from iopstui.errors import NoFile, UsageError
from iopstui.features.fleet.deduplication import Deduplicator
from iopstui.features.fleet.hosts.conversation import MAX_WALL_MS, parse_object
from iopstui.features.fleet.merging.sums import Object
from iopstui.output.jsonl import event_object, session_object
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording
from iopstui.recording.replay import ReplayFold, replay_events
from iopstui.text import printable

LONGEST_LINE = 16 << 20
Labelled = tuple[str, Object]
Reporter = Callable[[str], None]


def line_rows(stream: BinaryIO, label: str, report: Reporter) -> Iterator[Labelled]:
    """The objects of JSON lines, each with its host's name (``label`` if it has none). Other lines
    are skipped, and reported once for each label of the launcher."""
    lines, hosts = LabelledLines(), _TaskNames(report)
    reported: set[str] = set()
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            _skip(stream)
            lines.unreadable.setdefault("", 1)
        else:
            for task, row in lines.feed(line):
                host = row.get("host")
                name = (printable(host) if isinstance(host, str) else "") or label
                yield hosts.name(name, task), row
        _report_unreadable(lines, label, reported, report)
    lines.end()
    _report_unreadable(lines, label, reported, report)


def _report_unreadable(
    lines: LabelledLines, label: str, reported: set[str], report: Reporter
) -> None:
    for task in lines.unreadable.keys() - reported:
        reported.add(task)
        report(f"{task or label}: skipping lines that are not JSON objects")


class _TaskNames:
    """Names the hosts of a launcher's tasks. Tasks on hosts with the same name are distinguished by
    their labels."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._owners: dict[str, str] = {}
        self._warned = False

    def name(self, host: str, task: str) -> str:
        """The name for a task's rows: the host's name for the first task on it, "host#label" for
        others."""
        if self._owners.setdefault(host, task) == task:
            return host
        name = f"{host}#{task}"
        if not self._warned:
            self._warned = True
            self._report(
                f"Several tasks run on hosts named {host}: the second is {name}, and so on."
            )
        return name


def parsed(line: bytes) -> Object | None:
    """The object in a line, after any prefix of a launcher; ``None`` if there is none."""
    start = line.find(b"{")
    if start < 0:
        return None
    return parse_object(line[start:] if start else line)


def _skip(stream: BinaryIO) -> None:
    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        continue


def recording_rows(path: Path, label: str) -> Iterator[Labelled]:
    """The events of a recording, as in JSON lines."""
    with Recording(path) as recording:
        header = recording.header
        name = label or printable(header.host)
        yield name, session_object(name, header.target)
        for event in replay_events(recording, ReplayFold(header)):
            yield name, event_object(event)


def file_rows(path: Path, label: str, report: Reporter) -> Iterator[Labelled]:
    """The rows of a recording or of a file with JSON lines. Raises UsageError if it can't be
    read."""
    try:
        with path.open("rb") as file:
            if file.read(len(form.NAME)) != form.NAME:
                file.seek(0)
                for name, row in line_rows(file, label or path.stem, report):
                    yield (label or name), row
                return
    except FileNotFoundError as error:
        raise NoFile(printable(str(path))) from error
    except OSError as error:
        raise UsageError(f"Cannot read {printable(str(path))}: {error.strerror}.") from error
    yield from recording_rows(path, label)


def merged_streams(
    sources: Sequence[Iterable[Labelled]],
    report: Reporter,
    deduplicator: Deduplicator | None = None,
) -> Iterator[Labelled]:
    """The rows of all sources in the order of their wall-clock times. A host that is in two sources
    counts as two hosts, unless one is a copy of the other; ``deduplicator`` detects and counts
    copies."""

    def own(index: int, rows: Iterable[Labelled]) -> Iterator[tuple[float, int, Labelled]]:
        at = 0.0
        for name, row in rows:
            wall = row.get("wall_ms")
            if isinstance(wall, int | float) and at < wall < MAX_WALL_MS:
                at = float(wall)
            yield at, index, (name, row)

    merged = heapq.merge(
        *(own(index, rows) for index, rows in enumerate(sources)), key=lambda row: row[:2]
    )
    host_names = _HostNames(deduplicator or Deduplicator(), report)
    for _, index, (name, row) in merged:
        yield from host_names.rows(index, name, row)
    yield from host_names.leftover_lines()


class _HostNames:
    """If a host is in several sources, gives it a different name in each, once that is known."""

    def __init__(self, deduplicator: Deduplicator, report: Reporter) -> None:
        self._deduplicator = deduplicator
        self._report = report
        self._owners: dict[str, int] = {}
        self._names: dict[tuple[int, str], str] = {}
        self._pending: dict[tuple[int, str], list[Object]] = {}

    def rows(self, index: int, name: str, row: Object) -> Iterator[Labelled]:
        """A row, preceded by the rows that were held back until it showed to which host they
        belong. Repetitions are left out."""
        key = index, name
        if self._deduplicator.is_repeat(index, name, row):
            self._pending.pop(key, None)
            return
        origin = self._deduplicator.origin(index, name)
        known_name = self._names.get((origin, name))
        if known_name is None and self._owners.get(name, index) != index and not _says_whose(row):
            self._pending.setdefault(key, []).append(row)
            return
        host_name = known_name or self._named(origin, name)
        for waiting_row in (*self._pending.pop(key, ()), row):
            yield host_name, waiting_row

    def leftover_lines(self) -> Iterator[Labelled]:
        """The lines still held back at the end, from hosts that sent too little."""
        for (index, name), rows in self._pending.items():
            host_name = self._named(index, name)
            for row in rows:
                yield host_name, row
        self._pending.clear()

    def _named(self, index: int, name: str) -> str:
        host_name, number = name, 2
        while self._owners.setdefault(host_name, index) != index:
            host_name, number = f"{name}#{number}", number + 1
        if host_name != name:
            self._report(
                f"{name} is in several files; in file {index + 1} it is named {host_name}. "
                "To name it yourself: --label"
            )
        self._names[index, name] = host_name
        return host_name


def _says_whose(row: Object) -> bool:
    return row.get("event") in ("frame", "total", "merged")


# Put together lines that a launcher has labelled, split and mixed, and distinguish its tasks.
#
# `srun -l`, `pdsh`, `clush` and `kubectl logs --prefix` put a label before each line. srun also
# cuts lines after 1,024 bytes and labels each piece. mpirun --tag-output passes blocks of 4,096
# bytes on, so its tags are in the middle of lines, and pieces of several tasks are mixed.


LONGEST_LABEL = 256
"""A text before a line's first brace that is longer than this (bytes) is not a label."""
MAX_LABELS = 50_000
LONGEST_ROW = 16 << 20
_BEGIN = b'{"event":'
_TAG = re.compile(rb"\[(?:\d+,\d+\]<std(?:out|err)>:|[^\[\]\s]+@\d+,\d+\]<std(?:out|err)>: )")
"""The tags of mpirun: [job,rank]<stdout>: in any column; from version 5 on [name@job,rank]<stdout>:
and a space."""
_RANK = re.compile(r"(\d+)\]<std")


class LabelledLines:
    """The JSON objects in lines of many labelled tasks. ``unreadable`` counts the skipped lines, by
    label."""

    def __init__(self) -> None:
        self.unreadable: dict[str, int] = {}
        self._pending: dict[bytes, bytes] = {}
        self._lengths: set[int] = set()

    def feed(self, line: bytes) -> Iterator[tuple[str, Object]]:
        """The objects completed by this line, each with its label ("": none)."""
        for label, part in self._split_at_tags(line.removeprefix(BOM_UTF8)):
            row = self._join(label, part)
            if row is not None:
                yield label_name(label), row

    def end(self) -> None:
        """End the input: incomplete objects count as unreadable."""
        for label, pending in self._pending.items():
            if pending:
                self._leave_out(label)

    def _split_at_tags(self, line: bytes) -> Iterator[tuple[bytes, bytes]]:
        tags = list(_TAG.finditer(line)) if line.startswith(b"[") else []
        if not tags or tags[0].start() > 0:
            yield self._split_label(line)
            return
        ends = [*(tag.start() for tag in tags[1:]), len(line)]
        for tag, end in zip(tags, ends, strict=True):
            yield self._register_label(tag.group()), line[tag.end() : end]

    def _split_label(self, line: bytes) -> tuple[bytes, bytes]:
        for length in self._lengths:
            if line[:length] in self._pending:
                return line[:length], line[length:]
        start = line.find(_BEGIN)
        if not 0 < start <= LONGEST_LABEL or b'"' in line[:start]:
            return b"", line
        return self._register_label(line[:start]), line[start:]

    def _register_label(self, label: bytes) -> bytes:
        if label not in self._pending:
            if len(self._pending) >= MAX_LABELS:
                return b""
            self._pending[label] = b""
            self._lengths.add(len(label))
        return label

    def _join(self, label: bytes, part: bytes) -> Object | None:
        """The object that this piece completes; ``None`` if it completes none."""
        pending = self._pending.get(label, b"")
        if pending and part.startswith(_BEGIN):
            self._leave_out(label)
            pending = b""
        line = pending + part
        row = _object(line)
        if row is None and label and (pending or part.startswith(b"{")) and len(line) < LONGEST_ROW:
            self._pending[label] = line.rstrip(b"\r\n")
            return None
        if label:
            self._pending[label] = b""
        if row is None and line.strip():
            self._leave_out(label)
        return row

    def _leave_out(self, label: bytes) -> None:
        name = label_name(label)
        self.unreadable[name] = self.unreadable.get(name, 0) + 1


def label_name(label: bytes) -> str:
    """The name in a label: "3" in "3: " and in "[1,3]<stdout>:", "pod/a" in "[pod/a] "."""
    text = printable(label.decode("utf-8", "replace")).strip()
    rank = _RANK.search(text)
    return rank.group(1) if rank else text.rstrip(":").strip("[]() ")


def _object(line: bytes) -> Object | None:
    if not line.rstrip().endswith(b"}"):
        return None
    start = line.find(b"{")
    return parse_object(line[start:])
