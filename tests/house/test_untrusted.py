"""orjson reads the same as Python's json, and may be missing."""

from __future__ import annotations

import json
import re
import sys
import tracemalloc
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui import untrusted
from iopstui.untrusted import (
    TooLarge,
    fast_loads,
    json_values,
    memory_for,
    parse_json,
    safe_value,
)

NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
)


@pytest.fixture
def without_orjson(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """orjson is not installed."""
    monkeypatch.setitem(sys.modules, "orjson", None)
    untrusted._orjson.cache_clear()
    yield
    untrusted._orjson.cache_clear()


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_json_of_python_is_read(value: object, indent: int | None, plain: bool) -> None:
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=plain).encode()
    except UnicodeEncodeError:
        # half a surrogate pair has no UTF-8
        text = json.dumps(value, indent=indent).encode()
    # 1 and 1.0, and the order of keys
    assert repr(parse_json(text)) == repr(safe_value(json.loads(text))) == repr(safe_value(value))


@pytest.mark.parametrize(
    "text",
    [b"NaN", b"[-Infinity]", b"1e400"],
)
def test_python_reads_what_orjson_refuses(text: bytes) -> None:
    assert fast_loads(text) is None
    assert repr(parse_json(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", [rb'"\ud800"', rb'{"a": "\ud800"}', rb'["\ud83d", "b"]'])
def test_half_a_surrogate_pair_is_replaced(text: bytes) -> None:
    assert "?" in json.dumps(parse_json(text))


@pytest.mark.parametrize("depth", [1200, 100_000])
@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_nesting_is_refused(begin: bytes, end: bytes, depth: int) -> None:
    with pytest.raises(ValueError, match="deep"):
        parse_json(begin * depth + b"1" + end * depth)


@pytest.mark.parametrize(
    "part",
    [
        b"[],",
        b"{},",
        b'{"a":1},',
        b'"a",',
        b"1.5,",
        b"null,",
        b'"\xf0\x9f\x98\x80",',
        rb'"\u20ac",',
    ],
)
def test_the_estimate_of_memory_is_not_too_low(part: bytes) -> None:
    text = b"[" + part * 50_000 + b"0]"
    tracemalloc.start()
    try:
        value = json.loads(text)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert value and taken <= memory_for(text)
    with pytest.raises(TooLarge):
        parse_json(text, limit=memory_for(text) - 1)


@given(st.recursive(st.text(), lambda part: st.lists(part) | st.dictionaries(st.text(), part)))
def test_no_text_can_mislead_a_terminal(value: object) -> None:
    parsed = parse_json(json.dumps(value).encode())
    flat = json.dumps(parsed, ensure_ascii=False)
    categories = {unicodedata.category(char) for char in flat}
    assert not categories & {"Cc", "Cs", "Zl", "Zp"}
    assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069]", flat)


@pytest.mark.parametrize(
    "text", [b"", b"[1,]", b"[01]", b'"\t"', b"[1", b"1 2", b"{'a': 1}", b"nan"]
)
def test_invalid_json_is_refused(text: bytes) -> None:
    assert fast_loads(text) is None
    with pytest.raises(ValueError):
        json.loads(text)
    with pytest.raises(ValueError):
        parse_json(text)


@pytest.mark.parametrize("text", [b"18446744073709551616", b"-9223372036854775809", b"9" * 40])
def test_integers_beyond_64_bits_become_floats(text: bytes) -> None:
    assert parse_json(text) == float(text)
    assert isinstance(parse_json(text), float)


def test_the_last_of_duplicate_keys_wins() -> None:
    assert parse_json(b'{"a": 1, "b": 2, "a": 3}') == {"a": 3, "b": 2}


def test_without_orjson_python_reads(without_orjson: None) -> None:
    assert fast_loads(b"[1]") is None
    assert parse_json(b'{"a": [1.5]}') == {"a": [1.5]}
    assert parse_json(b"18446744073709551616") == 1 << 64


@given(st.integers(17, 200), VALUES, st.sampled_from([b"", b"[x] {y}\n", b'{"a" 1} [']))
def test_json_is_found_wherever_its_beginning_ends(
    first_chars: int, value: object, before: bytes
) -> None:
    text = before + json.dumps([value, "\\\u00e9 \n" * 60, 1.5e-300, True], indent=9).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(untrusted, "FIRST_CHARS", first_chars)
        assert [*json_values(text)][-1] == json.loads(text[len(before) :])


def test_a_text_of_brackets_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "MAX_FAILURES", 10)
    assert [*json_values(b"[x] " * 9 + b"[1]")] == [[1]]
    assert [*json_values(b"[x] " * 10 + b"[1]")] == []
