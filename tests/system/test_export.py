"""Exported metrics of a run, read during the run and after it."""

from __future__ import annotations

import re
import subprocess
import time
import urllib.request
from itertools import accumulate
from pathlib import Path

import pytest
from metrics_text import Read, read
from program import UNHURRIED, WITHIN_S, events, iopstui, start


def scrape(run: subprocess.Popen[str]) -> dict[str, Read]:
    """Scrape the metrics port of a run until it serves an interval of fio."""
    assert run.stderr is not None
    url_line = next(line for line in run.stderr if "metrics at" in line)
    url = re.findall(r"http://127\.0\.0\.1:\d+/metrics", url_line)[0]
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        with urllib.request.urlopen(url) as answer:
            metrics = read(answer.read().decode(), modern=True)
        if "iopstui_fio_latency_seconds" in metrics:
            return metrics
        time.sleep(0.02)
    raise AssertionError("no interval of fio's was ever served")


def test_the_counters_of_a_run_equal_fio_s_totals(workdir: Path) -> None:
    file = workdir.parent / "run.prom"
    run = start("run", "--job", "randread-4k", "--set", "runtime=4", "--size", "4m",
                "--interval", "0.3", "--format", "jsonl", "--textfile", str(file),
                "--openmetrics-listen", "0", *UNHURRIED, cwd=workdir)  # fmt: skip
    middle = scrape(run)
    out, err = run.communicate(timeout=WITHIN_S)
    assert run.returncode == 0, err
    assert list(workdir.iterdir()) == []

    rows = events(out)
    reads = [row["fio"]["read"] for row in rows if row["event"] == "frame" and row.get("fio")]
    (end,) = (row for row in rows if row["event"] == "step_finished")
    total = sum(row["directions"]["read"]["total_ios"] for row in end["summary"]["rows"])
    # during the run: the sum of the first complete intervals
    so_far = [*accumulate(interval["ios"] for interval in reads)].index(
        middle["iopstui_fio_ios"].value("_total", direction="read")
    )
    assert so_far < len(reads) - 1 and middle["iopstui_up"].value() == 1
    moved = sum(interval["bytes"] for interval in reads[: so_far + 1])
    assert middle["iopstui_fio_bytes"].value("_total", direction="read") == moved
    # at the end: fio's own total
    metrics = read(file.read_text(), modern=False)
    assert metrics["iopstui_fio_ios_total"].value(direction="read") == total
    latencies = metrics["iopstui_fio_latency_seconds"]
    assert latencies.value("_count", direction="read", latency="clat") == total
    assert metrics["iopstui_runs_total"].value() == 1 and metrics["iopstui_up"].value() == 0


@pytest.mark.parametrize("args, message", [
    (("--textfile", "a.txt"), "does not end in .prom"),
    (("--textfile", "no/a.prom"), "cannot open its directory"),
    (("--textfile", "/proc/a.prom"), "Cannot write --textfile"),
    (("--openmetrics-listen", "70000"), "is not a port number"),
])  # fmt: skip
def test_bad_export_options_are_refused_before_the_start(
    args: tuple[str, str], message: str, workdir: Path
) -> None:
    result = iopstui("watch", "--for", "1s", *args, cwd=workdir)
    assert result.returncode == 2 and message in result.stderr and "Traceback" not in result.stderr
    assert result.stdout == "" and list(workdir.iterdir()) == []
