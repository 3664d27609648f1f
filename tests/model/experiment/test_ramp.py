"""A ramp: which depth is next, where it ends, what is best."""

from __future__ import annotations

import pytest

from iopstui.errors import UsageError
from iopstui.model.experiment.ramp import Level, Ramp, RampRange, parse_ramp


def ramp_on(iops: dict[int, float], ramp_range: RampRange) -> Ramp:
    ramp = Ramp(ramp_range)
    while (value := ramp.next) is not None:
        ramp.add(Level(value, iops[value], 1e6 * value))
    return ramp


def test_ranges_double_up_to_their_end() -> None:
    assert parse_ramp("iodepth=1..64") == RampRange("iodepth", (1, 2, 4, 8, 16, 32, 64))
    assert parse_ramp(" numjobs = 3..10").values == (3, 6, 10)
    assert str(parse_ramp("iodepth=2..4")) == "iodepth=2..4"


@pytest.mark.parametrize(
    "text",
    ["", "iodepth", "iodepth=4", "iodepth=8..4", "iodepth=4..4", "iodepth=0..8", "bs=4..8",
     "iodepth=1..9999", "iodepth=1,2..8"],
)  # fmt: skip
def test_other_ranges_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--ramp"):
        parse_ramp(text)


def test_it_stops_where_more_gains_nothing() -> None:
    # a device that serves 8 at once, each in 1 ms
    device = {depth: 1000.0 * min(depth, 8) for depth in (1, 2, 4, 8, 16, 32, 64)}
    ramp = ramp_on(device, parse_ramp("iodepth=1..64"))
    assert [level.value for level in ramp.levels] == [1, 2, 4, 8, 16, 32]
    assert ramp.best.value == 8
    assert ramp.text == ("iodepth 8 is enough: 8.00k IOPS, p99 8.00 ms; 16: +0 % IOPS, p99 16.0 ms")


def test_one_bad_depth_does_not_stop_it() -> None:
    device = {1: 1000.0, 2: 2000.0, 4: 1900.0, 8: 4000.0, 16: 8000.0}
    ramp = ramp_on(device, parse_ramp("iodepth=1..16"))
    assert ramp.best.value == 16
    assert ramp.text == (
        "iodepth 16 is the highest of this ramp: 8.00k IOPS, p99 16.0 ms, +100 % over 8"
    )


def test_losing_is_said_with_its_sign() -> None:
    ramp = ramp_on({1: 1000.0, 2: 800.0, 4: 700.0}, parse_ramp("iodepth=1..4"))
    assert ramp.best.value == 1 and "2: -20 % IOPS" in ramp.text
