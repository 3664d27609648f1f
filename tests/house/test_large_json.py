"""orjson reads the same as Python's json, and may be missing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui import large_json
from iopstui.large_json import fast_loads, loads

NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
)


@pytest.fixture
def without_orjson(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """orjson is not installed."""
    monkeypatch.setitem(sys.modules, "orjson", None)
    large_json._orjson.cache_clear()
    yield
    large_json._orjson.cache_clear()


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_json_of_python_is_read(value: object, indent: int | None, plain: bool) -> None:
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=plain).encode()
    except UnicodeEncodeError:
        # half a surrogate pair has no UTF-8
        text = json.dumps(value, indent=indent).encode()
    # 1 and 1.0, and the order of keys
    assert repr(loads(text)) == repr(json.loads(text)) == repr(value)


@pytest.mark.parametrize(
    "text",
    [b"NaN", b"[-Infinity]", b"1e400", rb'"\ud800"', b"\xef\xbb\xbf[1]", "[1]".encode("utf-16"),
     b"[" * 1200 + b"]" * 1200],
)  # fmt: skip
def test_python_reads_what_orjson_refuses(text: bytes) -> None:
    assert fast_loads(text) is None
    try:
        expected = repr(json.loads(text))
    except RecursionError:
        with pytest.raises(RecursionError):
            loads(text)
    else:
        assert repr(loads(text)) == expected


@pytest.mark.parametrize(
    "text", [b"", b"[1,]", b"[01]", b'"\t"', b"[1", b"1 2", b'"\xff"', b"{'a': 1}", b"nan"]
)
def test_invalid_json_is_refused(text: bytes) -> None:
    assert fast_loads(text) is None
    with pytest.raises(ValueError):
        json.loads(text)
    with pytest.raises(ValueError):
        loads(text)


@pytest.mark.parametrize("text", [b"18446744073709551616", b"-9223372036854775809", b"9" * 40])
def test_integers_beyond_64_bits_become_floats(text: bytes) -> None:
    assert loads(text) == float(text)
    assert isinstance(loads(text), float)


def test_the_last_of_duplicate_keys_wins() -> None:
    assert loads(b'{"a": 1, "b": 2, "a": 3}') == {"a": 3, "b": 2}


def test_without_orjson_python_reads(without_orjson: None) -> None:
    assert fast_loads(b"[1]") is None
    assert loads(b'{"a": [1.5]}') == {"a": [1.5]}
    assert loads(b"18446744073709551616") == 1 << 64
