"""Labelled rows from files and streams, in time order: the input of a merger.

A file is one of our recordings, or JSON lines of `run --format jsonl`, of `merge` itself, or of
whatever launched many of them (labelled_lines).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from iopstui.errors import UsageError
from iopstui.features.fleet.deduplication import Deduplicator
from iopstui.features.fleet.hosts.json_objects import parse_object
from iopstui.features.fleet.hosts.orders import MAX_WALL_MS
from iopstui.features.fleet.merging.sums import Object
from iopstui.features.fleet.output.labelled_lines import LabelledLines
from iopstui.output.jsonl import event_object, session_object
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording
from iopstui.recording.replay import ReplayFold, replay_events
from iopstui.text import printable

LONGEST_LINE = 16 << 20
Labelled = tuple[str, Object]
Reporter = Callable[[str], None]


def line_rows(stream: BinaryIO, label: str, report: Reporter) -> Iterator[Labelled]:
    """The objects of JSON lines, each with its host's name, ``label`` where it has none. Lines that
    are none are reported once for each of their launcher's labels, and left out."""
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
    """Names the hosts of a launcher's tasks: tasks on hosts of one name are told apart by their
    labels."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._owners: dict[str, str] = {}
        self._warned = False

    def name(self, host: str, task: str) -> str:
        """The name for a task's rows: its host's, or "host#label" for all tasks but the first."""
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
    """The events of a recording as JSON lines would have them."""
    with Recording(path) as recording:
        header = recording.header
        name = label or printable(header.host)
        yield name, session_object(name, header.target)
        for event in replay_events(recording, ReplayFold(header)):
            yield name, event_object(event)


def file_rows(path: Path, label: str, report: Reporter) -> Iterator[Labelled]:
    """Rows of a recording or a file of JSON lines. UsageError if it can't be read."""
    try:
        with path.open("rb") as file:
            if file.read(len(form.NAME)) != form.NAME:
                file.seek(0)
                for name, row in line_rows(file, label or path.stem, report):
                    yield (label or name), row
                return
    except OSError as error:
        raise UsageError(f"Cannot read {printable(str(path))}: {error.strerror}.") from error
    yield from recording_rows(path, label)


def merged_streams(
    sources: Sequence[Iterable[Labelled]],
    report: Reporter,
    deduplicator: Deduplicator | None = None,
) -> Iterator[Labelled]:
    """The rows of all, by their wall clocks. A host that is in two of them is two hosts, unless one
    is a copy of the other: ``deduplicator`` finds that out and counts it."""

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
    """Gives hosts that are in several sources a name for each, once it is known that they are."""

    def __init__(self, deduplicator: Deduplicator, report: Reporter) -> None:
        self._deduplicator = deduplicator
        self._report = report
        self._owners: dict[str, int] = {}
        self._names: dict[tuple[int, str], str] = {}
        self._pending: dict[tuple[int, str], list[Object]] = {}

    def rows(self, index: int, name: str, row: Object) -> Iterator[Labelled]:
        """A row, and those that waited for it to say whose they are. What comes again is left
        out."""
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
        """Lines left over, of hosts that sent too little."""
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
