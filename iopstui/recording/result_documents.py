"""Find the documents of fio in a file, even if other programs have wrapped them.

A file in fio's own layout is read as a stream. The file may also be compressed, or encoded in
UTF-16 (PowerShell) or UTF-32. Its lines may have a prefix (kubectl, docker, CI) or colours; its
numbers may have decimal commas, or be NaN. The documents may be inside other JSON: in an array, one
a line, inside other objects, in strings (ansible's stdout), or in a list with an item for each
line. Or the JSON is spelled as in another format (``spellings``)."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

from iopstui.errors import UsageError
from iopstui.fio.stream.framing import BrokenDocument, Document, Framer, Item
from iopstui.format import counted
from iopstui.recording.spellings import respell, respelled
from iopstui.text import printable
from iopstui.untrusted import (
    MAX_MEMORY,
    PairsHook,
    TooLarge,
    json_values,
    parse_json,
    reading,
    safe_value,
)

HEAD_BYTES = 1 << 18
MAX_BYTES = 512 << 20
MAX_REPEATED_BYTES = 64 << 20
"""Limits of compressed or labelled text: a small file may expand to very much."""
MAX_RESPELLED_BYTES = 16 << 20
MAX_OTHER_LINES = 1_000_000
MAX_OTHER_LAYOUT = 32 << 20
"""Limit in bytes for JSON in another layout than fio's, because that is parsed as a whole."""
MAX_PREFIXES = 64
LONGEST_LINE = 1 << 20
LONGEST_QUOTE = 40
MAX_STRING_DEPTH = 2
"""Limit for JSON in a string of JSON in a string of JSON."""
_STEP = 1 << 18
GZIP = b"\x1f\x8b"
_VERSION = re.compile(rb'"fio version"')
_VERSION_IN_STRING = re.compile(rb"""(?:\\+"|')fio version(?:\\+"|')""")
_VERSION_NAME = "fio version"
_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\))")
"""Escape sequences that set a terminal's colours or title."""
_MESSAGE_KEYS = "log", "MESSAGE", "message", "msg"
"""The keys of the message in logs of docker, journald and others whose lines are JSON."""
_TIME = re.compile(
    rb"(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} +\d+ )?\d\d:\d\d:\d\d(?:[.,]\d+)?"
    rb"(?:Z|[+-]\d\d:?\d\d)?|\d+[.,]\d{3,}"
)
_DECIMAL_COMMA = re.compile(rb"(:\s*-?\d+),(\d+)(?=\s*[,}\r\n])")
_NO_NUMBER = re.compile(rb"(:\s*)-?(?:nan|inf(?:inity)?)\b(?=\s*[,}\r\n])", re.IGNORECASE)


def text_blocks(path: Path) -> Iterator[bytes]:
    """The file's text in blocks of whole lines, as UTF-8. Raises UsageError if it cannot be read,
    or is too large."""
    try:
        with reading(path), open(path, "rb") as file:
            for block in _lines_together(_chunks(path, file)):
                yield _ESCAPE.sub(b"", block) if b"\x1b" in block else block
    except (EOFError, zlib.error) as error:
        raise UsageError(
            f"{printable(path)} is cut off or damaged: it cannot be unpacked."
        ) from error


def _chunks(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    begin = file.read(4)
    file.seek(0)
    limit, source = MAX_BYTES, file
    if begin.startswith(GZIP):
        limit = MAX_REPEATED_BYTES
        source = cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    decoder = None
    while data := source.read(_STEP):
        limit -= len(data)
        if limit < 0:
            hint = "Unpack it first." if source is not file else ""
            raise UsageError(f"{printable(path)} is too large for a fio result.", hint)
        if begin:
            encoding = _wide_encoding(data[:4])
            decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
            begin = b""
        yield data if decoder is None else decoder.decode(data).encode("utf-8", "replace")


def _wide_encoding(begin: bytes) -> str:
    """The encoding of text with more than one byte per character, from its byte order mark or from
    the zero bytes of its first (ASCII) character; "" for any other."""
    # UTF-16's little-endian mark is also the beginning of UTF-32's
    if begin in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        return "utf-32"
    if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return _ENCODINGS_BY_ZEROS.get(bytes(map(bool, begin)), "")


_ENCODINGS_BY_ZEROS = {
    b"\1\0\1\0": "utf-16-le", b"\0\1\0\1": "utf-16-be",
    b"\1\0\0\0": "utf-32-le", b"\0\0\0\1": "utf-32-be",
}  # fmt: skip


def _lines_together(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest, first = b"", True
    for chunk in chunks:
        block = rest + chunk
        if first:
            block, first = block.removeprefix(codecs.BOM_UTF8), False
        end = block.rfind(b"\n") + 1
        if not end and len(block) > LONGEST_LINE:
            end = len(block)
        if end:
            yield block[:end]
        rest = block[end:]
    if rest:
        yield rest


def text_head(path: Path) -> bytes:
    """The beginning of the file's text. Raises UsageError like ``text_blocks``."""
    head = b""
    for block in text_blocks(path):
        head += block
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES]


def has_document(head: bytes) -> bool:
    """Whether the text contains the beginning of a document of fio, in any wrapping."""
    head = respelled(head, respell(head))
    match = _VERSION.search(head)
    if match is not None:
        return b"{" in head[: match.start()]
    return _VERSION_IN_STRING.search(head) is not None


def broken_place(path: Path) -> str:
    """A description of where the first document of a file stops being JSON; "" if unknown, as with
    a prefix on each line."""
    if path.stat().st_size > MAX_RESPELLED_BYTES:
        return ""
    data = b"".join(text_blocks(path))
    text = respelled(data, respell(data[:HEAD_BYTES])).decode("utf-8", "replace")
    begin = text.rfind("{", 0, max(0, text.find('"fio version"')))
    if begin < 0:
        return ""
    try:
        json.JSONDecoder(strict=False).raw_decode(text, begin)
    except json.JSONDecodeError as error:
        first = text.count("\n", 0, begin) + 1
        if error.lineno <= first + 1:
            return ""
        if not text[error.pos :].strip():
            return f"it ends in line {error.lineno}, before the end of its JSON"
        line = text.split("\n")[error.lineno - 1].strip()
        return f"it is not JSON from line {error.lineno} on: {printable(line[:LONGEST_QUOTE])}"
    except RecursionError:
        pass
    return ""


class ResultReader:
    """The documents of a file, and the text between them. ``notes`` reports how many figures were
    nan or inf and were read as null."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self._head = text_head(path)
        self._steps = respell(self._head)
        self._head = respelled(self._head, self._steps)
        repeated = self._head.count(b'"filename"') > 1
        self._pairs_hook = _join_filenames if repeated else None
        self._no_numbers = 0

    def items(self) -> Iterator[tuple[str, Item]]:
        """Documents, messages and broken documents in order, each with the prefix of its lines.
        Raises UsageError for a document that is too large."""
        sources: dict[str, _Framed] = {}
        for label, block in self._labelled():
            source = sources.get(label)
            if source is None:
                if len(sources) >= MAX_PREFIXES:
                    raise UsageError(f"{printable(self.path)}: its lines have more than "
                                     f"{MAX_PREFIXES} different prefixes.",
                                     "Save the output of each source in its own file."
                                     )  # fmt: skip
                source = sources[label] = _Framed(self.path, self._pairs_hook)
            yield from ((label, item) for item in source.feed(self._repaired(block)))
        for label, source in sources.items():
            yield from ((label + part, item) for part, item in source.close())
        if self._no_numbers:
            figures = counted(self._no_numbers, "figure")
            self.notes.append(f"{figures}: fio wrote nan or inf instead of a number")

    def _limited(
        self, blocks: Iterator[bytes], what: str, most: int = MAX_REPEATED_BYTES
    ) -> Iterator[bytes]:
        remaining = most
        for block in blocks:
            remaining -= len(block)
            if remaining < 0:
                raise UsageError(
                    f"{printable(self.path)} has {what}; iopstui reads at most {most >> 20} MiB of "
                    "such a file.", "Remove what is not fio's output."
                )  # fmt: skip
            yield block

    def _repaired(self, block: bytes) -> bytes:
        """Rewrite decimal commas and NaN in a way that JSON allows."""
        if _DECIMAL_COMMA.search(self._head):
            block = _DECIMAL_COMMA.sub(rb"\1.\2", block)
        if b"nan" in block or b"inf" in block or b"NaN" in block or b"Inf" in block:
            block, count = _NO_NUMBER.subn(rb"\1null", block)
            self._no_numbers += count
        return block

    def _labelled(self) -> Iterator[tuple[str, bytes]]:
        """Blocks of text without the prefixes of their lines, each with the prefix that was
        removed."""
        blocks = text_blocks(self.path)
        if self._steps:
            limited = self._limited(blocks, "fio's JSON in another format", MAX_RESPELLED_BYTES)
            blocks = (respelled(block, self._steps) for block in limited)
        found = _prefix_patterns(self._head)
        patterns = {key: found[key] for key in found if _is_prefix(found[key], self._head)}
        key = _message_key(self._head)
        if key or patterns:
            blocks = self._limited(blocks, "a prefix on each line")
        if key:
            yield from (("", b"".join(_message(line, key) for line in block.splitlines()))
                        for block in blocks)  # fmt: skip
            return
        if not patterns:
            yield from (("", block) for block in blocks)
            return
        for block in blocks:
            # the output of other containers may begin later in the file
            patterns |= _prefix_patterns(block)
            yield from _without_prefixes(block, patterns)


def _without_prefixes(
    block: bytes, patterns: Mapping[bytes, re.Pattern[bytes]]
) -> Iterator[tuple[str, bytes]]:
    parts: dict[bytes, list[bytes]] = {}
    last = b""
    for line in block.splitlines(keepends=True):
        match = patterns[last].match(line) if last in patterns else None
        if match is None:
            for label, pattern in patterns.items():
                match = pattern.match(line)
                if match is not None:
                    last = label
                    break
        if match is not None:
            parts.setdefault(last, []).append(line[match.end() :])
    for label, lines in parts.items():
        yield label.decode("utf-8", "replace"), b"".join(lines)


def _prefix_patterns(text: bytes) -> dict[bytes, re.Pattern[bytes]]:
    """Patterns for the prefixes of lines with a document's first name. Times in a prefix may
    vary."""
    patterns: dict[bytes, re.Pattern[bytes]] = {}
    for match in _VERSION.finditer(text):
        begin = text.rfind(b"\n", 0, match.start()) + 1
        prefix = text[begin : match.start()].rstrip(b"[{ \t")
        if not prefix or b'"' in prefix or b"{" in prefix or len(prefix) > 256:
            continue
        parts = _TIME.split(prefix)
        label = b"<time>".join(parts)
        if label not in patterns and len(patterns) <= MAX_PREFIXES:
            times = rb"(?:%s)" % _TIME.pattern
            # no blank follows the prefix of grep or diff; a name that ends in a letter or digit
            # needs one, so that longer names do not match
            end = rb"(?:[ \t]|(?=\r?\n))" if prefix[-1:].isalnum() else rb"[ \t]?"
            patterns[label] = re.compile(times.join(map(re.escape, parts)) + end)
    return patterns


def _is_prefix(pattern: re.Pattern[bytes], text: bytes) -> bool:
    """Whether the pattern is really a prefix: the document's other lines have it, too, or it has
    only one line."""
    return any(
        _VERSION.search(line) is None or line.rstrip(b"\"' \t\r,;)").endswith(b"}")
        for line in text.split(b"\n")
        if pattern.match(line)
    )


def _message_key(head: bytes) -> str:
    """The key of the message in a log whose lines are JSON; "" if it is not such a log."""
    if _VERSION.search(head) is not None or _VERSION_IN_STRING.search(head) is None:
        return ""
    row = _json_in_line(head.partition(b"\n")[0])
    return next((key for key in _MESSAGE_KEYS if isinstance(row.get(key), str)), "")


def _message(line: bytes, key: str) -> bytes:
    text = _json_in_line(line).get(key)
    if not isinstance(text, str):
        return b""
    return _ESCAPE.sub(b"", text.removesuffix("\n").encode("utf-8", "replace")) + b"\n"


def _json_in_line(line: bytes) -> dict[str, Any]:
    """The object in a line of a log, after its time and tag (fluentd), if any."""
    try:
        row = parse_json(line[max(0, line.find(b"{")) :], is_large=False, exact=True)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


class _Framed:
    """The documents of a text: in fio's own layout, or else in any other. ``depth``: how deep
    documents may be nested in strings."""

    def __init__(self, path: Path, pairs_hook: PairsHook | None, depth: int = MAX_STRING_DEPTH):
        self._path = path
        self._depth = depth
        self._pairs_hook = pairs_hook
        self._framer = Framer(MAX_MEMORY, pairs_hook)
        self._text = bytearray()
        self._is_framed = False
        self._other_lines = 0

    def feed(self, block: bytes) -> Iterator[Item]:
        if not self._is_framed and len(self._text) <= MAX_OTHER_LAYOUT:
            self._text += block
        yield from self._checked(self._framer.feed(block))

    def close(self) -> Iterator[tuple[str, Item]]:
        """The remaining documents. Each has the label of its string ("": none), because each host's
        output is a separate string."""
        yield from (("", item) for item in self._checked(self._framer.close()))
        if self._is_framed:
            return
        if len(self._text) > MAX_OTHER_LAYOUT:
            raise UsageError(
                f"{printable(self._path)} is not laid out as fio writes it, so iopstui reads at "
                f"most {MAX_OTHER_LAYOUT >> 20} MiB of it.",
                "Split it, or keep fio's own output.",
            )
        try:
            all_text, texts = bytes(self._text), list[str]()
            values: list[Any] = []
            for value in json_values(all_text, self._pairs_hook):
                values.append(value)
                for found in _documents_in(value):
                    yield "", Document(safe_value(found), 0)
                texts += _texts_in(value)
            texts = texts or [*_quoted_texts(all_text)] or [*_texts_by_rows(values)]
        except TooLarge as error:
            raise _too_large(self._path, str(error)) from error
        for number, text in enumerate(dict.fromkeys(texts) if self._depth else (), 1):
            inner = _Framed(self._path, self._pairs_hook, self._depth - 1)
            data = _ESCAPE.sub(b"", text.encode("utf-8", "replace"))
            for item in inner.feed(respelled(data, respell(data[:HEAD_BYTES]))):
                yield f" string {number}", item
            yield from ((f" string {number}{part}", item) for part, item in inner.close())

    def _checked(self, items: Iterator[Item]) -> Iterator[Item]:
        for item in items:
            if isinstance(item, BrokenDocument) and item.reason:
                raise _too_large(self._path, item.reason)
            if isinstance(item, Document):
                for found in _documents_in(item.data):
                    self._is_framed = True
                    self._text.clear()
                    yield Document(found, item.size)
            else:
                self._other_lines += 1
                if self._other_lines > MAX_OTHER_LINES:
                    raise UsageError(f"{printable(self._path)} has more than {MAX_OTHER_LINES:,} "
                                     "lines that are not fio's JSON.")  # fmt: skip
                yield item


def _documents_in(value: Any, depth: int = 8) -> Iterator[Mapping[str, Any]]:
    """The value if it is a document of fio, else the documents inside it."""
    if isinstance(value, dict) and (
        isinstance(value.get("jobs"), list) or isinstance(value.get("client_stats"), list)
    ):
        yield value
    elif isinstance(value, (dict, list)) and depth:
        for part in value.values() if isinstance(value, dict) else value:
            yield from _documents_in(part, depth - 1)


def _texts_in(value: Any, depth: int = 8) -> Iterator[str]:
    """Texts that contain documents of fio: strings, or lists of lines (ansible has both)."""
    if isinstance(value, str):
        if _VERSION_NAME in value and "{" in value:
            yield value
    elif isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        yield from _texts_in("\n".join(value))
    elif isinstance(value, (dict, list)) and depth:
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(part, depth - 1)


def _texts_by_rows(value: Any, depth: int = 8) -> Iterator[str]:
    """Texts that contain documents of fio and have one line in each row (of a list, or of JSON
    lines). The innermost list counts, because an outer list may be of several hosts."""
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)) or not depth:
        return
    found = [text for part in parts for text in _texts_by_rows(part, depth - 1)]
    if found or isinstance(value, dict):
        yield from found
        return
    columns: dict[tuple[str | int, ...], list[str]] = {}
    for row in value:
        for place, text in _strings_in(row):
            columns.setdefault(place, []).append(text.removesuffix("\n"))
    for lines in columns.values():
        yield from _texts_in("\n".join(lines))


def _strings_in(
    row: Any, place: tuple[str | int, ...] = (), depth: int = 4
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(row, str):
        yield place, row
    elif isinstance(row, (dict, list)) and depth:
        for key, part in row.items() if isinstance(row, dict) else enumerate(row):
            yield from _strings_in(part, (*place, key), depth - 1)


def _quoted_texts(text: bytes) -> Iterator[str]:
    """Strings of JSON that contain documents of fio, alone or within lines of other text
    (``msg="{..."``)."""
    decoder = json.JSONDecoder(strict=False)
    for line in text.split(b"\n"):
        if _VERSION_IN_STRING.search(line) is None:
            continue
        chars, end = line.decode("utf-8", "replace"), 0
        # after an unpaired quote, strings of this line don't end where they seem to
        with contextlib.suppress(ValueError):
            while (begin := chars.find('"', end)) >= 0:
                value, end = decoder.raw_decode(chars, begin)
                yield from _texts_in(value)


def _join_filenames(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which a repeated ``filename`` has all values: fio uses each of them."""
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for key, name in pairs if key == "filename" and isinstance(name, str)]
        if len(names) > 1:
            value["filename"] = ":".join(names)
    return value


def _too_large(path: Path, reason: str) -> UsageError:
    return UsageError(f"{printable(path)} has a document that is {reason}.")
