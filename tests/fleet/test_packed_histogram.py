"""Histograms as large numbers: the same counts, added exactly."""

from __future__ import annotations

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.fleet.merging.packed_histogram import KEYS, from_wire, pack, to_wire, unpack
from iopstui.model.histogram import bucket_key, merge

bins = st.dictionaries(st.sampled_from(KEYS), st.integers(1, 1 << 60), max_size=40)


def packed(found: dict[int, int]) -> int:
    return pack({str(key): count for key, count in found.items()})


@given(st.integers(0, (1 << 63) - 1))
def test_every_latency_has_its_bucket(latency_ns: int) -> None:
    assert unpack(packed({bucket_key(latency_ns): 1})) == {bucket_key(latency_ns): 1}


@given(bins)
def test_nothing_is_lost_on_the_wire(found: dict[int, int]) -> None:
    assert unpack(packed(found)) == found
    assert from_wire(to_wire(packed(found))) == packed(found)
    assert list(unpack(packed(found))) == sorted(found)


@given(st.lists(bins, max_size=8))
def test_adding_numbers_adds_histograms(parts: list[dict[int, int]]) -> None:
    assert unpack(sum(map(packed, parts))) == merge(parts)


@pytest.mark.parametrize("text", [
    "x", "####", base64.b64encode(b"no zlib").decode(),
    base64.b64encode(zlib.compress(b"\x00")).decode(),
    base64.b64encode(zlib.compress(b"\xff\xff" + b"1" * 99)).decode(),
    # a small text that would be large
    base64.b64encode(zlib.compress(bytes(1 << 24))).decode(),
    base64.b64encode(zlib.compress(b"\x00\x00abc")[:-3]).decode(),
])  # fmt: skip
def test_what_is_no_histogram(text: str) -> None:
    with pytest.raises(ValueError):
        from_wire(text)


@pytest.mark.parametrize("found", [{"128": 1}, {"x": 1}, {"5": -1}, {"5": "1"}, {"5": 1.5}])
def test_what_no_fio_counts(found: dict[str, int]) -> None:
    with pytest.raises((KeyError, OverflowError, AttributeError, TypeError)):
        pack(found)
