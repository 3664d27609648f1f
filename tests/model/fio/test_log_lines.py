"""Lines of fio's logs: what they are, and that nothing is counted twice or lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.fio.log_lines import Logs, is_log_line, log_name, read_log


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a_clat.1.log", ("a", "clat", 1)),
        ("a_clat_lat.12.log", ("a_clat", "lat", 12)),
        ("a_bw.log", ("a", "bw", 0)),
        ("a_clat_hist.1.log", None),
        ("syslog.1.log", None),
    ],
)
def test_names(name: str, found: tuple[str, str, int] | None) -> None:
    one = log_name(name)
    assert (one and (one.prefix, one.kind, one.job)) == found


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


def test_windows_across_seconds_are_shared_out_by_time() -> None:
    # 750 ms windows: the second one reaches from 0.75 to 1.5 s
    log = read_log("iops", ["750, 100, 0, 0, 0", "1500, 200, 0, 0, 0", "2250, 100, 0, 0, 0"])
    first, second, third = Logs([log]).rows()
    assert first.iops == pytest.approx(0.75 * 100 + 0.25 * 200)
    assert second.iops == pytest.approx(0.5 * 200 + 0.5 * 100)
    assert (third.iops, third.t) == (pytest.approx(100), 2.25)
    assert first.mean_ns is None and first.bw is None


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


@pytest.mark.parametrize("line", ["", "1,2,3", "a, 1, 0, 0", "1, 2, 7, 0", "1, -2, 0, 0"])
def test_other_lines_are_none(line: str) -> None:
    assert not is_log_line(line)
