"""Rows of real runs against fio's per-I/O logs.

``fixtures/seconds`` has what fio wrote in runs whose document takes long to make or whose jobs come
and go, and beside it, for each document, how many I/Os and bytes its logs have up to 12 ms before
its timestamp, up to it, and up to 12 ms after it. Bins were taken out of the documents.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iopstui.fio.stream.framing import Document, Framer
from iopstui.fio.stream.status import parse_status
from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.intervals import FioIntervals
from iopstui.model.fio.jobfile import effective_sections

DIRECTORY = Path(__file__).parents[2] / "fixtures" / "seconds"
TRUTH: dict[str, dict[str, Any]] = json.loads((DIRECTORY / "truth.json").read_text())
# before fio 3.36 nothing in these documents shows when the first job began: I/Os of several sizes
NO_FIRST_RATE = {"3.33-bssplit-slow", "3.33-grp2bs-slow"}
# rows whose bytes are of clearly other seconds, because sizes vary
MARKED = {"3.33-bssplit-slow": 4, "3.33-grp2bs-slow": 2}


@dataclass
class Row:
    """An interval, and what the logs have of it at least and at most."""

    interval: FioInterval
    ios: tuple[int, int]
    bytes: tuple[int, int]
    clock_s: float
    first: bool
    last: bool


def documents(name: str) -> list[dict[str, Any]]:
    framer = Framer()
    data = gzip.decompress((DIRECTORY / f"{name}.json.gz").read_bytes())
    items = [*framer.feed(data), *framer.close()]
    return [dict(item.data) for item in items if isinstance(item, Document)]


def rows(name: str) -> Iterator[Row]:
    truth = TRUTH[name]
    found, sections = documents(name), effective_sections(truth["job"])
    assert len(found) == len(truth["documents"])
    intervals, before = FioIntervals(), [0] * 6
    began_ms = truth["began_ms"]
    for number, (data, now) in enumerate(zip(found, truth["documents"], strict=True)):
        status = parse_status(data, sections)
        assert status is not None
        last = number == len(found) - 1
        interval = intervals.feed(status, status.timestamp_ms * 1_000_000, 1.0, last)
        if interval is not None:
            ios = now[0] - before[4], now[4] - before[0]
            moved = now[1] - before[5], now[5] - before[1]
            clock_s = (status.timestamp_ms - began_ms) / 1000
            yield Row(interval, ios, moved, clock_s, before == [0] * 6, last)
            began_ms, before = status.timestamp_ms, now


@pytest.mark.parametrize("name", TRUTH)
def test_each_row_has_the_ios_of_its_seconds(name: str) -> None:
    slack = 0.005
    for row in rows(name):
        interval, (least, most) = row.interval, row.ios
        assert least - 2 - slack * least <= interval.total.ios <= most + 2 + slack * most
        if not interval.seconds or interval.total.iops is None:
            assert row.last or (row.first and name in NO_FIRST_RATE)
            continue
        assert interval.total.iops * interval.seconds == pytest.approx(interval.total.ios)
        if row.last:
            assert interval.seconds <= row.clock_s
        elif row.first:
            # the first I/O ends up to 0.1 s after the job began
            assert row.clock_s - 0.03 <= interval.seconds <= 1.03 * row.clock_s + 0.1
        else:
            assert interval.seconds == pytest.approx(row.clock_s, abs=0.001) or interval.partial


@pytest.mark.parametrize("name", TRUTH)
def test_each_row_has_the_bytes_of_its_seconds_or_is_marked(name: str) -> None:
    marked = 0
    for row in rows(name):
        total, (least, most) = row.interval.total, row.bytes
        if row.interval.bytes_elsewhere:
            marked += 1
            continue
        slack = 2 * TRUTH[name]["largest"] + 0.02 * most
        assert least - slack <= total.bytes <= most + slack
    assert marked == MARKED.get(name, 0)


@pytest.mark.parametrize("name", TRUTH)
def test_all_rows_add_up_to_the_logs(name: str) -> None:
    everything = [row.interval.total for row in rows(name)]
    whole = TRUTH[name]["documents"][-1]
    assert sum(total.ios for total in everything) == whole[4]
    assert sum(total.bytes for total in everything) == whole[5]


@pytest.mark.parametrize("name", TRUTH)
def test_no_row_contradicts_itself(name: str) -> None:
    assert all(row.interval.within_depth and row.interval.bytes_agree for row in rows(name))
