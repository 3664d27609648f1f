"""All data that others made comes in here: recordings, bundles, results of fio, lines of hosts.
Before data is parsed, the memory that it may need is checked, and its texts are made safe to print.
Errors are ``ValueError``; ``TooLarge`` is for data beyond the bounds. Only this module uses orjson,
which is an extra (`iopstui[fast]`), and the parser of TOML."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from iopstui.errors import NoFile, UsageError
from iopstui.text import printable, safe_text

PairsHook: TypeAlias = "Callable[[list[tuple[str, Any]]], Any]"
ORJSON_FROM_BYTES = 1 << 18
"""Importing orjson takes 10 ms, while Python's own parser takes 3 ms for this much."""
MAX_MEMORY = 160 << 20
"""Bytes that the parsed data of one file or line may take."""
ITEM_BYTES = 160
"""Memory that Python needs for a list, an object, or an item of either, with its key and value."""
_BRACKET = re.compile(r"[\[{]")
FIRST_CHARS = 1 << 12
MAX_FAILURES = 100_000
"""Limit for the brackets in a text that turn out not to begin valid JSON."""
MAX_EXPANSION = 4
"""Bytes that Python may need for each character of a text that is not pure ASCII."""


class TooLarge(ValueError):
    """Parsing the data would take more memory than allowed."""

    def __init__(self, limit: int = MAX_MEMORY) -> None:
        super().__init__(f"too large: reading it would take more than {limit >> 20} MiB of memory")


def memory_for(data: bytes) -> int:
    """An upper bound of the memory that the JSON in ``data`` takes, as text and parsed. It counts
    commas and brackets, because each item has one of its own."""
    items = data.count(b",") + data.count(b"[") + data.count(b"{")
    is_plain = data.isascii() and b"\\u" not in data
    return len(data) * (1 + (1 if is_plain else MAX_EXPANSION)) + items * ITEM_BYTES


def check_memory(data: bytes, limit: int = MAX_MEMORY) -> None:
    """Raise ``TooLarge`` for JSON that would take more memory than ``limit``."""
    if len(data) * (ITEM_BYTES + 1 + MAX_EXPANSION) > limit and memory_for(data) > limit:
        raise TooLarge(limit)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a short text in TOML. Raises ValueError or RecursionError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    tables: dict[str, Any] = tomllib.loads(text)
    return tables


def parse_json(
    data: bytes,
    limit: int = MAX_MEMORY,
    strict: bool = True,
    is_large: bool = True,
    exact: bool = False,
    pairs_hook: PairsHook | None = None,
) -> Any:
    """The value of a JSON text, with strings that are safe to print. Raises ValueError for anything
    but JSON. ``is_large``: the text is long, or one of many, so that it is worthwhile to import
    orjson (whole numbers beyond 64 bits are floats then). ``exact``: strings are not changed;
    needed for a fleet's orders, which name files. ``pairs_hook`` makes a value from an object's
    pairs."""
    check_memory(data, limit)
    try:
        value = fast_loads(data) if is_large and strict and pairs_hook is None else None
        if value is None:
            text = data.decode("utf-8", "replace")
            value = json.loads(text, strict=strict, object_pairs_hook=pairs_hook)
        return value if exact or (strict and is_plain(data)) else safe_value(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def json_values(data: bytes, pairs_hook: PairsHook | None = None) -> Iterator[Any]:
    """The JSON objects and lists in a text, one after another, whatever is between them. Their
    strings are unchanged (see ``safe_value``). Raises ``TooLarge`` if they need more than
    ``MAX_MEMORY``."""
    check_memory(data)
    text = data.decode("utf-8", "replace")
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=pairs_hook)
    at = failed_chars = failures = 0
    # text that looks like JSON but is cut off may be parsed again from each bracket in it
    while failed_chars <= 4 * len(text) and failures < MAX_FAILURES:
        match = _BRACKET.search(text, at)
        if match is None:
            return
        start = match.start()
        try:
            if _fails_soon(decoder, text[start : start + FIRST_CHARS]):
                at, failures = match.end(), failures + 1
                continue
            value, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            at = match.end()
            # making the error took time, too: it counts all lines before its position
            failed_chars += error.pos - start + len(text) // 64
            failures += 1
        except (ValueError, RecursionError):
            return
        else:
            yield value


def _fails_soon(decoder: json.JSONDecoder, begin: str) -> bool:
    """Whether no JSON can begin like this, whatever follows."""
    try:
        decoder.raw_decode(begin)
    except json.JSONDecodeError as error:
        return error.pos < len(begin) - 16 and not error.msg.startswith("Unterminated")
    return False


def is_plain(data: bytes) -> bool:
    """Whether the strings of a strict JSON text are safe, judged only by its bytes."""
    return data.isascii() and b"\\" not in data and b"\x7f" not in data


def safe_value(value: Any) -> Any:
    """A value of JSON with all its strings made safe to print."""
    if type(value) is str:
        return safe_text(value)
    if type(value) is list:
        return [safe_value(item) for item in value]
    if type(value) is dict:
        return {safe_text(key): safe_value(item) for key, item in value.items()}
    return value


def inflate(stream: Any, payload: bytes, limit: int = MAX_MEMORY) -> bytes:
    """Decompress ``payload`` with zlib's ``stream``. Raises ``TooLarge`` beyond ``limit`` bytes."""
    data: bytes = stream.decompress(payload, limit)
    if stream.unconsumed_tail:
        raise TooLarge(limit)
    return data


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A context in which ``path`` is opened and read: an OSError becomes a UsageError that names
    it."""
    try:
        yield
    except FileNotFoundError as error:
        raise NoFile(printable(str(path))) from error
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise UsageError(f"Cannot read {printable(str(path))}: {reason}.") from error


def fast_loads(text: bytes) -> Any:
    """The value of ``text`` in a third of the time; ``None`` if Python's own parser must read it,
    because orjson is missing or refuses the text (which may still be valid for Python, as NaN is).
    Whole numbers beyond 64 bits are floats."""
    loads = _orjson()
    if loads is None:
        return None
    try:
        return loads(text)
    except ValueError:
        return None


@cache
def _orjson() -> Callable[[bytes], Any] | None:
    try:
        import orjson
    except ImportError:
        return None
    return orjson.loads
