"""A run whose figures others read while it goes on."""

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


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def scraped(run: subprocess.Popen[str]) -> dict[str, Read]:
    """What the port gives in the middle of a run, as soon as it has an interval of fio's."""
    assert run.stderr is not None
    told = next(line for line in run.stderr if "metrics at" in line)
    url = re.findall(r"http://127\.0\.0\.1:\d+/metrics", told)[0]
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        with urllib.request.urlopen(url) as answer:
            found = read(answer.read().decode(), modern=True)
        if "iopstui_fio_latency_seconds" in found:
            return found
        time.sleep(0.02)
    raise AssertionError("no interval of fio's was ever served")


def test_the_counters_of_a_run_are_fio_s_own(here: Path) -> None:
    file = here.parent / "run.prom"
    run = start("run", "--job", "randread-4k", "--set", "runtime=2", "--size", "4m",
                "--interval", "0.3", "--format", "jsonl", "--textfile", str(file),
                "--openmetrics-listen", "0", *UNHURRIED, cwd=here)  # fmt: skip
    middle = scraped(run)
    out, err = run.communicate(timeout=WITHIN_S)
    assert run.returncode == 0, err
    assert list(here.iterdir()) == []

    rows = events(out)
    reads = [row["fio"]["read"] for row in rows if row["event"] == "frame" and row.get("fio")]
    (end,) = (row for row in rows if row["event"] == "step_finished")
    total = sum(row["directions"]["read"]["total_ios"] for row in end["summary"]["rows"])
    # in the middle: some of the seconds that were printed, whole
    so_far = [*accumulate(one["ios"] for one in reads)].index(
        middle["iopstui_fio_ios"].value("_total", direction="read")
    )
    assert so_far < len(reads) - 1 and middle["iopstui_up"].value() == 1
    moved = sum(one["bytes"] for one in reads[: so_far + 1])
    assert middle["iopstui_fio_bytes"].value("_total", direction="read") == moved
    # in the end: fio's own count
    found = read(file.read_text(), modern=False)
    assert found["iopstui_fio_ios_total"].value(direction="read") == total
    latencies = found["iopstui_fio_latency_seconds"]
    assert latencies.value("_count", direction="read", latency="clat") == total
    assert found["iopstui_runs_total"].value() == 1 and found["iopstui_up"].value() == 0


@pytest.mark.parametrize("asked, told", [
    (("--textfile", "a.txt"), "does not end in .prom"),
    (("--textfile", "no/a.prom"), "cannot open its directory"),
    (("--textfile", "/proc/a.prom"), "Cannot write --textfile"),
    (("--openmetrics-listen", "70000"), "is not a port number"),
])  # fmt: skip
def test_what_can_t_be_exported_ends_before_anything_is_done(
    asked: tuple[str, str], told: str, here: Path
) -> None:
    done = iopstui("watch", "--for", "1s", *asked, cwd=here)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == "" and list(here.iterdir()) == []
