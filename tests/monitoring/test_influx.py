from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest
from conftest import Serve, free_port, get_json
from program import events, iopstui

CONFIG = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{place}/meta"
[data]
  dir = "{place}/data"
  wal-dir = "{place}/wal"
[http]
  bind-address = "127.0.0.1:{port}"
"""


@pytest.fixture
def influx(serve: Serve, tmp_path: Path) -> str:
    port = free_port()
    config = tmp_path / "influx.conf"
    config.write_text(CONFIG.format(place=tmp_path, port=port, rpc=free_port()))
    return serve(port, "/ping", "influxd", "-config", str(config))


def post(address: str, body: bytes) -> None:
    with urllib.request.urlopen(urllib.request.Request(address, data=body)) as answer:
        answer.read()


def rows(address: str, query: str) -> list[dict[str, Any]]:
    result = get_json(f"{address}/query", db="a", q=query, epoch="ns")["results"][0]
    return [
        dict(zip(series["columns"], values, strict=True)) | series.get("tags", {})
        for series in result.get("series", ()) for values in series["values"]
    ]  # fmt: skip


def test_influxdb_stores_the_exported_figures(influx: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    lines = iopstui("replay", "demo", "--format", "influx", cwd=tmp_path / "here")
    replay = iopstui("replay", "demo", "--format", "jsonl", cwd=tmp_path / "here")
    assert lines.returncode == replay.returncode == 0
    post(f"{influx}/query?q=CREATE+DATABASE+a", b"")
    # InfluxDB refuses a whole batch if one of its lines is wrong
    post(f"{influx}/write?db=a", lines.stdout.encode())

    frames = [row for row in events(replay.stdout) if row["event"] == "frame"]
    reads = [(row["wall_ms"], row["fio"]["read"]) for row in frames
             if (row.get("fio") or {}).get("read")]  # fmt: skip
    points = rows(influx, "SELECT * FROM fio WHERE direction = 'read'")
    assert [(point["time"] // 1_000_000, point["iops"], point["clat.p99"]) for point in points] == [
        (int(wall_ms), part["iops"], part["clat"].get("p99")) for wall_ms, part in reads
    ]
    assert len(rows(influx, "SELECT * FROM frame")) == len(frames)
    disks = sum(len(row["kernel"]["disks"]) for row in frames)
    assert len(rows(influx, "SELECT * FROM disk")) == disks
