from __future__ import annotations

import pytest

from iopstui.model.jobfile import effective
from iopstui.session.job_text import read_job
from iopstui.session.scratch_sizes import times
from iopstui.sources.jobs import find_job, job_paths

SMALL = 64 << 20


def timed(text: str, size: int = SMALL) -> list[str]:
    jobs = effective(text)
    return times(jobs, [size] * len(jobs))


@pytest.mark.parametrize(
    ("options", "expected"),
    [("size=1000G\nruntime=300", "1"), ("size=1000G\ntimeout=300", "1"), ("runtime=5", "1"),
     ("size=50%\nruntime=5", "1"), ("size=64m\nruntime=5", "0"), ("size=1m\nruntime=5", "0"),
     ("size=1000G", "0"), ("size=1m\ntime_based\nruntime=5", "1"),
     ("size=1000G\nruntime=5\nio_size=1g", "0"), ("size=1000G\nruntime=5\nnumber_ios=9", "0")],
)  # fmt: skip
def test_a_job_whose_file_is_cut_runs_for_its_runtime(options: str, expected: str) -> None:
    assert timed(f"[a]\n{options}\n") == [expected]


def test_each_section_by_itself() -> None:
    assert timed("[global]\nruntime=5\n[a]\nsize=1g\n[b]\nsize=1m\n[c]\nsize=1m\ntime_based\n") == [
        "1", "0", "1",
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(job_paths()))
def test_every_shipped_job_with_a_runtime_lasts_as_long_on_a_small_file(name: str) -> None:
    """azure-read ended after 2.9 of its 30 s, ksyun-qd32-randread after 2.4 of 300."""
    jobs = effective(read_job(find_job(name)))
    expected = ["1" if "runtime" in job.options else "0" for job in jobs]
    assert times(jobs, [SMALL] * len(jobs)) == expected
