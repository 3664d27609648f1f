"""`iopstui sweep` and --expect with real fio, as a user runs them."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from program import UNHURRIED, WITHIN_S, events, family, fio_at_work, gone, iopstui, start

SHORT = ("--settle", "0", "--measure", "1", "--size", "16m")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def test_five_points_from_one_to_sixteen(here: Path) -> None:
    done = iopstui(
        "sweep", "--job", "randread-4k", "--axis", "iodepth=1,2,4..16", *SHORT,
        "--format", "jsonl", cwd=here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = events(done.stdout)
    points = [row for row in rows if row["event"] == "point_finished"]
    assert [row["settings"]["iodepth"] for row in points] == ["1", "2", "4", "8", "16"]
    assert [row["little"]["asked"] for row in points] == [1, 2, 4, 8, 16]
    for row in points:
        assert row["point"]["in_flight"] == pytest.approx(row["little"]["asked"], rel=0.25)
        assert row["point"]["seconds"] == pytest.approx(1.0, abs=0.3)
    assert any(row["event"] == "curve" for row in rows)
    assert done.stderr.count("laying out") <= 3, "laid out once, not for every point"
    assert list(here.iterdir()) == []


def test_a_point_that_fails_is_told_and_the_others_go_on(here: Path) -> None:
    done = iopstui(
        "sweep", "--job", "randread-4k", "--axis", "bs=1000,4k", *SHORT, *UNHURRIED,
        "--repeats", "2", "--shuffle", "--format", "jsonl", cwd=here,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    rows = events(done.stdout)
    failed = [row for row in rows if row["event"] == "point_failed"]
    assert [row["settings"] for row in failed] == [{"bs": "1000"}] * 2
    assert all("Invalid argument" in row["error"] for row in failed)
    (mean,) = [row for row in rows if row["event"] == "point_mean"]
    assert mean["settings"] == {"bs": "4k"} and mean["point"]["runs"] == 2
    low, high = mean["point"]["iops_within"]
    assert low <= mean["point"]["iops"] <= high
    assert "2 runs of 4 failed; the others were measured" in done.stderr
    assert list(here.iterdir()) == []


def test_a_table_of_jobs_against_a_promise(here: Path) -> None:
    done = iopstui(
        "sweep", "--job", "vng-randread", "--job", "vng-randwrite", "--axis", "numjobs=1,2",
        *SHORT, *UNHURRIED, "--expect", "iops>=1", "--expect", "iops>=900M", "--tolerance", "10%",
        cwd=here,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    points, kept, missed = done.stdout.split("\niops >= ")
    assert points.count("PASS  iops >= 1 ") == 4 and "0 of 4 points met all" in points
    assert points.count("FAIL  iops >= 900000000 (810000000 with 10 %") == 4
    assert kept.splitlines()[-1].split() == ["vng-randwrite", "PASS", "PASS"]
    assert missed.splitlines()[-1].split() == ["vng-randwrite", "FAIL", "FAIL"]
    assert list(here.iterdir()) == []


def test_an_interrupted_sweep_goes_on(here: Path) -> None:
    words = ("sweep", "--job", "mixed-4k", "--axis", "iodepth=1,2,4", "--settle", "0",
             "--measure", "3", "--size", "16m", *UNHURRIED, "--expect", "iops>=1",
             "--format", "jsonl")  # fmt: skip
    process = start(*words, cwd=here)
    assert process.stdout is not None
    line = process.stdout.readline()
    while "point_finished" not in line:
        line = process.stdout.readline()
        assert line, "it ended before its first point"
    fio = fio_at_work(process.pid)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert "1 of 3 points kept" in err
    assert gone(fio, 2.0) == [] and list(here.iterdir()) == []
    again = iopstui(*words, cwd=here)
    assert again.returncode == 0, again.stderr
    points = [row for row in events(again.stdout) if row["event"] == "point_finished"]
    assert [row["earlier"] for row in points] == [True, False, False]
    judged = [row for row in events(again.stdout) if row["event"] == "judged"]
    assert [row["passed"] for row in judged] == [True, True, True]
    assert "continues an interrupted run" in again.stderr
    assert list((here.parent / "state" / "iopstui").glob("sweep-*")) == [], "done: forgotten"


def test_a_sweep_does_not_go_on_with_another_fio(here: Path) -> None:
    words = ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2", *SHORT, *UNHURRIED,
             "--format", "jsonl")  # fmt: skip
    process = start(*words, "--state", "kept", cwd=here)
    assert process.stdout is not None
    while "point_finished" not in process.stdout.readline():
        assert process.poll() is None, "it ended before its first point"
    process.kill()
    process.communicate(timeout=WITHIN_S)
    state = here / "kept"
    head, *rows = state.read_text().splitlines()
    state.write_text("\n".join([head.replace('"fio": "fio-', '"fio": "fio-0'), *rows]) + "\n")
    other = iopstui(*words, "--state", "kept", cwd=here)
    assert other.returncode == 2 and "fio was fio-0" in other.stderr and "--fresh" in other.stderr
    fresh = iopstui(*words, "--state", "kept", "--fresh", cwd=here)
    assert fresh.returncode == 0 and "continues" not in fresh.stderr, fresh.stderr


def test_after_sigkill_no_scratch_file_is_left(here: Path) -> None:
    process = start("sweep", "--job", "mixed-4k", "--axis", "iodepth=1,2", "--measure", "60",
                    "--size", "16m", *UNHURRIED, cwd=here)  # fmt: skip
    fio_at_work(process.pid)
    below = family(process.pid)
    assert len(list(here.iterdir())) == 1
    process.kill()
    process.communicate(timeout=WITHIN_S)
    assert gone(below) == []
    assert list(here.iterdir()) == []


def test_a_dry_run_starts_and_writes_nothing(here: Path) -> None:
    done = iopstui("sweep", ".", "--job", "vng-randrw", "--axis", "iodepth=1,2,4..256",
                   "--axis", "numjobs=1,2,4", "--dry-run", cwd=here)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "27 points" in done.stdout and "512 MiB" in done.stdout
    assert "iodepth=256 numjobs=4" in done.stdout
    assert list(here.iterdir()) == []
    assert "× 1 job at the first point\n" in done.stdout + done.stderr
    same = iopstui("sweep", "--job", "randread-4k", "--axis", "thinktime=1,2", "--dry-run",
                   cwd=here)  # fmt: skip
    assert "QD 32 × 1 job\n" in same.stdout + same.stderr
    nowhere = iopstui("sweep", "--job", "randread-4k", "--axis", "thinktime=1,2", "--dry-run",
                      "--record", "no/r.iops", cwd=here)  # fmt: skip
    assert nowhere.returncode == 2 and "cannot create no/r.iops" in nowhere.stderr


def test_a_dry_run_says_what_would_be_overwritten_only_if_it_may_be(here: Path) -> None:
    file = here / "precious"
    file.write_bytes(b"x" * 65536)
    words = ("sweep", str(file), "--job", "randwrite-4k", "--axis", "iodepth=1,2", "--dry-run")
    refused = iopstui(*words, cwd=here)
    assert refused.returncode == 3 and "--destroy-data" in refused.stderr
    allowed = iopstui(*words, "--destroy-data", str(file), cwd=here)
    assert allowed.returncode == 0 and f"OVERWRITES {file}" in allowed.stdout
    assert file.read_bytes() == b"x" * 65536


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (("something to vary",), ()),
        (("no values",), ("--axis", "iodepth=")),
        (("takes a whole number",), ("--axis", "iodepth=banana")),
        (("Bad option", "bogus"), ("--axis", "bogus=1,2")),
        (("--measure",), ("--axis", "iodepth=1,2", "--set", "runtime=5")),
        (("--yes", "--dry-run"), ("--axis", "iodepth=1..100", "--axis", "numjobs=1..100")),
        (("not a number of seconds",), ("--axis", "iodepth=1,2", "--measure", "0")),
        (("no writes",), ("--axis", "iodepth=1,2", "--expect", "write.iops>=1")),
        (
            ("gtod_reduce=1", "--axis gtod_reduce"),
            ("--axis", "gtod_reduce=0,1", "--axis", "iodepth=1,2", "--expect", "clat.p99<=1s"),
        ),
    ],
)
def test_bad_input(words: tuple[str, ...], arguments: tuple[str, ...], here: Path) -> None:
    done = iopstui("sweep", "--job", "randread-4k", *arguments, cwd=here)
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr and list(here.iterdir()) == []


def test_stages_have_no_one_figure(here: Path) -> None:
    done = iopstui("sweep", "--job", "measuring-iops", "--axis", "bs=4k,8k", cwd=here)
    assert done.returncode == 2 and "stonewall" in done.stderr


def test_expectations_of_a_run(here: Path) -> None:
    words = ("run", "--job", "mixed-4k", "--set", "runtime=2", "--size", "16m", *UNHURRIED)
    met = iopstui(*words, "--expect", "iops>=1", "--expect", "read.clat.p99<=100s", cwd=here)
    assert met.returncode == 0, met.stderr
    assert met.stdout.count("PASS") == 2 and "Steady state" in met.stdout
    missed = iopstui(*words, "--expect", "iops>=900M", "--format", "jsonl", cwd=here)
    assert missed.returncode == 4
    rows = events(missed.stdout)
    judged = next(row for row in rows if row["event"] == "judged")
    final = next(row for row in rows if row["event"] == "step_finished")["summary"]
    own = sum(part["iops"] for part in final["total"].values())
    assert judged["passed"] is False and judged["measured"] == pytest.approx(own, rel=1e-9)
    assert "FAIL" in missed.stderr


@pytest.mark.parametrize(
    ("word", "arguments"),
    [
        ("gtod_reduce", ("--job", "vng-randread", "--expect", "clat.p99<=1ms")),
        ("no writes", ("--job", "randread-4k", "--expect", "write.iops>=1")),
        ("form", ("--job", "randread-4k", "--expect", "iops=5000")),
        ("unit", ("--job", "randread-4k", "--expect", "clat.p99<=5")),
        ("percentage", ("--job", "randread-4k", "--expect", "iops>=5", "--tolerance", "lots")),
    ],
)
def test_expectations_that_can_t_be_judged(
    word: str, arguments: tuple[str, ...], here: Path
) -> None:
    done = iopstui("run", *arguments, cwd=here)
    assert done.returncode == 2 and word in done.stderr, done.stderr
    assert list(here.iterdir()) == []


def test_an_engine_that_is_not_known_is_refused(here: Path) -> None:
    done = iopstui("sweep", "--job", "randread-4k", "--axis", "ioengine=libaio,nosuch", cwd=here)
    assert done.returncode == 3
    assert "ioengine=nosuch is not among" in done.stderr
    assert list(here.iterdir()) == []
