"""A captured workload as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from iopstui.features.capture.model.phases import distances
from iopstui.features.capture.model.workload import Arrivals, Stream, Workload
from iopstui.features.capture.output import MAX_SHOWN, workload_json, workload_text

READS = Stream("db", "read", 10.0, 1000, 4_096_000, 0, workers=3.0, sizes={4096: 1000},
               depths={2: 1000}, regions={1: 1000}, arrivals=Arrivals(100, 11_000, 20, 900, 9),
               )  # fmt: skip
FLUSHES = Stream("db", "flush", 10.0, 300, 0, sizes={0: 290, 4096: 10})
WORKLOAD = Workload("vda", 10.0, (READS, FLUSHES), {
    "read": replace(READS, process=""), "flush": replace(FLUSHES, process=""),
}, 2.0, {77: 1000})  # fmt: skip


def test_the_text_describes_the_captured_workload() -> None:
    files = [("open", Path("app.fio")), ("closed", Path("app.closed.fio"))]
    text = workload_text(WORKLOAD, 1290, None, files, 80)
    # the disk's counters count a flush without data as a write
    assert "Captured on vda in 10 s: 1,000 requests (the disk's own counters: 1,000)" in text
    assert "100 reads/s, 4 KiB, random, depth 2.0, working set 1 MiB, 3.0 at once" in text
    assert "  30.0 flushes/s" in text and "iopstui run DIR --job ./app.fio" in text
    # a removed disk has no counters
    assert "own counters" not in workload_text(WORKLOAD, None, None, [], 80)
    assert max(map(len, text.splitlines())) <= 90 and "FIGURE" not in text


def test_missed_requests_are_reported() -> None:
    short = replace(WORKLOAD, lost=1000, missed=50, unknown=60, filtered=True)
    text = workload_text(short, 5, None, [], 80)
    assert "2,000 requests of the chosen processes" in text and "own counters" not in text
    assert "1,000 requests (50 %) came too fast" in text
    assert "The beginning of 50 requests" in text and "60 requests may belong" in text
    assert "Run it" not in text


def test_processes_beyond_the_limit_are_counted() -> None:
    streams = tuple(replace(READS, process=f"p{n}") for n in range(MAX_SHOWN + 3))
    text = workload_text(replace(WORKLOAD, streams=streams), 0, None, [], 80)
    assert f"p{MAX_SHOWN - 1}\n" in text and f"p{MAX_SHOWN}\n" not in text
    assert "and 3 processes with fewer requests" in text


def test_control_characters_in_names_are_not_printed() -> None:
    evil = replace(WORKLOAD, streams=(replace(READS, process="a\x1b[2Jb"),))
    assert "\x1b" not in workload_text(evil, 0, None, [], 80)


def test_a_comparison_shows_which_figures_are_close() -> None:
    replayed = Workload("vda", 10.0, (), {
        "read": replace(READS, process="", ios=400, sizes={4096: 400}),
    }, 2.1)  # fmt: skip
    figures = distances(WORKLOAD, replayed)
    text = workload_text(WORKLOAD, 1290, figures, [], 80)
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    assert lines["reads/s"].endswith("x 2.50  differs")
    assert lines["read sizes"].endswith("0.000  close")
    assert "Not close: reads/s" in text and "up to 0.05" in text
    same_text = workload_text(WORKLOAD, 1290, distances(WORKLOAD, WORKLOAD), [], 80)
    assert "All figures are close." in same_text


def test_json_has_the_same_figures() -> None:
    data = json.loads(json.dumps(workload_json(WORKLOAD, 1290, distances(WORKLOAD, WORKLOAD))))
    assert (data["requests"], data["disk_counted"], data["in_flight"]) == (1000, 1290, 2.0)
    reads = data["total"]["read"]
    assert reads["process"] is None and reads["sizes"] == {"4096": 1000} and reads["rate"] == 100
    assert data["streams"][0]["process"] == "db" and data["comparison"][0]["close"] is True
    assert workload_json(WORKLOAD, 0, None)["comparison"] is None
    assert data["total"]["flush"]["sequential"] == 0 and data["total"]["flush"]["depth"] is None
