"""Recover JSON that another format has changed: a cell of CSV, HTML, e-mail, literals of Python,
JavaScript or Ruby, a URL, logfmt, line numbers, a box drawn around it, the quotes of a word
processor, a comma after the last element of a list.

Each format escapes quotes or line ends in its own way. After that is undone, the text is searched
like any other file."""

from __future__ import annotations

import binascii
import html
import json
import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote_to_bytes

Respell = Callable[[bytes], bytes]

_PLAIN = re.compile(rb'(?<!["\\])"fio version"(?!")')
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PYTHON = re.compile(
    rb"""'([^'\\\n]*(?:\\.[^'\\\n]*)*)'?|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|\b(?:True|False|None)\b"""
)
"""A string, or one of the words True, False and None. The string may lack its end; otherwise the
pattern would scan the text again from each quote in it."""
_WORDS = {b"True": b"true", b"False": b"false", b"None": b"null"}
_PYTHON_ESCAPE = re.compile(rb'\\x([0-9a-fA-F]{2})|\\.|"')
_KEY = re.compile(rb'"(?:[^"\\\n]|\\.)*"|(?<![\w$.])([A-Za-z_$][\w$]*)(?=[ \t]*:)')
_CRI = re.compile(rb"^\S+ std(?:out|err) ([PF]) ([^\n]*)\n?", re.MULTILINE)
_FOLD = re.compile(rb"\\\r?\n[ \t]*(?:\\(?= ))?")
_BAR = rb"(?:\||\xe2\x94[\x82\x83]|\xe2\x95\x91)"
"""The side of a box: an ASCII bar or one of three Unicode characters."""
_NUMBER = rb"^[ \t]*(?:%s[ \t]*)?(?:[\w./-]+:)?\d{1,9}(?:\t|:| +%s ?| )" % (_BAR, _BAR)
"""The text that cat -n, nl, grep -n, vim and bat put before each line."""
_TAG = rb"</?(?:span|code|pre|div|p|b|i|em|td|tr|table)\b[^<>]*>"
_SUBSTITUTES: tuple[tuple[bytes, bytes, bytes], ...] = (
    (_NUMBER + rb"[ \t]*\{\s*" + _NUMBER + rb'[ \t]*"fio version"', _NUMBER, b""),
    (rb'\{[ \t]*\+\r?\n[ \t]*"fio version"[^\n]*\+\r?$', rb"(?<![ \t])[ \t]*\+(?=\r?$)", b""),
    (rb'"fio version"[^\n]*%s[ \t]*\r?$' % _BAR, rb"[ \t]*%s[ \t]*(?=\r?$)" % _BAR, b""),
    (rb"\xe2\x80[\x9c-\x9e]fio version\xe2\x80[\x9c-\x9e]", rb"\xe2\x80[\x9c-\x9e]", b'"'),
    # colour sequences whose escape character was lost or replaced
    (rb'\[\d[\d;]*m"fio version"', rb"(?:\^\[)?\[(?:\d{1,3};)*\d{1,3}m", b""),
    (rb'<br ?/?>\s*"fio version"', rb"<br ?/?>", b"\n"),
    (_TAG + rb'\s*"fio version"', _TAG, b""),
    # backslashes of Jira and Markdown
    (rb'\\\{\s*"fio version"', rb"\\([{}\[\]_])", rb"\1"),
    (rb'\A[\s\S]*?"\w+\\_\w', rb"(?<!\\)\\([_{}\[\]*#])", rb"\1"),
    (rb'"fio version"\s*=>', rb'"\s*=>\s*(?:nil\b(\s*))?', rb'": \1'),
    (rb'\xc2\xa0[ \t]*"fio version"', rb"\xc2\xa0", b" "),
    # a comma before a closing bracket; strings of JSON contain no line ends, so this changes none
    (rb"\A[\s\S]*?,[ \t]*\r?\n[ \t]*[}\]]", rb",(?=[ \t]*\r?\n[ \t]*[}\]])", b""),
)
"""For each spelling: the pattern that shows it, the pattern to replace, and the replacement."""
MAX_LAYERS = 3
"""Limit for nested formats, such as a cell of CSV in HTML."""


def respell(head: bytes) -> list[Respell]:
    """The steps that turn the text of a file that begins with ``head`` into JSON; empty if none is
    needed or none helps. Each step accepts any number of whole lines."""
    steps: dict[re.Pattern[bytes], Respell] = {}
    while len(steps) < MAX_LAYERS:
        for pattern, make in _SPELLINGS:
            match = pattern.search(head) if pattern not in steps else None
            # skip a spelling if plain JSON comes before it, which must not be changed
            if match is not None and _PLAIN.search(head, 0, match.start()) is None:
                steps[pattern] = make(match)
                head = steps[pattern](head)
                break
        else:
            break
    return [*steps.values()]


def respelled(text: bytes, steps: Sequence[Respell]) -> bytes:
    for step in steps:
        text = step(text)
    return text


def _html(text: bytes) -> bytes:
    return html.unescape(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _unescaped(text: bytes) -> bytes:
    return re.sub(rb"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)


def _python(text: bytes) -> bytes:
    return _PYTHON.sub(_json_token, text)


def _json_token(match: re.Match[bytes]) -> bytes:
    body: bytes | None = match[1]
    if body is None:
        return _WORDS.get(match[0], match[0])
    return b'"' + _PYTHON_ESCAPE.sub(_json_escape, body) + b'"'


def _json_escape(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return b"\\u00" + match[1]
    return {b'"': b'\\"', b"\\'": b"'"}.get(match[0], match[0])


def _yaml(text: bytes) -> bytes:
    return _PYTHON_ESCAPE.sub(
        lambda match: b"\\u00" + match[1] if match[1] else match[0], _FOLD.sub(b"", text)
    )


def _quoted_keys(text: bytes) -> bytes:
    """Put quotes around names without quotes, as JavaScript prints them."""
    return _KEY.sub(lambda match: b'"%s"' % match[1] if match[1] else match[0], text)


def _cri(text: bytes) -> bytes:
    """Undo the log format of containers (CRI), which splits long lines."""
    return _CRI.sub(lambda match: match[2] + (b"" if match[1] == b"P" else b"\n"), text)


def _folded(match: re.Match[bytes]) -> Respell:
    """Join lines that were split at a fixed width."""
    width = len(match[1])
    lines = match.string[match.start() :].split(b"\n")
    if any(len(line) != width for line in lines[:-2]) or len(lines[-2]) > width:
        return lambda text: text
    return lambda text: text.replace(b"\n", b"")


def _substitute(replaced: bytes, by: bytes) -> Callable[[re.Match[bytes]], Respell]:
    pattern = re.compile(replaced, re.MULTILINE)
    return lambda _: lambda text: pattern.sub(by, text)


def _field(name: bytes) -> Respell:
    """A function that returns the text of the logfmt field ``name`` in a line."""
    field = re.compile(rb'(?:^|(?<=\s))%s=(?:("(?:[^"\\]|\\.)*")|(\S*))' % re.escape(name))

    def text_of(line: bytes) -> bytes:
        match = field.search(line)
        if match is None:
            return b""
        try:
            value = json.loads(match[1] or b'""', strict=False)
        except ValueError:
            return b"\n"
        return (match[2] or value.removesuffix("\n").encode("utf-8", "replace")) + b"\n"

    return lambda text: b"".join(map(text_of, text.split(b"\n")))


_SPELLINGS: tuple[tuple[re.Pattern[bytes], Callable[[re.Match[bytes]], Respell]], ...] = (
    (re.compile(rb"^\S+ stdout P ", re.MULTILINE), lambda _: _cri),
    # a soft line end of an e-mail
    (re.compile(rb'"fio version"[^\n]{0,75}=\r?$', re.MULTILINE), lambda _: binascii.a2b_qp),
    (re.compile(rb"&(?:amp;)+(?:quot|#0?3[49]|#x2[27]);fio version&"),
     lambda _: lambda text: _html(_html(text))),
    (re.compile(rb"&(?:quot|apos|#0?3[49]|#x2[27]);fio version&"), lambda _: _html),
    (re.compile(rb"%22fio(?:%20|\+)version%22"),
     lambda _: lambda text: unquote_to_bytes(text.replace(b"+", b" "))),
    (re.compile(rb'""fio version""'), lambda _: lambda text: text.replace(b'""', b'"')),
    (re.compile(rb"'fio version'\s*:"), lambda _: _python),
    # text in single quotes: SQL, YAML
    (re.compile(rb"'\{\s*\"fio version\""), lambda _: lambda text: text.replace(b"''", b"'")),
    # line ends are escaped (\n), but quotes are not: PostgreSQL's COPY, strings in single quotes
    (re.compile(rb'\{(?:\\r)?\\n\s*"fio version"'), lambda _: _unescaped),
    (re.compile(rb'\{#012\s*"fio version"'), lambda _: lambda text: text.replace(b"#012", b"\n")),
    # YAML folds a long string in double quotes
    (re.compile(rb'\\"\s*(?:\\\s*)?fio version\s*(?:\\\s*)?\\"[^\n]*\\\r?\n'),
     lambda _: _yaml),
    (re.compile(rb'(?:^|(?<=\s))([\w.\-]{1,64})="[ \t]*\\"fio version\\"[^\n{]*$', re.MULTILINE),
     lambda match: _field(match[1])),
    (re.compile(rb'"fio version"\s*:\s*"[^"\n]*",\s*timestamp\s*:'), lambda _: _quoted_keys),
    (re.compile(rb'^(\{"fio version"[^\n]{25,200})\n(?=[^\n]{39})', re.MULTILINE), _folded),
    *((re.compile(shown, re.MULTILINE), _substitute(replaced, by))
      for shown, replaced, by in _SUBSTITUTES),
)  # fmt: skip
"""The pattern of a spelling, and the function that undoes it."""

_FROM_MAIL = (
    "import email, sys; [print(part.get_payload(decode=True).decode()) for part in "
    "email.message_from_file(sys.stdin).walk() if not part.is_multipart()]"
)
_FROM_YAML = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))"
_NOT_JSON = (
    (re.compile(rb"^[ \t-]*fio version:[ \t]|\{fio version:[ \t]", re.MULTILINE),
     "YAML", f"python3 -c '{_FROM_YAML}' < {{}}"),
    (re.compile(rb"\A\s*(?:eyJmaW8gdmVyc2lvbi|ewogICJmaW8gdmVyc2lvbi)"), "base64", "base64 -d {}"),
    (re.compile(rb"^content-transfer-encoding:[ \t]*base64\s(?:.*\n)*?(?:eyJmaW8|ewog|ewoJ|ew0K)",
                re.IGNORECASE | re.MULTILINE),
     "base64 in an e-mail", f"python3 -c '{_FROM_MAIL}' < {{}}"),
)  # fmt: skip


def not_json(head: bytes) -> tuple[str, str] | None:
    """The name of the format of fio's figures, if it is not JSON, and the command that makes JSON
    from such a file ("{}")."""
    return next(
        ((name, command) for pattern, name, command in _NOT_JSON if pattern.search(head)), None
    )
