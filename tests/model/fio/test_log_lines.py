"""Lines of fio's logs: what they are, and that nothing is counted twice or lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.fio.log_lines import Logs, read_log


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(1, 10**9), st.sampled_from("012")),
                min_size=1, max_size=60))  # fmt: skip
def test_all_ios_are_in_the_seconds(lines: list[tuple[int, int, str]]) -> None:
    log = read_log("lat", [f"{t}, {ns}, {way}, 4096, 0, 0" for t, ns, way in sorted(lines)])
    rows = list(Logs([log]).rows())
    assert sum(sum(row.bins.values()) for row in rows) == len(lines)
    counted = sum((row.iops or 0) * row.seconds for row in rows)
    assert counted == pytest.approx(len(lines))
    directions = Logs([log]).directions()
    assert sum(one["completed"] for one in directions.values()) == len(lines)


def test_jobs_add_and_latencies_do_not() -> None:
    two = [read_log("iops", ["1000, 50, 0, 0, 0"]) for _ in range(2)]
    lat = [read_log("lat", [f"1000, {ns}, 0, 0, 0"]) for ns in (100, 300)]
    (row,) = Logs([*two, *lat]).rows()
    assert (row.iops, row.mean_ns) == (100, 200)


def test_the_wall_clock_s_times_count_from_the_first() -> None:
    log = read_log("lat", ["1700000000000, 5, 0, 512, 0", "1700000001500, 5, 0, 512, 0", "oops"])
    assert (log.end, log.epoch, log.unparsed_lines) == (1.5, True, 1)


def test_a_damaged_time_does_not_make_a_century_of_seconds() -> None:
    log = read_log("lat", ["5, 5, 0, 512, 0", "99999999999, 5, 0, 512, 0"])
    with pytest.raises(ValueError, match="1157 days"):
        Logs([log]).rows()
