"""A captured job's figures beside those of its run."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.capture.model.job import job_text
from iopstui.features.capture.model.workload import OPEN, Stream, Workload
from iopstui.model.fio.jobfile import Figures, captured_rows


def workload(ios: int, size: int) -> Workload:
    made = Stream("db", "read", 10.0, ios, ios * size, sizes={size: ios},
                  regions={1: ios})  # fmt: skip
    return Workload("vda", 10.0, (made,), {"read": made})


def row(name: str, iops: float) -> dict[str, Any]:
    read = {"iops": iops, "io_bytes": 10 * iops * 4096, "total_ios": 10 * iops}
    return {"name": name, "directions": {"read": read}}


@given(st.integers(10, 10**7), st.sampled_from([512, 4096, 1 << 20]))
def test_the_job_has_the_figures_of_each_section(ios: int, size: int) -> None:
    (found,) = captured_rows(job_text(workload(ios, size), OPEN), {})
    assert (found.section, found.direction, found.replayed) == ("db-read", "read", None)
    assert found.captured == Figures(ios / 10, size)
    assert found.ratio is None


def test_all_jobs_of_a_section_are_added() -> None:
    job = job_text(workload(1000, 4096), OPEN)
    rows = [row("db-read", 100.0), row("db-read", 300.0), row("other", 9.0)]
    (found,) = captured_rows(job, {"rows": rows})
    assert found.replayed == Figures(400.0, 4096.0) and found.ratio == 4.0


def test_other_jobs_have_none() -> None:
    assert captured_rows("# captured: nothing\n[a]\nrw=read\n", {}) == []
    # the options that iopstui adds stand between the comment and the next section
    (found,) = captured_rows(
        "[a]\nrw=read\n# captured: write 1.50/s, 512 bytes each\nruntime=2\n[b]\n", {}
    )
    assert (found.section, found.captured) == ("b", Figures(1.5, 512.0))
