"""A command ends before it writes more than its budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fio_recordings import statuses
from hypothesis import given
from hypothesis import strategies as st

from iopstui.fio.inspect import JobFacts, SectionFiles
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.session.fio.write_budget import (
    STOP_TIME_S,
    WriteBudget,
    max_writes_text,
    short_budget_text,
    written_per_s,
)

MIB = 1 << 20


@given(st.integers(1, 1000), st.integers(1, 10_000))
def test_at_a_steady_rate_it_ends_before_the_budget_is_used(rate_mib: int, most_mib: int) -> None:
    budget = WriteBudget(most_mib * MIB)
    written = 0
    assert budget.check(0.0, 0) == "", "looks begin with the run"
    for look in range(1, 1_000_000):
        written = look * rate_mib * MIB // 10
        if budget.check(look / 10, written):
            break
    first = rate_mib * MIB / 10
    assert written + rate_mib * MIB * (STOP_TIME_S - 0.1) <= max(most_mib * MIB, 9 * first)
    assert budget.exceeded


def test_all_runs_together_and_none_that_would_go_beyond() -> None:
    budget = WriteBudget(100 * MIB)
    assert budget.refusal(10 * MIB) == "" and "new files need 101" in budget.refusal(101 * MIB)
    budget = WriteBudget(100 * MIB)
    budget.end(30 * MIB, layout=True)
    assert budget.refusal(0) == "", "files are laid out once"
    budget.end(40 * MIB)
    assert budget.used == 70 * MIB and not budget.exceeded
    why = budget.refusal(0)
    assert (
        "earlier runs wrote up to 40 MiB" in why and "only 30 MiB of the" in why and budget.exceeded
    )


def test_without_a_budget_everything_goes_and_a_read_costs_nothing() -> None:
    free = WriteBudget()
    assert free.refusal(1 << 60) == "" == free.check(1.0, 1 << 60)
    reads = WriteBudget(1)
    assert reads.check(1.0, 0) == "" == reads.check(2.0, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, False, 9.0, None), "writes at most: nothing"),
        ((MIB, False, 9.0, None), "writes at most: 1 MiB of scratch files, the jobs only read"),
        ((MIB, True, 9.0, 1 << 30), "writes at most: 1 GiB (--write-budget), with 1 MiB of"),
        (
            (0, True, 90.0, None),
            "writes: for 1 min 30 s at full speed (as much as the disk takes; 1 GB/s would be "
            "83.8 GiB), no limit set",
        ),
        (
            (0, True, 90.0, None, None, 1.5 * MIB),
            "writes: for 1 min 30 s at full speed (about 135 MiB at the last run's 1.5 MiB/s), no ",
        ),
        (
            (0, True, None, None),
            "writes: at full speed, no limit set (--write-budget 200g sets one)",
        ),
        ((0, True, 9.0, None, MIB), "writes at most: 1 MiB (the job's own limit)"),
        (
            (MIB, True, 9.0, 3 * MIB, MIB),
            "1 MiB of scratch files, then 1 MiB (the job's own limit)",
        ),
        ((MIB, True, 9.0, 3 * MIB, 3 * MIB), "writes at most: 3 MiB (--write-budget), with 1 MiB"),
    ],
)
def test_it_is_said_before(arguments: tuple[int, bool, float, int | None], words: str) -> None:
    assert words in max_writes_text(*arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, False, 9.0, None), "reads only"),
        ((MIB, False, 9.0, None), "reads only, after writing 1 MiB"),
        ((MIB, True, 9.0, None, 2 * MIB), "writes up to 3 MiB"),
        ((MIB, True, 9.0, MIB, 2 * MIB), "writes up to 1 MiB"),
        ((0, True, None, None), "writes without a limit"),
        (
            (0, True, 2.0, None),
            "writes for 2 s, no limit set (as much as the disk takes; 1 GB/s would be 1.86 GiB)",
        ),
        (
            (0, True, 2.0, None, None, 3.0 * MIB),
            "writes for 2 s, no limit set (about 6 MiB at the last run's 3 MiB/s)",
        ),
    ],
)
def test_the_same_in_a_few_words(arguments: tuple[Any, ...], words: str) -> None:
    assert short_budget_text(*arguments) == words


def test_a_run_s_own_rate_is_kept_for_the_next_estimate() -> None:
    budget = WriteBudget()
    budget.end(MIB, True, 5.0)
    assert budget.rate is None, "laying out files is no measure of the job"
    status = statuses("3.42-b-randrw-gtod")[-1]
    budget.end(MIB, False, written_per_s(status))
    parts = [job.directions["write"] for job in status.jobs]
    longest = max(part.runtime_ms for part in parts)
    assert budget.rate == pytest.approx(1000 * sum(p.io_bytes for p in parts) / longest)
    budget.end(0, False, written_per_s(statuses("3.42-a-randread-grp")[-1]))
    assert budget.rate, "a run that only reads does not change it"


def test_what_was_said_of_a_job_is_held_against_what_fio_counts() -> None:
    budget = WriteBudget()
    assert budget.exceeded_count(1 << 50) == "", "nothing was said"
    text = "[a]\nrw=write\nbs=4k\nsize=1m\nfilename=x\n"
    job = PreparedJob(
        "a", "", text, JobFacts((SectionFiles("a", ("x",)),), True), (), Path("/none")
    )
    assert budget.forecast(job, 0, {}) == "writes at most: 1 MiB (the job's own limit)"
    assert budget.exceeded_count(MIB + 4096) == ""
    limited = WriteBudget(4 * MIB)
    limited.forecast(job, 0, {})
    assert limited.check(1.0, 4096) == "" == limited.check(1.3, MIB), "it ends by itself before"
    assert "ended after 4 MiB written: it has reached" in limited.check(1.6, 4 * MIB)
    exact = WriteBudget(2 * MIB)
    exact.forecast(job, 0, {})
    exact.end(MIB)
    assert exact.check(1.0, 4096) == "" == exact.check(1.3, MIB), "no more than it may"
    assert exact.check(1.5, MIB + 4096) == "", "a block of the file system's own"
    assert "has reached the write budget of 2 MiB" in exact.check(1.6, MIB + 8192)
    less = WriteBudget(2 * MIB - 1)
    less.forecast(job, 0, {})
    less.end(MIB)
    assert less.check(1.0, 4096) == "" and "continuing could exceed" in less.check(1.3, MIB - 4096)
    assert "stopped after writing 1.01 MiB" in budget.exceeded_count(MIB + 8192)
