"""Histograms as text, and sums of many rows: the same counts, added exactly."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.fleet.merging import sums as merging_sums
from iopstui.features.fleet.merging.sums import KEYS, column_sums, from_wire, to_wire
from iopstui.model.histogram import bucket_key

bins = st.dictionaries(st.sampled_from(KEYS), st.integers(1, 1 << 60), max_size=40)


@given(st.integers(0, (1 << 63) - 1), bins)
def test_nothing_is_lost_on_the_wire(latency_ns: int, found: dict[int, int]) -> None:
    found[bucket_key(latency_ns)] = 1
    assert from_wire(to_wire(found)) == found
    assert from_wire(to_wire({})) == {}


@pytest.mark.parametrize("rows", [1, 257])
@pytest.mark.parametrize(("form", "most"), [("B", 255), ("Q", (1 << 55) - 1)])
def test_sums_are_exact_with_numpy_and_without(
    rows: int, form: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [struct.pack(f"<3{form}", most, row % 9, 0) for row in range(rows)]
    expected = [rows * most, sum(row % 9 for row in range(rows)), 0]
    assert column_sums(data, form) == expected
    monkeypatch.setattr(merging_sums, "_numpy", lambda: None)
    assert column_sums(data, form) == expected


@pytest.mark.parametrize("text", [
    "x", "####", base64.b64encode(b"no zlib").decode(),
    base64.b64encode(zlib.compress(b"\x00")).decode(),
    base64.b64encode(zlib.compress(b"\xff\xff" + b"1" * 99)).decode(),
    # a small text that unpacks to a large one; a text that is cut off
    base64.b64encode(zlib.compress(bytes(1 << 24))).decode(),
    base64.b64encode(zlib.compress(b"\x00\x00abc")[:-3]).decode(),
])  # fmt: skip
def test_what_is_no_histogram(text: str) -> None:
    with pytest.raises(ValueError):
        from_wire(text)
