"""The options that send a job's I/Os at a fixed rate, and jobs for which that is impossible."""

from __future__ import annotations

import pytest

from iopstui.features.limit.model import may_be_full, open_loop, why_no_open_loop
from iopstui.fio.job_shape import shape_of
from iopstui.model.fio import jobfile

BASE = "[j]\nioengine=libaio\ndirect=1\nrw=randread\n"


def load_of(text: str):  # type: ignore[no-untyped-def]
    return open_loop(shape_of(text), jobfile.effective_sections(text)[0], 4096)


def test_the_rate_is_shared_by_the_jobs_and_by_reads_and_writes() -> None:
    plain = load_of(BASE)
    assert plain.options(1500.4, 64, 3) == {
        "rate_iops": "1500", "rate_process": "poisson", "iodepth": "64",
        "randrepeat": "0", "randseed": "3",
    }  # fmt: skip
    assert plain.asked(1500.4) == 1500
    mixed = load_of(BASE.replace("randread", "randrw") + "rwmixread=70\nnumjobs=2\n")
    assert mixed.options(2000, 64, 1)["rate_iops"] == "700,300" and mixed.asked(2000) == 2000
    writes = load_of(BASE.replace("randread", "randrw") + "rwmixwrite=25\n")
    assert writes.options(400, 64, 1)["rate_iops"] == "300,100"


def test_the_queue_has_room_for_what_arrives_within_the_bound() -> None:
    plain = load_of(BASE)
    assert plain.depth(100, 0.001) == 64 and plain.depth(10_000, 0.01) == 1600
    assert plain.depth(10_000, 0.01, deeper=1) == plain.depth(1e6, 1.0) == 4096
    # 1 MiB each: not more than 256 MiB of buffers
    assert (
        open_loop(shape_of(BASE), jobfile.effective_sections(BASE)[0], 1 << 20).depth(1e6, 1.0)
        == 256
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("ioengine=psync\n", "psync waits for each I/O"),
        ("direct=0\n", "page cache"),
        ("rate_iops=100\n", "its own pace"),
        ("thinktime=5\n", "its own pace"),
        ("rw=randwrite\nfdatasync=1\n", "its own syncs (fdatasync=1)"),
    ],
)
def test_jobs_that_wait_for_the_disk_are_refused(change: str, why: str) -> None:
    text = BASE + change
    reason = why_no_open_loop(shape_of(text), jobfile.effective_sections(text)[0].options)
    assert reason is not None and why in reason[0] and reason[1]


@pytest.mark.parametrize(
    "change", ["", "ioengine=io_uring\ndirect=0\n", "ioengine=psync\nio_submit_mode=offload\n"]
)
def test_jobs_that_need_not_wait(change: str) -> None:
    text = BASE + change
    assert why_no_open_loop(shape_of(text), jobfile.effective_sections(text)[0].options) is None


def test_a_queue_can_only_fill_within_the_slowest_io() -> None:
    assert not may_be_full(1000, 0.02, 64)
    assert may_be_full(1000, 0.06, 64) and may_be_full(1000, 0.04, 64)
