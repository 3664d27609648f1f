"""A run whose figures others read while it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from metrics_text import read
from program import UNHURRIED, events, iopstui


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def test_the_counters_of_a_run_are_fio_s_own(here: Path) -> None:
    file = here.parent / "run.prom"
    done = iopstui("run", "--job", "randread-4k", "--set", "runtime=1", "--size", "4m",
                   "--format", "jsonl", "--textfile", str(file), "--openmetrics-listen", "0",
                   *UNHURRIED, cwd=here)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "metrics at http://127.0.0.1:" in done.stderr
    assert list(here.iterdir()) == []
    (end,) = (row for row in events(done.stdout) if row["event"] == "step_finished")
    total = sum(row["directions"]["read"]["total_ios"] for row in end["summary"]["rows"])
    found = read(file.read_text(), modern=False)
    assert found["iopstui_fio_ios_total"].value(direction="read") == total
    latencies = found["iopstui_fio_latency_seconds"]
    assert latencies.value("_count", direction="read", latency="clat") == total
    assert found["iopstui_runs_total"].value() == 1 and found["iopstui_up"].value() == 0


@pytest.mark.parametrize("asked, told", [
    (("--textfile", "a.txt"), "does not end in .prom"),
    (("--textfile", "no/a.prom"), "its directory can't be opened"),
    (("--textfile", "/proc/a.prom"), "can't be written"),
    (("--openmetrics-listen", "70000"), "is not a port number"),
])  # fmt: skip
def test_what_can_t_be_exported_ends_before_anything_is_done(
    asked: tuple[str, str], told: str, here: Path
) -> None:
    done = iopstui("watch", "--for", "1s", *asked, cwd=here)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == "" and list(here.iterdir()) == []
