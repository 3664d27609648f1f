"""Every line of the report, of a document that has each of its keys with a value of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iopstui.features.lessons.model.report import report_parts

# a document (.json), and (.txt) for each line its part and the line as fio prints it
FIXTURE = Path(__file__).parents[2] / "fixtures" / "report" / "every-key"


def test_every_key_of_a_document_has_its_place() -> None:
    document = json.loads(FIXTURE.with_suffix(".json").read_text())
    parts = report_parts(document)
    found = [f"{part:12} {line}".rstrip() for part, lines in parts for line in lines]
    assert found == FIXTURE.with_suffix(".txt").read_text().splitlines()


def job_lines(**options: str) -> list[str]:
    (lines,) = (one for part, one in report_parts({"jobs": [{"job options": options}]})
                if part == "job")  # fmt: skip
    return lines


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, "(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B"),
        ({"bs": "8k,16k"}, "(R) 8192B-8192B, (W) 16.0KiB-16.0KiB, (T) 16.0KiB-16.0KiB"),
        ({"blocksize": "1m"}, "(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) 1024KiB-1024KiB"),
        ({"blocksize_range": "1k-2k"}, "(R) 1024B-2048B, (W) 1024B-2048B, (T) 1024B-2048B"),
        ({"bs": "512,,2kib"}, "(R) 512B-512B, (W) 2048B-2048B, (T) 2048B-2048B"),
        ({"bs": "odd"}, "(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B"),
        ({"bs": ","}, "(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B"),
    ],
)  # fmt: skip
def test_block_sizes_of_the_three_directions(options: dict[str, str], sizes: str) -> None:
    line = f": (g=0): rw=read, bs={sizes}, ioengine=psync, iodepth=1"
    assert job_lines(**options) == [line]


@pytest.mark.parametrize(
    ("count", "thread", "line"),
    [(1, False, "1 process"), (2, False, "2 processes"), (1, True, "1 thread"),
     (3, True, "3 threads")],
)  # fmt: skip
def test_what_is_started(count: int, thread: bool, line: str) -> None:
    common = {"numjobs": str(count)} | ({"thread": "1"} if thread else {})
    parts = report_parts({"jobs": [{"jobname": "a"}], "global options": common})
    assert ("starting", [f"Starting {line}"]) in parts


@pytest.mark.parametrize(
    ("low", "high", "dev", "unit"),
    [
        (2000, 100_000, 1001, "nsec"), (2001, 99_999, 1001, "nsec"), (2001, 100_000, 1000, "nsec"),
        (2001, 100_000, 1001, "usec"), (2_000_001, 100_000_000, 1_000_001, "msec"),
        (2_000_000, 100_000_000, 1_000_001, "usec"),
    ],
)  # fmt: skip
def test_the_unit_of_a_latency_is_chosen_as_fio_does(low: int, high: int, dev: int, unit: str
                                                     ) -> None:  # fmt: skip
    """fio's nsec_to_usec and nsec_to_msec (stat.c)."""
    figures = {"min": low, "max": high, "mean": 1, "stddev": dev, "N": 1}
    rows = [{"read": {"io_bytes": 1, "clat_ns": figures}}]
    ((line,),) = (one for part, one in report_parts({"jobs": rows}) if part == "clat")
    assert line.startswith(f"    clat ({unit}): ")


def test_of_an_empty_document_there_is_what_every_report_has() -> None:
    assert report_parts({}) == [("version", [""]), ("starting", ["Starting 0 processes"])]
