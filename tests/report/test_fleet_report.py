"""A report of many hosts, from the file that `fleet --record` writes."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import xml.dom.minidom
from datetime import datetime
from html import escape
from math import floor, log10
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from json_schema import check

from iopstui.cli.program import main
from iopstui.errors import UsageError
from iopstui.features.fleet.report.data import FleetHeat, interval_of, load_fleet_report
from iopstui.features.reports.files import rendered, report, write_report
from iopstui.features.reports.formats import DEFAULT_OPTIONS, ReportOptions
from iopstui.model.histogram import bucket_key
from iopstui.output.page.svg import HEAT_ROWS_PER_DECADE
from iopstui.recording.recent import is_fleet

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


def write_recording(place: Path, *more: dict[str, Any]) -> Path:
    """Host a: 100 I/Os/s for 4 s. Host b: 50 slow I/Os/s, and no third second."""
    rows: list[dict[str, Any]] = [{"event": "session", "host": host} for host in ("a", "b")]
    for host, offset in (("a", 0.0), ("b", 4.0)):
        rows.append({"event": "executed", "host": host, "wall_ms": START_MS + offset + 500,
                     "offset_ms": 500.0, "error_ms": 0.25})  # fmt: skip
    for second in range(4):
        rows.append(frame("a", second, 100, FAST))
        rows += [frame("b", second, 50, SLOW)] if second != 2 else []
    for row in rows:
        # the clocks of both hosts are ahead
        row |= {"wall_ms": row["wall_ms"] + 500} if row["event"] == "frame" else {}
    rows += [finished("a", 400), finished("b", 200, "fio: /dev/sdb: EIO"), *more]
    path = place / "all<&>.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_report_has_totals_and_missing_hosts(tmp_path: Path) -> None:
    path = write_recording(tmp_path)
    assert is_fleet(path)
    text = rendered([path], "md")
    assert "fio started within 4.5 ms on 2 hosts (4.0 ms by" in text
    assert "in 3 of 4 rows of 1 s all hosts" in text
    assert "2 hosts: 1 finished; 1 failed: b." in text
    assert "Verified on 1 of 2; different on b." in text
    slowest, other_row = [line for line in text.splitlines() if line.startswith(("| a |", "| b |"))]
    # the slowest host first, with its error; it misses one second
    assert slowest.startswith("| b | failed: fio: /dev/sdb: EIO |") and "| 1 | differs |" in slowest
    assert other_row.startswith("| a | finished | 100 |") and "| 0 | exact |" in other_row
    seconds = [line for line in text.splitlines() if line.startswith("| 08:00:0")]
    assert [line.split(" | ")[1:3] for line in seconds] == [
        ["2/2", "150"], ["2/2", "150"], ["1/2", "100"], ["2/2", "150"]
    ]  # fmt: skip


def test_totals_alone_have_no_table_of_hosts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Hosts, slowest first" in rendered([write_recording(tmp_path)], "md")
    assert main(["merge", str(write_recording(tmp_path)), "--format", "jsonl"]) == 0
    totals = tmp_path / "totals.jsonl"
    totals.write_text(capsys.readouterr().out)
    text = rendered([totals], "md")
    assert "# iopstui: 2 hosts" in text and "Hosts, slowest first" not in text


def test_percentiles_are_those_of_the_summed_bins(tmp_path: Path) -> None:
    document = json.loads(rendered([write_recording(tmp_path)], "json"))
    check(document, "document.fleet_report")
    assert document["fio"]["read"]["ios"] == 550
    clat = document["fio"]["read"]["clat"]
    assert (clat["p50"], clat["p99"]) == (FAST, SLOW)
    assert [row["rates"]["read"] for row in document["seconds"]] == [150, 150, 100, 150]
    assert [row["latencies"]["p50"] for row in document["seconds"]] == [FAST] * 4
    assert {host["host"]: host["count"]["ios"] for host in document["hosts"]} == {
        "a": 400,
        "b": 150,
    }


def test_the_page_begins_with_a_light_three_sentences_and_one_chart(tmp_path: Path) -> None:
    path = write_recording(tmp_path)
    first = json.loads(rendered([path], "json"))["overview"]
    assert (first["state"], first["reason"]) == ("critical", "1 of 2 hosts failed")
    assert first["measured"] == (
        "fio ran on 2 hosts for 4 s: 150 IOPS, 0.59 MiB/s, p99 8.98 ms."
    )  # fmt: skip
    body = xml.dom.minidom.parseString(rendered([path], "html")).getElementsByTagName("body")[0]
    blocks = [node for node in body.childNodes if node.nodeType == node.ELEMENT_NODE]
    assert [block.tagName for block in blocks[:5]] == ["h1", "p", "p", "p", "p"]
    assert blocks[1].getAttribute("class") == "light critical"
    assert blocks[5].getElementsByTagName("svg")[0].getAttribute("aria-label").startswith("IOPS")
    assert body.toxml().count("<svg") == body.toxml().count('aria-label="') > 3


def told(host: str, t: float, state: str = "good", **more: str) -> dict[str, Any]:
    answer = {"disk": "sda", "rule": "finding-tags", "state": state, "text": "no tags: 9 wait",
              "verdict": "nothing" if state == "good" else "waits", **more}  # fmt: skip
    return {"event": "answer", "host": host, "t": t, "answer": answer}


def first_screen(tmp_path: Path, *more: dict[str, Any], redact: bool = False) -> dict[str, Any]:
    """The overview of a fleet whose hosts both end well."""
    path = write_recording(tmp_path, finished("b", 200), *more)
    document = json.loads(rendered([path], "json", ReportOptions(redact)))
    check(document, "document.fleet_report")
    overview: dict[str, Any] = document["overview"]
    return overview


def test_the_light_is_that_of_the_host_that_needs_attention_most(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    good, bad = told("a", 1.0), told("b", 2.0, "warning", who="hog (9)")
    overview = first_screen(tmp_path, good, bad)
    assert (overview["state"], overview["reason"]) == ("warning", "b: no tags (at 0:02)")
    assert overview["answer"] == "Warning at 0:02: b: no tags: 9 wait; hog (9)."
    ceased = {"event": "ceased", "host": "b", "t": 3.0, "rule": "tags", "text": "no tags",
              "since": 1.0, "until": 2.0, "why": "tags were free"}  # fmt: skip
    overview = first_screen(tmp_path, good, bad, ceased, told("b", 3.5))
    assert (overview["state"], overview["reason"]) == (
        "good",
        "no answer about the disk is a warning",
    )
    # of one of two hosts nothing is known
    overview = first_screen(tmp_path, good)
    assert overview["state"] is None and "could not tell" in overview["reason"]
    overview = first_screen(tmp_path, good, bad, redact=True)
    assert overview["reason"] == "host 2: redacted (at 0:02)" and "hog" not in str(overview)


def csv_rows(path: Path, redact: bool = False) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(rendered([path], "csv", ReportOptions(redact)))))


def test_a_table_has_a_row_for_all_and_one_for_each_host(tmp_path: Path) -> None:
    rows = csv_rows(write_recording(tmp_path))
    sum_rows = [row for row in rows if not row["host"]]
    assert [float(row["fio.total.iops"]) for row in sum_rows] == [150, 150, 100, 150]
    assert [row["slowest"] for row in sum_rows] == ["b", "b", "a", "b"]
    assert [row["t"] for row in sum_rows] == ["0.0", "1.0", "2.0", "3.0"]
    assert [row["host"] for row in rows] == ["", "a", "b"] * 4
    row_of = {(row["t"], row["host"]): row for row in rows}
    # a missing host has a row without figures
    absent = row_of["2.0", "b"]
    assert (absent["counted"], absent["missing"], absent["fio.read.iops"]) == ("0", "b", "")
    assert row_of["2.0", ""]["missing"] == "b" and row_of["2.0", "a"]["missing"] == ""
    # counts and rates of the hosts add up
    for name in ("counted", "expected", "fio.read.iops", "fio.read.ios", "fio.total.bytes"):
        for row in sum_rows:
            cells = [row_of[row["t"], host][name] for host in "ab"]
            assert float(row[name]) == sum(float(cell) for cell in cells if cell), name
    assert row_of["0.0", "b"]["fio.read.p50"] == str(SLOW)
    assert {row["run"] for row in rows} == {""}


def test_each_run_of_a_table_has_its_number(tmp_path: Path) -> None:
    rows = csv_rows(two_runs(tmp_path))
    assert {(row["run"], row["host"]) for row in rows if row["fio.read.iops"]} == {
        ("1", ""), ("1", "a"), ("2", ""), ("2", "a"), ("2", "b")
    }  # fmt: skip


@pytest.mark.parametrize("rows_at_once", [3600, 5])
def test_parquet_has_the_cells_of_the_csv(
    rows_at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iopstui.features.reports.rows.ROWS", rows_at_once)
    path, out = two_runs(tmp_path), io.BytesIO()
    write_report([path], "parquet", DEFAULT_OPTIONS, out)
    table, expected = pyarrow.parquet.read_table(out), csv_rows(path)
    assert table.column_names == list(expected[0]) and len(table) == len(expected) > 10
    for name in table.column_names:
        kind = str(table.schema.field(name).type)
        metadata = table.schema.field(name).metadata
        assert metadata[b"meaning"] and metadata.keys() == {b"unit", b"source", b"meaning"}, name
        for value, text in zip(
            table[name].to_pylist(), (row[name] for row in expected), strict=True
        ):
            if kind == "string":
                assert value == text, name
            elif name == "utc":
                assert value == datetime.fromisoformat(text.replace("Z", "+00:00"))
            else:
                assert value == (float(text) if text else None), name
    assert {str(kind) for kind in table.schema.types} == {
        "double", "int64", "string", "timestamp[ms, tz=UTC]"
    }  # fmt: skip
    assert table.schema.metadata[b"iopstui.file"] == b"runs.jsonl"
    write_report([path], "parquet", ReportOptions(True), hidden := io.BytesIO())
    bare = pyarrow.parquet.read_table(hidden)
    assert {*bare["host"].to_pylist()} == {"", "host 1", "host 2"}
    assert bare.schema.metadata[b"iopstui.file"] == b"redacted"


def test_no_name_of_a_host_is_a_formula_or_breaks_a_row(tmp_path: Path) -> None:
    names = ["=cmd|'/c calc'!A0", "+1", "-1", "@x", 'a,"b"', "c\nd", "ends\r\n", "e;f", " ", "ü"]
    rows = [frame(name, second, 10, FAST) for second in range(3) for name in names]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found_rows = csv_rows(path)
    assert len(found_rows) == 3 * (1 + len({row["host"] for row in found_rows if row["host"]}))
    cells = [row[name] for row in found_rows for name in ("host", "slowest", "missing")]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    # a host without a name gets the file's name
    assert {"x", 'a,"b"', "c d", "ends", "e;f", "ü", "'=cmd|'/c calc'!A0"} <= {*cells}


def test_lines_left_out_of_a_table_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_recording(tmp_path)
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    no_time = json.dumps({**frame("b", 9, 1, FAST), "wall_ms": "x"}) + "\n"
    path.write_text("".join(lines[:-1]) + no_time + text[: len(lines[0]) + 20])
    for out in ("x.csv", "x.parquet"):
        assert report([str(path)], str(tmp_path / out)) == 0
        stderr = capsys.readouterr().err
        assert (
            "left out: 1 line that iopstui did not write" in stderr and "not read: lines" in stderr
        )
        assert "no end seen: b" in stderr
        assert report([str(path)], str(tmp_path / out), options=ReportOptions(redact=True)) == 0
        assert "no end seen: host 2" in capsys.readouterr().err
    assert "not read" in rendered([path], "md")
    path.write_text(text + text)
    rendered([path], "csv")
    assert "counted once: 7 seconds of hosts in the file twice" in capsys.readouterr().err
    # starts are not counted twice
    assert "within 4.5 ms on 2 hosts" in rendered([path], "md")


def test_a_clock_that_is_ahead_is_corrected(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for host, ahead in (("a", 0.0), ("b", 7000.0)):
        rows += [{"event": "session", "host": host},
                 {"event": "executed", "host": host, "wall_ms": START_MS + ahead,
                  "offset_ms": ahead, "error_ms": 0.5}]  # fmt: skip
    for second in range(4):
        late = frame("b", second, 50, SLOW)
        rows += [frame("a", second, 100, FAST), {**late, "wall_ms": late["wall_ms"] + 7000}]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [row.counted for row in load_fleet_report(path).seconds] == [2] * 4


class FullDisk(io.BytesIO):
    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_full_disk_raises_and_leaves_the_stream_open(kind: str, tmp_path: Path) -> None:
    out = FullDisk()
    with pytest.raises(OSError, match="No space left"):
        write_report([write_recording(tmp_path)], kind, DEFAULT_OPTIONS, out)
    assert not out.closed


def add_devices(path: Path) -> Path:
    """Add a disk to each host and a probe to host b."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    none = {"ios": 0, "bins": {}}
    for row in rows:
        if row["event"] == "frame":
            row["kernel"] = {"total": {
                "r/s": 80.0, "w/s": 1.0, "aqu-sz": 2.0, "util": 40.0 if row["host"] == "a" else 90.0
            }}  # fmt: skip
        if row["event"] == "frame" and row["host"] == "b":
            reads = {"ios": 7, "bins": {str(SLOW): 7}}
            row["device"] = {"seconds": 1.0, "read": reads, "write": none, "discard": none,
                             "missed": 0.0, "skipped": 0, "lost": 0, "full": 0}  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_page_has_charts_of_the_devices(tmp_path: Path) -> None:
    path = add_devices(write_recording(tmp_path))
    page = rendered([path], "html")
    xml.dom.minidom.parseString(page)
    assert page.count("<svg") == 5 + 4
    for title in ("kernel", "(aqu-sz)", "util of the hosts", "Device latency from the probes"):
        assert escape(title) in page
    seconds = json.loads(rendered([path], "json"))["seconds"]
    assert [row["kernel"]["r/s"] for row in seconds] == [160, 160, 80, 160]
    assert seconds[0]["util"] == {"highest": 90.0, "middle": 65.0}
    assert seconds[2]["util"] == {"highest": 40.0, "middle": 40.0}
    # the heat map has every request of the probe once
    row = floor(log10(SLOW) * HEAT_ROWS_PER_DECADE)
    assert load_fleet_report(path).device_heat.cells == {(0, row): 7, (1, row): 7, (3, row): 7}
    rows = csv_rows(path)
    row_of = {(row["t"], row["host"]): row for row in rows}
    assert [row_of["0.0", host]["kernel.util"] for host in ("", "a", "b")] == ["", "40.0", "90.0"]
    assert [row_of["0.0", host]["device.read.ios"] for host in ("", "a", "b")] == ["7", "", "7"]


def test_bytes_of_devices_without_a_job_are_counted_like_iostat(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"event": "session", "host": "a"}]
    rates = {"r/s": 10.0, "w/s": 0.0, "rMB/s": 3.0, "wMB/s": 0.5, "aqu-sz": 1.0, "in-flight": 1}
    for second in range(3):
        rows.append({"event": "frame", "host": "a", "t": second + 1.0, "flags": [], "fio": None,
                     "wall_ms": START_MS + (second + 1) * 1000, "seconds": 1.0,
                     "kernel": {"total": rates}})  # fmt: skip
    path = tmp_path / "watched.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    # iostat's MB are 1024 * 1024 bytes
    assert "| 3.50 |" in rendered([path], "md")


def test_probed_devices_have_rows(tmp_path: Path) -> None:
    path, none = write_recording(tmp_path), {"ios": 0, "bins": {}}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert "device" not in rendered([path], "md")
    for row in rows:
        if row["event"] == "frame" and row["host"] == "b":
            reads = {"ios": 7, "bins": {str(SLOW): 7}}
            row["device"] = {"seconds": 1.0, "read": reads, "write": none, "discard": none,
                             "missed": 0.0, "skipped": 0, "lost": 0, "full": 0}  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "| device read (1 of 2 hosts) | 7.00 | – |" in rendered([path], "md")
    assert "device read (1 of 2 hosts)" in rendered([path], "html")
    document = json.loads(rendered([path], "json"))
    check(document, "document.fleet_report")
    device = document["device"]
    assert (device["hosts"], device["read"]["ios"], device["read"]["p50"]) == (1, 21, SLOW)


def test_the_page_escapes_host_names(tmp_path: Path) -> None:
    page = rendered([write_recording(tmp_path, {"event": "session", "host": "<script>"})], "html")
    xml.dom.minidom.parseString(page)
    assert page.count("<svg") == 5 and "<script>" not in page
    assert "Latency of every I/O of all hosts" in page


@pytest.mark.parametrize("kind", ["md", "html", "csv", "json"])
def test_a_redacted_report_names_no_host(kind: str, tmp_path: Path) -> None:
    rows = [frame("secret-7", n, 10, FAST) for n in range(3)]
    path = write_recording(tmp_path, *rows, finished("secret-7", 30, "/srv/secret is gone"))
    assert "secret" in rendered([path], "md")
    text = rendered([path], kind, ReportOptions(redact=True))
    assert "secret" not in text and "/dev/sdb" not in text and path.name not in text


def two_runs(place: Path) -> Path:
    """Two runs: one of host a, and 10 s later one of a and b, which start 4 s apart; the file has
    no end."""
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


def test_the_first_screen_of_several_runs_has_their_range_and_outcomes(tmp_path: Path) -> None:
    lines = two_runs(tmp_path).read_text().splitlines()
    missed = {"event": "fleet_over", "host": "fleet", "how": "done", "code": 4,
              "said": ["FAIL  iops>=300: 200 1/s"]}  # fmt: skip
    path = tmp_path / "judged.jsonl"
    path.write_text("\n".join([*lines, json.dumps(missed)]) + "\n")
    overview = json.loads(rendered([path], "json"))["overview"]
    assert overview["measured"] == (
        "fio ran 2 times on up to 2 hosts: from 100 IOPS (run 1) to 200 IOPS (run 2)."
    )  # fmt: skip
    assert (overview["state"], overview["reason"]) == ("critical", "2 of 2 expectations not met")
    assert overview["compared"] == "Run 1: FAIL iops>=300: a."


def test_each_of_several_runs_has_a_row(tmp_path: Path) -> None:
    path = two_runs(tmp_path)
    text = rendered([path], "md")
    assert [line.split(" | ")[0:4] + line.split(" | ")[8:] for line in text.splitlines()
            if "secret" in line] == [
        ["| 1", "/srv/secret.fio", "1/1", "100", "done; FAIL iops>=300: a |"],
        ["| 2", "/srv/secret.fio", "2/2", "200", "not seen |"],
    ]  # fmt: skip
    # within a run, not across runs
    assert "fio started within 4001.0 ms on 2 hosts (4000.0 ms by" in text
    document = json.loads(rendered([path], "json"))
    check(document, "document.fleet_report")
    runs = document["runs"]
    assert [run["fio"]["read"]["ios"] for run in runs] == [300, 600]
    assert "<h2>Runs</h2>" in rendered([path], "html")
    for kind in ("md", "html", "json"):
        hidden = rendered([path], kind, ReportOptions(redact=True))
        assert "secret" not in hidden and "300: a" not in hidden


def test_rows_are_as_long_as_the_hosts_samples(tmp_path: Path) -> None:
    path = tmp_path / "two"
    rows = [frame("a", 2 * n, 100, FAST, 2.0) for n in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert interval_of(path) == 2.0
    assert [row.rates["read"] for row in load_fleet_report(path).seconds] == [50, 50, 50]


def test_other_files_are_no_fleet_recording(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text in (b"", b"\xff\xfe", b'{"fio version": "3.33"}\n', b"[1]\n", b"{" * 100_000):
        path.write_bytes(text)
        assert not is_fleet(path)
    assert not is_fleet(tmp_path) and not is_fleet(tmp_path / "none")
    path.write_text('{"event": "session"}\n')
    with pytest.raises(UsageError, match="but no frames"):
        rendered([path], "md")
    with pytest.raises(UsageError, match="cannot be combined"):
        rendered([write_recording(tmp_path), path], "md")


def test_host_labels_of_launchers_are_ignored(tmp_path: Path) -> None:
    """clush and srun -l label each line with its host."""
    path = write_recording(tmp_path)
    labelled = tmp_path / "clush"
    labelled.write_text("".join(f"a: {line}\n" for line in path.read_text().splitlines()))
    assert is_fleet(labelled)
    document, labelled_document = (
        json.loads(rendered([file], "json")) for file in (path, labelled)
    )
    assert (
        document["hosts"] == labelled_document["hosts"]
        and document["seconds"] == labelled_document["seconds"]
    )


@pytest.mark.parametrize("kind", ["md", "csv"])
def test_a_file_with_only_invalid_frames_is_refused(kind: str, tmp_path: Path) -> None:
    wrong = frame("a", 0, 100, FAST)
    wrong["fio"]["read"]["ios"] = "many"
    path = tmp_path / "wrong.jsonl"
    path.write_text("".join(json.dumps({**wrong, "t": n + 1.0}) + "\n" for n in range(3)))
    with pytest.raises(UsageError, match=r"but no frames.*3 lines"):
        rendered([path], kind)


def test_ios_missing_from_the_rows_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = frame("a", 4, 7, FAST)
    last |= {"t": 4.25, "wall_ms": START_MS + 4750, "seconds": 0.25}
    last["fio"]["seconds"] = 0.25
    path = write_recording(tmp_path, last)
    sum_rows = [row for row in csv_rows(path) if not row["host"]]
    assert sum(float(row["fio.total.ios"] or 0) for row in sum_rows) == 550
    assert "7 I/Os are not in the rows" in capsys.readouterr().err
    document = json.loads(rendered([path], "json"))
    assert document["fio"]["total"]["ios"] == 557


def test_a_pipe_is_not_opened_to_detect_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def waits(*_: object) -> None:
        pytest.fail("it would wait for a writer")

    monkeypatch.setattr(Path, "open", waits)
    assert not is_fleet(pipe)


def test_a_long_run_has_wider_columns() -> None:
    heat = FleetHeat()
    for place in range(10_000):
        heat.add(place, [{FAST: 1}])
    assert heat.columns <= 240 and sum(heat.cells.values()) == 10_000
    assert heat.columns * heat.width >= 10_000
