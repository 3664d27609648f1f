"""The counters of NVMe objects in new kernels, as rates of an interval."""

from __future__ import annotations

from dataclasses import replace

from session_frames import kernel

from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.metrics.nvme import diag_texts
from iopstui.model.samples import RawSample
from iopstui.output.jsonl import frame_object


def test_a_frame_has_the_rates_of_each_object() -> None:
    builder = FrameBuilder()
    counts = ({"command_retry_count nvme0c1n1": 5, "reset_count nvme0": 3},
              {"command_retry_count nvme0c1n1": 11, "reset_count nvme0": 1,
               "multipath_failover_count nvme0c2n1": 1})  # fmt: skip
    frames = []
    for n, diag in enumerate(counts):
        sample = replace(kernel(n, n * 2 * 10**9, 2000.0 * n), more={"nvme_diag": diag})
        raw = RawSample(n, n * 2 * 10**9, 2000.0 * n, sample, fio=None, final=False, step=0)
        frames.append(frame_object(builder.feed(raw)))
    assert frames[0]["kernel"]["nvme_diag"] is None
    # a counter that went back, and one of a new path, have no rate in this interval
    said = frames[1]["kernel"]["nvme_diag"]
    assert {name: {figure: rate for figure, rate in rates.items() if rate is not None}
            for name, rates in said.items()} == {"nvme0c1n1": {"command_retry": 3.0}}  # fmt: skip


def test_the_failed_commands_of_a_controller_may_be_no_io() -> None:
    growths = {"command_error_count": 2, "reset_count": 1, "command_retry_count": 0}
    assert [*diag_texts("nvme0c1n1", growths)] == ["1 reset", "2 commands failed"]
    assert [*diag_texts("nvme0", growths)] == ["1 reset"]
