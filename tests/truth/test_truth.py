"""`make truth` itself: it has the right jobs, and it notices errors."""

from __future__ import annotations

import copy

import fio_runs
import oracle
import pytest

import jobs
from iopstui.model.fio.jobfile import canonical_text

START_S, RATE, NS = 1000.0, 500, 100_000


def made_run() -> fio_runs.Run:
    """Five seconds of a constant load, and their true rows."""
    (job,) = [job for job in jobs.jobs() if job.name == "plain"]
    ios = [
        fio_runs.Io(START_S + n / RATE, NS + 10 * (n % 100), "read", 4096)
        for n in range(1, 5 * RATE + 1)
    ]
    rows = [_row(number, ios[number * RATE : (number + 1) * RATE]) for number in range(5)]
    steady = {"steady": True, "round_s": 1.0}
    return fio_runs.Run(job, rows, steady, {"a": {"clat": ios}})


def _row(number: int, ios: list[fio_runs.Io]) -> fio_runs.Object:
    values = sorted(io.ns for io in ios)
    clat = {"mean": sum(values) / RATE, "n": RATE, "p50": values[249], "p99": values[494]}
    figures = {
        "ios": RATE, "bytes": 4096 * RATE, "iops": float(RATE), "bw": 4096.0 * RATE,
        "clat": clat, "lat": {"mean": None, "n": 0}, "bins_of": "clat",
        "bins": {str(value): values.count(value) for value in values},
    }  # fmt: skip
    fio = {
        "seconds": 1.0, "read": figures, "write": None, "trim": None, "mixed": None,
        "total": copy.deepcopy(figures),
        "jobs": [{"name": "a", "ios": RATE, "bytes": 4096 * RATE, "iops": float(RATE),
                  "bw": 4096.0 * RATE, "clat": {"mean": clat["mean"]}}],
    }  # fmt: skip
    end = START_S + number + 1 + 0.001
    return {"flags": [], "wall_ms": 1000 * end + 2, "skew_ms": 2.0, "fio": fio}


def wrong_figures(run: fio_runs.Run) -> set[str]:
    return {e.figure for e in oracle.errors(run) if e.error > oracle.CHECKS[e.figure].bound}


def test_a_true_run_has_no_errors() -> None:
    assert not wrong_figures(made_run())
    assert {error.figure for error in oracle.errors(made_run())} == set(oracle.CHECKS)


@pytest.mark.parametrize(
    ("figure", "changes"),
    [
        ("I/Os", {"iops": 530.0}),
        ("bytes", {"bw": 4096.0 * 470}),
        ("run I/Os", {"ios": 501}),
        ("run bytes", {"bytes": 4096 * 499}),
        ("mean", {"clat": {"mean": 103_000.0, "n": 500, "p50": 100_490, "p99": 100_980}}),
        ("p50", {"clat": {"mean": 100_495.0, "n": 500, "p50": 103_000, "p99": 100_980}}),
        ("p99", {"clat": {"mean": 100_495.0, "n": 500, "p50": 100_490, "p99": 98_000}}),
        ("run mean", {"clat": {"mean": 100_795.0, "n": 500, "p50": 100_490, "p99": 100_980}}),
    ],
)
def test_an_error_in_one_row_is_found(figure: str, changes: fio_runs.Object) -> None:
    run = made_run()
    run.rows[2]["fio"]["total"] |= changes
    assert figure in wrong_figures(run)


def test_errors_of_sections_starts_and_histograms_are_found() -> None:
    run = made_run()
    run.rows[1]["fio"]["jobs"][0] |= {"iops": 550.0, "bw": 1.0, "clat": {"mean": 1.0}}
    assert wrong_figures(run) == {"section I/Os", "section bytes", "section mean"}
    run = made_run()
    run.rows[0]["fio"]["seconds"] = 1.1
    assert {"start", "I/Os", "bytes"} <= wrong_figures(run)
    run = made_run()
    for row in run.rows:
        row["fio"]["read"]["bins"] = {"110000": RATE}
    assert wrong_figures(run) == {"run percentile"}


def test_a_wrong_word_on_the_steady_state_is_found() -> None:
    run = made_run()
    run.steady["steady"] = False
    assert wrong_figures(run) == {"steady"}


def test_marked_rows_are_counted_and_not_judged() -> None:
    run = made_run()
    run.rows[2]["fio"]["total"]["iops"] = 9.0
    for flag in ("PARTIAL", "APPROX_IOPS"):
        run.rows[2]["flags"] = [flag]
        assert not wrong_figures(run)
    run.rows[2]["flags"] = ["APPROX_BW"]
    assert wrong_figures(run) == {"I/Os"}
    possible = oracle.could_be_true(run.rows, run)
    assert [oracle.marked(row) for row in possible] == [False, False, True, False, False]


def test_the_jobs_are_of_all_kinds_and_valid() -> None:
    chosen = jobs.jobs()
    assert len(chosen) >= 60 and len({job.name for job in chosen}) == len(chosen)
    texts = [job.text("/logs/") for job in chosen]
    for text in texts:
        assert canonical_text(text, {})
    for word in (
        "rate_iops=2\n", "thinktime=", "poisson", "flow=", "iodepth_batch=", "stonewall",
        "startdelay", "psync", "libaio", "io_uring", "=sync", "mmap", "null", "verify=",
        "verify_backlog", "bssplit", "bsrange", "unified_rw_reporting", "gtod_reduce", "ramp_time",
        "numjobs", "rwmixread", "randtrim",
    ):  # fmt: skip
        assert any(word in text for text in texts), word
    assert any(job.kill_s for job in chosen)
    assert any("--interval=0.25" in job.options for job in chosen)
