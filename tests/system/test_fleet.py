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

from iopstui.fleet.merging.packed_histogram import from_wire, unpack

LAUNCHER = f"{sys.executable} {ROOT / 'tests' / 'helpers' / 'far_host.py'} {{host}}"
JOB = ("--job", "randread-4k", "--size", "4m", *UNHURRIED)


def fleet(place: Path, *words: str, runtime: int = 3, **more: str
          ) -> subprocess.CompletedProcess[str]:  # fmt: skip
    return iopstui("fleet", *words, "--launcher", LAUNCHER, "--bring", *JOB, "--set",
                   f"runtime={runtime}", cwd=place, TMPDIR=str(place.parent),
                   XDG_RUNTIME_DIR=str(place.parent / "run"), **more)  # fmt: skip


def made(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    place = tmp_path / "place"
    place.mkdir()
    return place


def left(tmp_path: Path) -> list[str]:
    """Processes of the hosts, and files of theirs."""
    found = [str(path) for path in (*(tmp_path / "run").iterdir(), *(tmp_path / "place").iterdir())]
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(tmp_path) and "FAR_HOST" in process.environ():
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def test_two_hosts_start_together_and_their_sums_are_fio_s(tmp_path: Path) -> None:
    place = made(tmp_path)
    done = fleet(place, "h[1-2]", str(place), "--format", "jsonl", "--expect", "each.iops>=1",
                 "--record", str(tmp_path / "all.jsonl"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = events(done.stdout)
    begun = [row for row in rows if row["event"] == "executed"]
    assert {row["host"] for row in begun} == {"h1", "h2"}
    assert all(row["error_ms"] is not None and row["late_ms"] >= 0 for row in begun)
    assert max(row["late_ms"] for row in begun) < 1000
    (whole,) = [row for row in rows if row["event"] == "merged"]
    assert whole["hosts"]["finished"] == 2 and whole["count"]["exact"] == 2
    assert whole["count"]["ios"] == whole["count"]["fio_ios"] > 0
    assert any(row["hosts"]["counted"] == 2 for row in rows if row["event"] == "total")
    assert "PASS  each.iops>=1" in done.stderr
    assert "are one machine under" in done.stderr
    assert left(tmp_path) == []
    again = iopstui("merge", str(tmp_path / "all.jsonl"), "--format", "jsonl", cwd=place)
    (same,) = [row for row in events(again.stdout) if row["event"] == "merged"]
    assert same["count"] == whole["count"] and same["fio"] == whole["fio"]


def written(path: Path) -> tuple[int, int]:
    """Begin and end of what is not a hole in a file."""
    with path.open("rb") as file:
        begin = end = file.seek(0, os.SEEK_DATA)
        while True:
            hole = file.seek(end, os.SEEK_HOLE)
            try:
                end = file.seek(hole, os.SEEK_DATA)
            except OSError:
                return begin, hole


def test_each_host_writes_its_part_alone_and_all_end_when_steady(tmp_path: Path) -> None:
    place = made(tmp_path)
    destroy = []
    for host in ("h1", "h2"):
        # one machine can't be two that have a file open: here each host has its own
        (place / host).mkdir()
        with (place / host / "data").open("wb") as file:
            file.truncate(32 << 20)
        destroy += ["--destroy-data", f"{host}:{place / host / 'data'}"]
    launcher = f"sh -c 'cd {place}/{{host}} && exec {LAUNCHER} \"$0\"'"
    done = iopstui("fleet", "h[1-2]", "data", "--split", "--rotate", "--launcher", launcher,
                   "--bring", "--job", "randwrite-4k", *destroy, "--set", "rate_iops=400",
                   "--interval", "0.25", "--until-steady", "0.5s", "--format", "jsonl", cwd=place,
                   TMPDIR=str(tmp_path), XDG_RUNTIME_DIR=str(tmp_path / "run"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "all hosts are stopped: steady after" in done.stderr
    (whole,) = [row for row in events(done.stdout) if row["event"] == "merged"]
    assert (whole["hosts"]["finished"], whole["count"]["exact"]) == (2, 2)
    begin, end = written(place / "h1" / "data")
    assert 16 << 20 <= begin < end <= 32 << 20
    begin, end = written(place / "h2" / "data")
    assert 0 <= begin < end <= 16 << 20


def test_the_device_s_percentiles_are_of_the_requests_of_both_hosts(tmp_path: Path) -> None:
    if os.geteuid() or not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("the probe's own programs need root and a kernel that describes its types")
    place = made(tmp_path)
    if not os.major(place.stat().st_dev):
        pytest.skip("no block device is under these files")
    record = str(tmp_path / "all.jsonl")
    done = fleet(place, "h[1-2]", str(place), "--probe", "--format", "jsonl", "--record", record,
                 "--expect", "each.device.read.p50>=1ns", runtime=2)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "PASS  each.device.read.p50>=1ns" in done.stderr
    (whole,) = [row for row in events(done.stdout) if row["event"] == "merged"]
    assert whole["device"]["hosts"] == 2
    rows = map(json.loads, Path(record).read_text().splitlines())
    frames = [row for row in rows if row["event"] == "frame"]
    counted = [row for row in frames if row["device"] and row["kernel"]["total"]]
    bins: dict[int, int] = {}
    for row in counted:
        for key, count in unpack(from_wire(row["device"]["read"]["packed"])).items():
            bins[key] = bins.get(key, 0) + count
    assert {int(key): n for key, n in whole["device"]["read"]["bins"].items()} == bins
    # /proc/diskstats counts the same requests, read a moment before: some 50 ms of these two
    # seconds on a busy machine, whose other work comes and goes
    reads = sum(row["kernel"]["total"]["reads"] for row in counted)
    assert sum(bins.values()) == pytest.approx(reads, abs=0.1 * reads + 10)
    again = iopstui("merge", record, "--format", "jsonl", cwd=place)
    (same,) = [row for row in events(again.stdout) if row["event"] == "merged"]
    assert same["device"] == whole["device"]


def test_none_starts_unless_all_are_ready(tmp_path: Path) -> None:
    place = made(tmp_path)
    poor = tmp_path / "poor"
    poor.mkdir()
    script = tmp_path / "launch"
    script.write_text(f'#!/bin/sh\n[ "$1" = h2 ] && PATH={poor}\nexec {LAUNCHER.format(host="$1")} '
                      '"$2"\n')  # fmt: skip
    script.chmod(0o755)
    (poor / "sh").symlink_to("/bin/sh")
    words = ("h[1-2]", str(place), "--launcher", f"{script} {{host}}", *JOB)
    done = iopstui("fleet", *words, "--bring", cwd=place, XDG_RUNTIME_DIR=str(tmp_path / "run"))
    assert done.returncode == 5, done.stderr
    assert "h2: it lacks python3" in done.stderr
    assert "1 of 2 hosts are ready, so none was started" in done.stderr
    assert done.stdout == "" and left(tmp_path) == []


def test_a_curve_over_more_and_more_hosts(tmp_path: Path) -> None:
    record = tmp_path / "curve.jsonl"
    place = made(tmp_path)
    done = fleet(place, "h[1-2]", str(place), "--axis", "hosts=1,2", "--format", "jsonl",
                 "--min-hosts", "2", "--expect", "each.iops<=0", "--record", str(record),
                 runtime=1)  # fmt: skip
    assert done.returncode == 4, done.stderr
    one, two, law = events(done.stdout)
    assert one["met"] is two["met"] is False
    assert "hosts=1: FAIL  each.iops<=0" in done.stderr
    assert "at the worst; not met by h1, h2" in done.stderr
    assert (one["hosts"], two["hosts"]) == (1, 2) and one["linear"] == 1.0
    assert set(one["each"]) == {"h1"} and set(two["each"]) == {"h1", "h2"}
    assert sum(two["each"].values()) == pytest.approx(two["iops"], rel=1e-6)
    assert law["points"] == [[1, one["iops"]], [2, two["iops"]]]
    assert "needs 4 points" in law["doubt"] and law["knee"] is None
    assert left(tmp_path) == []
    told = iopstui("report", str(record), "--format", "json", cwd=place)
    runs = json.loads(told.stdout)["runs"]
    assert [(run["hosts"], run["finished"], run["how"]) for run in runs] == [
        (1, 1, "done"), (2, 2, "done")
    ]  # fmt: skip
    figures = [run["fio"]["total"]["iops"] for run in runs]
    assert figures == [one["iops"], two["iops"]]
    assert runs[1]["said"][0].startswith("FAIL each.iops<=0")


def test_on_a_terminal_it_is_a_screen_that_leaves_nothing(tmp_path: Path) -> None:
    place = made(tmp_path)
    words = ("fleet", "h[1-2]", str(place), "--launcher", LAUNCHER, "--bring", *JOB, "--set",
             "runtime=60", "--record", str(tmp_path / "all.jsonl"))  # fmt: skip
    more = {"TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    with screen(place, *words, **more) as shown:
        shown.shows("2 of 2 hosts")
        shown.shows("started within")
        shown.type(b"\r")
        # it sends its CPUs now
        shown.shows("BLOCK/s")
        before = shown.words.count("last minute")
        shown.type(b"\x1b")
        shown.until(lambda: shown.words.count("last minute") > before)
        shown.type(b"q")
        assert shown.end() == 0
        assert "2 interrupted: h1, h2" in shown.words
    assert left(tmp_path) == []
    with screen(place, "replay", str(tmp_path / "all.jsonl"), "--speed", "100") as shown:
        # without figures, if no second was whole by then
        shown.until(lambda: re.search("run 1 (was )?stopped", shown.words))
        shown.type(b"q")
        assert shown.end() == 0
