from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.request
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from conftest import WITHIN_S, Serve, free_port, get_json, program
from program import events, start

DOCS = Path(__file__).parents[2] / "docs" / "monitoring"
RUN_S = 12


def write_config(tmp_path: Path, exported: int, node: int) -> Path:
    """Write the documented configuration with other ports and a scrape per second."""
    shutil.copy(DOCS / "alerts.yml", tmp_path)
    text = (DOCS / "prometheus.yml").read_text()
    assert text.count("9101") == 2 and text.count("9100") == 1
    text = text.replace("9101", str(exported)).replace("9100", str(node))
    path = tmp_path / "prometheus.yml"
    path.write_text(text.replace("scrape_interval: 5s", "scrape_interval: 1s"))
    return path


def prometheus(serve: Serve, tmp_path: Path, exported: int, node: int = 1) -> str:
    port = free_port()
    return serve(
        port, "/-/ready", "prometheus", f"--config.file={write_config(tmp_path, exported, node)}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}",
    )  # fmt: skip


def query_result(address: str, query: str) -> list[dict[str, Any]]:
    answer = get_json(f"{address}/api/v1/query", query=query)
    assert answer["status"] == "success", answer
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


def expressions() -> list[str]:
    """All queries of the dashboard."""
    panels = json.loads((DOCS / "grafana.json").read_text())["panels"]
    asks = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [
        re.sub(r"\$__rate_interval", "5s", re.sub(r"\$(instance|device)", ".*", ask))
        for ask in asks
    ]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def test_prometheus_scrapes_a_run(serve: Serve, here: Path, tmp_path: Path) -> None:
    exported = free_port()
    address = prometheus(serve, tmp_path, exported)
    run = start(
        "run", "--job", "randread-4k", "--set", f"runtime={RUN_S}", "--size", "16m", "--format",
        "jsonl", "--expect", "iops>=1", "--openmetrics-listen", str(exported), cwd=here,
    )  # fmt: skip
    time.sleep(RUN_S - 2)
    (target,) = [
        target for target in get_json(f"{address}/api/v1/targets")["data"]["activeTargets"]
        if target["labels"]["job"] == "iopstui"
    ]  # fmt: skip
    assert (target["health"], target["lastError"]) == ("up", "")
    # other clients are served while Prometheus keeps its connection
    began = time.monotonic()
    with urllib.request.urlopen(
        f"http://127.0.0.1:{exported}/metrics", timeout=WITHIN_S
    ) as response:
        assert b"iopstui_fio_ios" in response.read()
    assert time.monotonic() - began < 2

    queries = expressions()
    empty = [query for query in queries if not query_result(address, query)]
    # these need --probe, the end of the run or a finding; or NFS, or hardware
    assert {part for query in empty for part in re.findall(r"iopstui_[a-z]+", query)} <= {
        "iopstui_device", "iopstui_cgroup", "iopstui_expectation", "iopstui_findings",
        "iopstui_nfs", "iopstui_nvme", "iopstui_power", "iopstui_aws",
    }, empty  # fmt: skip
    assert len(queries) - len(empty) > 30
    (p99,) = query_result(address, "histogram_quantile(0.99, iopstui_fio_latency_seconds_bucket"
                            "{direction='read'})")  # fmt: skip

    out, err = run.communicate(timeout=WITHIN_S)
    assert run.returncode == 0, err
    reads = [row["fio"]["read"] for row in events(out) if row.get("fio")]
    totals = [*accumulate(interval["ios"] for interval in reads)]
    (series,) = query_result(address, "iopstui_fio_ios_total[1m]")
    scraped = [int(value) for _, value in series["values"]]
    assert len(scraped) >= RUN_S - 4 and set(scraped) <= {0, *totals}
    assert len(set(scraped)) >= RUN_S - 5
    # within the bounds of its bucket
    slowest = max(interval["clat"]["p99"] for interval in reads)
    quickest = min(interval["clat"]["p99"] for interval in reads)
    assert quickest / 1.5 < 1e9 * float(p99["value"][1]) < 1.5 * slowest


def test_promtool_accepts_the_configuration(tmp_path: Path) -> None:
    config = write_config(tmp_path, 9101, 9100)
    process = subprocess.run([program("promtool"), "check", "config", str(config)],
                          capture_output=True, text=True)  # fmt: skip
    assert process.returncode == 0 and "3 rules found" in process.stdout, process


def test_promtool_accepts_the_file_of_a_run(here: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.prom"
    run = start("run", "--job", "randread-4k", "--set", "runtime=2", "--size", "4m",
                "--textfile", str(file), cwd=here)  # fmt: skip
    _, err = run.communicate(timeout=WITHIN_S)
    assert run.returncode == 0, err
    process = subprocess.run([program("promtool"), "check", "metrics"], input=file.read_text(),
                          capture_output=True, text=True)  # fmt: skip
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


RULES = """
rule_files: [alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      # 100 reads and 10 s of waiting a minute
      - {series: 'iopstui_disk_reads_total{device="a",instance="h"}', values: '0+100x30'}
      - {series: 'iopstui_disk_read_time_seconds_total{device="a",instance="h"}', values: '0+10x30'}
      - {series: 'iopstui_disk_reads_total{device="b",instance="h"}', values: '0+100x30'}
      - {series: 'iopstui_disk_read_time_seconds_total{device="b",instance="h"}', values: '0+1x30'}
      - {series: 'iopstui_disk_reads_total{device="idle",instance="h"}', values: '5x30'}
      - {series: 'iopstui_disk_read_time_seconds_total{device="idle",instance="h"}', values: '5x30'}
      - {series: 'iopstui_up{instance="h"}', values: '1x30'}
      - {series: 'iopstui_last_sample_timestamp_seconds{instance="h"}', values: '0+60x10 600x20'}
      - {series: 'iopstui_up{instance="over"}', values: '0x30'}
      - {series: 'iopstui_last_sample_timestamp_seconds{instance="over"}', values: '60x30'}
      - {series: 'iopstui_expectation_met{instance="h",expectation="iops>=5"}', values: '0x30'}
    alert_rule_test:
      - {eval_time: 10m, alertname: IopstuiGone, exp_alerts: []}
      - eval_time: 12m
        alertname: IopstuiGone
        exp_alerts:
          - exp_labels: {instance: h}
            exp_annotations:
              summary: >-
                h: iopstui has sent no new sample for a minute, and did not say that it ended
      - {eval_time: 8m, alertname: DiskSlow, exp_alerts: []}
      - eval_time: 14m
        alertname: DiskSlow
        exp_alerts:
          - exp_labels: {instance: h, device: a}
            exp_annotations: {summary: "h: a read of a takes 100ms"}
      - eval_time: 1m
        alertname: ExpectationNotMet
        exp_alerts:
          - exp_labels: {instance: h, expectation: "iops>=5"}
            exp_annotations: {summary: "h: iops>=5 was not met"}
"""


def test_alerts_fire_at_the_right_time(tmp_path: Path) -> None:
    shutil.copy(DOCS / "alerts.yml", tmp_path)
    (tmp_path / "tests.yml").write_text(RULES)
    process = subprocess.run([program("promtool"), "test", "rules", "tests.yml"], cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr


def test_node_exporter_reads_the_file_and_has_the_same_counts(
    serve: Serve, here: Path, tmp_path: Path
) -> None:
    port = free_port()
    address = serve(
        port, "/metrics", "prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}",
        "--collector.disable-defaults", "--collector.textfile", "--collector.diskstats",
        f"--collector.textfile.directory={tmp_path}",
    )  # fmt: skip
    before = metrics(address)
    file = tmp_path / "iopstui.prom"
    run = start("run", "--job", "randread-4k", "--set", "runtime=3", "--size", "16m", "--format",
                "jsonl", "--textfile", str(file), cwd=here)  # fmt: skip
    out, err = run.communicate(timeout=WITHIN_S)
    assert run.returncode == 0, err
    after = metrics(address)
    assert after["node_textfile_scrape_error"] == 0
    exported = {name: value for name, value in after.items() if name.startswith("iopstui_")}
    written_metrics = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in file.read_text().splitlines() if not line.startswith("#")
    }  # fmt: skip
    assert {plain(name): value for name, value in written_metrics.items()} == {
        plain(name): value for name, value in exported.items()
    }
    device = events(out)[0]["device"]
    label = f'{{device="{device}"}}'
    increase = (
        after[f"node_disk_reads_completed_total{label}"]
        - before[f"node_disk_reads_completed_total{label}"]
    )
    counted = exported[f"iopstui_disk_reads_total{label}"]
    # node_exporter's increase also covers the time before the first sample and after the last one
    assert counted <= increase <= 1.5 * counted + 1000


def plain(name: str) -> frozenset[str]:
    """The same for any order of the labels."""
    return frozenset(re.split(r"[{},]+", name))


def metrics(address: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in lines if not line.startswith("#")
    }  # fmt: skip
