"""Data that may differ in the last digits of sums."""

from __future__ import annotations

import math
from typing import Any


def assert_nearly(one: Any, other: Any) -> None:
    """Check that both are equal except for the last digits of sums, including the order of keys;
    NaN equals NaN."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert [*one] == [*other]
        for key in one:
            assert_nearly(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_nearly(mine, theirs)
    elif isinstance(one, float) and not math.isnan(one):
        assert math.isclose(one, other, rel_tol=1e-9), (one, other)
    elif isinstance(one, float):
        assert math.isnan(other)
    else:
        assert one == other
