"""`iopstui run` with real fio: its figures equal those of fio and the kernel."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from program import UNHURRIED, events, iopstui

from iopstui.fio.library import job_paths
from iopstui.model.histogram import bucket_bounds


@pytest.mark.alone
def test_the_device_counts_what_fio_does(loop: Path, workdir: Path) -> None:
    # if the machine stalls during the first I/O, the kernel part of the first frame starts later
    # than fio's
    for _ in range(5):
        frames, total = run_and_reconcile(workdir, str(loop))
        if frames[0]["seconds"] >= frames[0]["fio"]["seconds"] - 0.04:
            break
    by_device = sum(frame["kernel"]["disks"][loop.name]["reads"] for frame in frames)
    assert by_device == pytest.approx(total, rel=0.02)


@pytest.mark.alone
def test_a_run_beside_another_program_says_how_much_is_not_its_own(
    loop: Path, workdir: Path, fio: str
) -> None:
    rate = 40 << 20
    other = subprocess.Popen(
        [fio, "--name=other", f"--filename={loop}", "--rw=randread", "--bs=64k", "--direct=1",
         "--readonly", "--time_based", "--runtime=60", f"--rate={rate}", "--eta=never",
         "--thread"],
        # pytest's files would be further files of it, on another disk
        cwd=workdir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        result = iopstui(
            "run", str(loop), "--job", "randread-4k", "--set", "runtime=3", "--set",
            "rate_iops=2000", "--format", "jsonl", cwd=workdir,
        )  # fmt: skip
    finally:
        other.kill()
        other.wait()
    assert result.returncode == 0, result.stderr
    (ended,) = [line for line in events(result.stdout) if line["event"] == "step_finished"]
    (said, *_) = ended["disturbed"]
    parts = re.fullmatch(
        rf"others did at least ([\d.]+) MiB of ([\d.]+) MiB a second on {loop.name}"
        rf" \((reads; )?most of it: fio {other.pid}\)", said,
    )  # fmt: skip
    assert parts is not None, said
    others, total = float(parts[1]), float(parts[2])
    assert 30 <= others <= 40.5 and total == pytest.approx(40 + 2000 * 4 / 1024, rel=0.1)
    alone = iopstui("run", str(loop), "--job", "randread-4k", "--set", "runtime=2", "--set",
                    "rate_iops=2000", "--format", "jsonl", cwd=workdir)  # fmt: skip
    (ended,) = [line for line in events(alone.stdout) if line["event"] == "step_finished"]
    assert not [text for text in ended["disturbed"] if "others did" in text]


def test_frames_add_up_to_fio_s_total(workdir: Path) -> None:
    run_and_reconcile(workdir)


def run_and_reconcile(workdir: Path, *target: str) -> tuple[list[dict[str, Any]], int]:
    result = iopstui(
        "run", *target, "--job", "randread-4k", "--set", "runtime=3", "--size", "16m",
        "--io-log", "--format", "jsonl", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    lines = events(result.stdout)
    assert lines[0]["event"] == "session" and lines[0]["schema"] == 1
    frames = [line for line in lines if line["event"] == "frame" and line["fio"]]
    assert len(frames) == 4, "one a second, and the short last one"
    final = next(line for line in lines if line["event"] == "step_finished")["summary"]
    total = final["rows"][0]["directions"]["read"]
    assert sum(frame["fio"]["read"]["ios"] for frame in frames) == total["total_ios"]
    assert sum(frame["fio"]["read"]["bytes"] for frame in frames) == total["io_bytes"]
    bins = sum(count for frame in frames for count in frame["fio"]["read"]["bins"].values())
    assert bins == total["completed"]
    slow = final["slowest_ios"]
    assert slow["ios"] == total["completed"]
    assert slow["slowest"][0]["latency_ns"] == total["lat_max_ns"]
    assert list(workdir.iterdir()) == [], "the scratch file is gone"
    return frames, total["total_ios"]


def test_percentiles_agree_with_fio_s_own_log_of_every_io(workdir: Path) -> None:
    logs = workdir.parent / "log"
    result = iopstui(
        "run", "--job", "randread-4k", "--set", "runtime=2", "--set", "iodepth=8",
        "--set", "thinktime=50ms", "--set", "thinktime_blocks=500",
        "--set", f"write_lat_log={logs}", "--size", "64m", "--format", "jsonl", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    frames = [line["fio"]["read"] for line in events(result.stdout)
              if line["event"] == "frame" and line["fio"]]  # fmt: skip
    file = next(logs.parent.glob("log_clat*.log"))
    latencies = [int(line.split(",")[1]) for line in file.read_text().splitlines()]
    assert len(latencies) == sum(frame["ios"] for frame in frames)
    position = 0
    for frame in frames:
        window = sorted(latencies[position : position + frame["ios"]])
        position += frame["ios"]
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)):
            exact = window[max(0, -(-int(len(window) * share * 1000) // 1000) - 1)]
            # the counters are not read at one instant, so a few I/Os may be counted on either side
            neighbours = window[
                max(0, int(len(window) * share) - 40) : int(len(window) * share) + 40
            ]
            low, high = bucket_bounds(frame["clat"][name])
            inside = any(low <= value <= high for value in neighbours)
            assert inside or frame["clat"][name] == pytest.approx(exact, rel=1 / 128), name


def test_waiting_times_add_up(workdir: Path) -> None:
    """Reads from the page cache by more jobs than one CPU can serve: many wait for the CPU until
    the end, however slow the disk is."""
    result = iopstui(
        "run", "--job", "randread-4k", "--set", "runtime=1", "--set", "numjobs=8", "--set",
        "iodepth=1", "--set", "cpus_allowed=0", "--set", "direct=0", "--size", "4m", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    (line,) = re.findall(r"^In flight ([0-9.]+): (.+)$", result.stdout, re.M)
    places = {
        name: float(value) for name, value in re.findall(r"([^,]+?) ([0-9.]+)(?:, |$)", line[1])
    }
    assert "waiting for a CPU" in places
    assert sum(places.values()) == pytest.approx(float(line[0]), abs=0.06 * len(places))


def test_a_group_of_different_sections_counts_their_common_fields(workdir: Path) -> None:
    """fio prints only the last section's options in a group's row; the job file has those of
    both."""
    (workdir / "two.fio").write_text(
        "[global]\nioengine=null\nrw=read\nsize=16m\ntime_based\nruntime=1\ngroup_reporting\n"
        "gtod_reduce=1\nrate_iops=2000\n[big]\nbs=64k\n[small]\nbs=4k\n"
    )
    result = iopstui("run", ".", "--job", "two.fio", "--format", "jsonl", cwd=workdir)
    assert result.returncode == 0, result.stderr
    rows = events(result.stdout)
    frames = [row for row in rows if row["event"] == "frame" and row["fio"]]
    finished = next(row for row in rows if row["event"] == "step_finished")
    (row,) = finished["summary"]["rows"]
    assert row["block_size"] is None
    assert sum(f["fio"]["total"]["ios"] for f in frames) == row["directions"]["read"]["total_ios"]
    assert all("SUBMITTED" in frame["flags"] for frame in frames)
    assert "Not verified" in result.stderr and "Verified:" not in result.stderr


def test_a_group_counts_all_ios_if_only_some_jobs_take_latencies(workdir: Path) -> None:
    (workdir / "some.fio").write_text(
        "[global]\nioengine=null\nrw=read\nsize=16m\ntime_based\nruntime=1\ngroup_reporting\n"
        "rate_iops=2000\n[a]\ngtod_reduce=1\n[b]\n"
    )
    result = iopstui("run", ".", "--job", "some.fio", "--format", "jsonl", cwd=workdir)
    assert result.returncode == 0, result.stderr
    rows = events(result.stdout)
    frames = [row for row in rows if row["event"] == "frame" and row["fio"]]
    finished = next(row for row in rows if row["event"] == "step_finished")
    (row,) = finished["summary"]["rows"]
    ios = sum(f["fio"]["total"]["ios"] for f in frames)
    assert ios == row["directions"]["read"]["total_ios"]
    assert 0 < sum(f["fio"]["total"]["clat"]["n"] for f in frames) < 0.8 * ios
    assert all("SOME_LATENCY" in frame["flags"] for frame in frames)
    assert "up to fio's own total" in result.stderr


ONLY_FOR_DEVICES = {
    "zoned-write": (1, "zone size is mandatory"),
    "passthrough-4k": (2, "ioengine=io_uring_cmd sends NVMe commands"),
    "write-and-trim": (1, "Inappropriate ioctl"),
}
"""Jobs that do not work on files: exit code and message."""


@pytest.mark.parametrize("job", ONLY_FOR_DEVICES)
def test_a_job_for_devices_is_refused_on_a_file(job: str, workdir: Path) -> None:
    code, message = ONLY_FOR_DEVICES[job]
    result = iopstui("run", ".", "--job", job, "--set", "runtime=1", "--size", "4m", cwd=workdir)
    assert result.returncode == code and message in result.stderr
    assert list(workdir.iterdir()) == []


LIKE_OTHERS = {
    *(f"ksyun-qd1-{rw}" for rw in ("randread", "randrw", "randwrite")),
    *(f"ksyun-qd32-{rw}" for rw in ("randread", "randrw", "randwrite", "read", "write")),
    "azure-read", "azure-write", "seqread-1m",
    "mixed-4k", "randread-4k", "randwrite-4k", "vng-randread", "vng-randrw", "vng-randwrite",
    "promise", "fit",
}  # fmt: skip
"""Jobs that differ only in numbers from others, and those that other tests run here."""


@pytest.mark.parametrize("shipped", sorted(set(job_paths()) - set(ONLY_FOR_DEVICES) - LIKE_OTHERS))
def test_shipped_jobs_run_on_a_scratch_directory(shipped: str, workdir: Path) -> None:
    args = ("run", ".", "--job", shipped, "--set", "runtime=1", "--size", "4m", *UNHURRIED)
    result = iopstui(*args, "--format", "jsonl", cwd=workdir)
    assert result.returncode == 0, result.stderr
    lines = events(result.stdout)
    assert any(line["event"] == "frame" and line["fio"] for line in lines)
    finished = next(line for line in lines if line["event"] == "step_finished")
    assert finished["error"] == "" and finished["exit_code"] == 0
    assert list(workdir.iterdir()) == []


def test_a_user_s_job_file_runs_unchanged(workdir: Path) -> None:
    for name in ("one", "two"):
        (workdir / name).mkdir()
    (workdir / "my.job").write_text(
        "[global]\nsize=${SIZE}\nbs=4k\ntime_based\nruntime=1\nthinktime=100ms\n"
        "[readers]\nrw=randread\nfilename=a:b\nnumjobs=2\n"
        "[writer]\nrw=randwrite\ndirectory=one:two\nnrfiles=2\n"
    )
    result = iopstui("run", "--job", "my.job", "--format", "jsonl", cwd=workdir, SIZE="1m")
    assert result.returncode == 0, result.stderr
    finished = next(line for line in events(result.stdout) if line["event"] == "step_finished")
    names = {row["name"] for row in finished["summary"]["rows"]}
    assert names == {"readers", "writer"}
    assert (workdir / "a").stat().st_size + (workdir / "b").stat().st_size == 1 << 20


def test_a_writing_job_does_not_overwrite_a_named_file(workdir: Path) -> None:
    precious = workdir / "precious"
    precious.write_bytes(b"x" * 65536)
    args = ("run", str(precious), "--job", "randwrite-4k", "--set", "runtime=1", *UNHURRIED)
    refused = iopstui(*args, cwd=workdir)
    assert refused.returncode == 3
    assert "--destroy-data" in refused.stderr
    assert precious.read_bytes() == b"x" * 65536
    wrong_target = iopstui(*args, "--destroy-data", str(workdir / "other"), cwd=workdir)
    assert wrong_target.returncode == 3
    assert precious.read_bytes() == b"x" * 65536
    allowed = iopstui(*args, "--destroy-data", str(precious), cwd=workdir)
    assert allowed.returncode == 0, allowed.stderr
    assert precious.stat().st_size == 65536
    assert precious.read_bytes() != b"x" * 65536


def test_a_reading_job_leaves_a_named_file_as_it_is(workdir: Path) -> None:
    file = workdir / "data"
    file.write_bytes(b"y" * (1 << 20))
    result = iopstui(
        "run", str(file), "--job", "randread-4k", "--set", "runtime=1", *UNHURRIED,
        "--format", "jsonl", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    started = next(line for line in events(result.stdout) if line["event"] == "step_started")
    assert "--readonly" in started["command"]
    assert file.read_bytes() == b"y" * (1 << 20)


def test_gtod_reduce_shows_no_latency_anywhere(workdir: Path) -> None:
    result = iopstui(
        "run", "--job", "vng-randrw", "--set", "runtime=1", "--size", "16m", *UNHURRIED,
        "--format", "jsonl", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    for line in events(result.stdout):
        if line["event"] == "frame" and line["fio"]:
            assert "NO_LATENCY" in line["flags"]
            for direction in ("read", "write", "total"):
                figures = line["fio"][direction]
                latencies = json.dumps([figures["clat"], figures["lat"], figures["slat"]])
                assert ": 0.0" not in latencies and figures["clat"]["p99"] is None
                assert figures["iops"] > 0


def test_a_run_is_judged_against_a_baseline(workdir: Path) -> None:
    # 20 of 36 intervals must be complete: on a machine without a free CPU many are not
    job = ("run", "--job", "randread-4k", "--size", "1m", "--set", "runtime=9", *UNHURRIED)
    short = ("--interval", "0.25")
    first = iopstui(*job, *short, "--record", "before.iops", cwd=workdir)
    assert first.returncode == 0, first.stderr
    judged = iopstui(*job, *short, "--baseline", "before.iops", "--expect", "iops>=1%",
                     "--expect", "bw>=9000%", cwd=workdir)  # fmt: skip
    assert judged.returncode == 4, judged.stdout + judged.stderr
    assert "PASS  iops" in judged.stdout and "of the baseline's" in judged.stdout
    assert "FAIL  bw" in judged.stdout, judged.stdout
    unjudged = iopstui(*job, "--set", "runtime=1", "--baseline", "before.iops", "--expect",
                       "iops>=1%", cwd=workdir)  # fmt: skip
    assert unjudged.returncode == 2 and "NOT JUDGED  iops" in unjudged.stdout, unjudged.stdout
    assert "confidence interval needs at least 20" in unjudged.stderr
    never = iopstui(*job, "--baseline", "before.iops", "--expect", "clat.max<=500%", cwd=workdir)
    assert never.returncode == 2 and "Use clat.p99.9" in never.stderr, never.stderr
    refused = iopstui(*job, "before.iops", cwd=workdir)
    assert refused.returncode == 2 and "iopstui report before.iops" in refused.stderr


def test_until_steady_ends_the_run_or_reports_that_it_was_never_steady(workdir: Path) -> None:
    args = ("run", ".", "--job", "randread-4k", "--size", "4m", *UNHURRIED)
    result = iopstui(*args, "--until-steady", "1s", "--set", "runtime=8", cwd=workdir)
    steady = "steady after 0:0" in result.stderr
    assert result.returncode == (0 if steady else 4), result.stderr
    assert ("was never steady" in result.stderr) != steady
    assert ("(SNIA rule): yes" in result.stdout) == steady
    assert "up to fio's own total" in result.stdout and "interrupted" not in result.stderr
