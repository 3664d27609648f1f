"""Reassemble lines that a launcher labelled, split and mixed, and tell its tasks apart.

`srun -l`, `pdsh`, `clush` and `kubectl logs --prefix` put a label before each line. srun also cuts
lines after 1,024 bytes and labels each piece; mpirun --tag-output passes on blocks of 4,096 bytes,
so its tags stand in mid-line, and pieces of several tasks follow each other.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator

from iopstui.features.fleet.hosts.json_objects import parse_object
from iopstui.features.fleet.merging.sums import Object
from iopstui.text import printable

LONGEST_LABEL = 256
"""Bytes; longer text before a line's first brace is no label."""
MAX_LABELS = 50_000
LONGEST_ROW = 16 << 20
_BEGIN = b'{"event":'
_TAG = re.compile(rb"\[(?:\d+,\d+\]<std(?:out|err)>:|[^\[\]\s]+@\d+,\d+\]<std(?:out|err)>: )")
"""Of mpirun: [job,rank]<stdout>: in any column; from version 5 on [name@job,rank] and a space."""
_RANK = re.compile(r"(\d+)\]<std")


class LabelledLines:
    """The JSON objects in lines of many labelled tasks. ``unreadable`` counts what was left out, by
    label."""

    def __init__(self) -> None:
        self.unreadable: dict[str, int] = {}
        self._pending: dict[bytes, bytes] = {}
        self._lengths: set[int] = set()

    def feed(self, line: bytes) -> Iterator[tuple[str, Object]]:
        """The objects that this line completes, each with its label ("": none)."""
        for label, part in self._split_at_tags(line.removeprefix(BOM_UTF8)):
            row = self._join(label, part)
            if row is not None:
                yield label_name(label), row

    def end(self) -> None:
        """The input is over: what is still incomplete is unreadable."""
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
        """The object that this piece completes; ``None``: none, or not yet."""
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
    """Name in a label: "3" of "3: " and of "[1,3]<stdout>:", "pod/a" of "[pod/a] "."""
    text = printable(label.decode("utf-8", "replace")).strip()
    rank = _RANK.search(text)
    return rank.group(1) if rank else text.rstrip(":").strip("[]() ")


def _object(line: bytes) -> Object | None:
    if not line.rstrip().endswith(b"}"):
        return None
    start = line.find(b"{")
    return parse_object(line[start:])
