"""Expectations of one job among several."""

from __future__ import annotations

import pytest
from fio_recordings import statuses

from iopstui.fio.stream.status import parse_status
from iopstui.model.experiment.expectation import (
    ExpectationChecker,
    parse_expectation,
    why_not_measurable,
)
from iopstui.model.experiment.job_figures import job_figures
from iopstui.model.fio.jobfile import Section
from iopstui.model.metrics.summary import fio_summary
from iopstui.session.tick.outcomes import final_rates

STONEWALL = fio_summary(statuses("3.42-d-stonewall")[-1])


def test_clones_count_together() -> None:
    summary = fio_summary(statuses("3.42-c-numjobs4-nogroup")[-1])
    (name,) = {row["name"] for row in summary["rows"]}
    found = job_figures(summary)
    assert found["fio", "jobs", name, "total", "iops"] == pytest.approx(
        sum(part["iops"] for row in summary["rows"] for part in row["directions"].values())
    )
    assert not any("clat" in path for path in found), "percentiles of clones can't be joined"


@pytest.mark.parametrize(
    ("jobs", "iops"),
    [
        ([(0, {}), (0, {})], 3000),
        # one after the other, for 2 s each
        ([(0, {}), (1, {"stonewall": ""})], 1500),
        ([(0, {}), (0, {"startdelay": "2"})], 1500),
        # 3 s in all
        ([(0, {}), (0, {"startdelay": "1"})], 2000),
    ],
)
def test_rates_of_one_name_are_added_only_where_they_ran_at_the_same_time(
    jobs: list[tuple[int, dict[str, str]]], iops: float
) -> None:
    rows = [
        {"jobname": "a", "groupid": group, "job options": options,
         "read": {"total_ios": ios, "io_bytes": 4096 * ios, "runtime": 2000, "iops": ios / 2,
                  "bw_bytes": 4096 * ios // 2}}
        for ios, (group, options) in zip((2000, 4000), jobs, strict=True)
    ]  # fmt: skip
    status = parse_status({"jobs": rows})
    assert status is not None
    found = job_figures(fio_summary(status))
    assert found["fio", "jobs", "a", "total", "iops"] == iops
    assert found["fio", "jobs", "a", "read", "bw"] == 4096 * iops


def test_latencies_are_fio_s_own() -> None:
    row = STONEWALL["rows"][0]
    (direction, part), *_ = row["directions"].items()
    one = parse_expectation(f"{row['name']}:{direction}.clat.p99<=1s")
    (outcome,) = ExpectationChecker([one]).outcomes(final_rates(STONEWALL))
    assert outcome.measured == part["percentiles"]["p99"] and outcome.expectation.unit == "ns"


def test_a_job_that_is_not_there_is_told_before_the_run() -> None:
    jobs = [Section("small", {}), Section("b", {"name": "large", "gtod_reduce": "1"})]
    why = why_not_measurable(parse_expectation("smal:iops>=1"), jobs)
    assert why == "the job file has no job 'smal', only small"
    assert why_not_measurable(parse_expectation("large:iops>=1"), jobs) is None
    why = why_not_measurable(parse_expectation("large:read.clat.mean<=1ms"), jobs)
    assert why == "the job measures no latencies (gtod_reduce=1)"
