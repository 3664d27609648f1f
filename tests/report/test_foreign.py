"""Reports of fio's own results: its JSON of many versions and its logs."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
import recordings as made
from fio_recordings import LOGS, NAMES, statuses, unpacked
from test_report import page, text_of

from iopstui.errors import UsageError
from iopstui.features.reports.files import rendered
from iopstui.features.reports.formats import TEXTS, ReportOptions
from iopstui.linux.kernel_files import Roots
from iopstui.model.metrics.summary import fio_summary
from iopstui.preflight.targets import choose_targets


@pytest.mark.parametrize("name", NAMES)
def test_figures_of_every_version_equal_those_of_fio(name: str, tmp_path: Path) -> None:
    path = unpacked(name, tmp_path)
    body = text_of(page(path))
    final = fio_summary(statuses(name)[-1])
    for row in final["rows"]:
        for figures in row["directions"].values():
            assert f"{figures['iops']:.1f}" in body
    data = json.loads(rendered([path], "json"))["recordings"][0]
    assert [row["name"] for row in data["runs"][0]["summary"]["rows"]] == [
        row["name"] for row in final["rows"]
    ]
    assert data["foreign"].startswith("fio's JSON") and "kernel data" in data["not_in_it"][0]
    rendered([path], "csv")


def test_json_inside_normal_output_is_read(tmp_path: Path) -> None:
    text = rendered([LOGS / "mix.txt"], "md")
    assert "| 1 | j | read | 800 | 399.4 |" in text and "161 µs" in text
    assert "histograms and combined percentiles: use --output-format=json" in text
    assert "changes over time" in text and "| disk vda" in text
    # other programs write it on one line
    output = (LOGS / "mix.txt").read_text()
    compact = tmp_path / "one.json"
    document = json.loads(output[output.index("{\n") : output.index("\n}") + 2])
    compact.write_text(json.dumps(document, separators=(",", ":")))
    assert "| 1 | j | read | 800 | 399.4 |" in rendered([compact], "md")


def test_clients_are_rows_and_their_sum_is_not() -> None:
    rows = json.loads(rendered([LOGS / "clients.json"], "json"))["recordings"][0]["runs"][0]
    assert [row["name"] for row in rows["summary"]["rows"]] == ["rd", "wr"]
    assert "127.0.0.1" in rendered([LOGS / "clients.json"], "md")


def test_every_io_of_a_log_is_counted() -> None:
    logs = [LOGS / "raw_clat.1.log", LOGS / "raw_clat.2.log"]
    lines = [line.split(", ") for log in logs for line in log.read_text().splitlines()]
    run = json.loads(rendered(logs, "json"))["recordings"][0]["runs"][0]
    for number, name in (("0", "read"), ("1", "write")):
        latencies = [int(cells[1]) for cells in lines if cells[2] == number]
        figures = run["summary"]["total"][name]
        assert figures["completed"] == len(latencies) and figures["lat_max_ns"] == max(latencies)
        assert figures["clat_mean_ns"] == pytest.approx(statistics.fmean(latencies))
        middle = sorted(latencies)[-(-len(latencies) // 2) - 1]
        assert figures["percentiles"]["p50"] == pytest.approx(middle, rel=1 / 100)
    text = rendered(logs, "md")
    assert (
        "when the jobs began: each log counts from its own job's start" in text
        and "All 300 I/Os" in text
    )
    body = page(*logs)
    titles = [e.get("aria-label", "") for e in body.iter("svg")]
    assert any(t.startswith("Latency of every I/O") for t in titles), "the heat map"
    assert any(t.startswith("Histogram of clat") for t in titles)
    assert not any("CPU" in t or "aqu-sz" in t for t in titles), "no chart of nothing"


def test_averages_give_no_percentiles() -> None:
    logs = [LOGS / f"avg_{kind}.1.log" for kind in ("iops", "lat", "bw")]
    data = json.loads(rendered(logs, "json"))["recordings"][0]
    assert "hold averages over time windows, which give no percentiles" in " ".join(
        data["not_in_it"]
    )
    series = data["series"]
    # both directions have 200 to 202 IOPS in every half second
    assert series["fio"] == pytest.approx([402, 400, 400], abs=0.6)
    assert series["p99"] == [None] * 3 and all(series["mean"]) and len(series["t"]) == 3
    assert series["bw"][1] == pytest.approx(400 * 4096, rel=0.01)
    assert rendered(logs[:1], "csv").splitlines()[0].startswith("t,seconds,iops,")


def test_logs_are_matched_with_their_result() -> None:
    files = [LOGS / "avg_iops.1.log", LOGS / "avg.json", LOGS / "raw_clat.1.log"]
    reports = json.loads(rendered(files, "json"))["recordings"]
    assert [data["file"] for data in reports] == ["avg.json", "raw"]
    assert "JSON with histograms (json+) and fio's logs of iops" in reports[0]["foreign"]
    assert len(reports[0]["series"]["fio"]) == 3
    assert not any("over time" in line for line in reports[0]["not_in_it"])


def test_results_and_a_recording_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "run.iops"
    made.write(path)
    text = rendered([path, LOGS / "avg.json", LOGS / "mix.txt"], "md")
    assert text.startswith("# iopstui: Three results")
    assert "| A | B | C | B against A | C against A |" in text
    root = page(path, LOGS / "avg_iops.1.log", LOGS / "raw_clat.1.log")
    assert len(list(root.iter("section"))) == 3 and "Three results" in text_of(root)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_redacted_report_has_no_path(kind: str) -> None:
    text = rendered([LOGS / "avg.json", LOGS / "avg_bw.1.log"], kind, ReportOptions(redact=True))
    assert "/srv/" not in text and "avg" not in text.replace("avg_msec", "")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "x.json",
            '{\n  "fio version" : "fio-3.33",\n  "jobs" : [',
            "contains no complete fio JSON: it ends in line 3, before the end of its JSON",
        ),
        (
            "x.json",
            'fio: a message\n{"fio version" : "fio-3.33"',
            "contains no complete fio JSON. It was cut off or changed, or fio ended before "
            "it measured anything",
        ),
        ("x.json", "fio: /nowhere: No such file\n", "It said: fio: /nowhere"),
        ("x.txt", "j: (g=0): rw=read\nfio-3.33\nStarting 1 process\n", "normal output"),
        ("x.csv", "0, 5, 0, 4096, 0\n1, 5, 0, 4096, 0\n", "does not tell whether"),
        ("x_clat_hist.1.log", "511, 0, 4096, 0, 0\n", "is a histogram log"),
        ("x.json", '{"jobs": []}', "is not a recording"),
    ],
)
def test_an_invalid_result_is_refused_with_a_reason(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UsageError) as error:
        rendered([path], "md")
    assert message in f"{error.value} {error.value.hint}"


@pytest.mark.parametrize("name", ["avg.json", "mix.txt", "avg_lat.1.log"])
def test_a_result_is_refused_as_target(name: str) -> None:
    with pytest.raises(UsageError, match="not a target: a job would read or overwrite it") as error:
        choose_targets([str(LOGS / name)], "randread-4k", {}, Roots())
    assert f"iopstui report {LOGS / name}" in error.value.hint


def test_json_that_would_take_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text('{\n  "fio version": "fio-3.33", "jobs": [' + "{}," * 1_000_000 + "{}]\n}\n")
    with pytest.raises(UsageError, match="too large: reading it would take more than"):
        rendered([path], "md")
