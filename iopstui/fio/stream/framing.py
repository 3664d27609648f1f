"""Split the bytes that fio writes into whole JSON documents.

The writer is fio with ``--output-format=json+ --status-interval``. Its documents follow each other
without separators and may be cut anywhere, and messages of fio and its jobs may be before, between,
after and even inside them (fio issues #731, #1685)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

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
    """A document that could not be parsed even after intruding messages were removed, or (with a
    ``reason``) that must not be parsed."""

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

    A document's outer braces are alone in their lines, in the first column, so only the beginnings
    of lines must be looked at; only after a message that was cut may a document begin within a
    line. Memory is bounded: an endless document is dropped after ``MAX_DOCUMENT_BYTES``. Time is
    proportional to the length. ``limit`` is the memory (bytes) that a document may take: more for
    our own fio than for a file."""

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
        """The next line, and the position of its end; ``None`` until it is complete."""
        buffer = self._buffer
        end = buffer.find(b"\n", at)
        if end < 0:
            return (), None
        line = bytes(buffer[at:end])
        if line.rstrip(b"\r") == b"{":
            # keep the brace, so that a document always begins and ends at the end of a line
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
        """The document whose brace is at ``at``, and the position of its end; ``None`` until it is
        complete. Its thousands of lines are not examined one by one: that would cost as much as
        parsing it."""
        buffer, start = self._buffer, max(self._scanned, at)
        match = _brace(buffer, start)
        end = match.start() if match else len(buffer)
        # another document begins although this one has no end
        next_start = _opening(buffer, max(at + 1, start - 2 * len(_VERSION)), end)
        if next_start is not None:
            self._in_document = False
            return self._decode(_copy_range(buffer, at, next_start)), next_start
        if match is None:
            # a brace may have arrived without the end of its line
            self._scanned = max(start, len(buffer) - 4)
            return (), None
        self._in_document = False
        if match[1] == b"{":
            return self._decode(_copy_range(buffer, at, match.start() + 1)), match.start(1)
        return self._decode(_copy_range(buffer, at, match.end(1))), match.end()


def _copy_range(buffer: bytearray, begin: int, end: int) -> bytes:
    # slicing the array would copy megabytes once more
    with memoryview(buffer) as view:
        return bytes(view[begin:end])


def _brace(buffer: bytearray, start: int) -> re.Match[bytes] | None:
    """The position of the next brace that is alone in its line."""
    following = {brace: _first_column(buffer, brace, start) for brace in (b"{", b"}")}
    others = 0
    while candidates := [(at, brace) for brace, at in following.items() if at >= 0]:
        at, brace = min(candidates)
        match = _BRACE.match(buffer, at)
        if match is not None:
            return match
        others += 1
        if others > MAX_OTHER_BRACES:
            # another layout than fio's: slower, but still without a step for each brace
            return _BRACE.search(buffer, at + 1)
        following[brace] = _first_column(buffer, brace, at + 1)
    return None


def _first_column(buffer: bytearray, brace: bytes, start: int) -> int:
    """The next line end from ``start`` on that a brace follows; -1 if there is none. There are few
    braces, so a search for that one byte runs at the speed of memory; a search for the two bytes
    together would stop at each of a hundred thousand line ends."""
    at = buffer.find(brace, start + 1)
    while at >= 0 and buffer[at - 1] != _NEWLINE:
        at = buffer.find(brace, at + 1)
    return at - 1 if at >= 0 else -1


def _opening(buffer: bytearray, begin: int, end: int) -> int | None:
    """Find the beginning of a document of fio from ``begin`` on: a brace, a new line and ``"fio
    version"``. It may also follow a message that has no line end (yet)."""
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
    """Decode the document in ``body``; return it, and the messages that were mixed into it."""
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


# Remove output that jobs wrote into the middle of a fio document.
#
# fio writes a document in a few pieces, each except the last a multiple of 4096 bytes. Its jobs
# write their messages, collected to pieces of 4096 bytes, into the same file. So a message may be
# between any two lines, or cut a line in two, and be cut itself (measured with
# ``continue_on_error=verify``, strace: fio 3.33). fio's own lines are so regular that each can be
# told from a message alone.


CHUNK_BYTES = 4096
# a document that was cut more often, or by more text, is dropped
MAX_INTERLEAVED_TEXTS = 256
MAX_INTRUDER_BYTES = 4 << 20

_ENDLESS = re.compile(rb"[^\n]{65536}")
_STRING = rb'"(?:\\.|[^"\\\n])*"'
_LINE = re.compile(
    rb"[ \t]*(?:" + _STRING + rb"[ ]*:[ ]*(?:" + _STRING + rb",?|(?=[^\s])))?"
    rb"(?:[\[{]|[\[{][ ]*[\]}],?|[\]}],?|(?:-?[0-9][0-9.eE+-]*|true|false|null),?)?"
    rb"[ \t]*\r*(?:\n|\Z)"
)
# a line of JSON without free text: any text before it on the same line is a message
_CERTAIN_JSON = re.compile(
    rb'[ \t]*"[\w.>= -]{1,40}"[ ]*:[ ]*(?:[\[{]|-?[0-9.]+,?)[ \t]*\r*(?:\n|\Z)'
)
_LIKE_JSON = re.compile(rb'[ \t]*["\[\]{}]')
_MEMBER = re.compile(rb'"[ ]?:[ ]')
_OPENING = re.compile(rb"(?:fio|verify|[a-z0-9_-]{2,24}: verify failed|note|func=)\b[^\"]")


def remove_interleaved_text(body: bytes) -> tuple[bytes, list[bytes]] | None:
    """Return the document alone, and the removed text in order; ``None`` if that fails."""
    if _ENDLESS.search(body):
        return None  # neither fio nor its jobs write lines this long
    removed: list[bytes] = []
    at = 0
    while (at := _first_bad(body, at)) < len(body):
        cut = next(_cuts(body, at), None)
        if cut is None or len(removed) >= MAX_INTERLEAVED_TEXTS:
            return None
        begin, end = cut
        removed.append(body[begin:end])
        body = body[:begin] + body[end:]
        at = _line_start(body, begin)
    return body, removed


def _first_bad(body: bytes, at: int) -> int:
    """Position of the first line from ``at`` on that is not fio's."""
    while at < len(body) and (line := _LINE.match(body, at)):
        at = line.end()
    return at


def _cuts(body: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Candidates for foreign text that begins in the line at ``at``, the most likely first."""
    stop = _line_end(body, at)
    chunk_starts = range(-(-at // CHUNK_BYTES) * CHUNK_BYTES, stop, CHUNK_BYTES)
    for begin in chunk_starts:
        yield from _cuts_of_whole_chunks(body, at, begin)
    if at and (at - 1) % CHUNK_BYTES == 0:  # this line end belongs to the foreign text
        yield from _cuts_of_whole_chunks(body, _line_start(body, at - 1), at - 1)
    opening = _OPENING.search(body, at, stop)
    for begin in (*chunk_starts, *([opening.start()] if opening else [])):
        line = _CERTAIN_JSON if body[at:begin].strip() else _LINE
        yield from _fitting(body, at, begin, _line_ends(body, begin), line)
    if not _holds_json(body, at, stop):
        yield at, _end_of_messages(body, stop)


def _cuts_of_whole_chunks(body: bytes, at: int, begin: int) -> Iterator[tuple[int, int]]:
    """Candidates that leave two of fio's lines when they are removed, before those that leave
    one."""
    last = min(len(body), begin + MAX_INTRUDER_BYTES)
    fitting = list(_fitting(body, at, begin, range(begin + CHUNK_BYTES, last + 1, CHUNK_BYTES)))
    fitting.sort(key=lambda cut: _LINE.match(body, _line_end(body, cut[1])) is None)
    yield from fitting


def _fitting(
    body: bytes, at: int, begin: int, ends: range | Iterator[int], line: re.Pattern[bytes] = _LINE
) -> Iterator[tuple[int, int]]:
    """Candidates from ``begin`` to one of ``ends`` that contain no line of fio's, and whose removal
    leaves a line of fio's."""
    head = body[at:begin]
    fio_s = _MEMBER.search(body, begin)
    last = _line_start(body, fio_s.start()) if fio_s else len(body)
    for end in ends:
        if end > last and _line_start(body, end) > last:
            return
        next_line = _line_end(body, end)
        if (
            next_line - end < CHUNK_BYTES
            and head + body[end:next_line]
            and line.fullmatch(head + body[end:next_line])
        ):
            yield begin, end


def _line_ends(body: bytes, at: int) -> Iterator[int]:
    last = at + MAX_INTRUDER_BYTES
    while at < min(len(body), last):
        at = _line_end(body, at)
        yield at


def _line_start(body: bytes, at: int) -> int:
    return body.rfind(b"\n", 0, at) + 1


def _line_end(body: bytes, at: int) -> int:
    end = body.find(b"\n", at)
    return len(body) if end < 0 else end + 1


def _holds_json(body: bytes, at: int, stop: int) -> bool:
    """Whether this text may contain a part of one of fio's lines, which must not get lost."""
    return (
        _LIKE_JSON.match(body, at, stop) is not None or _MEMBER.search(body, at, stop) is not None
    )


def _end_of_messages(body: bytes, at: int) -> int:
    """The position after the last of the lines from here on that look like messages."""
    while at < len(body):
        stop = _line_end(body, at)
        # a line that may have been cut is examined by itself
        cut = (stop - 1) // CHUNK_BYTES > (at - 1) // CHUNK_BYTES
        if cut or _holds_json(body, at, stop) or _LINE.match(body, at):
            break
        at = stop
    return at
