"""Remove output that jobs wrote into the middle of a fio document.

fio writes a document in a few pieces, each a multiple of 4096 bytes but the last, and its jobs
write their messages, collected to pieces of 4096 bytes, into the same file: so a message may
stand between any two lines, or cut a line in two, and be cut itself (measured with
``continue_on_error=verify``, strace: fio 3.33). fio's own lines are so regular that each can be
told from a message alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

CHUNK_BYTES = 4096
# a document that was cut more often, or by more, is given up
MAX_INTERLEAVED_TEXTS = 256
MAX_INTRUDER_BYTES = 4 << 20

_ENDLESS = re.compile(rb"[^\n]{65536}")
_STRING = rb'"(?:\\.|[^"\\\n])*"'
_LINE = re.compile(
    rb"[ \t]*(?:" + _STRING + rb"[ ]*:[ ]*(?:" + _STRING + rb",?|(?=[^\s])))?"
    rb"(?:[\[{]|[\[{][ ]*[\]}],?|[\]}],?|(?:-?[0-9][0-9.eE+-]*|true|false|null),?)?"
    rb"[ \t]*\r*(?:\n|\Z)"
)
# a line of JSON without free text: what stands before it on its line is surely a message
_CERTAIN_JSON = re.compile(
    rb'[ \t]*"[\w.>= -]{1,40}"[ ]*:[ ]*(?:[\[{]|-?[0-9.]+,?)[ \t]*\r*(?:\n|\Z)'
)
_LIKE_JSON = re.compile(rb'[ \t]*["\[\]{}]')
_MEMBER = re.compile(rb'"[ ]?:[ ]')
_OPENING = re.compile(rb"(?:fio|verify|[a-z0-9_-]{2,24}: verify failed|note|func=)\b[^\"]")


def remove_interleaved_text(body: bytes) -> tuple[bytes, list[bytes]] | None:
    """The document alone and the removed text, in order; ``None`` if that fails."""
    if _ENDLESS.search(body):
        return None  # neither fio nor a job of its writes such a line: nothing to look for
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
    """Candidates for the foreign text that begins in the line at ``at``, the likeliest first."""
    stop = _line_end(body, at)
    chunk_starts = range(-(-at // CHUNK_BYTES) * CHUNK_BYTES, stop, CHUNK_BYTES)
    for begin in chunk_starts:
        yield from _cuts_of_whole_chunks(body, at, begin)
    if at and (at - 1) % CHUNK_BYTES == 0:  # the line end before it is the intruder's
        yield from _cuts_of_whole_chunks(body, _line_start(body, at - 1), at - 1)
    opening = _OPENING.search(body, at, stop)
    for begin in (*chunk_starts, *([opening.start()] if opening else [])):
        line = _CERTAIN_JSON if body[at:begin].strip() else _LINE
        yield from _fitting(body, at, begin, _line_ends(body, begin), line)
    if not _holds_json(body, at, stop):
        yield at, _end_of_messages(body, stop)


def _cuts_of_whole_chunks(body: bytes, at: int, begin: int) -> Iterator[tuple[int, int]]:
    """Candidates that leave two lines of fio's, before those that leave one."""
    last = min(len(body), begin + MAX_INTRUDER_BYTES)
    fitting = list(_fitting(body, at, begin, range(begin + CHUNK_BYTES, last + 1, CHUNK_BYTES)))
    fitting.sort(key=lambda cut: _LINE.match(body, _line_end(body, cut[1])) is None)
    yield from fitting


def _fitting(
    body: bytes,
    at: int,
    begin: int,
    ends: range | Iterator[int],
    line: re.Pattern[bytes] = _LINE,
) -> Iterator[tuple[int, int]]:
    """Candidates from ``begin`` to one of ``ends``: without them the line is one of fio's, and they
    contain no other line of fio's."""
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
    """Behind the line end that follows."""
    end = body.find(b"\n", at)
    return len(body) if end < 0 else end + 1


def _holds_json(body: bytes, at: int, stop: int) -> bool:
    """Whether a part of one of fio's lines may stand in this one: it must not get lost."""
    return (
        _LIKE_JSON.match(body, at, stop) is not None or _MEMBER.search(body, at, stop) is not None
    )


def _end_of_messages(body: bytes, at: int) -> int:
    """Behind the last of the lines from here on that look like messages."""
    while at < len(body):
        stop = _line_end(body, at)
        # where a line may have been cut it is looked at on its own
        cut = (stop - 1) // CHUNK_BYTES > (at - 1) // CHUNK_BYTES
        if cut or _holds_json(body, at, stop) or _LINE.match(body, at):
            break
        at = stop
    return at
