"""`iopstui compare` with real fio."""

from __future__ import annotations

import signal
import statistics
from pathlib import Path

import pytest
from program import UNHURRIED, WITHIN_S, events, iopstui, start, survivors, wait_for_fio_io

from iopstui.model.experiment.plan import Plan, expand_plan, parse_variant

SHORT = ("compare", "--job", "randread-4k", "--settle", "0", "--measure", "1", "--size", "16m")


def test_two_equal_variants_compare_without_a_difference(workdir: Path) -> None:
    result = iopstui(*SHORT, *UNHURRIED, "--variant", "iodepth=4", "--variant", "iodepth=4",
                     "--repeats", "2", cwd=workdir)  # fmt: skip
    assert result.returncode == 0, result.stderr
    disturbed = "disturbed" in result.stdout.lower()
    assert disturbed or "B (iodepth=4) against A (iodepth=4): " in result.stdout
    assert "runs of the same repeat are compared in pairs; intervals: 95 %" in " ".join(
        result.stdout.split()
    )
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_an_interrupted_comparison_reports_its_runs_so_far(workdir: Path) -> None:
    process = start(*SHORT, *UNHURRIED, "--variant", "iodepth=1", "--variant", "iodepth=2",
                    "--measure", "3", "--seed", "1", cwd=workdir)  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    while not line.startswith("   1 A"):
        line = process.stdout.readline()
        assert line, "it ended before its first run"
    fio = wait_for_fio_io(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert "not enough: no complete repeat of 5" in out
    assert "1 of 10 runs kept" in err
    assert survivors(fio) == [] and list(workdir.iterdir()) == []


def test_an_interrupted_comparison_resumes_with_complete_repeats(workdir: Path) -> None:
    args = (*SHORT, *UNHURRIED, "--variant", "iodepth=1", "--variant", "iodepth=2",
            "--repeats", "2", "--format", "jsonl")  # fmt: skip
    process = start(*args, cwd=workdir)
    assert process.stdout is not None
    rows = []
    while len(rows) < 3:
        line = process.stdout.readline()
        assert line, "it ended before its third run"
        rows += events(line) if "point_finished" in line else []
    process.kill()
    process.communicate(timeout=WITHIN_S)
    resumed = iopstui(*args, cwd=workdir)
    assert resumed.returncode == 0, resumed.stderr
    runs = [row for row in events(resumed.stdout) if row["event"] == "point_finished"]
    # a run whose partner is missing is repeated, because the two runs of a pair follow each other
    assert [row["earlier"] for row in runs] == [True, True, False, False]
    assert [row["variant"] for row in runs][:3] == [row["variant"] for row in rows]
    assert [row["point"]["ios"] for row in runs[:2]] == [row["point"]["ios"] for row in rows[:2]]
    assert list((workdir.parent / "state" / "iopstui").glob("compare-*")) == [], "done: forgotten"


def test_until_stops_when_a_real_difference_is_narrow_enough(workdir: Path) -> None:
    result = iopstui(
        *SHORT, *UNHURRIED, "--variant", "rate_iops=100", "--variant", "rate_iops=200",
        "--until", "±50%", "--max-repeats", "12", "--seed", "1", "--format", "jsonl", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = events(result.stdout)
    order = [row["variant"] for row in rows if row["event"] == "point_finished"]
    runs = len(order)
    variants = tuple(map(parse_variant, ("rate_iops=100", "rate_iops=200")))
    plan = Plan(("x",), variants=variants, repeats=12, seed=1)
    assert order == [point.variant for point in expand_plan(plan)][:runs]
    # the limits are the jobs' own, so they hold on any disk; a busy machine keeps them roughly
    assert runs < 24 and rows[-1]["settled"] is True and rows[-1]["complete"] == runs / 2
    differences = {row["figure"]: row for row in rows if row["event"] == "difference"}
    assert {"IOPS", "p50", "p99", "p99.9"} <= set(differences)
    shown = differences["IOPS"]
    # None: other programs disturbed the runs
    assert shown["shown"] and shown["primary"] and shown["better"] in (True, None)
    iops = shown["difference"]
    # the interval around the mean is no wider than promised
    assert iops["low"] <= iops["mean"] <= iops["high"]
    assert (1 + iops["high"]) / (1 + iops["low"]) <= 1.001 * 1.5**2, "but for the digits shown"
    assert 0.6 < iops["mean"] < 1.5
    # the mean is that of the runs as they are in the lines: the ratio of geometric means
    rates: dict[int, list[float]] = {0: [], 1: []}
    for row in rows:
        if row["event"] == "point_finished":
            rates[row["variant"]].append(row["point"]["iops"])
    ratio = statistics.geometric_mean(rates[1]) / statistics.geometric_mean(rates[0])
    assert iops["mean"] == pytest.approx(ratio - 1, abs=1e-3)
    assert "against" in rows[-1]["words"][0]
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize(
    ("messages", "arguments"),
    [
        (("two variants",), ("--variant", "iodepth=1")),
        (("two variants",), ()),
        (("NAME=VALUE",), ("--variant", "iodepth", "--variant", "iodepth=2")),
        (("twice",), ("--variant", "bs=4k,blocksize=8k", "--variant", "bs=4k")),
        (("of every run",), ("--set", "iodepth=4", "--variant", "iodepth=1",
                           "--variant", "iodepth=2")),
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
def test_bad_input(messages: tuple[str, ...], arguments: tuple[str, ...], workdir: Path) -> None:
    result = iopstui("compare", "--job", "randread-4k", *arguments, cwd=workdir)
    assert result.returncode == 2, result.stderr
    for message in messages:
        assert message in result.stderr
    assert "Traceback" not in result.stderr and list(workdir.iterdir()) == []


def test_a_dry_run(workdir: Path) -> None:
    result = iopstui("compare", "--job", "mixed-4k", "--variant", "ioengine=libaio", "--variant",
                     "ioengine=psync", "--repeats", "3", "--dry-run", cwd=workdir)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "6 runs" in result.stdout and "A: ioengine=libaio" in result.stdout
    assert list(workdir.iterdir()) == []
