"""`iopstui compare` with real fio."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from program import UNHURRIED, WITHIN_S, events, fio_at_work, gone, iopstui, start

from iopstui.model.experiment.plan import Plan, expand_plan, parse_variant

SHORT = ("compare", "--job", "randread-4k", "--settle", "0", "--measure", "1", "--size", "16m")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def test_a_real_difference_is_found(here: Path) -> None:
    done = iopstui(
        *SHORT, "--variant", "rate_iops=100", "--variant", "rate_iops=400", "--repeats", "5",
        "--set", "clocksource=clock_gettime", "--seed", "1", "--format", "jsonl", cwd=here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = events(done.stdout)
    order = [row["variant"] for row in rows if row["event"] == "point_finished"]
    variants = tuple(map(parse_variant, ("rate_iops=100", "rate_iops=400")))
    plan = Plan(("x",), variants=variants, repeats=5, seed=1)
    assert order == [point.variant for point in expand_plan(plan)]
    found = {row["figure"]: row for row in rows if row["event"] == "difference"}
    # the job's own limits hold on any disk, however busy
    assert found["IOPS"]["shown"] and found["IOPS"]["better"] is True and found["IOPS"]["primary"]
    assert {"IOPS", "p50", "p99", "p99.9", "CPU per I/O"} <= set(found)
    assert "against" in rows[-1]["words"][0]
    assert list(here.iterdir()) == []


def test_the_same_twice_ends_in_a_sentence(here: Path) -> None:
    done = iopstui(*SHORT, *UNHURRIED, "--variant", "iodepth=4", "--variant", "iodepth=4",
                   "--repeats", "2", cwd=here)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "B (iodepth=4) against A (iodepth=4): " in done.stdout
    assert "runs of the same repeat are compared in pairs; intervals: 95 %" in " ".join(
        done.stdout.split()
    )
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_an_interrupted_comparison_reports_what_it_has(here: Path) -> None:
    process = start(*SHORT, *UNHURRIED, "--variant", "iodepth=1", "--variant", "iodepth=2",
                    "--measure", "3", "--seed", "1", cwd=here)  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    while not line.startswith("   1 A"):
        line = process.stdout.readline()
        assert line, "it ended before its first run"
    fio = fio_at_work(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert "not enough: no complete repeat of 5" in out
    assert "1 of 10 runs kept" in err
    assert gone(fio, 2.0) == [] and list(here.iterdir()) == []


def test_an_interrupted_comparison_goes_on_with_whole_repeats(here: Path) -> None:
    words = (*SHORT, *UNHURRIED, "--variant", "iodepth=1", "--variant", "iodepth=2",
             "--repeats", "2", "--format", "jsonl")  # fmt: skip
    process = start(*words, cwd=here)
    assert process.stdout is not None
    rows = []
    while len(rows) < 3:
        line = process.stdout.readline()
        assert line, "it ended before its third run"
        rows += events(line) if "point_finished" in line else []
    process.kill()
    process.communicate(timeout=WITHIN_S)
    again = iopstui(*words, cwd=here)
    assert again.returncode == 0, again.stderr
    runs = [row for row in events(again.stdout) if row["event"] == "point_finished"]
    # a run whose partner is missing is made again: pairs follow one another
    assert [row["earlier"] for row in runs] == [True, True, False, False]
    assert [row["variant"] for row in runs][:3] == [row["variant"] for row in rows]
    assert [row["point"]["ios"] for row in runs[:2]] == [row["point"]["ios"] for row in rows[:2]]
    assert list((here.parent / "state" / "iopstui").glob("compare-*")) == [], "done: forgotten"


def test_it_ends_once_it_knows_enough(here: Path) -> None:
    done = iopstui(
        *SHORT, *UNHURRIED, "--variant", "rate_iops=100", "--variant", "rate_iops=200",
        "--until", "±50%", "--max-repeats", "12", "--format", "jsonl", cwd=here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = events(done.stdout)
    runs = sum(row["event"] == "point_finished" for row in rows)
    # the job's own limits hold on any disk; a busy machine keeps them roughly
    assert runs < 24 and rows[-1]["settled"] is True and rows[-1]["complete"] == runs / 2
    (iops,) = [row["difference"] for row in rows if row.get("figure") == "IOPS"]
    # as sure as it said: 95 times of 100 the true value, twice as many, is between both
    assert iops["low"] <= iops["mean"] <= iops["high"]
    assert (1 + iops["high"]) / (1 + iops["low"]) <= 1.001 * 1.5**2, "but for the digits shown"
    assert 0.6 < iops["mean"] < 1.5


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (("two variants",), ("--variant", "iodepth=1")),
        (("two variants",), ()),
        (("NAME=VALUE",), ("--variant", "iodepth", "--variant", "iodepth=2")),
        (("twice",), ("--variant", "bs=4k,blocksize=8k", "--variant", "bs=4k")),
        (("--set",), ("--set", "iodepth=4", "--variant", "iodepth=1", "--variant", "iodepth=2")),
        (("--bind",), ("--bind", "queues", "--variant", "bind=none", "--variant", "iodepth=2")),
        (("--knob",), ("--knob", "nomerges=2", "--variant", "nomerges=0", "--variant", "as-is")),
        (("Bad option",), ("--variant", "bogus=1", "--variant", "bogus=2")),
        (("rq_affinity takes",), ("--variant", "rq_affinity=7", "--variant", "rq_affinity=1")),
        (("--max-repeats",), ("--until", "2%", "--repeats", "9")),
        (("--until",), ("--max-repeats", "9")),
        (("at least 6 repeats",), ("--until", "2%", "--max-repeats", "5")),
        (("percentage",), ("--until", "±0%")),
        (("from 2 to 1000",), ("--variant", "iodepth=1", "--variant", "iodepth=2",
                               "--repeats", "1")),
    ],
)  # fmt: skip
def test_bad_input(words: tuple[str, ...], arguments: tuple[str, ...], here: Path) -> None:
    done = iopstui("compare", "--job", "randread-4k", *arguments, cwd=here)
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr and list(here.iterdir()) == []


def test_a_dry_run(here: Path) -> None:
    done = iopstui("compare", "--job", "mixed-4k", "--variant", "ioengine=libaio", "--variant",
                   "ioengine=psync", "--repeats", "3", "--dry-run", cwd=here)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "6 runs" in done.stdout and "A: ioengine=libaio" in done.stdout
    assert list(here.iterdir()) == []
