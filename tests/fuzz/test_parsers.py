"""No parser fails on any input: cut, spliced and damaged real input, and noise."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from parsers import PARSERS, seeds

SEEDS = seeds()
TOKENS = [
    b"\n{\n", b"\n}\n", b"[", b"]", b"\x00", b"\xff", b"\x1b[2J", b"-1", b"9" * 400, b"1e999",
    b"NaN", b"null", b"[[[[", b":", b"=", b"\r", b",", b"0-99999999999", b"\xe2\x80\xa8",
    b'"jobs" : 7', b'"jobs" : [null, 3, {"read" : []}]',
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A real input with some pieces cut out, repeated or inserted."""
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, min(len(data), at + 400)))
        between = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=8),
                                 st.just(data[at:end] * 2)))  # fmt: skip
        data = data[:at] + between + data[end:]
    return data


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=40)
@given(data=st.one_of(damaged(), st.binary(max_size=400)))
def test_damaged_input(name: str, data: bytes) -> None:
    PARSERS[name](data)


@pytest.mark.parametrize("name", ["cpu list", "size", "irq names", "per_cpu_count", "diskstats"])
@pytest.mark.parametrize("data", [b"0-4000000000", b"0-2147483647,5", b"9" * 5000, b"1-" * 9999])
def test_a_small_input_takes_little_memory(name: str, data: bytes) -> None:
    tracemalloc.start()
    try:
        PARSERS[name](data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20
