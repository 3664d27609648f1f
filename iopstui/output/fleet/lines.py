"""Labelled rows from files and streams, in the order of their time: what a merger is fed.

A file is one of our recordings, or JSON lines of `run --format jsonl`, of `merge` itself, or of
whatever launched many of them; what stands before a line's first brace (`srun -l`, `clush`) is left
out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from iopstui.errors import UsageError
from iopstui.fleet.orders import LATEST_MS
from iopstui.fleet.sums import Object
from iopstui.fleet.wire import object_of
from iopstui.output.jsonl import event_object, session_object
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording
from iopstui.recording.replay import Fold, replayed
from iopstui.text import printable

LONGEST_LINE = 16 << 20
Labelled = tuple[str, Object]
Say = Callable[[str], None]


def line_rows(stream: BinaryIO, label: str, say: Say) -> Iterator[Labelled]:
    """The objects of JSON lines, each with its host's name, ``label`` where it has none. What is
    none is told once for each label, and left out."""
    told: set[str] = set()
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            _skip(stream)
            row = None
        else:
            row = parsed(line)
        if row is None:
            if line.strip() and label not in told:
                told.add(label)
                say(f"{label}: lines that are no JSON objects are left out")
            continue
        host = row.get("host")
        yield (printable(host) if isinstance(host, str) and host else label), row


def parsed(line: bytes) -> Object | None:
    """The object in a line, behind what a launcher put before it; ``None`` if there is none."""
    start = line.find(b"{")
    if start < 0:
        return None
    return object_of(line[start:] if start else line)


def _skip(stream: BinaryIO) -> None:
    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        continue


def recording_rows(path: Path, label: str) -> Iterator[Labelled]:
    """The events of a recording as JSON lines would have them."""
    with Recording(path) as recording:
        header = recording.header
        name = label or printable(header.host)
        yield name, session_object(name, header.target)
        for event in replayed(recording, Fold(header)):
            yield name, event_object(event)


def file_rows(path: Path, label: str, say: Say) -> Iterator[Labelled]:
    """Of a recording or a file of JSON lines. UsageError if it can't be read."""
    try:
        with path.open("rb") as file:
            if file.read(len(form.NAME)) != form.NAME:
                file.seek(0)
                for name, row in line_rows(file, label or path.stem, say):
                    yield (label or name), row
                return
    except OSError as error:
        raise UsageError(f"{printable(str(path))} can't be read: {error.strerror}.") from error
    yield from recording_rows(path, label)


def several(sources: Sequence[Iterable[Labelled]], say: Say) -> Iterator[Labelled]:
    """The rows of all, by their wall clocks. A host that is in two of them is two hosts."""
    owners: dict[str, int] = {}

    def own(index: int, rows: Iterable[Labelled]) -> Iterator[tuple[float, int, Labelled]]:
        at = 0.0
        for name, row in rows:
            if owners.setdefault(name, index) != index:
                name = _second_name(owners, name, index, say)
            wall = row.get("wall_ms")
            if isinstance(wall, int | float) and at < wall < LATEST_MS:
                at = float(wall)
            yield at, index, (name, row)

    merged = heapq.merge(
        *(own(index, rows) for index, rows in enumerate(sources)), key=lambda one: one[:2]
    )
    return (labelled for _, _, labelled in merged)


def _second_name(owners: dict[str, int], name: str, index: int, say: Say) -> str:
    number = 2
    while owners.get(f"{name}#{number}", index) != index:
        number += 1
    found = f"{name}#{number}"
    if found not in owners:
        owners[found] = index
        say(f"{name} is in several files, so it is {found} in the {index + 1}th; --label names it")
    return found
