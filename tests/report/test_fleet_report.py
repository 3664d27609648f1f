"""A report of many hosts, from the file that `fleet --record` writes."""

from __future__ import annotations

import csv
import io
import json
import os
import xml.dom.minidom
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iopstui.cli.fleet import screen
from iopstui.errors import UsageError
from iopstui.model.histogram import bucket_key
from iopstui.report.files import rendered
from iopstui.report.fleet.story import FleetHeat, gather_fleet, interval_of, is_fleet

START_MS = 1_800_000_000_000.0
SLOW, FAST = bucket_key(9_000_000), bucket_key(100_000)


def frame(host: str, second: int, ios: int, key: int, seconds: float = 1.0) -> dict[str, Any]:
    clat = {"mean": float(key), "n": ios, "p99": key, "max": key}
    part = {"ios": ios, "bytes": ios * 4096, "clat": clat, "bins_of": "clat",
            "bins": {str(key): ios}}  # fmt: skip
    total = {name: value for name, value in part.items() if name != "bins"}
    return {
        "event": "frame", "host": host, "step": 1, "t": second + seconds, "flags": [],
        "wall_ms": START_MS + (second + seconds) * 1000, "seconds": seconds, "kernel": {},
        "fio": {"seconds": seconds, "read": part, "total": total},
    }  # fmt: skip


def finished(host: str, ios: int, error: str = "") -> dict[str, Any]:
    row = {"failed": 0, "block_size": 4096, "directions": {"read": {"total_ios": ios}}}
    return {"event": "step_finished", "host": host, "exit_code": 1 if error else 0, "error": error,
            "summary": {"rows": [row]}}  # fmt: skip


def recorded(place: Path, *more: dict[str, Any]) -> Path:
    """a: 100 a second for 4 s; b: 50 slow ones, and no third second."""
    rows: list[dict[str, Any]] = [{"event": "session", "host": host} for host in ("a", "b")]
    for host, offset in (("a", 0.0), ("b", 4.0)):
        rows.append({"event": "executed", "host": host, "wall_ms": START_MS + offset + 500,
                     "offset_ms": 500.0, "error_ms": 0.25})  # fmt: skip
    for second in range(4):
        rows.append(frame("a", second, 100, FAST))
        rows += [frame("b", second, 50, SLOW)] if second != 2 else []
    rows += [finished("a", 400), finished("b", 200, "fio: /dev/sdb: EIO"), *more]
    path = place / "all<&>.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_it_says_what_all_did_and_who_was_missing(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    assert is_fleet(path)
    text = rendered([path], "md")
    assert "fio was executed within 4.0 ms on 2 hosts" in text
    assert "in 3 of 4 rows of 1 s all hosts" in text
    assert "2 hosts: 1 finished; 1 failed: b." in text
    assert "exactly fio's count on 1 of 2; another one on b." in text
    slowest, other = [line for line in text.splitlines() if line.startswith(("| a |", "| b |"))]
    # the slowest host first, with what it said; it is not in one second
    assert slowest.startswith("| b | failed: fio: /dev/sdb: EIO |") and "| 1 | differs |" in slowest
    assert other.startswith("| a | finished | 100 |") and "| 0 | exact |" in other
    seconds = [line for line in text.splitlines() if line.startswith("| 08:00:0")]
    assert [line.split(" | ")[1:3] for line in seconds] == [
        ["2/2", "150"], ["2/2", "150"], ["1/2", "100"], ["2/2", "150"]
    ]  # fmt: skip


def test_the_figures_are_those_of_the_summed_bins(tmp_path: Path) -> None:
    found = json.loads(rendered([recorded(tmp_path)], "json"))
    assert found["fio"]["read"]["ios"] == 550
    clat = found["fio"]["read"]["clat"]
    assert (clat["p50"], clat["p99"]) == (FAST, SLOW)
    assert [row["rates"]["read"] for row in found["seconds"]] == [150, 150, 100, 150]
    assert [row["latencies"]["p50"] for row in found["seconds"]] == [FAST] * 4
    assert {host["host"]: host["count"]["ios"] for host in found["hosts"]} == {"a": 400, "b": 150}
    rows = list(csv.DictReader(io.StringIO(rendered([recorded(tmp_path)], "csv"))))
    assert [float(row["read.iops"]) for row in rows] == [150, 150, 100, 150]
    assert [row["slowest"] for row in rows] == ["b", "b", "a", "b"]


def test_bytes_of_devices_without_a_job_are_counted_as_iostat_does(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"event": "session", "host": "a"}]
    rates = {"r/s": 10.0, "w/s": 0.0, "rMB/s": 3.0, "wMB/s": 0.5, "aqu-sz": 1.0, "in-flight": 1}
    for second in range(3):
        rows.append({"event": "frame", "host": "a", "t": second + 1.0, "flags": [], "fio": None,
                     "wall_ms": START_MS + (second + 1) * 1000, "seconds": 1.0,
                     "kernel": {"total": rates}})  # fmt: skip
    path = tmp_path / "watched.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    # its MB are 1024 * 1024 bytes (sysstat's iostat.c)
    assert "| 3.50 |" in rendered([path], "md")


def test_the_devices_that_were_probed_have_rows_of_their_own(tmp_path: Path) -> None:
    path, none = recorded(tmp_path), {"ios": 0, "bins": {}}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert "device" not in rendered([path], "md")
    for row in rows:
        if row["event"] == "frame" and row["host"] == "b":
            read = {"ios": 7, "bins": {str(SLOW): 7}}
            row["device"] = {"seconds": 1.0, "read": read, "write": none, "discard": none,
                             "missed": 0.0, "skipped": 0, "lost": 0, "full": 0}  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "| device read (1 of 2 hosts) | 7.00 | – |" in rendered([path], "md")
    assert "device read (1 of 2 hosts)" in rendered([path], "html")
    device = json.loads(rendered([path], "json"))["device"]
    assert (device["hosts"], device["read"]["ios"], device["read"]["p50"]) == (1, 21, SLOW)


def test_the_page_is_one_and_escapes_what_it_shows(tmp_path: Path) -> None:
    page = rendered([recorded(tmp_path, {"event": "session", "host": "<script>"})], "html")
    xml.dom.minidom.parseString(page)
    assert page.count("<svg") == 5 and "<script>" not in page
    assert "latency, every I/O of all hosts" in page


@pytest.mark.parametrize("kind", ["md", "html", "csv", "json"])
def test_redacted_it_names_no_host(kind: str, tmp_path: Path) -> None:
    rows = [frame("secret-7", n, 10, FAST) for n in range(3)]
    path = recorded(tmp_path, *rows, finished("secret-7", 30, "/srv/secret is gone"))
    assert "secret" in rendered([path], "md")
    text = rendered([path], kind, redact=True)
    assert "secret" not in text and "/dev/sdb" not in text and path.name not in text


def two_runs(place: Path) -> Path:
    """a alone, and 10 s later a and b, which began 4 s apart; the file ends before that does."""
    rows: list[dict[str, Any]] = []
    for number, hosts in ((1, ("a",)), (2, ("a", "b"))):
        rows.append({"event": "fleet", "host": "fleet", "run": number, "job": "/srv/secret.fio",
                     "hosts": [*hosts]})  # fmt: skip
        for late, host in enumerate(hosts):
            wall = START_MS + number * 10_000 + late * 4000
            rows += [{"event": "session", "host": host},
                     {"event": "executed", "host": host, "wall_ms": wall, "offset_ms": 0.0,
                      "error_ms": 0.5}]  # fmt: skip
        rows += [frame(host, number * 10 + n, 100, FAST) for n in range(3) for host in hosts]
        rows += [finished(host, 300) for host in hosts]
        rows.append({"event": "fleet_over", "host": "fleet", "how": "done", "code": 4,
                     "said": ["FAIL  iops>=300: a"]})  # fmt: skip
    path = place / "runs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    return path


def test_several_runs_are_told_one_by_one(tmp_path: Path) -> None:
    path = two_runs(tmp_path)
    text = rendered([path], "md")
    assert [line.split(" | ")[0:4] + line.split(" | ")[8:] for line in text.splitlines()
            if "secret" in line] == [
        ["| 1", "/srv/secret.fio", "1/1", "100", "done; FAIL iops\\>=300: a |"],
        ["| 2", "/srv/secret.fio", "2/2", "200", "not seen |"],
    ]  # fmt: skip
    # not from the first run to the second
    assert "fio was executed within 4000.0 ms on 2 hosts" in text
    found = json.loads(rendered([path], "json"))["runs"]
    assert [run["fio"]["read"]["ios"] for run in found] == [300, 600]
    assert "<h2>Runs</h2>" in rendered([path], "html")
    for kind in ("md", "html", "json"):
        hidden = rendered([path], kind, redact=True)
        assert "secret" not in hidden and "FAIL" not in hidden


def test_rows_are_as_long_as_the_hosts_samples(tmp_path: Path) -> None:
    path = tmp_path / "two"
    rows = [frame("a", 2 * n, 100, FAST, 2.0) for n in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert interval_of(path) == 2.0
    assert [row.rates["read"] for row in gather_fleet(path).seconds] == [50, 50, 50]


def test_what_is_no_recording_of_hosts(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text in (b"", b"\xff\xfe", b'{"fio version": "3.33"}\n', b"[1]\n", b"{" * 100_000):
        path.write_bytes(text)
        assert not is_fleet(path)
    assert not is_fleet(tmp_path) and not is_fleet(tmp_path / "none")
    path.write_text('{"event": "session"}\n')
    with pytest.raises(UsageError, match="not a single frame"):
        rendered([path], "md")
    with pytest.raises(UsageError, match="by itself"):
        rendered([recorded(tmp_path), path], "md")


@pytest.mark.parametrize("asked", [is_fleet, screen.is_fleet])
def test_a_pipe_is_not_opened_to_be_looked_at(
    asked: Callable[[Path], bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def waits(*_: object) -> None:
        pytest.fail("it would wait for a writer")

    monkeypatch.setattr(Path, "open", waits)
    assert not asked(pipe)


def test_a_long_run_has_wider_columns() -> None:
    from iopstui.fleet.merging.packed import pack
    from iopstui.fleet.merging.sums import Latencies, Part

    heat = FleetHeat()
    for place in range(10_000):
        heat.add(place, [Part(1, latencies={"clat": Latencies(1, 1, 1, pack({str(FAST): 1}))})])
    assert heat.columns <= 240 and sum(heat.cells.values()) == 10_000
    assert heat.columns * heat.width >= 10_000
