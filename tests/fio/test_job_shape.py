"""What a job's text asks for, and which jobs may be compared."""

from __future__ import annotations

import pytest

from iopstui.fio.job_shape import direct, shape_of, start_delay_s
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


def test_a_job_holds_itself_back_if_all_its_sections_do() -> None:
    one = "[a]\nrate_iops=500\nthinktime=0\n"
    assert shape_of(one).pace == "rate_iops=500"
    assert shape_of(f"{one}[b]\nthinktime=2ms\n").pace == "rate_iops=500 thinktime=2ms"
    assert shape_of(f"{one}[b]\niodepth=4\n").pace == ""


def test_sections_that_run_at_once_are_added_up() -> None:
    text = "[global]\nioengine=libaio\niodepth=4\n[a]\nnumjobs=2\n[b]\n{}numjobs=3,9\niodepth=8\n"
    shape = shape_of(text.format(""))
    assert (shape.jobs, shape.in_flight, shape.iodepth) == (5, 2 * 4 + 3 * 8, None)
    for option in ("stonewall\n", "wait_for_previous\n"):
        one_by_one = shape_of(text.format(option))
        assert (one_by_one.jobs, one_by_one.in_flight) == (3, 24)
    assert shape_of("# nothing\n") == JobShape()


def test_direct_is_the_opposite_of_buffered() -> None:
    assert direct({"direct": "1"}) and direct({"buffered": "0"})
    assert not direct({"buffered": "1", "direct": "1"}) and not direct({})


def test_the_wait_before_the_first_io() -> None:
    assert start_delay_s("[global]\nstartdelay=1m\n[a]\n[b]\nstartdelay=20-30\n") == 30
    assert start_delay_s("[a]\nstart_delay=5\n[b]\nrw=read\n") == 0
    assert start_delay_s("[a]\nstartdelay=odd\n") == 0
