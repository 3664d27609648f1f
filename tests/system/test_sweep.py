"""`iopstui sweep` and --expect with real fio, as a user runs them."""

from __future__ import annotations

import re
import shlex
import signal
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

import pytest
from program import (
    UNHURRIED,
    WITHIN_S,
    child_processes,
    events,
    iopstui,
    start,
    survivors,
    wait_for_fio_io,
)

SHORT = ("--settle", "0", "--measure", "1", "--size", "16m")


def test_five_points_from_one_to_sixteen(workdir: Path) -> None:
    # large blocks, because the rate is fio's maximum: a second of small blocks uses a whole CPU
    result = iopstui(
        "sweep", "--job", "randread-4k", "--set", "bs=256k", "--axis", "iodepth=1,2,4..16", *SHORT,
        "--format", "jsonl", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = events(result.stdout)
    points = [row for row in rows if row["event"] == "point_finished"]
    assert [row["settings"]["iodepth"] for row in points] == ["1", "2", "4", "8", "16"]
    assert [row["little"]["asked"] for row in points] == [1, 2, 4, 8, 16]
    # without a CPU fio has fewer I/Os in flight, and other work on the disk may delay the I/Os with
    # which a second begins; both happen to single points only
    ratios = [row["point"]["in_flight"] / row["little"]["asked"] for row in points]
    assert 0.5 < median(ratios) < 2 and min(ratios) > 0, ratios
    seconds = [row["point"]["seconds"] for row in points]
    assert median(seconds) > 0.5 and min(seconds) > 0 and max(seconds) < 5.0, seconds
    assert any(row["event"] == "curve" for row in rows)
    assert result.stderr.count("laying out") <= 3, "laid out once, not for every point"
    assert list(workdir.iterdir()) == []


def test_a_failed_point_is_reported_and_the_others_run(workdir: Path) -> None:
    result = iopstui(
        "sweep", "--job", "randread-4k", "--axis", "bs=1000,4k", *SHORT, *UNHURRIED,
        "--repeats", "2", "--shuffle", "--format", "jsonl", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 1, result.stderr
    rows = events(result.stdout)
    failed = [row for row in rows if row["event"] == "point_failed"]
    assert [row["settings"] for row in failed] == [{"bs": "1000"}] * 2
    assert all("Invalid argument" in row["error"] for row in failed)
    (mean,) = [row for row in rows if row["event"] == "point_mean"]
    assert mean["settings"] == {"bs": "4k"} and mean["point"]["runs"] == 2
    low, high = mean["point"]["iops_within"]
    assert low <= mean["point"]["iops"] <= high
    assert "2 runs of 4 failed; the others were measured" in result.stderr
    assert list(workdir.iterdir()) == []


def test_a_table_of_jobs_against_expectations(workdir: Path) -> None:
    result = iopstui(
        "sweep", "--job", "vng-randread", "--job", "vng-randwrite", "--axis", "numjobs=1,2",
        *SHORT, *UNHURRIED, "--expect", "iops>=1", "--expect", "iops>=900M", "--tolerance", "10%",
        "--junit", "../junit.xml", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 4, result.stderr
    points, met, missed = result.stdout.split("\niops >= ")
    assert points.count("PASS  iops >= 1 ") == 4 and "expectations: met at 0 of 4 points" in points
    assert points.count("FAIL  iops >= 900000000 (810000000 with 10 %") == 4
    assert met.splitlines()[-1].split() == ["vng-randwrite", "PASS", "PASS"]
    assert missed.splitlines()[-1].split() == ["vng-randwrite", "FAIL", "FAIL"]
    cases = ElementTree.parse(workdir.parent / "junit.xml").findall("testsuite/testcase")
    assert [case.get("name") for case in cases] == [
        f"job={job} numjobs={number}: {expected}"
        for job in ("vng-randread", "vng-randwrite")
        for number in (1, 2)
        for expected in ("iops>=1", "iops>=900M")
    ]
    assert list(workdir.iterdir()) == []


def test_an_interrupted_sweep_resumes(workdir: Path) -> None:
    args = ("sweep", "--job", "mixed-4k", "--axis", "iodepth=1,2,4", "--settle", "0",
            "--measure", "3", "--size", "16m", *UNHURRIED, "--expect", "iops>=1",
            "--format", "jsonl")  # fmt: skip
    process = start(*args, cwd=workdir)
    assert process.stdout is not None
    line = process.stdout.readline()
    while "point_finished" not in line:
        line = process.stdout.readline()
        assert line, "it ended before its first point"
    fio = wait_for_fio_io(process.pid)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert "1 of 3 points kept" in err
    assert survivors(fio) == [] and list(workdir.iterdir()) == []
    resumed = iopstui(*args, cwd=workdir)
    assert resumed.returncode == 0, resumed.stderr
    points = [row for row in events(resumed.stdout) if row["event"] == "point_finished"]
    assert [row["earlier"] for row in points] == [True, False, False]
    judged = [row for row in events(resumed.stdout) if row["event"] == "judged"]
    assert [row["passed"] for row in judged] == [True, True, True]
    assert "continues an interrupted run" in resumed.stderr
    assert list((workdir.parent / "state" / "iopstui").glob("sweep-*")) == [], "done: forgotten"


def test_a_sweep_does_not_resume_with_another_fio(workdir: Path) -> None:
    args = ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2", *SHORT, *UNHURRIED,
            "--format", "jsonl")  # fmt: skip
    process = start(*args, "--state", "kept", cwd=workdir)
    assert process.stdout is not None
    while "point_finished" not in process.stdout.readline():
        assert process.poll() is None, "it ended before its first point"
    process.kill()
    process.communicate(timeout=WITHIN_S)
    state = workdir / "kept"
    head, *rows = state.read_text().splitlines()
    state.write_text("\n".join([head.replace('"fio": "fio-', '"fio": "fio-0'), *rows]) + "\n")
    other_fio = iopstui(*args, "--state", "kept", cwd=workdir)
    assert (
        other_fio.returncode == 2
        and "fio was fio-0" in other_fio.stderr
        and "--fresh" in other_fio.stderr
    )
    fresh = iopstui(*args, "--state", "kept", "--fresh", cwd=workdir)
    assert fresh.returncode == 0 and "continues" not in fresh.stderr, fresh.stderr


def test_after_sigkill_no_scratch_file_is_left(workdir: Path) -> None:
    process = start("sweep", "--job", "mixed-4k", "--axis", "iodepth=1,2", "--measure", "60",
                    "--size", "16m", *UNHURRIED, cwd=workdir)  # fmt: skip
    wait_for_fio_io(process.pid)
    below = child_processes(process.pid)
    assert len(list(workdir.iterdir())) == 1
    process.kill()
    process.communicate(timeout=WITHIN_S)
    assert survivors(below) == []
    assert list(workdir.iterdir()) == []


def test_a_dry_run_starts_no_fio_and_writes_no_file(workdir: Path) -> None:
    result = iopstui("sweep", ".", "--job", "vng-randrw", "--axis", "iodepth=1,2,4..256",
                     "--axis", "numjobs=1,2,4", "--dry-run", cwd=workdir)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "27 points" in result.stdout and "512 MiB" in result.stdout
    assert "iodepth=256 numjobs=4" in result.stdout
    assert list(workdir.iterdir()) == []
    assert "× 1 job at the first point\n" in result.stdout + result.stderr
    same_depth = iopstui("sweep", "--job", "randread-4k", "--axis", "thinktime=1,2", "--dry-run",
                         "--size", "4m", cwd=workdir)  # fmt: skip
    assert "QD 32 × 1 job\n" in same_depth.stdout + same_depth.stderr
    (alone,) = re.findall(r"the first alone: iopstui (.*)", same_depth.stdout)
    assert "--set thinktime=1 " in alone
    ran = iopstui(*shlex.split(alone), "--set", "runtime=1", cwd=workdir)
    assert ran.returncode == 0 and "QD 32 × 1 job" in ran.stdout + ran.stderr
    nowhere = iopstui("sweep", "--job", "randread-4k", "--axis", "thinktime=1,2", "--dry-run",
                      "--record", "no/r.iops", cwd=workdir)  # fmt: skip
    assert nowhere.returncode == 2 and "cannot create no/r.iops" in nowhere.stderr


def test_a_dry_run_names_what_it_would_overwrite_only_if_allowed(workdir: Path) -> None:
    file = workdir / "precious"
    file.write_bytes(b"x" * 65536)
    args = ("sweep", str(file), "--job", "randwrite-4k", "--axis", "iodepth=1,2", "--dry-run")
    refused = iopstui(*args, cwd=workdir)
    assert refused.returncode == 3 and "--destroy-data" in refused.stderr
    allowed = iopstui(*args, "--destroy-data", str(file), cwd=workdir)
    assert allowed.returncode == 0 and f"OVERWRITES {file}" in allowed.stdout
    assert file.read_bytes() == b"x" * 65536


@pytest.mark.parametrize(
    ("messages", "arguments"),
    [
        (("something to vary",), ()),
        (("no values",), ("--axis", "iodepth=")),
        (("takes a whole number",), ("--axis", "iodepth=banana")),
        (("Bad option", "bogus"), ("--axis", "bogus=1,2")),
        (("settle and measure",), ("--axis", "iodepth=1,2", "--set", "runtime=5")),
        (("--yes", "--dry-run"), ("--axis", "iodepth=1..100", "--axis", "numjobs=1..100")),
        (("not a number of seconds",), ("--axis", "iodepth=1,2", "--measure", "0")),
        (("no writes",), ("--axis", "iodepth=1,2", "--expect", "write.iops>=1")),
        (
            ("gtod_reduce=1", "--axis gtod_reduce"),
            ("--axis", "gtod_reduce=0,1", "--axis", "iodepth=1,2", "--expect", "clat.p99<=1s"),
        ),
    ],
)
def test_bad_input(messages: tuple[str, ...], arguments: tuple[str, ...], workdir: Path) -> None:
    result = iopstui("sweep", "--job", "randread-4k", *arguments, cwd=workdir)
    assert result.returncode == 2, result.stderr
    for message in messages:
        assert message in result.stderr
    assert "Traceback" not in result.stderr and list(workdir.iterdir()) == []


def test_a_job_with_stages_cannot_be_swept(workdir: Path) -> None:
    result = iopstui("sweep", "--job", "measuring-iops", "--axis", "bs=4k,8k", cwd=workdir)
    assert result.returncode == 2 and "stonewall" in result.stderr


def test_expectations_of_a_run(workdir: Path) -> None:
    args = ("run", "--job", "mixed-4k", "--set", "runtime=2", "--size", "16m", *UNHURRIED)
    met = iopstui(*args, "--expect", "iops>=1", "--expect", "read.clat.p99<=100s", cwd=workdir)
    assert met.returncode == 0, met.stderr
    assert met.stdout.count("PASS") == 2 and "Steady state" in met.stdout
    missed = iopstui(*args, "--expect", "iops>=900M", "--format", "jsonl", cwd=workdir)
    assert missed.returncode == 4
    rows = events(missed.stdout)
    judged = next(row for row in rows if row["event"] == "judged")
    final = next(row for row in rows if row["event"] == "step_finished")["summary"]
    total_iops = sum(part["iops"] for part in final["total"].values())
    assert judged["passed"] is False and judged["measured"] == pytest.approx(total_iops, rel=1e-9)
    assert "FAIL" in missed.stderr


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("gtod_reduce", ("--job", "vng-randread", "--expect", "clat.p99<=1ms")),
        ("no writes", ("--job", "randread-4k", "--expect", "write.iops>=1")),
        ("form", ("--job", "randread-4k", "--expect", "iops=5000")),
        ("unit", ("--job", "randread-4k", "--expect", "clat.p99<=5")),
        ("percentage", ("--job", "randread-4k", "--expect", "iops>=5", "--tolerance", "lots")),
    ],
)
def test_expectations_that_cannot_be_judged_are_refused(
    message: str, arguments: tuple[str, ...], workdir: Path
) -> None:
    result = iopstui("run", *arguments, cwd=workdir)
    assert result.returncode == 2 and message in result.stderr, result.stderr
    assert list(workdir.iterdir()) == []


def test_an_unknown_engine_is_refused(workdir: Path) -> None:
    result = iopstui(
        "sweep", "--job", "randread-4k", "--axis", "ioengine=libaio,nosuch", cwd=workdir
    )
    assert result.returncode == 3
    assert "ioengine=nosuch is not among" in result.stderr
    assert list(workdir.iterdir()) == []
