"""Impossible rates in fio's documents are found, and no others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fio_recordings import NAMES, samples, statuses, unpacked

from iopstui import events
from iopstui.features.reports.files import rendered
from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.metrics.summary import SecondRates, fio_summary, impossible_rates
from iopstui.model.samples import FioStatus
from iopstui.session.tick.outcomes import OutcomeTracker

RUN = "3.42-c-numjobs4-nogroup"


def second_rates(name: str) -> SecondRates:
    rates, builder = SecondRates(), FrameBuilder()
    for sample in samples(statuses(name)):
        rates.add(builder.feed(sample))
    return rates


def with_read_of_a_millisecond(status: FioStatus) -> FioStatus:
    """As fio 3.33 states it with verify_backlog."""
    jobs = []
    for job in status.jobs:
        if "read" not in job.directions:
            jobs.append(job)
            continue
        read = job.directions["read"]
        read = replace(read, runtime_ms=1, iops=1000.0 * read.issued)
        jobs.append(replace(job, directions={**job.directions, "read": read}))
    return replace(status, jobs=tuple(jobs))


@pytest.mark.parametrize("name", NAMES)
def test_real_results_are_believed(name: str) -> None:
    final = statuses(name)[-1]
    found = second_rates(name).contradicted(fio_summary(final))
    # fio 3.28 states a run time of 0 there, and so 0 IOPS
    expected = ["read"] if name == "3.28-x-interleaved" else []
    assert [rate.direction for rate in found] == expected
    assert {rate.direction for rate in impossible_rates(final)} == {*expected}


def test_a_rate_that_its_seconds_contradict() -> None:
    summary = fio_summary(with_read_of_a_millisecond(statuses(RUN)[-1]))
    [rate] = second_rates(RUN).contradicted(summary)
    assert rate.direction == "read" and "contradicts its own seconds" in rate.why


def test_a_rate_beyond_the_queue_depth() -> None:
    status = with_read_of_a_millisecond(statuses(RUN)[-1])
    rates = impossible_rates(status)
    assert {rate.direction for rate in rates} == {"read"}
    grouped = [replace(j, options={**j.options, "group_reporting": ""}) for j in status.jobs]
    of_group = impossible_rates(replace(status, jobs=tuple(grouped)))
    assert not any("iodepth" in rate.why for rate in of_group)


def test_such_a_rate_judges_nothing() -> None:
    expectation = parse_expectation("read.iops>=1000000", ())
    tracker, builder = OutcomeTracker([expectation]), FrameBuilder()
    found: list[events.Event] = []
    for sample in samples(statuses(RUN)):
        found += tracker.feed(events.FrameReady(0.0, builder.feed(replace(sample, step=1))))
    summary = fio_summary(with_read_of_a_millisecond(statuses(RUN)[-1]))
    assert summary["total"]["read"]["iops"] > 1_000_000
    found += tracker.feed(events.StepFinished(9.0, 1, 0, "", False, summary))
    assert [e.text for e in found if isinstance(e, events.Notice) and "contradicts" in e.text]
    [judged] = [e for e in found if isinstance(e, events.ExpectationChecked)]
    assert judged.passed is False and judged.measured is not None and judged.measured < 1e6


def test_a_report_of_such_a_result_warns(tmp_path: Path) -> None:
    path = unpacked(RUN, tmp_path)
    documents = path.read_text().replace("\n}\n{", "\n}\0{").split("\0")
    document = json.loads(documents[-1][documents[-1].index("{") :])
    for row in document["jobs"]:
        if row["read"]["total_ios"]:
            row["read"] |= {"runtime": 1, "iops": 1000.0 * row["read"]["total_ios"]}
    path.write_text(json.dumps(document, indent=2))
    assert "cannot be: at" in rendered([path], "md")
