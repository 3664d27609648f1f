"""Split the bytes that fio writes into whole JSON documents.

The writer is fio with ``--output-format=json+ --status-interval``. Its documents are glued
together, may be cut anywhere, and messages of fio and its jobs stand before, between, behind
and even inside them (fio issues #731, #1685).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from iopstui.fio.stream.interleaved_output import remove_interleaved_text
from iopstui.text import safe_text
from iopstui.untrusted import ORJSON_FROM_BYTES, PairsHook, TooLarge, check_memory, parse_json

MAX_DOCUMENT_BYTES = 64 << 20
MAX_LIVE_MEMORY = 1 << 30
MAX_OTHER_BRACES = 1000


@dataclass(frozen=True, slots=True)
class Document:
    """A complete document of fio, decoded. ``size`` is its length in bytes."""

    data: Mapping[str, Any]
    size: int


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line between the documents: a message of fio or of one of its jobs."""

    text: str


@dataclass(frozen=True, slots=True)
class BrokenDocument:
    """A document that could not be read even after intruding messages were taken out, or (with a
    ``reason``) was not to be read."""

    size: int
    reason: str = ""


Item = Document | LogLine | BrokenDocument


_BRACE = re.compile(rb"\n([{}])\r*\n")
_MAYBE_OPENING = re.compile(rb"\{\r*\Z")
_VERSION = b'  "fio version"'
_NAME = _VERSION.strip()
_NEWLINE = ord("\n")


class Framer:
    """Cuts fio's output into documents and messages, however the bytes arrive.

    A document's outer braces stand alone in the first column, so lines are enough; only behind a
    message that was cut a document begins within the line. Memory is bounded: an endless document
    is given up after ``MAX_DOCUMENT_BYTES``. Time is proportional to the length. ``limit`` is the
    memory (bytes) that a document may take: more for a fio of our own than for a file.
    """

    def __init__(self, limit: int = MAX_LIVE_MEMORY, pairs_hook: PairsHook | None = None) -> None:
        self._decode = partial(decode, limit=limit, pairs_hook=pairs_hook)
        self._buffer = bytearray()
        self._in_document = False
        self._scanned = 0

    def feed(self, data: bytes) -> Iterator[Item]:
        """All documents and messages that ``data`` completes."""
        self._buffer += data
        yield from self._items(last=False)

    def close(self) -> Iterator[Item]:
        """Return the rest at the end of the stream: a last line without newline, a torn
        document."""
        if not self._buffer.endswith(b"\n"):
            self._buffer += b"\n"
        yield from self._items(last=True)
        buffer, self._buffer = bytes(self._buffer), bytearray()
        if self._in_document:
            self._in_document = False
            yield from self._decode(buffer)

    def _items(self, last: bool) -> Iterator[Item]:
        at = 0
        try:
            while True:
                in_document = self._in_document
                items, end = self._document(at) if in_document else self._next_line(at, last)
                if end is None:
                    break
                yield from items
                at = end
        finally:
            del self._buffer[:at]
            self._scanned = max(0, self._scanned - at)
        if len(self._buffer) > MAX_DOCUMENT_BYTES:
            size = len(self._buffer)
            self._buffer, self._in_document, self._scanned = bytearray(), False, 0
            yield BrokenDocument(size, f"longer than {MAX_DOCUMENT_BYTES >> 20} MiB")

    def _next_line(self, at: int, last: bool) -> tuple[Iterable[Item], int | None]:
        """The next line, and where it ends; ``None`` until it is whole."""
        buffer = self._buffer
        end = buffer.find(b"\n", at)
        if end < 0:
            return (), None
        line = bytes(buffer[at:end])
        if line.rstrip(b"\r") == b"{":
            # the brace stays, so that a document is what stands between two line ends
            self._in_document, self._scanned = True, end
            return (), at
        brace = _MAYBE_OPENING.search(line)
        if brace is not None:
            beyond = bytes(buffer[end + 1 : end + 1 + len(_VERSION)])
            if beyond == _VERSION:
                self._in_document, self._scanned = True, end
                return _message(line[: brace.start()]), at + brace.start()
            if _VERSION.startswith(beyond) and not last:
                return (), None
        return _message(line), end + 1

    def _document(self, at: int) -> tuple[Iterable[Item], int | None]:
        """The document whose brace stands at ``at``, and where it ends; ``None`` until it is
        whole. Its thousands of lines are not looked at one by one: that would cost as much as
        parsing it.
        """
        buffer, start = self._buffer, max(self._scanned, at)
        match = _brace(buffer, start)
        end = match.start() if match else len(buffer)
        # the beginning of another document where this one has no end
        next_start = _opening(buffer, max(at + 1, start - 2 * len(_VERSION)), end)
        if next_start is not None:
            self._in_document = False
            return self._decode(_copy_range(buffer, at, next_start)), next_start
        if match is None:
            # a brace and the end of its line may still come in pieces
            self._scanned = max(start, len(buffer) - 4)
            return (), None
        self._in_document = False
        if match[1] == b"{":
            return self._decode(_copy_range(buffer, at, match.start() + 1)), match.start(1)
        return self._decode(_copy_range(buffer, at, match.end(1))), match.end()


def _copy_range(buffer: bytearray, begin: int, end: int) -> bytes:
    # a slice of the array would be one more copy of megabytes
    with memoryview(buffer) as view:
        return bytes(view[begin:end])


def _brace(buffer: bytearray, start: int) -> re.Match[bytes] | None:
    """The next brace that is alone in its line."""
    following = {brace: _first_column(buffer, brace, start) for brace in (b"{", b"}")}
    others = 0
    while candidates := [(at, brace) for brace, at in following.items() if at >= 0]:
        at, brace = min(candidates)
        match = _BRACE.match(buffer, at)
        if match is not None:
            return match
        others += 1
        if others > MAX_OTHER_BRACES:
            # not fio's layout: slower, but still without a step for each brace
            return _BRACE.search(buffer, at + 1)
        following[brace] = _first_column(buffer, brace, at + 1)
    return None


def _first_column(buffer: bytearray, brace: bytes, start: int) -> int:
    """The next line end from ``start`` on that a brace follows; -1 if there is none. There are few
    braces, which one byte finds at the speed of memory; the two bytes together have to be looked
    for at each of a hundred thousand line ends."""
    at = buffer.find(brace, start + 1)
    while at >= 0 and buffer[at - 1] != _NEWLINE:
        at = buffer.find(brace, at + 1)
    return at - 1 if at >= 0 else -1


def _opening(buffer: bytearray, begin: int, end: int) -> int | None:
    """Find the beginning of a document of fio from ``begin`` on: a brace, a new line and ``"fio
    version"``, also behind a message without a line end (yet)."""
    name = buffer.find(_NAME, begin, end)
    while name >= 0:
        at = name - 1
        while at >= begin and buffer[at] in b" ":
            at -= 1
        if at >= begin and buffer[at] in b"\n":
            at -= 1
            while at >= begin and buffer[at] in b"\r":
                at -= 1
            if at >= begin and buffer[at] in b"{":
                return at
        name = buffer.find(_NAME, name + 1, end)
    return None


def _message(line: bytes) -> Iterable[Item]:
    text = safe_text(line.decode("utf-8", "replace").strip())
    return (LogLine(text),) if text else ()


def decode(body: bytes, limit: int, pairs_hook: PairsHook | None = None) -> Iterator[Item]:
    """The document in ``body``, and the messages that had got into it."""
    try:
        check_memory(body, limit)
    except TooLarge as error:
        yield BrokenDocument(len(body), str(error))
        return
    data = _loads(body, limit, True, pairs_hook)
    if data is None:
        cleaned = remove_interleaved_text(body)
        if cleaned is not None:
            data = _loads(cleaned[0], limit, False, pairs_hook) or None
            for line in b"\n".join(cleaned[1]).split(b"\n") if data is not None else ():
                yield from _message(line)
    yield BrokenDocument(len(body)) if data is None else Document(data, len(body))


def _loads(
    body: bytes, limit: int, strict: bool, pairs_hook: PairsHook | None
) -> dict[str, Any] | None:
    # not strict: fio writes tabs and control characters of job names as they are
    try:
        is_large = len(body) >= ORJSON_FROM_BYTES
        data = parse_json(body, limit, strict, is_large, pairs_hook=pairs_hook)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None
