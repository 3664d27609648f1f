"""fio's syncs (fsync, fdatasync, sync_file_range): each second, and in all."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from iopstui.errors import UsageError
from iopstui.features.fleet.merging.figures import parse_fleet_expectation
from iopstui.features.fleet.merging.row_events import frame_of
from iopstui.fio.stream.status import parse_status
from iopstui.model import histogram
from iopstui.model.experiment.expectation import (
    ExpectationChecker,
    parse_expectation,
    why_not_measurable,
)
from iopstui.model.experiment.job_figures import job_figures
from iopstui.model.fio.growth import sync_growth
from iopstui.model.fio.interval_time import RowPair
from iopstui.model.fio.jobfile import effective_sections
from iopstui.model.metrics.summary import fio_summary
from iopstui.model.samples import FioStatus
from iopstui.output.jsonl import frame_object
from iopstui.output.summary import summary_text
from tests.helpers.fio_recordings import Document, frames, items, raw, statuses

SYNCING = "3.42-p-fsync"


def documents() -> list[dict[str, Any]]:
    return [dict(item.data) for item in items([raw(SYNCING)]) if isinstance(item, Document)]


def parsed(sync: dict[str, Any], options: dict[str, str] | None = None) -> FioStatus:
    document = copy.deepcopy(documents()[-1])
    row = document["jobs"][0]
    row["sync"], row["job options"], document["global options"] = sync, options or {}, {}
    status = parse_status(document)
    assert status is not None
    return status


def test_the_seconds_of_a_run_add_up_to_what_fio_states_in_the_end() -> None:
    stated = documents()[-1]["jobs"][0]["sync"]
    syncs = [frame.fio.sync for frame in frames(SYNCING) if frame.fio and frame.fio.sync]
    bins = histogram.merge(sync.bins for sync in syncs)
    assert len(syncs) > 2
    assert sum(sync.ios for sync in syncs) == stated["total_ios"]
    assert bins == {int(key): count for key, count in stated["lat_ns"]["bins"].items()}
    for name, ns in stated["lat_ns"]["percentile"].items():
        rank = float(name)
        assert histogram.percentiles(bins, (rank,)).get(rank) in (ns, None)
    mean = sum((sync.clat_ns or 0) * sync.ios for sync in syncs) / stated["total_ios"]
    assert mean == pytest.approx(stated["lat_ns"]["mean"], rel=1e-6)
    assert max(sync.max_ns or 0 for sync in syncs) == stated["lat_ns"]["max"]
    # a second's own figures, not those since the start
    assert len({sync.percentiles["p99"] for sync in syncs}) > 2


def test_syncs_count_by_their_latencies_as_fio_has_no_total_after_a_ramp() -> None:
    bins = {"1000": 3, "2000": 1}
    latencies = {"min": 990, "max": 2010, "mean": 1250.0, "N": 4, "bins": bins}
    job = parsed({"total_ios": 0, "lat_ns": latencies}).jobs[0]
    assert job.sync is not None
    assert job.sync.completed == 4
    latencies.pop("N")
    before_3_19 = parsed({"total_ios": 0, "lat_ns": latencies}).jobs[0]
    assert before_3_19.sync is not None
    assert before_3_19.sync.completed == 4


def test_a_sync_that_fio_does_not_time_is_none() -> None:
    untimed = {"total_ios": 1, "lat_ns": {"min": 0, "max": 0, "mean": 0.0, "bins": {"0": 0}}}
    assert parsed(untimed, {"end_fsync": "1"}).jobs[0].sync is None
    assert parsed(untimed, {"fdatasync": "0"}).jobs[0].sync is None
    waiting = parsed(untimed, {"fdatasync": "1"}).jobs[0]
    assert waiting.sync is not None
    assert not waiting.sync.completed


def test_the_syncs_of_all_jobs_are_added_up() -> None:
    last = statuses(SYNCING)[-1].jobs[0]
    assert last.sync is not None
    growth = sync_growth([RowPair(n, last, None, False) for n in (0, 1)])
    assert growth is not None
    assert growth.ios == 2 * (last.sync.completed or 0)
    assert sum(growth.bins.values()) == growth.ios


def test_an_expectation_of_syncs_is_judged_by_the_whole_run() -> None:
    stated = documents()[-1]["jobs"][0]["sync"]["lat_ns"]
    p99, mean = stated["percentile"]["99.000000"], stated["mean"]
    texts = (f"sync.p99<={p99}ns", f"sync.p99<={p99 - 1}ns", f"sync.mean<={mean * 1.01}ns",
             f"sync.mean<={mean * 0.99}ns")  # fmt: skip
    checker = ExpectationChecker([parse_expectation(text) for text in texts])
    for frame in frames(SYNCING):
        checker.add(frame)
    assert [outcome.passed for outcome in checker.outcomes()] == [True, False, True, False]
    figures = job_figures(fio_summary(statuses(SYNCING)[-1]))
    assert figures["fio", "jobs", "pf", "sync", "p99"] == p99


@pytest.mark.parametrize(
    ("options", "possible"),
    [("fdatasync=1", True), ("fsync=32", True), ("sync_file_range=write:8", True),
     ("read_iolog=trace", True), ("fsync=0", False), ("end_fsync=1", False), ("sync=1", False)],
)  # fmt: skip
def test_syncs_are_not_expected_of_a_job_that_does_none(options: str, possible: bool) -> None:
    jobs = effective_sections(f"[log]\nrw=write\n{options}\n")
    why = why_not_measurable(parse_expectation("sync.p99<=10ms"), jobs)
    assert (why is None) == possible
    assert possible or "no syncs" in str(why)


def test_hosts_send_no_syncs_so_none_are_expected_of_many() -> None:
    with pytest.raises(UsageError, match="not available for many hosts"):
        parse_fleet_expectation("sync.p99<=10ms", 0.0)


def test_the_summary_has_a_line_of_the_syncs() -> None:
    summary = fio_summary(statuses(SYNCING)[-1])
    line = next(line for line in summary_text(summary, None).splitlines() if " sync " in line)
    assert line.split()[:3] == ["pf", "sync", "2726.1"]
    assert "963 µs" in line
    del summary["rows"][0]["sync"]
    assert " sync " not in summary_text(summary, None), "a recording made before fio's were read"


def test_syncs_come_back_from_a_line_of_json() -> None:
    frame = next(frame for frame in frames(SYNCING) if frame.fio and frame.fio.sync)
    assert frame.fio is not None
    assert frame.fio.sync is not None
    again = frame_of(frame_object(frame), ()).fio
    assert again is not None
    # a line has rounded rates
    assert again.sync == replace(
        frame.fio.sync, samples={}, iops=again.sync.iops if again.sync else None,
        clat_ns=again.sync.clat_ns if again.sync else None,
    )  # fmt: skip
