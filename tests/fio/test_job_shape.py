"""What a job's text asks for, and which jobs may be compared."""

from __future__ import annotations

import pytest

from iopstui.fio.job_shape import direct, engine, shape_of, text_without_depth
from iopstui.model.findings.evidence import JobShape


@pytest.mark.parametrize(
    ("options", "field"),
    [
        *((f"{name}=1", "paced") for name in ("rate", "rate_iops", "thinktime", "flow")),
        *((f"{name}=1", "polls") for name in ("hipri", "sqthread_poll")),
        *((f"{name}=1", "syncs") for name in (
            "fsync", "fdatasync", "sync", "fsync_on_close", "end_fsync", "sync_file_range",
        )),
    ],
)  # fmt: skip
def test_what_makes_a_job_pace_poll_or_sync(options: str, field: str) -> None:
    for text, given in ((f"[a]\n{options}\n", True), (f"[a]\n{options[:-1]}0\n", False)):
        shape = shape_of(text)
        assert {name: getattr(shape, name) for name in ("paced", "polls", "syncs")} == {
            name: name == field and given for name in ("paced", "polls", "syncs")
        }


def test_sections_that_run_at_once_are_added_up() -> None:
    text = "[global]\nioengine=libaio\niodepth=4\n[a]\nnumjobs=2\n[b]\n{}numjobs=3,9\niodepth=8\n"
    shape = shape_of(text.format(""))
    assert (shape.jobs, shape.in_flight, shape.iodepth) == (5, 2 * 4 + 3 * 8, None)
    for option in ("stonewall\n", "wait_for_previous\n"):
        one_by_one = shape_of(text.format(option))
        assert (one_by_one.jobs, one_by_one.in_flight) == (3, 24)
    assert shape_of("# nothing\n") == JobShape()


@pytest.mark.parametrize(
    ("name", "deep"),
    [("sync", 1), ("psync", 1), ("vsync", 1), ("pvsync", 1), ("pvsync2", 1), ("mmap", 1),
     ("libaio", 16), ("io_uring", 16), ("posixaio", 16)],
)  # fmt: skip
def test_a_synchronous_engine_has_one_at_a_time(name: str, deep: int) -> None:
    shape = shape_of(f"[a]\nioengine={name}:x\niodepth=16\n")
    assert (shape.engine, shape.iodepth, shape.in_flight) == (name, 16, deep)
    assert engine({}) == "psync"


def test_direct_is_the_opposite_of_buffered() -> None:
    assert direct({"direct": "1"}) and direct({"buffered": "0"})
    assert not direct({"buffered": "1", "direct": "1"}) and not direct({})


def test_runs_of_different_depth_may_be_compared() -> None:
    same = "[global]\nrw=read\n[a]\nbs=4k\n"
    for name in ("iodepth", "numjobs", "runtime", "time_based", "filename", "directory", "name",
                 "blocksize"):  # fmt: skip
        assert text_without_depth(f"{same}{name}=1\n") == text_without_depth(same) == "rw=read"
    assert text_without_depth(f"{same}rate=1\n") != text_without_depth(same)
    assert text_without_depth("[a]\n[b]\nrw=read\n") == "\n\nrw=read"


def test_runs_on_other_cpus_may_not_be_compared_unless_both_follow_the_queues() -> None:
    same = "[a]\nrw=read\n"
    for name in ("cpus_allowed", "cpus_allowed_policy"):
        assert text_without_depth(f"{same}{name}=1\n") != text_without_depth(same)
        # with more jobs they are on more queues
        assert text_without_depth(f"{same}{name}=1\n", bound=True) == text_without_depth(
            same, bound=True
        )
    assert text_without_depth(same, bound=True) != text_without_depth(same)
