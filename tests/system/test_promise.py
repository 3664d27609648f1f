"""`iopstui promise` with a real fio, on scratch files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from program import iopstui

OWN = """
title = "Mine"
[source.doc]
page = "Page"
date = 2024-05-31
[class.slow]
title = "Slow"
iops = { base = 5, source = "doc" }
throughput = { unit = "MB/s", base = 0.5, source = "doc" }
[class.impossible]
title = "Impossible"
read_iops = { base = 900000000, source = "doc" }
write_throughput = { unit = "MB/s", base = 900000, source = "doc" }
[class.bursty]
title = "Bursty"
read_throughput = { unit = "MiB/s", base = 3, source = "doc" }
[class.bursty.burst]
throughput = { unit = "MiB/s", base = 9, source = "doc" }
credit_bytes = { unit = "MiB", base = 6, source = "doc" }
[class.credits]
title = "Credits"
read_iops = { base = 300, source = "doc" }
[class.credits.burst]
iops = { base = 900, source = "doc" }
credits = { unit = "I/Os", base = 600, source = "doc" }
[class.sized]
title = "Sized"
size = { min = 100, max = 200, source = "doc" }
iops = { per_gib = 1, source = "doc" }
"""
SHORT = ("--settle", "0", "--measure", "1", "--file-size", "8m")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    volumes_dir = tmp_path / "config/iopstui/volumes"
    volumes_dir.mkdir(parents=True)
    (volumes_dir / "mine.toml").write_text(OWN)
    (tmp_path / "work").mkdir()
    return tmp_path


def promise(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return iopstui("promise", *args, cwd=home / "work", XDG_CONFIG_HOME=str(home / "config"))


def test_limits_beyond_this_machine_are_undecided(home: Path) -> None:
    result = promise(home, "--volume", "mine/impossible", *SHORT, "--json")
    assert result.returncode == 4, result.stderr
    data = json.loads(result.stdout)
    assert data["met"] is False
    for row, promised in zip(data["rows"], (900e6, 900e9), strict=True):
        assert row["promised"] == promised and 0 < row["measured"] < promised
        assert row["result"] == "can't tell" and row["why"]
    # the plan shows what is written and for how long
    assert "writes: a scratch file (8 MiB)" in result.stderr
    assert os.listdir(home / "work") == []


def test_a_dry_run_changes_nothing(home: Path) -> None:
    result = promise(home, "--volume", "mine/slow", "--dry-run")
    assert result.returncode == 0 and "4 figures, about" in result.stdout
    assert "random reads, 4 KiB: 30 s" in result.stdout
    assert os.listdir(home / "work") == []


def test_a_dry_run_finds_what_fio_or_a_recording_would_refuse(home: Path) -> None:
    tiny = promise(home, "--volume", "mine/slow", "--file-size", "1", "--dry-run")
    assert tiny.returncode == 2 and not tiny.stdout
    assert "--file-size 1 is too small (1 bytes): blocks have up to " in tiny.stderr
    nowhere = promise(home, "--volume", "mine/slow", "--record", "no/r.iops", "--dry-run")
    assert nowhere.returncode == 2 and not nowhere.stdout
    assert "cannot create no/r.iops: No such file or directory" in nowhere.stderr
    valid = promise(home, "--volume", "mine/slow", "--record", "r.iops", "--dry-run")
    assert valid.returncode == 0 and os.listdir(home / "work") == []


def test_drain_uses_up_a_full_bucket_before_the_baseline(home: Path) -> None:
    plan = promise(home, "--volume", "mine/credits", "--drain", "--dry-run").stdout
    # 600 credits last one second at 900 IOPS; ten seconds are added
    assert "first random reads, 4 KiB until the credits are used up: 11 s" in plan
    assert "uses up to 600 of 600 I/O credits; full again after 2 s without I/O" in plan
    # large blocks use less CPU time
    args = ("--volume", "mine/bursty", "--drain")
    plan = promise(home, *args, "--dry-run").stdout
    assert "first sequential reads, 1 MiB until the credits are used up: 11 s" in plan
    assert (
        "uses up to 6,291,456 of 6,291,456 bytes of credits; full again after 2 s without I/O"
        in plan
    )
    sized = promise(home, "--volume", "mine/sized,size=150g", "--dry-run")
    assert sized.returncode == 0, "what was bought may stand in one word"
    result = promise(home, *args, *SHORT, "--json")
    rows = json.loads(result.stdout)["rows"]
    assert [row["burst"] for row in rows] == [False, True]
    # beside other tests a second may miss the limit
    assert {row["result"] for row in rows} <= {"PASS", "can't tell"}
    assert "to use up the burst credits: 11 s" in result.stderr


def test_without_a_class_nothing_is_measured(home: Path) -> None:
    result = promise(home)
    assert result.returncode == 2 and "--volume" in result.stderr and not result.stdout


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--volume", "aws/gp4"), 2, "Did you mean"),
        (("--volume", "aws/io2", "--size", "100g"), 2, "Name them: --iops"),
        (("--volume", "mine/sized", "--size", "50g"), 2, "cannot be smaller than 100"),
        (("--volume", "gp3", "--size", "1g", "--instance", "azure/Standard_D2s_v3"), 2,
         "another provider"),
        (("--volume", "mine/slow", "--file-size", "many"), 2, "many"),
        (("nothing/there", "--volume", "mine/slow"), 2, "nothing/there"),
        (("--volume", "mine/slow", "--measure", "0"), 2, "not a number of seconds"),
        (("--volume", "mine/slow", "--write-budget", "1m", "--file-size", "8m"), 1, "budget"),
    ],
)  # fmt: skip
def test_bad_input(home: Path, args: tuple[str, ...], code: int, message: str) -> None:
    result = promise(home, *args)
    assert (result.returncode, message in result.stderr) == (code, True), result.stderr
    assert os.listdir(home / "work") == []


def test_own_numbers_of_a_file_that_is_only_read_without_destroy_data(home: Path) -> None:
    file = home / "work/disk.img"
    file.write_bytes(os.urandom(1 << 20))
    before = file.read_bytes()
    result = promise(home, str(file), "--iops", "50", "--latency", "p99<=4s", *SHORT[:4])
    assert result.returncode == 0, result.stderr
    assert "2 passed, 0 failed, 2 undecided" in result.stdout
    assert "p99 of random reads at 50/s, 4 KiB" in result.stdout and "≤ 4" in result.stdout
    assert result.stdout.count(" PASS") == 2 and "volume IOPS" not in result.stdout
    assert f"--destroy-data {file}" in result.stdout
    assert file.read_bytes() == before
    refused = promise(home, str(file), "--volume", "mine/slow", "--destroy-data", "/dev/null")
    assert refused.returncode in (2, 3) and file.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--latency", "p98<=2ms"), "is not a latency"),
        (("--latency", "p99>=2ms"), "is not a latency"),
        (("--latency", "p99<=2ms", "--volume", "aws/gp3"), "tests a number of yours"),
        (("--iops", "5", "--drain"), "--drain needs a volume class"),
    ],
)
def test_wrong_numbers(home: Path, words: tuple[str, ...], text: str) -> None:
    result = promise(home, *words)
    assert result.returncode == 2 and text in result.stderr
