"""`iopstui fleet` from its command line to its totals, with processes of this machine as hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from program import ROOT, UNHURRIED, events, iopstui
from screen import screen

from iopstui.features.fleet.merging.sums import from_wire

LAUNCHER = f"{sys.executable} {ROOT / 'tests' / 'helpers' / 'far_host.py'} {{host}}"
JOB = ("--job", "randread-4k", "--size", "4m", *UNHURRIED)
# about 400 writes/s all the time; with rate_iops fio busy-waits
PACED = ("--set", "thinktime=10000", "--set", "thinktime_blocks=4",
         "--set", "clocksource=clock_gettime", "--set", "disk_util=0")  # fmt: skip
# the program installed on this machine; two tests send it to the hosts, which takes 0.4 s of CPU
# time for each host
INSTALLED = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def fleet(place: Path, *args: str, runtime: int = 3, **more: str
          ) -> subprocess.CompletedProcess[str]:  # fmt: skip
    return iopstui("fleet", *args, "--launcher", LAUNCHER, *JOB, "--set",
                   f"runtime={runtime}", cwd=place, TMPDIR=str(place.parent),
                   XDG_RUNTIME_DIR=str(place.parent / "run"), **INSTALLED, **more)  # fmt: skip


def make_dirs(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    place = tmp_path / "place"
    place.mkdir()
    return place


def find_leftovers(tmp_path: Path) -> list[str]:
    """List files and processes that the hosts left behind."""
    leftovers = [
        str(path) for path in (*(tmp_path / "run").iterdir(), *(tmp_path / "place").iterdir())
    ]
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(tmp_path) and "FAR_HOST" in process.environ():
                leftovers.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return leftovers


def test_two_hosts_start_together_and_their_totals_equal_fio_s(tmp_path: Path) -> None:
    place = make_dirs(tmp_path)
    result = fleet(place, "h[1-2]", str(place), "--bring", "--format", "jsonl",
                   "--expect", "each.iops>=1", "--record", str(tmp_path / "all.jsonl"))  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = events(result.stdout)
    executed = [row for row in rows if row["event"] == "executed"]
    assert {row["host"] for row in executed} == {"h1", "h2"}
    assert all(row["error_ms"] is not None and row["late_ms"] >= 0 for row in executed)
    assert max(row["late_ms"] for row in executed) < 10_000
    (merged,) = [row for row in rows if row["event"] == "merged"]
    assert merged["hosts"]["finished"] == 2 and merged["count"]["exact"] == 2
    assert merged["count"]["ios"] == merged["count"]["fio_ios"] > 0
    assert any(row["hosts"]["counted"] == 2 for row in rows if row["event"] == "total")
    assert "PASS  each.iops >= 1" in result.stderr
    assert "are one machine under" in result.stderr
    assert find_leftovers(tmp_path) == []
    merge_result = iopstui("merge", str(tmp_path / "all.jsonl"), "--format", "jsonl", cwd=place)
    (remerged,) = [row for row in events(merge_result.stdout) if row["event"] == "merged"]
    assert remerged["count"] == merged["count"] and remerged["fio"] == merged["fio"]


def data_range(path: Path) -> tuple[int, int]:
    """Where the data (not holes) of a file begins and ends."""
    with path.open("rb") as file:
        begin = end = file.seek(0, os.SEEK_DATA)
        while True:
            hole = file.seek(end, os.SEEK_HOLE)
            try:
                end = file.seek(hole, os.SEEK_DATA)
            except OSError:
                return begin, hole


def test_each_host_writes_its_own_part_and_all_stop_when_steady(tmp_path: Path) -> None:
    place = make_dirs(tmp_path)
    destroy = []
    for host in ("h1", "h2"):
        # both hosts are this machine, where two of them cannot open the same file, so each gets its
        # own
        (place / host).mkdir()
        with (place / host / "data").open("wb") as file:
            file.truncate(32 << 20)
        destroy += ["--destroy-data", f"{host}:{place / host / 'data'}"]
    launcher = f"sh -c 'cd {place}/{{host}} && exec {LAUNCHER} \"$0\"'"
    result = iopstui("fleet", "h[1-2]", "data", "--split", "--rotate", "--launcher", launcher,
                     "--job", "randwrite-4k", *destroy, *PACED,
                     "--interval", "0.25", "--until-steady", "0.5s", "--format", "jsonl", cwd=place,
                     TMPDIR=str(tmp_path), XDG_RUNTIME_DIR=str(tmp_path / "run"),
                     **INSTALLED)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "all hosts are stopped: steady after" in result.stderr
    (merged,) = [row for row in events(result.stdout) if row["event"] == "merged"]
    assert (merged["hosts"]["finished"], merged["count"]["exact"]) == (2, 2)
    begin, end = data_range(place / "h1" / "data")
    assert 16 << 20 <= begin < end <= 32 << 20
    begin, end = data_range(place / "h2" / "data")
    assert 0 <= begin < end <= 16 << 20


def test_device_percentiles_merge_the_requests_of_both_hosts(tmp_path: Path) -> None:
    if os.geteuid() or not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("the probe's own programs need root and a kernel that describes its types")
    place = make_dirs(tmp_path)
    if not os.major(place.stat().st_dev):
        pytest.skip("no block device is under these files")
    record = str(tmp_path / "all.jsonl")
    result = fleet(place, "h[1-2]", str(place), "--probe", "--format", "jsonl", "--record", record,
                   "--expect", "each.device.read.p50>=1ns", runtime=2)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "PASS  each.device.read.p50 >= 1 ns" in result.stderr
    (merged,) = [row for row in events(result.stdout) if row["event"] == "merged"]
    assert merged["device"]["hosts"] == 2
    rows = map(json.loads, Path(record).read_text().splitlines())
    frames = [row for row in rows if row["event"] == "frame"]
    # no total includes seconds without a new report of fio, or whose length fio does not report
    counted_frames = [row for row in frames if row["fio"] and row["fio"]["seconds"]]
    counted_frames = [row for row in counted_frames if row["device"]]
    counted_frames = [row for row in counted_frames if row["kernel"]["total"]]
    bins: dict[int, int] = {}
    for row in counted_frames:
        for key, count in from_wire(row["device"]["read"]["packed"]).items():
            bins[key] = bins.get(key, 0) + count
    assert {int(key): n for key, n in merged["device"]["read"]["bins"].items()} == bins
    # /proc/diskstats counts the same requests, but is read a moment earlier: on a busy machine up
    # to 200 ms of these two seconds
    reads = sum(row["kernel"]["total"]["reads"] for row in counted_frames)
    assert sum(bins.values()) == pytest.approx(reads, abs=0.25 * reads + 50)
    merge_result = iopstui("merge", record, "--format", "jsonl", cwd=place)
    (remerged,) = [row for row in events(merge_result.stdout) if row["event"] == "merged"]
    assert remerged["device"] == merged["device"]


def test_no_host_starts_unless_all_are_ready(tmp_path: Path) -> None:
    place = make_dirs(tmp_path)
    poor = tmp_path / "poor"
    poor.mkdir()
    script = tmp_path / "launch"
    script.write_text(f'#!/bin/sh\n[ "$1" = h2 ] && PATH={poor}\nexec {LAUNCHER.format(host="$1")} '
                      '"$2"\n')  # fmt: skip
    script.chmod(0o755)
    (poor / "sh").symlink_to("/bin/sh")
    args = ("h[1-2]", str(place), "--launcher", f"{script} {{host}}", *JOB)
    result = iopstui("fleet", *args, "--bring", cwd=place, XDG_RUNTIME_DIR=str(tmp_path / "run"))
    assert result.returncode == 5, result.stderr
    assert "h2: it lacks python3" in result.stderr
    assert "1 of 2 hosts are ready, so none was started" in result.stderr
    assert result.stdout == "" and find_leftovers(tmp_path) == []


def test_a_sweep_over_the_number_of_hosts(tmp_path: Path) -> None:
    record = tmp_path / "curve.jsonl"
    place = make_dirs(tmp_path)
    result = fleet(place, "h[1-2]", str(place), "--axis", "hosts=1,2", "--format", "jsonl",
                   "--min-hosts", "2", "--expect", "each.iops<=0", "--record", str(record),
                   runtime=1)  # fmt: skip
    assert result.returncode == 4, result.stderr
    rows = events(result.stdout)
    first, second = (row["point"] for row in rows if row["event"] == "point_finished")
    (law,) = (row for row in rows if row["event"] == "scaling")
    assert first["met"] is second["met"] is False
    assert "hosts=1: FAIL  each.iops <= 0" in result.stderr
    assert "the worst of 2 hosts; not met by h1, h2" in result.stderr
    assert (first["hosts"], second["hosts"]) == (1, 2) and first["linear"] == 1.0
    each = second["iops_by_host"]
    assert set(first["iops_by_host"]) == {"h1"} and set(each) == {"h1", "h2"}
    assert sum(each.values()) == pytest.approx(second["iops"], rel=1e-6)
    assert law["points"] == [[1, first["iops"]], [2, second["iops"]]]
    assert "needs 4 points" in law["doubt"] and law["knee"] is None
    assert find_leftovers(tmp_path) == []
    report = iopstui("report", str(record), "--format", "json", cwd=place)
    runs = json.loads(report.stdout)["runs"]
    assert [(run["hosts"], run["finished"], run["how"]) for run in runs] == [
        (1, 1, "done"), (2, 2, "done")
    ]  # fmt: skip
    figures = [run["fio"]["total"]["iops"] for run in runs]
    assert figures == [first["iops"], second["iops"]]
    assert runs[1]["said"][0].startswith("FAIL each.iops <= 0")


def test_the_fleet_screen_leaves_nothing_behind(tmp_path: Path) -> None:
    place = make_dirs(tmp_path)
    args = ("fleet", "h[1-2]", str(place), "--launcher", LAUNCHER, *JOB, "--set",
            "runtime=60", "--record", str(tmp_path / "all.jsonl"))  # fmt: skip
    more = {"TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), **INSTALLED}
    with screen(place, *args, **more) as terminal:
        terminal.wait_for_text("2 of 2 hosts")
        terminal.wait_for_text("started within")
        terminal.type(b"\r")
        # the opened host sends its CPU figures now
        terminal.wait_for_text("BLOCK/s")
        before = terminal.text.count("last minute")
        terminal.type(b"\x1b")
        terminal.wait_until(lambda: terminal.text.count("last minute") > before)
        terminal.type(b"q")
        assert terminal.end() == 0
        assert "2 interrupted: h1, h2" in terminal.text
    assert find_leftovers(tmp_path) == []
    with screen(place, "replay", str(tmp_path / "all.jsonl"), "--speed", "100") as terminal:
        # the message has no figures if no second was complete by then
        terminal.wait_until(lambda: re.search("run 1 (was )?stopped", terminal.text))
        terminal.type(b"q")
        assert terminal.end() == 0
